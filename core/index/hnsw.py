"""Approximate search by hnswlib (Malkov and Yashunin, 2016), with its recall measured and its traps avoided."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

M, EF_CONSTRUCTION, EF = 16, 200, 128
"""Links a node, beam while building, least beam while searching."""

SINGLE_THREAD_BELOW = 20_000
"""Up to this many vectors one thread builds the graph, so the same input gives the same graph."""

_PROBE = """
import hnswlib, numpy
index = hnswlib.Index("ip", 16)
index.init_index(64, M=8, ef_construction=20, random_seed=1)
index.add_items(numpy.eye(64, 16, dtype="float32"), num_threads=1)
index.knn_query(numpy.ones(16, dtype="float32"), k=3, num_threads=1)
"""


@functools.cache
def problem() -> str:
    """Why hnswlib cannot be used here ("" if it can): tried in a process of its own, since it may crash.

    It is compiled for the processor of the machine that installed it, and an illegal instruction elsewhere would
    end this process.
    """
    try:
        done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, timeout=60, env=dict(os.environ))
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"hnswlib could not be tried ({error}); searching exactly"
    if done.returncode < 0:
        return f"hnswlib crashes on this processor (signal {-done.returncode}); searching exactly"
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return f"hnswlib cannot be used ({''.join(last)}); searching exactly"
    return ""


class HnswIndex:
    """A graph over distinct unit vectors. Build one with `build`, open a stored one with `open`."""

    kind = "hnsw"

    def __init__(self, index: object, n: int) -> None:
        self._index, self._n = index, n
        self._index.set_ef(EF)  # type: ignore[attr-defined]

    @classmethod
    def build(cls, vectors: np.ndarray, seed: int = 1) -> HnswIndex:
        """Build from float32 [n, d], n ≥ 1."""
        import hnswlib

        index = hnswlib.Index(space="ip", dim=vectors.shape[1])
        index.init_index(max_elements=len(vectors), M=M, ef_construction=EF_CONSTRUCTION, random_seed=seed)
        index.add_items(np.asarray(vectors), num_threads=1 if len(vectors) < SINGLE_THREAD_BELOW else -1)
        return cls(index, len(vectors))

    @classmethod
    def open(cls, path: Path, dimension: int, n: int) -> HnswIndex:
        """Open a file that `save` wrote; the caller has checked its hash."""
        import hnswlib

        index = hnswlib.Index(space="ip", dim=dimension)
        index.load_index(str(path), max_elements=n)
        return cls(index, n)

    def save(self, path: Path) -> None:
        self._index.save_index(str(path))  # type: ignore[attr-defined]

    def candidates(self, query: np.ndarray, k: int) -> np.ndarray:
        k = min(k, self._n)
        if k > EF:  # hnswlib returns too few below ef; a beam this wide reads most of the graph anyway
            raise ValueError(f"k = {k} is above the beam of {EF}; search exactly")
        labels, _ = self._index.knn_query(query[None], k=k, num_threads=1)  # type: ignore[attr-defined]
        return labels[0].astype(np.int64)
