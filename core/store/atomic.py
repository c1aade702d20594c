"""Writes that are there whole or not at all: temporary file beside the target, fsync, rename, fsync of the folder."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

TEMPORARY = ".partial-"
"""Prefix of unfinished files and folders; whatever carries it is never read and may be deleted."""


def sync_folder(folder: Path) -> None:
    """Make a rename inside ``folder`` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _beside(path: Path) -> Path:
    # Not by tempfile, whose files are private to one user whatever the umask says.
    return path.parent / f"{TEMPORARY}{secrets.token_hex(8)}"


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a binary file for writing that replaces ``path`` only when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content``: a reader sees the old bytes or the new ones, never a mixture."""
    with atomic_file(path) as stream:
        stream.write(content)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give an empty folder that becomes ``path`` only when the block ends without an error.

    Every file is synced before the rename. An older ``path`` is moved aside first and deleted afterwards, so it is
    never half of each; a process killed between the two renames leaves none, which its reader makes again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, old = _beside(path), _beside(path)
    try:
        temporary.mkdir()
        yield temporary
        for base, _, names in os.walk(temporary):
            for name in names:
                with (Path(base) / name).open("rb") as stream:
                    os.fsync(stream.fileno())
            sync_folder(Path(base))
        try:
            if path.exists():
                path.rename(old)
            temporary.rename(path)
        except BaseException:
            if old.exists() and not path.exists():
                old.rename(path)
            raise
        sync_folder(path.parent)
    finally:
        _remove(temporary)
        if path.exists():
            _remove(old)


def remove_leftovers(folder: Path) -> None:
    """Delete what killed writers left unfinished in ``folder``; call it only where nobody else can be writing."""
    for leftover in folder.glob(f"{TEMPORARY}*"):
        _remove(leftover)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
