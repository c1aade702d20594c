"""The best k of the permitted vectors: by HNSW with a beam as wide as needed, else by exact search."""

from __future__ import annotations

import numpy as np

from core.index import hnsw
from core.index.base import Index
from core.index.exact import ExactIndex, best


def nearest(
    exact: ExactIndex, graph: Index | None, sides: np.ndarray, k: int, permitted: np.ndarray | None = None
) -> tuple[np.ndarray, str]:
    """Rows that hold the ``k`` best permitted ones, and the kind of index that found them.

    ``sides`` float32 [d, s]: a score is the sum of the inner products with its columns. ``permitted`` bool [n], None
    for all. Fewer than k rows come back only when fewer are permitted. A filter is never asked of hnswlib itself
    (a callback in Python costs 244 ms where few pass): more is fetched than asked, what is not permitted is dropped,
    and when too little is left the beam is widened, as long as that is cheaper than scoring every permitted vector.
    """
    n = len(exact.vectors)
    rows = None if permitted is None or permitted.all() else np.flatnonzero(permitted)
    count = n if rows is None else len(rows)
    if graph is not None and count:
        # Beyond half the beam the last of the k best are found less surely.
        wide = int(np.ceil((k if 2 * k <= hnsw.EF else 2 * k) * n / count))
        # A step of the beam reads up to 2·M vectors.
        while (rows is None and wide <= hnsw.EF) or 2 * hnsw.M * max(wide, hnsw.EF) <= count:
            found = graph.candidates(sides.sum(axis=1), wide if rows is None else max(wide, hnsw.EF))
            if rows is not None:
                found = found[permitted[found]]
            if len(found) >= k:
                return found[best(_scores(exact, sides, found), k)], graph.kind
            wide = 4 * max(wide, hnsw.EF)
    found = best(_scores(exact, sides, rows), k)
    return (found if rows is None else rows[found]), exact.kind


def _scores(exact: ExactIndex, sides: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    # Summed as the shares of a hit are, so that ties here are ties there.
    return exact.scores(sides, rows).sum(axis=1)
