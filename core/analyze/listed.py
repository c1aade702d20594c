"""The stored runs of a data set as records to compare: which there are, and which of them are listed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from core.analyze.scored import Key, Scored, family, from_stored
from core.data.dataset import DataSet
from core.data.topics import cluster_of
from core.embed.pipeline import Pipeline
from core.evaluate.make import judged_by
from core.evaluate.run import StoredRun, stored_runs
from core.models import specs
from core.retrievers.fair import trained_cases
from core.store.workspace import Workspace


def stored_scores(dataset: DataSet, workspace: Workspace, task: str, measure: str) -> tuple[list[Scored], list[str]]:
    """One record a model and setting with runs on every collection of the task, and why others were left out.

    Only full runs that are judged with the data set's own judgements, the file that it was opened with.
    A model that has no run on some collections is N/A there: its record lacks those queries.
    """
    runs, refused = stored_runs(workspace.roots, dataset.data_id)
    keys = {collection.key for collection in dataset.pool(task).collections}
    together: dict[tuple, list[StoredRun]] = defaultdict(list)
    for run in runs:
        info = run.info
        if info.place in keys and info.variant == "full" and info.overlay == judged_by(dataset):
            made = (info.model, info.revision, info.encoder_ids, info.fusion, info.weight, info.centring)
            setting = (info.index_kind, info.depth, info.fold_plan, info.split)
            together[made + setting].append(run)
    queries = {(q.collection, q.id): q for c in dataset.pool(task).collections for q in c.all_queries()}
    clusters = {key: cluster_of(query) for key, query in queries.items()}
    domains = {key: dataset.collections[key[0]].domain for key in queries}
    trained = _Trained(dataset, workspace)
    scored = []
    for parts in together.values():
        if any(measure not in part.measures for part in parts):
            refused.append(f"{parts[0].info.model} was stored without {measure}.")
            continue
        scored.append(_scored(parts, measure, clusters, domains, trained))
    return scored, refused


def listed(dataset: DataSet, workspace: Workspace, task: str, measure: str) -> tuple[list[Scored], list[str]]:
    """The family of runs that every comparison of this task and measure is made in; see `family`."""
    scored, refused = stored_scores(dataset, workspace, task, measure)
    return family(scored), refused


def _scored(
    parts: Sequence[StoredRun], measure: str, clusters: dict[Key, str], domains: dict[Key, str], trained: _Trained
) -> Scored:
    info = parts[0].info
    if info.index_kind == "imported":
        return from_stored(parts, measure, clusters, domains, {"imported": True, "cut_off": _cut(measure)})
    own = specs.SPECS.get(info.model)
    conditions: dict[str, Any] = {
        "cut_off": _cut(measure),
        "default_weighting": True,  # full runs are; those at other weights carry another variant
        "judged_by": info.overlay,
        "trained_on": any(trained.on(model) for model in specs.SPECS if model in _parts_of(info.model)),
        "revised": int(own.version) if own is not None else 0,
    }
    return from_stored(parts, measure, clusters, domains, conditions)


def _cut(measure: str) -> str:
    return measure.partition("@")[2] or "none"


def _parts_of(model: str) -> list[str]:
    """The models that a name stands for: itself, or the parts of a hybrid."""
    return model.partition(":")[2].split("+") if ":" in model else [model]


class _Trained:
    """Which models were trained on cases of the data set; each is looked up once."""

    def __init__(self, dataset: DataSet, workspace: Workspace) -> None:
        self._dataset, self._workspace, self._known = dataset, workspace, {}

    def on(self, model: str) -> bool:
        if model not in self._known:
            live = specs.get(model).live
            pipeline = Pipeline(specs.load(model), self._workspace) if live else None
            self._known[model] = pipeline is not None and bool(trained_cases(self._dataset, pipeline))
        return self._known[model]
