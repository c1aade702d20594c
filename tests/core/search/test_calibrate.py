"""The evidence for match strength against plain searches, and planted questions without an answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.data.dataset import open_dataset
from core.data.topics import cluster_of
from core.embed.pipeline import Pipeline
from core.search import calibrate
from core.search.calibrate import judged_top_scores
from core.search.searcher import Asked, Searcher
from core.search.strength import MODES, Evidence, fit

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
@pytest.mark.parametrize("mode", MODES)
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
    found = calibrate.calibrate(searcher, [(searcher, queries)], "itself")
    assert found.curves["words"].auroc > 0.95
    assert found.curves["words"].weak_answered < 0.35 and found.curves["words"].weak_unanswered > 0.9

    def bands(chosen: list, answered: bool) -> list[str | None]:
        return [found.strength(e.score, "words").band for e in judged_top_scores(searcher, chosen, "words", answered)]

    matched = bands([q for q in queries if int(q.id[1:]) % 10 < 7], True)
    assert len(matched) == 140 and matched.count("strong") >= 130 and matched.count("weak") <= 5
    planted = bands(queries, False)
    assert len(planted) == 200 and planted.count("weak") >= 180


def test_calibration_joins_what_each_part_finds_of_its_own_queries(searcher, tmp_path, encoder) -> None:
    queries = all_queries(searcher)
    head = [q for q in queries if q.collection.endswith("Head")]
    rest = [q for q in queries if q not in head]
    assert searcher.calibration is None
    before = searcher.search(Asked("acute mass", k=3))
    assert not before.strength.calibrated and "python -m core index" in before.strength.reason
    found = calibrate.calibrate(searcher, [(searcher, head), (searcher, rest)], "two parts")
    for mode in MODES:
        both = [judged_top_scores(searcher, part, mode) for part in (head, rest)]
        gone = [judged_top_scores(searcher, part, mode, answered=False) for part in (head, rest)]
        assert found.curves[mode] == fit([*both[0], *both[1]], [*gone[0], *gone[1]])
    assert found.default_weight == searcher.default_weight and found.source == "two parts"
    searcher.keep_calibration(found)
    again = Searcher(searcher.dataset, searcher.task, searcher.pipeline)
    assert again.calibration == found
    result = again.search(Asked("acute mass", k=3))
    assert result.strength == found.strength(result.hits[0].score, "words") and result.strength.calibrated
    trained = again.search(Asked("acute mass", k=3, query=head[0], trained_on=True))
    assert not trained.strength.calibrated and "trained on" in trained.strength.reason


def test_a_calibration_of_another_weight_or_a_damaged_one_is_not_used(searcher) -> None:
    searcher.keep_calibration(calibrate.calibrate(searcher, [(searcher, all_queries(searcher))], "itself"))
    path = searcher.pipeline.workspace.path(*searcher.strength_file)
    content = json.loads(path.read_bytes())
    content["request"]["default_weight"] = 0.123
    path.write_text(json.dumps(content))
    assert Searcher(searcher.dataset, searcher.task, searcher.pipeline).calibration is None
    path.write_text("{")
    assert Searcher(searcher.dataset, searcher.task, searcher.pipeline).calibration is None


def test_the_best_relevant_document_is_found_however_far_down(searcher) -> None:
    """Against the position of the first relevant hit in the whole ranking, for k too small to show it."""
    beyond = 0
    for query in all_queries(searcher):
        for filters in ({}, {"domain": ["Head"]}):
            whole = searcher.search(Asked("lung mass", k=1000, exact=True, query=query, filters=filters))
            first = next((hit.rank for hit in whole.hits if (hit.relevance or 0) > 0), None)
            short = searcher.search(Asked("lung mass", k=3, exact=True, query=query, filters=filters))
            assert short.best_relevant == whole.best_relevant == first
            assert short.relevant == sum((hit.relevance or 0) > 0 for hit in whole.hits)
            beyond += first is not None and first > 3
    assert beyond > 20


def test_a_pool_of_which_nothing_can_be_encoded_has_no_evidence(
    tmp_path, workspace, encoder, collection_writer
) -> None:
    (tmp_path / "bad" / "images").mkdir(parents=True)
    (tmp_path / "bad" / "images" / "a.png").write_bytes(b"broken")
    docs = [{"_id": "a", "text": "", "image_path": "images/a.png"}]
    collection_writer(tmp_path / "bad", [{"_id": "q", "caption": "lung"}], docs, [("q", "a", 1)])
    searcher = Searcher(open_dataset(tmp_path / "bad", workspace), "retrieval", Pipeline(encoder, workspace))
    found = calibrate.calibrate(searcher, [(searcher, all_queries(searcher))], "itself")
    assert all(curve.n == 0 and curve.blocks == () for curve in found.curves.values())
    result = searcher.search(Asked("lung"))
    assert result.hits == () and result.strength is None and "core check" in result.notes[0]
