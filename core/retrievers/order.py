"""The order of a ranking: trec_eval's, which compares scores as 32-bit floats and breaks ties by id."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

Rankings = dict[str, list[tuple[str, float]]]
"""``{query: [(document, score)…]}``, TREC ids, each ranking in trec_eval's order."""


def trec_order(ranking: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """Pairs with scores as 32-bit floats, by score descending, then id descending.

    Raises ValueError for a document that stands twice and for a score that is no finite number.
    """
    pairs = [(doc, float(np.float32(score))) for doc, score in ranking]
    bad = next((doc for doc, score in pairs if not math.isfinite(score)), None)
    if bad is not None:
        raise ValueError(f"the score of document {bad!r} is not a finite 32-bit number")
    if len({doc for doc, _ in pairs}) != len(pairs):
        raise ValueError("a document stands twice in one ranking")
    return sorted(pairs, key=lambda pair: (pair[1], pair[0]), reverse=True)
