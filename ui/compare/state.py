"""What a session holds in the Model comparison tab: what it looks at, and in public mode the runs that it brought."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.analyze.scored import Scored
from core.analyze.session_runs import SessionRun

MOST_RUNS, MOST_HITS = 5, 1_000_000
"""Runs that a session may bring in public mode, of all data sets and tasks, and results in all of them together, which
take about 100 MB."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The widgets above the figures. ``label`` is the data set's; ``shown`` are the models that are drawn, ``a`` and
    ``b`` those that are compared with one another."""

    label: str
    task: str
    measure: str
    by: str
    shown: tuple[str, ...]
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Brought:
    """The runs that a session brought in public mode; they leave with it."""

    runs: tuple[SessionRun, ...] = ()

    def of(self, data_id: str) -> list[SessionRun]:
        """Those of a data set."""
        return [run for run in self.runs if run.data_id == data_id]

    def scored(self, data_id: str) -> list[Scored]:
        """Every measure of those of a data set."""
        return [one for run in self.of(data_id) for one in run.scored.values()]

    def put(self, run: SessionRun) -> Brought:
        """With one more run, in place of one of the same name and task; ValueError beyond the limits above."""
        others = tuple(
            one for one in self.runs if (one.data_id, one.task, one.name) != (run.data_id, run.task, run.name)
        )
        if len(others) >= MOST_RUNS:
            raise ValueError(f"This session holds {MOST_RUNS} runs already; reload the page to begin anew.")
        if sum(map(_hits, (*others, run))) > MOST_HITS:
            raise ValueError(
                f"A session holds {MOST_HITS:,} results at most; bring fewer a query, or reload the page to begin anew."
            )
        return replace(self, runs=(*others, run))


def _hits(run: SessionRun) -> int:
    return sum(len(ranking) for place in run.rankings.values() for ranking in place.rankings.values())
