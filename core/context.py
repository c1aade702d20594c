"""The read-only context that the app and the command line share: workspace, data sets, models, open searchers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

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
        self._datasets: dict[str, DataSet] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._searchers: OrderedDict[tuple[str, str, str], Searcher] = OrderedDict()
        self._lock = threading.RLock()

    def dataset(self, label: str, progress: Progress = silent) -> DataSet:
        """The data set of this label; raises `core.data.layouts.DataError` when it cannot be read."""
        with self._lock:
            if label not in self._datasets:
                path = next((s.path for s in self.sources if s.label == label), None)
                if path is None:
                    raise DataError(f"There is no data set {label!r} here.")
                try:
                    self._datasets[label] = open_dataset(path, self.workspace, progress=progress)
                except OSError as error:
                    raise DataError(f"{label} cannot be read: {error.strerror or error}.") from error
            return self._datasets[label]

    def pipeline(self, model: str) -> Pipeline:
        """The encoder of this name with its vector stores; raises `core.models.base.ModelUnavailable`."""
        with self._lock:
            if model not in self._pipelines:
                self._pipelines[model] = Pipeline(specs.load(model), self.workspace)
            return self._pipelines[model]

    def searcher(self, dataset: DataSet, task: str, model: str, progress: Progress = silent) -> Searcher:
        """The searcher of a pool; the first call builds what is missing and reports progress."""
        key = (dataset.data_id, task, model)
        with self._lock:
            if key not in self._searchers:
                self._searchers[key] = Searcher(dataset, task, self.pipeline(model), progress)
                while len(self._searchers) > OPEN_SEARCHERS:
                    self._searchers.popitem(last=False)
            self._searchers.move_to_end(key)
            return self._searchers[key]
