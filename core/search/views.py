"""What a screen needs of a hit, fetched once: its document, its pictures small, its facets, its judgement in words."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from core.data.collection import Collection
from core.data.dataset import DataSet
from core.media.picture import PictureError
from core.media.thumbnails import data_uri, thumbnail
from core.records import Hit, Query, SearchResult
from core.store.workspace import Workspace

FACETS = ("specialty", "modality", "plane")


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit ready to draw. ``picture`` is a ``data:`` address or None; ``problem`` says why a picture is missing.

    ``judgement`` is ``relevant-2``, ``relevant-1``, ``not-relevant``, ``unjudged``, ``not-listed``, or None where
    the query is not one of the data set's.
    """

    hit: Hit
    title: str
    text: str
    picture: str | None
    pictures: int
    problem: str
    domain: str
    facets: tuple[str, ...]
    judgement: str | None


def shown(dataset: DataSet, result: SearchResult, query: Query | None, workspace: Workspace) -> list[Shown]:
    """The hits of a result with their documents. ``query``: the data set's own query whose judgements mark them."""
    positives_only = dataset.collections[query.collection].positives_only if query is not None else None
    return [_shown(dataset.collections[hit.collection], hit, positives_only, workspace) for hit in result.hits]


def _shown(collection: Collection, hit: Hit, positives_only: bool | None, workspace: Workspace) -> Shown:
    doc = collection.doc(hit.doc_id)
    picture, problem = None, ""
    if doc.images:
        try:
            picture = small_picture(collection, doc.images[0], workspace)
        except PictureError as error:
            problem = str(error)
    facets = tuple(str(doc.meta[name]) for name in FACETS if doc.meta.get(name))
    grade = judgement(hit.relevance, positives_only) if positives_only is not None else None
    return Shown(hit, doc.title, doc.text, picture, len(doc.images), problem, collection.domain, facets, grade)


def small_picture(collection: Collection, reference: str, workspace: Workspace) -> str:
    """A picture of the data set as a ``data:`` address, at most 256 px; raises `PictureError`."""
    data = collection.picture(reference)
    return data_uri(thumbnail(data, hashlib.sha256(data).hexdigest(), workspace.path("thumbnails")))


def judgement(grade: int | None, positives_only: bool) -> str:
    """The name of a judgement; where only positives are listed, absence says nothing."""
    if grade is None:
        return "not-listed" if positives_only else "unjudged"
    return f"relevant-{min(grade, 2)}" if grade > 0 else "not-relevant"
