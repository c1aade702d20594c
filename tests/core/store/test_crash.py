"""Whatever ends a process while it writes, the next start finds the old state or the new one and ends the same.

The whole chain is run: data cache, vectors, centres, index, graph, its recall. It dies or runs out of space at every
single write, fsync and rename of Python's, and is killed at random moments; then it is run again.
"""

from __future__ import annotations

import builtins
import errno
import gc
import io
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hnswlib  # noqa: F401 - imported here once, not in every child
import pytest
import torch  # noqa: F401

from core.data.dataset import open_dataset
from core.embed import centring
from core.embed import plan as plans
from core.embed.pipeline import Pipeline
from core.index import hnsw, pool_index
from core.search.searcher import Asked, Searcher
from core.store.atomic import TEMPORARY
from core.store.workspace import Workspace

FULL, NEVER = 77, -1


@pytest.fixture
def small(tmp_path, collection_writer, monkeypatch) -> Path:
    """A data set for which every file of the chain is written, in several blocks, with a picture that is none."""
    from PIL import Image

    monkeypatch.setattr(plans, "BLOCK", 3)
    monkeypatch.setattr(centring, "ENOUGH", 3)
    monkeypatch.setattr(centring, "SAMPLE", 4)
    monkeypatch.setattr(pool_index, "HNSW_FROM", 4)
    assert hnsw.problem() == ""  # tried once, here, and not in every child
    root = tmp_path / "small"
    (root / "images").mkdir(parents=True)
    docs, queries = [], []
    for i in range(5):
        Image.new("RGB", (4, 4), (25 * i, 90, 200 - 20 * i)).save(root / "images" / f"{i}.png")
        docs.append({"_id": f"d{i}", "text": f"finding {i}" if i else "", "image_path": f"images/{i}.png"})
        queries.append({"_id": f"q{i}", "caption": f"finding {i or 1}"})
    (root / "images" / "4.png").write_bytes(b"not a picture")
    collection_writer(root, queries, docs, [(f"q{i}", f"d{i}", 1) for i in range(5)])
    return root


def chain(root: Path, workspace: Workspace, encoder) -> Searcher:
    return Searcher(open_dataset(root, workspace), "retrieval", Pipeline(encoder, workspace))


def state(root: Path, workspace: Workspace, encoder) -> dict:
    """What a run that is let finish leaves behind and answers; a further run encodes nothing."""
    searcher = chain(root, workspace, encoder)
    hits = searcher.search(Asked("finding 3 finding 5", k=9)).hits
    before = encoder.encoded
    assert chain(root, workspace, encoder).recall_at_10 == searcher.recall_at_10 and encoder.encoded == before
    files = {
        path.relative_to(workspace.root).as_posix(): path.read_bytes().hex()
        for top in ("data", "vectors", "index")
        for path in sorted(workspace.path(top).rglob("*"))
        if path.is_file() and TEMPORARY not in path.as_posix()
    }
    return {"hits": [(h.doc_id, h.score) for h in hits], "recall": searcher.recall_at_10, "files": files}


def forked(work: Callable[[], object]) -> tuple[int, str]:
    """Run ``work`` in a child: its exit code (negative: a signal) and what it wrote; 1 is an error nobody expected."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(60)
            gc.disable()  # it would touch, and so copy, every object of the parent
            os.fsync = lambda handle: None  # slow, and processes end here, not machines
            os.close(reading)
            os.write(writing, json.dumps(work()).encode())
            code = 0
        except OSError as error:
            code = FULL if error.errno == errno.ENOSPC else 1
            if code == 1:
                traceback.print_exc()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        text = stream.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


class Faults:
    """Count what reaches the disk through Python in this process, and fail at the event ``at``."""

    def __init__(self, at: int, full: bool) -> None:
        self.at, self.full, self.count = at, full, 0
        for name in ("fsync", "replace", "rename"):
            setattr(os, name, self._wrapped(getattr(os, name)))
        opening = io.open
        builtins.open = io.open = lambda file, mode="r", *a, **k: self._opened(opening(file, mode, *a, **k), mode)

    def tick(self, half: Callable[[], object] = lambda: None) -> None:
        self.count += 1
        if self.count - 1 == self.at:
            half()
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os._exit(FULL)

    def _wrapped(self, call):
        def wrapped(*args, **kwargs):
            self.tick()
            return call(*args, **kwargs)

        return wrapped

    def _opened(self, stream, mode: str):
        return _Stream(stream, self) if set(mode) & set("wxa+") else stream


class _Stream:
    """A file whose writes are counted; the one that fails has written half of it."""

    def __init__(self, stream, faults: Faults) -> None:
        self._stream, self._faults = stream, faults

    def write(self, data) -> int:
        def half() -> None:
            self._stream.write(data[: len(data) // 2])
            self._stream.flush()

        self._faults.tick(half)
        return self._stream.write(data)

    def __getattr__(self, name: str):
        return getattr(self._stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stream.close()


@pytest.fixture
def expected(small, tmp_path, encoder) -> dict:
    # Run here and not in a child, which then need not load and set up what the chain uses.
    return json.loads(json.dumps(state(small, Workspace(tmp_path / "undisturbed"), encoder)))


def events(small, tmp_path, encoder) -> int:
    def count() -> int:
        faults = Faults(NEVER, False)
        chain(small, Workspace(tmp_path / "counted"), encoder)
        return faults.count

    code, text = forked(count)
    assert code == 0
    return int(text)


@pytest.mark.parametrize("full", [False, True], ids=["dies", "disk full"])
def test_a_fault_at_any_write_fsync_or_rename(small, tmp_path, encoder, expected, full):
    total = events(small, tmp_path, encoder)
    assert total > 100, "the faults do not reach the writes"

    def one(at: int) -> None:
        workspace = Workspace(tmp_path / f"at-{at}")

        def fail() -> None:
            faults = Faults(at, full)
            try:
                chain(small, workspace, encoder)
            except OSError as error:
                assert full and error.errno == errno.ENOSPC
                faults.at = NEVER  # there is space again, and the process lives on
                assert json.loads(json.dumps(state(small, workspace, encoder))) == expected
                raise

        assert forked(fail)[0] == FULL, f"event {at} of {total} was not reached, or passed over in silence"
        if not full:
            code, text = forked(lambda: state(small, workspace, encoder))
            assert code == 0 and json.loads(text) == expected, f"event {at} of {total}"

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(total)))


def test_killed_at_random_moments(small, tmp_path, encoder, expected):
    generator = random.Random(5)
    started = time.perf_counter()
    forked(lambda: chain(small, Workspace(tmp_path / "timed"), encoder) and None)
    whole, killed = time.perf_counter() - started, 0
    for attempt in range(8):
        workspace = Workspace(tmp_path / f"attempt-{attempt}")
        for _ in range(3):
            child = os.fork()
            if child == 0:
                try:
                    chain(small, workspace, encoder)
                finally:
                    os._exit(0)
            time.sleep(generator.uniform(0.05, 0.5) * whole)
            os.kill(child, signal.SIGKILL)
            killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        code, text = forked(lambda workspace=workspace: state(small, workspace, encoder))
        assert code == 0 and json.loads(text) == expected
    assert killed >= 3, "the children were done before they were killed"
