"""The stored runs of one task that a failure analysis can look at: one of the pool, or one a collection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from core.adapt.pairs import case_of
from core.data.dataset import DataSet
from core.data.topics import cluster_of
from core.embed.pipeline import Pipeline
from core.evaluate.evaluate import OFFLINE
from core.evaluate.make import judged_by
from core.evaluate.run import RunInfo, StoredRun, stored_runs
from core.models import specs
from core.retrievers.fair import trained_cases
from core.retrievers.fused import GREY
from core.store.workspace import Workspace

Key = tuple[str, str]
"""(collection, query id)."""

POOL, COLLECTIONS = "pool", "collections"
SCOPES = (POOL, COLLECTIONS)
"""Where a run was made: over the whole pool of a task, or within each collection (the benchmark's protocol)."""

SHIPPED = "shipped head"


@dataclass(frozen=True)
class TaskRun:
    """One model's stored full run of a task, of the pool or one a collection (``runs``, by place).

    ``label`` tells it from the other runs of the task and scope. ``seen``: queries that are left out because the model
    was trained on their case or topic. ``source`` says who answered, "" where nothing is to be said.
    """

    label: str
    model: str
    model_id: str
    revision: str
    task: str
    scope: str
    runs: tuple[StoredRun, ...]
    seen: frozenset[Key] = frozenset()
    source: str = ""


def task_runs(
    dataset: DataSet, workspace: Workspace, task: str, scope: str | None = None
) -> tuple[list[TaskRun], list[str]]:
    """The full, exact runs of a task as they were ranked, of each model the newest and deepest; imports too.

    ``scope`` None: the pool where any run of it is stored, else the collections. Runs of a model that was trained on
    this data stand twice where both are stored: cross-fitted, and of the shipped head without the queries it saw.
    The second value says why stored runs were left out. Models come in the order of tables.
    """
    stored, reasons = stored_runs(workspace.roots, dataset.data_id)
    runs = [run for run in stored if run.info.task == task and _is_full(run)]
    return _of_task(dataset, workspace, task, scope or _usual(runs, task), runs, reasons)


def scopes(dataset: DataSet, workspace: Workspace, task: str) -> list[str]:
    """The scopes of which any run of the task is stored, the pool first."""
    runs = [run for run in stored_runs(workspace.roots, dataset.data_id)[0] if run.info.task == task and _is_full(run)]
    found = {_scope(run) for run in runs}
    return [scope for scope in SCOPES if scope in found]


def colour_of(run: TaskRun) -> str:
    """The colour that the model keeps everywhere; grey for hybrids and imports."""
    return specs.SPECS[run.model].colour if run.model in specs.SPECS else GREY


def _is_full(run: StoredRun) -> bool:
    info = run.info
    return info.variant == "full" and info.index_kind in ("exact", "imported") and not info.split


def _scope(run: StoredRun) -> str:
    return POOL if run.info.place == f"pool-{run.info.task}" else COLLECTIONS


def _usual(runs: Iterable[StoredRun], task: str) -> str:
    return POOL if any(_scope(run) == POOL for run in runs) else COLLECTIONS


def _of_task(
    dataset: DataSet, workspace: Workspace, task: str, scope: str, runs: list[StoredRun], reasons: list[str]
) -> tuple[list[TaskRun], list[str]]:
    together = made_alike(run for run in runs if _scope(run) == scope and run.info.overlay == judged_by(dataset))
    best: dict[tuple[str, bool], list[StoredRun]] = {}
    for parts in sorted(together, key=_newest):
        best[parts[0].info.model, bool(parts[0].info.fold_plan)] = parts
    found = []
    for (model, cross_fitted), parts in best.items():
        info = parts[0].info
        seen = frozenset() if cross_fitted or info.index_kind == "imported" else _seen(dataset, workspace, task, model)
        as_shipped = bool(seen) or (not cross_fitted and (model, True) in best)  # also where it saw nothing of the task
        label = f"{model}, {SHIPPED}" if as_shipped else model
        source = str(parts[0].facts.get("answered_by", ""))
        runs_of = tuple(sorted(parts, key=lambda run: run.info.place))
        found.append(TaskRun(label, model, info.model_id, info.revision, task, scope, runs_of, seen, source))
        lacking = len(dataset.pool(task).collections) - len(parts)
        if scope == COLLECTIONS and lacking:
            reasons.append(f"{label} has runs on {len(parts)} of {len(parts) + lacking} collections of {task}.")
    order = {name: at for at, name in enumerate(OFFLINE)}
    return sorted(found, key=lambda run: (order.get(run.model, len(order)), run.label)), reasons


def made_alike(runs: Iterable[StoredRun]) -> list[list[StoredRun]]:
    """The runs of each model and setting together, one a place: of two imports for one place the deeper counts."""
    together: dict[tuple, dict[str, StoredRun]] = defaultdict(dict)
    for run in sorted(runs, key=lambda run: (run.info.depth, run.info.run_id)):
        together[_made(run)][run.info.place] = run
    return [list(places.values()) for places in together.values()]


def _made(run: StoredRun) -> tuple:
    """What the runs of one model on several places share; an import's differ in their files, and so in their depth."""
    info = run.info
    who = (info.model, info.model_id, info.revision, info.index_kind, info.variant, info.overlay, info.split)
    if info.index_kind == "imported":
        return who
    return (*who, info.encoder_ids, info.fusion, info.weight, info.centring, info.depth, info.fold_plan)


def _newest(parts: list[StoredRun]) -> tuple:
    """Sorts last what counts: the revision of the table of models, the most places, the deepest."""
    info = parts[0].info
    return is_present(info), len(parts), max(part.info.depth for part in parts), info.revision, info.run_id


def is_present(info: RunInfo) -> bool:
    """Whether a run is of the revision in the table of models, a hybrid's of those of its parts; True for imports."""
    own = [specs.SPECS.get(part) for part in parts_of(info.model)]
    if info.index_kind == "imported" or None in own:
        return True
    same_model = len(own) > 1 or info.model_id == own[0].model_id
    return same_model and info.revision == "; ".join(spec.revision for spec in own)


def parts_of(model: str) -> list[str]:
    """The models that a name stands for: itself, or the parts of a hybrid."""
    return model.partition(":")[2].split("+") if ":" in model else [model]


def _seen(dataset: DataSet, workspace: Workspace, task: str, model: str) -> frozenset[Key]:
    """Queries of the task whose case or topic a model, or a part of a hybrid, was trained on."""
    cases: set[str] = set()
    for part in parts_of(model):
        if part in specs.SPECS and specs.SPECS[part].live:
            cases |= trained_cases(dataset, Pipeline(specs.load(part), workspace))
    if not cases:
        return frozenset()
    topics = {cluster_of(q) for c in dataset.collections.values() for q in c.all_queries() if case_of(q) in cases}
    queries = (query for collection in dataset.pool(task).collections for query in collection.all_queries())
    return frozenset((q.collection, q.id) for q in queries if case_of(q) in cases or cluster_of(q) in topics)
