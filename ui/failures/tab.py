"""The callbacks of the Failure cases tab: read widgets, ask core, render."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import gradio as gr

from core.analyze import lists, slices
from core.analyze.case import MOST_COLUMNS, CaseSheet, case_sheet
from core.analyze.diagnosis import Diagnosis
from core.analyze.failures import FACETS, KINDS
from core.analyze.lists import ALL_FAIL, CONTRAST, ONLY_THIS, WORST, Wanted
from core.analyze.notes import Notes, SessionNotes
from core.analyze.rejudge import Annotations, Overlay
from core.analyze.report import Report, overview, provenance
from core.analyze.task_runs import TaskRun, colour_of
from core.context import AppContext
from core.data.dataset import DataSet
from core.evaluate.measures import ALL
from core.figures import failures as figures
from core.records import TASK_LABELS, QueryError
from ui import charts, errors, viewer
from ui.cards import escape
from ui.failures import listing, sheet, where
from ui.failures.acts import form_of
from ui.failures.look import face_of, look
from ui.failures.state import Choice, Drafts, Listed, Request
from ui.progress import pace_of
from ui.search import panel
from ui.search.state import Opened
from ui.viewer import step_of

CUTS = (1, 3, 5, 10, 20, 50, 100)
ANY = "any"
EVERY = "all"
SCOPES = {"pool": "the whole pool", "collections": "each collection"}
AGREEMENTS = {"": "any", ALL_FAIL: "all models fail", ONLY_THIS: "only this one fails"}
ORDERS = {WORST: "worst first", CONTRAST: "largest gap to the second model"}
NO_RUNS = (
    "No run of this data set is stored yet. Make some with: python -m core evaluate DATA (and --ablation for the "
    "modality ablation), then come back to this tab."
)


@dataclass(frozen=True, slots=True)
class Screen:
    """What one choice shows: the diagnoses of the run and of those beside it, of all other runs of the task, and of
    the run in all tasks where it is grouped by task."""

    dataset: DataSet
    main: Diagnosis
    beside: tuple[Diagnosis, ...]
    report: Report


class Failures:
    """The callbacks, bound to the context that all sessions share and never change."""

    def __init__(self, context: AppContext) -> None:
        self.context = context

    # What can be chosen

    def open_tab(self, label: str, shown_for: str | None):
        """The tab comes into view: task, its runs and groups of the data set that is chosen now; unchanged where they
        are shown already. Task, run, beside, by, scope, measure, group, kind, ``shown_for``: None where there was
        nothing to show, so that runs are looked for again; and whether anything is to be shown anew."""
        if label == shown_for:
            return [*[gr.skip()] * 9, False]
        try:
            desk = self.context.desk(self.context.dataset(label))
            tasks = desk.tasks()
        except Exception as error:
            errors.explain(error)
            tasks = []
        choices = [(TASK_LABELS.get(task, task), task) for task in tasks]
        task = tasks[0] if tasks else None
        widgets = self.choose_task(label, task, None, None, None)
        return gr.Dropdown(choices, value=task), *widgets, label if task else None, True

    def choose_task(
        self, label: str, task: str | None, scope: str | None, run: str | None, by: str | None
    ) -> list[object]:
        """The runs of a task: run, beside, by, scope, measure, group, kind. What was chosen stays where it exists."""
        desk = self.context.desk(self.context.dataset(label)) if task else None
        scopes = desk.scopes(task) if desk else []
        if not scopes:
            empty = gr.Dropdown([], value=None)
            return [
                empty,
                gr.Dropdown([], value=[], multiselect=True),
                empty,
                gr.Radio(visible=False),
                empty,
                empty,
                empty,
            ]
        scope = scope if scope in scopes else scopes[0]
        runs = [one.label for one in desk.runs(task, scope)[0]]
        chosen = run if run in runs else _usual_run(runs)
        known = desk.groups(task)
        by = by if by in known else desk.usual_by(task)
        return [
            gr.Dropdown(runs, value=chosen),
            gr.Dropdown([name for name in runs if name != chosen], value=[], multiselect=True),
            gr.Dropdown(known, value=by),
            gr.Radio([(SCOPES[s], s) for s in scopes], value=scope, visible=len(scopes) > 1),
            gr.Dropdown([name for name in ALL if name in desk.measures(task, scope)], value="nDCG@10"),
            gr.Dropdown([(EVERY, "")], value=""),
            gr.Dropdown([(ANY, ""), *((kind.name, kind.name) for kind in KINDS)], value=""),
        ]

    def choose_run(self, label: str, task: str | None, scope: str | None, run: str | None, beside: list[str] | None):
        """Those that can stand beside the chosen run."""
        if not task:
            return gr.skip()
        names = [one.label for one in self.context.desk(self.context.dataset(label)).runs(task, scope)[0]]
        others = [name for name in names if name != run]
        return gr.Dropdown(others, value=[name for name in beside or [] if name in others], multiselect=True)

    # From another tab

    def apply(self, label: str, request: Request | None):
        """The widgets as another tab asked for: task, run, beside, by, scope, measure, ``shown_for``."""
        if request is None or request.label != label:
            return [gr.skip()] * 7
        widgets = self.choose_task(label, request.task, request.scope, request.run, request.by)
        widgets[1] = self.choose_run(label, request.task, request.scope, request.run, list(request.beside))
        if request.measure in self.context.desk(self.context.dataset(label)).measures(request.task, request.scope):
            widgets[4].value = request.measure
        choices = [
            (TASK_LABELS.get(task, task), task) for task in self.context.desk(self.context.dataset(label)).tasks()
        ]
        return gr.Dropdown(choices, value=request.task), *widgets[:5], label

    def filters_of(self, request: Request | None):
        """The filters as another tab asked for: failing, group, kind, agree, text, order, found."""
        if request is None:
            return [gr.skip()] * 7
        order = CONTRAST if request.contrast and request.beside else WORST
        return False, request.group, "", "", "", order, request.named

    def open_asked(
        self, request: Request | None, listed: Listed, drafts: Drafts, author: str, session: SessionNotes | None
    ):
        """The case of the query that another tab named, and "open"; "list" where it named none that is in the list, and
        "" where nothing was asked for."""
        if request is None:
            return [*[gr.skip()] * 6, ""]
        if request.key is None or listed.choice is None or request.key not in listed.keys:
            return [*[gr.skip()] * 6, "list"]
        return *self._opened(replace(listed, at=listed.keys.index(request.key)), drafts, author, session), "open"

    # Where and why

    def overview(self, choice: Choice, session: SessionNotes | None, progress: gr.Progress | None = None):
        """Everything above the list. Finding, chart, groups, kinds, ablation, confusion chart and table, group and
        order widgets, provenance, and the overlay that was scored with."""
        try:
            if not choice.task or not choice.run:
                self.context.dataset(choice.label)  # says why, where it cannot be read
                return _nothing(f'<div class="m3-empty"><p>{escape(NO_RUNS)}</p></div>')
            overlay = self._overlay(choice, session)
            screen = self._screen(choice, overlay, progress)
        except Exception as error:
            return _nothing(errors.explain(error))
        report, main = screen.report, screen.main
        facet = choice.by if choice.by in FACETS else "domain"
        found = next((c for c in report.confusion if c.facet == facet), None)
        title = f"Failure rate of {main.label}, {_task_words(choice)}"
        heat = f"First hits of {main.label} by {facet}, {_task_words(choice)}"
        groups = [(EVERY, ""), *((group.name, group.name) for group in report.groups)]
        orders = [(words, name) for name, words in ORDERS.items() if name == WORST or screen.beside]
        return (
            where.finding(report),
            charts.to_json(figures.rates(report.groups, title, choice.k, colour_of(main.run))),
            where.groups(report),
            where.kinds(report),
            where.ablation(report.ablation, main.not_available.get("picture hurts", ""), report.ablation_note),
            charts.to_json(figures.confusion(found, heat)) if found is not None and found.n else "",
            where.confusion(found, facet),
            gr.Dropdown(groups if choice.by != "task" else groups[:1], value=""),
            gr.Dropdown(orders, value=WORST),
            where.provenance(provenance(main)),
            overlay,
        )

    def _overlay(self, choice: Choice, session: SessionNotes | None) -> Overlay | None:
        if not choice.anew:
            return None
        overlay = self.notes(session).read(self.context.dataset(choice.label).data_id).overlay()
        return overlay if overlay.hash else None

    def _screen(self, choice: Choice, overlay: Overlay | None, progress: gr.Progress | None = None) -> Screen:
        dataset = self.context.dataset(choice.label)
        paced = pace_of(progress)
        desk = self.context.desk(dataset)
        runs = self._runs(choice)
        main = desk.diagnosis(runs[choice.run], overlay, paced)
        beside = tuple(desk.diagnosis(runs[name], overlay, paced) for name in choice.beside if name in runs)
        report = overview(desk, main, choice.by, choice.k, choice.measure, overlay, paced)
        return Screen(dataset, main, beside, report)

    def _runs(self, choice: Choice) -> dict[str, TaskRun]:
        desk = self.context.desk(self.context.dataset(choice.label))
        runs = {one.label: one for one in desk.runs(choice.task, choice.scope)[0]}
        if choice.run not in runs:
            raise QueryError("This run is not stored any more. Choose another model.")
        return runs

    # Which

    def list_queries(
        self, choice: Choice, wanted: Wanted, overlay: Overlay | None, progress: gr.Progress | None = None
    ) -> tuple[str, Listed]:
        """The first page of the list, and the list."""
        if not choice.task or not choice.run:
            return "", Listed()
        try:
            dataset = self.context.dataset(choice.label)
            diagnoses, others = self.diagnoses(choice, overlay, bool(wanted.agreement), progress)
            wanted = replace(wanted, members=self._members(choice, wanted, diagnoses[0]))
            at = lists.chosen(diagnoses[0], choice.k, choice.measure, wanted, others)
        except Exception as error:
            return errors.explain(error), Listed()
        keys = tuple((diagnoses[0].queries[i].collection, diagnoses[0].queries[i].id) for i in at)
        listed = Listed(dataset.data_id, choice, wanted, keys, 0, None, overlay)
        return listing.rendered(diagnoses, at, 0, choice.k, choice.measure, wanted), listed

    def diagnoses(
        self, choice: Choice, overlay: Overlay | None, every: bool = False, progress: gr.Progress | None = None
    ) -> tuple[list[Diagnosis], list[Diagnosis]]:
        """The run and those beside it; and all that it may be compared with: with ``every`` all runs of the task."""
        desk, runs = self.context.desk(self.context.dataset(choice.label)), self._runs(choice)
        paced = pace_of(progress)
        names = [choice.run, *(name for name in choice.beside if name in runs and name != choice.run)][:MOST_COLUMNS]
        shown = [desk.diagnosis(runs[name], overlay, paced) for name in names]
        rest = [desk.diagnosis(run, overlay, paced) for name, run in runs.items() if name not in names] if every else []
        return shown, [*shown[1:], *rest]

    def _members(self, choice: Choice, wanted: Wanted, main: Diagnosis) -> tuple[str, ...]:
        if wanted.group is None:
            return ()
        groups = slices.where([main], choice.by, choice.k, choice.measure)
        return next((group.members for group in groups if group.name == wanted.group[1]), ())

    def turn_page(self, listed: Listed, event: gr.EventData) -> tuple[object, object]:
        """Another page of the list."""
        pages = -(-len(listed.keys) // listing.PAGE)
        to = listing.number_of(event, "to", pages)
        if to is None or listed.choice is None:
            return gr.skip(), gr.skip()
        try:
            return self._page(listed, to), replace(listed, page=to)
        except Exception as error:
            return errors.explain(error), listed

    def _page(self, listed: Listed, page: int) -> str:
        choice = listed.choice
        assert choice is not None
        diagnoses, _ = self.diagnoses(choice, listed.overlay)
        return listing.rendered(
            diagnoses, positions(diagnoses[0], listed), page, choice.k, choice.measure, listed.wanted
        )

    # One case

    def open_case(
        self, listed: Listed, drafts: Drafts, author: str, session: SessionNotes | None, event: gr.EventData, name: str
    ):
        """The case that a row of the list or a step asks for: sheet, list, note, and the viewer, closed: face, text
        and what its steps need."""
        at = listing.number_of(event, name, len(listed.keys))
        if at is None or listed.choice is None:
            return [gr.skip()] * 6
        return self._opened(replace(listed, at=at), drafts, author, session)

    def _opened(self, listed: Listed, drafts: Drafts, author: str, session: SessionNotes | None):
        try:
            case, annotations = self.case(listed, session)
        except Exception as error:
            return errors.explain(error), listed, "", viewer.face([]), "", Opened()
        form = form_of(annotations, drafts, listed, author)
        return sheet.rendered(case), listed, form, viewer.face([]), "", Opened()

    def case(self, listed: Listed, session: SessionNotes | None) -> tuple[CaseSheet, Annotations]:
        """The open case, and all notes and judgements of its data set; raises what core raises."""
        choice = listed.choice
        assert choice is not None and listed.at is not None
        dataset = self.context.dataset(choice.label)
        annotations = self.notes(session).read(dataset.data_id)
        diagnoses, _ = self.diagnoses(choice, listed.overlay)
        case = case_sheet(
            dataset,
            self.context.workspace,
            diagnoses,
            listed.keys[listed.at],
            listed.at,
            len(listed.keys),
            annotations,
            shares=self.context.shares(dataset),
            k=choice.k,
            measure=choice.measure,
        )
        return case, annotations

    def look(self, listed: Listed, event: gr.EventData):
        """The viewer with the picture of a document or of the query, its text, and what steps need."""
        asked = sheet.document_of(event)
        if asked is None or listed.choice is None or listed.at is None:
            return [gr.skip()] * 3
        collection, identity, own = asked
        try:
            dataset = self.context.dataset(listed.choice.label)
            key = listed.keys[listed.at]
            query = dataset.collections[key[0]].query(key[1])
            face, view, opened = look(dataset, self.context.cases(dataset), query, collection, identity, own)
        except Exception as error:
            return viewer.face([], problem="This cannot be shown."), errors.explain(error), Opened()
        return face, panel.body(view) if view is not None else "", opened

    def step(self, listed: Listed, opened: Opened | None, event: gr.EventData):
        """The viewer with another picture of the opened document's case."""
        opened = opened or Opened()
        at = step_of(event, panel.items(opened.pictures))
        if at is None or listed.choice is None or listed.data_id != opened.data_id:
            return gr.skip()
        return face_of(self.context.dataset(listed.choice.label), opened, at, step=True)

    # Notes

    def notes(self, session: SessionNotes | None) -> Notes:
        """The notes of the workspace, in public mode those of the session."""
        return self.context.notes if self.context.notes is not None else session or SessionNotes()


def _usual_run(runs: Sequence[str]) -> str | None:
    return next((name for name in runs if name.startswith("medlite")), runs[0] if runs else None)


def _task_words(choice: Choice) -> str:
    return "all tasks" if choice.by == "task" else TASK_LABELS.get(choice.task, choice.task)


def positions(main: Diagnosis, listed: Listed) -> list[int]:
    """Where the listed queries stand in a diagnosis."""
    return [i for key in listed.keys if (i := main.at(key)) is not None]


def _nothing(said: str) -> tuple:
    """What `Failures.overview` gives where there is only something to say."""
    return said, "", "", "", "", "", "", gr.skip(), gr.skip(), "", None
