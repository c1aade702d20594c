"""Approximate search by hnswlib (Malkov and Yashunin, 2016), with its recall measured and its traps avoided."""

from __future__ import annotations

import errno
import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from core.data.dataset import Progress, silent

M, EF_CONSTRUCTION, EF = 32, 200, 256
"""Links a node, beam while building, least beam while searching."""

SEED = 1
"""Of the levels of the nodes."""

SINGLE_THREAD_BELOW = 20_000
"""Up to this many vectors one thread builds the graph, so the same input gives the same graph."""

_STEP = 4096
"""Vectors between two reports of progress while building."""

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
    def build(cls, vectors: np.ndarray, progress: Progress = silent) -> HnswIndex:
        """Build from float32 [n, d], n ≥ 1; they may be memory-mapped, the graph keeps its own copy."""
        import hnswlib

        n = len(vectors)
        index = hnswlib.Index(space="ip", dim=vectors.shape[1])
        index.init_index(max_elements=n, M=M, ef_construction=EF_CONSTRUCTION, random_seed=SEED)
        for start in range(0, n, _STEP):
            progress("Building the graph", start, n)
            index.add_items(vectors[start : start + _STEP], num_threads=1 if n < SINGLE_THREAD_BELOW else -1)
        return cls(index, n)

    @classmethod
    def open(cls, path: Path, dimension: int, n: int) -> HnswIndex:
        """Open a file that `save` wrote; the caller has checked its hash. RuntimeError when it is cut short."""
        import hnswlib

        index = hnswlib.Index(space="ip", dim=dimension)
        index.load_index(str(path), max_elements=n)
        return cls(index, n)

    def save(self, path: Path) -> None:
        """Write the graph. OSError when the file is not whole: hnswlib does not notice a full disk."""
        self._index.save_index(str(path))  # type: ignore[attr-defined]
        expected = self._index.index_file_size()  # type: ignore[attr-defined]
        if path.stat().st_size != expected:
            raise OSError(
                errno.ENOSPC, f"only {path.stat().st_size} of {expected} bytes of the graph were written", path
            )

    def candidates(self, query: np.ndarray, k: int) -> np.ndarray:
        """The ``k`` best rows that a beam of ``max(EF, k)`` finds; none where the graph does not reach k."""
        try:
            labels, _ = self._index.knn_query(query[None], k=min(k, self._n), num_threads=1)  # type: ignore[attr-defined]
        except RuntimeError:  # "Cannot return the results in a contiguous 2D array"
            return np.zeros(0, np.int64)
        return labels[0].astype(np.int64)
