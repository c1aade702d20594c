"""Filtered searches of a pool never give fewer than k while k exist, and give the best, duplicates included."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.data.dataset import open_dataset
from core.embed.pipeline import Pipeline
from core.index import hnsw
from core.search.searcher import Asked, Searcher

WORDS = ["lung", "heart", "liver", "bone", "mass", "lesion", "left", "right", "acute", "chronic", "normal", "scan"]
N, COPIES = 1500, 100


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    """1,500 documents in two domains; modality A passes 50 %, B 1 %, C one document; 100 more of equal words each."""
    root = tmp_path_factory.mktemp("large")
    generator = np.random.default_rng(5)
    modality = np.where(generator.random(N) < 0.5, "A", "other").astype(object)
    modality[generator.choice(N, N // 100, replace=False)] = "B"
    modality[7] = "C"
    for domain, part in (("Head", range(0, N, 2)), ("Thorax", range(1, N, 2))):
        docs = []
        for i in part:
            text = " ".join(generator.choice(WORDS, 5)) + f" number {i}"
            docs.append({"_id": f"d{i}", "text": text, "meta": {"modality": str(modality[i])}})
        # Equal vectors of different content: the order of words does not reach the toy encoder.
        for i in range(COPIES // 2):
            words = generator.permutation(["same", "words", "in", "any", "order", domain[0] * (i % 2 + 1)])[:5]
            docs.append({"_id": f"copy{i}", "text": " ".join(words), "meta": {"modality": "A" if i % 2 else "D"}})
        folder = root / domain
        (folder / "qrels").mkdir(parents=True)
        (folder / "corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in docs))
        (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "caption": "lung mass"}) + "\n")
        (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\nq\t{docs[0]['_id']}\t1\n")
    return root


@pytest.fixture(params=[False, True], ids=["usual beam", "narrow beam"])
def searcher(request, large, workspace, encoder, monkeypatch) -> Searcher:
    if request.param:
        monkeypatch.setattr(hnsw, "EF", 16)
        monkeypatch.setattr(hnsw, "M", 2)
    return Searcher(open_dataset(large, workspace), "retrieval", Pipeline(encoder, workspace))


def brute_force(searcher: Searcher, text: str, passes) -> dict[str, float]:
    """Score of every permitted document, straight from its words."""
    mean = searcher._centre("text", lambda *_: None).mean.astype(np.float64)

    def vector(words: str) -> np.ndarray:
        v = searcher.encoder.encode_texts([words])["single"][0] - mean
        return v / np.linalg.norm(v)

    query = vector(text)
    docs = [d for d in searcher.pool.docs() if passes(d)]
    return {f"{d.collection}/{d.id}": float(vector(d.full_text) @ query) for d in docs}


FILTERS = [{"modality": [m]} for m in "ABCD"] + [{"domain": ["Head"], "modality": ["A"]}]


def test_k_hits_while_k_exist_and_the_best_ones(searcher):
    for filters in FILTERS:
        compare(searcher, filters, [1, 10, 200, 1000])


def compare(searcher: Searcher, filters: dict, numbers: list[int]) -> None:
    def passes(doc) -> bool:
        domain = searcher.dataset.collections[doc.collection].domain
        return doc.meta["modality"] in filters["modality"] and domain in filters.get("domain", [domain])

    for text in ("chronic lung lesion", "same words in any order"):
        truth = brute_force(searcher, text, passes)
        # Documents of equal content are one hit and its copies.
        contents = {}
        for name, score in truth.items():
            collection, _, identity = name.rpartition("/")
            contents[searcher.pool.collection(collection).doc(identity).full_text] = score
        best = np.array(sorted(contents.values(), reverse=True))
        for k in numbers:
            result = searcher.search(Asked(text, k=k, filters=filters))
            ours = [f"{h.collection}/{h.doc_id}" for h in result.hits]
            assert set(ours) <= set(truth) and len(set(ours)) == len(ours) == min(k, len(contents))
            scores = np.array([h.score for h in result.hits])
            if result.index_kind == "exact":
                assert scores == pytest.approx(best[:k], abs=1e-5)
            else:
                assert np.mean(scores >= best[len(ours) - 1] - 1e-5) >= 0.9


def test_both_ways_are_walked(searcher):
    kinds = {m: searcher.search(Asked("lung", k=2, filters={"modality": [m]})).index_kind for m in "ABC"}
    assert kinds["B"] == kinds["C"] == "exact"
    assert kinds["A"] == ("hnsw" if hnsw.EF == 16 else "exact")
