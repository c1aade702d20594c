"""The best permitted vectors against sorting all of them, whatever passes and however many are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from core.index import hnsw
from core.index.exact import ExactIndex
from core.index.hnsw import HnswIndex
from core.index.nearest import nearest
from core.index.pool_index import distinct_rows


def clustered(n: int, d: int = 16, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((30, d))
    points = centres[generator.integers(30, size=n)] + 0.7 * generator.standard_normal((n, d))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def pool():
    """8,000 documents and 100 copies of one of them: vectors of documents, distinct vectors, exact index, graph."""
    drawn = clustered(8000)
    documents = np.insert(drawn, np.arange(100) * 80 + 1, drawn[0], axis=0)
    vector_of_document, kept = distinct_rows(documents)
    assert len(kept) == 8000 and np.array_equal(kept[vector_of_document], documents)
    return documents, vector_of_document, ExactIndex(kept), HnswIndex.build(kept)


def sides(query: np.ndarray) -> np.ndarray:
    return np.stack([0.25 * query, 0.75 * query], axis=1)


@pytest.fixture
def eager(monkeypatch):
    """A narrow beam that is used as soon as anything passes, so that the ways to go wrong are walked."""
    monkeypatch.setattr(hnsw, "EF", 24)
    monkeypatch.setattr(hnsw, "M", 1)


@pytest.mark.parametrize("with_graph", [False, True])
@pytest.mark.parametrize("selectivity", [1.0, 0.5, 0.01, 0.0001])
@pytest.mark.parametrize("k", [1, 10, 100, 1000])
def test_as_many_as_there_are_and_the_best_ones(pool, eager, k, selectivity, with_graph):
    documents, vector_of_document, exact, graph = pool
    generator = np.random.default_rng(int(selectivity * 1e4) + k)
    passing = generator.random(len(documents)) < selectivity
    passing[0] = True
    permitted = np.zeros(len(exact.vectors), bool)
    permitted[vector_of_document[passing]] = True
    overlap, kinds = [], set()
    for query in [documents[0], *clustered(15, seed=4)]:
        found, kind = nearest(exact, graph if with_graph else None, sides(query), k, permitted)
        kinds.add(kind)
        rows = np.flatnonzero(permitted)
        truth = rows[np.argsort(-(exact.vectors[rows] @ query), kind="stable")[:k]]
        assert len(np.unique(found)) == len(found) >= min(k, len(rows))
        assert permitted[found].all()
        overlap.append(np.isin(truth, found).mean())
        if kind == "exact":
            assert overlap[-1] == 1
    assert np.mean(overlap) >= 0.95
    query = documents[0]  # its copies that pass are found, all of them
    found, _ = nearest(exact, graph if with_graph else None, sides(query), k, permitted)
    copies = np.flatnonzero(passing & (documents == documents[0]).all(axis=1))
    assert np.isin(vector_of_document[copies], found).all()
    if not with_graph:
        assert kinds == {"exact"}
    if with_graph and (selectivity, k) in ((1.0, 1), (1.0, 10), (0.5, 10)):
        assert "hnsw" in kinds


def test_a_filter_that_shuns_the_query_is_answered_exactly(pool, eager):
    """Half of the vectors pass, but none of those near the query: over-fetching finds too few."""
    _, _, exact, graph = pool
    query = clustered(1, seed=6)[0]
    scores = exact.vectors @ query
    permitted = scores < np.median(scores)
    found, kind = nearest(exact, graph, sides(query), 10, permitted)
    truth = np.argsort(np.where(permitted, -scores, np.inf), kind="stable")[:10]
    assert kind == "exact" and np.isin(truth, found).all() and permitted[found].all()


def test_the_beam_is_widened_before_search_gets_exact(pool, eager):
    """Most of the near ones are barred: the first beam leaves too few, a wider one does not."""
    _, _, exact, graph = pool
    query = clustered(1, seed=8)[0]
    scores = exact.vectors @ query
    permitted = np.ones(len(scores), bool)
    permitted[np.argsort(-scores)[:60]] = False
    asked = []

    class Counting:
        kind = "hnsw"

        def candidates(self, q, k):
            asked.append(k)
            return graph.candidates(q, k)

    found, kind = nearest(exact, Counting(), sides(query), 10, permitted)
    truth = np.argsort(np.where(permitted, -scores, np.inf), kind="stable")[:10]
    assert kind == "hnsw" and asked == [24, 96]
    assert np.isin(truth, found).mean() >= 0.9 and permitted[found].all()


def test_nothing_permitted_and_all_permitted(pool):
    _, _, exact, graph = pool
    query = clustered(1, seed=9)[0]
    found, kind = nearest(exact, graph, sides(query), 10, np.zeros(len(exact.vectors), bool))
    assert len(found) == 0 and kind == "exact"
    everything = nearest(exact, graph, sides(query), 10, np.ones(len(exact.vectors), bool))
    assert np.array_equal(everything[0], nearest(exact, graph, sides(query), 10)[0]) and everything[1] == "hnsw"


def test_small_subsets_are_searched_exactly_and_small_k_of_a_large_pool_is_not(pool):
    _, _, exact, graph = pool
    query = clustered(1, seed=10)[0]
    permitted = np.zeros(len(exact.vectors), bool)
    permitted[:4000] = True
    assert nearest(exact, graph, sides(query), 10, permitted)[1] == "exact"
    assert nearest(exact, graph, sides(query), 10)[1] == "hnsw"
    assert nearest(exact, graph, sides(query), 1000)[1] == "exact"
