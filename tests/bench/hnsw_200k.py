"""HNSW on many clustered synthetic vectors: recall, time against raw ``knn_query``, and filtered searches.

    python tests/bench/hnsw_200k.py [--n 200000] [--dimensions 384] [--clusters 2000]

Vectors: clusters of uneven size around Gaussian centres; within a cluster Gaussian noise whose deviation falls
with the root of the dimension's number, as the spectrum of real embeddings does; all of length 1. Queries are drawn
the same way and are not among the documents. One document is planted 100 times more.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.index import hnsw
from core.index.exact import ExactIndex, best
from core.index.hnsw import HnswIndex
from core.index.nearest import nearest
from core.index.pool_index import distinct_rows

NOISE, SEED, K, COPIES = 0.8, 7, 10, 100
SELECTIVITIES = (0.5, 0.01, 0.0001)


def vectors(n: int, dimensions: int, queries: int, clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Documents float32 [n, d] and queries float32 [queries, d]."""
    generator = np.random.default_rng(SEED)
    centres = generator.standard_normal((clusters, dimensions), np.float32)
    sizes = generator.dirichlet(np.ones(clusters))
    spread = (1 + np.arange(dimensions, dtype=np.float32)) ** -0.5
    spread *= NOISE / np.sqrt((spread**2).mean())

    def draw(count: int) -> np.ndarray:
        result = np.empty((count, dimensions), np.float32)
        for start in range(0, count, 10_000):
            m = min(10_000, count - start)
            rows = centres[generator.choice(clusters, m, p=sizes)]
            rows = rows + spread * generator.standard_normal((m, dimensions), np.float32)
            result[start : start + m] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return result

    return draw(n), draw(queries)


def timed(search, queries: np.ndarray) -> tuple[list, float]:
    """What ``search`` gives for each query, and the median milliseconds of one."""
    found, times = [], []
    for query in queries:
        started = time.perf_counter()
        found.append(search(query))
        times.append(time.perf_counter() - started)
    return found, float(np.median(times)) * 1000


def recall(found: list[np.ndarray], truth: list[np.ndarray]) -> float:
    """Share of the best ``K`` that is found; ties with the last of them count as found."""
    return float(np.mean([min(1.0, np.isin(f, t).sum() / min(K, len(t))) for f, t in zip(found, truth, strict=True)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=200_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--clusters", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=300)
    arguments = parser.parse_args()

    drawn, queries = vectors(arguments.n, arguments.dimensions, arguments.queries, arguments.clusters)
    queries[0] = drawn[0]  # asks for the document with copies
    copies = np.arange(COPIES) * (arguments.n // COPIES) + 1
    vector_of_document, kept = distinct_rows(np.insert(drawn, copies, drawn[0], axis=0))
    del drawn
    exact = ExactIndex(kept)
    print(f"{len(vector_of_document)} documents, {len(kept)} distinct vectors of {arguments.dimensions} dimensions")
    started = time.perf_counter()
    graph = HnswIndex.build(kept)
    print(
        f"graph: M {hnsw.M}, ef_construction {hnsw.EF_CONSTRUCTION}, ef {hnsw.EF}, "
        f"built in {time.perf_counter() - started:.0f} s"
    )

    def sides(query: np.ndarray) -> np.ndarray:
        return np.stack([0.4 * query, 0.6 * query], axis=1)

    truth, exact_ms = timed(lambda q: nearest(exact, None, sides(q), K)[0], queries)
    ours, ours_ms = timed(lambda q: nearest(exact, graph, sides(q), K), queries)
    raw, raw_ms = timed(lambda q: graph._index.knn_query(q[None], k=K, num_threads=1)[0][0], queries)
    assert all(kind == "hnsw" for _, kind in ours)
    print(f"recall@{K}: ours {recall([rows for rows, _ in ours], truth):.4f}, raw {recall(raw, truth):.4f}")
    print(
        f"median per query: ours {ours_ms:.2f} ms, raw knn_query {raw_ms:.2f} ms (ratio {ours_ms / raw_ms:.2f}), "
        f"exact {exact_ms:.2f} ms (ratio {ours_ms / exact_ms:.2f})"
    )

    generator = np.random.default_rng(SEED)
    for selectivity in SELECTIVITIES:
        passing = generator.random(len(vector_of_document)) < selectivity
        passing[0] = True  # the planted document always passes, its copies as chance has it
        permitted = np.zeros(len(kept), bool)
        permitted[vector_of_document[passing]] = True
        rows = np.flatnonzero(permitted)
        truth = [rows[best(kept[rows] @ query, K)] for query in queries]
        found, ms = timed(lambda q, p=permitted: nearest(exact, graph, sides(q), K, p), queries)
        there = min(K, len(rows))
        complete = np.mean([len(f) >= there and permitted[f].all() for f, _ in found])
        documents = np.flatnonzero(passing & np.isin(vector_of_document, found[0][0]))
        planted = np.flatnonzero(passing & (vector_of_document == vector_of_document[0]))
        assert np.isin(planted, documents).all(), "a copy of the best document is missing"
        kinds = {kind: sum(k == kind for _, k in found) for kind in ("hnsw", "exact")}
        print(
            f"filter {selectivity:8.2%}: {passing.sum()} documents pass, complete {complete:.1%}, "
            f"recall@{K} {recall([f for f, _ in found], truth):.4f}, {ms:.2f} ms, {kinds}, "
            f"all {len(planted)} copies found"
        )
    print(f"peak resident memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
