"""The read-only context that the app and the command line share: workspace, data sets, models, open searchers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from core.analyze.desk import Desk
from core.analyze.league import Leagues
from core.analyze.notes import NoteStore
from core.analyze.shares import Shares
from core.data.cases import Cases
from core.data.dataset import DataSet, Progress, open_dataset, silent
from core.data.find import QueryTexts
from core.data.layouts import DataError
from core.data.pool import Pool
from core.embed.pipeline import NotStored, Pipeline
from core.media.phash import Hashes
from core.models import specs
from core.records import Query, QueryError
from core.search.cases import CaseResult, cards_of
from core.search.searcher import Asked, Searcher
from core.settings import DEMO, Settings
from core.store.workspace import Workspace, open_workspace

OPEN_SEARCHERS = 8
"""Pools kept open at once: their vectors are memory-mapped, their graphs are not."""


PATIENCE = 5.0
"""Seconds that a search waits for another one to finish preparing its pool."""


NOTES = "notes.sqlite"
"""The file of notes and re-judgements in the workspace."""

EXAMPLES = 200
"""Queries that are tried for a stored example."""


class Preparing(Exception):
    """Another search is preparing a pool; the message says how far it is."""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set that can be chosen; ``label`` is unique."""

    label: str
    path: Path


class AppContext:
    """Built once. A data set is opened when it is first chosen, encoders and indexes when first searched.

    Thread-safe; nothing in it belongs to a user. ``notes`` are those of everybody who works with this workspace, None
    in public mode, where they stay in each session.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings.from_environment()
        self.workspace: Workspace = open_workspace(self.settings.workspace)
        sources = [Source("Demo library", DEMO)]
        for entry in self.settings.data:
            path = Path(entry).expanduser().absolute()
            label, number = path.name or str(path), 1
            while any(label == s.label for s in sources):
                number += 1
                label = f"{path.name or path} ({number})"
            sources.append(Source(label, path))
        self.sources = tuple(sources)
        self.hashes, self.query_texts = Hashes(self.workspace.path("thumbnails")), QueryTexts()
        self._datasets, self._trained, self._cases = _Once(), _Once(), _Once()
        self._desks, self._shares, self._leagues = _Once(), _Once(), _Once()
        self.notes = None if self.settings.public else NoteStore(self.workspace.path(NOTES))
        self._pipelines = _Once()
        self._searchers: OrderedDict[tuple[Path, str, str, str], Searcher] = OrderedDict()
        self._lock, self._preparing, self._step = threading.Lock(), threading.Lock(), "starting"

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
        """The encoder of this name with its vector stores; raises `core.models.base.ModelUnavailable`, and QueryError
        for a name that cannot be searched with."""
        try:
            return self._pipelines.get(model, lambda: Pipeline(specs.load(model), self.workspace))
        except KeyError as error:
            raise QueryError(str(error.args[0])) from None

    def cases(self, dataset: DataSet) -> Cases:
        """Which documents and queries of a data set belong together; read once."""
        return self._cases.get((dataset.root, dataset.data_id), lambda: Cases(dataset))

    def desk(self, dataset: DataSet) -> Desk:
        """The stored runs and diagnoses of a data set."""
        return self._desks.get((dataset.root, dataset.data_id), lambda: Desk(dataset, self.workspace, self.hashes))

    def leagues(self, dataset: DataSet) -> Leagues:
        """The comparisons of a data set's stored runs."""
        return self._leagues.get((dataset.root, dataset.data_id), lambda: Leagues(dataset, self.workspace))

    def shares(self, dataset: DataSet) -> Shares:
        """What picture and words contribute to the scores of stored runs."""
        return self._shares.get((dataset.root, dataset.data_id), lambda: Shares(dataset, self.workspace))

    def stored_example(self, dataset: DataSet, task: str, model: str, k: int) -> tuple[Query, CaseResult] | None:
        """One of the data set's own queries and its cards from stored vectors, exact, without loading a model.

        It has a picture, words and a relevant document, and if possible the model was not trained on it. None where
        nothing of the kind is stored: nothing is ever encoded here. The searcher is not kept, as a search builds the
        pool's graph as well. Of data sets other than the demo only pools are tried that have an index: finding out
        what is missing may take long.
        """
        pipeline = Pipeline(self.pipeline(model).encoder, self.workspace)
        pipeline.stored_only = True
        indexed = self.workspace.path("index", dataset.data_id, f"pool-{task}", pipeline.encoder.encoder_id).is_dir()
        if dataset.root != DEMO and not indexed:
            return None
        try:
            searcher = Searcher(dataset, task, pipeline, with_graph=False)
        except NotStored:
            return None
        for query in sorted(_answerable(searcher.pool), key=lambda q: self.trained_on(dataset, model, q)):
            try:
                (composed,) = searcher.stored_queries([query], None)
            except NotStored:
                continue
            if composed is not None:
                trained_on = self.trained_on(dataset, model, query)
                asked = Asked(query.text, k=k, exact=True, query=query, trained_on=trained_on)
                return query, cards_of(searcher, composed, asked, self.cases(dataset), self.hashes)
        return None

    def trained_on(self, dataset: DataSet, model: str, query: Query) -> bool:
        """Whether the model's card names the case of this query of the data set as training data."""
        from core.adapt.pairs import case_of
        from core.retrievers.fair import trained_cases

        key = (dataset.root, dataset.data_id, model)
        return case_of(query) in self._trained.get(key, lambda: trained_cases(dataset, self.pipeline(model)))

    def searcher(self, dataset: DataSet, task: str, model: str, progress: Progress = silent) -> Searcher:
        """The searcher of a pool; the first call builds what is missing and reports progress.

        One pool is prepared at a time, so that this never takes all of the machine. Whoever asks for another one
        meanwhile gets `Preparing` after a few seconds instead of waiting for minutes.
        """
        # The folder belongs to the key: two folders of equal content have one data_id and one stored index.
        key = (dataset.root, dataset.data_id, task, model)
        if (searcher := self._kept(key)) is not None:
            return searcher
        if not self._preparing.acquire(timeout=PATIENCE):
            raise Preparing(f"Another search is preparing its pool ({self._step}). Search again in a moment.")
        try:
            if (searcher := self._kept(key)) is None:
                searcher = Searcher(dataset, task, self.pipeline(model), self._telling(progress))
                with self._lock:
                    self._searchers[key] = searcher
                    while len(self._searchers) > OPEN_SEARCHERS:
                        self._searchers.popitem(last=False)
            return searcher
        finally:
            self._preparing.release()

    def _kept(self, key: tuple[Path, str, str, str]) -> Searcher | None:
        with self._lock:
            if key in self._searchers:
                self._searchers.move_to_end(key)
            return self._searchers.get(key)

    def _telling(self, progress: Progress) -> Progress:
        """A progress callback that also keeps the step for those who ask meanwhile."""

        def tell(what: str, done: int, total: int) -> None:
            self._step = f"{what}, {done:,} of {total:,}" if total else what
            progress(what, done, total)

        return tell


def _answerable(pool: Pool) -> list[Query]:
    """The first `EXAMPLES` queries of a pool that have a picture, words and a relevant document."""
    found = (
        query
        for collection in pool.collections
        for query in collection.all_queries()
        if query.images
        and query.text.strip()
        and any(grade > 0 for grade in collection.qrels.get(query.id, {}).values())
    )
    return list(islice(found, EXAMPLES))


class _Once:
    """Values made once a key. Whoever asks for a key that is being made waits for it; other keys do not."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of ``key``. An error is passed on and not kept."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            if key not in self._values:
                self._values[key] = make()
            return self._values[key]
