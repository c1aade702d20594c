"""The frozen towers' features of a data set, stored once in the workspace and shared by every head."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from core.data.collection import Collection
from core.data.dataset import DataSet
from core.embed.pipeline import Pipeline, Progress, text_key
from core.models.medlite import MedliteEncoder
from core.store.atomic import remove_leftovers
from core.store.lock import lock
from core.store.workspace import Workspace

BLOCK = 4096
"""Rows that a head turns into vectors and stores together."""


class Features:
    """Features by content key under ``vectors/<tower_id>/<side>``; what is missing is made by `encode`."""

    def __init__(self, base: MedliteEncoder, workspace: Workspace) -> None:
        self.base, self.workspace = base, workspace
        self.pipelines = {side: Pipeline(tower, workspace) for side, tower in base.towers.items()}

    def encode(
        self, pictures: dict[str, tuple[Collection, str]], texts: Iterable[str], progress: Progress
    ) -> dict[str, str]:
        """Run the towers on what they have not seen; returns the pictures that could not be read, with the reason."""
        self.pipelines["text"].encode_texts(texts, progress)
        return self.pipelines["image"].encode_pictures(pictures, progress).unreadable

    def has(self, side: str, key: str) -> bool:
        """True if the features of this picture or text are stored."""
        return key in self.pipelines[side].stores[side]

    def get(self, side: str, keys: Sequence[str]) -> np.ndarray:
        """float32 [n, 1280] of pictures or [n, 384] of texts; KeyError for what is not stored."""
        return self.pipelines[side].stores[side].get(keys)

    def project(self, pipeline: Pipeline, side: str, keys: Iterable[str]) -> None:
        """Store the vectors that a head gives to these contents, where features are stored and vectors are not.

        ``pipeline`` is that of an encoder with the same towers; afterwards it finds these vectors and runs no tower.
        """
        encoder = pipeline.encoder
        assert isinstance(encoder, MedliteEncoder)
        if encoder.towers[side].encoder_id != self.base.towers[side].encoder_id:
            raise ValueError(f"{encoder.folder} was trained on another {side} tower; its vectors need that tower.")
        source = self.pipelines[side].stores[side]
        distinct = sorted(set(keys))
        wanted = [key for key, there in zip(distinct, source.has(distinct), strict=True) if there]
        if not pipeline.stores[side].missing(wanted):
            return
        held = self.workspace.path("locks", f"vectors-{encoder.encoder_id}-{side}")
        with lock(held, f"projecting {side}s"):
            folder = self.workspace.path("vectors", encoder.encoder_id, side)
            remove_leftovers(folder)
            pipeline.stores[side] = store = pipeline.stores[side].reopened()  # others may have added some
            missing = store.missing(wanted)
            for start in range(0, len(missing), BLOCK):
                part = missing[start : start + BLOCK]
                store.add(part, encoder.project(side, source.get(part)), source.truncated(part))

    def fill(self, pipeline: Pipeline, dataset: DataSet, progress: Progress) -> None:
        """Give an encoder of the same towers its vectors of everything in a data set; the towers run where they must.

        An index, a search or a run of that encoder then finds every vector.
        """
        pictures: dict[str, tuple[Collection, str]] = {}
        texts: dict[str, str] = {}
        for key in sorted(dataset.collections):
            collection = dataset.collections[key]
            queries, docs = list(collection.all_queries()), list(collection.docs())
            references = [reference for item in (*queries, *docs) for reference in item.images]
            found = self.pipelines["image"].picture_keys(collection, references)
            pictures |= {content: (collection, reference) for reference, content in found.items()}
            words = [query.text.strip() for query in queries] + [doc.full_text for doc in docs]
            texts |= {text_key(text): text for text in words if text}
        self.encode(pictures, texts.values(), progress)
        self.project(pipeline, "image", pictures)
        self.project(pipeline, "text", texts)
