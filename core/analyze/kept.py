"""What is computed once for everybody: a bounded cache that threads share, and what tells that a run was stored."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from core.store.workspace import Workspace


class Kept:
    """The latest values by key, each made once; whoever asks for one that is being made waits for it."""

    def __init__(self, most: int) -> None:
        self._most, self._values, self._making = most, OrderedDict(), {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of ``key``. An error is passed on and not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            value = make()
            with self._lock:
                self._values[key] = value
                self._making.pop(key, None)
                while len(self._values) > self._most:
                    self._values.popitem(last=False)
            return value


def stamp(workspace: Workspace, data_id: str) -> Hashable:
    """Changes when a run of the data set is stored: each place has a folder, and each of its runs one in it."""
    found = []
    for root in workspace.roots:
        base = root / "runs" / data_id
        try:
            found.append((base.stat().st_mtime_ns, *(p.stat().st_mtime_ns for p in sorted(base.iterdir()))))
        except OSError:
            found.append(())
    return tuple(found)
