"""The callbacks of the Model comparison tab: read widgets, ask core, render."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING

import gradio as gr

from core.analyze.league import DOMAIN, TASK, League, Leagues
from core.analyze.league_report import same_published
from core.analyze.quality import COSTS, quality
from core.analyze.scored import Scored
from core.context import AppContext
from core.evaluate import published as facts
from core.evaluate.cost import cost_of
from core.figures import compare as groups_of
from core.figures import cost as marks
from core.figures import style
from core.figures.compare import Face, faces
from core.records import TASK_LABELS
from ui import charts, errors
from ui.cards import escape
from ui.compare import queries, tables
from ui.compare.opening import opens
from ui.compare.state import Brought, Choice
from ui.failures.where import provenance
from ui.progress import pace_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

NO_RUNS = (
    "No run of this data set is stored yet, so there is nothing to compare. Make some with: python -m core evaluate "
    "DATA, or bring your own below, then come back to this tab."
)
ALONE = "Only one model is listed for this task, so there is no other to compare it with."
COVERAGE = ("Judged@10",)
"""Measures that say how much was judged, not how good a ranking is: they are not compared."""
DIFFERENT = "Choose two different models."


@dataclass(frozen=True, slots=True)
class Views:
    """What is shown first of one choice, in the order of the page; charts as `ui.charts.to_json`, else HTML."""

    finding: str
    warnings: str = ""
    bars: str = ""
    standings: str = ""
    pair: str = ""
    provenance: str = ""


@dataclass(frozen=True, slots=True)
class More:
    """What is shown then, further down; ``problem`` says what went wrong with it."""

    problem: str = ""
    heat: str = ""
    by_group: str = ""
    scatter: str = ""
    largest: str = ""
    cost: str = ""
    costs: str = ""
    published: str = ""
    facts: str = ""


@dataclass(frozen=True, slots=True)
class Screen:
    """One choice as core knows it: the league, that of the heat map, and how each model looks."""

    leagues: Leagues
    league: League
    fine: League
    faces: dict[str, Face]
    shown: list[str]


MENUS, VIEWS = 9, len(fields(Views))
"""Values that `Compare.choose` gives: of what can be chosen, and of what is shown."""

WHOLE, EVERYWHERE = "", "the whole task"
"""What a brought run is for unless it is for one collection."""

_NONE, _MANY = gr.Dropdown([], value=None), gr.Dropdown([], value=[], multiselect=True)
NOTHING = (_NONE, _NONE, _NONE, _MANY, _NONE, _NONE, [], None, gr.Dropdown([(EVERYWHERE, WHOLE)], value=WHOLE))
"""The menus where there is no run."""


class Compare:
    """The callbacks, bound to the context that all sessions share and never change."""

    def __init__(self, context: AppContext) -> None:
        self.context = context

    # What can be chosen

    def open_tab(self, label: str, shown_for: str | None, brought: Brought) -> list[object]:
        """The tab comes into view: `choose` of the first task of the data set that is chosen now, unchanged where it
        is shown already; and whether anything is to be shown anew. Where there was nothing, runs are looked for
        again."""
        if label == shown_for:
            return [*[gr.skip()] * (MENUS + VIEWS), False]
        return [*self.choose(label, None, None, None, (), None, None, (), brought), True]

    def choose(
        self,
        label: str,
        task: str | None,
        measure: str | None,
        by: str | None,
        shown: Sequence[str] | None,
        a: str | None,
        b: str | None,
        offered: Mapping[str, list] | None,
        brought: Brought,
        taken: str | None = None,
    ) -> list[object]:
        """What can be chosen then, and what is shown of it: task, measure, by, shown, A, B, what they ``offered``,
        ``shown_for`` (None where there is nothing), what a brought run can be for, and the fields of `Views`.

        What was chosen stays where it exists; all models are shown again where all that were ``offered`` were shown,
        and a run of the name ``taken`` that was brought now is."""
        try:
            given = Choice(label, task, measure, by, tuple(shown or ()), a, b)
            menus, choice = self._menus(given, offered, brought, taken)
        except Exception as error:
            return [*NOTHING, *astuple(Views(errors.why(error)))]
        return [*menus, *self.overview(choice, brought)]

    def _menus(
        self, choice: Choice, offered: Mapping[str, list] | None, brought: Brought, taken: str | None
    ) -> tuple[Sequence[object], Choice]:
        """The menus, and what is chosen in them."""
        leagues = self.leagues(choice.label)
        extra = self.extra(leagues, brought)
        tasks = leagues.tasks(extra)
        if not tasks:
            return NOTHING, Choice(choice.label, None, None, None, (), "", "")
        task = choice.task if choice.task in tasks else tasks[0]
        measures = [name for name in leagues.measures(task, extra) if name not in COVERAGE]
        groupings = leagues.groupings(task, extra)
        measure = choice.measure if choice.measure in measures else measures[0]
        by = choice.by if choice.by in groupings else DOMAIN
        league = leagues.of(task, measure, by, extra)
        names = league.names
        order = [one.name for one in league.comparison.macro.standings]
        order += [name for name in names if name not in order]
        before = offered or {}
        every = set(before.get("models", ())) <= set(choice.shown)
        shown = [name for name in names if every or name in choice.shown or name == taken] or names
        a = choice.a if choice.a in names else order[0]
        others = [name for name in order if name != a]
        b = choice.b if choice.b in others else next(iter(others), None)
        members = leagues.dataset.pool(task).collections
        places = [(EVERYWHERE, WHOLE), *((one.key, one.key) for one in members if len(members) > 1)]
        now = {
            "tasks": [(TASK_LABELS.get(one, one), one) for one in tasks],
            "measures": measures,
            "groupings": groupings,
            "models": names,
            "places": places,
        }
        given = {
            "tasks": [(task, choice.task)],
            "measures": [(measure, choice.measure)],
            "groupings": [(by, choice.by)],
            "models": [(shown, list(choice.shown)), (a, choice.a), (b, choice.b)],
        }
        menus = [_menu(now[kind], *pair, before.get(kind)) for kind, pairs in given.items() for pair in pairs]
        where = gr.skip() if places == before.get("places") else gr.Dropdown(places, value=WHOLE)
        menus += [now, choice.label, where]
        return menus, Choice(choice.label, task, measure, by, tuple(shown), a, b or "")

    # What is shown

    def overview(self, choice: Choice, brought: Brought) -> tuple[str, ...]:
        """The fields of `Views`, or only what went wrong."""
        try:
            if not choice.task or not choice.measure:
                self.context.dataset(choice.label)  # says why, where it cannot be read
                return astuple(Views(f'<div class="m3-empty"><p>{escape(NO_RUNS)}</p></div>'))
            return astuple(self.views(choice, brought)[1])
        except Exception as error:
            return astuple(Views(errors.why(error)))

    def details(self, choice: Choice, brought: Brought, cost_by: str) -> tuple[str, ...]:
        """The fields of `More`, or only what went wrong."""
        try:
            return astuple(self.more(choice, brought, cost_by) if choice.task and choice.measure else More())
        except Exception as error:
            return astuple(More(errors.why(error)))

    def views(self, choice: Choice, brought: Brought, links: bool = True) -> tuple[Screen, Views]:
        """One choice, and what is shown of it first; ``links``: with buttons that open queries."""
        screen = self.screen(choice, brought)
        league = screen.league
        return screen, Views(
            finding=tables.finding(league),
            warnings=tables.warnings(league),
            bars=bars(screen),
            standings=tables.standings(league, screen.shown),
            pair=self._pair(screen, choice, links),
            provenance=provenance(league.conditions),
        )

    def more(self, choice: Choice, brought: Brought, cost_by: str, links: bool = True) -> More:
        """What is shown further down."""
        screen = self.screen(choice, brought)
        scatter, largest = self._queries(screen, choice, links)
        cost, costs = self._cost(screen, choice, cost_by)
        chart, facts = published(screen)
        return More(
            heat=heat(screen),
            by_group=tables.by_group(screen.fine.comparison.domains, screen.shown, choice.measure, screen.fine.by),
            scatter=scatter,
            largest=largest,
            cost=cost,
            costs=costs,
            published=chart,
            facts=facts,
        )

    def pair(self, choice: Choice, brought: Brought) -> tuple[str, str, str]:
        """Another pair of models: pair, scatter, largest differences."""
        try:
            screen = self.screen(choice, brought)
            return self._pair(screen, choice), *self._queries(screen, choice)
        except Exception as error:
            return errors.why(error), "", ""

    def _pair(self, screen: Screen, choice: Choice, links: bool = True) -> str:
        if choice.a == choice.b or not {choice.a, choice.b} <= screen.faces.keys():
            return f'<div class="m3-empty"><p>{ALONE if not choice.b else DIFFERENT}</p></div>'
        return tables.pair(screen.league, choice.a, choice.b, links and bool(opens(self.context, choice)))

    def _queries(self, screen: Screen, choice: Choice, links: bool = True) -> tuple[str, str]:
        """The scatter and the largest differences; empty without two models of this task."""
        runs = {run.name: run for run in screen.league.scored}
        if choice.a == choice.b or not {choice.a, choice.b} <= runs.keys():
            return "", ""
        one, two = runs[choice.a], runs[choice.b]
        points = marks.points(one.values, two.values)
        if not points:
            return "", ""
        figure = marks.scatter(points, choice.a, choice.b, _title(screen.league, "Queries"), choice.measure)
        links = links and bool(opens(self.context, choice))
        return drawn(figure, screen.league), queries.rendered(screen.leagues.dataset, one, two, links)

    def complement(self, choice: Choice, brought: Brought, progress: gr.Progress | None = None) -> str:
        """What two models solve together."""
        try:
            if not choice.task or choice.a == choice.b or not choice.b:
                return (
                    f'<div class="m3-empty"><p>{ALONE if not choice.b else DIFFERENT}</p></div>' if choice.task else ""
                )
            leagues = self.leagues(choice.label)
            extra = self.extra(leagues, brought)
            names = {run.name for run in leagues.of(choice.task, choice.measure, extra=extra).scored}
            if not {choice.a, choice.b} <= names:
                return '<div class="m3-empty"><p>One of the two has no run of this task.</p></div>'
            own = {run.name: run.rankings for run in brought.of(leagues.dataset.data_id) if run.task == choice.task}
            report = pace_of(progress)
            return tables.complement(
                leagues.complement(choice.task, choice.measure, choice.a, choice.b, extra, own, report)
            )
        except Exception as error:
            return errors.why(error)

    def cost(self, choice: Choice, brought: Brought, by: str) -> tuple[str, str]:
        """Quality against another cost: the chart and its table, whose Pareto front is another too."""
        try:
            return self._cost(self.screen(choice, brought), choice, by) if choice.task else ("", "")
        except Exception as error:
            return "", errors.why(error)

    def _cost(self, screen: Screen, choice: Choice, by: str) -> tuple[str, str]:
        dataset, workspace = screen.leagues.dataset, self.context.workspace
        names = [run.name for run in screen.league.scored]
        costs = {name: cost_of(dataset, workspace, choice.task, name) for name in names}
        by = by if by in COSTS else next(iter(COSTS))
        rows = [row for row in quality(screen.league, costs, by) if row.model in screen.shown]  # the front is of all
        costs = {name: cost for name, cost in costs.items() if name in screen.shown}
        figure = marks.cost(rows, by, screen.faces, _title(screen.league, "Quality and cost"))
        return drawn(figure, screen.league), tables.cost(rows, costs, choice.measure)

    def screen(self, choice: Choice, brought: Brought) -> Screen:
        """One choice as core knows it; ValueError for what cannot be chosen."""
        leagues = self.leagues(choice.label)
        extra = self.extra(leagues, brought)
        league = leagues.of(choice.task, choice.measure, choice.by, extra)
        finer = leagues.finer(choice.task, choice.measure, choice.by, extra)
        names = league.names
        shown = [name for name in names if name in choice.shown] or names
        return Screen(leagues, league, finer, faces(names), shown)

    def leagues(self, label: str) -> Leagues:
        """The comparisons of the data set of this label; `core.data.layouts.DataError` where it cannot be read."""
        return self.context.leagues(self.context.dataset(label))

    def extra(self, leagues: Leagues, brought: Brought) -> list[Scored]:
        """What a session brought of the data set of these comparisons."""
        return brought.scored(leagues.dataset.data_id)


def _menu(choices: Sequence[object], value: object, given: object, before: Sequence[object] | None) -> object:
    """A menu with these choices. What stays is not sent back: meanwhile the visitor may have chosen again, or be
    typing in a menu, which shows all choices anew when it is given any."""
    if value == given:
        return gr.skip() if choices == before else gr.update(choices=choices)
    return gr.Dropdown(choices, value=value, multiselect=isinstance(value, list))


def _title(league: League, what: str) -> str:
    return f"{what}: {TASK_LABELS.get(league.task, league.task)}, {league.measure}, {league.dataset_name}"


def drawn(figure: Figure, league: League) -> str:
    """A figure for its chart, with what made it for pictures that are saved."""
    return charts.to_json(style.sourced(figure, league.conditions))


def bars(screen: Screen) -> str:
    """The chart of models by group."""
    league = screen.league
    whole = f"By task: {league.measure}, {league.dataset_name}"
    title = whole if league.by == TASK else _title(league, f"By {league.by}")
    figure = groups_of.bars(league.comparison.domains, screen.shown, screen.faces, title, league.measure, league.by)
    return drawn(figure, league)


def heat(screen: Screen) -> str:
    """The heat map of models by finer group."""
    league = screen.fine
    title = _title(league, f"By {league.by}")
    return drawn(groups_of.heat(league.comparison.domains, screen.shown, title, league.measure, league.by), league)


def published(screen: Screen) -> tuple[str, str]:
    """Chart and table of the published figures of the task; a sentence where the measure is another one."""
    league = screen.league
    if league.measure != facts.MEASURE:
        return "", f"<p>Published figures are of {facts.MEASURE}; choose this measure to see them.</p>"
    known = [fact for fact in facts.load() if fact.task == league.task]
    own = {one.name: one for one in league.comparison.macro.standings}
    ours = [own[name] for name in screen.shown if name in own]
    figure = marks.published(
        known,
        {one.name: (one.estimate, screen.faces[one.name]) for one in ours},
        f"Published and ours: {TASK_LABELS.get(league.task, league.task)}, {league.measure}",
    )
    return drawn(figure, league), tables.published(known, same_published(league, known), ours)
