"""Where notes and re-judgements are kept: ``notes.sqlite`` in the workspace, or the browser session in public mode.

The file is people's work, not a cache: what cannot be read is refused and left as it is, never made anew.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Protocol

from core.analyze.rejudge import Annotations, Judged, JudgedKey, Note, NoteKey, tags_of

VERSION = 1
"""``PRAGMA user_version`` of the file; raise it with the tables, and read what older ones hold."""

SESSION_LIMIT = 10_000
"""Notes and re-judgements of one data set in a browser session, which lives in the server's memory."""

_TABLES = (
    "CREATE TABLE notes (data_id TEXT, collection TEXT, query TEXT, text TEXT, tags TEXT, author TEXT, time TEXT, "
    "PRIMARY KEY (data_id, collection, query, author)) WITHOUT ROWID",
    "CREATE TABLE judged (data_id TEXT, collection TEXT, query TEXT, doc_collection TEXT, doc TEXT, grade TEXT, "
    "author TEXT, time TEXT, PRIMARY KEY (data_id, collection, query, doc_collection, doc, author)) WITHOUT ROWID",
)


_MAKING = threading.Lock()
"""Held until a new file is closed again: closing a file undoes all locks that its process has on it, SQLite's too."""


class NotesError(Exception):
    """Notes could not be read or saved; the message names the file and says why and what to do."""


class Notes(Protocol):
    """A place for the notes and re-judgements of data sets; everything raises `NotesError` where it cannot."""

    def read(self, data_id: str) -> Annotations:
        """Everything of one data set."""

    def save_note(self, data_id: str, note: Note) -> None:
        """Save a note in the place of an earlier one with its key."""

    def remove_note(self, data_id: str, key: NoteKey) -> None:
        """Take a note back, if there is one with this key."""

    def save_judged(self, data_id: str, judged: Judged) -> None:
        """Save a re-judgement in the place of an earlier one with its key."""

    def remove_judged(self, data_id: str, key: JudgedKey) -> None:
        """Take a re-judgement back, if there is one with this key."""

    def merge(self, data_id: str, annotations: Annotations) -> tuple[int, int]:
        """Add what was read from a file as `Annotations.merged` says; how many were added, and how many updated."""


class NoteStore:
    """`Notes` in a SQLite file, made private to its owner by the first save. Threads and processes may share it.

    Every call is one transaction on a connection of its own, synced to the disk when it returns.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, data_id: str) -> Annotations:
        with _MAKING:
            try:
                self.path.lstat()
            except FileNotFoundError:
                return Annotations()
            except OSError:
                pass  # a folder that must not be entered: opening the file says so
        with self._transaction(writing=False) as database:
            return self._read(database, data_id)

    def save_note(self, data_id: str, note: Note) -> None:
        with self._transaction() as database:
            _put_note(database, data_id, note)

    def remove_note(self, data_id: str, key: NoteKey) -> None:
        with self._transaction() as database:
            where = "data_id = ? AND collection = ? AND query = ? AND author = ?"
            database.execute(f"DELETE FROM notes WHERE {where}", (data_id, *key))

    def save_judged(self, data_id: str, judged: Judged) -> None:
        with self._transaction() as database:
            _put_judged(database, data_id, judged)

    def remove_judged(self, data_id: str, key: JudgedKey) -> None:
        with self._transaction() as database:
            where = "data_id = ? AND collection = ? AND query = ? AND doc_collection = ? AND doc = ? AND author = ?"
            database.execute(f"DELETE FROM judged WHERE {where}", (data_id, *key))

    def merge(self, data_id: str, annotations: Annotations) -> tuple[int, int]:
        with self._transaction() as database:
            own = self._read(database, data_id)
            merged, added, updated = own.merged(annotations)
            for note in set(merged.notes) - set(own.notes):
                _put_note(database, data_id, note)
            for judged in set(merged.judged) - set(own.judged):
                _put_judged(database, data_id, judged)
        return added, updated

    def _read(self, database: sqlite3.Connection, data_id: str) -> Annotations:
        if _version(database) == 0:  # another process has made the file and not yet its tables
            return Annotations()
        columns = "collection, query, text, tags, author, time"
        notes = database.execute(f"SELECT {columns} FROM notes WHERE data_id = ?", (data_id,)).fetchall()
        columns = "collection, query, doc_collection, doc, grade, author, time"
        judged = database.execute(f"SELECT {columns} FROM judged WHERE data_id = ?", (data_id,)).fetchall()
        try:
            return Annotations(
                tuple(Note(*row[:3], tags_of(row[3]), *row[4:]) for row in notes), tuple(Judged(*row) for row in judged)
            )
        except (ValueError, TypeError) as error:  # somebody else wrote into the file
            raise sqlite3.DatabaseError(str(error)) from None

    @contextmanager
    def _transaction(self, writing: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction, undone when the block raises; `NotesError` for whatever is wrong with the file."""
        try:
            if writing:
                self._make()
            # Also for reading: what a killed writer left half done must be undone first. SQLite itself falls back to
            # reading only where the file is write-protected.
            uri = f"{self.path.absolute().as_uri()}?mode=rw"
            with closing(sqlite3.connect(uri, timeout=30, uri=True, isolation_level=None)) as database:
                database.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                self._check(database, writing)
                yield database
                database.execute("COMMIT")
        except (sqlite3.OperationalError, OSError) as error:
            what = "not be written, so this was not saved" if writing else "not be read"
            hint = "Check the permissions and space of its folder, or wait for who else writes there, and try again."
            raise NotesError(f"{self.path} could {what}: {error}. {hint}") from None
        except sqlite3.DatabaseError as error:
            hint = "It is left as it is; put back a copy of it, or move it away to begin with none."
            raise NotesError(f"{self.path} is damaged: {error}. {hint}") from None

    def _make(self) -> None:
        """Make an empty file that is private, where there is none; SQLite keeps its journal alike."""
        with _MAKING:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))

    def _check(self, database: sqlite3.Connection, writing: bool) -> None:
        """Refuse what is not ours to read or write; make the tables where there are none."""
        version = _version(database)
        empty = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if version > VERSION or (version == 0 and not empty):
            what = "was written by a newer version" if version else "is a database of something else"
            raise NotesError(f"{self.path} {what} and is left as it is; update, or name another M3R_WORKSPACE.")
        if not writing:
            return
        if version == 0:
            for table in _TABLES:
                database.execute(table)
            database.execute(f"PRAGMA user_version = {VERSION}")
        found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(" ".join(found.split()))


def _version(database: sqlite3.Connection) -> int:
    return database.execute("PRAGMA user_version").fetchone()[0]


def _put_note(database: sqlite3.Connection, data_id: str, note: Note) -> None:
    row = (data_id, note.collection, note.query, note.text, "; ".join(note.tags), note.author, note.time)
    database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def _put_judged(database: sqlite3.Connection, data_id: str, judged: Judged) -> None:
    database.execute("INSERT OR REPLACE INTO judged VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (data_id, *astuple(judged)))


class SessionNotes:
    """`Notes` of one browser session in public mode: nothing reaches the disk. Plain data, so that it can be copied.

    For one session's events, one at a time.
    """

    def __init__(self) -> None:
        self._all: dict[str, Annotations] = {}

    def read(self, data_id: str) -> Annotations:
        return self._all.get(data_id, Annotations())

    def save_note(self, data_id: str, note: Note) -> None:
        self._keep(data_id, self.read(data_id).with_note(note))

    def remove_note(self, data_id: str, key: NoteKey) -> None:
        self._keep(data_id, self.read(data_id).without_note(key))

    def save_judged(self, data_id: str, judged: Judged) -> None:
        self._keep(data_id, self.read(data_id).with_judged(judged))

    def remove_judged(self, data_id: str, key: JudgedKey) -> None:
        self._keep(data_id, self.read(data_id).without_judged(key))

    def merge(self, data_id: str, annotations: Annotations) -> tuple[int, int]:
        merged, added, updated = self.read(data_id).merged(annotations)
        self._keep(data_id, merged)
        return added, updated

    def _keep(self, data_id: str, annotations: Annotations) -> None:
        if len(annotations) > SESSION_LIMIT:
            raise NotesError(
                f"A session holds {SESSION_LIMIT:,} notes and re-judgements; export and remove some first."
            )
        self._all[data_id] = annotations
