"""Evaluate models on a data set: their runs on every collection and pool, and means with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.adapt.pairs import case_of
from core.data.dataset import DataSet, silent
from core.data.names import document
from core.data.topics import cluster_of
from core.embed.pipeline import Pipeline, Progress
from core.evaluate.make import DEPTH, Made, make_ablation, make_run, stored_ranking
from core.evaluate.measures import ALL, not_available
from core.evaluate.run import open_run
from core.evaluate.stats import Estimate, cluster_mean, macro
from core.models import specs
from core.records import Query, QueryError
from core.retrievers.base import Retriever
from core.retrievers.dense import Dense
from core.retrievers.fair import Fair, trained_cases
from core.retrievers.fused import Fused, hybrid_of
from core.retrievers.lexical import Lexical
from core.retrievers.place import Place
from core.retrievers.text import Late, Minilm, MinilmMaxp
from core.store.workspace import Workspace

TEXT = {"minilm": Minilm, "minilm-maxp": MinilmMaxp, "late": Late}
OFFLINE = ("bm25", "minilm", "minilm-maxp", "medlite", "late", "rrf:bm25+medlite", "zsum:bm25+minilm")
"""The retrievers that need no hub, in the order of tables."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to evaluate. ``shipped``: the encoder itself where heads would stand for it, on queries it did not see;
    ``include_seen``: on all of them, which is training data. ``domains`` and ``split`` choose queries, empty: all."""

    tasks: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    split: str = ""
    depth: int = DEPTH
    index_kind: str = "exact"
    shipped: bool = False
    include_seen: bool = False
    pools: bool = True


@dataclass(frozen=True, slots=True)
class Scores:
    """One model on one task and scope, per query: ``values[measure][(collection, query)]``, with what a measure is
    not available for in ``reasons``. ``runs`` are the folders; ``seen_excluded`` the number of queries left out."""

    retriever: Retriever
    task: str
    scope: str
    values: Mapping[str, Mapping[tuple[str, str], float]]
    reasons: Mapping[str, str]
    runs: tuple[Made, ...]
    seen_excluded: int


class Evaluation:
    """The models by name on one data set. Models are opened when they are first needed, and once."""

    def __init__(self, dataset: DataSet, workspace: Workspace, choice: Choice, progress: Progress = silent) -> None:
        self.dataset, self.workspace, self.choice, self._progress = dataset, workspace, choice, progress
        self._retrievers: dict[str, Retriever] = {}
        self._places: dict[tuple[str, str | None], Place] = {}
        self._queries: dict[tuple[str, str], Query] = {}
        unknown = sorted(set(choice.tasks) - set(dataset.tasks))
        if unknown:
            raise QueryError(f"The data set has no task {unknown[0]!r}; it has {', '.join(dataset.tasks)}.")
        domains = {collection.domain for collection in dataset.collections.values()}
        wrong = sorted(set(choice.domains) - domains)
        if wrong:
            raise QueryError(f"The data set has no domain {wrong[0]!r}; it has {', '.join(sorted(domains))}.")

    def retriever(self, name: str) -> Retriever:
        """The model or hybrid of this name; KeyError that lists the known names."""
        if name not in self._retrievers:
            self._retrievers[name] = self._open(name)
        return self._retrievers[name]

    def _open(self, name: str) -> Retriever:
        hybrid = hybrid_of(name)
        if hybrid is not None:
            kind, (first, second) = hybrid
            depth = self.choice.depth
            return Fused(
                kind,
                (self.retriever(first), self.retriever(second)),
                lambda part, place: stored_ranking(part, place, self.workspace, self._progress, depth),
            )
        if specs.get(name).name == "bm25":
            return Lexical()
        if name in TEXT:
            return TEXT[name](self.workspace)
        pipeline = Pipeline(specs.load(name), self.workspace)
        itself = self.choice.shipped or self.choice.include_seen
        return Dense(Fair(self.dataset, pipeline, self._progress, as_shipped=itself), self.choice.index_kind)

    def scores(self, name: str, task: str) -> Iterator[Scores]:
        """The model on the task: on its collections, then on its pool."""
        retriever = self.retriever(name)
        collections = [self._place(task, c.key) for c in self.dataset.pool(task).collections]
        yield self._scored(retriever, task, "collections", collections)
        if self.choice.pools and len(collections) > 1:
            yield self._scored(retriever, task, "pool", [self._place(task, None)])

    def ablation(self, name: str, task: str) -> list[Made]:
        """The runs of `core.evaluate.make.make_ablation` on the pool of a task, or on its only collection."""
        collections = self.dataset.pool(task).collections
        place = self._place(task, None if len(collections) > 1 else collections[0].key)
        return make_ablation(self.retriever(name), place, self.workspace, self._progress)

    def _place(self, task: str, collection: str | None) -> Place:
        if (task, collection) not in self._places:
            place = Place(self.dataset, task, self.workspace, collection)
            self._places[task, collection] = place
            self._queries.update({(q.collection, q.id): q for q in place.queries})
        return self._places[task, collection]

    def _scored(self, retriever: Retriever, task: str, scope: str, places: Sequence[Place]) -> Scores:
        values: dict[str, dict[tuple[str, str], float]] = {name: {} for name in ALL}
        reasons: dict[str, str] = {}
        runs: list[Made] = []
        excluded: set[tuple[str, str]] = set()
        seen = self._seen(retriever)
        for place in places:
            reason = retriever.cannot(place)
            if reason:
                reasons |= dict.fromkeys(ALL, reason)
                continue
            kind = self.choice.index_kind if isinstance(retriever, Dense) and place.is_pool else "exact"
            made = make_run(retriever, place, self.workspace, self._progress, self.choice.depth, kind)
            assert made is not None
            runs.append(made)
            measures = open_run(made.folder).measures
            for name in ALL:
                why = not_available(name, place.positives_only)
                if why:
                    reasons[name] = why
                    continue
                for query, value in measures[name].items():
                    key = document(query, place.name)
                    if not self._chosen(key):
                        continue
                    if (
                        self._queries[key].meta.get("case") is not None and case_of(self._queries[key]) in seen[0]
                    ) or cluster_of(self._queries[key]) in seen[1]:
                        excluded.add(key)
                    else:
                        values[name][key] = value
        return Scores(retriever, task, scope, values, reasons, tuple(runs), len(excluded))

    def _seen(self, retriever: Retriever) -> tuple[set[str], set[str]]:
        """Cases and topics to leave out: those the encoder itself was trained on, where it answers itself."""
        if not self.choice.shipped or self.choice.include_seen:
            return set(), set()
        cases = self._trained_cases(retriever)
        queries = (q for c in self.dataset.collections.values() for q in c.all_queries())
        return cases, {cluster_of(q) for q in queries if case_of(q) in cases}

    def _chosen(self, key: tuple[str, str]) -> bool:
        query, choice = self._queries[key], self.choice
        if choice.domains and self.dataset.collections[key[0]].domain not in choice.domains:
            return False
        return not choice.split or query.meta.get("split") == choice.split

    def row(self, scores: Scores, measure: str) -> dict[str, Any]:
        """One row of a table or of JSON: macro with its interval, micro, and each domain; None is N/A."""
        spec, by_domain = scores.retriever.spec, self._domains(scores.task)
        values = scores.values[measure]
        keys = sorted(values)
        clusters = {key: cluster_of(self._queries[key]) for key in keys}
        domain_of = {key: self.dataset.collections[key[0]].domain for key in keys}
        found = {}
        for domain in by_domain:
            own = [key for key in keys if domain_of[key] == domain]
            found[domain] = cluster_mean([values[key] for key in own], [clusters[key] for key in own])
        whole = macro([values[k] for k in keys], [clusters[k] for k in keys], [domain_of[k] for k in keys], by_domain)
        micro = cluster_mean([values[k] for k in keys], [clusters[k] for k in keys])
        row: dict[str, Any] = {"model": spec.name, "model_id": spec.model_id, "revision": spec.revision}
        row |= {"task": scores.task, "scope": scores.scope, "measure": measure}
        row |= {"n": len(keys), "clusters": len(set(clusters.values()))}
        row |= {"macro": number(whole.mean), "micro": number(micro.mean), "interval": interval(whole)}
        row |= {"method": whole.method, "micro_interval": interval(micro)}
        row["by_domain"] = {domain: cell(estimate) for domain, estimate in found.items()}
        reason = scores.reasons.get(measure, "")
        if not keys and not reason:
            reason = "N/A: no query that was asked for has a relevant document"
        row |= {"seen_excluded": scores.seen_excluded, "reason": reason}
        row["method"] = reason or row["method"]
        row["training_data"] = self._is_training_data(scores.retriever)
        row["fold_plan"] = scores.retriever.recipe(scores.task).fold_plan
        return row

    def _is_training_data(self, retriever: Retriever) -> bool:
        return self.choice.include_seen and bool(self._trained_cases(retriever))

    def _trained_cases(self, retriever: Retriever) -> set[str]:
        """The cases of the data set that the retriever, or a part of a hybrid, was trained on."""
        if isinstance(retriever, Fused):
            return set().union(*map(self._trained_cases, retriever.parts))
        return trained_cases(self.dataset, retriever.fair.pipeline) if isinstance(retriever, Dense) else set()

    def _domains(self, task: str) -> list[str]:
        domains = list(self.dataset.pool(task).domains)
        return [d for d in domains if not self.choice.domains or d in self.choice.domains]

    @property
    def tasks(self) -> list[str]:
        """The tasks asked for, in the data set's order."""
        return [task for task in self.dataset.tasks if not self.choice.tasks or task in self.choice.tasks]


def number(value: float) -> float | None:
    """A mean for JSON: None where there is none."""
    return None if math.isnan(value) else value


def interval(estimate: Estimate) -> list[float] | None:
    """The ends of an interval, None where there is none."""
    return None if estimate.low is None else [estimate.low, estimate.high]


def cell(estimate: Estimate) -> dict[str, Any] | None:
    """A domain's mean with its n; None where there is none."""
    if math.isnan(estimate.mean):
        return None
    about = {"mean": estimate.mean, "n": estimate.n, "clusters": estimate.clusters}
    return about | {"interval": interval(estimate)}
