"""The evidence for match strength: the best hit of each judged query of a pool, and whether it is relevant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.data.dataset import silent
from core.data.names import trec_id
from core.data.topics import cluster_of
from core.embed.pipeline import Progress
from core.index.pool_index import LEFT_OUT
from core.records import Query
from core.search.compose import ComposedQuery
from core.search.searcher import Searcher
from core.search.strength import MODES, Calibration, Evidence, fit

_BLOCK_SCORES = 32_000_000


def judged_top_scores(
    searcher: Searcher, queries: Sequence[Query], mode: str, answered: bool = True, progress: Progress = silent
) -> list[Evidence]:
    """The best hit in the pool of each query that has the sides of ``mode`` and a relevant document, in order.

    Exact, from stored vectors; the query's own id is left out as in a search, and a best hit is relevant if any of
    its copies is. What is not judged counts as not relevant. With ``answered=False`` the relevant documents and
    their copies are taken out of the pool first: the best hit of a question that the pool cannot answer.
    """
    index, pool = searcher.index, searcher.pool
    if not len(index.exact.vectors):
        return []  # nothing in the pool could be encoded
    members = _Members(searcher)
    weight = {"picture": 1.0, "words": 0.0, "both": None}[mode]
    usable = []
    for query in queries:
        grades = pool.collection(query.collection).qrels.get(query.id, {})
        rows = {pool.row_of(query.collection, doc) for doc, grade in grades.items() if grade > 0}
        own = pool.row_of(query.collection, query.id) if searcher.dataset.ignore_identical_ids else None
        if rows - {None, own}:
            usable.append((query, rows - {None, own}, {own} - {None}))
    composed = searcher.stored_queries([query for query, _, _ in usable], weight, progress)
    asked = [(*use, c) for use, c in zip(usable, composed, strict=True) if c is not None and _has_sides(c, mode)]
    at_once = max(1, min(64, _BLOCK_SCORES // (2 * max(1, len(index.exact.vectors)))))
    result = []
    for first in range(0, len(asked), at_once):
        progress("Measuring match strength", first, len(asked))
        block = asked[first : first + at_once]
        shares = index.exact.scores(np.concatenate([c.sides for *_, c in block], axis=1))
        for at, (query, relevant, own, _) in enumerate(block):
            gone = own if answered else own | members.copies(relevant)
            scores = shares[:, 2 * at] + shares[:, 2 * at + 1]
            scores[members.vectors_without(gone)] = -np.inf
            if (top := scores.max()) > -np.inf:
                hit = members.first_hit(np.flatnonzero(scores == top), gone)
                result.append(Evidence(float(top), bool(hit & relevant), cluster_of(query)))
    return result


def _has_sides(query: ComposedQuery, mode: str) -> bool:
    return (mode == "words" or query.image is not None) and (mode == "picture" or query.text is not None)


class _Members:
    """Which rows share a vector and which a content, as a search groups its hits."""

    def __init__(self, searcher: Searcher) -> None:
        index = searcher.index
        self.pool, self.group = searcher.pool, index.group_of_row
        self.vector = np.full(len(self.group), LEFT_OUT)
        there = self.group != LEFT_OUT
        self.vector[there] = index.vector_of_group[self.group[there]]
        self.sizes = np.bincount(self.vector[self.vector != LEFT_OUT], minlength=len(index.exact.vectors))

    def copies(self, rows: set[int]) -> set[int]:
        """All searchable rows of the contents of ``rows``."""
        groups = [g for g in self.group[list(rows)] if g != LEFT_OUT]
        return set(np.flatnonzero(np.isin(self.group, groups)).tolist())

    def vectors_without(self, gone: set[int]) -> np.ndarray:
        """The vectors of which no row is left when ``gone`` are taken out."""
        vectors = self.vector[list(gone)] if gone else np.zeros(0, int)
        names, counts = np.unique(vectors[vectors != LEFT_OUT], return_counts=True)
        return names[counts == self.sizes[names]]

    def first_hit(self, vectors: np.ndarray, gone: set[int]) -> set[int]:
        """The rows of the content that a search shows first among equally scored ``vectors``."""
        groups: dict[int, list[int]] = {}
        for row in np.flatnonzero(np.isin(self.vector, vectors)).tolist():
            if row not in gone:
                groups.setdefault(int(self.group[row]), []).append(row)
        return set(max(groups.values(), key=lambda rows: self._name(rows[0])))

    def _name(self, row: int) -> str:
        doc = self.pool.doc(row)
        return trec_id(doc.collection, doc.id)


Part = tuple[Searcher, Sequence[Query]]
"""A searcher and the queries that it answers: those that its encoder was not trained on."""


def calibrate(searcher: Searcher, parts: Sequence[Part], source: str, progress: Progress = silent) -> Calibration:
    """The curves of ``searcher``'s pool from the best hits that ``parts`` find in it, each of its own queries.

    One part is the searcher itself where its encoder saw none of the queries; else there is one a fold head, and
    ``source`` names their plan. Of a query that may stand in several parts every one counts.
    """
    curves = {}
    for mode in MODES:
        answered, unanswered = [], []
        for at, (part, queries) in enumerate(parts):
            named = _named(progress, mode, at, len(parts))
            answered += judged_top_scores(part, queries, mode, progress=named)
            unanswered += judged_top_scores(part, queries, mode, answered=False, progress=named)
        curves[mode] = fit(answered, unanswered)
    return Calibration(curves, searcher.default_weight, source)


def _named(progress: Progress, mode: str, at: int, parts: int) -> Progress:
    part = f", part {at + 1} of {parts}" if parts > 1 else ""
    return lambda what, done, total: progress(f"{what} ({mode}{part})", done, total)
