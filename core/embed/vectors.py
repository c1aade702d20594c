"""Vectors of one encoder and one side, keyed by the sha256 of what was encoded.

Equal texts and equal pictures are encoded once, ever. Rows are appended in blocks; a block is there whole or not
at all, so a killed job continues with the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.store import manifest
from core.store.atomic import atomic_folder


class VectorStore:
    """``folder`` holds ``block-00000/{keys,vectors,tokens}.npy`` with a manifest each.

    A damaged block is reported through `damaged` and its rows are encoded again.
    """

    def __init__(self, folder: Path, dimension: int) -> None:
        self.folder, self.dimension = folder, dimension
        self.damaged: list[str] = []
        self._places: dict[bytes, tuple[int, int]] = {}
        self._blocks: list[np.ndarray] = []
        self._next = 0
        for block in sorted(folder.glob("block-*")) if folder.is_dir() else ():
            self._next = int(block.name.removeprefix("block-")) + 1
            try:
                self._open(block)
            except (manifest.ManifestError, ValueError, OSError) as error:
                self.damaged.append(f"{block}: {error}")

    def _open(self, block: Path) -> None:
        manifest.read(block, {"dimension": self.dimension})
        keys = np.load(block / "keys.npy", allow_pickle=False)
        vectors = np.load(block / "vectors.npy", mmap_mode="r", allow_pickle=False)
        if keys.dtype != np.uint8 or keys.shape != (len(vectors), 32) or vectors.shape[1:] != (self.dimension,):
            raise ValueError(f"unexpected shapes {keys.shape} and {vectors.shape}")
        number = len(self._blocks)
        self._blocks.append(vectors)
        for row in range(len(keys)):
            self._places[keys[row].tobytes()] = (number, row)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return bytes.fromhex(key) in self._places

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The distinct keys without a vector, in order of first appearance."""
        return [k for k in dict.fromkeys(keys) if k not in self]

    def get(self, keys: Sequence[str]) -> np.ndarray:
        """float32 [len(keys), dimension]; raises KeyError for a key that is not stored."""
        result = np.empty((len(keys), self.dimension), np.float32)
        for at, key in enumerate(keys):
            block, row = self._places[bytes.fromhex(key)]
            result[at] = self._blocks[block][row]
        return result

    def add(self, keys: Sequence[str], vectors: np.ndarray, facts: dict | None = None) -> None:
        """Store one block of new rows; ``vectors`` is float32 [len(keys), dimension] without NaN."""
        if vectors.shape != (len(keys), self.dimension) or not np.isfinite(vectors).all():
            raise ValueError(f"vectors of shape {vectors.shape} for {len(keys)} keys, or not finite")
        block = self.folder / f"block-{self._next:05d}"
        with atomic_folder(block) as folder:
            np.save(folder / "keys.npy", np.frombuffer(bytes.fromhex("".join(keys)), np.uint8).reshape(-1, 32))
            np.save(folder / "vectors.npy", np.ascontiguousarray(vectors, np.float32))
            manifest.write(folder, {"dimension": self.dimension}, ["keys.npy", "vectors.npy"], facts)
        self._next += 1
        self._open(block)
