"""The shared context: sources, and values that are made once without holding up others."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from core import context as module
from core.context import AppContext, Preparing, _Once
from core.data.layouts import DataError
from core.models import specs
from core.search.cases import search_cases
from core.search.searcher import Asked
from core.settings import DEMO, STORE, Settings


def test_sources_have_unique_labels_and_the_demo_comes_first(tmp_path):
    for name in ("a/set", "b/set"):
        (tmp_path / name).mkdir(parents=True)
    settings = Settings((str(tmp_path / "a/set"), str(tmp_path / "b/set")), str(tmp_path / "w"), False)
    labels = [s.label for s in AppContext(settings).sources]
    assert labels == ["Demo library", "set", "set (2)"]


def test_a_data_set_is_opened_once_and_an_unknown_one_is_said(toy, tmp_path):
    context = AppContext(Settings((str(toy),), str(tmp_path / "w"), False))
    assert context.dataset("toy") is context.dataset("toy")
    with pytest.raises(DataError, match="no data set"):
        context.dataset("/etc")


def test_settings_read_their_variables():
    read = Settings.from_environment({"M3R_DATA": " /a ;; /b", "SPACE_ID": "x/y"})
    assert read.data == ("/a", "/b") and read.public and read.workspace is None
    assert not Settings.from_environment({"M3R_PUBLIC": "0", "SPACE_ID": "x/y"}).public
    with pytest.raises(ValueError, match="M3R_PUBLIC"):
        Settings.from_environment({"M3R_PUBLIC": "maybe"})


def test_one_slow_value_holds_up_only_those_who_want_it():
    once, started, release, made, results = _Once(), threading.Event(), threading.Event(), [], []

    def slow():
        started.set()
        release.wait(10)
        made.append(1)
        return "slow"

    threads = [threading.Thread(target=lambda: results.append(once.get("a", slow))) for _ in range(2)]
    for thread in threads:
        thread.start()
    started.wait(10)
    assert once.get("b", lambda: "quick") == "quick"  # while "a" is still being made
    release.set()
    for thread in threads:
        thread.join(10)
    assert results == ["slow", "slow"] and made == [1]


def test_errors_are_not_kept():
    once = _Once()
    with pytest.raises(RuntimeError):
        once.get("a", lambda: (_ for _ in ()).throw(RuntimeError()))
    assert once.get("a", lambda: 1) == 1


def test_a_second_pool_is_not_waited_for_while_one_is_prepared(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("core.context.PATIENCE", 0.05)
    context = AppContext(Settings((str(toy),), str(tmp_path / "w"), False))
    dataset = context.dataset("toy")
    ready = context.searcher(dataset, "query_to_image", "medlite")
    entered, release = threading.Event(), threading.Event()

    def hold(what: str, done: int, total: int) -> None:
        entered.set()
        release.wait(20)

    slow = threading.Thread(target=context.searcher, args=(dataset, "visual_context", "medlite", hold))
    slow.start()
    assert entered.wait(60)
    with pytest.raises(Preparing, match=r"Another search is preparing its pool .Reading visual_context/Head, 0 of 2"):
        context.searcher(context.dataset("Demo library"), "summary", "medlite")
    assert context.searcher(dataset, "query_to_image", "medlite") is ready
    release.set()
    slow.join(60)


def test_two_folders_of_equal_content_are_searched_each_by_itself(tmp_path, toy):
    twin = tmp_path / "twin"
    shutil.copytree(toy, twin)
    context = AppContext(Settings((str(toy), str(twin)), str(tmp_path / "w"), False))
    first, second = context.dataset("toy"), context.dataset("twin")
    assert first.data_id == second.data_id
    for dataset in (first, second):
        assert context.searcher(dataset, "query_to_image", "medlite").dataset is dataset


@pytest.fixture
def small(toy, tmp_path, encoder, monkeypatch) -> AppContext:
    """The toy data set, and the toy encoder in place of every model."""
    monkeypatch.setattr(specs, "load", lambda name, device=None: specs.get(name) and encoder)
    return AppContext(Settings((str(toy),), str(tmp_path / "w"), False))


def test_cases_are_read_once_for_each_data_set(small):
    toy, demo = small.dataset("toy"), small.dataset("Demo library")
    assert small.cases(toy) is small.cases(toy) is not small.cases(demo)
    assert small.cases(toy).documents("case:a") and len(small.cases(demo)) == 60


def test_what_a_model_was_trained_on_is_known_by_the_pictures_of_its_card(small, toy, encoder, tmp_path):
    dataset = small.dataset("toy")
    head, thorax = (dataset.collections[f"query_to_image/{d}"] for d in ("Head", "Thorax"))
    (tmp_path / "card").mkdir()
    named = {"called otherwise": {"pictures": [hashlib.sha256((toy / "images/a2.png").read_bytes()).hexdigest()]}}
    (tmp_path / "card" / "training_cases.json").write_text(json.dumps(named))
    encoder.card = tmp_path / "card"
    # The picture is a2's; a1 is of the same case.
    assert small.trained_on(dataset, "medlite", head.query("a2")) and small.trained_on(
        dataset, "medlite", head.query("a1")
    )
    assert not small.trained_on(dataset, "medlite", thorax.query("b1"))
    assert not small.trained_on(dataset, "medlite", replace(head.query("a1"), meta={}))  # of no case


def test_a_model_without_a_card_was_trained_on_nothing(small):
    dataset = small.dataset("toy")
    assert not small.trained_on(dataset, "medlite", dataset.collections["query_to_image/Head"].query("a1"))


def test_an_example_of_a_pool_that_was_never_indexed_is_not_looked_for(small, encoder, monkeypatch):
    monkeypatch.setattr(module, "Searcher", lambda *a, **k: pytest.fail("opened the pool"))
    assert small.stored_example(small.dataset("toy"), "query_to_image", "medlite", 10) is None
    assert encoder.encoded == 0


def test_an_example_is_the_first_query_that_is_stored_and_what_a_search_of_it_finds(small, encoder):
    dataset = small.dataset("toy")
    searcher = small.searcher(dataset, "query_to_image", "medlite")
    before = encoder.encoded
    assert small.stored_example(dataset, "query_to_image", "medlite", 10) is None and encoder.encoded == before
    wanted = dataset.collections["query_to_image/Thorax"].query("b1")
    searcher.stored_queries([wanted], None)
    before = encoder.encoded
    query, found = small.stored_example(dataset, "query_to_image", "medlite", 10)
    assert encoder.encoded == before and query == wanted
    asked = Asked(query.text, [*_pictures(dataset, query)], exact=True, query=query)
    searched = search_cases(searcher, asked, small.cases(dataset), small.hashes)
    assert found.cards == searched.cards and len(found.cards) == 2
    assert found.cards[0].best.doc_id == "b2" and found.cards[0].best_grade == 2  # b1 is the query itself
    one = small.stored_example(dataset, "query_to_image", "medlite", 1)[1]
    assert len(one.cards) == 1


def _pictures(dataset, query):
    from core.media.picture import open_picture

    return [open_picture(dataset.collections[query.collection].picture(r)).image for r in query.images]


def test_an_example_is_rather_one_that_the_model_was_not_trained_on(small, encoder, toy, tmp_path):
    dataset = small.dataset("toy")
    searcher = small.searcher(dataset, "query_to_image", "medlite")
    searcher.stored_queries([q for c in searcher.pool.collections for q in c.all_queries()], None)
    assert small.stored_example(dataset, "query_to_image", "medlite", 10)[0].id == "a1"
    (tmp_path / "card").mkdir()
    pictures = [hashlib.sha256((toy / f"images/{n}.png").read_bytes()).hexdigest() for n in ("a1", "b1")]

    def trained_on(*names: str) -> AppContext:
        (tmp_path / "card" / "training_cases.json").write_text(json.dumps({"x": {"pictures": list(names)}}))
        encoder.card = tmp_path / "card"
        return AppContext(small.settings)

    context = trained_on(pictures[0])
    assert context.stored_example(context.dataset("toy"), "query_to_image", "medlite", 10)[0].id == "b1"
    context = trained_on(*pictures)
    query, found = context.stored_example(context.dataset("toy"), "query_to_image", "medlite", 10)
    assert query.id == "a1" and "trained on this query" in found.result.strength.reason


def test_queries_that_show_nothing_are_no_example(small, tmp_path, collection_writer, encoder):
    rows = [
        {"_id": "no picture", "caption": "words"},
        {"_id": "no words", "caption": " ", "image_path": "images/a1.png"},
        {"_id": "nothing relevant", "caption": "words", "image_path": "images/a1.png"},
        {"_id": "good", "caption": "words", "image_path": "images/a1.png"},
        {"_id": "later", "caption": "words", "image_path": "images/a1.png"},
    ]
    root = Path(small.settings.data[0])
    judged = [(row["_id"], "d", 0 if row["_id"] == "nothing relevant" else 1) for row in rows]
    collection_writer(root / "summary" / "Head", rows, [{"_id": "d", "text": "x"}], judged)
    dataset = small.dataset("toy")
    searcher = small.searcher(dataset, "summary", "medlite")
    searcher.stored_queries([*dataset.collections["summary/Head"].all_queries()], None)
    assert small.stored_example(dataset, "summary", "medlite", 10)[0].id == "good"


def test_an_example_of_the_demo_comes_from_what_the_repository_ships(tmp_path):
    code = f"""
import sys
from core.context import AppContext
from core.settings import Settings
context = AppContext(Settings((), {str(tmp_path / "w")!r}, False))
dataset = context.dataset("Demo library")
for task in dataset.tasks:
    query, found = context.stored_example(dataset, task, "medlite", 5)
    assert len(found.cards) == 5 and dataset.collections[query.collection].task == task, task
    assert found.result.strength.calibrated, task
print([m for m in ("torch", "timm", "transformers", "hnswlib") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=DEMO.parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]" and STORE.is_dir()
    assert not (tmp_path / "w" / "vectors").exists() or not any((tmp_path / "w" / "vectors").rglob("*.npy"))
