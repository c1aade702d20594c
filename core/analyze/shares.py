"""How much of a score the picture and the words of a query gave, from stored vectors; nothing is encoded or trained."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.adapt.crossfit import FoldPlan, fold_plan
from core.data.dataset import DataSet
from core.embed.pipeline import NotStored, Pipeline
from core.evaluate.run import RunInfo
from core.index.pool_index import LEFT_OUT
from core.models import specs
from core.models.base import Encoder, ModelUnavailable
from core.models.medlite import MedliteEncoder
from core.records import Query
from core.retrievers.ablated import why_not_named
from core.search.searcher import Searcher
from core.store.manifest import ManifestError
from core.store.manifest import read as read_manifest
from core.store.workspace import Workspace

OPEN = 12
"""Pools kept open at once, one a task and encoder; their vectors are memory-mapped."""


class Shares:
    """The shares of stored full runs of two-sided encoders on one data set. Thread-safe."""

    def __init__(self, dataset: DataSet, workspace: Workspace) -> None:
        self.dataset, self.workspace = dataset, workspace
        self._lock = threading.Lock()
        self._searchers: OrderedDict[tuple[str, str], Searcher] = OrderedDict()
        self._heads: dict[str, tuple[MedliteEncoder, FoldPlan]] = {}
        self._read: set[Path] = set()

    def of(self, info: RunInfo, query: Query, docs: Sequence[tuple[str, str]]) -> list[tuple[float, float]] | None:
        """Picture share and words share of the score of each of ``docs`` (collection, id) for a query of the data set.

        The 32-bit sum of the two is the score that the run has for the document. NaN for a document that cannot be
        searched. None where the run is not a full one of an encoder of both sides, where its vectors or the head that
        answered the query are not stored, or where nothing of the query could be encoded.
        """
        if why_not_named(info.model, info.fusion) or info.variant != "full":
            return None
        try:
            with self._lock:
                searcher = self._searcher(info, query)
            (composed,) = searcher.stored_queries([query], info.weight) if searcher else (None,)
        except (NotStored, ModelUnavailable):
            return None
        if composed is None:
            return None
        rows = [searcher.pool.row_of(*key) for key in docs]
        groups = np.array([LEFT_OUT if row is None else searcher.index.group_of_row[row] for row in rows], np.int64)
        there = np.flatnonzero(groups != LEFT_OUT)
        vectors = searcher.index.vector_of_group[groups[there]]
        found = [(math.nan, math.nan)] * len(docs)
        for at, (picture, words) in zip(there, searcher.index.exact.scores(composed.sides, vectors), strict=True):
            found[at] = float(picture), float(words)
        return found

    def _searcher(self, info: RunInfo, query: Query) -> Searcher | None:
        """The pool as the encoder that answered the query sees it."""
        encoder = self._head(info, query) if info.fold_plan else _loaded(info)
        if encoder is None:
            return None
        key = info.task, encoder.encoder_id
        if key not in self._searchers:
            pipeline = Pipeline(encoder, self.workspace)
            pipeline.stored_only = True
            self._searchers[key] = Searcher(self.dataset, info.task, pipeline, with_graph=False)
            while len(self._searchers) > OPEN:
                self._searchers.popitem(last=False)
        self._searchers.move_to_end(key)
        return self._searchers[key]

    def _head(self, info: RunInfo, query: Query) -> MedliteEncoder | None:
        """The head of a cross-fitted run that saw neither the case nor the topic of the query, if it is stored."""
        if not set(info.encoder_ids) <= set(self._heads):
            self._read_heads()
        known = [self._heads[name] for name in info.encoder_ids if name in self._heads]
        if not known:
            return None
        _, plan = known[0]
        head, _ = self._heads.get(info.encoder_ids[plan.of_query(query)], (None, plan))
        return head

    def _read_heads(self) -> None:
        """Take in the fold heads of this data set that lie in the workspace, with the plan each belongs to."""
        plans: dict[tuple[int, int], FoldPlan] = {}
        for folder in sorted(self.workspace.path("heads", self.dataset.data_id).glob("[!.]*/fold-*")):
            if folder in self._read:
                continue
            self._read.add(folder)
            encoder = MedliteEncoder(head_folder=folder)
            try:
                request = read_manifest(folder)["request"]
                made = request["folds"], request["seed"]
                name = encoder.encoder_id
            except (ManifestError, KeyError, ModelUnavailable):
                continue  # damaged: the queries that it answered have no shares
            if made not in plans:
                plans[made] = fold_plan(self.dataset, *made)
            self._heads[name] = encoder, plans[made]


def _loaded(info: RunInfo) -> Encoder | None:
    """The encoder of a run that was not cross-fitted, if it is still the one of the run."""
    if info.model not in specs.SPECS:
        return None
    encoder = specs.load(info.model)
    return encoder if (encoder.encoder_id,) == info.encoder_ids else None
