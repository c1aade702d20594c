"""Notes are kept, shared by threads and processes, private, and never lost to damage, a kill, or a newer version."""

from __future__ import annotations

import copy
import dataclasses
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from core.analyze import notes as module
from core.analyze.notes import Notes, NotesError, NoteStore, SessionNotes
from core.analyze.rejudge import Annotations, Judged, Note

ROOT = Path(module.__file__).resolve().parents[2]
NOTE = Note("t/A", "q1", "two\nlines, 'so'", ("odd", "look again"), "Ann Ü.", "2026-07-01T12:00:00Z")
JUDGED = Judged("t/A", "q1", "t/B", "d 1", "unsure", "Ann Ü.", "2026-07-01T12:00:00Z")


@pytest.fixture
def store(workspace) -> NoteStore:
    return NoteStore(workspace.path("notes.sqlite"))


@pytest.fixture(params=["file", "session"])
def notes(request, store: NoteStore) -> Notes:
    return store if request.param == "file" else SessionNotes()


def test_what_is_saved_is_read(notes: Notes) -> None:
    assert notes.read("set") == Annotations()
    expected = Annotations()
    for author in ("Zoe", "Ann", "Bea"):
        note, judged = (dataclasses.replace(row, author=author) for row in (NOTE, JUDGED))
        notes.save_note("set", note)
        notes.save_judged("set", judged)
        expected = expected.with_note(note).with_judged(judged)
    notes.save_note("other set", NOTE)
    second = dataclasses.replace(NOTE, author="Ann", text="anew", tags=())
    third = dataclasses.replace(JUDGED, author="Ann", grade="2")
    notes.save_note("set", second)
    notes.save_judged("set", third)
    expected = expected.with_note(second).with_judged(third)
    assert notes.read("set") == expected and len(expected) == 6
    for key in (third.key, ("t/A", "q1", "t/B", "d 1", "Nobody")):
        notes.remove_judged("set", key)
        expected = expected.without_judged(key)
    for key in (second.key, ("t/A", "q1", "Nobody")):
        notes.remove_note("set", key)
        expected = expected.without_note(key)
    assert notes.read("set") == expected and len(expected) == 4
    assert notes.read("other set") == Annotations((NOTE,))


def test_merging_is_that_of_the_annotations(notes: Notes) -> None:
    notes.save_note("set", NOTE)
    notes.save_judged("set", JUDGED)
    notes.save_note("other set", NOTE)
    later, earlier = "2026-07-02T12:00:00Z", "2026-06-01T12:00:00Z"
    read = Annotations(
        (dataclasses.replace(NOTE, time=earlier, text="old"), dataclasses.replace(NOTE, author="Bea")),
        (dataclasses.replace(JUDGED, time=later, grade="0"), dataclasses.replace(JUDGED, doc="d2")),
    )
    expected, added, updated = notes.read("set").merged(read)
    assert notes.merge("set", read) == (added, updated) == (2, 1)
    assert notes.read("set") == expected and expected.judged[0].grade == "0"
    assert notes.merge("set", read) == (0, 0) and notes.read("set") == expected
    assert notes.read("other set") == Annotations((NOTE,))


def test_sessions_are_copies_of_their_own_and_bounded(monkeypatch) -> None:
    blank = SessionNotes()
    one, other = copy.deepcopy(blank), copy.deepcopy(blank)
    one.save_note("set", NOTE)
    assert other.read("set") == blank.read("set") == Annotations()
    assert copy.deepcopy(one).read("set") == Annotations((NOTE,))
    monkeypatch.setattr(module, "SESSION_LIMIT", 2)
    one.save_judged("set", JUDGED)
    for save in (
        lambda: one.save_note("set", dataclasses.replace(NOTE, query="q2")),
        lambda: one.merge("set", Annotations((dataclasses.replace(NOTE, query="q2"),))),
    ):
        with pytest.raises(NotesError, match="holds 2 notes"):
            save()
    one.save_note("set", dataclasses.replace(NOTE, text="in its place"))
    assert len(one.read("set")) == 2


def test_the_file_is_private_and_made_by_the_first_save(store: NoteStore, workspace) -> None:
    assert store.read("set") == Annotations() and not store.path.exists()
    before = os.umask(0)
    try:
        deep = NoteStore(workspace.path("a ?#%", "notes.sqlite"))
        deep.save_note("set", NOTE)
    finally:
        os.umask(before)
    assert stat.S_IMODE(deep.path.stat().st_mode) == 0o600 and deep.read("set").notes == (NOTE,)
    assert [p.name for p in deep.path.parent.iterdir()] == ["notes.sqlite"]
    with closing(sqlite3.connect(deep.path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    store.path.write_bytes(b"")  # killed between making the file and its tables
    assert store.read("set") == Annotations()
    store.save_note("set", NOTE)
    assert store.read("set").notes == (NOTE,)


def filled(store: NoteStore, rows: int = 200) -> Annotations:
    found = Annotations((NOTE,), tuple(dataclasses.replace(JUDGED, doc=f"d{n}") for n in range(rows)))
    store.merge("set", found)
    return found


def _garble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = b"\xa5" * 4096
    path.write_bytes(data)


def _sql(*statements: str):
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()

    return change


DAMAGE = {
    "no database": (lambda path: path.write_text("these are no notes " * 200), "is damaged: file is not a database"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), "is damaged: "),
    "garbled": (_garble, "is damaged: "),
    "newer": (_sql("PRAGMA user_version = 2"), "was written by a newer version and is left as it is"),
    "foreign": (_sql("PRAGMA user_version = 0"), "is a database of something else"),
    "without a table": (_sql("DROP TABLE notes"), "no such table: notes"),
    "by hand": (_sql("UPDATE judged SET grade = '7' WHERE doc = 'd7'"), "is damaged: The grade '7'"),
    "no time": (_sql("UPDATE notes SET time = NULL"), "is damaged: The time 'None'"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_what_cannot_be_read_is_refused_and_left(store: NoteStore, how: str) -> None:
    filled(store)
    damage, sentence = DAMAGE[how]
    damage(store.path)
    before = store.path.read_bytes()
    with pytest.raises(NotesError, match=sentence) as caught:
        store.read("set")
    assert str(store.path) in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(NotesError, match=sentence):
        store.merge("set", Annotations((NOTE,)))
    if how not in ("by hand", "no time"):  # where one row is wrong, others may still be saved
        with pytest.raises(NotesError, match=sentence):
            store.save_note("set", NOTE)
        assert store.path.read_bytes() == before


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A folder of a user who is not root; root may write everywhere."""
    folder, user = Path(tempfile.mkdtemp(dir="/tmp")), os.geteuid()
    try:
        if user == 0:
            os.chown(folder, 65534, -1)
            os.seteuid(65534)
        yield folder
    finally:
        os.seteuid(user)
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_where_nothing_can_be_written_it_is_said_and_read() -> None:
    with as_nobody() as folder:
        store = NoteStore(folder / "notes.sqlite")
        found = filled(store, 3)
        for mode_of_file, mode_of_folder in ((0o400, 0o700), (0o600, 0o500)):
            store.path.chmod(mode_of_file)
            folder.chmod(mode_of_folder)
            assert store.read("set") == found
            more = dataclasses.replace(NOTE, author="Bea")
            for save in (
                lambda: store.save_note("set", NOTE),
                lambda: store.remove_judged("set", found.judged[0].key),
                lambda more=more: store.merge("set", Annotations((more,))),
            ):
                with pytest.raises(NotesError, match=r"notes\.sqlite could not be written, so this was not saved"):
                    save()
        for name in ("new.sqlite", "new/notes.sqlite"):  # in a folder that is closed to writers
            with pytest.raises(NotesError, match="could not be written"):
                NoteStore(folder / name).save_note("set", NOTE)
        folder.chmod(0o000)  # not to be taken for a place without notes
        with pytest.raises(NotesError, match="could not be read"):
            store.read("set")
        folder.chmod(0o700)
        store.path.chmod(0o600)
        assert store.read("set") == found


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder" / "notes.sqlite").mkdir(parents=True)
    for path in (tmp_path / "file" / "notes.sqlite", tmp_path / "folder" / "notes.sqlite"):
        with pytest.raises(NotesError, match=r"could not be written.* try again"):
            NoteStore(path).save_note("set", NOTE)
        with pytest.raises(NotesError, match="could not be read"):
            NoteStore(path).read("set")


def test_whoever_waits_too_long_is_told(store: NoteStore, monkeypatch) -> None:
    store.save_note("set", NOTE)
    connect = sqlite3.connect
    monkeypatch.setattr(module.sqlite3, "connect", lambda path, **named: connect(path, **named | {"timeout": 0.05}))
    with closing(connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert store.read("set").notes == (NOTE,)
        with pytest.raises(NotesError, match=r"database is locked\..*wait for who else writes"):
            store.save_judged("set", JUDGED)
    store.save_judged("set", JUDGED)


def test_an_error_while_writing_undoes_all_of_it(store: NoteStore, monkeypatch) -> None:
    found = filled(store, 5)
    put = module._put_judged

    def failing(database, data_id, judged):
        put(database, data_id, judged)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_put_judged", failing)
    with pytest.raises(KeyboardInterrupt):
        store.merge("set", Annotations((dataclasses.replace(NOTE, author="New"),), (JUDGED,)))
    assert store.read("set") == found


WRITER = """
import sys
from pathlib import Path
from core.analyze.rejudge import Annotations, Judged, Note
from core.analyze.notes import NoteStore
store, name, time = NoteStore(Path(sys.argv[1])), sys.argv[2], "2026-07-01T12:00:00Z"
for n in range(8):
    store.save_note("set", Note("t/A", f"q{n}", name, (), name, time))
    store.save_judged("set", Judged("t/A", f"q{n}", "t/A", "shared", "1", name, time))
    store.merge("set", Annotations((), (Judged("t/A", f"q{n}", "t/A", name, "2", name, time),)))
    assert len(store.read("set").notes_on(("t/A", f"q{n}"))) >= 1
"""


def test_processes_and_threads_lose_nothing(store: NoteStore) -> None:
    def start(name: str) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-c", WRITER, str(store.path), name], cwd=ROOT)

    processes = [start(f"process {n}") for n in range(2)]  # the file is made by whoever comes first
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            exec(
                WRITER.replace("sys.argv[1]", "PATH").replace("sys.argv[2]", "NAME"), {"PATH": store.path, "NAME": name}
            )
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [process.wait(60) for process in processes] == [0, 0] and not errors
    found = store.read("set")
    names = {f"process {n}" for n in range(2)} | {f"thread {n}" for n in range(3)}
    assert {(note.query, note.author) for note in found.notes} == {(f"q{n}", name) for n in range(8) for name in names}
    assert len(found.judged) == 2 * 8 * 5


KILLED = """
import os, signal, sys
from pathlib import Path
from core.analyze.rejudge import Judged
from core.analyze import notes
store = notes.NoteStore(Path(sys.argv[1]))
with store._transaction() as database:
    for n in range(30_000):  # more than SQLite keeps in memory: the file itself is half changed
        row = Judged("t/A", "q1", "t/B", f"d{n}", "2", "Killed", "2026-07-02T12:00:00Z")
        notes._put_judged(database, "set", row)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_while_writing(store: NoteStore) -> None:
    found, before = filled(store), store.path.read_bytes()
    ended = subprocess.run([sys.executable, "-c", KILLED, str(store.path)], cwd=ROOT, timeout=60)
    assert ended.returncode == -9
    assert store.path.read_bytes() != before and Path(f"{store.path}-journal").exists()
    assert store.read("set") == found  # which undoes it
    assert not Path(f"{store.path}-journal").exists()
    store.save_judged("set", JUDGED)
    assert store.read("set") == found.with_judged(JUDGED)
