"""The command from end to end on the demo's shipped runs, and rows against means computed by hand."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from core.__main__ import app
from core.analyze.listed import listed, stored_scores
from core.analyze.scored import unlisted
from core.data.dataset import open_dataset
from core.data.names import trec_name
from core.data.topics import cluster_of
from core.evaluate import evaluate as evaluate_module
from core.evaluate import make
from core.evaluate.evaluate import OFFLINE, Choice, Evaluation
from core.evaluate.export import store_import
from core.evaluate.io_trec import import_run
from core.evaluate.measures import ALL, not_available, per_query
from core.evaluate.run import open_run
from core.evaluate.stats import macro
from core.records import QueryError
from core.retrievers.lexical import Lexical
from core.retrievers.place import Place
from core.settings import DEMO


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


@pytest.fixture
def dataset(workspace):
    return open_dataset(DEMO, workspace)


def test_a_row_is_the_macro_and_micro_mean_of_the_runs(dataset, workspace) -> None:
    evaluation = Evaluation(dataset, workspace, Choice(tasks=("visual_context",)), silent)
    by_collection, pool = evaluation.scores("bm25", "visual_context")
    row = evaluation.row(by_collection, "nDCG@10")
    values, clusters, domains = [], [], []
    for collection in dataset.pool("visual_context").collections:
        place = Place(dataset, "visual_context", workspace, collection.key)
        found = per_query(Lexical().rank(place, 1000, silent).rankings, place.qrels, ["nDCG@10"])["nDCG@10"]
        for query in collection.all_queries():
            if trec_name(query.id) in found:
                values.append(found[trec_name(query.id)])
                clusters.append(cluster_of(query))
                domains.append(collection.domain)
    by_domain = {d: [v for v, o in zip(values, domains, strict=True) if o == d] for d in dict.fromkeys(domains)}
    assert row["n"] == len(values) > 50 and row["clusters"] == len(set(clusters))
    assert row["micro"] == pytest.approx(np.mean(values))
    assert row["macro"] == pytest.approx(np.mean([np.mean(v) for v in by_domain.values()]))
    expected = macro(values, clusters, domains, list(by_domain))
    assert row["interval"] == pytest.approx([expected.low, expected.high]) and row["method"] == expected.method
    for domain, mine in by_domain.items():
        assert row["by_domain"][domain]["mean"] == pytest.approx(np.mean(mine))
        assert row["by_domain"][domain]["n"] == len(mine)
    assert (row["model"], row["scope"], row["seen_excluded"], row["reason"]) == ("bm25", "collections", 0, "")
    whole = evaluation.row(pool, "nDCG@10")
    assert whole["scope"] == "pool" and whole["n"] == row["n"] and whole["macro"] != row["macro"]


def test_what_a_model_cannot_do_is_not_available(dataset, workspace) -> None:
    evaluation = Evaluation(dataset, workspace, Choice(pools=False), silent)
    for name in ("bm25", "rrf:bm25+medlite"):
        (scores,) = evaluation.scores(name, "query_to_image")
        row = evaluation.row(scores, "nDCG@10")
        assert row["macro"] is None and row["micro"] is None and row["n"] == 0 and not scores.runs
        assert "N/A" in row["reason"] and set(row["by_domain"].values()) == {None}


def test_domains_and_splits_choose_queries_and_wrong_names_are_said(dataset, workspace) -> None:
    whole = Evaluation(dataset, workspace, Choice(tasks=("summary",), pools=False), silent)
    head = Evaluation(dataset, workspace, Choice(tasks=("summary",), domains=("Head",), pools=False), silent)
    everything = whole.row(next(whole.scores("bm25", "summary")), "R@10")
    only = head.row(next(head.scores("bm25", "summary")), "R@10")
    assert only["by_domain"] == {"Head": everything["by_domain"]["Head"]} and only["n"] < everything["n"]
    nothing = Evaluation(dataset, workspace, Choice(split="dev", pools=False), silent)
    assert nothing.row(next(nothing.scores("bm25", "summary")), "R@10")["macro"] is None
    for wrong, words in ((Choice(tasks=("nope",)), "no task 'nope'"), (Choice(domains=("Foot",)), "no domain 'Foot'")):
        with pytest.raises(QueryError, match=words):
            Evaluation(dataset, workspace, wrong, silent)
    for name in ("nope", "rrf:bm25+nope", "zsum:bm25"):
        with pytest.raises(KeyError):
            whole.retriever(name)


def test_a_killed_evaluation_goes_on_and_its_runs_are_the_same_bytes(dataset, workspace, tmp_path, monkeypatch) -> None:
    from core.store.workspace import Workspace

    def files(root):
        names = ("run.trec.gz", "measures.parquet", "manifest.json")
        return {p.relative_to(root): p.read_bytes() for p in (root / "runs").rglob("*") if p.name in names}

    plain = Workspace(tmp_path / "plain", shipped=None)
    undisturbed = Evaluation(dataset, plain, Choice(tasks=("summary",)), silent)
    list(undisturbed.scores("bm25", "summary"))
    broken = Workspace(tmp_path / "broken", shipped=None)
    calls = []
    rank = Lexical.rank

    def killed(self, place, depth, progress=silent):
        calls.append(place.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return rank(self, place, depth, progress)

    monkeypatch.setattr(Lexical, "rank", killed)
    with pytest.raises(KeyboardInterrupt):
        list(Evaluation(dataset, broken, Choice(tasks=("summary",)), silent).scores("bm25", "summary"))
    done = set(calls[:2])
    list(Evaluation(dataset, broken, Choice(tasks=("summary",)), silent).scores("bm25", "summary"))
    assert not done & set(calls[3:]) and len(calls) == 3 + len(dataset.pool("summary").collections) + 1 - 2
    assert files(tmp_path / "broken") == files(tmp_path / "plain") and len(files(tmp_path / "plain")) == 18


def test_the_commands_print_rows_in_order_and_compare_their_runs(monkeypatch, tmp_path) -> None:
    """Everything comes from the runs that the repository ships: nothing is ranked."""
    monkeypatch.setattr(make, "save", lambda *args: pytest.fail("a shipped run was not found"))
    models = [part for name in OFFLINE for part in ("--model", name)]
    told = CliRunner().invoke(app, ["evaluate", str(DEMO), "--json", *models])
    assert told.exit_code == 0, told.stderr
    rows = json.loads(told.stdout)
    first = [row for row in rows if row["measure"] == "nDCG@10" and row["scope"] == "collections"]
    assert rows[: len(first)] == first and [r["model"] for r in first if r["task"] == "summary"] == list(OFFLINE)
    wanted = {"model", "model_id", "revision", "task", "measure", "n", "clusters", "macro", "micro", "interval",
              "by_domain", "seen_excluded"}  # fmt: skip
    assert all(wanted <= set(row) for row in rows)
    table = CliRunner().invoke(app, ["evaluate", str(DEMO), "--task", "summary", "--model", "bm25"]).stdout
    macro_cell = next(f"{r['macro']:.3f}" for r in first if r["model"] == "bm25" and r["task"] == "summary")
    assert "nDCG@10, summary, by collection" in table and macro_cell in table and "whole pool" in table
    shown = CliRunner().invoke(
        app, ["compare", str(DEMO), "--task", "summary", "--run", "bm25", "--run", "medlite", "--json"]
    )
    assert shown.exit_code == 0, shown.stderr
    (result,) = json.loads(shown.stdout)
    (pair,) = result["macro"]["pairs"]
    means = {r["model"]: r["macro"] for r in first if r["task"] == "summary"}
    assert pair["difference"]["mean"] == pytest.approx(means[pair["a"]] - means[pair["b"]])
    assert pair["verdict"] in ("better", "worse", "not established")
    everyone = CliRunner().invoke(app, ["compare", str(DEMO), "--task", "summary", "--json"])
    again = [p for p in json.loads(everyone.stdout)[0]["macro"]["pairs"] if {p["a"], p["b"]} == {"bm25", "medlite"}]
    assert again == [pair]  # what is shown changes no verdict
    wrong = CliRunner().invoke(app, ["compare", str(DEMO), "--task", "summary", "--run", "nope"])
    assert wrong.exit_code == 1 and "no listed run of 'nope'" in wrong.stderr


def test_every_measure_that_is_available_is_stored(dataset, workspace) -> None:
    scored, refused = listed(dataset, workspace, "case_study", "nDCG@10")
    assert refused == [] and {s.name for s in scored} == set(OFFLINE)
    evaluation = Evaluation(dataset, workspace, Choice(tasks=("case_study",), pools=False), silent)
    (scores,) = evaluation.scores("medlite", "case_study")
    for name in ALL:
        row = evaluation.row(scores, name)
        positives = all(c.positives_only for c in dataset.pool("case_study").collections)
        assert (row["macro"] is None) == bool(not_available(name, positives))


def test_a_hybrid_of_a_shipped_encoder_leaves_out_what_its_part_was_trained_on(dataset, workspace, monkeypatch) -> None:
    """Cases and their topics, for the encoder and for every hybrid with it; on all of them it is named."""
    monkeypatch.setattr(evaluate_module, "trained_cases", lambda *_: {"D001"})
    queries = [q for c in dataset.pool("summary").collections for q in c.all_queries()]
    topics = {cluster_of(q) for q in queries if q.meta["case"] == "D001"}
    seen = sum(cluster_of(q) in topics for q in queries)
    shipped = Evaluation(dataset, workspace, Choice(shipped=True, pools=False), silent)
    everything = Evaluation(dataset, workspace, Choice(include_seen=True, pools=False), silent)
    for name, left_out in (("medlite", seen), ("rrf:bm25+medlite", seen), ("bm25", 0)):
        row = shipped.row(next(shipped.scores(name, "summary")), "nDCG@10")
        assert row["seen_excluded"] == left_out and row["n"] == len(queries) - left_out and not row["training_data"]
        row = everything.row(next(everything.scores(name, "summary")), "nDCG@10")
        assert row["n"] == len(queries) and row["training_data"] is (left_out > 0)
    assert seen > 1


def test_runs_judged_with_two_files_are_two_runs(toy, workspace) -> None:
    """Equal rankings, other judgements: neither takes the measures of the other, nor is listed with it."""
    head = toy / "visual_context" / "Head"
    queries = (head / "queries.jsonl").read_text()
    (head / "queries.jsonl").write_text(queries.replace("a red square", "a passage about a head"))
    (head / "qrels" / "other.tsv").write_text("query-id\tcorpus-id\tscore\na1\tp1\t2\na1\tp0\t0\n")
    found = {}
    for name in ("test", "other", "test", "other"):
        dataset = open_dataset(toy, workspace, name)
        evaluation = Evaluation(dataset, workspace, Choice(tasks=("visual_context",), pools=False), silent)
        (scores,) = evaluation.scores("bm25", "visual_context")
        made = next(m for m in scores.runs if m.info.place == "visual_context/Head")
        assert made.fresh is (name not in found)  # the second time both are there
        assert made.info.overlay == ("" if name == "test" else "qrels other")
        value = scores.values["nDCG@10"]["visual_context/Head", "a1"]
        assert found.setdefault(name, (made.info.run_id, value)) == (made.info.run_id, value)
        assert open_run(made.folder).measures["nDCG@10"]["a1"] == value
        (scored,) = stored_scores(dataset, workspace, "visual_context", "nDCG@10")[0]
        assert scored.values["visual_context/Head", "a1"] == value and unlisted(scored) == ""
        assert [s.run_ids for s in listed(dataset, workspace, "visual_context", "nDCG@10")[0]] == [scored.run_ids]
    (first, plain), (second, other) = found["test"], found["other"]
    assert first != second and (plain, other) == (1.0, 0.0)
    assert unlisted(dataclasses.replace(scored, conditions={**scored.conditions, "judged_by": ""})) == "judged anew"


def test_imports_are_judged_with_the_file_that_was_named(toy, workspace, tmp_path) -> None:
    (toy / "visual_context" / "Head" / "qrels" / "other.tsv").write_text("query-id\tcorpus-id\tscore\na1\tp1\t2\n")
    file = tmp_path / "their.run"
    file.write_text("a1 Q0 p0 1 0.9 x\na1 Q0 p1 2 0.8 x\n")
    made = []
    for name in ("test", "other"):
        place = Place(open_dataset(toy, workspace, name), "visual_context", workspace, "visual_context/Head")
        imported = import_run(file, place.collections[0], False)
        made.append(store_import(imported, place, "theirs", "org/theirs", "1", workspace.root))
    measures = [open_run(m.folder).measures["nDCG@10"] for m in made]
    assert [m.info.overlay for m in made] == ["", "qrels other"] and measures[0] != measures[1]
    (scored,) = listed(place.dataset, workspace, "visual_context", "nDCG@10")[0]
    assert scored.values == {("visual_context/Head", "a1"): measures[1]["a1"]}
