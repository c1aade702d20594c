"""Rank one collection for its queries: the benchmark's protocol, exact, from stored vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.data.collection import Collection
from core.data.dataset import silent
from core.embed.pipeline import Progress
from core.evaluate.measures import trec_order
from core.evaluate.run import Rankings, trec_name
from core.index.exact import best
from core.index.pool_index import LEFT_OUT
from core.records import Query
from core.search.searcher import Searcher

BLOCK_SCORES = 32_000_000
"""Scores held at once (128 MB): so many queries are ranked together."""


def qrels_of(collection: Collection, queries: Sequence[Query]) -> dict[str, dict[str, int]]:
    """The judgements of ``queries`` with TREC ids, as `rank_collection` spells them; {} for one without any."""
    qrels = collection.qrels
    return {trec_name(q.id): {trec_name(d): grade for d, grade in qrels.get(q.id, {}).items()} for q in queries}


def rank_collection(
    searcher: Searcher,
    collection: Collection,
    queries: Sequence[Query],
    weight: float | None,
    depth: int,
    progress: Progress = silent,
) -> Rankings:
    """The ``depth`` best documents of ``collection`` for each of its ``queries``, in trec_eval's order.

    Every document counts for itself, also where two have equal content; the query's own id is left out where the
    data set says so. ``weight`` is that of the picture, None the encoder's default. Vectors come from the store and
    are made where they are missing. A query of which neither side can be encoded has an empty ranking.
    """
    ids = collection.corpus.column("id").to_pylist()
    rankings: Rankings = {trec_name(q.id): [] for q in queries}
    if not ids:
        return rankings
    start = searcher.pool.row_of(collection.key, ids[0])
    groups = searcher.index.group_of_row[start : start + len(ids)]
    searchable = np.flatnonzero(groups != LEFT_OUT)
    # Equal contents are scored once, so that their scores tie to the last bit.
    rows, row_of_doc = np.unique(searcher.index.vector_of_group[groups[searchable]], return_inverse=True)
    composed = [
        (query, vectors)
        for query, vectors in zip(queries, searcher.stored_queries(queries, weight, progress), strict=True)
        if vectors is not None
    ]
    at_once = max(1, min(64, BLOCK_SCORES // max(1, 2 * len(rows))))
    for first in range(0, len(composed), at_once):
        progress(f"Ranking {collection.key}", first, len(composed))
        block = composed[first : first + at_once]
        sides = np.concatenate([vectors.sides for _, vectors in block], axis=1)
        shares = searcher.index.exact.scores(sides, rows)
        for at, (query, _) in enumerate(block):
            scores = (shares[:, 2 * at] + shares[:, 2 * at + 1])[row_of_doc]
            own = query.id if searcher.dataset.ignore_identical_ids else None
            found = best(scores, depth + (own is not None))
            pairs = ((ids[searchable[i]], float(scores[i])) for i in found)
            rankings[trec_name(query.id)] = trec_order((trec_name(d), s) for d, s in pairs if d != own)[:depth]
    return rankings
