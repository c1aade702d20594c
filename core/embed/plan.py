"""The block plan of an encoding job: fixed when the job is created, stored, and kept by whoever continues it.

The last bits of a vector depend on what shares its batch (padding) and on the number of threads. So that a job that
was killed ends with the very bytes of an undisturbed one, what goes into which block is never decided twice.

A job is ``job-<id>/{keys.npy, manifest.json}`` beside the finished blocks, and ``job-<id>/part-00000`` … as they come.
At its end the parts become one block, so a store has as many blocks as it had jobs.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.embed.vectors import VectorStore, packed, request
from core.store import manifest
from core.store.atomic import TEMPORARY, atomic_folder, remove_leftovers

BLOCK = 256
"""Rows that are encoded and stored together: the most that a killed job loses."""


class Plan:
    """A job of a vector store. Use it only while holding the lock of that store."""

    def __init__(self, folder: Path, dimension: int) -> None:
        """Open ``folder``; raises `core.store.manifest.ManifestError` or ValueError when it cannot be used."""
        remove_leftovers(folder)
        facts = manifest.read(folder, request(dimension), hashes=True)["facts"]
        self.folder, self.threads = folder, int(facts["threads"])
        block, keys = int(facts["block"]), np.load(folder / "keys.npy", allow_pickle=False)
        flat = [row.tobytes().hex() for row in keys]
        self.parts = [flat[start : start + block] for start in range(0, len(flat), block)]
        self._done: set[int] = set()
        for number in range(len(self.parts)):
            try:
                manifest.read(self.part(number), request(dimension), hashes=True)
            except manifest.ManifestError:
                continue
            self._done.add(number)

    @classmethod
    def create(cls, store: VectorStore, keys: Sequence[str], threads: int) -> Plan:
        """A new job for ``keys``, blocks of neighbours in the order given.

        The blocks come in a shuffled order (the short one last), so that with keys ordered by length the rate so far
        tells how long the rest will take.
        """
        blocks = [keys[start : start + BLOCK] for start in range(0, len(keys), BLOCK)]
        short = [blocks.pop()] if len(blocks[-1]) < BLOCK else []
        random.Random(0).shuffle(blocks)
        rows = packed([key for block in blocks + short for key in block])
        facts = {"block": BLOCK, "threads": threads}
        name = hashlib.sha256(rows.tobytes() + manifest.canonical(facts)).hexdigest()[:16]
        with atomic_folder(store.folder / f"job-{name}") as temporary:
            np.save(temporary / "keys.npy", rows)
            manifest.write(temporary, request(store.dimension), ["keys.npy"], facts)
        return cls(store.folder / f"job-{name}", store.dimension)

    def part(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}"

    def open_parts(self) -> list[int]:
        """Numbers of the parts that are not stored."""
        return [number for number in range(len(self.parts)) if number not in self._done]

    @property
    def rows_done(self) -> int:
        """Rows in the parts that are stored."""
        return sum(len(self.parts[number]) for number in self._done)

    def finish(self, store: VectorStore) -> VectorStore:
        """Join the stored parts into one block, delete the job, and give the store as it is now."""
        stored = [self.part(number) for number in sorted(self._done)]
        # Killed after joining and before deleting: the block is there already.
        joined = any(_plan_of(block) == self.folder.name for block in store.folder.glob("block-*"))
        if stored and not joined:
            store.join(stored, {"plan": self.folder.name})
        discard(self.folder)
        return store.reopened()

    def add(self, store: VectorStore, number: int, keys: Sequence[str], vectors: np.ndarray, cut: np.ndarray) -> None:
        """Store what part ``number`` gave: the rows of ``keys``, its members that could be encoded."""
        store.add(keys, vectors, cut, self.part(number))
        self._done.add(number)


def open_plans(store: Path, dimension: int) -> tuple[list[Plan], list[str]]:
    """The unfinished jobs in the folder of a store, and why others were deleted: their rows are encoded again."""
    plans, reasons = [], []
    for folder in sorted(store.glob("job-*")):
        try:
            plans.append(Plan(folder, dimension))
        except (manifest.ManifestError, ValueError, KeyError) as error:
            reasons.append(str(error))
            discard(folder)
    return plans, reasons


def discard(job: Path) -> None:
    """Delete a job so that a reader never sees half of it."""
    aside = job.with_name(f"{TEMPORARY}{job.name}")
    job.rename(aside)
    remove_leftovers(job.parent)


def _plan_of(block: Path) -> str | None:
    try:
        return manifest.read(block)["facts"].get("plan")
    except manifest.ManifestError:
        return None
