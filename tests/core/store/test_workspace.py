"""Where things are kept, with and without a home; hashes that are remembered and never wrong."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
import tempfile
import threading
from pathlib import Path

import pytest

from core.store import workspace as module
from core.store.workspace import NAME, Workspace, WorkspaceError, open_workspace


@pytest.fixture
def homeless(tmp_path, monkeypatch):
    """No home, no cache folder, and a temporary folder of the test's own."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def _mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_the_folder_that_was_asked_for_is_made_and_used(tmp_path):
    opened = open_workspace(str(tmp_path / "a b" / "ü"))
    assert opened == Workspace(tmp_path / "a b" / "ü") and opened.root.is_dir() and opened.note == ""


@pytest.mark.parametrize("below", ["", "more"])
def test_a_folder_that_was_asked_for_and_cannot_be_written_is_an_error(tmp_path, below):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WorkspaceError, match=r"cannot be written\. Name another one"):
        open_workspace(str(tmp_path / "file" / below))


def test_a_folder_of_an_unknown_user_is_an_error():
    with pytest.raises(WorkspaceError, match="Name another folder"):
        open_workspace("~no-such-user-here/workspace")


def test_the_usual_place_is_the_users_cache_folder(homeless, tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert open_workspace() == Workspace(tmp_path / "home" / ".cache" / NAME)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert open_workspace() == Workspace(tmp_path / "cache" / NAME)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the standard
    assert open_workspace() == Workspace(tmp_path / "home" / ".cache" / NAME)


@pytest.mark.parametrize("home", [None, "", "relative", "/nonexistent/home", "file"])
def test_without_a_usable_home_a_private_temporary_folder_is_used_and_said(homeless, tmp_path, monkeypatch, home):
    (tmp_path / "file").write_bytes(b"")
    if home is not None:
        monkeypatch.setenv("HOME", str(tmp_path / home) if home == "file" else home)
    monkeypatch.chdir(tmp_path)
    opened = open_workspace()
    assert opened.root == homeless / f"{NAME}-{os.getuid()}" and _mode(opened.root) == 0o700
    assert str(opened.root) in opened.note and "M3R_WORKSPACE" in opened.note
    assert ("no home folder" in opened.note) == (home != "file")
    opened.root.chmod(0o777)
    assert open_workspace() == opened and _mode(opened.root) == 0o700  # used again, closed again
    assert not (tmp_path / "relative").exists() and not Path("/nonexistent").exists()


@pytest.mark.parametrize("trap", ["link", "dangling link", "file", "another's"])
def test_a_temporary_folder_that_is_not_ours_is_never_used(homeless, tmp_path, monkeypatch, trap):
    (tmp_path / "elsewhere").mkdir()
    place = homeless / f"{NAME}-{os.getuid()}"
    if trap == "link":
        place.symlink_to(tmp_path / "elsewhere")
    elif trap == "dangling link":
        place.symlink_to(tmp_path / "not there")
    elif trap == "file":
        place.write_bytes(b"")
    else:
        place = homeless / f"{NAME}-4242"
        place.mkdir()
        monkeypatch.setattr(os, "getuid", lambda: 4242)
    opened = open_workspace()
    assert opened.root != place and opened.root.parent == homeless and _mode(opened.root) == 0o700
    assert opened.note and not list((tmp_path / "elsewhere").iterdir()) and not (tmp_path / "not there").exists()


def test_without_any_folder_at_all_the_error_says_what_to_do(homeless, monkeypatch):
    shutil.rmtree(homeless)
    with pytest.raises(WorkspaceError, match=r"no home folder.*Set M3R_WORKSPACE"):
        open_workspace()


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def files(tmp_path):
    names = ["a", "b", "ü €.jsonl", os.fsdecode(b"\xff\xfe")]
    result = [tmp_path / "data" / name for name in names]
    (tmp_path / "data").mkdir()
    for number, file in enumerate(result):
        file.write_bytes(bytes([number]) * 100)
    return result


def test_hashes_are_right_and_each_file_is_read_once(workspace, files, monkeypatch):
    read = []
    real = module.sha256_file
    monkeypatch.setattr(module, "sha256_file", lambda path: read.append(path) or real(path))
    expected = [_sha(f) for f in files]
    assert workspace.hash_of(files) == expected and read == files
    assert workspace.hash_of(files[::-1]) == expected[::-1] and len(read) == len(files)
    assert workspace.hash_of([files[0], files[0]]) == [expected[0]] * 2
    assert workspace.hash_of([]) == []


def test_new_content_of_the_same_size_with_a_new_time_is_read_again(workspace, files):
    before = workspace.hash_of(files)
    status = files[0].stat()
    files[0].write_bytes(b"x" * 100)
    os.utime(files[0], ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    after = workspace.hash_of(files)
    assert after[0] == _sha(files[0]) != before[0] and after[1:] == before[1:]


def test_a_missing_file_is_an_error(workspace, tmp_path):
    with pytest.raises(FileNotFoundError):
        workspace.hash_of([tmp_path / "not there"])


def _damage(path: Path, how: str) -> None:
    if how == "garbage":
        path.write_bytes(b"no database at all, but long enough to look like one" * 100)
    elif how == "inside":  # a sound first page, so that only the search stumbles
        with sqlite3.connect(path) as database:
            rows = ((f"/file/{n}".encode(), n, n, "0" * 64) for n in range(5000))
            database.executemany("INSERT INTO hashes VALUES (?, ?, ?, ?)", rows)
        database.close()
        content = bytearray(path.read_bytes())
        content[4096:] = b"\xa5" * (len(content) - 4096)
        path.write_bytes(content)
    else:
        path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize("how", ["garbage", "inside", "cut short"])
def test_a_damaged_memory_is_replaced(workspace, files, how):
    expected = workspace.hash_of(files)
    path = workspace.path("hashes.sqlite")
    _damage(path, how)
    assert workspace.hash_of(files) == expected
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*) FROM hashes").fetchone() == (len(files),)
    database.close()


@pytest.mark.parametrize("how", ["garbage", "inside", None])
def test_many_threads_at_once_get_right_hashes_from_a_damaged_and_from_a_new_memory(workspace, files, how):
    if how:
        workspace.hash_of(files)
        _damage(workspace.path("hashes.sqlite"), how)
    expected, results, barrier = [_sha(f) for f in files], [], threading.Barrier(6)

    def work() -> None:
        barrier.wait()
        results.append(workspace.hash_of(files))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 6
    assert workspace.hash_of(files) == expected


def test_a_memory_that_cannot_be_opened_costs_nothing_but_time(workspace, files):
    workspace.path("hashes.sqlite").mkdir()
    assert workspace.hash_of(files) == [_sha(f) for f in files]
