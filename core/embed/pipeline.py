"""Encode what is missing, in planned blocks, with progress; say what cannot be encoded."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from core.data.collection import Collection
from core.embed.plan import Plan, open_plans
from core.embed.vectors import VectorStore
from core.media.picture import PictureError, open_picture
from core.models.base import Encoder
from core.records import Doc
from core.store.atomic import remove_leftovers
from core.store.lock import Locked, lock
from core.store.workspace import Workspace

Progress = Callable[[str, int, int], None]


class Pace:
    """A progress callback for screens that show only its words: adds the rate and the time left to them."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._what, self._from, self._started = "", 0, 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what != self._what or done < self._from:
            self._what, self._from, self._started = what, done, now
        rate = (done - self._from) / max(now - self._started, 1e-9)
        if self._from < done < total:
            left = (total - done) / rate
            left_words = f"{left:.0f} s" if left < 90 else f"{left / 60:.0f} min"
            what = f"{what} · {rate:.3g}/s, about {left_words} left"
        self._progress(what, done, total)


@dataclass(slots=True)
class Encoded:
    """What was done: rows encoded now, pictures that could not be read (key → reason), and remarks on the store,
    such as an interrupted job that was continued or a damaged block that is made again."""

    encoded: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: Encoded) -> None:
        self.encoded += other.encoded
        self.unreadable |= other.unreadable
        self.notes += other.notes
        self.seconds += other.seconds


def text_key(text: str) -> str:
    """The key of a text: sha256 of its UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def picture_keys(workspace: Workspace, collection: Collection, references: Sequence[str]) -> dict[str, str]:
    """sha256 of each picture's bytes by reference; pictures that cannot be read are absent."""
    files, wanted, result = [], [], {}
    for reference in dict.fromkeys(references):
        try:
            place = collection.pictures.resolve(reference)
            if place.member is None:
                files.append(place.path)
                wanted.append(reference)
            else:
                result[reference] = hashlib.sha256(collection.picture(reference)).hexdigest()
        except PictureError:
            continue
    result.update(zip(wanted, workspace.hash_of(files), strict=True))
    return result


class NotStored(Exception):
    """Something has no vector yet, and nothing was to be encoded."""


class Pipeline:
    """One encoder and its two vector stores in a workspace. ``done`` sums up what this object has encoded.

    With ``stored_only`` nothing is ever encoded: `NotStored` is raised instead.
    """

    def __init__(self, encoder: Encoder, workspace: Workspace) -> None:
        self.encoder, self.workspace = encoder, workspace
        places = [root / "vectors" / encoder.encoder_id for root in workspace.roots]
        self._folders = {side: places[0] / side for side in ("image", "text")}
        self.stores = {
            side: VectorStore(folder, encoder.dimension, *(place / side for place in places[1:]))
            for side, folder in self._folders.items()
        }
        self.done = Encoded()
        self.stored_only = False

    def picture_keys(self, collection: Collection, references: Sequence[str]) -> dict[str, str]:
        """sha256 of each picture's bytes by reference; pictures that cannot be read are absent."""
        return picture_keys(self.workspace, collection, references)

    def encode_texts(self, texts: Iterable[str], progress: Progress) -> Encoded:
        """Make vectors for the distinct non-empty ``texts`` that have none yet."""
        by_key = {text_key(t): t for t in texts if t}

        def encode(keys: Sequence[str]) -> _Rows:
            out = self.encoder.encode_texts([by_key[k] for k in keys])
            return _Rows(list(keys), out["single"], np.asarray(out["truncated"], bool), {})

        def by_length(keys: list[str]) -> list[str]:
            return sorted(keys, key=lambda k: (len(by_key[k]), k))

        return self._encode("text", by_key, by_length, encode, progress)

    def encode_pictures(self, pictures: dict[str, tuple[Collection, str]], progress: Progress) -> Encoded:
        """Make vectors for pictures (key → collection and reference) that have none yet."""

        def encode(keys: Sequence[str]) -> _Rows:
            images, good, bad = [], [], {}
            for key in keys:
                collection, reference = pictures[key]
                try:
                    images.append(open_picture(collection.picture(reference)).image)
                    good.append(key)
                except PictureError as error:
                    bad[key] = f"{reference}: {error}"
            vectors = self.encoder.encode_images(images)["single"] if images else np.zeros((0, self.encoder.dimension))
            return _Rows(good, vectors, np.zeros(len(good), bool), bad)

        return self._encode("image", pictures, sorted, encode, progress)

    def _encode(self, side: str, items: dict, order: Callable, encode: Callable, progress: Progress) -> Encoded:
        """Continue the store's unfinished jobs as far as ``items`` reach, then make a job of what is still missing."""
        done, started = Encoded(), time.perf_counter()
        folder = self._folders[side]
        needed = self.stores[side].missing(items)
        if self.stored_only:
            if needed:
                raise NotStored(f"{len(needed)} of the {side}s have no vector yet")
            return done
        if not needed and not any(folder.glob("job-*")):
            return done
        held = self.workspace.path("locks", f"vectors-{self.encoder.encoder_id}-{side}")
        # Where nothing is needed only a job killed at its very end is tidied up; a living one is left alone.
        waiting = {"wait": float("inf") if needed else 0.0, "say": lambda text: progress(text, 0, 0)}
        try:
            with lock(held, f"encoding {side}s", **waiting):
                remove_leftovers(folder)
                plans, reasons = open_plans(folder, self.encoder.dimension)
                # Opened again: another process may have encoded some of them while we waited.
                store = self.stores[side].reopened()
                reasons += store.discard_damaged()
                done.notes += [f"Encoded again because damaged: {reason}" for reason in reasons]
                steps = _Steps({"image": "Encoding pictures", "text": "Encoding texts"}[side], progress)
                steps.total = len(store.missing(items))
                for plan in plans:
                    if plan.rows_done:
                        done.notes.append(
                            f"Continued an interrupted job: {plan.rows_done} of {sum(map(len, plan.parts))} {side}s "
                            "were encoded before."
                        )
                    store = self._work(plan, store, items, encode, steps, done)
                rest = [key for key in store.missing(items) if key not in done.unreadable]
                if rest:
                    plan = Plan.create(store, order(rest), _threads())
                    store = self._work(plan, store, items, encode, steps, done)
                self.stores[side] = store
        except Locked:
            if needed:
                raise
        done.seconds = time.perf_counter() - started
        self.done.add(done)
        return done

    def _work(
        self, plan: Plan, store: VectorStore, items: dict, encode: Callable, steps: _Steps, done: Encoded
    ) -> VectorStore:
        """Encode the parts of a plan of which all members are at hand, exactly as planned; the store afterwards."""
        complete = True
        before = _threads()
        for number in plan.open_parts():
            keys = plan.parts[number]
            if not all(key in items for key in keys):
                complete = False
                continue
            steps.advance(0)
            _threads(plan.threads)
            try:
                rows = encode(keys)
            finally:
                _threads(before)
            if rows.keys:
                plan.add(store, number, rows.keys, rows.vectors, rows.truncated)
            done.encoded += len(rows.keys)
            done.unreadable |= rows.unreadable
            steps.advance(len(keys))
        return plan.finish(store) if complete else store


class _Rows(NamedTuple):
    """What one block gave: keys and vectors of what could be encoded, and why the rest could not."""

    keys: list[str]
    vectors: np.ndarray
    truncated: np.ndarray
    unreadable: dict[str, str]


class _Steps:
    """Progress of one call over all its jobs."""

    def __init__(self, what: str, progress: Progress) -> None:
        self.what, self.total = what, 0
        self._done, self._progress = 0, progress

    def advance(self, rows: int) -> None:
        self._done += rows
        self._progress(self.what, min(self._done, self.total), self.total)


def _threads(number: int | None = None) -> int:
    """Set how many threads compute a batch, if asked; gives the number that there are. It decides the last bits."""
    import torch

    if number is not None and number != torch.get_num_threads():
        torch.set_num_threads(number)
    return torch.get_num_threads()


@dataclass(frozen=True, slots=True)
class DocKeys:
    """Content keys of a document: ``text`` ("" if it has none) and one per readable picture."""

    text: str
    pictures: tuple[str, ...]


def doc_keys(docs: Iterable[Doc], keys: dict[str, str], sides: frozenset[str]) -> list[DocKeys]:
    """The keys of documents of one collection, for the sides an encoder has."""
    result = []
    for doc in docs:
        text = text_key(doc.full_text) if "text" in sides and doc.full_text else ""
        pictures = tuple(keys[r] for r in doc.images if r in keys) if "image" in sides else ()
        result.append(DocKeys(text, pictures))
    return result
