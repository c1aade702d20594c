"""Which stored runs become records of a comparison: imports together, the present revision before a deeper one."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace

import pytest

from core.analyze.compare import compare
from core.analyze.listed import Listing, listed, stored_scores
from core.analyze.scored import sorted_out
from core.analyze.task_runs import is_present
from core.evaluate.run import open_run
from core.models import specs

TASK = "case_study"
MEDLITE = specs.get("medlite")
IMPORTED = {"fusion": "imported", "weight": None, "index_kind": "imported"}


def import_file(small, dataset, name: str, depth: int, domain: str, model: str = "theirs") -> None:
    """Store one file of one collection, as `python -m core import` does."""
    rankings = {key: hits for key, hits in small.ranked["full"].items() if key[0] == domain}
    made = small.store(
        dataset, model, "collections", depth=depth, rankings=rankings, **IMPORTED | {"encoder_ids": (name,)}
    )
    for one in made:
        if one.info.place != f"{TASK}/{domain}":
            shutil.rmtree(one.folder)


def test_an_import_of_a_file_a_collection_is_one_record(small) -> None:
    dataset = small.open()
    small.store(dataset, "bm25", "collections")
    for name, depth, domain in (("first", 50, "Head"), ("second", 40, "Thorax"), ("third", 60, "Head")):
        import_file(small, dataset, name, depth, domain)
    scored, refused = listed(dataset, small.workspace, TASK, "nDCG@10")
    assert not refused and [run.name for run in scored] == ["bm25", "theirs"]
    bm25, theirs = scored
    assert theirs.values == bm25.values and len(theirs.values) == 12 and theirs.conditions["depth"] == 60
    found = {run.info.place: run.info for run in Listing(dataset, small.workspace).of_task(TASK) if run.info.depth > 50}
    assert found[f"{TASK}/Head"].run_id in theirs.run_ids and len(theirs.run_ids) == 2
    assert not math.isnan(compare(scored).macro.standings[1].estimate.mean)


def test_the_present_revision_is_listed_before_an_older_one_that_is_deeper(small, monkeypatch) -> None:
    dataset = small.open()
    with monkeypatch.context() as older:
        older.setitem(specs.SPECS, "medlite", replace(MEDLITE, revision="contrastive-0"))
        small.store(dataset, scope="collections", depth=1000, encoder_ids=("older",))
    monkeypatch.setattr("core.analyze.listed.trained_cases", lambda dataset, pipeline: set())
    (old,), _ = listed(dataset, small.workspace, TASK, "nDCG@10")
    assert old.revision == "contrastive-0"
    small.store(dataset, scope="collections", depth=100)
    (run,), _ = listed(dataset, small.workspace, TASK, "nDCG@10")
    assert (run.revision, run.conditions["depth"]) == (MEDLITE.revision, 100)
    scored, _ = stored_scores(dataset, small.workspace, TASK, "nDCG@10")
    assert sorted_out(scored)[1] == ["medlite (contrastive-0): an older revision than the one listed."]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_run_of_every_collection_is_listed_before_a_deeper_one_of_some(small, backwards) -> None:
    dataset = small.open()
    for depth in (1000, 100)[:: -1 if backwards else 1]:
        made = small.store(dataset, "bm25", "collections", depth=depth)
        if depth == 1000:
            shutil.rmtree(made[0].folder)
    (run,), _ = listed(dataset, small.workspace, TASK, "nDCG@10")
    assert run.conditions["depth"] == 100 and len(run.values) == 12


def test_two_imports_of_one_name_are_one_row_and_the_other_is_named(small) -> None:
    dataset = small.open()
    import_file(small, dataset, "first", 50, "Head")
    scored, _ = stored_scores(dataset, small.workspace, TASK, "nDCG@10")
    again = replace(scored[0], model_id="elsewhere", revision="newer", run_ids=("zz",))
    found, left_out = sorted_out([again, scored[0]])
    assert [run.model_id for run in found] == ["elsewhere"] and len(left_out) == 1 and "theirs (" in left_out[0]


def test_what_is_a_present_revision(small) -> None:
    dataset = small.open()
    (made, *_) = small.store(dataset)
    info = open_run(made.folder).info
    assert is_present(info) and not is_present(replace(info, revision="contrastive-0"))
    assert not is_present(replace(info, model_id="another"))
    hybrid = replace(info, model="rrf:bm25+medlite", revision=f"{specs.get('bm25').revision}; {MEDLITE.revision}")
    assert is_present(hybrid) and not is_present(replace(hybrid, revision="old; contrastive-1"))
    assert is_present(replace(info, model="theirs", revision="7", index_kind="imported"))


def test_a_measure_that_a_run_lacks_leaves_it_out_and_says_so(small) -> None:
    small.qrels["Head"] = [row for row in small.qrels["Head"] if row[2]]
    dataset = small.open()
    small.store(dataset, "bm25", "collections")
    assert stored_scores(dataset, small.workspace, TASK, "bpref") == ([], ["bm25 was stored without bpref."])
