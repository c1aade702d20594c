"""Success@10 among the contents of cases, the measure that training and its benchmark watch."""

from __future__ import annotations

import numpy as np

DEPTH = 10


def success(queries: np.ndarray, asked: np.ndarray, documents: np.ndarray, cases: np.ndarray) -> np.ndarray:
    """For each query [n, d] of case ``asked[i]``: is a document [m, d] of its case among the first ten? bool [n].

    Document j belongs to ``cases[j]``. Equal scores rank in row order.
    """
    return _found(queries @ documents.T, asked, cases)


def success_among(vectors: np.ndarray, cases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same where the documents ask for one another, each left out of its own ranking.

    Returns hits bool [k] and the rows int [k] that have another document of their case to find.
    """
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    _, code, count = np.unique(cases, return_inverse=True, return_counts=True)
    rows = np.flatnonzero(count[code] > 1)
    others = np.where(np.arange(len(cases)) == rows[:, None], -1, code)
    return _found(scores[rows], code[rows], others), rows


def _found(scores: np.ndarray, asked: np.ndarray, cases: np.ndarray) -> np.ndarray:
    """``cases`` int or str [m], or [n, m] where it differs by query."""
    top = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    of_top = cases[top] if cases.ndim == 1 else np.take_along_axis(cases, top, axis=1)
    return (of_top == asked[:, None]).any(axis=1)
