"""The diagnosis of a run: query by query how far the relevant documents were, and which kinds of failure hold.

What takes seconds (reading rankings, comparing pictures, counting tokens) is made once and stored in the workspace as
``diagnosis/<data_id>/<task and scope>/<id>/{queries.parquet, manifest.json}``; the page opens it in milliseconds.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.analyze.about import TaskFacts
from core.analyze.examine import examine, qrels_of
from core.analyze.failures import BY_NAME, FACETS, depth_evidence, depth_of
from core.analyze.task_runs import Key, TaskRun
from core.analyze.variants import stored_ablation
from core.data.dataset import DataSet
from core.data.names import document
from core.data.topics import cluster_of
from core.embed.pipeline import Progress
from core.evaluate.measures import per_query
from core.evaluate.run import StoredRun
from core.models.frozen import text_folder
from core.records import Query
from core.retrievers.place import Place
from core.store import manifest
from core.store.atomic import atomic_folder
from core.store.manifest import ManifestError, sha256_file, short_hash
from core.store.workspace import Workspace

if TYPE_CHECKING:
    from core.analyze.rejudge import Overlay

FORMAT = 1
"""Raise when a diagnosis is made or written differently: older ones are made again."""

FILE = "queries.parquet"
FULL, MEASURE = "full", "nDCG@10"


@dataclass(frozen=True)
class Diagnosis:
    """What went wrong under one run, query by query. Queries seen in training are not in it.

    ``queries`` are those with a relevant document, sorted by (collection, id); arrays and tuples go with them.
    ``first`` int32 [n]: rank of the first relevant document, 0 where none is within ``depth``. ``values``: each
    measure, float64 [n], NaN where it is N/A. ``found``: kinds with their evidence, depths left out (`kinds`).
    ``not_available``: why a kind cannot be told. ``ablation``: nDCG@10 [n] of the variants "full", "picture",
    "words", "swapped", NaN for queries of one side; {} where there are none. ``top``: the facets of the first hit.
    ``overlay`` is the hash of the re-judgements it was judged with, "" for the data set's own judgements.
    """

    dataset: DataSet
    run: TaskRun
    depth: int
    overlay: str
    run_ids: tuple[str, ...]
    queries: tuple[Query, ...]
    clusters: tuple[str, ...]
    first: np.ndarray
    values: Mapping[str, np.ndarray]
    found: tuple[Mapping[str, str], ...]
    not_available: Mapping[str, str]
    ablation: Mapping[str, np.ndarray]
    top: tuple[Mapping[str, str], ...]
    _table: pa.Table = field(repr=False)
    _rows: np.ndarray = field(repr=False)
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What is derived from this diagnosis and kept with it."""

    @property
    def label(self) -> str:
        """The run's label, and that it was judged anew."""
        return f"{self.run.label}, judged anew ({self.overlay})" if self.overlay else self.run.label

    @property
    def seen_excluded(self) -> int:
        """How many queries are left out because the model was trained on them."""
        return len(self.run.seen)

    @cached_property
    def _positions(self) -> dict[Key, int]:
        return {(query.collection, query.id): i for i, query in enumerate(self.queries)}

    def at(self, key: Key) -> int | None:
        """The position of a query; None where it is not in this diagnosis."""
        return self._positions.get(key)

    def measured(self, measure: str) -> np.ndarray:
        """float64 [n]: a measure by query, NaN where it is N/A or the run was stored without it."""
        return self.values.get(measure, np.full(len(self.queries), np.nan))

    def failed(self, k: int) -> np.ndarray:
        """bool [n]: no relevant document among the first k."""
        return (self.first == 0) | (self.first > k)

    def kinds(self, i: int, k: int) -> dict[str, str]:
        """All kinds that hold for query ``i`` with their evidence, in the order of tables; the depth where it fails."""
        depth = depth_of(int(self.first[i]), k)
        depths = {depth: depth_evidence(int(self.first[i]), self.depth)} if depth else {}
        held = depths | dict(self.found[i])
        return {name: held[name] for name in BY_NAME if name in held}

    def hits(self, i: int) -> list[tuple[Key, float, int]]:
        """The first hits of query ``i``, `SHOWN` at most, by rank: document, score, grade (`UNJUDGED`: none)."""
        row = self._row(i, ("rows", "scores", "grades"))
        pool = self.dataset.pool(self.run.task)
        return [(pool.key(r), s, g) for r, s, g in zip(row["rows"], row["scores"], row["grades"], strict=True)]

    def relevant(self, i: int) -> list[tuple[Key, int, int]]:
        """The relevant documents of query ``i``: document, grade, rank (0: not within the depth); best grade first,
        then by id."""
        row = self._row(i, ("relevant", "relevant_grades", "relevant_ranks"))
        pool = self.dataset.pool(self.run.task)
        found = [(pool.key(r), g, rank) for r, g, rank in zip(*row.values(), strict=True)]
        return sorted(found, key=lambda one: (-one[1], one[0]))

    def _row(self, i: int, names: Sequence[str]) -> dict[str, list]:
        at = int(self._rows[i])
        return {name: self._table.column(name)[at].as_py() for name in names}

    def domain(self, i: int) -> str:
        """The domain of query ``i``."""
        return self.dataset.collections[self.queries[i].collection].domain


def diagnose(
    dataset: DataSet,
    workspace: Workspace,
    run: TaskRun,
    facts: TaskFacts,
    overlay: Overlay | None = None,
    progress: Progress = lambda *_: None,
) -> Diagnosis:
    """The diagnosis of a run, opened where it is stored, else made; with an overlay it is made and not stored.

    ``facts`` are those of the run's task and scope. Raises ManifestError where a stored run is damaged.
    """
    ablation = _ablation(workspace, dataset.data_id, run)
    hash_ = overlay.hash if overlay is not None else ""
    request = _request(dataset, run, ablation)
    place = ("diagnosis", dataset.data_id, f"{run.task}-{run.scope}", short_hash(request))
    variants, reason = ({}, ablation.removeprefix("N/A: ")) if isinstance(ablation, str) else (ablation, "")
    values = _variants(dataset, run, variants, overlay)
    found = None if hash_ else _open(workspace, place, request)
    if found is None:
        found = examine(dataset, run, facts, values, reason, overlay, progress)
        if not hash_:
            # On a full disk it is made again next time, and shown all the same.
            with suppress(OSError), atomic_folder(workspace.path(*place)) as temporary:
                pq.write_table(found[0], temporary / FILE, compression="zstd")
                manifest.write(temporary, request, [FILE], found[1])
    anew = _anew(run, {place.name: place for place in facts.places}, overlay) if hash_ else {}
    return _joined(dataset, run, *found, values, anew, hash_)


def _ablation(workspace: Workspace, data_id: str, run: TaskRun) -> dict[str, list[StoredRun]] | str:
    """The variant runs of all places together, or why there are none."""
    joined: dict[str, list[StoredRun]] = {}
    for stored in run.runs:
        found = stored_ablation(workspace.roots, data_id, stored.info)
        if isinstance(found, str):
            return found
        for variant, runs in found.items():
            joined.setdefault(variant, []).extend(runs)
    return joined


def _request(dataset: DataSet, run: TaskRun, ablation: dict[str, list[StoredRun]] | str) -> dict:
    variants = {} if isinstance(ablation, str) else ablation
    return {
        "format": FORMAT,
        "data_id": dataset.data_id,
        "qrels": dataset.qrels_name,
        "runs": [[one.info.place, one.info.run_id] for one in run.runs],
        "model": run.model,
        "ablation": sorted(one.info.run_id for runs in variants.values() for one in runs) or str(ablation),
        "tokenizer": text_folder() is not None,  # what could not be counted is, once it is installed
    }


def _open(workspace: Workspace, place: tuple[str, ...], request: dict) -> tuple[pa.Table, dict[str, Any]] | None:
    for root in workspace.roots:
        folder = root.joinpath(*place)
        try:
            body = manifest.read(folder, request)
            data = (folder / FILE).read_bytes()
            if sha256_file(folder / FILE) == body["files"][FILE]["sha256"]:
                return pq.read_table(io.BytesIO(data)), body["facts"]
        except (ManifestError, OSError, KeyError, pa.ArrowException):
            continue  # absent or damaged: it is made again
    return None


def _variants(
    dataset: DataSet, run: TaskRun, ablation: Mapping[str, Sequence[StoredRun]], overlay: Overlay | None
) -> dict[str, dict[Key, float]]:
    """nDCG@10 of the full run and of each variant, the mean over the runs of one, by query that all of them asked.

    Left out are queries that a variant could not ask (a picture that cannot be read, nobody to swap with), and those
    that were judged anew: the variants' measures are of the data set's own judgements.
    """
    if not ablation:
        return {}
    anew = overlay.grades if overlay is not None else {}
    queries = (query for collection in dataset.pool(run.task).collections for query in collection.all_queries())
    two = {(q.collection, q.id) for q in queries if q.images and q.text.strip()} - set(anew)
    for stored in (one for runs in ablation.values() for one in runs):  # nothing of them could be left out or swapped
        two -= {document(name, stored.info.place) for name in stored.facts["without_hits"]}
    result = {FULL: {key: v for key, v in values_of(run, {}, (MEASURE,))[MEASURE].items() if key in two}}
    for variant, runs in ablation.items():
        values: dict[Key, list[float]] = {}
        for stored in runs:
            for name, value in stored.measures[MEASURE].items():
                values.setdefault(document(name, stored.info.place), []).append(value)
        result[variant] = {key: float(np.mean(found)) for key, found in values.items() if key in two}
    return result


def values_of(
    run: TaskRun, anew: Mapping[str, Mapping[Key, float]], names: Sequence[str] | None = None
) -> dict[str, dict[Key, float]]:
    """The stored measures of a run by query, those of ``anew`` on top; without the queries of a part that was stored
    without a measure."""
    result: dict[str, dict[Key, float]] = {}
    for name in names or dict.fromkeys(name for stored in run.runs for name in stored.measures):
        parts = [(stored.info.place, stored.measures.get(name, {})) for stored in run.runs]
        result[name] = {document(q, place): v for place, values in parts for q, v in values.items()}
        result[name] |= anew.get(name, {})
    return result


def _anew(run: TaskRun, places: Mapping[str, Place], overlay: Overlay) -> dict[str, dict[Key, float]]:
    """The measures of the re-judged queries, computed again."""
    result: dict[str, dict[Key, float]] = {}
    for stored in run.runs:
        place = places[stored.info.place]
        names = {
            name
            for query, name in zip(place.queries, place.query_ids, strict=True)
            if (query.collection, query.id) in overlay.grades
        }
        if not names:
            continue
        rankings = {name: stored.run.rankings.get(name, []) for name in names}
        for measure, values in per_query(rankings, qrels_of(place, overlay), list(stored.measures), only=names).items():
            found = result.setdefault(measure, {})
            found |= {document(name, place.name): value for name, value in values.items()}
    return result


def _joined(
    dataset: DataSet,
    run: TaskRun,
    table: pa.Table,
    about: Mapping[str, Any],
    variants: Mapping[str, Mapping[Key, float]],
    anew: Mapping[str, Mapping[Key, float]],
    overlay: str,
) -> Diagnosis:
    every = list(zip(table.column("collection").to_pylist(), table.column("id").to_pylist(), strict=True))
    kept = np.array([at for at, key in enumerate(every) if key not in run.seen], np.int64)
    queries = {(q.collection, q.id): q for c in dataset.pool(run.task).collections for q in c.all_queries()}
    keys = [every[at] for at in kept]

    def column(found: Mapping[Key, float]) -> np.ndarray:
        return np.array([found.get(key, np.nan) for key in keys], np.float64)

    tops = zip(*(table.column(f"top_{facet}").to_pylist() for facet in FACETS), strict=True)
    tops = [dict(zip(FACETS, top, strict=True)) for top in tops]
    kinds = table.column("kinds").to_pylist()
    return Diagnosis(
        dataset=dataset,
        run=run,
        depth=int(about["depth"]),
        overlay=overlay,
        run_ids=tuple(
            replace(one.info, overlay=f"{one.info.overlay} {overlay}".strip()).run_id if overlay else one.info.run_id
            for one in run.runs
        ),
        queries=tuple(queries[key] for key in keys),
        clusters=tuple(cluster_of(queries[key]) for key in keys),
        first=table.column("first").to_numpy()[kept].astype(np.int32),
        values={name: column(found) for name, found in values_of(run, anew).items()},
        found=tuple(json.loads(kinds[at]) for at in kept),
        not_available=dict(about["not_available"]),
        ablation={name: column(found) for name, found in variants.items()},
        top=tuple(tops[at] for at in kept),
        _table=table,
        _rows=kept,
    )
