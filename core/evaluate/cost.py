"""What a model costs: time to encode, bytes of its index, its own size; measured here, and stored with how and where.

Times of one machine say nothing about those of another, so a file names machine, threads, load, libraries and date.
"""

from __future__ import annotations

import json
import math
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from core.data.dataset import DataSet, silent
from core.embed.pipeline import Progress
from core.evaluate.readers import Reader, reader_of
from core.models import specs
from core.records import Doc, Query
from core.retrievers.base import NO_TEXT
from core.retrievers.fused import hybrid_of
from core.store.atomic import write_bytes
from core.store.workspace import Workspace
from core.version import code_version

FORMAT = 1
"""Raise when files are written or measured differently: older ones are refused."""

SAMPLE, ROUNDS, SEED = 64, 3, 20261130
SAME = ("machine", "cores", "threads", "device")
"""What two measurements must share to be added."""

_NUMBERS = ("document_seconds", "query_seconds", "document_bytes", "model_bytes", "parameters")


class CostRefused(ValueError):
    """A stored file is damaged, or of another model than it says; the message names it and what to do."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One model on one task: the median of `ROUNDS` rounds over so many ``documents`` and ``queries``.

    Seconds are those of one document or query, in batches as the models use them; ``document_bytes`` are those of the
    index, ``model_bytes`` those of the files on disk. All are None where ``reason`` says why there is nothing to
    measure. ``conditions``: machine, cores, threads, device, load, libraries, code and date, in words.
    """

    model: str
    model_id: str
    revision: str
    data_id: str
    task: str
    documents: int = 0
    queries: int = 0
    document_seconds: float | None = None
    query_seconds: float | None = None
    document_bytes: float | None = None
    model_bytes: int | None = None
    parameters: int | None = None
    reason: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)


def measure(dataset: DataSet, workspace: Workspace, task: str, model: str, progress: Progress = silent) -> Cost:
    """Measure a model that is no hybrid on a seeded sample of distinct documents and queries of a task; nothing is
    stored, and no stored vector is used.

    A first round that does not count reads weights and warms up. KeyError for an unknown model, ModelUnavailable where
    it cannot run here, DataError for an unknown task.
    """
    spec = specs.get(model)
    reader = reader_of(model, dataset, workspace)
    about = {"model": model, "model_id": spec.model_id, "revision": spec.revision}
    about |= {"data_id": dataset.data_id, "task": task}
    docs, queries = sample(dataset, task, reader)
    if not docs or not queries:
        return Cost(**about, reason=NO_TEXT if not docs else "N/A: no query has anything that it reads")
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "not known"
    times: dict[str, list[float]] = {"documents": [], "queries": []}
    stored = 0
    for number in range(ROUNDS + 1):
        progress(f"Measuring {model} on {task}", number, ROUNDS + 1)
        spent, stored = _timed(lambda: reader.documents(docs))
        asked, _ = _timed(lambda: reader.queries(queries))
        if number:
            times["documents"].append(spent)
            times["queries"].append(asked)
    return Cost(
        **about,
        documents=len(docs),
        queries=len(queries),
        document_seconds=statistics.median(times["documents"]) / len(docs),
        query_seconds=statistics.median(times["queries"]) / len(queries),
        document_bytes=stored / len(docs),
        model_bytes=sum(path.stat().st_size for path in reader.files()),
        parameters=spec.parameters,
        conditions=conditions(reader, load),
    )


def _timed(work: Callable[[], int]) -> tuple[float, int]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def sample(dataset: DataSet, task: str, reader: Reader) -> tuple[list[Doc], list[Query]]:
    """At most `SAMPLE` documents and queries of a task that differ in what the model reads and have any of it, by
    collection and id."""
    collections = dataset.pool(task).collections
    docs = (doc for collection in collections for doc in collection.docs())
    queries = (query for collection in collections for query in collection.all_queries())
    return _drawn(docs, reader.reads), _drawn(queries, reader.reads)


def _drawn(items: Iterable[Any], reads: Callable[[Any], Hashable]) -> list[Any]:
    distinct: dict[Hashable, Any] = {}
    for item in sorted(items, key=_name):
        if reads(item):
            distinct.setdefault(reads(item), item)
    every = list(distinct.values())
    return sorted(random.Random(SEED).sample(every, min(SAMPLE, len(every))), key=_name)


def _name(item: Doc | Query) -> tuple[str, str]:
    return item.collection, item.id


def conditions(reader: Reader, load: str) -> dict[str, str]:
    """Where and when something is measured, in words."""
    return {
        "machine": _processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "threads": str(reader.threads()),
        "device": reader.device(),
        "load": load,
        "libraries": ", ".join(f"{name} {version(name)}" for name in reader.libraries),
        "python": platform.python_version(),
        "code": f"M3Retrieve Explorer {code_version()}",
        "rounds": f"median of {ROUNDS} after one to warm up, sample of seed {SEED}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def _processor() -> str:
    """The processor as the system calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), "") or platform.processor() or platform.machine() or "not known"


def _place(root: Path, data_id: str, task: str, model: str) -> Path:
    return root / "costs" / data_id / task / f"{model}.json"


def store(cost: Cost, workspace: Workspace) -> Path:
    """Write what was measured into the workspace; an older file of the same model and task is replaced."""
    path = _place(workspace.root, cost.data_id, cost.task, cost.model)
    body = {"format": FORMAT, "cost": asdict(cost)}
    write_bytes(path, json.dumps(body, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n")
    return path


def read(path: Path) -> Cost:
    """One stored file; `CostRefused` where it is damaged or not what its place says, FileNotFoundError without it."""
    again = f"delete {path} and measure again (python -m core cost)"
    try:
        body = json.loads(path.read_bytes())
        cost = Cost(**body["cost"])
        known = (body["format"], cost.data_id, cost.task, f"{cost.model}.json")
        numbers = [getattr(cost, name) for name in _NUMBERS]
        told = all(isinstance(k, str) and isinstance(v, str) for k, v in cost.conditions.items())
        sizes = (cost.documents, cost.queries)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CostRefused(f"{path} is not a measured cost ({error!r}); {again}.") from None
    if known != (FORMAT, *path.parts[-3:]):
        raise CostRefused(f"{path} is of another format, data set, task or model; {again}.")
    texts = all(isinstance(text, str) for text in (cost.model_id, cost.revision, cost.reason))
    sound = all(type(n) in (int, float) and math.isfinite(n) and n >= 0 for n in numbers)
    missing = all(n is None for n in numbers)
    if not (texts and told and all(type(n) is int for n in sizes) and (missing if cost.reason else sound)):
        raise CostRefused(f"{path} has a number that cannot be right; {again}.")
    return cost


def cost_of(dataset: DataSet, workspace: Workspace, task: str, model: str) -> Cost:
    """What is stored of a model, in the workspace or shipped; a hybrid is the sum of its parts. N/A with its reason
    for imports, and for what was not measured or of another revision. Never raises for what is on disk."""
    try:
        hybrid = hybrid_of(model)
    except KeyError:
        hybrid = None
    if hybrid is not None:
        return _sum(model, [cost_of(dataset, workspace, task, part) for part in hybrid[1]])
    if model not in specs.SPECS:
        return Cost(model, model, "", dataset.data_id, task, reason="N/A: imported, it does not run here")
    spec = specs.get(model)
    about = Cost(model, spec.model_id, spec.revision, dataset.data_id, task)
    for root in workspace.roots:
        try:
            found = read(_place(root, dataset.data_id, task, model))
        except FileNotFoundError:
            continue
        except CostRefused as error:
            return replace(about, reason=f"N/A: {error}")
        if (found.model_id, found.revision) == (spec.model_id, spec.revision):
            return found
    return replace(about, reason="N/A: not measured yet (python -m core cost DATA makes it)")


def _sum(name: str, parts: Sequence[Cost]) -> Cost:
    """Both parts are asked, one after the other; what both load is counted twice."""
    first, second = parts
    names = (f"{first.model_id} and {second.model_id}", f"{first.revision}; {second.revision}")
    total = Cost(name, *names, first.data_id, first.task)
    lacking = next((part for part in parts if part.reason), None)
    if lacking is not None:
        return replace(total, reason=f"N/A without {lacking.model}: {lacking.reason.removeprefix('N/A: ')}")
    # What uses no network states no threads or device of one.
    differ = [key for key in SAME if len({p.conditions.get(key) for p in parts} - {"none"}) > 1]
    if differ:
        return replace(total, reason=f"N/A: its parts were not measured alike ({', '.join(differ)} differ)")
    sums = {key: sum(getattr(part, key) for part in parts) for key in _NUMBERS}
    words = {}
    for key in {**first.conditions, **second.conditions}:
        words[key] = "; ".join(dict.fromkeys(part.conditions.get(key, "not stated") for part in parts))
    sizes = {key: min(getattr(part, key) for part in parts) for key in ("documents", "queries")}
    return replace(total, **sums, **sizes, conditions=words | {"sum of": f"{first.model} and {second.model}"})
