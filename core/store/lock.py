"""One writer at a time: an advisory lock that says who holds it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class Locked(TimeoutError):
    """Another process has held the lock for longer than we would wait; the message names it."""


@contextmanager
def lock(path: Path, what: str, wait: float = 600.0, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold ``path`` for one process and one thread. ``what`` is shown to those who wait, ``wait`` is in seconds.

    The operating system frees the lock when its holder dies, so a killed job never blocks the next one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Names of files that are no valid text must not keep anyone from working: they are shown escaped.
    with path.open("a+", encoding="utf-8", errors="backslashreplace") as stream:
        deadline, told = time.monotonic() + wait, False
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                stream.seek(0)
                holder = stream.read().strip() or "another process"
                if not told and say is not None:
                    say(f"Waiting for {holder}.")
                    told = True
                if time.monotonic() >= deadline:
                    raise Locked(f"This waits for {holder}. Wait for it to finish, or stop it.") from None
                time.sleep(0.1)
        try:
            stream.seek(0)
            stream.truncate()
            stream.write(f"process {os.getpid()}, {what}")
            stream.flush()
            yield
        finally:
            stream.seek(0)
            stream.truncate()
            fcntl.flock(stream, fcntl.LOCK_UN)
