"""Rank one collection for its queries: the benchmark's protocol, exact, from stored vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.data.collection import Collection
from core.data.dataset import silent
from core.data.names import trec_name
from core.embed.pipeline import Progress
from core.records import Query
from core.retrievers.dense import rank_answers
from core.retrievers.order import Rankings
from core.search.searcher import Searcher


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
    """`rank_answers` for the documents and some queries of one collection; a query's own id is no answer where the
    data set says so."""
    ids = collection.corpus.column("id").to_pylist()
    start = searcher.pool.start_of(collection.key)
    present = set(ids) if searcher.dataset.ignore_identical_ids else set()
    return rank_answers(
        searcher,
        np.arange(start, start + len(ids)),
        [trec_name(i) for i in ids],
        queries,
        [trec_name(q.id) for q in queries],
        lambda query: trec_name(query.id) if query.id in present else None,
        weight,
        depth,
        progress,
    )
