"""What two models solve together: shares, the best that choosing between them could reach, and what fusions reach."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.analyze.scored import Key, Scored
from core.data.dataset import DataSet, silent
from core.data.names import document
from core.embed.pipeline import Progress
from core.evaluate.make import DEPTH
from core.evaluate.measures import per_query, spelling
from core.evaluate.run import StoredRun
from core.evaluate.stats import Estimate, cluster_bootstrap, macro, mean_of
from core.retrievers.base import Ranked
from core.retrievers.order import Rankings
from core.retrievers.place import Place
from core.search.fuse import FUSIONS, RRF_K
from core.store.workspace import Workspace

SOLVED = "Success@10"
"""A query is solved where a relevant document stands in the first ten."""

Stored = Mapping[str, StoredRun | Ranked]
"""One model's rankings by collection, stored or held in memory."""


@dataclass(frozen=True)
class Complement:
    """Two models of one task on the ``n`` queries that both have, in ``clusters`` clusters.

    ``both`` … ``neither``: shares of these queries that are solved, with a cluster bootstrap. The others are macro
    means of ``measure`` over the domains of the task, with the interval of `core.evaluate.stats.macro`; they are N/A
    (NaN) where one of the two lacks a domain. ``best_of_two`` takes the better of the two for each query, which no
    system can know beforehand; ``rrf`` and ``zsum`` are the fusions of the two rankings, as deep as the deeper one;
    None where there is nothing to fuse.
    """

    a: str
    b: str
    measure: str
    n: int
    clusters: int
    both: Estimate
    only_a: Estimate
    only_b: Estimate
    neither: Estimate
    mean_a: Estimate
    mean_b: Estimate
    best_of_two: Estimate
    rrf: Estimate | None
    zsum: Estimate | None
    notes: tuple[str, ...]


def complement(
    dataset: DataSet,
    workspace: Workspace,
    a: Scored,
    b: Scored,
    rankings: Mapping[str, Stored],
    progress: Progress = silent,
) -> Complement:
    """What ``a`` and ``b`` solve, and what their rankings fused in each collection reach; nothing is stored.

    ``rankings`` has those of both by name. ValueError where the two are not of one task and measure.
    """
    if (a.task, a.measure) != (b.task, b.measure):
        raise ValueError(f"{a.name} is of {a.task}, {a.measure}, and {b.name} of {b.task}, {b.measure}")
    solved: tuple[dict[Key, float], dict[Key, float]] = ({}, {})
    fused: dict[str, dict[Key, float]] = {kind: {} for kind in FUSIONS}
    depth = max(int(run.conditions.get("depth", DEPTH)) for run in (a, b))
    collections = dataset.pool(a.task).collections
    for at, collection in enumerate(collections):
        progress(f"Fusing {a.name} and {b.name}", at, len(collections))
        sources = [rankings[run.name].get(collection.key) for run in (a, b)]
        asked = {q for c, q in a.values.keys() & b.values.keys() if c == collection.key}
        if None in sources or not asked:
            continue
        place = Place(dataset, a.task, workspace, collection.key)
        names = [name for name in place.query_ids if document(name, place.name)[1] in asked]
        both = Both([source for source in sources if source is not None])
        for side, values in enumerate(solved):
            values.update(_measured(place, {name: both.first(side, name, 10) for name in names}, SOLVED))
        for kind in FUSIONS:
            made = {name: both.fused(kind, name, min(depth, _enough(a.measure, depth))) for name in names}
            fused[kind].update(_measured(place, made, a.measure))
    keys = sorted(solved[0])
    clusters, domains = [a.clusters[key] for key in keys], [a.domains[key] for key in keys]
    every = sorted({c.domain for c in collections if any(grade > 0 for g in c.qrels.values() for grade in g.values())})

    def mean(values: Mapping[Key, float]) -> Estimate:
        return _macro(values, a, b, every)

    def share(flags: np.ndarray) -> Estimate:
        return cluster_bootstrap(mean_of(flags.astype(float)), clusters)

    by_a, by_b = (np.array([values[key] > 0 for key in keys], bool) for values in solved)
    best = {key: max(a.values[key], b.values[key]) for key in a.values.keys() & b.values.keys()}
    return Complement(
        *(a.name, b.name, a.measure, len(keys), len(set(clusters))),
        *(share(by_a & by_b), share(by_a & ~by_b), share(~by_a & by_b), share(~by_a & ~by_b)),
        *(mean(a.values), mean(b.values), mean(best)),
        *(mean(fused[kind]) if keys else None for kind in FUSIONS),
        _notes(a, b, set(domains), every),
    )


class Both:
    """The rankings of two models in one collection, as arrays over the documents that either of them has.

    Fuses as `core.search.fuse` does, to the last bit, and many times faster for deep rankings.
    """

    def __init__(self, sources: Sequence[StoredRun | Ranked]) -> None:
        columns = [_columns(source) for source in sources]
        self._floors = [source.facts.get("floor") for source in sources]
        self._docs = sorted({doc for _, docs, _, _ in columns for doc in docs})
        number = {doc: at for at, doc in enumerate(self._docs)}
        self._sides = []
        for bounds, docs, codes, scores in columns:
            at = np.array([number[doc] for doc in docs], np.intp)
            self._sides.append((bounds, at[codes] if len(codes) else np.zeros(0, np.intp), scores))

    def _of(self, side: int, query: str) -> tuple[np.ndarray, np.ndarray]:
        """The documents (numbers) and scores of one ranking, by rank."""
        bounds, docs, scores = self._sides[side]
        low, high = bounds.get(query, (0, 0))
        return docs[low:high], scores[low:high]

    def first(self, side: int, query: str, k: int) -> list[tuple[str, float]]:
        """The first ``k`` hits of one of the two."""
        docs, scores = self._of(side, query)
        return [(self._docs[doc], float(score)) for doc, score in zip(docs[:k], scores[:k], strict=True)]

    def fused(self, kind: str, query: str, k: int) -> list[tuple[str, float]]:
        """The first ``k`` of the fusion, in trec_eval's order with scores as 32-bit floats."""
        rankings = [self._of(side, query) for side in (0, 1)]
        docs = np.union1d(rankings[0][0], rankings[1][0])
        total = np.zeros(len(docs))
        for (found, scores), floor in zip(rankings, self._floors, strict=True):
            at = np.searchsorted(docs, found)
            if kind == "rrf":
                total[at] += 1 / (RRF_K + np.arange(1, len(found) + 1))
            elif len(found):
                values = np.full(len(docs), scores.min() if floor is None else floor, np.float64)
                values[at] = scores
                spread = values.std()
                if np.ptp(values) > 0 and spread > 0:
                    total += (values - values.mean()) / spread
        single = total.astype(np.float32)
        kept = np.arange(len(docs))
        if k < len(docs):
            kept = np.flatnonzero(single >= np.partition(single, len(docs) - k)[len(docs) - k])
        best = kept[np.lexsort((docs[kept], single[kept]))[::-1][:k]]
        return [(self._docs[docs[i]], float(single[i])) for i in best]


def _columns(source: StoredRun | Ranked) -> tuple[dict[str, tuple[int, int]], list[str], np.ndarray, np.ndarray]:
    """Where each query's hits begin and end, the documents, and by hit the number of its document and its score."""
    if isinstance(source, Ranked):
        hits = [(name, *hit) for name, ranking in source.rankings.items() for hit in ranking]
        queries, docs, scores = (list(column) for column in zip(*hits, strict=True)) if hits else ([], [], [])
        number = {doc: at for at, doc in enumerate(dict.fromkeys(docs))}
        codes, values = np.array([number[doc] for doc in docs], np.intp), np.array(scores, np.float64)
        return _bounds(queries), list(number), codes, values
    table = source.columns().combine_chunks()
    if not len(table):
        return {}, [], np.zeros(0, np.intp), np.zeros(0)
    queries, docs = (table.column(name).chunk(0) for name in ("query", "doc"))
    names, at = queries.dictionary.to_pylist(), queries.indices.to_numpy()
    starts = np.flatnonzero(np.diff(at, prepend=-1))
    ends = [*starts[1:].tolist(), len(at)]
    bounds = {names[at[low]]: (low, high) for low, high in zip(starts.tolist(), ends, strict=True)}
    return bounds, docs.dictionary.to_pylist(), docs.indices.to_numpy(), table.column("score").to_numpy().astype(float)


def _bounds(queries: Sequence[str]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for at, name in enumerate(queries):
        found[name] = (found.get(name, (at, at))[0], at + 1)
    return found


def _enough(measure: str, depth: int) -> int:
    """How many hits decide a measure."""
    form, cut = spelling(measure)
    return depth if cut is None or "judged_only" in form.library else cut


def _measured(place: Place, rankings: Rankings, measure: str) -> dict[Key, float]:
    """A measure of those of these queries that have a relevant document."""
    found = per_query(rankings, place.qrels, [measure], only=rankings)[measure]
    return {document(name, place.name): value for name, value in found.items()}


def _macro(values: Mapping[Key, float], a: Scored, b: Scored, every: Sequence[str]) -> Estimate:
    keys = sorted(values)
    clusters, domains = a.clusters | b.clusters, a.domains | b.domains
    names = [clusters[key] for key in keys]
    if not all(math.isfinite(values[key]) for key in keys):
        why = f"N/A: {a.measure} says nothing for some of these queries"
        return Estimate(math.nan, None, None, len(keys), len(set(names)), why)
    return macro([values[key] for key in keys], names, [domains[key] for key in keys], every)


def _notes(a: Scored, b: Scored, shared: set[str], every: Sequence[str]) -> tuple[str, ...]:
    notes = ["The better of the two for each query is a bound that no system can reach without knowing the answer."]
    lacking = [domain for domain in every if domain not in shared]
    if lacking:
        notes.append(
            f"{a.name} and {b.name} do not both have {', '.join(lacking)}: shares are over the other domains, and "
            "what needs both of them in every domain is N/A."
        )
    return tuple(notes)
