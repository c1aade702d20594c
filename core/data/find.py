"""Find queries of a pool by words: every word must occur in a query's text, id, domain or specialty."""

from __future__ import annotations

import random
import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.data.collection import Collection
from core.data.pool import Pool

MOST_BYTES = 256 * 2**20
"""Bytes of prepared text that `QueryTexts` keeps; one larger pool is kept alone."""

SEARCHED_FOR_PIECES = 4_000
"""Characters of a text in which `pieces` looks for words."""

LEAD = 16
"""Characters that `pieces` shows before a match that lies deeper in the text: in a narrow row it is still seen."""

_CLUSTER = re.compile(
    r".[\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u064b-\u065f\u0670\u1ab0-\u1aff\u20d0-\u20f0\ufe0f]*", re.S
)
"""A character with the marks that compose with it or sit on it."""


@dataclass(frozen=True, slots=True)
class FoundQuery:
    """A query in a list: ``text`` on one line, ``specialty`` empty where the data set names none."""

    collection: str
    id: str
    domain: str
    specialty: str
    text: str
    pictures: int
    has_judgements: bool


@dataclass(frozen=True, slots=True)
class Found:
    """``total`` of the pool's ``of`` queries match; ``rows`` are those asked for, in the pool's order."""

    of: int
    total: int
    rows: tuple[FoundQuery, ...]


def folded(text: str) -> str:
    """Text as it is compared: NFKC and case-folded."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


class QueryTexts:
    """The folded texts of recently searched pools, made once each; thread-safe, shared by all sessions."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[tuple, pa.ChunkedArray] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, pool: Pool) -> pa.ChunkedArray:
        """One folded string a query, in the pool's order: text, id, domain and specialty on lines of their own."""
        # Keys and domains count: a collection at the root is named by its folder, which is no part of `data_id`.
        key = (pool.data_id, pool.task, tuple((c.key, c.domain) for c in pool.collections))
        with self._lock:
            if key not in self._kept:
                chunks = [chunk for collection in pool.collections for chunk in _folded_chunks(collection)]
                self._kept[key] = pa.chunked_array(chunks, pa.large_string())
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(c.nbytes for c in self._kept.values()) > self._most_bytes:
                self._kept.popitem(last=False)
            return self._kept[key]


def _folded_chunks(collection: Collection) -> Iterator[pa.Array]:
    columns = [collection.queries.column(name).chunks for name in ("text", "id", "specialty")]
    for texts, ids, specialties in zip(*columns, strict=True):
        rows = zip(texts.to_pylist(), ids.to_pylist(), specialties.to_pylist(), strict=True)
        # No word holds white space, so none can match across two lines.
        lines = [
            folded(f"{text}\n{identity}\n{collection.domain}\n{specialty or ''}") for text, identity, specialty in rows
        ]
        yield pa.array(lines, pa.large_string())


def find_queries(pool: Pool, words: str, start: int, count: int, texts: QueryTexts) -> Found:
    """The queries of ``pool`` in which every word of ``words`` occurs, ``count`` of them from ``start`` (0-based).

    Case and Unicode compatibility forms do not matter; no words: all queries. ValueError for a negative ``start`` or
    ``count``.
    """
    if start < 0 or count < 0:
        raise ValueError(f"start {start} and count {count} cannot be negative")
    of = sum(len(c.queries) for c in pool.collections)
    wanted = sorted(set(folded(words).split()), key=len, reverse=True)
    if not wanted:
        places: Sequence[int] | np.ndarray = range(of)
    elif any("\ud800" <= sign <= "\udfff" for word in wanted for sign in word):
        places = range(0)  # half a character, as a broken browser may send: no stored text has one
    else:
        places = _matching(texts.of(pool), wanted)
    return Found(of, len(places), tuple(_row(pool, int(at)) for at in places[start : start + count]))


def random_query(pool: Pool, chance: random.Random) -> FoundQuery | None:
    """Any query of ``pool``, all equally likely; None where there are none."""
    of = sum(len(c.queries) for c in pool.collections)
    return _row(pool, chance.randrange(of)) if of else None


def pieces(text: str, words: str, most: int | None = None) -> list[tuple[str, bool]]:
    """``text`` cut into (piece, whether a word matched there); ``most``: about so many characters from shortly before
    the first match on, with "…" where something was left out.

    A match that begins or ends inside a composed character marks the whole character.
    """
    text = text[:SEARCHED_FOR_PIECES]
    clusters, plain = _clusters(text)
    owner = np.repeat(np.arange(len(clusters)), [len(p) for p in plain]) if clusters else np.zeros(0, int)
    joined, marked = "".join(plain), np.zeros(len(clusters), bool)
    for word in set(folded(words).split()):
        at = joined.find(word)
        while at >= 0:
            marked[owner[at : at + len(word)]] = True
            at = joined.find(word, at + 1)
    first = int(np.argmax(marked)) if marked.any() else 0
    begin = 0 if most is None or first < LEAD * 2 else first - LEAD
    most = len(clusters) if most is None else most
    while begin and begin < first and not clusters[begin - 1].isspace():  # not within a word
        begin += 1
    result: list[tuple[str, bool]] = [("…", False)] if begin else []
    for cluster, mark in zip(clusters[begin : begin + most], marked[begin : begin + most].tolist(), strict=True):
        if result and result[-1][1] == mark:
            result[-1] = (result[-1][0] + cluster, mark)
        else:
            result.append((cluster, mark))
    return [*result, ("…", False)] if begin + most < len(clusters) else result


def _clusters(text: str) -> tuple[Sequence[str], Sequence[str]]:
    """Characters with their marks, as they are and folded."""
    if text.isascii():
        return text, text.lower()
    clusters = _CLUSTER.findall(text)
    return clusters, [folded(cluster) for cluster in clusters]


def _matching(column: pa.ChunkedArray, wanted: Sequence[str]) -> np.ndarray:
    """Positions (int64, ascending) of the strings that contain all of ``wanted``."""
    passes: np.ndarray | None = None
    for word in wanted:
        # RE2 finds a literal about four times faster than Arrow's own `match_substring`.
        inside = pc.match_substring_regex(column, re.escape(word)).to_numpy()
        passes = inside if passes is None else passes & inside
    return np.flatnonzero(passes)


def _row(pool: Pool, at: int) -> FoundQuery:
    """The query at position ``at`` of the pool: collections in order, then file order."""
    for collection in pool.collections:
        if at < len(collection.queries):
            break
        at -= len(collection.queries)
    row = collection.queries.row(at)
    text = " ".join(row["text"].split())
    judged = bool(collection.qrels.get(row["id"]))
    specialty = row["specialty"] or ""
    return FoundQuery(collection.key, row["id"], collection.domain, specialty, text, len(row["images"]), judged)
