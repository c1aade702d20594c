"""Writes are there whole or not at all, whatever ends them: an error, or the death of the process."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from core.settings import REPOSITORY
from core.store.atomic import TEMPORARY, atomic_file, atomic_folder, remove_leftovers, write_bytes

# Dies before the n-th time that anything unfinished is opened, made, renamed or deleted.
_DYING = """
import os, signal, sys
from pathlib import Path
from core.store.atomic import TEMPORARY, atomic_folder, write_bytes

what, path, left = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])

def hook(event, args):
    global left
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir") and TEMPORARY in str(args):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
if what == "file":
    write_bytes(path, b"new")
else:
    with atomic_folder(path) as folder:
        (folder / "below").mkdir()
        (folder / "below" / "a").write_bytes(b"new")
        (folder / "b").write_bytes(b"new")
"""


def _die(what: str, path: Path, after: int) -> int:
    command = [sys.executable, "-c", _DYING, what, str(path), str(after)]
    return subprocess.run(command, cwd=REPOSITORY, timeout=60, check=False).returncode


def _content(path: Path) -> dict[str, bytes]:
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def _leftovers(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.startswith(TEMPORARY)]


def test_a_file_is_replaced_and_its_folders_are_made(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    write_bytes(path, b"old")
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new" and not _leftovers(path.parent)


def test_files_and_folders_have_the_rights_that_the_umask_gives(tmp_path):
    ordinary_file, ordinary_folder = tmp_path / "file", tmp_path / "folder"
    ordinary_file.write_bytes(b"")
    ordinary_folder.mkdir()
    write_bytes(tmp_path / "ours", b"")
    with atomic_folder(tmp_path / "our folder"):
        pass
    for ours, ordinary in ((tmp_path / "ours", ordinary_file), (tmp_path / "our folder", ordinary_folder)):
        assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("there_before", [True, False])
def test_an_error_while_writing_leaves_what_was_there(tmp_path, error, there_before):
    file, folder = tmp_path / "file", tmp_path / "folder"
    if there_before:
        file.write_bytes(b"old")
        folder.mkdir()
        (folder / "a").write_bytes(b"old")
    with pytest.raises(error), atomic_file(file) as stream:
        stream.write(b"new")
        raise error
    with pytest.raises(error), atomic_folder(folder) as temporary:
        (temporary / "a").write_bytes(b"new")
        raise error
    assert not _leftovers(tmp_path)
    assert file.exists() == folder.exists() == there_before
    if there_before:
        assert file.read_bytes() == b"old" and _content(folder) == {"a": b"old"}


def test_a_rename_that_fails_brings_the_old_folder_back(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(b"old")
    real = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if Path(target) == folder and (self / "new").exists():
            raise OSError("no")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="no"), atomic_folder(folder) as temporary:
        (temporary / "new").write_bytes(b"new")
    assert _content(folder) == {"a": b"old"} and not _leftovers(tmp_path)


def test_a_file_cannot_take_the_place_of_a_folder(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_bytes(tmp_path / "folder", b"new")
    assert not _leftovers(tmp_path)


def test_a_killed_writer_of_a_file_leaves_the_old_or_the_new(tmp_path):
    path, states = tmp_path / "file", []
    for step in range(20):
        path.write_bytes(b"old")
        code = _die("file", path, step)
        states.append(path.read_bytes())
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert code == 0 and step >= 2, "the writer was never killed in the middle"
    assert states[0] == b"old" and states[-1] == b"new" and set(states) == {b"old", b"new"}


def test_a_killed_writer_of_a_folder_leaves_the_old_or_the_new_or_none(tmp_path):
    old, new = {"a": b"old"}, {"below/a": b"new", "b": b"new"}
    states = []
    for step in range(40):
        place = tmp_path / str(step)
        (place / "folder").mkdir(parents=True)
        (place / "folder" / "a").write_bytes(b"old")
        code = _die("folder", place / "folder", step)
        states.append(_content(place / "folder") if (place / "folder").exists() else None)
        if code == 0:
            assert not _leftovers(place)
            break
        assert code == -signal.SIGKILL
        if states[-1] is None:  # between the two renames: the old one is whole, aside
            assert any(_content(place / name) == old for name in _leftovers(place))
        remove_leftovers(place)
        assert [p.name for p in place.iterdir()] == ([] if states[-1] is None else ["folder"])
    assert code == 0 and step >= 6, "the writer was never killed in the middle"
    assert states[0] == old and states[-1] == new
    assert all(s in (old, new, None) for s in states) and states.count(None) == 1


def test_leftovers_are_deleted_and_nothing_else(tmp_path):
    (tmp_path / f"{TEMPORARY}folder" / "below").mkdir(parents=True)
    (tmp_path / f"{TEMPORARY}file").write_bytes(b"")
    (tmp_path / "kept").write_bytes(b"")
    remove_leftovers(tmp_path)
    remove_leftovers(tmp_path / "not there")
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]
