"""Queries found by words, against a plain loop over the same queries."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data.dataset import open_dataset
from core.data.find import QueryTexts, find_queries, folded, pieces, random_query

CAPTIONS = (
    "Ring-enhancing lesion of the LEFT lobe",
    "Hämatom, Straße 12 (a+b) [c] .* \\d ^$",
    "ﬁbrous dysplasia, œdème, Å and Ａ",
    "line one\nline\ttwo",
    "",
    "نزيف داخل الجمجمة 🧠 👩🏽‍⚕️",
    "e\u0301tude et étude",
    "</script>{{x}}${x}",
)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    from core.store.workspace import open_workspace

    return _written(tmp_path_factory.mktemp("find"), open_workspace)


def _written(base, open_workspace):
    import json

    for domain, specialty in (("Head", "Brain and Neuro"), ("Thorax", None)):
        folder = base / "set" / "query_to_image" / domain
        (folder / "qrels").mkdir(parents=True)
        queries = [
            {
                "_id": f"q{i}",
                "caption": text,
                "image_path": ["a.png"] * (i % 3),
                "meta": {"specialty": specialty} if specialty else {},
            }
            for i, text in enumerate(CAPTIONS)
            if text or i % 3
        ]
        (folder / "queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in queries))
        (folder / "corpus.jsonl").write_text(json.dumps({"_id": "d0", "text": "a document"}) + "\n")
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td0\t0\n")
    return open_dataset(base / "set", open_workspace(str(base / "workspace"))).pool("query_to_image")


def oracle(pool, words: str) -> list[tuple[str, str]]:
    found = []
    for collection in pool.collections:
        for query in collection.all_queries():
            fields = [query.text, query.id, collection.domain, query.meta.get("specialty", "")]
            if all(any(word in folded(field) for field in fields) for word in folded(words).split()):
                found.append((query.collection, query.id))
    return found


def keys(found) -> list[tuple[str, str]]:
    return [(row.collection, row.id) for row in found.rows]


@pytest.mark.parametrize(
    "words",
    ["", "  ", "lesion", "LESION left", "head", "neuro ring", "q1", "strasse", "STRAßE", "fibrous", "å", "two one"],
)
def test_every_word_must_occur(pool, words):
    check(pool, words)


@pytest.mark.parametrize(
    "words",
    ["étude", "e\u0301tude", "(a+b)", ".*", "\\d", "\\", "[", "^$", "🧠", "نزيف", "thorax q1 a", "none of these"],
)
def test_signs_and_scripts_are_letters_too(pool, words):
    check(pool, words)


@pytest.mark.parametrize("words", ["one\nline", "</script>", "{{x}}", "\\E", "\x00", "\ud800"])
def test_no_words_are_special(pool, words):
    check(pool, words)


def check(pool, words):
    texts = QueryTexts()
    expected = oracle(pool, words)
    found = find_queries(pool, words, 0, 100, texts)
    assert keys(found) == expected and found.total == len(expected)
    assert found.of == len(oracle(pool, ""))


ALPHABET = sorted(set("".join(CAPTIONS) + "ﬁÅ ß\u0301ＡqQ0") | {" "})


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from(ALPHABET), max_size=6), st.integers(0, 20), st.integers(0, 20))
def test_any_words_and_any_part_of_the_list(pool, words, start, count):
    expected = oracle(pool, words)
    found = find_queries(pool, words, start, count, TEXTS)
    assert (keys(found), found.total) == (expected[start : start + count], len(expected))


TEXTS = QueryTexts()


def test_what_a_row_says(pool):
    first, second, *_ = find_queries(pool, "", 0, 100, QueryTexts()).rows
    assert (first.domain, first.specialty, first.pictures, first.has_judgements) == ("Head", "Brain and Neuro", 0, True)
    assert (second.pictures, second.has_judgements) == (1, True)
    fourth = find_queries(pool, "head two", 0, 1, QueryTexts()).rows[0]
    assert fourth.text == "line one line two" and not fourth.has_judgements
    assert find_queries(pool, "thorax", 0, 1, QueryTexts()).rows[0].specialty == ""


@pytest.mark.parametrize(("start", "count"), [(-1, 5), (0, -1)])
def test_a_negative_part_is_refused(pool, start, count):
    with pytest.raises(ValueError, match="negative"):
        find_queries(pool, "", start, count, QueryTexts())


def test_texts_are_folded_once_and_few_are_kept(pool, toy, workspace):
    texts = QueryTexts(most_bytes=1)
    first = texts.of(pool)
    assert texts.of(pool) is first
    other = open_dataset(toy, workspace).pool("query_to_image")
    assert len(texts.of(other)) == 4
    assert texts.of(pool) is not first, "the older pool was dropped"
    roomy = QueryTexts()
    first = roomy.of(pool)
    roomy.of(other)
    assert roomy.of(pool) is first


def test_a_random_query_is_any_of_them(pool):
    drawn = {(q.collection, q.id) for q in (random_query(pool, random.Random(seed)) for seed in range(200))}
    assert drawn == set(oracle(pool, ""))


def test_a_pool_without_queries_has_no_random_one(tmp_path, workspace, collection_writer):
    collection_writer(tmp_path / "bare" / "Head", [], [{"_id": "d", "text": "a document"}], [])
    bare = open_dataset(tmp_path / "bare", workspace).pool("retrieval")
    assert random_query(bare, random.Random(0)) is None
    for words in ("", "document"):
        found = find_queries(bare, words, 0, 20, QueryTexts())
        assert (found.of, found.total, found.rows) == (0, 0, ())


@pytest.mark.parametrize(
    ("text", "words", "marked"),
    [
        ("Left lobe", "LEFT", ["Left"]),
        ("Straße", "strasse", ["Straße"]),
        ("Straße", "s", ["S", "ß"]),
        ("lobelobe lob", "lobe", ["lobelobe"]),
        ("aaa", "aa", ["aaa"]),
        ("e\u0301tude", "étude", ["e\u0301tude"]),
        ("ﬁbre", "i", ["ﬁ"]),
        ("🧠 scan", "🧠", ["🧠"]),
        ("nothing here", "lung", []),
        ("", "lung", []),
        ("anything", "", []),
    ],
)
def test_pieces_mark_what_matched(text, words, marked):
    cut = pieces(text, words, 100)
    assert [piece for piece, mark in cut if mark] == marked
    assert "".join(piece for piece, _ in cut) == text


def test_a_deep_match_is_brought_into_view():
    text = "word " * 50 + "needle " + "word " * 50
    cut = pieces(text, "needle", 60)
    shown = "".join(piece for piece, _ in cut)
    assert ("needle", True) in cut and shown.startswith("…word") and shown.endswith("…")
    assert shown.index("needle") <= 17 and len(shown) == 62
    assert "".join(piece for piece, _ in pieces(text, "needle")) == text


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.sampled_from(ALPHABET), max_size=80), st.text(st.sampled_from(ALPHABET), max_size=3), st.integers(1, 50)
)
def test_pieces_are_a_part_of_the_text(text, words, most):
    cut = pieces(text, words, most)
    assert "".join(piece for piece, _ in cut).removeprefix("…").removesuffix("…") in text
    assert len(pieces(text, "", 1000)) <= 1, "no words, no marks"


@settings(max_examples=150, deadline=None)
@given(st.text("abAB ", max_size=60), st.text("abB ", max_size=5))
def test_pieces_mark_every_place_of_every_word(text, words):
    marked = [False] * len(text)
    for word in words.lower().split():
        for at in range(len(text)):
            if text[at : at + len(word)].lower() == word:
                marked[at : at + len(word)] = [True] * len(word)
    shown = [(letter, mark) for piece, mark in pieces(text, words, 60) for letter in piece]
    whole = list(zip(text, marked, strict=True))
    if shown[:1] == [("…", False)]:
        assert shown[1:] == whole[len(whole) - len(shown) + 1 :] and any(marked)
    else:
        assert shown == whole
