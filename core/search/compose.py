"""The composition of a query: two centred unit vectors and a weight, so that each side's share is exact.

``score = w·⟨q̃_img, d̃⟩ + (1 − w)·⟨q̃_txt, d̃⟩``. The mixed query is not normalised again, so its two terms *are*
the picture share and the words share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.records import QueryError


@dataclass(frozen=True, slots=True)
class ComposedQuery:
    """``image`` and ``text``: q̃ of each side, float32 [d], or None where absent. ``weight``: of the picture, 0…1."""

    image: np.ndarray | None
    text: np.ndarray | None
    weight: float

    @property
    def sides(self) -> np.ndarray:
        """float32 [d, 2]: the weighted picture and words vectors, absent ones zero."""
        present = self.image if self.image is not None else self.text
        zero = np.zeros_like(present)
        image = zero if self.image is None else np.float32(self.weight) * self.image
        text = zero if self.text is None else np.float32(1 - self.weight) * self.text
        return np.stack([image, text], axis=1).astype(np.float32)

    @property
    def mixed(self) -> np.ndarray:
        """float32 [d]: the vector whose inner product with d̃ is the score."""
        return self.sides.sum(axis=1)


def compose(image: np.ndarray | None, text: np.ndarray | None, weight: float) -> ComposedQuery:
    """Join q̃ of the sides that are there; with one side absent the weight is 0 or 1, whatever was asked.

    Raises QueryError when both are absent or the weight is outside 0…1.
    """
    if image is None and text is None:
        raise QueryError("Give a picture, words, or both.")
    if not 0 <= weight <= 1:
        raise QueryError(f"The weight of the picture is {weight}; it must lie between 0 (words) and 1 (picture).")
    if image is None:
        weight = 0.0
    elif text is None:
        weight = 1.0
    return ComposedQuery(image, text, float(weight))
