"""Ranking a collection from stored vectors against encoding and scoring each document on its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.data.dataset import DataSet, open_dataset
from core.embed.pipeline import Pipeline
from core.evaluate.measures import per_query
from core.evaluate.rank import qrels_of, rank_collection
from core.retrievers import dense
from core.search.searcher import Searcher

COLOURS = ["red", "darkred", "blue", "navy", "green", "teal", "gold", "pink"]


@pytest.fixture
def dataset(tmp_path: Path, workspace, collection_writer) -> DataSet:
    """Two domains; equal contents under two ids, an id with a space, a document and a query that cannot be read."""
    root = tmp_path / "data"
    (root / "images").mkdir(parents=True)
    for name in COLOURS:
        Image.new("RGB", (8, 8), name).save(root / "images" / f"{name}.png")
    (root / "images" / "broken.png").write_bytes(b"not a picture")
    for domain, part in (("Head", COLOURS), ("Thorax", COLOURS[:3])):
        docs = [{"_id": c, "text": "", "image_path": f"images/{c}.png"} for c in part]
        docs += [{"_id": "red again", "text": "", "image_path": "images/red.png"}]
        docs += [{"_id": "text", "text": "a red thing"}, {"_id": "lost", "text": "", "image_path": "images/broken.png"}]
        queries = [{"_id": c, "caption": f"a {c} square", "image_path": f"images/{c}.png"} for c in part]
        queries += [{"_id": "lost", "caption": "", "image_path": "images/broken.png"}]
        collection_writer(
            root / domain, queries, docs, [("red", "red again", 2), ("red", "blue", 0), ("lost", "red", 1)]
        )
    (root / "benchmark.json").write_text(json.dumps({"ignore_identical_ids": True}))
    return open_dataset(root, workspace)


def slow(searcher: Searcher, collection, query, weight: float) -> list[tuple[str, float]]:
    """All documents of a collection but the query itself, from the formula alone."""
    means = {side: searcher._centre(side, lambda *_: None).mean.astype(np.float64) for side in ("image", "text")}

    def unit(vector):
        return vector / np.linalg.norm(vector)

    def side(name, what):
        if name == "text":
            return unit(searcher.encoder.encode_texts([what])["single"][0] - means["text"])
        picture = Image.open(collection.pictures.resolve(what[0]).path).convert("RGB")
        return unit(searcher.encoder.encode_images([picture])["single"][0] - means["image"])

    mixed = weight * side("image", query.images) + (1 - weight) * side("text", query.text)
    scored = []
    for doc in collection.docs():
        if doc.id not in ("lost", query.id):
            vector = side("text", doc.full_text) if doc.full_text else side("image", doc.images)
            scored.append((doc.id.replace(" ", "%20"), float(mixed @ vector)))
    return sorted(scored, key=lambda pair: (round(pair[1], 5), pair[0]), reverse=True)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0, None])
@pytest.mark.parametrize("at_once", [None, 1])
def test_like_the_slow_way(dataset, workspace, encoder, monkeypatch, weight, at_once) -> None:
    if at_once:
        monkeypatch.setattr(dense, "BLOCK_SCORES", at_once)
    searcher = Searcher(dataset, "retrieval", Pipeline(encoder, workspace))
    for collection in searcher.pool.collections:
        queries = list(collection.all_queries())
        found = rank_collection(searcher, collection, queries, weight, 100)
        assert list(found) == [q.id for q in queries] and found["lost"] == []
        for query in queries[:-1]:
            expected = slow(searcher, collection, query, searcher.default_weight if weight is None else weight)
            assert [d for d, _ in found[query.id]] == [d for d, _ in expected]
            assert [s for _, s in found[query.id]] == pytest.approx([s for _, s in expected], abs=1e-5)
            scores = dict(found[query.id])
            assert query.id not in scores and "red%20again" in scores
            if query.id != "red":  # equal contents tie to the last bit
                assert scores["red"] == scores["red%20again"]
        short = rank_collection(searcher, collection, queries, weight, 3)
        assert {q: r[:3] for q, r in found.items()} == short


def test_with_the_measures(dataset, workspace, encoder) -> None:
    searcher = Searcher(dataset, "retrieval", Pipeline(encoder, workspace))
    collection = searcher.pool.collections[0]
    queries = list(collection.all_queries())
    qrels = qrels_of(collection, queries)
    assert qrels["red"] == {"red%20again": 2, "blue": 0} and qrels["navy"] == {} and len(qrels) == len(queries)
    found = per_query(rank_collection(searcher, collection, queries, 1.0, 10), qrels)
    assert found == {"nDCG@10": {"lost": 0.0, "red": 1.0}, "Success@10": {"lost": 0.0, "red": 1.0}}


def test_an_own_id_counts_where_the_data_set_does_not_say_otherwise(dataset, workspace, encoder) -> None:
    dataset.benchmark = {}
    searcher = Searcher(dataset, "retrieval", Pipeline(encoder, workspace))
    collection = searcher.pool.collections[1]
    found = rank_collection(searcher, collection, [collection.query("blue")], 1.0, 1)
    assert found["blue"][0][0] == "blue"
