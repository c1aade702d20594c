"""The trained head of ``medlite``: what turns the frozen towers' features into vectors of one space.

A vector has three blocks, each of unit length before it is weighed: [frozen picture | frozen words | shared head].
A picture is [√α·frozen, 0, √(1−α)·head], a text [0, √β·frozen, √(1−β)·head], so both have length 1, pictures compare
with pictures by both blocks, and pictures with texts by the head alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1 as float32; a row of zeros stays zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)


def gelu(x: np.ndarray) -> np.ndarray:
    """The tanh form of GELU, as `torch.nn.functional.gelu(approximate="tanh")`."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@dataclass(frozen=True, slots=True)
class Side:
    """One side's way into the shared space: ``z·linear + gelu(z·hidden + hidden_bias)·out`` with z = features − mean.

    ``mean [p]``, ``linear [p, h]``, ``hidden [p, m]``, ``hidden_bias [m]``, ``out [m, h]``, all float32.
    """

    mean: np.ndarray
    linear: np.ndarray
    hidden: np.ndarray
    hidden_bias: np.ndarray
    out: np.ndarray

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Unit vectors ``[n, h]`` of features ``[n, p]``."""
        z = features - self.mean
        return normalise(z @ self.linear + gelu(z @ self.hidden + self.hidden_bias) @ self.out)


@dataclass(frozen=True, slots=True)
class Head:
    """Both sides, the projection ``components [p, k]`` of the frozen picture block, and the blocks' shares α and β."""

    image: Side
    text: Side
    components: np.ndarray
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def dimension(self) -> int:
        """Length of a whole vector: k + text features + h."""
        return self.components.shape[1] + len(self.text.mean) + self.image.linear.shape[1]

    def frozen_images(self, features: np.ndarray) -> np.ndarray:
        """Unit vectors ``[n, k]``: the centred features on evened-out principal axes; no words took part."""
        return normalise((features - self.image.mean) @ self.components)

    def images(self, features: np.ndarray) -> np.ndarray:
        """Unit vectors ``[n, dimension]`` of the image tower's features ``[n, p]``."""
        words = np.zeros((len(features), len(self.text.mean)), np.float32)
        parts = [self.frozen_images(features), words, self.image(features)]
        return np.concatenate(self._weighed(parts, self.alpha, 0), axis=1)

    def texts(self, features: np.ndarray) -> np.ndarray:
        """Unit vectors ``[n, dimension]`` of the text tower's unit vectors ``[n, q]``."""
        picture = np.zeros((len(features), self.components.shape[1]), np.float32)
        parts = [picture, normalise(features), self.text(features)]
        return np.concatenate(self._weighed(parts, self.beta, 1), axis=1)

    @staticmethod
    def _weighed(parts: list[np.ndarray], share: float, own: int) -> list[np.ndarray]:
        parts[own] = np.float32(np.sqrt(share)) * parts[own]
        parts[2] = np.float32(np.sqrt(1 - share)) * parts[2]
        return parts


_PARTS = ("mean", "linear", "hidden", "hidden_bias", "out")
_EXACT = ("mean", "hidden_bias")
"""Kept in 32 bits: few numbers, and rounding them would shift every vector the same way."""


def write_head(path: Path, head: Head, means: dict[str, np.ndarray]) -> None:
    """Write the tensors of ``head`` (matrices as bfloat16) and the mean document vector of each side.

    The shares α and β are no tensors; they stand in ``config.json``.
    """
    import torch
    from safetensors.torch import save_file

    tensors = _tensors(head)
    for side in ("image", "text"):
        tensors[f"shipped_mean.{side}"] = torch.from_numpy(np.array(means[side], np.float32))
    save_file(tensors, path)


def as_stored(head: Head) -> Head:
    """The head as `read_head` gives it back: its matrices rounded to bfloat16."""
    return _head({name: tensor.float().numpy() for name, tensor in _tensors(head).items()}, head.alpha, head.beta)


def read_head(path: Path, alpha: float, beta: float) -> tuple[Head, dict[str, np.ndarray]]:
    """The head that `write_head` wrote, in 32-bit floats, and its mean document vectors by side."""
    from safetensors import deserialize

    tensors = {name: _floats(tensor) for name, tensor in deserialize(path.read_bytes())}
    means = {side: tensors[f"shipped_mean.{side}"] for side in ("image", "text")}
    return _head(tensors, alpha, beta), means


def _floats(tensor: dict[str, Any]) -> np.ndarray:
    """A tensor as 32-bit floats. A bfloat16 is the upper half of one; so torch need not be loaded to read a head."""
    if tensor["dtype"] == "F32":
        return np.frombuffer(tensor["data"], "<f4").reshape(tensor["shape"]).copy()
    if tensor["dtype"] != "BF16":
        raise ValueError(f"a head holds {tensor['dtype']}; it must hold BF16 or F32")
    upper = np.frombuffer(tensor["data"], "<u2").astype(np.uint32)
    return (upper << np.uint32(16)).view(np.float32).reshape(tensor["shape"])


def _tensors(head: Head) -> dict[str, Tensor]:
    import torch

    tensors = {"components": torch.from_numpy(head.components).to(torch.bfloat16)}
    for side in ("image", "text"):
        for name in _PARTS:
            tensor = torch.from_numpy(np.ascontiguousarray(getattr(getattr(head, side), name), np.float32))
            tensors[f"{side}.{name}"] = tensor if name in _EXACT else tensor.to(torch.bfloat16)
    return tensors


def _head(arrays: dict[str, np.ndarray], alpha: float, beta: float) -> Head:
    image, text = (Side(*(arrays[f"{side}.{name}"] for name in _PARTS)) for side in ("image", "text"))
    return Head(image, text, arrays["components"], alpha, beta)
