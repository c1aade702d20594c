"""The stored runs of a data set as records to compare: which there are, and which of them are listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.analyze.scored import Key, Scored, family, from_stored
from core.analyze.task_runs import is_present, made_alike, parts_of
from core.data.dataset import DataSet
from core.data.topics import cluster_of
from core.embed.pipeline import Pipeline
from core.evaluate.make import judged_by
from core.evaluate.run import StoredRun, stored_runs
from core.models import specs
from core.retrievers.fair import trained_cases
from core.store.workspace import Workspace


class Listing:
    """The stored runs of a data set, opened once: make another when a run was stored since.

    ``runs`` are the full ones that are judged with the data set's own judgements, the file that it was opened with;
    ``refused`` says which runs are damaged.
    """

    def __init__(self, dataset: DataSet, workspace: Workspace, trained: Trained | None = None) -> None:
        self.dataset = dataset
        self._trained = trained or Trained(dataset, workspace)
        stored, self.refused = stored_runs(workspace.roots, dataset.data_id)
        self.runs = [run for run in stored if run.info.variant == "full" and run.info.overlay == judged_by(dataset)]

    def of_task(self, task: str) -> list[StoredRun]:
        """The runs on the collections of a task, the benchmark's protocol."""
        keys = {collection.key for collection in self.dataset.pool(task).collections}
        return [run for run in self.runs if run.info.place in keys]

    def scores(self, task: str, measure: str) -> tuple[list[Scored], list[str]]:
        """One record a model and setting with runs on collections of the task, and why others were left out.

        A model that has no run on some collections is N/A there: its record lacks those queries.
        """
        collections = self.dataset.pool(task).collections
        queries = {(q.collection, q.id): q for collection in collections for q in collection.all_queries()}
        clusters = {key: cluster_of(query) for key, query in queries.items()}
        domains = {key: self.dataset.collections[key[0]].domain for key in queries}
        scored, refused = [], list(self.refused)
        for parts in made_alike(self.of_task(task)):
            if any(measure not in part.measures for part in parts):
                refused.append(f"{parts[0].info.model} was stored without {measure}.")
                continue
            scored.append(_scored(parts, measure, clusters, domains, self._trained))
        return scored, refused


def stored_scores(dataset: DataSet, workspace: Workspace, task: str, measure: str) -> tuple[list[Scored], list[str]]:
    """See `Listing.scores`."""
    return Listing(dataset, workspace).scores(task, measure)


def listed(dataset: DataSet, workspace: Workspace, task: str, measure: str) -> tuple[list[Scored], list[str]]:
    """The family of runs that every comparison of this task and measure is made in; see `family`."""
    scored, refused = stored_scores(dataset, workspace, task, measure)
    return family(scored), refused


def _scored(
    parts: Sequence[StoredRun], measure: str, clusters: dict[Key, str], domains: dict[Key, str], trained: Trained
) -> Scored:
    info = parts[0].info
    if info.index_kind == "imported":
        return from_stored(parts, measure, clusters, domains, {"imported": True, "cut_off": cut_of(measure)})
    conditions: dict[str, Any] = {
        "cut_off": cut_of(measure),
        "default_weighting": True,  # full runs are; those at other weights carry another variant
        "judged_by": info.overlay,
        "precision": _precision(info.model),
        "trained_on": any(trained.on(model) for model in specs.SPECS if model in parts_of(info.model)),
        "revised": int(is_present(info)),
    }
    return from_stored(parts, measure, clusters, domains, conditions)


def _precision(model: str) -> str:
    """What a model, or the parts of a hybrid, compute with."""
    known = [specs.SPECS[part].precision if part in specs.SPECS else "not stated" for part in parts_of(model)]
    return " and ".join(dict.fromkeys(known))


def cut_of(measure: str) -> str:
    """The cut-off of a measure as it is compared between runs."""
    return measure.partition("@")[2] or "none"


class Trained:
    """Which models were trained on cases of the data set; each is looked up once."""

    def __init__(self, dataset: DataSet, workspace: Workspace) -> None:
        self._dataset, self._workspace, self._known = dataset, workspace, {}

    def on(self, model: str) -> bool:
        if model not in self._known:
            live = specs.get(model).live
            pipeline = Pipeline(specs.load(model), self._workspace) if live else None
            self._known[model] = pipeline is not None and bool(trained_cases(self._dataset, pipeline))
        return self._known[model]
