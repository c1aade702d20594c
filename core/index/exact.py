"""Exact search by blocked matrix products: the reference, and the source of benchmark figures."""

from __future__ import annotations

import numpy as np

_BLOCK = 65_536


class ExactIndex:
    """Scores every vector. ``vectors`` is float32 [n, d] and may be memory-mapped."""

    kind = "exact"

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = vectors

    def scores(self, queries: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """``vectors[rows] @ queries`` for queries float32 [d, q]: float32 [len(rows) or n, q]."""
        n = len(self.vectors) if rows is None else len(rows)
        result = np.empty((n, queries.shape[1]), np.float32)
        for start in range(0, n, _BLOCK):
            part = slice(start, min(start + _BLOCK, n))
            result[part] = self.vectors[part if rows is None else rows[part]] @ queries
        return result

    def candidates(self, query: np.ndarray, k: int) -> np.ndarray:
        return best(self.scores(query[:, None])[:, 0], k)


def best(scores: np.ndarray, k: int) -> np.ndarray:
    """Positions of the ``k`` best scores *and* of all that tie with the last of them, int64."""
    if k >= len(scores):
        return np.arange(len(scores))
    if k <= 0:
        return np.zeros(0, np.int64)
    threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= threshold)
