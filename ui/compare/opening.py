"""From the comparison to its queries: which ones a cell, a mark or a row asks for, in the Failure cases tab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import gradio as gr

from core.analyze.compare import MACRO
from core.analyze.lists import Named
from core.analyze.scored import Key, Scored
from core.analyze.two import ahead
from core.context import AppContext
from core.figures.cost import at_mark
from core.records import QueryError
from ui import charts, errors
from ui.compare import queries, tables
from ui.compare.state import Brought, Choice
from ui.failures.state import Request

if TYPE_CHECKING:
    from ui.compare.tab import Compare

SCOPE = "collections"
"""Figures here are of each collection on its own; so are those of the cases that are opened from here."""


def opens(context: AppContext, choice: Choice, task: str | None = None) -> list[str]:
    """Those of A and B that the Failure cases tab knows: not what is of this session only."""
    desk = context.desk(context.dataset(choice.label))
    known = {run.label for run in desk.runs(task or choice.task, SCOPE)[0]}
    return [name for name in (choice.a, choice.b) if name in known]


class Opening:
    """The callbacks, bound to those of the tab. Each gives the request, None for none, and what is to be said then."""

    def __init__(self, tab: Compare) -> None:
        self.tab, self.context = tab, tab.context

    def query(self, choice: Choice, brought: Brought, event: gr.EventData) -> tuple[Request | None, str]:
        """Open the query of a row of the largest differences."""
        return self._asked(choice, brought, lambda: queries.key_of(event, self.context.dataset(choice.label)), "")

    def point(self, choice: Choice, brought: Brought, event: gr.EventData) -> tuple[Request | None, str]:
        """Open the queries of a mark of the scatter, or the only one."""
        name = charts.point_of(event) or ""

        def keys() -> Sequence[Key]:
            runs = self._runs(choice, choice.task, brought)
            return at_mark(runs[choice.a].values, runs[choice.b].values, name)

        words = f"queries with the same two scores under {choice.a} and {choice.b}"
        return self._asked(choice, brought, keys, words)

    def outcome(self, choice: Choice, brought: Brought, event: gr.EventData) -> tuple[Request | None, str]:
        """Open the queries that a cell of wins or losses counts."""
        data = getattr(event, "_data", None)
        kind, within = (data.get("outcome"), data.get("within")) if isinstance(data, dict) else (None, None)
        if kind not in tables.OUTCOMES or not isinstance(within, str):
            return None, ""

        def keys() -> Sequence[Key]:
            leagues = self.tab.leagues(choice.label)
            which = (choice.task, choice.measure, choice.by, within, choice.a, choice.b, kind)
            return leagues.outcome(*which, self.tab.extra(leagues, brought))

        where = "all groups" if within == MACRO else within
        return self._asked(choice, brought, keys, f"{kind} of {choice.a} against {choice.b} in {where}")

    def _runs(self, choice: Choice, task: str, brought: Brought) -> dict[str, Scored]:
        leagues = self.tab.leagues(choice.label)
        return {
            run.name: run for run in leagues.of(task, choice.measure, extra=self.tab.extra(leagues, brought)).scored
        }

    def _asked(
        self, choice: Choice, brought: Brought, keys: Callable[[], Sequence[Key]], words: str
    ) -> tuple[Request | None, str]:
        """The request for queries of one task. The model that does worse on them is looked at, the other beside it."""
        try:
            found = keys()
            if not found:
                return None, ""
            task = self.context.dataset(choice.label).collections[found[0][0]].task
            known = opens(self.context, choice, task)
            if not known:
                raise QueryError("Runs of this browser session only cannot be opened in Failure cases.")
            runs = self._runs(choice, task, brought)
            run, *beside = reversed(known) if ahead(runs[choice.a], runs[choice.b], found) else known
        except Exception as error:
            return None, errors.why(error)
        only = Named(f"{len(found):,} {words}", frozenset(found)) if len(found) > 1 else None
        key = found[0] if len(found) == 1 else None
        about = {"key": key, "contrast": True, "measure": choice.measure, "named": only}
        return Request(choice.label, task, SCOPE, run, tuple(beside), **about), ""
