"""One holder at a time, among processes and threads, and a dead holder holds nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from core.settings import REPOSITORY
from core.store.lock import Locked, lock

_HOLD = """
import sys, time
from pathlib import Path
from core.store.lock import lock
with lock(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    time.sleep(120)
"""


@contextmanager
def _held_elsewhere(path, what="reading things"):
    process = subprocess.Popen([sys.executable, "-c", _HOLD, str(path), what], cwd=REPOSITORY, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_process_is_refused_with_the_holders_name_and_gets_the_lock_when_the_holder_is_killed(tmp_path):
    path, heard = tmp_path / "locks" / "a", []
    with _held_elsewhere(path) as holder:
        with pytest.raises(Locked) as caught, lock(path, "mine", wait=0, say=heard.append):
            pass
        assert f"process {holder.pid}, reading things" in str(caught.value)
        assert heard == [f"Waiting for process {holder.pid}, reading things."]
        threading.Timer(0.3, holder.kill).start()  # SIGKILL: nothing of the holder's own runs any more
        with lock(path, "mine", wait=30):
            assert path.read_text() == f"process {os.getpid()}, mine"
    assert path.read_text() == ""


def test_it_waits_only_as_long_as_told(tmp_path):
    heard = []
    with _held_elsewhere(tmp_path / "a"):
        started = time.monotonic()
        with pytest.raises(Locked), lock(tmp_path / "a", "mine", wait=0.5, say=heard.append):
            pass
        assert time.monotonic() - started >= 0.5 and len(heard) == 1


def test_threads_exclude_each_other(tmp_path):
    inside, most = [], []

    def work() -> None:
        for _ in range(3):
            with lock(tmp_path / "a", "counting"):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.01)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 9


def test_an_error_inside_frees_it(tmp_path):
    with pytest.raises(ValueError, match="inside"), lock(tmp_path / "a", "one"):
        raise ValueError("inside")
    with lock(tmp_path / "a", "two", wait=0):
        pass


def test_a_name_that_is_no_valid_text_is_shown_escaped(tmp_path):
    name = os.fsdecode(b"reading \xff \xe2\x82\xac")
    with (
        _held_elsewhere(tmp_path / "a", name),
        pytest.raises(Locked, match=r"reading \\udcff €"),
        lock(tmp_path / "a", "mine", wait=0),
    ):
        pass
