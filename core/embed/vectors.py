"""Vectors of one encoder and one side, keyed by the sha256 of what was encoded.

Equal texts and equal pictures are encoded once, ever. Rows come in blocks that are there whole or not at all; the
blocks of a job that is not finished yet (`core.embed.plan`) are read like finished ones.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from core.store import manifest
from core.store.atomic import atomic_folder

FORMAT = 2
"""Raise when blocks are written differently: older ones are encoded again."""

FILES = ["keys.npy", "truncated.npy", "vectors.npy"]
CHUNK = 4096
"""Rows that are copied at once."""

_KEY = np.dtype("S32")


class VectorStore:
    """``folder`` holds ``block-00000/{keys,truncated,vectors}.npy`` with a manifest each.

    Rows are found by binary search over the sorted keys, and read from the file when they are asked for, so neither
    memory nor open files grow with the store. ``damaged`` names blocks that cannot be used; their rows are missing.
    ``shipped`` is a folder of further blocks, read after the own ones and never written.
    """

    def __init__(self, folder: Path, dimension: int, shipped: Path | None = None) -> None:
        self.folder, self.dimension, self.shipped = folder, dimension, shipped
        self._scan()

    def reopened(self) -> VectorStore:
        """The store as it is on disk now: another process may have added blocks."""
        return VectorStore(self.folder, self.dimension, self.shipped)

    def _scan(self) -> None:
        self.damaged: dict[Path, str] = {}
        self._blocks: list[tuple[Path, np.ndarray]] = []
        self._sorted: _Sorted | None = None
        shipped = sorted(self.shipped.glob("block-*")) if self.shipped else []
        for block in [*sorted(self.folder.glob("block-*")), *sorted(self.folder.glob("job-*/part-*")), *shipped]:
            try:
                self._open(block)
            except (manifest.ManifestError, ValueError, OSError) as error:
                self.damaged[block] = str(error)

    def _open(self, block: Path) -> None:
        manifest.read(block, request(self.dimension))
        keys = np.load(block / "keys.npy", allow_pickle=False)
        if keys.dtype != np.uint8 or keys.ndim != 2 or keys.shape[1] != 32:
            raise ValueError(f"{block / 'keys.npy'} holds {keys.dtype} {keys.shape}, expected uint8 (n, 32).")
        self._blocks.append((block, np.ascontiguousarray(keys).view(_KEY)[:, 0]))
        self._sorted = None

    def __len__(self) -> int:
        """Number of distinct keys."""
        return len(np.unique(self._index().keys))

    def __contains__(self, key: str) -> bool:
        return bool(self.has([key])[0])

    def _index(self) -> _Sorted:
        if self._sorted is None:
            self._sorted = _Sorted(list(self._blocks))
        return self._sorted

    def has(self, keys: Sequence[str]) -> np.ndarray:
        """bool [len(keys)]: which keys have a vector."""
        return self._index().rows(keys) >= 0

    def missing(self, keys: Iterable[str]) -> list[str]:
        """The distinct keys without a vector, in order of first appearance."""
        distinct = list(dict.fromkeys(keys))
        return [k for k, there in zip(distinct, self.has(distinct), strict=True) if not there]

    def get(self, keys: Sequence[str]) -> np.ndarray:
        """float32 [len(keys), dimension]; raises KeyError for a key that is not stored."""
        return self._read("vectors.npy", keys, np.empty((len(keys), self.dimension), np.float32))

    def truncated(self, keys: Sequence[str]) -> np.ndarray:
        """bool [len(keys)]: which texts were longer than the encoder reads; KeyError as in `get`."""
        return self._read("truncated.npy", keys, np.empty(len(keys), bool))

    def _read(self, name: str, keys: Sequence[str], result: np.ndarray) -> np.ndarray:
        try:
            self._fill(name, keys, result)
        except FileNotFoundError:  # another process has finished its job: the parts we knew are one block now
            self._scan()
            self._fill(name, keys, result)
        return result

    def _fill(self, name: str, keys: Sequence[str], result: np.ndarray) -> None:
        index = self._index()
        rows = index.rows(keys)
        if (rows < 0).any():
            raise KeyError(keys[int(np.argmax(rows < 0))])
        numbers = np.searchsorted(index.starts, rows, side="right") - 1
        for number in np.unique(numbers):
            at = np.flatnonzero(numbers == number)
            values = np.load(index.folders[number] / name, mmap_mode="r", allow_pickle=False)
            result[at] = values[rows[at] - index.starts[number]]

    def add(self, keys: Sequence[str], vectors: np.ndarray, truncated: np.ndarray, folder: Path | None = None) -> None:
        """Store one block of new rows: ``vectors`` float32 [len(keys), dimension] without NaN, ``truncated`` bool.

        ``folder`` is the place of a part of a job, by default the next block.
        """
        if vectors.shape != (len(keys), self.dimension) or not np.isfinite(vectors).all():
            raise ValueError(f"vectors of shape {vectors.shape} for {len(keys)} keys, or not finite")
        block = folder or self._next()
        with atomic_folder(block) as temporary:
            np.save(temporary / "keys.npy", packed(keys))
            np.save(temporary / "truncated.npy", np.asarray(truncated, bool))
            np.save(temporary / "vectors.npy", np.ascontiguousarray(vectors, np.float32))
            manifest.write(temporary, request(self.dimension), FILES)
        self._open(block)

    def join(self, parts: Sequence[Path], facts: dict) -> None:
        """Write the rows of ``parts`` as one block; the parts are left where they are."""
        with atomic_folder(self._next()) as temporary:
            for name in ("keys.npy", "truncated.npy"):
                np.save(temporary / name, np.concatenate([np.load(p / name, allow_pickle=False) for p in parts]))
            vectors = (np.load(p / "vectors.npy", allow_pickle=False) for p in parts)
            write_rows(temporary / "vectors.npy", vectors, self.dimension)
            manifest.write(temporary, request(self.dimension), FILES, facts)

    def _next(self) -> Path:
        numbers = [int(block.name.removeprefix("block-")) for block in self.folder.glob("block-*")]
        return self.folder / f"block-{max(numbers, default=-1) + 1:05d}"

    def discard_damaged(self) -> list[str]:
        """Delete the own blocks that cannot be used, so that their rows are made again; gives the reasons for all.

        Call it only where nobody else can be writing.
        """
        for block in self.damaged:
            if block.is_relative_to(self.folder):
                shutil.rmtree(block)
        reasons, self.damaged = list(self.damaged.values()), {}
        return reasons


class _Sorted:
    """Sorted keys of some blocks. A row number counts through the blocks; of equal keys the first block's is found."""

    def __init__(self, blocks: list[tuple[Path, np.ndarray]]) -> None:
        self.folders = [folder for folder, _ in blocks]
        self.starts = np.cumsum([0, *(len(keys) for _, keys in blocks)])[:-1]
        keys = np.concatenate([np.zeros(0, _KEY), *(keys for _, keys in blocks)])
        self._order = np.argsort(keys, kind="stable")
        self.keys = keys[self._order]

    def rows(self, keys: Sequence[str]) -> np.ndarray:
        """int64 [len(keys)]: the row of each key, −1 where there is none."""
        wanted = packed(keys).view(_KEY)[:, 0]
        if not len(self.keys):
            return np.full(len(wanted), -1)
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[at] == wanted, self._order[at], -1)


def request(dimension: int) -> dict[str, int]:
    """What the manifest of a block says it was made for."""
    return {"dimension": dimension, "format": FORMAT}


def packed(keys: Sequence[str]) -> np.ndarray:
    """Hex sha256 keys as uint8 [len(keys), 32]; ValueError for anything else."""
    return np.frombuffer(bytes.fromhex("".join(keys)), np.uint8).reshape(len(keys), 32)


def write_rows(path: Path, chunks: Iterable[np.ndarray], dimension: int) -> int:
    """Write float32 rows as one ``.npy`` without holding them all; gives their number."""

    def header(n: int) -> dict:
        return {"descr": "<f4", "fortran_order": False, "shape": (n, dimension)}

    n = 0
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header(n))
        start = stream.tell()
        for chunk in chunks:
            stream.write(np.ascontiguousarray(chunk, "<f4").data)
            n += len(chunk)
        stream.seek(0)
        # numpy leaves room in the header for the first axis to grow
        np.lib.format.write_array_header_1_0(stream, header(n))
        assert stream.tell() == start
    return n
