"""Reading a run's rankings against the judgements: what a diagnosis is made of, one row a judged query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from core.analyze.about import About, TaskFacts, hubs_of
from core.analyze.failures import FACETS, KINDS, UNJUDGED, Ablation, Looked, find_kinds
from core.analyze.task_runs import Key, TaskRun
from core.analyze.tied import tied_ranges
from core.data.dataset import DataSet
from core.embed.pipeline import Progress
from core.evaluate.run import StoredRun
from core.retrievers.place import Place
from core.store.manifest import ManifestError

if TYPE_CHECKING:
    from core.analyze.rejudge import Overlay

SHOWN = 20
"""Hits that are kept of a query."""


@dataclass(frozen=True)
class _Ranking:
    """The run of one place as arrays: the hits of query ``name`` are ``spans[name]`` of answers and scores."""

    place: Place
    qrels: Mapping[str, Mapping[str, int]]
    answers: np.ndarray
    scores: np.ndarray
    spans: Mapping[str, tuple[int, int]]

    def of(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Answers (numbers in ``place.ids``) and scores of a query, by rank."""
        start, stop = self.spans.get(name, (0, 0))
        return self.answers[start:stop], self.scores[start:stop]


def _ranking(stored: StoredRun, place: Place, qrels: Mapping[str, Mapping[str, int]]) -> _Ranking:
    table = stored.columns().combine_chunks()
    number = place.number
    if not len(table):
        return _Ranking(place, qrels, np.zeros(0, np.int32), np.zeros(0, np.float32), {})
    docs, queries = table.column("doc").chunk(0), table.column("query").chunk(0)
    names = docs.dictionary.to_pylist()
    unknown = next((name for name in names if name not in number), None)
    if unknown is not None:  # a copy stood first when the run was made, and no longer does
        raise ManifestError(
            f"{stored.path} ranks {unknown!r}, no document of {place.name}; delete it and evaluate again."
        )
    known = np.array([number[name] for name in names], np.int32)
    answers = known[docs.indices.to_numpy()]
    scores = table.column("score").to_numpy()
    codes = queries.indices.to_numpy()
    cuts = np.flatnonzero(np.diff(codes)) + 1
    starts, stops = [0, *cuts.tolist()], [*cuts.tolist(), len(codes)]
    names = queries.dictionary.to_pylist()
    spans = {names[codes[start]]: (start, stop) for start, stop in zip(starts, stops, strict=True)}
    return _Ranking(place, qrels, answers, scores, spans)


def examine(
    dataset: DataSet,
    run: TaskRun,
    facts: TaskFacts,
    variants: Mapping[str, Mapping[Key, float]],
    no_ablation: str,
    overlay: Overlay | None,
    progress: Progress,
) -> tuple[pa.Table, dict[str, Any]]:
    """A row a query with a relevant document, by (collection, id), and the facts of the whole.

    ``variants``: nDCG@10 of the ablation by variant and query, the full run among them; {} where ``no_ablation`` says
    why. ``overlay``: re-judgements that replace the data set's.
    """
    places = {place.name: place for place in facts.places}
    progress(f"Reading the rankings of {run.label}", 0, 0)
    rankings = [
        _ranking(stored, places[stored.info.place], qrels_of(places[stored.info.place], overlay)) for stored in run.runs
    ]
    hubs = {}
    for ranking in rankings:
        rows = ranking.place.rows
        tens = [rows[ranking.answers[start : min(stop, start + 10)]] for start, stop in ranking.spans.values()]
        hubs |= hubs_of(tens, len(rows))
    about = About(facts, run.model, hubs)
    lacking = {kind.name: why for kind in KINDS if (why := about.lacks(kind.needs, no_ablation))}
    found = list(_looked(dataset, rankings, variants))
    columns: dict[str, list] = {name: [] for name in _SCHEMA}
    for at, (row, looked) in enumerate(found):
        if at % 20 == 0:
            progress(f"Looking for kinds of failure of {run.label}", at, len(found))
        row["kinds"] = json.dumps(find_kinds(looked, about, lacking), ensure_ascii=False)
        for facet in FACETS:
            row[f"top_{facet}"] = _top(looked, facet, facts)
        for name, value in row.items():
            columns[name].append(value)
    table = pa.table({name: pa.array(columns[name], type_) for name, type_ in _SCHEMA.items()})
    return table, {"not_available": lacking, "depth": max(one.info.depth for one in run.runs)}


def _top(looked: Looked, facet: str, facts: TaskFacts) -> str:
    """The value of a facet of the first hit; of several copies the one that was asked for, where it is among them."""
    values = facts.facets_of(facet, looked.hits[0][0]) if looked.hits else frozenset()
    own = looked.domain if facet == "domain" else str(looked.query.meta.get(facet) or "")
    return own if own in values else min(values, default="")


_SCHEMA = {
    "collection": pa.string(),
    "id": pa.string(),
    "first": pa.int32(),
    "rows": pa.list_(pa.int32()),
    "scores": pa.list_(pa.float32()),
    "grades": pa.list_(pa.int8()),
    "relevant": pa.list_(pa.int32()),
    "relevant_grades": pa.list_(pa.int8()),
    "relevant_ranks": pa.list_(pa.int32()),
    "kinds": pa.string(),
    **{f"top_{facet}": pa.string() for facet in FACETS},
}


def _looked(
    dataset: DataSet, rankings: Sequence[_Ranking], variants: Mapping[str, Mapping[Key, float]]
) -> Iterator[tuple[dict[str, Any], Looked]]:
    """Each judged query by (collection, id): its row of the table, and how kinds look at it."""
    judged = [
        (query.collection, query.id, query, name, ranking)
        for ranking in rankings
        for query, name in zip(ranking.place.queries, ranking.place.query_ids, strict=True)
        if any(grade > 0 for grade in ranking.qrels[name].values())
    ]
    tied = {}
    for number, ranking in enumerate(rankings):
        whole = ((name, *ranking.of(name)) for name in ranking.place.query_ids)
        tied |= {(number, name): r for name, r in tied_ranges(whole, ranking.place.ids, ranking.qrels).items()}
    order = {id(ranking): number for number, ranking in enumerate(rankings)}
    for collection, identity, query, name, ranking in sorted(judged, key=lambda one: one[:2]):
        place, grades = ranking.place, ranking.qrels[name]
        answers, scores = ranking.of(name)
        number = {answer: at for at, answer in enumerate(answers.tolist(), 1)}
        ids = {place.number[doc]: grade for doc, grade in grades.items()}
        good = sorted(answer for answer, grade in ids.items() if grade > 0)
        ranks = [number.get(answer, 0) for answer in good]
        top = answers[:SHOWN].tolist()
        row = {
            "collection": collection,
            "id": identity,
            "first": min((rank for rank in ranks if rank), default=0),
            "rows": [int(place.rows[answer]) for answer in top],
            "scores": scores[:SHOWN].tolist(),
            "grades": [ids.get(answer, UNJUDGED) for answer in top],
            "relevant": [int(place.rows[answer]) for answer in good],
            "relevant_grades": [ids[answer] for answer in good],
            "relevant_ranks": ranks,
        }
        key = collection, identity
        values = {name: found[key] for name, found in variants.items() if key in found}
        looked = Looked(
            query,
            dataset.collections[collection].domain,
            tuple(zip(row["rows"], row["grades"], strict=True)),
            tuple(row["relevant"]),
            Ablation(**values) if len(values) == len(fields(Ablation)) else None,
            tied.get((order[id(ranking)], name)),
        )
        yield row, looked


def qrels_of(place: Place, overlay: Overlay | None) -> Mapping[str, Mapping[str, int]]:
    """The judgements of a place in TREC ids, with the re-judgements on top."""
    if overlay is None or not overlay.hash:
        return place.qrels
    changed = dict(place.qrels)
    for query, name in zip(place.queries, place.query_ids, strict=True):
        anew = overlay.grades.get((query.collection, query.id))
        if anew:
            changed[name] = place.judged(query, anew)
    return changed
