"""Fusion of rankings of one question by different retrievers: by rank (rrf) or by score (zsum)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Ranking = Sequence[tuple[str, float]]

RRF_K = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""


def rrf(rankings: Sequence[Ranking]) -> dict[str, float]:
    """Reciprocal rank fusion: Σ 1/(60 + rank) over the rankings a document is in."""
    fused: dict[str, float] = {}
    for ranking in rankings:
        for rank, (doc, _) in enumerate(ranking, 1):
            fused[doc] = fused.get(doc, 0.0) + 1 / (RRF_K + rank)
    return fused


def zsum(rankings: Sequence[Ranking], floors: Sequence[float | None]) -> dict[str, float]:
    """The sum of each retriever's scores, standardised over all documents that any of them has.

    A document that a retriever does not have gets its floor: the score it would have had at most, or None for the
    lowest one it gave. A retriever whose scores are all equal, or that has nothing, adds nothing.
    """
    docs = sorted({doc for ranking in rankings for doc, _ in ranking})
    total = np.zeros(len(docs))
    for ranking, floor in zip(rankings, floors, strict=True):
        scores: Mapping[str, float] = dict(ranking)
        if not scores:
            continue
        lowest = min(scores.values()) if floor is None else floor
        values = np.array([scores.get(doc, lowest) for doc in docs])
        spread = values.std()
        if np.ptp(values) > 0 and spread > 0:  # equal scores can have a mean that is not quite any of them
            total += (values - values.mean()) / spread
    return dict(zip(docs, total.tolist(), strict=True))


FUSIONS = ("rrf", "zsum")
