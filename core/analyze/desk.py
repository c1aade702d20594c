"""The diagnoses of one data set, made once and shared by everybody who looks at it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from core.analyze.about import TaskFacts
from core.analyze.diagnosis import Diagnosis, diagnose
from core.analyze.kept import Kept, stamp
from core.analyze.slices import groups_of
from core.analyze.task_runs import COLLECTIONS, POOL, TaskRun, scopes, task_runs
from core.data.dataset import DataSet, silent
from core.embed.pipeline import Progress
from core.evaluate.stats import FEWEST
from core.media.phash import Hashes
from core.retrievers.place import Place
from core.store.workspace import Workspace

if TYPE_CHECKING:
    from core.analyze.rejudge import Overlay

OPEN_DIAGNOSES = 64
"""Diagnoses kept in memory, the latest asked for: one of 2,000 queries takes about 3 MB."""

OPEN_FACTS = 8

USUAL = ("specialty", "domain", "task")


class Desk:
    """Runs and diagnoses of a data set. Thread-safe; nothing in it belongs to a user (overlays come as arguments)."""

    def __init__(self, dataset: DataSet, workspace: Workspace, hashes: Hashes) -> None:
        self.dataset, self.workspace, self.hashes = dataset, workspace, hashes
        self._diagnoses, self._facts = Kept(OPEN_DIAGNOSES), Kept(OPEN_FACTS)
        self._runs, self._facets = Kept(4 * OPEN_FACTS), Kept(OPEN_FACTS)

    def runs(self, task: str, scope: str | None = None) -> tuple[list[TaskRun], list[str]]:
        """See `core.analyze.task_runs.task_runs`; looked up again when a run was stored since."""
        return self._runs.get(
            (task, scope, self._stamp()), lambda: task_runs(self.dataset, self.workspace, task, scope)
        )

    def scopes(self, task: str) -> list[str]:
        """See `core.analyze.task_runs.scopes`."""
        return self._runs.get((task, "scopes", self._stamp()), lambda: scopes(self.dataset, self.workspace, task))

    def tasks(self) -> list[str]:
        """The tasks of which runs are stored, in the data set's order."""
        return [task for task in self.dataset.tasks if self.scopes(task)]

    def measures(self, task: str, scope: str | None = None) -> list[str]:
        """The measures that some run of a task has a value of."""
        runs, _ = self.runs(task, scope)
        return list(dict.fromkeys(name for run in runs for part in run.runs for name in part.measures))

    def groups(self, task: str) -> list[str]:
        """What the queries of a task can be grouped by; see `core.analyze.slices.facets_of`."""
        return list(self._members(task))

    def usual_by(self, task: str) -> str:
        """The facet to begin with: the first of specialty, domain and task with two groups that are large enough to
        be ranked, else the first there is."""
        members = self._members(task)
        for by in (*USUAL, *members):
            ranked = sum(len(clusters) >= FEWEST for clusters in members.get(by, {}).values())
            if ranked > 1:
                return by
        return next(iter(members), "domain")

    def _members(self, task: str) -> dict[str, dict[str, set[str]]]:
        """The clusters of every group of every facet."""
        return self._facets.get((task, tuple(self.tasks())), lambda: groups_of(self.dataset, task, self.tasks()))

    def diagnosis(self, run: TaskRun, overlay: Overlay | None = None, progress: Progress = silent) -> Diagnosis:
        """The diagnosis of a run, made where it is missing; see `core.analyze.diagnosis.diagnose`."""
        ids = tuple((one.info.place, one.info.run_id) for one in run.runs)
        key = (run.label, run.task, run.scope, ids, overlay.hash if overlay is not None else "", self._stamp())

        def make() -> Diagnosis:
            facts = self._facts.get((run.task, run.scope, ids_of(run)), lambda: self._new_facts(run))
            return diagnose(self.dataset, self.workspace, run, facts, overlay, progress)

        return self._diagnoses.get(key, make)

    def _new_facts(self, run: TaskRun) -> TaskFacts:
        names = [one.info.place for one in run.runs]
        members = [None] if run.scope == POOL else names
        places = [Place(self.dataset, run.task, self.workspace, member) for member in members]
        return TaskFacts(self.dataset, places, self.hashes)

    def _stamp(self) -> Hashable:
        return stamp(self.workspace, self.dataset.data_id)


def ids_of(run: TaskRun) -> Hashable:
    """What the facts of two runs of one task differ by: the places, where they are collections."""
    return tuple(one.info.place for one in run.runs) if run.scope == COLLECTIONS else POOL
