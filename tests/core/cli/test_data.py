"""``python -m core check``: what it prints, where, and its exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from core.__main__ import app
from core.data import health
from core.data.dataset import open_dataset
from core.settings import REPOSITORY
from tests.conftest import write_collection, write_jsonl


def check_in_a_process(data: Path, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "core", "check", str(data), *more]
    environment = {k: v for k, v in {**os.environ, **environment}.items() if v}
    return subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, encoding="utf-8", timeout=120, check=False
    )


def check(data: Path, *more: str, **environment: str) -> Result:
    return CliRunner().invoke(app, ["check", str(data), *more], env=environment)


@pytest.fixture
def faulty(toy: Path) -> Path:
    """The toy with a broken line, a missing picture and a judgement of nothing, with letters of several scripts."""
    with (toy / "query_to_image" / "Head" / "corpus.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"_id": "broken\n{"_id": "doc é 解剖", "text": "\u2028", "image_path": "images/none é.png"}\n')
    with (toy / "visual_context" / "Thorax" / "qrels" / "test.tsv").open("a") as stream:
        stream.write("b1\tnone\t1\n")
    return toy


def test_json_is_one_value_with_everything_and_faults_give_1(faulty, workspace):
    done = check_in_a_process(faulty, "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)  # one value, nothing before it, nothing after it
    assert list(report) == ["collections", "totals", "faults", "notes"]
    assert report == json.loads(json.dumps(health.check(open_dataset(faulty, workspace)).as_dict()))
    corpus = "query_to_image/Head/corpus.jsonl"
    assert sorted((f["kind"], f["file"], f["line"], f["id"]) for f in report["faults"]) == [
        ("id_whitespace", corpus, 4, "doc é 解剖"),
        ("malformed", corpus, 3, ""),
        ("picture_missing", corpus, 4, "doc é 解剖"),
        ("unknown_document", "visual_context/Thorax/qrels/test.tsv", 4, "none"),
    ]
    for finding in report["faults"] + report["notes"]:
        assert list(finding) == ["kind", "file", "line", "id", "detail"] and finding["detail"]
    assert check(faulty, "--json").stdout == done.stdout  # from the cache, the same


def test_text_names_every_fault_and_some_notes(faulty):
    done = check(faulty)
    assert done.exit_code == 1
    for part in ("Toy", "CC0-1.0", "Faults: 4", "query_to_image/Head/corpus.jsonl:3", "test.tsv:4  none", "Notes: "):
        assert part in done.stdout, part
    assert "Traceback" not in done.stderr


def test_notes_alone_give_0(toy):
    done = check(toy, "--json")
    report = json.loads(done.stdout)
    assert done.exit_code == 0 and report["faults"] == [] and report["notes"]


@pytest.mark.parametrize("content", ["nothing", "file", "empty"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_no_data_set_gives_2(tmp_path, content, more):
    path = tmp_path / "data"
    if content == "file":
        path.write_bytes(b"")
    elif content == "empty":
        path.mkdir()
    done = check(path, *more)
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith("Error: ") and str(path) in done.stderr


def test_another_judgement_file(toy):
    for folder in sorted(toy.glob("*/*/qrels")):
        shutil.copyfile(folder / "test.tsv", folder / "dev.tsv")
        (folder / "test.tsv").unlink()
    assert check(toy, "--qrels", "dev", "--json").exit_code == 0
    report = json.loads(check(toy, "--json").stdout)
    assert [f["kind"] for f in report["faults"]] == ["no_qrels"] * 4 and "--qrels" in report["faults"][0]["detail"]
    wrong = check(toy, "--qrels", "../x")
    assert wrong.exit_code == 1 and wrong.stdout == "" and "not a plain file name" in wrong.stderr


def test_a_note_about_the_workspace_goes_to_stderr(toy, tmp_path):
    (tmp_path / "tmp").mkdir()
    done = check_in_a_process(toy, "--json", M3R_WORKSPACE="", HOME="", XDG_CACHE_HOME="", TMPDIR=str(tmp_path / "tmp"))
    assert done.returncode == 0 and json.loads(done.stdout)["faults"] == []
    assert "M3R_WORKSPACE" in done.stderr and str(tmp_path / "tmp") in done.stderr


def test_a_workspace_that_cannot_be_written_is_an_error(toy, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    done = check(toy, "--json", M3R_WORKSPACE=str(tmp_path / "file"))
    assert done.exit_code == 1 and done.stdout == "" and "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_names_that_are_not_utf_8_do_not_stop_it(tmp_path, encoding):
    write_collection(tmp_path / "data" / os.fsdecode(b"K\xf6rper"), [{"_id": "é"}], [{"_id": "d"}], [])
    done = check_in_a_process(tmp_path / "data", "--json", PYTHONIOENCODING=encoding)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["collections"][0]["collection"] == "retrieval/K\\xf6rper"


@pytest.mark.realdata
def test_of_r2med_the_queries_are_refused(shared):
    done = check(shared / "eval" / "r2med_demo", "--json")
    report = json.loads(done.stdout)
    assert done.exit_code == 1 and report["totals"]["documents"] == 2 and report["totals"]["queries"] == 0
    assert "R2MED" in report["faults"][0]["detail"] and report["faults"][0]["kind"] == "no_queries"


@pytest.mark.realdata
@pytest.mark.parametrize(("name", "queries", "documents"), [("medlars_beir", 30, 1033), ("pubmedqa_beir", 1000, 1000)])
def test_public_beir_collections_have_no_fault(shared, name, queries, documents):
    done = check(shared / "eval" / name, "--json")
    report = json.loads(done.stdout)
    assert done.exit_code == 0 and report["faults"] == []
    assert (report["totals"]["queries"], report["totals"]["documents"]) == (queries, documents)


def test_documents_alone_are_checked(tmp_path):
    write_jsonl(tmp_path / "data" / "corpus.jsonl", [{"_id": "d", "text": "a"}])
    report = json.loads(check(tmp_path / "data", "--json").stdout)
    assert [f["kind"] for f in report["faults"]] == ["no_queries", "no_qrels"]
