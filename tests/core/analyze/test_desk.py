"""The desk: every diagnosis is made once for everybody, and runs that are stored meanwhile are noticed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.analyze import desk as module
from core.analyze.desk import Desk
from core.analyze.rejudge import Overlay

TASK = "case_study"


@pytest.fixture
def slow(monkeypatch) -> list[str]:
    """Diagnoses take a moment; the labels of those that are made."""
    made: list[str] = []
    real = module.diagnose

    def diagnose(dataset, workspace, run, facts, overlay, progress):
        made.append(f"{run.label} {overlay.hash if overlay else ''}".strip())
        time.sleep(0.1)
        return real(dataset, workspace, run, facts, overlay, progress)

    monkeypatch.setattr(module, "diagnose", diagnose)
    return made


def test_threads_that_ask_for_one_diagnosis_make_it_once(small, slow) -> None:
    dataset = small.open()
    small.store(dataset)
    small.store(dataset, "bm25")
    desk = small.desk(dataset)
    bm25, medlite = desk.runs(TASK)[0]
    overlay = Overlay({(f"{TASK}/Head", "q1"): {(f"{TASK}/Head", "d9"): 2}})
    asked = [(bm25, None), (medlite, None), (medlite, overlay), (medlite, Overlay({}))] * 3
    with ThreadPoolExecutor(12) as threads:
        found = list(threads.map(lambda one: desk.diagnosis(*one), asked))
    assert sorted(slow) == sorted(["bm25", "medlite", f"medlite {overlay.hash}"])
    for at in range(4):
        assert found[at] is found[at + 4] is found[at + 8]
    assert found[1] is found[3] and found[2].overlay == overlay.hash and found[0].run == bm25
    assert desk.diagnosis(medlite) is found[1] and len(slow) == 3


def test_a_run_that_is_stored_meanwhile_is_noticed(small) -> None:
    dataset = small.open()
    desk = small.desk(dataset)
    assert desk.runs(TASK) == ([], []) and desk.tasks() == [] and desk.scopes(TASK) == []
    small.store(dataset)
    (run,), _ = desk.runs(TASK)
    assert desk.runs(TASK)[0][0] is run and desk.tasks() == [TASK] and desk.scopes(TASK) == ["pool"]
    small.store(dataset, "bm25", "collections")
    assert desk.scopes(TASK) == ["pool", "collections"]
    assert [one.label for one in desk.runs(TASK, "collections")[0]] == ["bm25"]
    small.store(dataset, "bm25")
    assert [one.label for one in desk.runs(TASK)[0]] == ["bm25", "medlite"]
    assert desk.diagnosis(run).ablation == {}
    small.store(dataset, ablation=True)
    assert desk.diagnosis(run).ablation != {}


def test_measures_are_those_that_some_run_has(small) -> None:
    small.qrels["Head"] = [row for row in small.qrels["Head"] if row[2]]
    dataset = small.open()
    small.store(dataset, scope="collections")
    desk = small.desk(dataset)
    assert set(desk.measures(TASK)) >= {"nDCG@10", "AP"} and "Judged@10" in desk.measures(TASK)


def test_facts_are_shared_by_the_runs_of_one_scope(small, monkeypatch) -> None:
    dataset = small.open()
    for model in ("medlite", "bm25"):
        small.store(dataset, model)
        small.store(dataset, model, "collections")
    made = []
    real = Desk._new_facts
    monkeypatch.setattr(Desk, "_new_facts", lambda self, run: made.append(run.scope) or real(self, run))
    desk = small.desk(dataset)
    for scope in ("pool", "collections"):
        for run in desk.runs(TASK, scope)[0]:
            desk.diagnosis(run)
    assert made == ["pool", "collections"]
