"""Fusions against plain loops."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.search.fuse import rrf, zsum

scores = st.integers(-50, 50).map(lambda n: n / 10)
rankings = st.dictionaries(st.sampled_from("abcdefgh"), scores, max_size=8).map(
    lambda found: sorted(found.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)
)


@given(st.lists(rankings, min_size=1, max_size=3))
def test_rrf_adds_reciprocal_ranks(lists) -> None:
    expected: dict[str, float] = {}
    for ranking in lists:
        for place in range(len(ranking)):
            expected[ranking[place][0]] = expected.get(ranking[place][0], 0) + 1 / (60 + place + 1)
    assert rrf(lists) == pytest.approx(expected)


@given(rankings, rankings, st.sampled_from([None, -6.0]), st.sampled_from([None, -6.0]))
def test_zsum_standardises_over_all_documents_of_either(a, b, floor_a, floor_b) -> None:
    docs = {doc for doc, _ in (*a, *b)}
    expected = dict.fromkeys(docs, 0.0)
    for ranking, floor in ((a, floor_a), (b, floor_b)):
        if not ranking:
            continue
        given_scores = dict(ranking)
        least = min(given_scores.values()) if floor is None else floor
        full = {doc: given_scores.get(doc, least) for doc in docs}
        spread = statistics.pstdev(full.values())
        if spread:
            for doc in docs:
                expected[doc] += (full[doc] - statistics.fmean(full.values())) / spread
    assert zsum([a, b], [floor_a, floor_b]) == pytest.approx(expected, abs=1e-9)


def test_a_retriever_that_tells_nothing_apart_adds_nothing() -> None:
    assert zsum([[("a", 2.0), ("b", 1.0)], [("b", 3.0), ("a", 3.0)]], [None, None]) == {"a": 1.0, "b": -1.0}
    assert zsum([[], []], [None, None]) == {} == rrf([[], []])


def test_equal_scores_add_nothing_even_where_their_mean_is_rounded() -> None:
    assert zsum([[], [("c", 0.1), ("b", 0.1), ("a", 0.1)]], [None, None]) == {"a": 0.0, "b": 0.0, "c": 0.0}
