"""Where a passage holds the query's words, and the part of it that holds most of them. Escaping is the caller's."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

PASSAGE = 420
"""Characters of a passage that a card shows."""

_FUNCTION_WORDS = """
a about above after again against all also am an and any are as at be because been before being below between both but
by can could did do does doing down during each few for from further had has have having he her here hers him his how
i if in into is it its just may me might more most must my no nor not of off on once only or other our out over own s
same she should so some such t than that the their them then there these they this those through to too under until up
upon very was we were what when where which while who whom why will with within without would you your
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Function words of English, which say nothing about what a passage is about."""

# Each character can match in one way only, so there is nothing to go back for.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE = re.compile(r"[.!?;…。]['\"”’)\]]?\s+|\n\s*")


class _Match(NamedTuple):
    start: int
    end: int
    word: str


def marked(text: str, query_words: str) -> list[tuple[str, bool]]:
    """``text`` in pieces, True for those that are a word of the query; joined they are ``text`` again.

    Words are compared whole, by NFKC and casefold; a plural "s" and a possessive "'s" make no difference, stop words
    never match.
    """
    return _segments(text, 0, len(text), _matches(text, _keys(query_words)))


def snippet(text: str, query_words: str, length: int = PASSAGE) -> tuple[list[tuple[str, bool]], bool, bool]:
    """The part of ``text`` of at most ``length`` characters that holds most different words of the query.

    Of several the first; without any word of the query the beginning. It begins and ends at a sentence where there is
    one to begin or end at, else between words, else anywhere. Pieces as `marked` gives them, then whether something
    was cut before and after.
    """
    if length < 1:
        raise ValueError(f"length must be at least 1 character, not {length}.")
    matches = _matches(text, _keys(query_words))
    first, last = _extent(text)
    if last - first <= length:
        return _segments(text, first, last, matches), False, False
    low, high = _richest(matches, length) if matches else (first, first)
    start = _start(text, first, last, low, high, length)
    end = _end(text, last, start, high, length)
    return _segments(text, start, end, matches), start > first, end < last


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each word. Marks that combine with a letter belong to its word, and hold it together."""
    start = end = -1
    for found in _WORD.finditer(text):
        if start >= 0:
            end = _past_marks(text, end)
            if end == found.start():
                end = found.end()
                continue
            yield start, end
        start, end = found.span()
    if start >= 0:
        yield start, _past_marks(text, end)


def _past_marks(text: str, at: int) -> int:
    while at < len(text) and text[at] > "\u02ff" and unicodedata.category(text[at])[0] == "M":
        at += 1
    return at


def _key(word: str) -> str:
    """What two spellings of one word have in common; empty for a stop word."""
    key = word.lower() if word.isascii() else unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    key = key.removesuffix("'s")
    if key in STOP_WORDS:
        return ""
    return key[:-1] if len(key) > 3 and key[-1] == "s" and key[-2] != "s" else key


def _keys(query_words: str) -> frozenset[str]:
    return frozenset(_key(query_words[start:end]) for start, end in _words(query_words)) - {""}


def _matches(text: str, keys: frozenset[str]) -> list[_Match]:
    if not keys:
        return []
    found = ((start, end, _key(text[start:end])) for start, end in _words(text))
    return [_Match(*match) for match in found if match[2] in keys]


def _segments(text: str, start: int, end: int, matches: Sequence[_Match]) -> list[tuple[str, bool]]:
    inside = [m for m in matches if m.start < end and m.end > start]
    edges = [start, *(edge for m in inside for edge in (max(start, m.start), min(end, m.end))), end]
    pieces = [(text[a:b], bool(at % 2)) for at, (a, b) in enumerate(pairwise(edges))]
    return [piece for piece in pieces if piece[0]]


def _extent(text: str) -> tuple[int, int]:
    """Where the text begins and ends without white space around it."""
    first = len(text) - len(text.lstrip())
    return first, max(first, len(text.rstrip()))


def _richest(matches: Sequence[_Match], length: int) -> tuple[int, int]:
    """Start of the first and end of the last match of the first stretch with most different words."""
    inside: Counter[str] = Counter()
    best, left, where = 0, 0, (0, 0)
    for match in matches:
        inside[match.word] += 1
        while match.end - matches[left].start > length and matches[left] is not match:
            inside[matches[left].word] -= 1
            if not inside[matches[left].word]:
                del inside[matches[left].word]
            left += 1
        # Words at the left that come again, or are to come, only push the stretch back.
        while left < len(matches) and inside[matches[left].word] > 1:
            inside[matches[left].word] -= 1
            left += 1
        if len(inside) > best:
            best, where = len(inside), (matches[left].start, match.end)
    return where[0], min(where[1], where[0] + length)


def _start(text: str, first: int, last: int, low: int, high: int, length: int) -> int:
    """Where the part begins: the text itself, else the sentence nearest before ``low``, else a word."""
    if high - first <= length:
        return first
    earliest = high - length
    if last - earliest < length:  # the end of the text leaves room for more before
        earliest = last - length
    sentences = [earliest + m.end() for m in _SENTENCE.finditer(text[earliest : low + 1])]
    sentences = [at for at in sentences if at <= low]
    if sentences:
        return sentences[0] if last - sentences[0] <= length else sentences[-1]
    middle = max(earliest, min(low - (length - (high - low)) // 2, last - length))
    words = (at for at in range(middle, low) if text[at - 1].isspace() and not text[at].isspace())
    return next(words, low)


def _end(text: str, last: int, start: int, high: int, length: int) -> int:
    """Where the part ends: the text itself, else the last sentence that fills half of it, else a word."""
    latest = start + length
    if latest >= last:
        return last
    least = max(high, start + length // 2)
    found = _SENTENCE.finditer(text[start : latest + 1])
    sentences = [start + m.start() + len(m[0].rstrip()) for m in found]
    sentences = [at for at in sentences if least <= at <= latest]
    if sentences:
        return start + len(text[start : sentences[-1]].rstrip())
    words = (at for at in range(latest, max(high, start + 1) - 1, -1) if text[at].isspace())
    return start + len(text[start : next(words, latest)].rstrip())
