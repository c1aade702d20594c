"""Match strength: the curve against brute force, and what is shown when."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.search import strength
from core.search.compose import compose
from core.search.strength import BANDS, Block, Calibration, Curve, Evidence, auroc, fit, mode_of
from core.store.manifest import ManifestError


def brute_isotonic(scores: list[float], relevant: list[bool]) -> list[float]:
    """The fitted share at each score by the min-max formula: max over a ≤ i of min over b ≥ i of the mean of a…b."""
    points = sorted(set(scores))

    def mean(a: int, b: int) -> float:
        inside = [r for s, r in zip(scores, relevant, strict=True) if points[a] <= s <= points[b]]
        return sum(inside) / len(inside)

    last = len(points)
    fitted = [max(min(mean(a, b) for b in range(i, last)) for a in range(i + 1)) for i in range(last)]
    return [fitted[points.index(s)] for s in scores]


def brute_auroc(right: list[float], wrong: list[float]) -> float:
    pairs = list(itertools.product(right, wrong))
    return sum((a > b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)


def evidence(scores, relevant, clusters=None) -> list[Evidence]:
    names = range(len(scores)) if clusters is None else clusters
    return [Evidence(float(s), bool(r), str(c)) for s, r, c in zip(scores, relevant, names, strict=True)]


few_scores = st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.7, 0.9])
judged = st.lists(st.tuples(few_scores | st.floats(-1, 1), st.booleans()), min_size=1, max_size=25)


@settings(max_examples=150, deadline=None)
@given(judged)
def test_blocks_are_the_isotonic_regression(rows: list) -> None:
    scores, relevant = map(list, zip(*rows, strict=True))
    fewest, strength.FEWEST = strength.FEWEST, 1
    try:
        curve = fit(evidence(scores, relevant))
    finally:
        strength.FEWEST = fewest
    found = [curve.block(s) for s in scores]
    assert [b.relevant / b.n for b in found] == pytest.approx(brute_isotonic(scores, relevant), abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.lists(few_scores, min_size=1, max_size=12), st.lists(few_scores, min_size=1, max_size=12))
def test_auroc_by_pairs(right: list, wrong: list) -> None:
    assert auroc(right, wrong) == (pytest.approx(brute_auroc(right, wrong)), len(right) * len(wrong))


def test_held_out_auroc_is_that_of_pairs_within_folds() -> None:
    generator = np.random.default_rng(4)
    cluster = generator.integers(0, 40, 300)
    score = generator.normal(cluster % 7 / 7, 0.3)
    rows = evidence(score, generator.random(300) < 1 / (1 + np.exp(-6 * (score - 0.4))), cluster)
    order = sorted({e.cluster for e in rows})
    random.Random(strength.SEED).shuffle(order)
    won = pairs = 0
    for fold in range(5):
        inside = set(order[fold::5])
        curve = fit([e for e in rows if e.cluster not in inside])
        share = [(curve.block(e.score), e.relevant) for e in rows if e.cluster in inside]
        right = [b.relevant / b.n for b, r in share if r]
        wrong = [b.relevant / b.n for b, r in share if not r]
        won += brute_auroc(right, wrong) * len(right) * len(wrong)
        pairs += len(right) * len(wrong)
    found = fit(rows)
    assert found.auroc == pytest.approx(won / pairs) and 0.6 < found.auroc < 0.95
    assert fit(rows[::-1]) == found and found.clusters == 40


many = st.lists(st.tuples(few_scores | st.floats(-1, 1, width=32), st.booleans(), st.integers(0, 9)), max_size=150)


@settings(max_examples=100, deadline=None)
@given(many)
def test_percentages_rise_with_the_score_and_n_adds_up(rows: list) -> None:
    curve = fit(evidence(*zip(*rows, strict=True)) if rows else [])
    assert sum(b.n for b in curve.blocks) == curve.n == len(rows)
    assert sum(b.relevant for b in curve.blocks) == sum(r for _, r, _ in rows)
    assert all(b.n >= 30 for b in curve.blocks) or len(curve.blocks) == 1
    shown = [Calibration({"words": curve}, 0.5).strength(s, "words") for s in np.linspace(-2, 2, 41)]
    if len(rows) < 30:
        assert all(not s.calibrated and s.percent is None and "30 are needed" in s.reason for s in shown)
    else:
        percents = [s.percent for s in shown]
        assert percents == sorted(percents) and all(
            0 <= p <= 100 and s.n >= 30 for p, s in zip(percents, shown, strict=True)
        )
    for block in curve.blocks:
        held = [s for s, _, _ in rows if curve.block(s) == block]
        assert len(held) == block.n and min(held) == block.low


def test_small_blocks_join_the_neighbour_with_the_nearest_share() -> None:
    scores = [0.1] * 40 + [0.2] * 10 + [0.3] * 40
    low, middle, high = [True] * 4 + [False] * 36, [True] * 7 + [False] * 3, [True] * 36 + [False] * 4
    curve = fit(evidence(scores, low + middle + high))
    assert curve.blocks == (Block(0.1, 40, 4), Block(0.2, 50, 43))
    assert curve.block(-5).n == 40 and curve.block(0.1999).n == 40 and curve.block(0.2).n == 50
    assert fit(evidence(scores[:50], low + middle)).blocks == (Block(0.1, 50, 11),)


BLOCKS = (Block(0.1, 37, 5), Block(0.4, 50, 15), Block(0.6, 40, 27), Block(0.8, 40, 28))


def test_sentence_and_bands() -> None:
    calibration = Calibration({"both": Curve(BLOCKS, 167, 60, 0.75)}, 0.6)
    shown = [calibration.strength(s, "both") for s in (0.1, 0.5, 0.6, 0.95)]
    assert [s.band for s in shown] == ["weak", "fair", "fair", "strong"] and set(BANDS) == {"strong", "fair", "weak"}
    expected = "of judged queries whose best hit scored like this, 14 % had a relevant best hit (n = 37)"
    assert shown[0].sentence == expected and shown[0].percent == 100 * 5 / 37 and shown[0].reason == ""


def test_no_band_where_right_and_wrong_are_not_told_apart() -> None:
    for measured, words in ((0.7499, "is 0.75"), (0.6, "is 0.60"), (None, "could not be measured")):
        shown = Calibration({"words": Curve(BLOCKS, 167, 60, measured)}, 0.6).strength(0.9, "words")
        assert shown.calibrated and shown.band is None and shown.percent == 70.0
        assert "no band" in shown.reason and words in shown.reason
    generator = np.random.default_rng(5)
    noise = fit(evidence(generator.random(400), generator.random(400) < 0.5))
    assert noise.auroc < 0.6
    assert fit(evidence(generator.random(40), [True] * 40)).auroc is None


def test_a_moved_weight_or_an_unknown_mode_is_not_calibrated() -> None:
    curve = Curve(BLOCKS, 167, 60, 0.9)
    calibration = Calibration({"both": curve, "picture": curve}, 0.6)
    assert calibration.strength(0.9, "both", 0.8).calibrated and calibration.strength(0.9, "both", 0.4).calibrated
    moved = calibration.strength(0.9, "both", 0.85)
    assert not moved.calibrated and moved.percent is None and moved.band is None
    assert moved.sentence == ("not calibrated: the weight of the picture is 0.85; match strength was measured at 0.60")
    assert calibration.strength(0.9, "picture", 1.0).calibrated  # one side: there is nothing to move
    assert calibration.strength(0.9, "words").reason.startswith("0 judged queries")
    side = np.ones(2, np.float32)
    assert [mode_of(compose(a, b, 0.5)) for a, b in ((side, None), (None, side), (side, side))] == list(strength.MODES)


def test_stored_and_read_again(tmp_path: Path) -> None:
    calibration = Calibration({"both": Curve(BLOCKS, 167, 60, 1 / 3), "words": Curve((), 0, 0, None)}, 0.65)
    path, request = tmp_path / "pool" / strength.FILE, {"data_id": "d", "default_weight": 0.65}
    strength.save(path, request, calibration)
    assert strength.open_calibration(path, request) == calibration
    content = path.read_bytes()
    strength.save(path, request, calibration)
    assert path.read_bytes() == content
    with pytest.raises(ManifestError, match="another request"):
        strength.open_calibration(path, request | {"default_weight": 0.5})
    with pytest.raises(ManifestError, match="missing"):
        strength.open_calibration(tmp_path / "none.json", request)
    for broken in (content[:-20], b"[]", json.dumps(json.loads(content) | {"curves": {"both": {}}}).encode()):
        path.write_bytes(broken)
        with pytest.raises(ManifestError, match="cannot be read"):
            strength.open_calibration(path, request)


def test_a_filtered_search_gets_no_band() -> None:
    calibration = Calibration({"both": Curve(BLOCKS, 167, 60, 0.9)}, 0.6)
    shown = calibration.strength(0.9, "both", filtered=True)
    assert shown.calibrated and shown.percent == 70.0 and shown.band is None and "without filters" in shown.reason


def test_shares_of_weak_answers_are_those_of_held_out_topics() -> None:
    generator = np.random.default_rng(8)
    cluster = generator.integers(0, 50, 400)
    right = generator.random(400) < 0.5
    rows = evidence(np.where(right, 0.7, 0.3) + generator.normal(0, 0.1, 400), right, cluster)
    planted = evidence(generator.normal(0.3, 0.1, 400), [False] * 400, cluster)
    found = fit(rows, planted)
    order = sorted({e.cluster for e in rows})
    random.Random(strength.SEED).shuffle(order)
    answered, unanswered = [], []
    for fold in range(5):
        inside = set(order[fold::5])
        curve = Calibration({"both": fit([e for e in rows if e.cluster not in inside])}, 0.5)
        curve = Calibration({"both": Curve(curve.curves["both"].blocks, 400, 50, 1.0)}, 0.5)
        answered += [curve.strength(e.score, "both").band == "weak" for e in rows if e.cluster in inside]
        unanswered += [curve.strength(e.score, "both").band == "weak" for e in planted if e.cluster in inside]
    assert found.weak_answered == pytest.approx(np.mean(answered)) and 0.3 < found.weak_answered < 0.6
    assert found.weak_unanswered == pytest.approx(np.mean(unanswered)) and found.weak_unanswered > 0.85
    assert found.n_unanswered == 400 and found.blocks == fit(rows).blocks
    assert fit(rows).weak_answered is None
