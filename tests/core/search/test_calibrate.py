"""Match strength: the curve against brute force, what is shown when, and the evidence against plain searches."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from core.data.dataset import open_dataset
from core.embed.pipeline import Pipeline
from core.evaluate.stats import cluster_of
from core.search import calibrate
from core.search.calibrate import BANDS, Block, Calibration, Curve, Evidence, auroc, fit, judged_top_scores, mode_of
from core.search.compose import compose
from core.search.searcher import Asked, Searcher
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
    fewest, calibrate.FEWEST = calibrate.FEWEST, 1
    try:
        curve = fit(evidence(scores, relevant))
    finally:
        calibrate.FEWEST = fewest
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
    calibrate.random.Random(calibrate.SEED).shuffle(order)
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
    assert [mode_of(compose(a, b, 0.5)) for a, b in ((side, None), (None, side), (side, side))] == list(calibrate.MODES)


def test_stored_and_read_again(tmp_path: Path) -> None:
    calibration = Calibration({"both": Curve(BLOCKS, 167, 60, 1 / 3), "words": Curve((), 0, 0, None)}, 0.65)
    path, request = tmp_path / "pool" / calibrate.FILE, {"data_id": "d", "default_weight": 0.65}
    calibrate.save(path, request, calibration)
    assert calibrate.open_calibration(path, request) == calibration
    content = path.read_bytes()
    calibrate.save(path, request, calibration)
    assert path.read_bytes() == content
    with pytest.raises(ManifestError, match="another request"):
        calibrate.open_calibration(path, request | {"default_weight": 0.5})
    with pytest.raises(ManifestError, match="missing"):
        calibrate.open_calibration(tmp_path / "none.json", request)
    for broken in (content[:-20], b"[]", json.dumps(json.loads(content) | {"curves": {"both": {}}}).encode()):
        path.write_bytes(broken)
        with pytest.raises(ManifestError, match="cannot be read"):
            calibrate.open_calibration(path, request)


WORDS = ["lung", "heart", "liver", "bone", "mass", "lesion", "left", "right", "acute", "chronic"]


@pytest.fixture
def searcher(tmp_path: Path, workspace, encoder, collection_writer) -> Searcher:
    """72 queries that are pictures of the pool, half with an altered copy as their answer; copies across domains."""
    generator = np.random.default_rng(6)
    root = tmp_path / "data"
    (root / "images").mkdir(parents=True)
    for domain in ("Head", "Thorax"):
        docs, queries, qrels = [], [], []
        for i in range(36):
            colour = generator.integers(10, 240, 3)
            for name, shift in ((f"{domain}{i}", 0), (f"{domain}{i}b", int(generator.integers(0, 9)))):
                Image.new("RGB", (4, 4), tuple(int(c) + shift for c in colour)).save(root / "images" / f"{name}.png")
                docs.append({"_id": name, "text": "", "image_path": f"images/{name}.png"})
            text = " ".join(generator.choice(WORDS, 3)) if i % 4 else ""
            name = f"{domain}{i}"
            query = {"_id": name, "caption": text, "meta": {"case": f"c{i // 2}"}}
            queries.append(query | ({"image_path": f"images/{name}.png"} if i % 5 else {}))
            qrels.append((name, f"{domain}{i}b" if i % 2 else f"{domain}{(i + 18) % 36}b", 1 + i % 2))
        qrels.append((f"{domain}0", f"{domain}0b", 0))
        for name in ("Head1", "Head3b"):
            docs.append({"_id": f"copy of {name}", "text": "", "image_path": f"images/{name}.png"})
        docs += [{"_id": f"text{i}", "text": queries[i]["caption"] + " now"} for i in range(12)]
        qrels += [(f"{domain}{i}", f"text{i}", 1) for i in range(6)]
        docs.append({"_id": "same", "text": "acute chronic"})
        queries += [{"_id": "unjudged", "caption": "lung"}, {"_id": "only itself", "caption": "lung"}]
        docs.append({"_id": "only itself", "text": "lung"})
        collection_writer(root / domain, queries, docs, [*qrels, ("only itself", "only itself", 2)])
    (root / "benchmark.json").write_text(json.dumps({"ignore_identical_ids": True}))
    return Searcher(open_dataset(root, workspace), "retrieval", Pipeline(encoder, workspace))


def all_queries(searcher: Searcher) -> list:
    return [q for c in searcher.pool.collections for q in c.all_queries()]


def by_search(searcher: Searcher, query, mode: str, answered: bool) -> Evidence | None:
    """The best hit of one query by a plain exact search of the pool."""
    collection = searcher.pool.collection(query.collection)
    grades = {d: g for d, g in collection.qrels.get(query.id, {}).items() if g > 0 and d != query.id}
    has = {"picture": bool(query.images), "words": bool(query.text), "both": bool(query.images and query.text)}
    if not grades or not has[mode]:
        return None
    pictures = [Image.open(collection.pictures.resolve(r).path).convert("RGB") for r in query.images]
    words, pictures = query.text if mode != "picture" else "", pictures if mode != "words" else ()
    asked = Asked(words, pictures, k=1 if answered else 200, exact=True, query=query)
    hits = searcher.search(asked).hits
    hit = next(h for h in hits if answered or not (h.relevance or 0) > 0)
    return Evidence(hit.score, (hit.relevance or 0) > 0, cluster_of(query))


@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("mode", calibrate.MODES)
def test_the_evidence_is_that_of_searches(searcher, monkeypatch, mode: str, answered: bool) -> None:
    queries = all_queries(searcher)
    expected = [e for e in (by_search(searcher, q, mode, answered) for q in queries) if e is not None]
    for block in (calibrate._BLOCK_SCORES, 1):
        monkeypatch.setattr(calibrate, "_BLOCK_SCORES", block)
        found = judged_top_scores(searcher, queries, mode, answered)
        assert [e.score for e in found] == pytest.approx([e.score for e in expected], abs=1e-5)
        assert [(e.relevant, e.cluster) for e in found] == [(e.relevant, e.cluster) for e in expected]
    assert 30 <= len(found) < len(queries) - 2
    assert any(e.relevant for e in found) is answered


def test_planted_questions_without_an_answer_are_weak(tmp_path, workspace, encoder, collection_writer) -> None:
    docs, queries, qrels = [], [], []
    for i in range(200):
        words = " ".join(f"w{i}x{j}" for j in range(5))
        queries.append({"_id": f"q{i}", "caption": words, "meta": {"case": f"c{i // 2}"}})
        # Seven in ten answers say what was asked, the others have no word in common with it.
        docs.append({"_id": f"d{i}", "text": f"{words} now" if i % 10 < 7 else f"other{i} words{i}"})
        qrels.append((f"q{i}", f"d{i}", 1))
    collection_writer(tmp_path / "planted", queries, docs, qrels)
    searcher = Searcher(open_dataset(tmp_path / "planted", workspace), "retrieval", Pipeline(encoder, workspace))
    queries = all_queries(searcher)
    found = calibrate.calibrate(searcher, {"words": queries}, lambda query: True)
    assert found.curves["words"].auroc > 0.95

    def bands(chosen: list, answered: bool) -> list[str | None]:
        return [found.strength(e.score, "words").band for e in judged_top_scores(searcher, chosen, "words", answered)]

    matched = bands([q for q in queries if int(q.id[1:]) % 10 < 7], True)
    assert len(matched) == 140 and matched.count("strong") >= 130 and matched.count("weak") <= 5
    planted = bands(queries, False)
    assert len(planted) == 200 and planted.count("weak") >= 180


def test_calibrate_takes_only_unseen_queries(searcher) -> None:
    queries = all_queries(searcher)

    def unseen(query) -> bool:
        return query.collection.endswith("Head")

    found = calibrate.calibrate(searcher, {"picture": queries, "words": queries[:3]}, unseen)
    head = [q for q in queries if unseen(q)]
    assert found.curves["picture"] == fit(judged_top_scores(searcher, head, "picture"))
    assert found.curves["words"].n < 30 and found.default_weight == searcher.default_weight
    request = calibrate.request_of(searcher)
    path = searcher.index.folder / calibrate.FILE
    calibrate.save(path, request, found)
    assert calibrate.open_calibration(path, request) == found
