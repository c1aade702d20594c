"""The read-only context that the app and the command line share: workspace, data sets, models, open searchers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.data.dataset import DataSet, Progress, open_dataset, silent
from core.data.layouts import DataError
from core.embed.pipeline import Pipeline
from core.models import specs
from core.search.searcher import Searcher
from core.settings import DEMO, Settings
from core.store.workspace import Workspace, open_workspace

OPEN_SEARCHERS = 8
"""Pools kept open at once: their vectors are memory-mapped, their graphs are not."""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set that can be chosen; ``label`` is unique."""

    label: str
    path: Path


class AppContext:
    """Built once. A data set is opened when it is first chosen, encoders and indexes when first searched.

    Thread-safe; nothing in it belongs to a user.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings.from_environment()
        self.workspace: Workspace = open_workspace(self.settings.workspace)
        sources = [Source("Demo library", DEMO)]
        for entry in self.settings.data:
            path = Path(entry).expanduser().absolute()
            label = path.name if all(path.name != s.label for s in sources) else str(path)
            sources.append(Source(label, path))
        self.sources = tuple(sources)
        self._datasets = _Once()
        self._pipelines = _Once()
        self._searchers = _Once(OPEN_SEARCHERS)

    def dataset(self, label: str, progress: Progress = silent) -> DataSet:
        """The data set of this label; raises `core.data.layouts.DataError` when it cannot be read."""
        return self._datasets.get(label, lambda: self._open(label, progress))

    def _open(self, label: str, progress: Progress) -> DataSet:
        path = next((s.path for s in self.sources if s.label == label), None)
        if path is None:
            raise DataError(f"There is no data set {label!r} here.")
        try:
            return open_dataset(path, self.workspace, progress=progress)
        except OSError as error:
            raise DataError(f"{label} cannot be read: {error.strerror or error}.") from error

    def pipeline(self, model: str) -> Pipeline:
        """The encoder of this name with its vector stores; raises `core.models.base.ModelUnavailable`."""
        return self._pipelines.get(model, lambda: Pipeline(specs.load(model), self.workspace))

    def searcher(self, dataset: DataSet, task: str, model: str, progress: Progress = silent) -> Searcher:
        """The searcher of a pool; the first call builds what is missing and reports progress."""
        return self._searchers.get(
            (dataset.data_id, task, model),
            lambda: Searcher(dataset, task, self.pipeline(model), progress),
            lambda: progress("Waiting for another search that prepares this pool", 0, 0),
        )


class _Once:
    """Values made once a key. Whoever asks for a key that is being made waits for it; other keys do not."""

    def __init__(self, keep: int | None = None) -> None:
        self._keep = keep
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any], waiting: Callable[[], None] = lambda: None) -> Any:
        """The value of ``key``; with ``keep``, the values unused for longest are let go. An error is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            making = self._making.setdefault(key, threading.Lock())
        if making.locked():
            waiting()
        with making:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            value = make()
            with self._lock:
                self._values[key] = value
                self._making.pop(key, None)
                while self._keep is not None and len(self._values) > self._keep:
                    self._values.popitem(last=False)
            return value
