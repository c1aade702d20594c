"""What is said of a run: the sentence on top, the report, the rows of its failures, and where they come from."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from core.analyze import lists, slices
from core.analyze.diagnosis import Diagnosis
from core.analyze.rejudge import Overlay
from core.analyze.report import Report, failure_rows, finding, overview, provenance, report, rows_csv
from core.analyze.slices import Group
from core.evaluate.stats import Estimate
from core.settings import DEMO
from core.version import code_version

TASK = "case_study"
RATE = Estimate(0.25, 0.1, 0.4, 40, 12, "percentile bootstrap")
HEAD = Group("Head", False, 40, 12, 10, RATE, RATE, "near miss", 0.5, 0.25, ())
REST = Group("other", True, 9, 5, 3, replace(RATE, mean=1 / 3), RATE, "tie", 1.0, math.nan, ("a", "b"))


@pytest.fixture
def diagnosis(small) -> Diagnosis:
    """Of the small study, with its ablation. Query 5 of each domain fails at k = 10; at k = 1 only query 0 does not."""
    dataset = small.open()
    small.store(dataset, ablation=True)
    desk = small.desk(dataset)
    return desk.diagnosis(desk.runs(TASK)[0][0])


# The sentence


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (
            [HEAD, REST],
            "m fails on 25 % of Head queries (40 queries, 12 clusters; 10–40 %); "
            "most marked among its failures: near miss (50 %, 25 % of the rest).",
        ),
        (
            [replace(HEAD, dominant="", share=math.nan), REST],
            "m fails on 25 % of Head queries (40 queries, 12 clusters; 10–40 %).",
        ),
        (
            [replace(HEAD, n=1, clusters=1, failures=1, rate=Estimate(1.0, None, None, 1, 1, "N/A"))],
            "m fails on 100 % of Head queries (1 query, 1 cluster; no interval); "
            "most marked among its failures: near miss (50 %, 25 % of the rest).",
        ),
        (
            [replace(HEAD, failures=0, rate=replace(RATE, mean=0.0)), replace(REST, failures=0)],
            "m has a relevant document in the first 5 for every query.",
        ),
        (
            [REST],
            "m fails on 33 % of all 9 queries (9 queries, 5 clusters; 10–40 %); no group has enough clusters to be "
            "looked at alone; most marked among its failures: tie (100 %).",
        ),
        ([replace(REST, failures=0)], "m has a relevant document in the first 5 for every query."),
        ([], "m has no judged query here."),
        ([replace(HEAD, n=0, failures=0)], "m has no judged query here."),
    ],
)
def test_the_finding_is_the_group_that_surely_fails_most_or_why_there_is_none(groups, sentence):
    assert finding("m", groups, 5) == sentence


def test_the_first_group_may_be_without_failures_while_others_have_some():
    none = replace(HEAD, failures=0, dominant="", rate=replace(RATE, mean=0.0, low=0.0, high=0.0))
    assert finding("m", [none, REST], 5) == "m fails on 0 % of Head queries (40 queries, 12 clusters; 0–0 %)."


# Reports


def test_a_report_holds_what_its_parts_say(diagnosis):
    (one,) = report([diagnosis], "domain", 10, "nDCG@10")
    assert (one.run, one.task, one.scope, one.by, one.k, one.measure) == (
        "medlite", TASK, "pool", "domain", 10, "nDCG@10"
    )  # fmt: skip
    assert (one.n, one.clusters, one.failures, one.seen_excluded) == (12, 6, 2, 0)
    assert one.groups == tuple(slices.where([diagnosis], "domain", 10, "nDCG@10"))
    assert one.kinds == tuple(slices.kinds([diagnosis], 10)) and one.run_ids == diagnosis.run_ids
    assert one.unexplained == slices.unexplained([diagnosis], 10)[0] and one.finding == finding(one.run, one.groups, 10)
    assert [row.collection for row in one.ablation] == ["", f"{TASK}/Head", f"{TASK}/Thorax"]
    assert [found.facet for found in one.confusion] == ["domain", "specialty"]  # one modality confuses nothing
    (first,) = report([diagnosis], "specialty", 1, "nDCG@10")
    assert first.failures == 10 and first.by == "specialty"


def test_a_facet_that_no_query_has_names_those_there_are(diagnosis):
    with pytest.raises(ValueError, match="No query names 'colour'; group by domain, specialty, modality"):
        report([diagnosis], "colour", 10, "nDCG@10")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The desk of the demo's shipped runs."""
    from core.analyze.desk import Desk
    from core.data.dataset import open_dataset
    from core.media.phash import Hashes
    from core.store.workspace import open_workspace

    workspace = open_workspace(str(tmp_path_factory.mktemp("demo")))
    return Desk(open_dataset(DEMO, workspace), workspace, Hashes(workspace.path("thumbnails")))


def of(desk, label: str, task: str) -> Diagnosis:
    return desk.diagnosis(next(run for run in desk.runs(task)[0] if run.label == label))


def test_grouped_by_task_there_is_one_report_of_all_tasks(demo):
    tasks = ("summary", "case_study")
    diagnoses = [of(demo, "bm25", task) for task in tasks]
    (one,) = report(diagnoses, "task", 10, "nDCG@10")
    assert one.task == "" and one.ablation == () and one.confusion == () and one.ablation_note == ""
    assert {group.name: group.failures for group in one.groups} == {
        "Summary": int(diagnoses[0].failed(10).sum()),
        "Case study": int(diagnoses[1].failed(10).sum()),
    }
    assert one.n == sum(group.n for group in one.groups) and one.failures == sum(g.failures for g in one.groups)
    assert len(one.run_ids) == 2 and one.clusters == len({*diagnoses[0].clusters, *diagnoses[1].clusters})
    assert [each.task for each in report(diagnoses, "plane", 10, "nDCG@10")] == list(tasks)


def test_the_overview_by_task_looks_for_the_run_in_every_task(demo):
    main = of(demo, "bm25", "summary")
    whole = overview(demo, main, "task", 10, "nDCG@10")
    assert {group.name for group in whole.groups} == {"Summary", "Case study", "Visual context"}  # none on pictures
    assert overview(demo, main, "plane", 10, "nDCG@10") == report([main], "plane", 10, "nDCG@10")[0]


def test_judged_anew_label_ids_and_figures_are_others(demo):
    main = of(demo, "bm25", "summary")
    worst = int(np.flatnonzero(main.failed(10))[0])
    key, (hit, *_) = (main.queries[worst].collection, main.queries[worst].id), main.hits(worst)
    overlay = Overlay({key: {hit[0]: 2}})
    anew = demo.diagnosis(main.run, overlay)
    before, after = (report([one], "plane", 10, "nDCG@10")[0] for one in (main, anew))
    assert after.overlay == overlay.hash and after.run == f"bm25, judged anew ({overlay.hash})"
    assert after.failures == before.failures - 1 and not set(after.run_ids) & set(before.run_ids)
    whole = overview(demo, anew, "task", 10, "nDCG@10", overlay)
    assert whole.overlay == overlay.hash and whole.run == after.run
    assert f"judged anew {overlay.hash}" in provenance(anew)["judgements"]
    assert provenance(anew)["runs"] == ", ".join(anew.run_ids) != provenance(main)["runs"]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([0.0], "The full run gives the picture no weight (its default here), so that full, words only and swapped"),
        ([1.0], "The full run gives the words no weight (its default here), so that full, picture only"),
        ([0.0, 0.6], "The full run gives the picture no weight (some heads' default here)"),
        ([0.6], ""),
        ([], ""),
    ],
)
def test_a_side_without_weight_is_said_of_the_ablation(small, weights, words):
    dataset = small.open()
    small.store(dataset, ablation=True, facts={"weights": weights})
    desk = small.desk(dataset)
    (one,) = report([desk.diagnosis(desk.runs(TASK)[0][0])], "domain", 10, "nDCG@10")
    assert one.ablation and one.ablation_note.startswith(words) and bool(one.ablation_note) is bool(words)


def test_without_an_ablation_nothing_is_said_of_it(small):
    dataset = small.open()
    small.store(dataset, facts={"weights": [0.0]})
    desk = small.desk(dataset)
    (one,) = report([desk.diagnosis(desk.runs(TASK)[0][0])], "domain", 10, "nDCG@10")
    assert one.ablation == () and one.ablation_note == ""


# Rows


def test_rows_are_the_failures_worst_first_with_numbers_or_nothing(diagnosis):
    rows = failure_rows(diagnosis, 1, "nDCG@10")
    at = lists.chosen(diagnosis, 1, "nDCG@10", lists.Wanted())
    assert [(row["collection"], row["query"]) for row in rows] == [
        (diagnosis.queries[i].collection, diagnosis.queries[i].id) for i in at
    ]
    values = [row["nDCG@10"] for row in rows]
    assert len(rows) == 10 and values == sorted(values)
    for row, i in zip(rows, at, strict=True):
        assert row["first relevant"] == (int(diagnosis.first[i]) or None) and row["depth"] == diagnosis.depth
        assert row["kinds"].split("; ") == list(diagnosis.kinds(i, 1)) and row["relevant"] == 1
        assert row["top hit"] == "/".join(diagnosis.hits(i)[0][0]) and row["task"] == TASK
        one_sided = not diagnosis.queries[i].images
        assert (row["nDCG@10 picture"] is None) is one_sided and (row["nDCG@10 full"] is None) is one_sided
    assert rows[0]["first relevant"] is None and rows[0]["query"] == "q5"  # of words only, finds nothing
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_rows_of_chosen_queries_keep_their_order_and_a_missing_measure_is_none(diagnosis):
    rows = failure_rows(diagnosis, 10, "nothing of the kind", [3, 0])
    assert [row["query"] for row in rows] == ["q3", "q0"] and [row["nothing of the kind"] for row in rows] == [None] * 2


def test_csv_reads_back_as_the_rows_and_runs_no_formula(diagnosis):
    queries = [
        replace(q, text=f' {sign}1+1,"x"\nline') for q, sign in zip(diagnosis.queries, "=+-@＝|" * 2, strict=True)
    ]
    changed = replace(diagnosis, queries=tuple(queries))
    rows = failure_rows(changed, 10, "nDCG@10", list(range(6)))
    back = list(csv.DictReader(io.StringIO(rows_csv(rows), newline="")))
    assert [row["text"] for row in back] == [f'\'{sign}1+1,"x" line' for sign in "=+-@＝"] + ['|1+1,"x" line']
    for told, row in zip(back, rows, strict=True):
        assert list(told) == list(row)
        assert {k: v for k, v in told.items() if k != "text"} == {
            name: "" if value is None else str(value) for name, value in row.items() if name != "text"
        }
    assert rows_csv([]) == ""


# Provenance


def test_provenance_names_data_judgements_runs_code_and_tool(small):
    dataset = small.open()
    small.store(dataset, facts={"answered_by": "heads that saw neither"})
    desk = small.desk(dataset)
    diagnosis = desk.diagnosis(desk.runs(TASK)[0][0])
    facts = provenance(diagnosis)
    assert facts["data"] == f"Study, {dataset.data_id}" and facts["judgements"] == "test"
    assert facts["task"] == "Case study" and facts["scope"] == "pool"
    assert facts["runs"] == ", ".join(diagnosis.run_ids) and len(diagnosis.run_ids[0]) == 16
    assert diagnosis.run.model_id in facts["model"] and diagnosis.run.revision in facts["model"]
    assert facts["code"] == f"M3Retrieve Explorer {code_version()}" and "ir-measures" in facts["measured with"]
    assert facts["answered by"] == "heads that saw neither"
    assert facts["left out"] == "0 queries the model was trained on" and facts["date"].count("-") == 2
    assert all(isinstance(value, str) for value in facts.values()) and isinstance(
        report([diagnosis], "domain", 1, "AP")[0], Report
    )
