"""Where computed things live: the workspace folder, with a private fallback that is said on the screen."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from core.settings import STORE
from core.store.lock import lock
from core.store.manifest import sha256_file

NAME = "m3retrieve-explorer"
_HASHES = "hashes.sqlite"


class WorkspaceError(Exception):
    """No folder could be used as a workspace; the message says which were tried."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder for caches, vectors and indexes; ``note`` is shown to the user when it is not the usual place.

    ``shipped`` has the same layout and is read after the workspace, never written; None: there is none.
    """

    root: Path
    note: str = ""
    shipped: Path | None = STORE

    def path(self, *parts: str) -> Path:
        return self.root.joinpath(*parts)

    @property
    def roots(self) -> list[Path]:
        """Where stored things are looked for, in this order."""
        return [self.root] if self.shipped is None else [self.root, self.shipped]

    def hash_of(self, files: Sequence[Path]) -> list[str]:
        """Hex sha256 of each file, remembered by (path, size, modification time) so that it is read once."""
        try:
            return self._remembered(files)
        except sqlite3.OperationalError:  # locked for long, full, unwritable: right without a memory too
            return [sha256_file(file) for file in files]
        except sqlite3.DatabaseError:  # damaged: costs one reading of the files, nothing else
            with lock(self.path("locks", "hashes"), "replacing hashes.sqlite"):
                try:
                    return self._remembered(files)  # another may have replaced it while we waited
                except sqlite3.DatabaseError:
                    for name in (_HASHES, f"{_HASHES}-journal"):
                        self.path(name).unlink(missing_ok=True)
                    return self._remembered(files)

    def _remembered(self, files: Sequence[Path]) -> list[str]:
        stats = [file.stat() for file in files]
        keys = [(os.fsencode(f), s.st_size, s.st_mtime_ns) for f, s in zip(files, stats, strict=True)]
        self.root.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path(_HASHES), timeout=60)) as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS hashes (path BLOB PRIMARY KEY, size INTEGER, mtime_ns INTEGER, sha256 TEXT)"
            )
            find = "SELECT sha256 FROM hashes WHERE path = ? AND size = ? AND mtime_ns = ?"
            found = [database.execute(find, key).fetchone() for key in keys]
            result = [row[0] if row else sha256_file(file) for row, file in zip(found, files, strict=True)]
            fresh = [(*key, sha) for key, row, sha in zip(keys, found, result, strict=True) if row is None]
            if fresh:
                with database:
                    database.executemany("INSERT OR REPLACE INTO hashes VALUES (?, ?, ?, ?)", fresh)
        return result


def usable(folder: Path) -> bool:
    """True if ``folder`` exists or can be made, and a file can be written in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def open_workspace(asked: str | None = None) -> Workspace:
    """Open the workspace that was asked for, else the user's cache folder, else a private temporary folder.

    Raises `WorkspaceError` when ``asked`` cannot be written: a folder named by the user is never swapped silently.
    """
    if asked:
        try:
            root = Path(asked).expanduser().absolute()
        except RuntimeError as error:
            raise WorkspaceError(f"M3R_WORKSPACE is {asked}: {error} Name another folder.") from None
        if not usable(root):
            raise WorkspaceError(f"M3R_WORKSPACE is {asked}, but that folder cannot be written. Name another one.")
        return Workspace(root)
    usual = _user_cache()
    if usual is not None and usable(usual):
        return Workspace(usual)
    why = f"{usual} cannot be written" if usual else "this user has no home folder"
    try:
        private = Path(tempfile.gettempdir()) / f"{NAME}-{os.getuid()}"
        if not _private(private):
            private = Path(tempfile.mkdtemp(prefix=f"{NAME}-"))
    except OSError as error:
        raise WorkspaceError(f"There is no folder to work in: {why}, and {error}. Set M3R_WORKSPACE.") from None
    return Workspace(
        private,
        f"Working in {private}, because {why}. What is computed there may be lost at a restart; "
        "set M3R_WORKSPACE to keep it.",
    )


def _user_cache() -> Path | None:
    cache, home = (Path(os.environ.get(name, "")) for name in ("XDG_CACHE_HOME", "HOME"))
    if cache.is_absolute():
        return cache / NAME
    # A home that is named but not there (as for service users) is not ours to make.
    return home / ".cache" / NAME if home.is_absolute() and os.access(home, os.F_OK) else None


def _private(folder: Path) -> bool:
    """Make or accept ``folder`` only if it is a real folder of ours that nobody else can enter."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        info = folder.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            return False
        folder.chmod(0o700)
    except OSError:
        return False
    return usable(folder)
