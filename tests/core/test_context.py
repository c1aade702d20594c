"""The shared context: sources, and values that are made once without holding up others."""

from __future__ import annotations

import shutil
import threading

import pytest

from core.context import AppContext, Preparing, _Once
from core.data.layouts import DataError
from core.settings import Settings


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
