"""What a screen needs of a search, fetched once: cards with their documents, small pictures, facets, judgements."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from core.data.cases import ALONE
from core.data.collection import Collection
from core.data.dataset import DataSet
from core.media.picture import PictureError
from core.media.thumbnails import data_uri, thumbnail
from core.records import Hit, Query
from core.search.cases import CaseCard, CaseResult
from core.search.marks import snippet
from core.store.workspace import Workspace

FACETS = ("specialty", "modality", "plane")

Segments = tuple[tuple[str, bool], ...]
"""Pieces of a text; True for those that are a word of the query."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A card ready to draw: its best hit, and what else of the case was found.

    ``picture`` is a ``data:`` address or None; ``problem`` says why a picture is missing. ``passage`` is the part of
    the text with most words of the query, cut ``before`` or ``after``. ``judgement`` is the best of the card's hits,
    ``relevant-2``, ``relevant-1``, ``not-relevant``, ``unjudged``, ``not-listed``, or None where the query is not one
    of the data set's; ``judged_rank`` is the rank of the hit it belongs to. ``case`` is the case's name, "" for a
    document without one; ``more``: how many further contents of the case this search could return.
    """

    rank: int
    hit: Hit
    case: str
    title: str
    passage: Segments
    before: bool
    after: bool
    picture: str | None
    pictures: int
    problem: str
    domain: str
    facets: tuple[str, ...]
    judgement: str | None
    judged_rank: int | None
    more: int
    near: int


def shown(dataset: DataSet, result: CaseResult, query: Query | None, words: str, workspace: Workspace) -> list[Shown]:
    """The cards of a result. ``query``: the data set's own query whose judgements mark them; ``words`` are marked."""
    positives_only = dataset.collections[query.collection].positives_only if query is not None else None
    return [_shown(dataset.collections[c.best.collection], c, positives_only, words, workspace) for c in result.cards]


def _shown(
    collection: Collection, card: CaseCard, positives_only: bool | None, words: str, workspace: Workspace
) -> Shown:
    hit = card.best
    doc = collection.doc(hit.doc_id)
    picture, problem = None, ""
    if doc.images:
        try:
            picture = small_picture(collection, doc.images[0], workspace)
        except PictureError as error:
            problem = str(error)
    segments, before, after = snippet(doc.text, words)
    grade = judgement(card.best_grade, positives_only) if positives_only is not None else None
    return Shown(
        rank=card.rank,
        hit=hit,
        case="" if card.case.startswith(ALONE) else card.case.partition(":")[2],
        title=doc.title,
        passage=tuple(segments),
        before=before,
        after=after,
        picture=picture,
        pictures=len(doc.images),
        problem=problem,
        domain=collection.domain,
        facets=tuple(str(doc.meta[name]) for name in FACETS if doc.meta.get(name)),
        judgement=grade,
        judged_rank=card.best_grade_rank,
        more=card.documents - 1,
        near=len(card.near),
    )


def small_picture(collection: Collection, reference: str, workspace: Workspace) -> str:
    """A picture of the data set as a ``data:`` address, at most 256 px; raises `PictureError`."""
    data = collection.picture(reference)
    return data_uri(thumbnail(data, hashlib.sha256(data).hexdigest(), workspace.path("thumbnails")))


def judgement(grade: int | None, positives_only: bool) -> str:
    """The name of a judgement; where only positives are listed, absence says nothing."""
    if grade is None:
        return "not-listed" if positives_only else "unjudged"
    return f"relevant-{min(grade, 2)}" if grade > 0 else "not-relevant"
