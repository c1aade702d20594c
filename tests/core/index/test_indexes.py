"""Exact search against sorting, HNSW against exact search."""

from __future__ import annotations

import errno
import os
import resource
import signal

import numpy as np
import pytest

from core.index import hnsw
from core.index.exact import ExactIndex, best


def clustered(n: int, d: int = 32, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((20, d))
    points = centres[generator.integers(20, size=n)] + 0.7 * generator.standard_normal((n, d))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def test_exact_scores_are_inner_products_in_any_block(monkeypatch):
    monkeypatch.setattr("core.index.exact._BLOCK", 7)
    vectors, queries = clustered(50), clustered(3, seed=1).T
    index = ExactIndex(vectors)
    assert np.allclose(index.scores(queries), vectors.astype(np.float64) @ queries, atol=1e-6)
    rows = np.array([49, 3, 20, 20, 1, 2, 5, 8])
    assert np.allclose(index.scores(queries, rows), vectors[rows] @ queries, atol=1e-6)


def test_the_best_k_hold_every_tie_with_the_last():
    scores = np.array([0.5, 0.9, 0.5, 0.1, 0.5, 0.9], np.float32)
    assert set(best(scores, 3)) == {0, 1, 2, 4, 5}
    assert set(best(scores, 2)) == {1, 5}
    assert len(best(scores, 99)) == 6
    assert len(best(scores, 0)) == 0


def test_hnsw_finds_what_exact_search_finds(tmp_path):
    assert hnsw.problem() == ""
    vectors = clustered(3000)
    built = hnsw.HnswIndex.build(vectors)
    built.save(tmp_path / "graph.bin")
    stored = hnsw.HnswIndex.open(tmp_path / "graph.bin", vectors.shape[1], len(vectors))
    found = []
    for query in clustered(50, seed=2):
        truth = set(np.argsort(-(vectors @ query))[:10].tolist())
        mine = built.candidates(query, 10)
        assert np.array_equal(mine, stored.candidates(query, 10))
        found.append(len(truth & set(mine.tolist())) / 10)
    assert np.mean(found) >= 0.98


def test_the_same_vectors_give_the_same_graph_file(tmp_path):
    vectors = clustered(500)
    for name in ("a", "b"):
        hnsw.HnswIndex.build(vectors).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_more_than_there_are_is_clipped_and_more_than_the_beam_widens_it():
    index = hnsw.HnswIndex.build(clustered(60))
    assert sorted(index.candidates(clustered(1)[0], 100)) == list(range(60))
    vectors = clustered(2000)
    wide, query = hnsw.HnswIndex.build(vectors), clustered(1, seed=5)[0]
    k = 2 * hnsw.EF
    found = wide.candidates(query, k)
    truth = np.argsort(-(vectors @ query))[:k]
    assert len(found) == k and np.isin(found, truth).mean() >= 0.98


def test_a_graph_that_does_not_reach_k_gives_nothing():
    index = hnsw.HnswIndex.build(clustered(60))
    index._index.mark_deleted(7)
    assert len(index.candidates(clustered(1)[0], 60)) == 0
    assert len(index.candidates(clustered(1)[0], 59)) == 59


def test_building_reports_and_chunks_do_not_change_the_graph(tmp_path, monkeypatch):
    vectors, steps = clustered(300), []
    hnsw.HnswIndex.build(vectors).save(tmp_path / "whole")
    monkeypatch.setattr(hnsw, "_STEP", 77)
    hnsw.HnswIndex.build(vectors, lambda *step: steps.append(step)).save(tmp_path / "chunks")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "chunks").read_bytes()
    assert steps == [("Building the graph", done, 300) for done in (0, 77, 154, 231)]


def test_a_graph_that_the_disk_cut_short_is_an_error_and_not_an_index(tmp_path):
    index = hnsw.HnswIndex.build(clustered(300))
    index.save(tmp_path / "whole")
    size = (tmp_path / "whole").stat().st_size

    def limited():  # what a full disk does to a library that does not look
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
        try:
            index.save(tmp_path / "cut")
        except OSError as error:
            os._exit(42 if error.errno == errno.ENOSPC else 1)
        os._exit(0)

    child = os.fork()
    if child == 0:
        try:
            limited()
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    assert (tmp_path / "cut").stat().st_size < size
    with pytest.raises(RuntimeError):
        hnsw.HnswIndex.open(tmp_path / "cut", 32, 300)


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "crashes on this processor"),
        ("import nowhere", "cannot be used"),
    ],
)
def test_a_crash_of_hnswlib_costs_a_sentence_and_not_the_process(monkeypatch, probe, words):
    monkeypatch.setattr(hnsw, "_PROBE", probe)
    hnsw.problem.cache_clear()
    try:
        assert words in hnsw.problem()
    finally:
        hnsw.problem.cache_clear()
