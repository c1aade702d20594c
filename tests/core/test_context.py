"""The shared context: sources, and values that are made once without holding up others."""

from __future__ import annotations

import threading
import time

import pytest

from core.context import AppContext, _Once
from core.data.layouts import DataError
from core.settings import Settings


def test_sources_have_unique_labels_and_the_demo_comes_first(tmp_path):
    for name in ("a/set", "b/set"):
        (tmp_path / name).mkdir(parents=True)
    settings = Settings((str(tmp_path / "a/set"), str(tmp_path / "b/set")), str(tmp_path / "w"), False)
    labels = [s.label for s in AppContext(settings).sources]
    assert labels == ["Demo library", "set", str(tmp_path / "b/set")]


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
    once, started, release, made, waited = _Once(), threading.Event(), threading.Event(), [], []

    def slow():
        started.set()
        release.wait(10)
        made.append(1)
        return "slow"

    results = []
    threads = [threading.Thread(target=lambda: results.append(once.get("a", slow, lambda: waited.append(1))))]
    threads[0].start()
    started.wait(10)
    threads.append(threading.Thread(target=lambda: results.append(once.get("a", slow, lambda: waited.append(1)))))
    threads[1].start()
    assert once.get("b", lambda: "quick") == "quick"  # while "a" is still being made
    while not waited:
        time.sleep(0.01)
    release.set()
    for thread in threads:
        thread.join(10)
    assert results == ["slow", "slow"] and made == [1]


def test_errors_are_not_kept_and_the_least_used_value_goes_first():
    once = _Once(keep=2)
    with pytest.raises(RuntimeError):
        once.get("a", lambda: (_ for _ in ()).throw(RuntimeError()))
    assert once.get("a", lambda: 1) == 1
    once.get("b", lambda: 2)
    once.get("a", lambda: 0)
    once.get("c", lambda: 3)
    assert once.get("a", lambda: 0) == 1
    assert once.get("b", lambda: "again") == "again"
