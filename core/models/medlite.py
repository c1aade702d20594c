"""``medlite``: EfficientNet-Lite0 and all-MiniLM-L6-v2, both frozen, joined by a small trained head.

The model card is ``assets/models/medlite/README.md``; ``python -m core adapt`` makes heads, this one or your own.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.models.base import ModelUnavailable
from core.models.frozen import FrozenImages, FrozenTexts, check, damage, shown, weights_hash
from core.models.head import Head, read_head
from core.models.specs import get
from core.settings import MODELS
from core.store.manifest import short_hash

if TYPE_CHECKING:
    from PIL import Image

FOLDER = MODELS / "medlite"
HEAD, CONFIG = "head.safetensors", "config.json"
LIBRARIES = ("torch", "timm", "transformers", "safetensors")


class MedliteEncoder:
    """The `core.models.base.Encoder` of ``medlite``, with the shipped head or another one.

    ``head_folder`` holds ``head.safetensors`` and ``config.json``, ``tower_folder`` the image tower, ``texts_from``
    the text tower (by default that of the installed package). Safe to use from several threads.
    """

    name = "medlite"

    def __init__(
        self,
        device: str | None = None,
        head_folder: Path = FOLDER,
        tower_folder: Path = FOLDER,
        texts_from: Path | None = None,
    ) -> None:
        self.spec = get(self.name)
        self.folder, self._tower_folder, self._texts_from = head_folder, tower_folder, texts_from
        self._device = device
        self._lock = threading.RLock()

    def capabilities(self) -> frozenset[str]:
        """Pictures and texts."""
        return frozenset(self.spec.sides)

    def requires(self) -> list[str]:
        """Sentences that say what is missing or damaged; empty when the model can run."""
        missing = [library for library in LIBRARIES if importlib.util.find_spec(library) is None]
        wants = [f"Install {', '.join(missing)} (requirements.txt names the versions)."] if missing else []
        try:
            towers, hashes = self.towers, self.config["files"]
        except ModelUnavailable as error:
            return [*wants, str(error)]
        wants += towers["image"].requires()
        wants += damage(self.folder / HEAD, hashes[HEAD], "restore it, or train it again")
        return wants + towers["text"].requires()

    @property
    def card(self) -> Path:
        """The folder with the head, its card and the cases it was trained on."""
        return self.folder

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.config["dimension"]

    @property
    def encoder_id(self) -> str:
        """16 hex digits that name these vectors; reads files, loads no library. ModelUnavailable without the assets."""
        towers = self.towers
        return short_hash(
            {
                "model": self.name,
                "revision": self.spec.revision,
                "towers": {side: tower.encoder_id for side, tower in towers.items()},
                "head": weights_hash(self.folder / HEAD),
                "blocks": self.config["blocks"],
            }
        )

    @property
    def shipped_mean(self) -> dict[str, np.ndarray]:
        """Mean vector ``float32 [dimension]`` of the training documents of each side."""
        return self._loaded[1]

    @property
    def head(self) -> Head:
        """What turns the towers' features into vectors."""
        return self._loaded[0]

    def default_weight(self, target: str) -> float:
        """The weight of the picture for documents that have these sides: ``image``, ``text`` or ``both``."""
        weights = self.config["default_weight"]
        if target not in weights:
            raise ValueError(f"Unknown kind of target {target!r}; one of {', '.join(sorted(weights))}.")
        return weights[target]

    def encode_images(self, images: Sequence[Image.Image]) -> dict[str, Any]:
        """``{"single": float32 [n, d]}``, unit vectors of RGB pictures; ValueError names one of another mode."""
        return {"single": self.project("image", self._encode("image", images)["single"])}

    def encode_texts(self, texts: Sequence[str]) -> dict[str, Any]:
        """Unit vectors ``single`` float32 [n, d], ``tokens`` int [n] before truncation, ``truncated`` bool [n].

        ValueError names the first blank text: what has no words has no place in the space.
        """
        out = self._encode("text", texts)
        return out | {"single": self.project("text", out["single"])}

    def project(self, side: str, features: np.ndarray) -> np.ndarray:
        """Vectors ``float32 [n, d]`` of what the tower of this side (``image``, ``text``) gave, stored or fresh."""
        return self.head.images(features) if side == "image" else self.head.texts(features)

    @cached_property
    def towers(self) -> dict[str, FrozenImages | FrozenTexts]:
        """The frozen tower of each side, an encoder of its own."""
        return {
            "image": FrozenImages(self._tower_folder, self.config, self._device),
            "text": FrozenTexts(self.config, self._texts_from, self._device),
        }

    @cached_property
    def config(self) -> dict[str, Any]:
        """What ``config.json`` says. ModelUnavailable when it cannot be read."""
        path = self.folder / CONFIG
        try:
            return json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ModelUnavailable(f"{shown(path)} cannot be read ({why}); restore it from the repository.") from None

    @cached_property
    def _loaded(self) -> tuple[Head, dict[str, np.ndarray]]:
        # The head alone: stored vectors are searched and shown where the towers are missing.
        check(damage(self.folder / HEAD, self.config["files"][HEAD], "restore it, or train it again"))
        return read_head(self.folder / HEAD, **self.config["blocks"])

    def _encode(self, side: str, items: Sequence[Any]) -> dict[str, Any]:
        check(self.requires())
        tower = self.towers[side]
        with self._lock:  # one thread loads, the others wait
            _ = self._loaded, tower.tower()
        return tower.encode_images(items) if side == "image" else tower.encode_texts(items)


def load(device: str | None = None) -> MedliteEncoder:
    """The shipped ``medlite``; weights are read at its first use."""
    return MedliteEncoder(device)
