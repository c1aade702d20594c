"""Bounds over tied scores against every order of every block, measured one by one."""

from __future__ import annotations

from itertools import chain, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analyze.tied import tied_ranges
from core.evaluate.measures import per_query


def every_order(docs: list[str], scores: list[float]) -> list[list[str]]:
    """All rankings that the scores allow."""
    blocks = [
        [d for d, s in zip(docs, scores, strict=True) if s == value] for value in sorted(set(scores), reverse=True)
    ]
    return [list(chain(*orders)) for orders in product(*(list(permutations(block)) for block in blocks))]


def by_hand(docs: list[str], scores: list[float], grades: dict[str, int]) -> tuple[float, float]:
    found = []
    for order in every_order(docs, scores):
        run = {"q": [(doc, float(len(order) - at)) for at, doc in enumerate(order)]}
        found.append(per_query(run, {"q": grades}, ["nDCG@10"])["nDCG@10"]["q"])
    return min(found), max(found)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([1.0, 0.5, -2.0]), st.sampled_from([None, 0, 1, 2])), max_size=6))
def test_bounds_are_those_over_all_orders(rows: list) -> None:
    rows = sorted(rows, key=lambda row: -row[0])
    docs, scores = [f"d{at}" for at in range(len(rows))], [score for score, _ in rows]
    grades = {"unfound": 2} | {d: g for d, (_, g) in zip(docs, rows, strict=True) if g is not None}
    answers = np.arange(len(docs), dtype=np.int32)
    found = tied_ranges([("q", answers, np.array(scores, np.float32))], docs, {"q": grades})
    low, high = by_hand(docs, scores, grades)
    if high - low < 1e-9:
        assert found == {}
    else:
        assert found["q"] == pytest.approx((low, high))


def test_a_block_across_the_tenth_place() -> None:
    """Nine single hits, then four of one score, of which one or none comes tenth."""
    docs = [f"d{at:02}" for at in range(13)]
    scores = np.array([*range(30, 21, -1), 5, 5, 5, 5], np.float32)
    grades = {"d02": 1, "d11": 2, "d12": 1}
    found = tied_ranges([("q", np.arange(13), scores)], docs, {"q": grades})
    assert found["q"] == pytest.approx(by_hand(docs, scores.tolist(), grades)) and found["q"][0] < found["q"][1]
    scores[9] = 6  # now the tenth is settled, and what is below does not count
    assert tied_ranges([("q", np.arange(13), scores)], docs, {"q": grades}) == {}


def test_scores_are_told_apart_to_the_last_bit_and_answers_are_positions() -> None:
    near = np.nextafter(np.float32(0.5), np.float32(0))
    ids, grades = ["a", "b", "c"], {"c": 1}
    assert tied_ranges([("q", np.array([2, 0]), np.array([0.5, near], np.float32))], ids, {"q": grades}) == {}
    found = tied_ranges([("q", np.array([2, 0]), np.array([0.5, 0.5], np.float32))], ids, {"q": grades})
    assert found["q"] == pytest.approx((1 / np.log2(3), 1))


def test_what_has_no_order_to_choose() -> None:
    tied = np.array([1, 1], np.float32)
    rankings = [
        ("none", np.zeros(0, int), tied[:0]),
        ("one", np.array([0]), tied[:1]),
        ("unjudged", np.array([0, 1]), tied),
    ]
    rankings += [("zeros", np.array([0, 1]), tied), ("absent", np.array([0, 1]), tied)]
    qrels = {"none": {"a": 1}, "one": {"a": 1}, "unjudged": {}, "zeros": {"a": 0, "b": 0}}
    assert tied_ranges(rankings, ["a", "b"], qrels) == {}
