"""The stored index of one pool and one encoder: distinct vectors, exact search, and HNSW with measured recall."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.data.collection import Collection
from core.data.dataset import DataSet
from core.data.pool import Pool
from core.embed.centring import Centre, centre_of, centred, normalise
from core.embed.pipeline import DocKeys, Pipeline, Progress, doc_keys
from core.embed.vectors import CHUNK, write_rows
from core.index import hnsw
from core.index.exact import ExactIndex, best
from core.index.hnsw import HnswIndex
from core.store import manifest
from core.store.atomic import atomic_folder, remove_leftovers
from core.store.lock import lock

HNSW_FROM = 50
"""Pools with fewer distinct vectors are searched exactly: a graph gains nothing there."""

LEFT_OUT = -1

FORMAT = 2
"""Raise when the files or facts of an index change: older ones are made again."""


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


def pool_index(
    dataset: DataSet, task: str, pipeline: Pipeline, progress: Progress, with_graph: bool = True
) -> PoolIndex:
    """Open the index of a pool, building what is missing: vectors, centres, distinct vectors, graph if wanted."""
    pool = dataset.pool(task)
    encoder = pipeline.encoder
    base = pipeline.workspace.path("index", dataset.data_id, f"pool-{task}", encoder.encoder_id)
    request = {"data_id": dataset.data_id, "task": task, "encoder_id": encoder.encoder_id, "kind": "exact"}
    request["format"] = FORMAT
    held = pipeline.workspace.path("locks", f"index-{dataset.data_id}-{task}-{encoder.encoder_id}")
    with lock(held, f"indexing {task}", say=lambda text: progress(text, 0, 0)):
        remove_leftovers(base)
        try:
            stored = manifest.read(base / "exact", request, hashes=True)
        except manifest.ManifestError:
            _build(dataset, pool, pipeline, base / "exact", request, progress)
            stored = manifest.read(base / "exact", request)
        vectors_hash = stored["files"]["vectors.npy"]["sha256"]
        arrays = {
            name: np.load(base / "exact" / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in ("vectors", "group_of_row", "vector_of_group")
        }
        graph: tuple[HnswIndex | None, str] = None, "not wanted"
        if with_graph:
            graph = _graph(arrays["vectors"], base / "hnsw", {**request, "vectors": vectors_hash}, progress)
        return PoolIndex(
            base,
            pool,
            ExactIndex(arrays["vectors"]),
            np.asarray(arrays["group_of_row"]),
            np.asarray(arrays["vector_of_group"]),
            *graph,
            stored["facts"],
        )


def _build(
    dataset: DataSet, pool: Pool, pipeline: Pipeline, folder: Path, request: dict[str, Any], progress: Progress
) -> None:
    keys, unreadable = _encode(pool, pipeline, progress)
    centres = {
        side: centre_of(dataset, side, pipeline, progress)
        for side in ("image", "text")
        if any(k.pictures if side == "image" else k.text for k in keys)
    }
    groups: dict[DocKeys, int] = {}
    group_of_row = np.array([_group(k, groups) for k in keys], np.int32)
    distinct = _Distinct()
    texts = list(dict.fromkeys(k.text for k in groups if k.text))
    with atomic_folder(folder) as temporary:
        chunks = map(distinct.new_rows, _vectors(list(groups), centres, pipeline, progress))
        count = write_rows(temporary / "vectors.npy", chunks, pipeline.encoder.dimension)
        np.save(temporary / "group_of_row.npy", group_of_row)
        np.save(temporary / "vector_of_group.npy", np.array(distinct.row_of, np.int32))
        facts = {
            "documents": len(keys),
            "left_out": int((group_of_row == LEFT_OUT).sum()),
            "distinct": count,
            "sides": sorted(centres),
            "centres": {side: {"source": c.source, "n": c.n} for side, c in centres.items()},
            "truncated": int(pipeline.stores["text"].truncated(texts).sum()),
            "unreadable": dict(sorted(unreadable.items())),
        }
        names = ["vectors.npy", "group_of_row.npy", "vector_of_group.npy"]
        manifest.write(temporary, request, names, facts)


def distinct_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For float32 [n, d]: int32 [n], the number of each vector, and float32 [m, d], the distinct ones in first order.

    Graphs hold distinct vectors only: a hundred equal ones at a time would fill the beam of a search.
    """
    distinct = _Distinct()
    fresh = distinct.new_rows(vectors)
    return np.array(distinct.row_of, np.int32), fresh


class _Distinct:
    """Numbers distinct vectors as they come; what it keeps of each is a hash. ``row_of`` has one entry a vector."""

    def __init__(self) -> None:
        self.row_of: list[int] = []
        self._rows: dict[bytes, int] = {}

    def new_rows(self, vectors: np.ndarray) -> np.ndarray:
        """Those of float32 [n, d] that were not there before."""
        fresh = []
        for at, vector in enumerate(vectors):
            digest = hashlib.blake2b(vector.tobytes(), digest_size=16).digest()
            if digest not in self._rows:
                fresh.append(at)
            self.row_of.append(self._rows.setdefault(digest, len(self._rows)))
        return vectors[fresh]


def _vectors(
    keys: Sequence[DocKeys], centres: dict[str, Centre], pipeline: Pipeline, progress: Progress
) -> Iterator[np.ndarray]:
    for start in range(0, len(keys), CHUNK):
        progress("Joining the sides of documents", start, len(keys))
        yield document_vectors(keys[start : start + CHUNK], centres, pipeline)


def _group(keys: DocKeys, groups: dict[DocKeys, int]) -> int:
    if not keys.text and not keys.pictures:
        return LEFT_OUT
    return groups.setdefault(keys, len(groups))


def _encode(pool: Pool, pipeline: Pipeline, progress: Progress) -> tuple[list[DocKeys], dict[str, str]]:
    """Encode the documents of a pool and give their content keys; a picture without vector is no key.

    Pictures and texts of all collections are one job each. The second value says which pictures cannot be read.
    """
    sides = pipeline.encoder.capabilities()
    known: dict[str, dict[str, str]] = {}
    pictures: dict[str, tuple[Collection, str]] = {}
    for at, collection in enumerate(pool.collections):
        progress(f"Reading {collection.key}", at, len(pool.collections))
        references = [r for images in collection.corpus.column("images").to_pylist() for r in images]
        known[collection.key] = pipeline.picture_keys(collection, references) if "image" in sides else {}
        for reference, key in known[collection.key].items():
            pictures.setdefault(key, (collection, reference))
    unreadable = pipeline.encode_pictures(pictures, progress).unreadable
    pipeline.encode_texts((d.full_text for d in pool.docs()) if "text" in sides else (), progress)
    missing = set(pipeline.stores["image"].missing(pictures))
    keys: list[DocKeys] = []
    for collection in pool.collections:
        readable = {ref: key for ref, key in known[collection.key].items() if key not in missing}
        keys += doc_keys(collection.docs(), readable, sides)
    return keys, unreadable


def document_vectors(keys: Sequence[DocKeys], centres: dict[str, Centre], pipeline: Pipeline) -> np.ndarray:
    """d̃ = normalise(mean of the normalised centred vectors of the sides present), float32 [len(keys), d].

    Several pictures of a document are averaged first.
    """
    total = np.zeros((len(keys), pipeline.encoder.dimension), np.float32)
    with_text = [i for i, k in enumerate(keys) if k.text]
    if with_text:
        total[with_text] += centred(pipeline.stores["text"].get([keys[i].text for i in with_text]), centres["text"])
    with_picture = [i for i, k in enumerate(keys) if k.pictures]
    if with_picture:
        pictures = pipeline.stores["image"].get([p for i in with_picture for p in keys[i].pictures])
        counts = np.array([len(keys[i].pictures) for i in with_picture])
        sums = np.add.reduceat(pictures, np.cumsum(counts) - counts, axis=0)
        total[with_picture] += centred(sums / counts[:, None].astype(np.float32), centres["image"])
    return normalise(total)


def _graph(
    vectors: np.ndarray, folder: Path, request: dict[str, Any], progress: Progress
) -> tuple[HnswIndex | None, str]:
    n = len(vectors)
    if n < HNSW_FROM:
        return None, f"fewer than {HNSW_FROM} distinct documents; searching exactly"
    if hnsw.problem():
        return None, hnsw.problem()
    settings = {"M": hnsw.M, "ef_construction": hnsw.EF_CONSTRUCTION, "seed": hnsw.SEED}
    request = {**request, "kind": "hnsw", **settings}
    try:
        manifest.read(folder, request, hashes=True)
    except manifest.ManifestError:
        with atomic_folder(folder) as temporary:
            HnswIndex.build(vectors, progress).save(temporary / "graph.bin")
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
