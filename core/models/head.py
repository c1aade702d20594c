"""The linear head that brings picture features into the space of the text tower."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1 as float32; a row of zeros stays zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Head:
    """``weights [1280, 384]``, ``image_mean [1280]``, ``text_mean [384]``, all float32."""

    weights: np.ndarray
    image_mean: np.ndarray
    text_mean: np.ndarray

    def images(self, features: np.ndarray) -> np.ndarray:
        """Unit vectors ``[n, 384]`` of the image tower's features ``[n, 1280]``."""
        return normalise((features - self.image_mean) @ self.weights)

    def texts(self, vectors: np.ndarray) -> np.ndarray:
        """Unit vectors ``[n, 384]`` of the text tower's vectors ``[n, 384]``."""
        return normalise(vectors - self.text_mean)
