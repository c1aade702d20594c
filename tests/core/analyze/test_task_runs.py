"""Which stored runs of a task are shown: the newest and deepest of each model, by scope, without what a model saw."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace

import pytest

from core.analyze.task_runs import colour_of, scopes, task_runs
from core.evaluate.run import Run, open_run, save
from core.models import specs

TASK = "case_study"
MEDLITE = specs.get("medlite")
HYBRID = {"fusion": "rrf of bm25 none None and medlite centred 0.6", "weight": None}
IMPORTED = {"fusion": "imported", "weight": None, "index_kind": "imported"}


def shown(study, dataset, scope: str | None = None) -> list[str]:
    return [run.label for run in task_runs(dataset, study.workspace, TASK, scope)[0]]


def test_models_come_in_the_order_of_tables_with_their_colours(small) -> None:
    dataset = small.open()
    assert task_runs(dataset, small.workspace, TASK) == ([], []) and scopes(dataset, small.workspace, TASK) == []
    for model, recipe in (
        ("theirs", IMPORTED),
        ("rrf:bm25+medlite", HYBRID),
        ("medlite", {}),
        ("bm25", {}),
        ("a", IMPORTED),
    ):
        small.store(dataset, model, **recipe)
    runs, reasons = task_runs(dataset, small.workspace, TASK)
    assert [run.label for run in runs] == ["bm25", "medlite", "rrf:bm25+medlite", "a", "theirs"] and not reasons
    assert [colour_of(run) for run in runs] == [specs.get("bm25").colour, MEDLITE.colour, *["#6b7280"] * 3]
    medlite = runs[1]
    assert (medlite.model, medlite.model_id, medlite.revision) == ("medlite", MEDLITE.model_id, MEDLITE.revision)
    assert (medlite.task, medlite.scope, medlite.seen, medlite.source) == (TASK, "pool", frozenset(), "")
    assert [run.info.place for run in medlite.runs] == [f"pool-{TASK}"]


def test_only_full_exact_runs_judged_with_this_file(small) -> None:
    dataset = small.open()
    (made,) = small.store(dataset, "bm25")
    small.store(dataset, "medlite", variant="words")
    small.store(dataset, "minilm", index_kind="hnsw")
    stored = open_run(made.folder)
    for change in ({"overlay": "ab12"}, {"split": "dev"}, {"task": "summary"}):
        save_as(small, dataset, stored, **change)
    assert shown(small, dataset) == ["bm25"]
    (run,), _ = task_runs(dataset, small.workspace, TASK)
    assert [one.path for one in run.runs] == [made.folder]


def save_as(study, dataset, stored, **change) -> None:
    info = replace(stored.info, **{"model": "other", "encoder_ids": ("other",)} | change)
    save(study.workspace.root, dataset.data_id, Run(info, stored.run.rankings), stored.measures, {})


@pytest.mark.parametrize("backwards", [False, True])
def test_of_one_model_the_deepest_counts(small, backwards) -> None:
    dataset = small.open()
    for depth in (100, 1000, 50)[:: -1 if backwards else 1]:
        small.store(dataset, depth=depth)
    (run,), _ = task_runs(dataset, small.workspace, TASK)
    assert [one.info.depth for one in run.runs] == [1000]


def test_the_present_revision_counts_before_an_older_one_that_is_deeper(small, monkeypatch) -> None:
    dataset = small.open()
    with monkeypatch.context() as older:
        older.setitem(specs.SPECS, "medlite", replace(MEDLITE, revision="contrastive-0"))
        small.store(dataset, depth=1000, encoder_ids=("older",))
        small.store(dataset, scope="collections", depth=1000, encoder_ids=("older",))
    assert [run.revision for run in task_runs(dataset, small.workspace, TASK)[0]] == ["contrastive-0"]
    small.store(dataset, depth=100)
    (run,), _ = task_runs(dataset, small.workspace, TASK)
    assert run.revision == MEDLITE.revision and run.runs[0].info.depth == 100


def test_an_import_is_one_model_whatever_files_it_came_in(small) -> None:
    """A file a collection, of other depths; of two for one collection the deeper counts."""
    dataset = small.open()
    files = (("first", 50, "Head"), ("second", 40, "Thorax"), ("third", 60, "Head"))
    for name, depth, domain in files:
        rankings = {key: hits for key, hits in small.ranked["full"].items() if key[0] == domain}
        recipe = IMPORTED | {"encoder_ids": (name,)}
        made = small.store(dataset, "theirs", "collections", depth=depth, rankings=rankings, **recipe)
        for one in made:
            if one.info.place != f"{TASK}/{domain}":
                shutil.rmtree(one.folder)
    (run,), reasons = task_runs(dataset, small.workspace, TASK)
    assert not reasons and run.label == "theirs"
    assert [one.info.encoder_ids for one in run.runs] == [("third",), ("second",)]
    assert small.desk(dataset).diagnosis(run).depth == 60


def test_the_scope_is_the_pool_where_there_is_one(small) -> None:
    dataset = small.open()
    small.store(dataset, scope="collections")
    assert scopes(dataset, small.workspace, TASK) == ["collections"]
    (run,), reasons = task_runs(dataset, small.workspace, TASK)
    assert run.scope == "collections" and not reasons
    assert [one.info.place for one in run.runs] == [f"{TASK}/Head", f"{TASK}/Thorax"]
    small.store(dataset, "bm25")
    assert scopes(dataset, small.workspace, TASK) == ["pool", "collections"]
    assert shown(small, dataset) == ["bm25"] == shown(small, dataset, "pool")
    assert shown(small, dataset, "collections") == ["medlite"]


def test_a_model_that_lacks_collections_is_shown_and_it_is_said(small) -> None:
    dataset = small.open()
    made = small.store(dataset, scope="collections")
    (made[0].folder / "manifest.json").unlink()
    runs, reasons = task_runs(dataset, small.workspace, TASK)
    assert [len(run.runs) for run in runs] == [1] and len(reasons) == 2
    assert "manifest.json is missing" in reasons[0]
    assert reasons[1] == f"medlite has runs on 1 of 2 collections of {TASK}."


@pytest.fixture
def trained(small, tmp_path, monkeypatch, encoder):
    """Makes a model card of medlite that names the pictures of these queries of the small study."""

    def name(*queries: tuple[str, str]) -> None:
        card = tmp_path / "card"
        card.mkdir()
        files = [small.root / "images" / f"{domain} {query[1:]}.png" for domain, query in queries]
        pictures = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
        (card / "training_cases.json").write_text(json.dumps({"C1": {"sha256": "", "pictures": pictures}}))
        monkeypatch.setattr(encoder, "card", card, raising=False)
        monkeypatch.setattr(specs, "load", lambda name, device=None: encoder)

    return name


@pytest.mark.parametrize("scope", ["pool", "collections"])
def test_what_a_shipped_head_saw_is_left_out_and_counted(small, trained, scope) -> None:
    dataset = small.open()
    trained(("Head", "q0"), ("Thorax", "q3"))
    small.store(dataset, scope=scope)
    small.store(dataset, scope=scope, fold_plan="five", facts={"answered_by": "five heads"})
    small.store(dataset, "rrf:bm25+medlite", scope, **HYBRID)
    small.store(dataset, "bm25", scope)
    small.store(dataset, "theirs", scope, **IMPORTED)
    desk = small.desk(dataset)
    runs, reasons = desk.runs(TASK)
    assert not reasons
    labels = ["bm25", "medlite", "medlite, shipped head", "rrf:bm25+medlite, shipped head", "theirs"]
    assert [run.label for run in runs] == labels
    # The other query of each topic goes with the case that was seen.
    seen = {(f"{TASK}/Head", q) for q in ("q0", "q1")} | {(f"{TASK}/Thorax", q) for q in ("q2", "q3")}
    assert [run.seen for run in runs] == [frozenset(), frozenset(), seen, seen, frozenset()]
    assert runs[1].source == "five heads"
    whole, shipped = (desk.diagnosis(runs[at]) for at in (1, 2))
    assert shipped.seen_excluded == 4 and len(shipped.queries) == 8 and len(whole.queries) == 12
    assert not seen & {(q.collection, q.id) for q in shipped.queries}
    for i, query in enumerate(shipped.queries):
        j = whole.at((query.collection, query.id))
        assert shipped.at((query.collection, query.id)) == i and shipped.hits(i) == whole.hits(j)
        assert shipped.first[i] == whole.first[j] and shipped.found[i] == whole.found[j]
        assert shipped.values["nDCG@10"][i] == whole.values["nDCG@10"][j] and shipped.clusters[i] == whole.clusters[j]


def test_labels_tell_runs_apart_also_where_nothing_of_the_task_was_seen(small, trained) -> None:
    """Cross-fitted, because the model saw cases of the data set; but of none that this task asks about."""
    dataset = small.open()
    trained()
    small.store(dataset)
    small.store(dataset, fold_plan="five")
    assert shown(small, dataset) == ["medlite", "medlite, shipped head"]
