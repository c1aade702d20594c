"""Identity and cache of a data set: same data, same bytes; never half a cache; nothing written beside the data."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.data import dataset as module
from core.data.dataset import DataSet, identify, open_dataset
from core.data.layouts import discover
from core.settings import REPOSITORY
from core.store.workspace import open_workspace
from tests.conftest import write_collection


def tree(root: Path) -> dict[str, str]:
    """Checksum of everything below ``root``: contents, rights, and times of change."""
    result = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        result[path.relative_to(root).as_posix()] = f"{status.st_mode:o} {status.st_mtime_ns} {content}"
    return result


def contents(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def everything(opened: DataSet) -> dict:
    """All that a data set gives, as plain values."""
    return {
        key: ([*c.docs()], [*c.all_queries()], c.qrels, c.domain, c.task) for key, c in opened.collections.items()
    } | {"faults": opened.faults, "tasks": opened.tasks}


# --- identity ------------------------------------------------------------------------------------------------------


def _append(path: str, content: bytes):
    def change(root: Path) -> None:
        with (root / path).open("ab") as stream:
            stream.write(content)

    return change


def _new_file(path: str, content: bytes = b""):
    def change(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)

    return change


def _flip(path: str):
    def change(root: Path) -> None:
        content = bytearray((root / path).read_bytes())
        content[len(content) // 2] ^= 1
        (root / path).write_bytes(content)

    return change


CHANGES = {
    "a byte more of queries": _append("query_to_image/Head/queries.jsonl", b"\n"),
    "a byte of queries": _flip("query_to_image/Head/queries.jsonl"),
    "a byte of a corpus": _flip("visual_context/Thorax/corpus.jsonl"),
    "a byte of judgements": _flip("visual_context/Thorax/qrels/test.tsv"),
    "judgements of another name": _new_file("visual_context/Thorax/qrels/dev.tsv"),
    "a byte of benchmark.json": _append("benchmark.json", b" "),
    "benchmark.json cut short": lambda root: _new_file("benchmark.json", b"{")(root),
    "benchmark.json gone": lambda root: (root / "benchmark.json").unlink(),
    "the size of a picture": _append("images/a1.png", b"\0"),
    "the name of a picture": lambda root: (root / "images/a1.png").rename(root / "images/a3.png"),
    "one picture more": _new_file("query_to_image/Head/images/x.JPG"),
    "a zip of pictures": _new_file("images.zip"),
    "another collection": lambda root: write_collection(root / "more", [], [], []),
    "a collection's folder": lambda root: (root / "visual_context/Head").rename(root / "visual_context/Skull"),
    "a task's folder": lambda root: (root / "visual_context").rename(root / "case_study"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_data_id_changes_with(toy, workspace, change):
    before = identify(discover(toy), workspace)
    CHANGES[change](toy)
    after = identify(discover(toy), workspace)
    assert before != after and len(after) == 16


def test_the_data_id_changes_with_a_byte_of_a_broken_benchmark_json(toy, workspace):
    found = []
    for content in (b"{", b"{ "):
        (toy / "benchmark.json").write_bytes(content)
        found.append(identify(discover(toy), workspace))
    assert found[0] != found[1]


def test_the_data_id_does_not_change_with_place_time_or_what_is_not_data(toy, tmp_path, workspace):
    before = identify(discover(toy), workspace)
    (tmp_path / "else where").mkdir()
    moved = shutil.copytree(toy, tmp_path / "else where" / "änother name")
    for path in moved.rglob("*"):
        os.utime(path, ns=(10**18, 10**18))
    (moved / "README.md").write_text("about")
    (moved / ".cache").mkdir()
    (moved / ".cache" / "x.png").write_bytes(b"x")
    (tmp_path / "link").symlink_to(moved)
    assert identify(discover(moved), workspace) == before == identify(discover(tmp_path / "link"), workspace)


def test_a_collection_at_the_root_may_be_renamed(tmp_path, workspace):
    pair = [{"_id": "q", "caption": "a"}], [{"_id": "d", "text": "b"}], [("q", "d", 1), ("q", "x", 1)]
    write_collection(tmp_path / "one", *pair)
    one = open_dataset(tmp_path / "one", workspace)
    (tmp_path / "one").rename(tmp_path / "two")
    two = open_dataset(tmp_path / "two", workspace)
    assert one.data_id == two.data_id and list(two.collections) == ["retrieval/two"] and two.faults == one.faults
    assert two.collections["retrieval/two"].doc("d").collection == "retrieval/two"
    write_collection(tmp_path / "summary" / "two", *pair)  # a folder around it gives it another task
    assert open_dataset(tmp_path / "summary" / "two", workspace).data_id != two.data_id


def test_names_of_pictures_that_are_not_utf_8_count_too(toy, workspace):
    found = {identify(discover(toy), workspace)}
    for name in (b"\xff.png", b"\xfe.png"):
        (toy / os.fsdecode(name)).write_bytes(b"")
        found.add(identify(discover(toy), workspace))
    assert len(found) == 3 and open_dataset(toy, workspace).faults == []


# --- the cache -----------------------------------------------------------------------------------------------------


def test_the_same_data_gives_the_same_cache_bytes_in_another_process_and_place(toy, tmp_path, workspace):
    opened = open_dataset(toy, workspace)
    moved = shutil.copytree(toy, tmp_path / "moved")
    environment = {**os.environ, "M3R_WORKSPACE": str(tmp_path / "other"), "PYTHONHASHSEED": "7"}
    _run(_OPEN, moved, env=environment)
    ours, theirs = (contents(tmp_path / w / "data" / opened.data_id) for w in ("workspace", "other"))
    assert ours == theirs and len(ours) > 20


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _first(cache: Path, pattern: str) -> Path:
    return sorted(cache.glob(pattern))[0]


DAMAGES = {
    "tables of another format": lambda cache: _edit(cache / "tables" / "manifest.json", "format", 0),
    "judgements of another format": lambda cache: _edit(cache / "qrels-test" / "manifest.json", "format", 0),
    "tables cut short": lambda cache: _cut(_first(cache, "tables/*/corpus.arrow")),
    "a lookup cut short": lambda cache: _cut(_first(cache, "tables/*/queries.ids.npy")),
    "judgements cut short": lambda cache: _cut(_first(cache, "qrels-test/*.arrow")),
    "tables without manifest": lambda cache: (cache / "tables" / "manifest.json").unlink(),
    "judgements without manifest": lambda cache: (cache / "qrels-test" / "manifest.json").unlink(),
    "a manifest that is no manifest": lambda cache: (cache / "tables" / "manifest.json").write_bytes(b'{"files": []}'),
    "no tables": lambda cache: shutil.rmtree(cache / "tables"),
    "faults gone": lambda cache: (cache / "tables" / "faults.json").unlink(),
    "a file where a folder should be": lambda cache: (shutil.rmtree(cache / "tables"), (cache / "tables").touch()),
}


def _edit(path: Path, field: str, value: object) -> None:
    body = json.loads(path.read_bytes())
    body["request"][field] = value
    path.write_text(json.dumps(body))


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_unfit_cache_is_made_again(toy, workspace, damage):
    opened = open_dataset(toy, workspace)
    cache = workspace.path("data", opened.data_id)
    expected, sound = everything(opened), contents(cache)
    DAMAGES[damage](cache)
    again = open_dataset(toy, workspace)
    assert everything(again) == expected and contents(cache) == sound


def test_a_sound_cache_is_not_made_again_and_another_format_is(toy, workspace, monkeypatch):
    made = []
    real = module.write_table
    monkeypatch.setattr(module, "write_table", lambda *a: made.append(a[1]) or real(*a))
    open_dataset(toy, workspace)
    open_dataset(toy, workspace)
    assert len(made) == 8
    monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
    open_dataset(toy, workspace)
    assert len(made) == 16


def test_what_was_opened_stays_readable_when_its_cache_is_made_again(toy, workspace):
    opened = open_dataset(toy, workspace)
    expected = everything(opened)
    (workspace.path("data", opened.data_id) / "tables" / "manifest.json").unlink()
    open_dataset(toy, workspace)
    assert everything(opened) == expected


def test_progress_names_each_collection(toy, workspace):
    heard = []
    open_dataset(toy, workspace, progress=lambda *step: heard.append(step))
    assert [what for what, _, _ in heard] == [f"Reading {key}" for key in open_dataset(toy, workspace).collections]
    assert all(0 <= done <= total for _, done, total in heard)


@pytest.mark.parametrize("rights", [0o500, 0o700])
def test_nothing_is_written_into_the_data_set(toy, workspace, rights):
    for folder in [toy, *(p for p in toy.rglob("*") if p.is_dir())]:
        folder.chmod(rights)
    before = tree(toy)
    opened = open_dataset(toy, workspace)
    everything(opened)
    for collection in opened.collections.values():
        for doc in collection.docs():
            for reference in doc.images:
                collection.picture(reference)
    open_dataset(toy, workspace)
    assert tree(toy) == before
    for folder in [toy, *(p for p in toy.rglob("*") if p.is_dir())]:
        folder.chmod(0o700)


# --- other processes -----------------------------------------------------------------------------------------------

_OPEN = """
import sys
from core.data.dataset import open_dataset
from core.settings import Settings
from core.store.workspace import open_workspace
opened = open_dataset(sys.argv[1], open_workspace(Settings.from_environment().workspace))
print(opened.data_id, sum(len(c.corpus) for c in opened.collections.values()), len(opened.faults))
"""


def _run(script: str, *arguments: object, env: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def large(tmp_path):
    """Large enough that reading it takes a good part of a second: 20,000 documents in two collections."""
    for name in ("a", "b"):
        docs = [{"_id": f"d{n}", "title": name, "text": f"passage {n} " * 40} for n in range(10_000)]
        write_collection(tmp_path / "large" / name, [{"_id": "q", "caption": name}], docs, [("q", "d7", 1)])
    return tmp_path / "large"


def test_two_processes_open_the_same_new_data_set_at_once(large, tmp_path):
    command = [sys.executable, "-c", _OPEN, str(large)]
    started = [
        subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    results = [p.communicate(timeout=120) for p in started]
    assert [p.returncode for p in started] == [0, 0], results
    assert results[0][0] == results[1][0] and " 20000 0\n" in results[0][0]
    (cache,) = (tmp_path / "workspace" / "data").iterdir()
    assert sorted(p.name for p in cache.iterdir()) == ["qrels-test", "tables"]


def test_a_load_that_is_killed_in_the_middle_leaves_nothing_that_misleads_the_next(large, tmp_path, workspace):
    process = subprocess.Popen([sys.executable, "-c", _OPEN, str(large)], cwd=REPOSITORY, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while not any(p.stat().st_size > 10**6 for p in (tmp_path / "workspace").glob("data/*/.partial-*/*/*.arrow")):
            assert process.poll() is None and time.monotonic() < deadline, process.stderr.read()
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
    (cache,) = workspace.path("data").iterdir()
    assert process.returncode == -signal.SIGKILL and not (cache / "tables").exists()
    opened = open_dataset(large, workspace)
    fresh = open_dataset(large, open_workspace(str(tmp_path / "fresh")))
    assert everything(opened) == everything(fresh) and len(opened.pool("retrieval")) == 20_000
    assert contents(cache) == contents(tmp_path / "fresh" / "data" / opened.data_id)
