"""The shared cache: bounded, each value made once, errors not kept; and the stamp of the stored runs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.analyze.kept import Kept, stamp


def test_what_is_kept_is_bounded_and_errors_are_not_kept() -> None:
    kept, made = Kept(2), []

    def make(value):
        def now():
            made.append(value)
            return value

        return now

    assert [kept.get(name, make(name)) for name in "aabac"] == list("aabac")
    assert made == ["a", "b", "c"]
    assert kept.get("b", make("b")) == "b" and made[-1] == "b"  # b was asked for longest ago

    def fail():
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            kept.get("d", fail)
    assert kept.get("d", make("d")) == "d"


def test_who_waits_for_one_that_fails_makes_it_itself() -> None:
    kept, first, failing = Kept(2), threading.Event(), threading.Event()

    def fail():
        first.set()
        failing.wait(5)
        raise ValueError("no")

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(kept.get, "a", fail)
        first.wait(5)
        other = threads.submit(kept.get, "a", lambda: "made")
        failing.set()
        assert other.result(5) == "made"
        with pytest.raises(ValueError, match="no"):
            one.result(5)


def test_the_stamp_changes_when_a_run_is_stored(small) -> None:
    dataset = small.open()
    stamps = [stamp(small.workspace, dataset.data_id)]
    assert stamp(small.workspace, dataset.data_id) == stamps[0]
    for model in ("medlite", "bm25"):  # the second one beside the first, in the folder of the place
        small.store(dataset, model)
        stamps.append(stamp(small.workspace, dataset.data_id))
    assert len(set(stamps)) == 3
