"""Encode what is missing, in blocks, with progress; count what cannot be encoded."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.data.collection import Collection
from core.embed.vectors import VectorStore
from core.media.picture import PictureError, open_picture
from core.models.base import Encoder
from core.records import Doc
from core.store.atomic import remove_leftovers
from core.store.lock import lock
from core.store.workspace import Workspace

BLOCK = 256
"""Rows that are encoded and stored together: the most that a killed job loses."""

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Encoded:
    """What one call did: rows encoded now, texts cut at the encoder's limit, pictures that could not be read."""

    encoded: int = 0
    truncated: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def text_key(text: str) -> str:
    """The key of a text: sha256 of its UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


class Pipeline:
    """One encoder and its two vector stores in a workspace."""

    def __init__(self, encoder: Encoder, workspace: Workspace) -> None:
        self.encoder, self.workspace = encoder, workspace
        base = workspace.path("vectors", encoder.encoder_id)
        self._folders = {side: base / side for side in ("image", "text")}
        self.stores = {side: VectorStore(f, encoder.dimension) for side, f in self._folders.items()}

    def picture_keys(self, collection: Collection, references: Sequence[str]) -> dict[str, str]:
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
        result.update(zip(wanted, self.workspace.hash_of(files), strict=True))
        return result

    def encode_texts(self, texts: Iterable[str], progress: Progress) -> Encoded:
        """Make vectors for the distinct non-empty ``texts`` that have none yet."""
        by_key = {k: t for k, t in ((text_key(t), t) for t in texts if t) if k not in self.stores["text"]}

        def encode(keys: Sequence[str]) -> tuple[list[str], np.ndarray, int, dict[str, str]]:
            out = self.encoder.encode_texts([by_key[k] for k in keys])
            return list(keys), out["single"], int(np.sum(out["truncated"])), {}

        def by_length(keys: list[str]) -> list[str]:
            return sorted(keys, key=lambda k: (len(by_key[k]), k))

        return self._encode("text", by_key, by_length, encode, progress)

    def encode_pictures(self, pictures: dict[str, tuple[Collection, str]], progress: Progress) -> Encoded:
        """Make vectors for pictures (key → collection and reference) that have none yet."""

        def encode(keys: Sequence[str]) -> tuple[list[str], np.ndarray, int, dict[str, str]]:
            images, good, bad = [], [], {}
            for key in keys:
                collection, reference = pictures[key]
                try:
                    images.append(open_picture(collection.picture(reference)).image)
                    good.append(key)
                except PictureError as error:
                    bad[key] = f"{reference}: {error}"
            vectors = self.encoder.encode_images(images)["single"] if images else np.zeros((0, self.encoder.dimension))
            return good, vectors, 0, bad

        return self._encode("image", pictures, sorted, encode, progress)

    def _encode(self, side: str, items: dict, order: Callable, encode: Callable, progress: Progress) -> Encoded:
        done, started = Encoded(), time.perf_counter()
        if not self.stores[side].missing(list(items)):
            return done
        folder = self._folders[side]
        held = lock(self.workspace.path("locks", f"vectors-{self.encoder.encoder_id}-{side}"), f"encoding {side}s")
        with held:
            remove_leftovers(folder)
            # Another process may have encoded some of them while we waited.
            self.stores[side] = store = VectorStore(folder, self.encoder.dimension)
            missing = order(store.missing(list(items)))
            what = {"image": "Encoding pictures", "text": "Encoding texts"}[side]
            for start in range(0, len(missing), BLOCK):
                progress(what, start, len(missing))
                keys, vectors, truncated, bad = encode(missing[start : start + BLOCK])
                if keys:
                    store.add(keys, vectors, {"truncated": truncated})
                done.encoded += len(keys)
                done.truncated += truncated
                done.unreadable |= bad
            progress(what, len(missing), len(missing))
        done.seconds = time.perf_counter() - started
        return done


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
