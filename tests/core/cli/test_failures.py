"""``python -m core failures`` on the demo's shipped runs: the tables, JSON, files, and what it cannot do."""

from __future__ import annotations

import csv
import json
import re

import pytest
from typer.testing import CliRunner

from core.__main__ import app
from core.analyze.failures import KINDS
from core.analyze.rejudge import Annotations, Judged
from core.analyze.rejudge_files import COLUMNS, to_csv
from core.evaluate.measures import ALL
from core.settings import DEMO

TASK = ("--task", "summary")


def call(*options: str, code: int = 0, data=DEMO):
    told = CliRunner().invoke(app, ["failures", str(data), *options])
    assert told.exit_code == code, told.stderr
    return told


def value(*options: str):
    """The one JSON value on stdout; NaN is none."""
    return json.loads(call(*options, "--json").stdout, parse_constant=lambda name: pytest.fail(name))


def test_a_table_a_task_says_what_json_says():
    (one,) = value(*TASK, "--run", "medlite", "--by", "plane")
    shown = call(*TASK, "--run", "medlite", "--by", "plane").stdout
    assert f"medlite on Summary (pool), {one['n']} queries / {one['clusters']} clusters, k = 10" in shown
    assert f"  {one['finding']}\n" in shown and one["task"] == "summary" and one["by"] == "plane"
    for group in one["groups"]:
        name = f"{group['name']} ({len(group['members'])} pooled)" if group["pooled"] else group["name"]
        line = re.search(rf"^  {re.escape(name)}  .*$", shown, re.MULTILINE)[0]
        assert f"{100 * group['rate']['mean']:.1f} %" in line and f"{group['mean']['mean']:.3f}" in line
        assert f"{group['n']} / {group['clusters']}" in line and str(group["failures"]) in line
    assert [kind["name"] for kind in one["kinds"]] == [kind.name for kind in KINDS]
    for kind in one["kinds"]:
        if kind["reason"]:
            assert re.search(rf"^  (.*, )?{kind['name']}(, .*)?: N/A: ", shown, re.MULTILINE), kind
        else:
            line = re.search(rf"^  {kind['name']}  .*$", shown, re.MULTILINE)[0]
            assert str(kind["failures"]) in line and line.endswith(kind["role"])
            assert (kind["share"] is None) == (f"{100 * (kind['share'] or 0):.1f} %" not in line)
    assert "modality ablation, nDCG@10" in shown and f"{one['ablation'][0]['full']:.3f}" in shown
    assert f"without a cause: {one['unexplained']} of {one['failures']}" in shown
    assert shown.count(" on Summary (pool)") == 1 and max(map(len, shown.splitlines())) < 250


def test_all_runs_and_tasks_when_nothing_is_named_and_one_report_by_task():
    reports = value()
    assert {one["task"] for one in reports} == {"visual_context", "summary", "query_to_image", "case_study"}
    assert len({(one["run"], one["task"]) for one in reports}) == len(reports) == 22
    (whole,) = value("--run", "bm25", "--by", "task")
    assert whole["task"] == "" and {g["name"] for g in whole["groups"]} == {"Visual context", "Summary", "Case study"}
    assert whole["failures"] == sum(one["failures"] for one in reports if one["run"] == "bm25")
    assert "bm25 on all tasks (pool)" in call("--run", "bm25", "--by", "task").stdout


def test_k_measure_and_scope_change_what_is_counted():
    (ten,) = value(*TASK, "--run", "bm25")
    (one,) = value(*TASK, "--run", "bm25", "-k", "1", "--measure", "AP")
    assert one["k"] == 1 and one["failures"] > ten["failures"] and one["measure"] == "AP"
    assert one["groups"][0]["mean"]["mean"] != ten["groups"][0]["mean"]["mean"]
    (none,) = value(*TASK, "--run", "medlite", "-k", "1000")
    assert none["failures"] == 0 and none["groups"][0]["share"] is none["kinds"][0]["share"] is None
    assert "has a relevant document in the first 1000 for every query" in none["finding"]
    (each,) = value(*TASK, "--run", "bm25", "--scope", "collections")
    assert each["scope"] == "collections" and ten["scope"] == "pool" and len(each["run_ids"]) == 5
    assert each["failures"] <= ten["failures"]  # fewer documents to lose against


def test_every_failing_query_is_written_to_a_table(tmp_path):
    file = tmp_path / "rows.csv"
    (one,) = value(*TASK, "--run", "bm25", "--csv", str(file))
    with file.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == one["failures"] == len({(row["collection"], row["query"]) for row in rows})
    assert {row["run"] for row in rows} == {"bm25"} and all(row["kinds"] and row["evidence"] for row in rows)
    call("--run", "bm25", "--run", "late", *TASK, "--csv", str(file))
    with file.open(newline="", encoding="utf-8") as stream:
        assert {row["run"] for row in csv.DictReader(stream)} == {"bm25", "late"}


def test_re_judgements_are_scored_with_and_change_label_and_ids(tmp_path):
    rows, file = tmp_path / "rows.csv", tmp_path / "judged.csv"
    (before,) = value(*TASK, "--run", "bm25", "--csv", str(rows))
    with rows.open(newline="", encoding="utf-8") as stream:
        worst = next(row for row in csv.DictReader(stream) if row["top hit"])
    doc = worst["top hit"].rpartition("/")
    judged = Judged(worst["collection"], worst["query"], doc[0], doc[2], "2", "Ann", "2026-01-01T00:00:00Z")
    file.write_text(to_csv(Annotations((), (judged,))), encoding="utf-8", newline="")
    (after,) = value(*TASK, "--run", "bm25", "--judgements", str(file))
    assert after["failures"] == before["failures"] - 1 and re.fullmatch("[0-9a-f]{16}", after["overlay"])
    assert after["run"] == f"bm25, judged anew ({after['overlay']})" and before["overlay"] == ""
    assert not set(after["run_ids"]) & set(before["run_ids"]) and len(after["run_ids"]) == len(before["run_ids"])
    file.write_text(to_csv(Annotations()), encoding="utf-8", newline="")
    assert value(*TASK, "--run", "bm25", "--judgements", str(file)) == [before]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--run", "nope"), 1, "There is no stored run of 'nope'; there are: bm25, "),
        (("--measure", "nDCG@7"), 1, f"Runs are stored without 'nDCG@7'; they have {ALL[0]}"),
        ((*TASK, "--by", "colour"), 1, "No query names 'colour'; group by domain, "),
        (("--task", "nowhere"), 1, "has no task 'nowhere'; it has "),
        (("--scope", "world"), 2, "--scope is 'world'; use pool or collections."),
        (("--judgements", "/nowhere.csv"), 1, "/nowhere.csv"),
        ((*TASK, "--run", "bm25", "--csv", "/nowhere/rows.csv"), 1, "/nowhere/rows.csv"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(options, code, words):
    told = call(*options, "--json", code=code)
    assert words in told.stderr and told.stdout == "" and "Traceback" not in told.stderr
    (sentence,) = (line for line in told.stderr.splitlines() if line.startswith("Error: "))
    assert told.stderr.rstrip().endswith(sentence)


def test_a_damaged_file_of_judgements_is_named_with_its_line(tmp_path):
    file = tmp_path / "judged.csv"
    for text, words in (
        ("a,b\n", "judged.csv, line 1: must be"),
        (
            f"{','.join(COLUMNS)}\nnote,summary/Head,nothing,,,,,x,A,2026-01-01T00:00:00Z\n",
            "judged.csv, line 2: The query",
        ),
        ("", "line 1"),
    ):
        file.write_text(text)
        told = call("--judgements", str(file), code=1)
        assert words in told.stderr and told.stdout == "" and told.stderr.count("Error: ") == 1


def test_without_runs_the_command_that_makes_them_is_named(toy, tmp_path):
    told = call(data=toy, code=1)
    assert told.stderr.strip() == (
        "Error: There is no stored run of this data set. python -m core evaluate makes them."
    )
    assert "is not a folder" in call(data=tmp_path / "nowhere", code=2).stderr
    assert call("-k", "0", code=2).stdout == ""
