"""Holes in the judgements: what a run found that nobody judged, and what of it looks like a relevant document.

A document without a judgement counts as not relevant in most measures. Where it is the twin of a relevant one, by its
words or by its pictures, it is listed as a *possible* false negative; that is a finding to look at, no judgement.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.data.collection import Collection
from core.evaluate.run import Rankings, document
from core.media.phash import NEAR, Hashes, distance
from core.media.picture import PictureError
from core.records import Doc

K = 10

POSITIVES_ONLY = (
    "N/A: this collection lists only relevant documents, so every other document is unjudged and counting them says "
    "nothing"
)


@dataclass(frozen=True, slots=True)
class PossibleFalseNegative:
    """An unjudged document among the first k that looks like one that is relevant for the query; ids are the data's.

    ``rank`` is 1-based, ``relevant`` the id of the twin, ``why`` what is alike.
    """

    collection: str
    query: str
    document: str
    rank: int
    relevant: str
    why: str


@dataclass(frozen=True, slots=True)
class Holes:
    """``unjudged[query_id]``: (rank, document id) of the unjudged among the first k, for every judged query that has
    a ranking; None where ``reason`` says why. ``unreadable`` pictures could not be compared.
    """

    collection: str
    unjudged: Mapping[str, list[tuple[int, str]]] | None
    reason: str
    possible: tuple[PossibleFalseNegative, ...]
    unreadable: int


def holes(
    rankings: Rankings, collection: Collection, hashes: Hashes, k: int = K, ignore_identical_ids: bool = False
) -> Holes:
    """The holes among the first ``k`` documents of each judged query of a collection's run.

    ``ignore_identical_ids`` is the data set's: a query and a document of one id are then one thing, and the query's
    words are the document's caption. Unreadable and blank pictures are like none.
    """
    looks = Looks({collection.key: collection}, hashes, ignore_identical_ids)
    unjudged: dict[str, list[tuple[int, str]]] = {}
    possible = []
    for trec, ranking in rankings.items():
        query = document(trec, collection.key)[1]
        grades = collection.qrels.get(query)
        if not grades:
            continue
        first = enumerate((document(doc, collection.key)[1] for doc, _ in ranking[:k]), 1)
        unjudged[query] = [(rank, doc) for rank, doc in first if doc not in grades]
        relevant = sorted((doc for doc, grade in grades.items() if grade > 0), key=lambda d: (-grades[d], d))
        for rank, doc in unjudged[query]:
            mine = collection.key, doc
            twin = next(((d, why) for d in relevant if (why := looks.alike(mine, (collection.key, d)))), None)
            if twin:
                possible.append(PossibleFalseNegative(collection.key, query, doc, rank, *twin))
    only = collection.positives_only
    reason = POSITIVES_ONLY if only else ""
    return Holes(collection.key, None if only else unjudged, reason, tuple(possible), len(looks.unreadable))


def same_words(text: str) -> str:
    """``text`` as it is compared: NFKC, case folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@dataclass
class Looks:
    """Words and picture hashes of documents, named by (collection, id), made once each.

    ``unreadable`` gathers the pictures that could not be compared.
    """

    collections: Mapping[str, Collection]
    hashes: Hashes
    ignore_identical_ids: bool
    unreadable: set[tuple[str, str]] = field(default_factory=set)
    _known: dict[tuple[str, str], tuple[str, str, list[int]]] = field(default_factory=dict)

    def alike(self, a: tuple[str, str], b: tuple[str, str]) -> str:
        """What two documents have in common, "" for nothing."""
        (text_a, caption_a, hashes_a), (text_b, caption_b, hashes_b) = self._of(a), self._of(b)
        if text_a and text_a == text_b:
            return "the same text"
        if caption_a and caption_a == caption_b:
            return "the same caption"
        nearest = min((distance(x, y) for x in hashes_a for y in hashes_b), default=NEAR + 1)
        return f"pictures look alike ({nearest} of 64 bits differ)" if nearest <= NEAR else ""

    def _of(self, key: tuple[str, str]) -> tuple[str, str, list[int]]:
        if key not in self._known:
            collection, identity = self.collections[key[0]], key[1]
            doc = collection.doc(identity)
            caption = ""
            if self.ignore_identical_ids and collection.queries.find(identity) is not None:
                caption = same_words(collection.query(identity).text)
            self._known[key] = same_words(doc.full_text), caption, self._pictures(collection, doc)
        return self._known[key]

    def _pictures(self, collection: Collection, doc: Doc) -> list[int]:
        found = []
        for reference in doc.images:
            try:
                value = self.hashes.of(collection.picture(reference))
            except PictureError:
                self.unreadable.add((collection.key, reference))
                continue
            if value is not None:
                found.append(value)
        return found
