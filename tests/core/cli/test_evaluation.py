"""Exports, imports and holes from the command line, on the demo's shipped runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from core.__main__ import app
from core.analyze.league import Leagues
from core.data.dataset import open_dataset
from core.data.names import trec_name
from core.evaluate.run import open_run
from core.settings import DEMO


def call(*options: str, ok: bool = True):
    told = CliRunner().invoke(app, list(options))
    assert (told.exit_code == 0) is ok, told.stderr
    return told


def test_what_is_exported_can_be_imported_and_scores_the_same(tmp_path) -> None:
    out = ("--csv", str(tmp_path / "t.csv"), "--latex", str(tmp_path / "t.tex"), "--trec", str(tmp_path / "trec"))
    out += ("--mteb", str(tmp_path / "m"))
    rows = json.loads(call("evaluate", str(DEMO), "--task", "summary", "--model", "bm25", *out, "--json").stdout)
    (row,) = (r for r in rows if r["measure"] == "nDCG@10" and r["scope"] == "collections")
    with (tmp_path / "t.csv").open() as stream:
        table = list(csv.DictReader(stream))
    assert any(r["measure"] == "nDCG@10" and float(r["macro"]) == pytest.approx(row["macro"], abs=5e-4) for r in table)
    assert r"\toprule" in (tmp_path / "t.tex").read_text()
    (result,) = [p for p in (tmp_path / "m").rglob("*.json") if p.name != "model_meta.json"]
    subsets = json.loads(result.read_text())["scores"]["test"]
    assert np.mean([s["ndcg_at_10"] for s in subsets]) == pytest.approx(row["macro"])
    file = tmp_path / "trec" / "bm25" / "summary%2FHead.run.gz"
    given = ("--collection", "summary/Head", "--model", "theirs", "--run", str(file))
    told = json.loads(call("import", str(DEMO), *given, "--json").stdout)
    assert told["place"] == "summary/Head"
    both = ("--run", "bm25", "--run", "theirs")
    shown = json.loads(call("compare", str(DEMO), "--task", "summary", *both, "--json").stdout)
    (head,) = (g for g in shown[0]["domains"] if g["name"] == "Head")
    means = {s["name"]: s["estimate"]["mean"] for s in head["standings"]}
    assert means["theirs"] == pytest.approx(means["bm25"]) == pytest.approx(row["by_domain"]["Head"]["mean"])
    assert next(s for s in shown[0]["macro"]["standings"] if s["name"] == "theirs")["estimate"]["mean"] is None  # N/A


def test_a_run_of_a_whole_task_is_stored_like_one_of_each_collection(tmp_path, workspace) -> None:
    call("evaluate", str(DEMO), "--task", "summary", "--model", "bm25", "--trec", str(tmp_path / "trec"))
    files = sorted((tmp_path / "trec" / "bm25").glob("summary*.run.gz"))
    assert len(files) == 5
    together = tmp_path / "all.run.gz"
    together.write_bytes(b"".join(file.read_bytes() for file in files))  # gzip files end to end are one
    options = ("--run", str(together), "--model-id", "org/theirs", "--revision", "v1")
    told = call("import", str(DEMO), "--task", "summary", "--model", "theirs", *options, "--json")
    made = json.loads(told.stdout)
    assert (made["model"], made["task"]) == ("theirs", "summary")
    assert all(note.endswith("queries of the collection are not in the file and score 0.") for note in made["notes"])
    assert told.stderr.splitlines() == made["notes"]
    dataset = open_dataset(DEMO, workspace)
    for one, collection in zip(made["runs"], dataset.pool("summary").collections, strict=True):
        alone = ("--collection", collection.key, "--model", "alone", "--run")
        (file,) = (f for f in files if f.name == f"{trec_name(collection.key)}.run.gz")
        single = json.loads(call("import", str(DEMO), *alone, str(file), "--json").stdout)
        whole, apart = open_run(Path(one["folder"])), open_run(Path(single["folder"]))
        assert one["place"] == single["place"] == collection.key
        assert whole.run.rankings == apart.run.rankings and whole.measures == apart.measures
        assert (whole.info.model_id, whole.info.revision, whole.info.depth) == ("org/theirs", "v1", apart.info.depth)
    plain = call("import", str(DEMO), "--task", "summary", "--model", "theirs", *options).stdout
    assert plain.count("Stored ") == 5 and f"{made['runs'][0]['folder']}." in plain
    told = call("import", str(DEMO), "--task", "summary", "--model", "part", "--run", str(files[0]))
    assert told.stdout.count("Stored ") == 1 and told.stderr.count("The file has no query of summary/") == 4


def test_vectors_made_elsewhere_are_ranked_by_cosine(tmp_path, workspace) -> None:
    collection = open_dataset(DEMO, workspace).collections["summary/Head"]
    generator = np.random.default_rng(1)
    options = []
    for name, table in (("docs", collection.corpus), ("queries", collection.queries)):
        ids = table.column("id").to_pylist()
        np.save(tmp_path / f"{name}.npy", generator.standard_normal((len(ids), 5)).astype(np.float32))
        (tmp_path / f"{name}.txt").write_text("\n".join(ids) + "\n")
        options += [f"--{name}", str(tmp_path / f"{name}.npy"), str(tmp_path / f"{name}.txt")]
    told = call("import", str(DEMO), "--collection", "summary/Head", "--model", "vectors", *options)
    assert f"Stored {len(collection.queries)} rankings" in told.stdout


def test_wrong_imports_are_one_sentence(tmp_path) -> None:
    bad = tmp_path / "bad.run"
    lines = [f"q-D0{n} Q0 D0{n} 1 0.5 x" for n in range(6)] + ["q1 Q0 d1"]
    bad.write_text("\n".join(lines))
    good = tmp_path / "good.run"
    good.write_text("\n".join(lines[:-1]))
    common = ("import", str(DEMO), "--model", "theirs")
    for options, words in (
        (("--collection", "summary/Head", "--run", str(bad)), "line 7"),
        (("--collection", "nowhere", "--run", str(bad)), "no collection 'nowhere'"),
        (("--collection", "summary/Head"), "Give --run FILE"),
        (("--collection", "summary/Head", "--run", str(tmp_path / "absent.run")), "absent.run"),
        (("--task", "summary", "--run", str(bad)), "bad.run, line 7: 3 columns"),
        (("--task", "nowhere", "--run", str(good)), "no task 'nowhere'; it has"),
        (("--task", "query_to_image", "--run", str(good)), "no query id of it is in query_to_image"),
        (("--task", "summary", "--collection", "summary/Head", "--run", str(good)), "Give --collection NAME, or"),
        (("--run", str(good)), "Give --collection NAME, or --task NAME"),
        (("--task", "summary", "--run", "their.json"), "Only a TREC run can be of a whole task"),
        (("--task", "summary", "--docs", "a", "b", "--queries", "a", "b"), "Only a TREC run can be of a whole task"),
    ):
        told = call(*common, *options, ok=False)
        assert words in told.stderr and told.stdout == "" and "Traceback" not in told.stderr
    told = call("import", str(DEMO), "--model", "bm25", "--collection", "summary/Head", "--run", str(bad), ok=False)
    assert "makes its own runs" in told.stderr
    told = call("import", str(DEMO), "--model", " ", "--task", "summary", "--run", str(good), ok=False)
    assert "The model has no name" in told.stderr


def test_holes_are_listed_with_their_twins() -> None:
    found = json.loads(call("holes", str(DEMO), "--task", "query_to_image", "--json").stdout)
    assert len(found) == 5 and all(one["unjudged"] is not None and one["reason"] == "" for one in found)
    plain = call("holes", str(DEMO), "--task", "query_to_image").stdout
    total = sum(len(one["possible"]) for one in found)
    assert plain.count("as the relevant") == total


def test_published_figures_stand_beside_ours_and_say_why_they_differ() -> None:
    shown = call("evaluate", str(DEMO), "--task", "query_to_image", "--model", "medlite", "--published").stdout
    assert shown.count("against") == 10 and "other data" in shown and "N/A" in shown


def test_compare_is_the_league_by_domain_and_by_other_facets(workspace) -> None:
    leagues = Leagues(open_dataset(DEMO, workspace), workspace)
    common = ("compare", str(DEMO), "--task", "visual_context", "--json")
    for options, by in (((), "domain"), (("--by", "domain"), "domain"), (("--by", "modality"), "modality")):
        expected = leagues.of("visual_context", "nDCG@10", by).comparison.as_dict()
        assert json.loads(call(*common, *options).stdout) == [json.loads(json.dumps(expected))]
    told = call(*common, "--by", "colour", ok=False)
    assert "not grouped by 'colour'" in told.stderr and told.stdout == ""
    shown = call("compare", str(DEMO), "--task", "visual_context", "--by", "modality").stdout
    assert "nDCG@10, visual_context, other: " in shown and "not tested" in shown
    assert call("compare", str(DEMO), "--task", "visual_context").stdout.count("visual_context, ") == 6


def test_cost_measures_parts_and_shows_hybrids(workspace) -> None:
    common = ("cost", str(DEMO), "--task", "summary", "--model", "bm25")
    (row,) = json.loads(call(*common, "--json").stdout)
    assert row["model"] == "bm25" and row["document_seconds"] > 0 and row["conditions"]["machine"]
    assert [p.name for p in workspace.path("costs").rglob("*.json")] == ["bm25.json"]
    shown = call(*common).stdout
    assert "summary          bm25 " in shown and "Measured on " in shown
    told = call("cost", str(DEMO), "--task", "summary", "--model", "theirs", ok=False)
    assert "No model is called 'theirs'" in told.stderr and told.stdout == ""
    pictures = call("cost", str(DEMO), "--task", "query_to_image", "--model", "bm25").stdout
    assert "N/A: it reads words" in pictures and "Measured on" not in pictures
