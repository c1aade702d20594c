"""Hits grouped by case: one card a case, near-identical pictures folded into the first card that shows them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from core.data.cases import Cases
from core.data.dataset import DataSet, silent
from core.embed.pipeline import Progress
from core.media.phash import NEAR, Hashes, distance
from core.media.picture import PictureError, open_picture
from core.records import Hit, QueryError, SearchResult
from core.search.compose import ComposedQuery
from core.search.searcher import MAX_K, MAX_WORDS, Asked, Searcher

DEEPER = 2
"""A search that leaves cards empty goes on with this many times as many documents; the first one starts so, too."""

Key = tuple[str, str]
"""Collection and id of a document."""


@dataclass(frozen=True, slots=True)
class CaseCard:
    """One case among the hits, or one document where hits are not grouped.

    ``rank``: number of the card, 1-based; a card in ``near`` has that of the card it is folded into. ``best``: the
    first hit of the case, ``others`` the further ones among what was retrieved; their ``rank`` is that of the
    document. ``documents``: how many different contents of the case this search could return. ``best_grade``: the
    best judgement among ``best`` and ``others``, None where none of them is judged, and ``best_grade_rank`` the rank
    of the first of them with it. ``near``: later cards whose best picture looks the same as that of this one.
    """

    rank: int
    case: str
    best: Hit
    others: tuple[Hit, ...]
    documents: int
    best_grade: int | None
    best_grade_rank: int | None
    near: tuple[CaseCard, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseResult:
    """``cards``: at most as many as asked for. ``result``: the search behind them, with every hit it retrieved.
    ``folded``: cards that stand in another one's ``near``; ``retrieved``: documents looked through."""

    cards: tuple[CaseCard, ...]
    result: SearchResult
    folded: int
    retrieved: int


def search_cases(
    searcher: Searcher,
    asked: Asked,
    cases: Cases,
    hashes: Hashes,
    *,
    fold: bool = True,
    by_case: bool = True,
    progress: Progress = silent,
) -> CaseResult:
    """Search deeper until ``asked.k`` cards are filled or everything is retrieved; a note says where `MAX_K` ended it.

    Cards stand in the order of their best hits. ``fold``: a card whose best picture differs by at most `NEAR` bits
    from that of an earlier card is put into it instead of taking a place. The query is encoded once. Raises
    QueryError like `Searcher.search`.
    """
    started = time.perf_counter()
    if not 1 <= asked.k <= MAX_K:
        raise QueryError(f"k is {asked.k}; it must lie between 1 and {MAX_K}.")
    searcher.pool.mask(asked.filters)  # a filter that does not exist is refused before anything is encoded
    query, notes = searcher.compose(asked, progress)
    found = cards_of(searcher, query, asked, cases, hashes, fold=fold, by_case=by_case, progress=progress)
    result = found.result
    result = replace(result, notes=(*notes, *result.notes), seconds=time.perf_counter() - started)
    return replace(found, result=result)


def cards_of(
    searcher: Searcher,
    query: ComposedQuery,
    asked: Asked,
    cases: Cases,
    hashes: Hashes,
    *,
    fold: bool = True,
    by_case: bool = True,
    progress: Progress = silent,
) -> CaseResult:
    """`search_cases` for a query that is composed already."""
    started, notes = time.perf_counter(), ()
    groups = _Groups(searcher, asked, cases, by_case)
    look = _Look(searcher, hashes) if fold else None
    depth = DEEPER * asked.k if by_case or fold else asked.k
    while True:
        depth = min(MAX_K, depth)
        progress("Searching", 0, 0)
        result = searcher.find(query, replace(asked, k=depth))
        complete = len(result.hits) < depth
        cards, folded = _cards(result.hits, asked.k, groups, look)
        if len(cards) == asked.k or complete or depth == MAX_K:
            break
        depth *= DEEPER
    if len(cards) < asked.k and not complete:
        notes = (f"Only the first {len(result.hits):,} documents were looked through; they fill no more cards.",)
    result = replace(result, notes=notes, seconds=time.perf_counter() - started)
    return CaseResult(tuple(cards), result, folded, len(result.hits))


def like(searcher: Searcher, collection: str, identity: str, progress: Progress = silent) -> Asked:
    """The query that a document of the pool makes: its pictures and words, with the model's default weight.

    The document itself is no hit of it. Words beyond what a query may have are left out. Raises QueryError where
    there is no such document, `PictureError` where one of its pictures cannot be read.
    """
    if searcher.pool.row_of(collection, identity) is None:
        raise QueryError("This document is not in the pool that is searched. Search again.")
    text, images = as_query(searcher.dataset, collection, identity, progress)
    return Asked(text, tuple(images), without=frozenset({(collection, identity)}))


def as_query(
    dataset: DataSet, collection: str, identity: str, progress: Progress = silent
) -> tuple[str, list[Image.Image]]:
    """Words (at most `MAX_WORDS` characters) and pictures of a document, to ask with.

    QueryError where there is no such document, `PictureError` for a picture that cannot be read.
    """
    try:
        member = dataset.collections[collection]
        doc = member.doc(identity)
    except KeyError:
        raise QueryError("This document is not in the data set. Search again.") from None
    images = []
    for at, reference in enumerate(doc.images):
        progress("Reading the pictures of the document", at, len(doc.images))
        images.append(open_picture(member.picture(reference)).image)
    return doc.full_text[:MAX_WORDS], images


def _cards(hits: Sequence[Hit], k: int, groups: _Groups, look: _Look | None) -> tuple[list[CaseCard], int]:
    """At most k unfolded cards from ranked hits, and how many were folded into them."""
    members: dict[int, list[Hit]] = {}
    for hit in hits:
        members.setdefault(groups.of(hit), []).append(hit)
    shown: list[tuple[CaseCard, int | None]] = []
    near: dict[int, list[CaseCard]] = {}
    for found in members.values():  # in the order of first hits
        if len(shown) == k:
            break
        picture = look.of(found[0]) if look is not None else None
        leader = next((card.rank for card, other in shown if _same(picture, other)), None)
        if leader is not None:
            near.setdefault(leader, []).append(_card(leader, found, groups))
        else:
            shown.append((_card(len(shown) + 1, found, groups), picture))
    cards = [replace(card, near=tuple(near.get(card.rank, ()))) for card, _ in shown]
    return cards, sum(map(len, near.values()))


def _card(rank: int, found: Sequence[Hit], groups: _Groups) -> CaseCard:
    best = max((h.relevance for h in found if h.relevance is not None), default=None)
    first = None if best is None else next(h.rank for h in found if h.relevance == best)
    case, documents = groups.case(found[0]), groups.count(found[0])
    return CaseCard(rank, case, found[0], tuple(found[1:]), documents, best, first)


def _same(a: int | None, b: int | None) -> bool:
    return a is not None and b is not None and distance(a, b) <= NEAR


class _Look:
    """Perceptual hashes of the first pictures of hits, each asked for once a search."""

    def __init__(self, searcher: Searcher, hashes: Hashes) -> None:
        self._searcher, self._hashes = searcher, hashes
        self._known: dict[Key, int | None] = {}

    def of(self, hit: Hit) -> int | None:
        """None without a picture, and for a blank or an unreadable one."""
        key = (hit.collection, hit.doc_id)
        if key not in self._known:
            self._known[key] = self._hash(*key)
        return self._known[key]

    def _hash(self, key: str, identity: str) -> int | None:
        collection = self._searcher.dataset.collections[key]
        images = collection.doc(identity).images
        try:
            return self._hashes.of(collection.picture(images[0])) if images else None
        except PictureError:
            return None  # the card says what is wrong with it


class _Groups:
    """The group of each hit (its case, or itself alone) and how many contents of a group this search could return."""

    def __init__(self, searcher: Searcher, asked: Asked, cases: Cases, by_case: bool) -> None:
        self._pool, self._cases = searcher.pool, cases
        self._case_of_row = cases.rows(self._pool)
        self._of_row = self._case_of_row if by_case else np.arange(len(self._pool))
        rows = searcher.permitted(asked)
        self._counts = np.bincount(self._of_row[rows[rows >= 0]], minlength=int(self._of_row.max(initial=0)) + 1)

    def of(self, hit: Hit) -> int:
        """The number of the hit's group."""
        return int(self._of_row[self._row(hit)])

    def case(self, hit: Hit) -> str:
        """The name of the hit's case, also where hits are not grouped."""
        return self._cases.name(int(self._case_of_row[self._row(hit)]))

    def count(self, hit: Hit) -> int:
        """How many different contents the hit's group could give."""
        return int(self._counts[self.of(hit)])

    def _row(self, hit: Hit) -> int:
        row = self._pool.row_of(hit.collection, hit.doc_id)
        assert row is not None, "a hit is a document of its pool"
        return row
