"""A run that is brought to a public page: measured like a stored one, held by its session, never written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.analyze.listed import cut_of
from core.analyze.scored import Scored, from_stored
from core.data.dataset import DataSet
from core.data.topics import cluster_of
from core.evaluate.export import measured_import
from core.evaluate.measures import ALL
from core.evaluate.run import RunInfo
from core.evaluate.uploaded import Upload
from core.retrievers.base import Ranked
from core.retrievers.place import Place
from core.store.workspace import Workspace


@dataclass(frozen=True)
class SessionRun:
    """``scored`` by measure, ``rankings`` by collection; equal to what `core.analyze.listed` gives for the same upload
    once it is stored. ``notes`` are the upload's."""

    name: str
    model_id: str
    revision: str
    data_id: str
    task: str
    scored: Mapping[str, Scored] = field(repr=False)
    rankings: Mapping[str, Ranked] = field(repr=False)
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Held:
    """What `from_stored` reads of a run."""

    data_id: str
    info: RunInfo
    measures: Mapping[str, Mapping[str, float]]


def session_run(upload: Upload, dataset: DataSet, workspace: Workspace) -> SessionRun:
    """Measure an upload in memory. A measure that one of its collections has no value of is left out."""
    held, rankings = [], {}
    for key, imported in upload.imported.items():
        place = Place(dataset, upload.task, workspace, key)
        run, measures = measured_import(imported, place, upload.name, upload.name, upload.revision)
        held.append(_Held(dataset.data_id, run.info, measures))
        rankings[key] = Ranked(run.rankings)
    queries = {(q.collection, q.id): q for one in dataset.pool(upload.task).collections for q in one.all_queries()}
    clusters = {key: cluster_of(query) for key, query in queries.items()}
    domains = {key: dataset.collections[key[0]].domain for key in queries}
    scored = {
        measure: from_stored(held, measure, clusters, domains, {"imported": True, "cut_off": cut_of(measure)})
        for measure in ALL
        if all(measure in one.measures for one in held)
    }
    who = (upload.name, upload.name, upload.revision)
    return SessionRun(*who, dataset.data_id, upload.task, scored, rankings, upload.notes)
