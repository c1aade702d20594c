"""Everything the model comparison shows of one data set, task, measure and grouping, made once for everybody."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from core.analyze.compare import MACRO, TIE, Comparison, Group, Standing, compare
from core.analyze.complement import Complement, Stored, complement
from core.analyze.kept import Kept, stamp
from core.analyze.listed import Listing, Trained
from core.analyze.scored import Key, Scored, sorted_out
from core.analyze.slices import NOT_STATED, groups_of
from core.data.dataset import DataSet, silent
from core.embed.pipeline import Progress
from core.evaluate.evaluate import OFFLINE
from core.evaluate.measures import ALL
from core.evaluate.run import StoredRun
from core.evaluate.stats import Estimate
from core.records import TASK_LABELS
from core.store.workspace import Workspace
from core.version import code_version

DOMAIN, TASK = "domain", "task"
FINE = ("specialty", "modality")
"""Facets that part the domains further, the most useful first."""

OPEN_LEAGUES = 128
OPEN_COMPLEMENTS = 256


@dataclass(frozen=True)
class League:
    """The listed runs of one task and measure, compared.

    ``scored`` come in the order of tables, a session's own last. ``comparison.domains`` are the groups of ``by``;
    its macro mean is over the domains of the task whatever ``by`` is. By task, the groups are the macro means of every
    task, each a family of tests of its own, and nothing is averaged over tasks. ``reading`` says what the domains are.
    ``left_out``: why other stored runs are not listed. ``conditions``: what made the figures, in words.
    """

    dataset_name: str
    data_id: str
    task: str
    measure: str
    by: str
    scored: tuple[Scored, ...]
    comparison: Comparison
    reading: str
    left_out: tuple[str, ...]
    conditions: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """Every model that stands in some group, in the order of tables."""
        own = [run.name for run in self.scored]
        every = {one.name for group in self.comparison.domains for one in group.standings}
        order = {name: at for at, name in enumerate(dict.fromkeys((*OFFLINE, *own)))}
        return sorted({*own, *every}, key=lambda name: (order.get(name, len(order)), name))


class Leagues:
    """The leagues of a data set. Thread-safe; nothing in it is found by a user who does not bring the same uploads.

    ``extra`` are a session's own records; those of other tasks and measures are passed over.
    """

    def __init__(self, dataset: DataSet, workspace: Workspace) -> None:
        self.dataset, self.workspace = dataset, workspace
        self._trained = Trained(dataset, workspace)
        self._listings, self._groups = Kept(1), Kept(64)
        self._scored, self._macros = Kept(OPEN_LEAGUES), Kept(OPEN_LEAGUES)
        self._leagues, self._complements = Kept(OPEN_LEAGUES), Kept(OPEN_COMPLEMENTS)

    def tasks(self, extra: Sequence[Scored] = ()) -> list[str]:
        """The tasks with runs that can be listed, in the data set's order."""
        runs = self._listing().runs
        own = {run.info.place for run in runs if run.info.index_kind in ("exact", "imported") and not run.info.split}
        keys = {task: {c.key for c in self.dataset.pool(task).collections} for task in self.dataset.tasks}
        brought = {run.task for run in extra}
        return [task for task in self.dataset.tasks if keys[task] & own or task in brought]

    def measures(self, task: str, extra: Sequence[Scored] = ()) -> list[str]:
        """The measures that some run of a task has, in the order in which they are shown."""
        found = {name for run in self._listing().of_task(task) for name in run.measures}
        found |= {run.measure for run in extra if run.task == task}
        return [name for name in ALL if name in found]

    def groupings(self, task: str, extra: Sequence[Scored] = ()) -> list[str]:
        """What queries can be grouped by: the domain, other facets, and the task where there are several."""
        facets = [by for by in self._facets(task) if by != DOMAIN]
        return [DOMAIN, *facets, *([TASK] if len(self.tasks(extra)) > 1 else [])]

    def of(
        self, task: str, measure: str, by: str = DOMAIN, extra: Sequence[Scored] = (), progress: Progress = silent
    ) -> League:
        """The league of a task; DataError for an unknown one, ValueError for an unknown facet, where there is no run,
        and for what `core.analyze.compare.compare` refuses."""
        own = tuple(run for run in extra if by == TASK or (run.task, run.measure) == (task, measure))
        key = (by, task, measure, tuple(map(_content, own)), self._stamp())
        return self._leagues.get(key, lambda: self._new(task, measure, by, own, progress))

    def finer(self, task: str, measure: str, by: str, extra: Sequence[Scored] = ()) -> League:
        """A league of finer groups than those of ``by``: itself, unless that is domain or task; then the first of
        `FINE` with several groups that are not joined, else that by domain."""
        if by not in (DOMAIN, TASK):
            return self.of(task, measure, by, extra)
        for facet in FINE:
            if facet in self._facets(task):
                found = self.of(task, measure, facet, extra)
                if sum(not group.members for group in found.comparison.domains) > 1:
                    return found
        return self.of(task, measure, DOMAIN, extra)

    def outcome(
        self, task: str, measure: str, by: str, group: str, a: str, b: str, kind: str, extra: Sequence[Scored] = ()
    ) -> list[Key]:
        """The queries of a group that ``a`` "wins", "ties" or "losses" against ``b``, as `Pair.outcomes` counts them;
        ``group`` is `MACRO` for the whole task. Empty where there is no such group or model."""
        if by == TASK:
            task = next((one for one in self.tasks(extra) if TASK_LABELS.get(one, one) == group), task)
            by, group = DOMAIN, MACRO
        found = self.of(task, measure, by, extra)
        runs = {run.name: run.values for run in found.scored}
        held = next((one for one in found.comparison.domains if one.name == group), None)
        if not {a, b} <= runs.keys() or (held is None and group != MACRO):
            return []
        keys = sorted(runs[a].keys() & runs[b].keys())
        if held is not None:
            names, members = self._names(task, by), set(held.members or (group,))
            keys = [key for key in keys if names[key] in members]
        gaps = ((key, runs[a][key] - runs[b][key]) for key in keys)
        return [key for key, d in gaps if ("ties" if abs(d) <= TIE else "wins" if d > 0 else "losses") == kind]

    def complement(
        self,
        task: str,
        measure: str,
        a: str,
        b: str,
        extra: Sequence[Scored] = (),
        rankings: Mapping[str, Stored] | None = None,
        progress: Progress = silent,
    ) -> Complement:
        """What two models of a league solve together. ``rankings``: by name, those of records in ``extra``.

        KeyError for a model that is not in the league.
        """
        runs = {run.name: run for run in self.of(task, measure, extra=extra).scored}
        one, two = runs[a], runs[b]

        def make() -> Complement:
            known = {run.name: (rankings or {}).get(run.name) or self.stored(run) for run in (one, two)}
            return complement(self.dataset, self.workspace, one, two, known, progress)

        return self._complements.get((task, measure, _content(one), _content(two), self._stamp()), make)

    def _stamp(self) -> Hashable:
        return stamp(self.workspace, self.dataset.data_id)

    def _listing(self) -> Listing:
        return self._listings.get(self._stamp(), lambda: Listing(self.dataset, self.workspace, self._trained))

    def _facets(self, task: str) -> list[str]:
        return self._groups.get((task, None), lambda: list(groups_of(self.dataset, task, [task])))

    def listed(self, task: str, measure: str) -> tuple[list[Scored], list[str]]:
        """The listed runs in the order of tables, and why other stored runs are not; DataError for an unknown task."""

        def make() -> tuple[list[Scored], list[str]]:
            scored, refused = self._listing().scores(task, measure)
            listed, left_out = sorted_out(scored)
            order = {name: at for at, name in enumerate(OFFLINE)}
            return sorted(listed, key=lambda run: (order.get(run.name, len(order)), run.name)), [*refused, *left_out]

        return self._scored.get((task, measure, self._stamp()), make)

    def _new(self, task: str, measure: str, by: str, own: tuple[Scored, ...], progress: Progress) -> League:
        progress(f"Comparing the runs of {task}", 0, 0)
        listed, left_out = self.listed(task, measure)
        scored = (*listed, *own)
        if not scored:
            raise ValueError(f"There is no stored run of {task} with {measure}. python -m core evaluate makes them.")
        if by == DOMAIN:
            compared = compare(scored)
        elif by == TASK:
            known = self.of(task, measure, DOMAIN, own).comparison
            compared = replace(known, domains=self._task_groups(measure, own, progress))
        else:
            compared = compare(scored, self._names(task, by), self.of(task, measure, DOMAIN, own).comparison.macro)
        return League(
            dataset_name=self.dataset.name,
            data_id=self.dataset.data_id,
            task=task,
            measure=measure,
            by=by,
            scored=scored,
            comparison=compared,
            reading=reading(self.dataset, task),
            left_out=tuple(left_out),
            conditions=_conditions(self.dataset, task, scored, self._listing().of_task(task)),
        )

    def _names(self, task: str, by: str) -> dict[Key, str]:
        known = self._facets(task)
        if by not in (DOMAIN, *known):
            raise ValueError(
                f"Queries of {task} are not grouped by {by!r}; group by {', '.join(dict.fromkeys((DOMAIN, *known)))}."
            )
        return self._groups.get((task, by), lambda: group_names(self.dataset, task, by))

    def _task_groups(self, measure: str, own: Sequence[Scored], progress: Progress) -> tuple[Group, ...]:
        """The macro means of every task; models without a run of one are N/A there."""
        found = {}
        for task in self.tasks(own):
            if measure in self.measures(task, own):
                found[task] = self.of(task, measure, DOMAIN, own, progress).comparison.macro
        who = {one.name: one for group in found.values() for one in group.standings}
        absent = "N/A: no stored run"
        groups = []
        for task, group in found.items():
            lacking = sorted(who.keys() - {one.name for one in group.standings})
            none = Estimate(math.nan, None, None, 0, 0, absent)
            rows = (Standing(who[n].name, who[n].model_id, who[n].revision, (), none, None, absent) for n in lacking)
            groups.append(replace(group, name=TASK_LABELS.get(task, task), standings=(*group.standings, *rows)))
        return tuple(groups)

    def imported(self, task: str, name: str) -> dict[str, StoredRun]:
        """The stored imports of this name by collection, listed or not; of several for one the deepest."""
        runs = sorted(self._listing().of_task(task), key=lambda run: run.info.depth)
        return {run.info.place: run for run in runs if run.info.index_kind == "imported" and run.info.model == name}

    def stored(self, run: Scored) -> dict[str, StoredRun]:
        """The stored runs of a listed model, by collection."""
        runs = self._listing().of_task(run.task)
        mine = [one for one in runs if one.info.model == run.name and one.info.run_id in run.run_ids]
        return {one.info.place: one for one in mine}


def league(
    dataset: DataSet,
    workspace: Workspace,
    task: str,
    measure: str,
    by: str = DOMAIN,
    extra: Sequence[Scored] = (),
    progress: Progress = silent,
) -> League:
    """One league, computed anew; see `Leagues.of`."""
    return Leagues(dataset, workspace).of(task, measure, by, extra, progress)


def group_names(dataset: DataSet, task: str, by: str) -> dict[Key, str]:
    """The group of each query of a task: its domain, its collection, or what its ``meta`` says of a facet."""
    found = {}
    for collection in dataset.pool(task).collections:
        for query in collection.all_queries():
            value = {DOMAIN: collection.domain, "collection": collection.key}.get(by, query.meta.get(by))
            found[query.collection, query.id] = NOT_STATED if value in (None, "") else str(value)
    return found


def reading(dataset: DataSet, task: str) -> str:
    """What the domains of a data set are, in one sentence: "5 domains" is read two ways."""
    names, meaning = ", ".join(dataset.pool(task).domains), dataset.benchmark.get("domain_meaning")
    if isinstance(meaning, str) and meaning:
        return f"Domains are {meaning}s here, not the benchmark's five sources: {names}."
    return f"Domains are the sources or fields that the data set names, as in the benchmark: {names}."


def _content(run: Scored) -> Hashable:
    """Equal for records with the same figures of the same runs: a session's own are found by their content only."""
    return run.name, run.model_id, run.revision, run.run_ids, hash(frozenset(run.values.items()))


def _precisions(scored: Sequence[Scored]) -> str:
    """What the models compute with: one word where all agree."""
    known = {run.name: str(run.conditions.get("precision", "not stated")) for run in scored}
    one = set(known.values())
    return one.pop() if len(one) == 1 else "; ".join(f"{name} {value}" for name, value in known.items())


def _conditions(dataset: DataSet, task: str, scored: Sequence[Scored], runs: Sequence[StoredRun]) -> Mapping[str, str]:
    """What made the figures, in words by name: on every view and in every file."""
    tools = {f"{name} {number}" for run in runs for name, number in run.facts.get("tools", {}).items()}
    fitted = [run.name for run in scored if run.conditions.get("fold_plan")]
    plans = sorted({str(run.conditions["fold_plan"]) for run in scored if run.conditions.get("fold_plan")})
    unknown = [run.name for run in scored if run.conditions.get("imported")]
    left_out = ["0 queries left out"]
    left_out += [f"{', '.join(fitted)}: answered by heads that saw neither case nor topic"] if fitted else []
    left_out += [f"not known of {', '.join(unknown)}"] if unknown else []
    return {
        "data": f"{dataset.name}, {dataset.data_id}",
        "judgements": dataset.qrels_name,
        "task": TASK_LABELS.get(task, task),
        "scope": "each collection on its own, the benchmark's protocol",
        "models": "; ".join(f"{run.name}: {run.model_id}, {run.revision}" for run in scored),
        "precision": _precisions(scored),
        "seen in training": "; ".join(left_out),
        "fold plan": f"{', '.join(plans)}: {', '.join(fitted)} cross-fitted" if fitted else "none",
        "code": f"M3Retrieve Explorer {code_version()}",
        "measured with": ", ".join(sorted(tools)) or "not stated",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
