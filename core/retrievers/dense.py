"""Two-sided encoders by the centred composition, each query answered by an encoder that was not trained on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from core.data.dataset import silent
from core.embed.centring import SAMPLE, SEED
from core.embed.pipeline import Progress
from core.index.exact import best
from core.index.nearest import nearest
from core.index.pool_index import LEFT_OUT
from core.records import Query
from core.retrievers.base import Ranked, Recipe
from core.retrievers.fair import Fair
from core.retrievers.order import Rankings, trec_order
from core.retrievers.place import Place
from core.search.compose import ComposedQuery
from core.search.searcher import Searcher

BLOCK_SCORES = 32_000_000
"""Scores held at once (128 MB): so many queries are ranked together."""

Ask = Callable[[Searcher, Sequence[Query]], Sequence[ComposedQuery | None]]
"""Composes queries for a searcher; None for a query that asks nothing."""


class Dense:
    """The encoder of ``fair``, or the heads that stand for it. ``index_kind``: exact, or hnsw on pools."""

    def __init__(self, fair: Fair, index_kind: str = "exact") -> None:
        self.fair, self.index_kind = fair, index_kind
        self.spec = fair.pipeline.encoder.spec
        self.stands_for = fair.pipeline.encoder.encoder_id
        self._searchers: dict[str, list[tuple[Searcher, tuple[Query, ...]]]] = {}

    def _answerers(self, task: str, progress: Progress = silent) -> list[tuple[Searcher, tuple[Query, ...]]]:
        if task not in self._searchers:
            found = self.fair.answerers(task, progress, with_graph=self.index_kind == "hnsw")
            self._searchers = {task: [(a.searcher, a.queries) for a in found]}  # one task at a time is held
        return self._searchers[task]

    def recipe(self, task: str) -> Recipe:
        """Weights are the encoders' defaults; None where the heads of a fold plan have different ones."""
        target = self.fair.dataset.pool(task).target
        encoders = [pipeline.encoder for pipeline in self.fair.pipelines]
        weights = {encoder.default_weight(target) for encoder in encoders}
        return Recipe(
            encoder_ids=tuple(encoder.encoder_id for encoder in encoders),
            fusion="centred",
            weight=weights.pop() if len(weights) == 1 else None,
            centring=f"sample {SAMPLE}, seed {SEED}",
            fold_plan=self.fair.fold_plan,
        )

    def cannot(self, place: Place) -> str:
        """An encoder of both sides can do every task."""
        return ""

    def rank(self, place: Place, depth: int, progress: Progress = silent) -> Ranked:
        """See `core.retrievers.base.Retriever.rank`."""

        def ask(searcher: Searcher, queries: Sequence[Query]) -> Sequence[ComposedQuery | None]:
            return searcher.stored_queries(queries, None, progress)

        return self.rank_asked(place, depth, ask, progress)

    def rank_asked(self, place: Place, depth: int, ask: Ask, progress: Progress = silent) -> Ranked:
        """`rank` with queries composed by ``ask``, which is called once an answerer, with the queries it answers."""
        rankings: Rankings = {}
        answerers = self._answerers(place.task, progress)
        wanted = {(q.collection, q.id): name for q, name in zip(place.queries, place.query_ids, strict=True)}
        for searcher, answered in answerers:
            queries = [q for q in answered if (q.collection, q.id) in wanted]
            names = [wanted[q.collection, q.id] for q in queries]
            asked = list(zip(queries, names, ask(searcher, queries), strict=True))
            rankings |= rank_composed(
                searcher, place.rows, place.ids, asked, place.own, depth, progress, self._graph(place)
            )
        facts = answerers[0][0].index.facts
        return Ranked(
            rankings,
            {
                "answered_by": self.fair.source,
                "weights": [searcher.default_weight for searcher, _ in answerers],
                "truncated_texts": facts["truncated"],
                "unreadable_pictures": len(facts["unreadable"]),
                "left_out_documents": facts["left_out"],
            },
        )

    def _graph(self, place: Place) -> bool:
        return self.index_kind == "hnsw" and place.is_pool


def rank_answers(
    searcher: Searcher,
    rows: np.ndarray,
    ids: Sequence[str],
    queries: Sequence[Query],
    names: Sequence[str],
    own: Callable[[Query], str | None],
    weight: float | None,
    depth: int,
    progress: Progress = silent,
) -> Rankings:
    """The ``depth`` best answers for each query, in trec_eval's order, from stored vectors.

    ``names`` are those of the queries; ``weight`` is that of the picture, None the encoder's default. A query of which
    neither side can be encoded has an empty ranking. The rest as in `rank_composed`.
    """
    asked = list(zip(queries, names, searcher.stored_queries(queries, weight, progress), strict=True))
    return rank_composed(searcher, rows, ids, asked, own, depth, progress)


def rank_composed(
    searcher: Searcher,
    rows: np.ndarray,
    ids: Sequence[str],
    asked: Sequence[tuple[Query, str, ComposedQuery | None]],
    own: Callable[[Query], str | None],
    depth: int,
    progress: Progress = silent,
    by_graph: bool = False,
) -> Rankings:
    """The ``depth`` best answers for each query of ``asked`` (with its name), in trec_eval's order.

    ``rows`` int [answers] are pool rows with the names ``ids``; each counts for itself, also where two have equal
    content. ``own`` gives the answer that is a query itself. A query that is composed of nothing has an empty ranking.
    With ``by_graph`` HNSW gives the candidates, where the pool has a graph.
    """
    rankings: Rankings = {name: [] for _, name, _ in asked}
    groups = searcher.index.group_of_row[rows]
    searchable = np.flatnonzero(groups != LEFT_OUT)
    if not len(searchable):
        return rankings
    # Equal contents are scored once, so that their scores tie to the last bit.
    vectors, vector_of_answer = np.unique(searcher.index.vector_of_group[groups[searchable]], return_inverse=True)
    composed = [one for one in asked if one[-1] is not None]
    matrix = np.asarray(searcher.index.exact.vectors)[vectors]
    at_once = max(1, min(64, BLOCK_SCORES // max(1, 2 * len(vectors))))
    for first in range(0, len(composed), at_once):
        progress(f"Ranking for {searcher.task}", first, len(composed))
        block = composed[first : first + at_once]
        shares = matrix @ np.concatenate([found.sides for *_, found in block], axis=1)
        for at, (query, name, found) in enumerate(block):
            scores = (shares[:, 2 * at] + shares[:, 2 * at + 1])[vector_of_answer]
            itself = own(query)
            extra = depth + (itself is not None)
            if by_graph and searcher.index.hnsw is not None:
                chosen, _ = nearest(searcher.index.exact, searcher.index.hnsw, found.sides, extra)
                inside = np.flatnonzero(np.isin(vectors[vector_of_answer], chosen))
                kept = inside[best(scores[inside], extra)]
            else:
                kept = best(scores, extra)
            pairs = ((ids[searchable[i]], float(scores[i])) for i in kept)
            rankings[name] = trec_order(pair for pair in pairs if pair[0] != itself)[:depth]
    return rankings
