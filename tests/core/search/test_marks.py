"""Marked words and snippets against slow plain searches, and on texts made to be slow."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.search.marks import marked, snippet


def words_marked(text: str, query: str) -> list[str]:
    return [piece for piece, mark in marked(text, query) if mark]


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("A mass in the left lung.", "lung mass", ["mass", "lung"]),
        ("Lungs clear; LUNG fields", "lung", ["Lungs", "LUNG"]),
        ("one lesion", "lesions", ["lesion"]),
        ("massive mass", "mass", ["mass"]),
        ("the pus and the gas", "the and of", []),
        ("Crohn's, Crohn’s and Crohn disease", "crohn's", ["Crohn's", "Crohn’s", "Crohn"]),
        ("X-ray at T1, T10", "x-ray T1", ["X", "ray", "T1"]),
        ("cafe\u0301 caf\u00e9", "caf\u00c9", ["cafe\u0301", "caf\u00e9"]),
        ("STRASSE stra\u00dfe", "Stra\u00dfe", ["STRASSE", "stra\u00dfe"]),
        ("ΟΔΟΣ οδός", "οδος", ["ΟΔΟΣ"]),
        ("опухоль печени", "Опухоль", ["опухоль"]),
        ("हिन्दी पाठ", "हिन्दी", ["हिन्दी"]),
        ("snake_case", "case", ["case"]),
        ("anything", "", []),
        ("", "lung", []),
    ],
)
def test_words_are_found(text, query, found):
    assert words_marked(text, query) == found


VOCABULARY = [
    "lung",
    "Lungs",
    "mass",
    "the",
    "caf\u00e9",
    "cafe\u0301",
    "x",
    "\u0301",
    ".",
    " ",
    "\n",
    "  ",
    "<b>",
    "_",
]
texts = st.lists(st.sampled_from(VOCABULARY), max_size=60).map("".join) | st.text(max_size=80)


@given(texts, texts)
def test_pieces_are_the_text_and_never_empty(text, query):
    pieces = marked(text, query)
    assert "".join(piece for piece, _ in pieces) == text
    assert all(piece for piece, _ in pieces)


@settings(max_examples=300)
@given(texts, texts, st.integers(1, 60))
def test_a_snippet_is_a_part_of_the_text_and_says_what_was_cut(text, query, length):
    pieces, before, after = snippet(text, query, length)
    part = "".join(piece for piece, _ in pieces)
    assert len(part) <= length and part in text
    whole = text.strip()
    assert (part == whole) == (not before and not after)
    assert bool(part) == bool(whole)
    if not before:
        assert whole.startswith(part)
    if not after:
        assert whole.endswith(part)


def distinct(part: str, wanted: set[str]) -> int:
    return len(wanted & {{"lungs": "lung"}.get(word, word) for word in re.findall("[a-z]+", part)})


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(["lung", "lungs", "mass", "rib", "node", "filler", "end."]), max_size=80),
    st.integers(8, 90),
)
def test_no_part_of_that_length_has_more_words_of_the_query(words, length):
    text, wanted = " ".join(words), {"lung", "mass", "rib", "node"}
    mine = "".join(piece for piece, _ in snippet(text, "lung mass rib nodes", length)[0])
    starts = [m.start() for m in re.finditer(r"\S+", text)]
    ends = [m.end() for m in re.finditer(r"\S+", text)]
    best = max((distinct(text[a:b], wanted) for a in starts for b in ends if 0 < b - a <= length), default=0)
    assert distinct(mine, wanted) == best


def test_a_snippet_begins_and_ends_with_sentences():
    filler = "Nothing of note is said here at all. " * 20
    text = f"{filler}The lung shows a mass. It has grown since. {filler}"
    pieces, before, after = snippet(text, "lung mass", 120)
    part = "".join(piece for piece, _ in pieces)
    assert part.startswith("The lung shows a mass. It has grown since.") and part.endswith(".")
    assert before and after and len(part) <= 120
    assert [p for p, mark in pieces if mark] == ["lung", "mass"]


def test_without_a_sentence_the_cuts_are_between_words():
    text = "word " * 100 + "lung " + "word " * 100
    pieces, before, after = snippet(text, "lung", 52)
    part = "".join(piece for piece, _ in pieces)
    assert before and after
    assert set(part.split()) == {"word", "lung"} and 40 <= len(part) <= 52
    at = part.index("lung")
    assert at > 10 and len(part) - at > 10


def test_without_a_word_of_the_query_it_is_the_beginning():
    text = "The first sentence. " + "More of it follows here. " * 30
    pieces, before, after = snippet(text, "lung", 100)
    assert pieces[0][0].startswith("The first sentence.") and not before and after
    assert pieces[0][0].endswith(".")


def test_the_end_of_a_text_is_shown_with_as_much_before_as_fits():
    text = "word " * 100 + "lung mass"
    part, before, after = snippet(text, "lung mass", 60)
    assert before and not after
    assert 50 <= len("".join(p for p, _ in part)) <= 60


def test_a_word_longer_than_the_snippet_is_cut():
    pieces, before, after = snippet(f"start {'x' * 50} end", "x" * 50, 20)
    assert pieces == [("x" * 20, True)] and before and after


def test_a_length_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        snippet("text", "text", 0)


@pytest.mark.parametrize(
    "text",
    [
        "lung " * 200_000,
        "x" * 1_000_000,
        " " * 1_000_000 + "lung",
        "a'" * 500_000,
        "\u0301" * 1_000_000,
        "e\u0301" * 500_000,
        ". " * 500_000,
        "\n" * 1_000_000 + ".",
        "mass lung filler " * 60_000,
    ],
    ids=range(9),
)
def test_a_megabyte_is_marked_and_cut(text):
    """Each takes about a second; what goes back for another try at every place would take days."""
    assert "".join(piece for piece, _ in marked(text, "lung mass")) == text
    assert len("".join(piece for piece, _ in snippet(text, "lung mass")[0])) <= 420
