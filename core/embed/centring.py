"""Centring: vectors minus the mean of their side, so that scores compare content and not what all share.

Centring each side of a mixed image and text space before scores are added is the first step of BASIC, a
training-free method of composed image retrieval.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.data.dataset import DataSet
from core.embed.pipeline import Pipeline, Progress, text_key
from core.store import manifest
from core.store.atomic import atomic_folder, remove_leftovers
from core.store.lock import lock

SAMPLE, ENOUGH, SEED = 500, 100, 20261130
"""Documents in the sample, the fewest that make a mean of their own, and the seed that picks them."""


@dataclass(frozen=True, slots=True)
class Centre:
    """The mean vector of one side, float32 [d], and where it comes from: ``sample`` (with its n) or ``model``."""

    mean: np.ndarray
    source: str
    n: int


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1 in 32-bit floats; a zero row stays zero."""
    vectors = np.asarray(vectors, np.float32)
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)


def centred(vectors: np.ndarray, centre: Centre) -> np.ndarray:
    """``normalise(vectors − mean)``, row by row."""
    return normalise(np.asarray(vectors, np.float32) - centre.mean)


def centre_of(dataset: DataSet, side: str, pipeline: Pipeline, progress: Progress) -> Centre:
    """μ of a side ("image", "text"): over a seeded sample of 500 distinct documents of the whole data set.

    With fewer than 100 documents of that side the model's own shipped mean is used. Stored in the workspace.
    """
    encoder = pipeline.encoder
    folder = pipeline.workspace.path("index", dataset.data_id, "centre", encoder.encoder_id, side)
    request = {"data_id": dataset.data_id, "encoder_id": encoder.encoder_id, "side": side, "seed": SEED, "n": SAMPLE}
    stored = _stored(folder, request)
    if stored is not None:
        return stored
    held = pipeline.workspace.path("locks", f"centre-{dataset.data_id}-{encoder.encoder_id}")
    with lock(held, f"centring {side}s", say=lambda text: progress(text, 0, 0)):
        remove_leftovers(folder.parent)
        stored = _stored(folder, request)  # another process may have made it while we waited
        return _make(dataset, side, pipeline, progress, folder, request) if stored is None else stored


def _stored(folder: Path, request: dict[str, Any]) -> Centre | None:
    try:
        facts = manifest.read(folder, request, hashes=True)["facts"]
    except manifest.ManifestError:
        return None  # missing or damaged: made again from the same sample
    return Centre(np.load(folder / "mean.npy", allow_pickle=False), facts["source"], facts["n"])


def _make(
    dataset: DataSet, side: str, pipeline: Pipeline, progress: Progress, folder: Path, request: dict[str, Any]
) -> Centre:
    keys = _sample(dataset, side, pipeline, progress)
    if len(keys) >= ENOUGH:
        mean = pipeline.stores[side].get(keys).astype(np.float64).mean(axis=0).astype(np.float32)
        centre = Centre(mean, "sample", len(keys))
    else:
        centre = Centre(np.asarray(pipeline.encoder.shipped_mean[side], np.float32), "model", 0)
    with atomic_folder(folder) as temporary:
        np.save(temporary / "mean.npy", centre.mean)
        facts = {"source": centre.source, "n": centre.n, "keys": keys if centre.source == "sample" else []}
        manifest.write(temporary, request, ["mean.npy"], facts)
    return centre


def _sample(dataset: DataSet, side: str, pipeline: Pipeline, progress: Progress) -> list[str]:
    """Content keys of the sample, encoded. Documents are shuffled by seed in the order of their keys."""
    places = []
    for key in sorted(dataset.collections):
        corpus = dataset.collections[key].corpus
        if side == "text":
            titles, texts = corpus.column("title").to_pylist(), corpus.column("text").to_pylist()
            has = [bool(f"{a} {b}".strip()) for a, b in zip(titles, texts, strict=True)]
        else:
            has = [bool(images) for images in corpus.column("images").to_pylist()]
        ids = corpus.column("id").to_pylist()
        places += [(key, identity) for identity, h in sorted(zip(ids, has, strict=True)) if h]
    random.Random(SEED).shuffle(places)
    texts: dict[str, str] = {}
    pictures: dict = {}
    for key, identity in places:
        if max(len(texts), len(pictures)) >= SAMPLE:
            break
        collection = dataset.collections[key]
        doc = collection.doc(identity)
        if side == "text":
            texts.setdefault(text_key(doc.full_text), doc.full_text)
        else:
            for reference, content in pipeline.picture_keys(collection, doc.images[:1]).items():
                pictures.setdefault(content, (collection, reference))
    chosen = texts or pictures
    if len(chosen) < ENOUGH:
        return list(chosen)
    if side == "text":
        pipeline.encode_texts(texts.values(), progress)
    else:
        pipeline.encode_pictures(pictures, progress)
    keys = sorted(chosen)
    return [k for k, there in zip(keys, pipeline.stores[side].has(keys), strict=True) if there]
