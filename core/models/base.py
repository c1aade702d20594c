"""What every encoder is: the protocol, the error for absent weights, and hashes of weight files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from core.store.manifest import sha256_file

if TYPE_CHECKING:
    from PIL import Image

    from core.models.specs import ModelSpec


class ModelUnavailable(Exception):
    """A model cannot run here; the message says what is missing or damaged and what to do."""


@runtime_checkable
class Encoder(Protocol):
    """An encoder of pictures, texts or both into one space. Absent weights are reported, never replaced.

    ``encoder_id`` is 16 hex digits over (model, revision, weights hashes, preprocessing, pooling, prompt, maximum
    length, precision). ``shipped_mean`` holds the mean document vector ``float32 [d]`` of each side, used to centre
    collections of fewer than 100 documents. ``card``: the folder of the model card whose ``training_cases.json`` names
    what the encoder was trained on; None where nothing of the kind is known.
    """

    name: str
    spec: ModelSpec
    dimension: int
    card: Path | None

    @property
    def encoder_id(self) -> str: ...

    @property
    def shipped_mean(self) -> Mapping[str, np.ndarray]: ...

    def capabilities(self) -> frozenset[str]:
        """The sides this encoder has: ``image``, ``text``."""
        ...

    def requires(self) -> list[str]:
        """Empty when everything is there, else plain sentences that say what to install or restore."""
        ...

    def default_weight(self, target: str) -> float:
        """The weight of the picture, 0…1, for documents with these sides: ``image``, ``text`` or ``both``."""
        ...

    def encode_images(self, images: Sequence[Image.Image]) -> dict[str, Any]:
        """``{"single": float32 [n, d]}`` unit vectors of RGB pictures."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> dict[str, Any]:
        """``{"single": float32 [n, d], "truncated": bool [n], "tokens": int [n]}``; tokens as before truncation."""
        ...


_hashes: dict[tuple[str, int, int], str] = {}


def file_hash(path: Path) -> str:
    """Hex sha256 of a file, computed once per (path, size, modification time). FileNotFoundError when absent."""
    state = path.stat()
    key = (str(path), state.st_size, state.st_mtime_ns)
    if key not in _hashes:
        _hashes[key] = sha256_file(path)
    return _hashes[key]
