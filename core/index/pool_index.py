"""The stored index of one pool and one encoder: distinct vectors, exact search, and HNSW with measured recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.data.dataset import DataSet
from core.data.pool import Pool
from core.embed.centring import Centre, centre_of, centred, normalise
from core.embed.pipeline import DocKeys, Encoded, Pipeline, Progress, doc_keys
from core.index import hnsw
from core.index.exact import ExactIndex, best
from core.index.hnsw import HnswIndex
from core.store import manifest
from core.store.atomic import atomic_folder
from core.store.lock import lock

HNSW_FROM = 50
"""Pools with fewer distinct vectors are searched exactly: a graph gains nothing there."""

LEFT_OUT = -1


@dataclass(frozen=True, slots=True)
class PoolIndex:
    """``group_of_row`` int32 [documents]: which content a document has (−1: not searchable);
    ``vector_of_group`` int32 [groups]; ``exact.vectors`` float32 [distinct vectors, d], unit length.
    ``hnsw`` is None where ``hnsw_problem`` says why."""

    folder: Path
    pool: Pool
    exact: ExactIndex
    group_of_row: np.ndarray
    vector_of_group: np.ndarray
    hnsw: HnswIndex | None
    hnsw_problem: str
    facts: dict[str, Any]


def pool_index(dataset: DataSet, task: str, pipeline: Pipeline, progress: Progress) -> PoolIndex:
    """Open the index of a pool, building what is missing: vectors, centres, distinct vectors, graph."""
    pool = dataset.pool(task)
    encoder = pipeline.encoder
    base = pipeline.workspace.path("index", dataset.data_id, f"pool-{task}", encoder.encoder_id)
    request = {"data_id": dataset.data_id, "task": task, "encoder_id": encoder.encoder_id, "kind": "exact", "format": 1}
    with lock(pipeline.workspace.path("locks", f"index-{dataset.data_id}-{task}"), f"indexing {task}"):
        try:
            stored = manifest.read(base / "exact", request)
        except manifest.ManifestError:
            _build(dataset, pool, pipeline, base / "exact", request, progress)
            stored = manifest.read(base / "exact", request)
        vectors_hash = stored["files"]["vectors.npy"]["sha256"]
        arrays = {
            name: np.load(base / "exact" / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in ("vectors", "group_of_row", "vector_of_group")
        }
        return PoolIndex(
            base,
            pool,
            ExactIndex(arrays["vectors"]),
            np.asarray(arrays["group_of_row"]),
            np.asarray(arrays["vector_of_group"]),
            *_graph(arrays["vectors"], base / "hnsw", {**request, "vectors": vectors_hash}),
            stored["facts"],
        )


def _build(
    dataset: DataSet, pool: Pool, pipeline: Pipeline, folder: Path, request: dict[str, Any], progress: Progress
) -> None:
    keys, done = _encode(pool, pipeline, progress)
    centres = {
        side: centre_of(dataset, side, pipeline, progress)
        for side in ("image", "text")
        if any(k.pictures if side == "image" else k.text for k in keys)
    }
    groups: dict[DocKeys, int] = {}
    group_of_row = np.array([_group(k, groups) for k in keys], np.int32)
    vectors = document_vectors(list(groups), centres, pipeline)
    rows: dict[bytes, int] = {}
    vector_of_group = np.array([rows.setdefault(v.tobytes(), len(rows)) for v in vectors], np.int32)
    distinct = np.frombuffer(b"".join(rows), np.float32).reshape(-1, pipeline.encoder.dimension)
    facts = {
        "documents": len(keys),
        "left_out": int((group_of_row == LEFT_OUT).sum()),
        "distinct": len(distinct),
        "sides": sorted(centres),
        "centres": {side: {"source": c.source, "n": c.n} for side, c in centres.items()},
        "truncated": done.truncated,
        "unreadable": dict(sorted(done.unreadable.items())),
    }
    with atomic_folder(folder) as temporary:
        np.save(temporary / "vectors.npy", distinct)
        np.save(temporary / "group_of_row.npy", group_of_row)
        np.save(temporary / "vector_of_group.npy", vector_of_group)
        names = ["vectors.npy", "group_of_row.npy", "vector_of_group.npy"]
        manifest.write(temporary, request, names, facts)


def _group(keys: DocKeys, groups: dict[DocKeys, int]) -> int:
    if not keys.text and not keys.pictures:
        return LEFT_OUT
    return groups.setdefault(keys, len(groups))


def _encode(pool: Pool, pipeline: Pipeline, progress: Progress) -> tuple[list[DocKeys], Encoded]:
    """Encode the documents of a pool and give their content keys; a picture without vector is no key."""
    sides = pipeline.encoder.capabilities()
    all_keys: list[DocKeys] = []
    total = Encoded()
    for at, collection in enumerate(pool.collections):
        progress(f"Reading {collection.key}", at, len(pool.collections))
        references = [r for images in collection.corpus.column("images").to_pylist() for r in images]
        known = pipeline.picture_keys(collection, references) if "image" in sides else {}
        for part in (
            pipeline.encode_pictures({key: (collection, ref) for ref, key in known.items()}, progress),
            pipeline.encode_texts((d.full_text for d in collection.docs()) if "text" in sides else (), progress),
        ):
            total.encoded += part.encoded
            total.truncated += part.truncated
            total.unreadable |= part.unreadable
        readable = {ref: key for ref, key in known.items() if key in pipeline.stores["image"]}
        all_keys += doc_keys(collection.docs(), readable, sides)
    return all_keys, total


def document_vectors(keys: Sequence[DocKeys], centres: dict[str, Centre], pipeline: Pipeline) -> np.ndarray:
    """d̃ = normalise(mean of the normalised centred vectors of the sides present), float32 [len(keys), d].

    Several pictures of a document are averaged first.
    """
    total = np.zeros((len(keys), pipeline.encoder.dimension), np.float32)
    with_text = [i for i, k in enumerate(keys) if k.text]
    if with_text:
        total[with_text] += centred(pipeline.stores["text"].get([keys[i].text for i in with_text]), centres["text"])
    for i, key in enumerate(keys):
        if key.pictures:
            mean = pipeline.stores["image"].get(key.pictures).mean(axis=0)
            total[i] += centred(mean, centres["image"])
    return normalise(total)


def _graph(vectors: np.ndarray, folder: Path, request: dict[str, Any]) -> tuple[HnswIndex | None, str]:
    n = len(vectors)
    if n < HNSW_FROM:
        return None, f"fewer than {HNSW_FROM} distinct documents; searching exactly"
    if hnsw.problem():
        return None, hnsw.problem()
    settings = {"M": hnsw.M, "ef_construction": hnsw.EF_CONSTRUCTION, "seed": 1}
    request = {**request, "kind": "hnsw", **settings}
    try:
        manifest.read(folder, request, hashes=True)
    except manifest.ManifestError:
        with atomic_folder(folder) as temporary:
            HnswIndex.build(vectors).save(temporary / "graph.bin")
            manifest.write(temporary, request, ["graph.bin"])
    return HnswIndex.open(folder / "graph.bin", vectors.shape[1], n), ""


def recall_at(k: int, index: PoolIndex, queries: np.ndarray) -> float:
    """Share of the exact top ``k`` that HNSW finds, averaged over queries float32 [q, d]; ties count as found."""
    assert index.hnsw is not None
    found = []
    for query in queries:
        scores = index.exact.scores(query[:, None])[:, 0]
        truth = best(scores, k)
        mine = index.hnsw.candidates(query, k)
        found.append(min(1.0, np.isin(mine, truth).sum() / min(k, len(scores))))
    return float(np.mean(found))
