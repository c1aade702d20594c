"""The widgets of the Failure cases tab and their wiring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from core.analyze.case import MOST_COLUMNS
from core.analyze.failures import FACETS
from core.analyze.lists import Named, Wanted
from core.analyze.notes import SessionNotes
from core.context import AppContext
from core.figures.failures import SEPARATOR
from ui.charts import chart, point_of
from ui.data import DataRow
from ui.download import download
from ui.failures.acts import Acts
from ui.failures.files import Files
from ui.failures.listing import listing
from ui.failures.notes_form import notes_form
from ui.failures.sheet import sheet
from ui.failures.state import Choice, Drafts, Listed
from ui.failures.tab import AGREEMENTS, CUTS, Failures
from ui.picked import picked
from ui.pulse import pulse
from ui.search.state import Opened
from ui.viewer import viewer

PRIVATE = {"api_visibility": "private"}
QUIET = {"show_progress": "hidden", **PRIVATE}
LIGHT = {"queue": False, **QUIET}
LATEST = {"trigger_mode": "always_last", **LIGHT}
HOUR = 3600

PROGRESS = gr.Progress()
"""As a default it marks the parameter that Gradio fills in anew for each run."""

HERE = Path(__file__).parent


def _script(name: str) -> str:
    """One of the small scripts of ``scripts.js``, which are parted by lines that name them."""
    parts = (HERE / "scripts.js").read_text(encoding="utf-8").split("//# ")
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts[1:]}[name]


def _html(value: str = "", script: str = "", **more: object) -> gr.HTML:
    code = (HERE / script).read_text(encoding="utf-8") if script.endswith(".js") else script
    return gr.HTML(value, js_on_load=code or None, apply_default_css=False, elem_classes="m3-flat", **more)


def _named(event: gr.EventData) -> str:
    """The name that a button of a table stands for; "" for anything else. It is compared with what there is."""
    data = getattr(event, "_data", None)
    name = data.get("name") if isinstance(data, dict) else None
    return name if isinstance(name, str) and len(name) <= 1000 else ""


@dataclass(frozen=True, slots=True)
class Entry:
    """How another tab opens a query or a group here: put a `Request` into ``request`` and go on with ``follow``."""

    request: gr.State
    follow: Callable[[Any], None]


def build(context: AppContext, blocks: gr.Blocks, row: DataRow, tabs: gr.Tabs) -> Entry:
    """Add the tab's widgets to ``blocks`` and connect them."""
    tab = Failures(context)
    acts, files = Acts(tab), Files(tab)
    label = row.data
    listed, drafts, opened = (gr.State(value, time_to_live=HOUR) for value in (Listed(), Drafts(), Opened()))
    shown_for, overlay, found = gr.State(None), gr.State(None), gr.State(None)
    always, fresh = gr.State(True, time_to_live=HOUR), gr.State(True, time_to_live=HOUR)
    session = gr.State(SessionNotes() if context.notes is None else None)
    seen = pulse("failures")

    with gr.Column(elem_id="failure-overview"):
        with gr.Row(elem_id="failure-choice"):
            task = gr.Dropdown([], label="Task", interactive=True, elem_id="failure-task", min_width=150)
            run = gr.Dropdown([], label="Model", interactive=True, elem_id="failure-run", min_width=180)
            beside = gr.Dropdown(
                [],
                label="Beside it (up to three)",
                multiselect=True,
                max_choices=MOST_COLUMNS - 1,
                interactive=True,
                elem_id="failure-beside",
                min_width=220,
            )
            by = gr.Dropdown([], label="By", interactive=True, elem_id="failure-by", min_width=130)
            k = gr.Dropdown(
                list(CUTS), value=10, label="Relevant within", interactive=True, elem_id="failure-k", min_width=90
            )
            measure = gr.Dropdown([], label="Measure", interactive=True, elem_id="failure-measure", min_width=130)
        with gr.Row(elem_id="failure-how"):
            scope = gr.Radio([], label="Searched in", interactive=True, visible=False, elem_id="failure-scope")
            anew = gr.Checkbox(
                False, label="Score with re-judgements", interactive=True, container=False, elem_id="failure-anew"
            )
            again = gr.Button("Score again", size="sm", elem_id="failure-again")
        finding = _html(elem_id="failure-finding", min_height=60)
        with gr.Row(elem_id="failure-where"):
            with gr.Column(min_width=320):
                rates = chart("failure-rates", 360, "Failure rates with intervals")
            with gr.Column(min_width=320):
                groups = _html(script=_script("table"), elem_id="failure-groups")
        with gr.Accordion("Why: kinds of failure", open=True):
            kinds = _html(script=_script("table"), elem_id="failure-kinds")
        with gr.Accordion("Picture or words: modality ablation", open=False):
            ablation = _html(elem_id="failure-ablation")
        with gr.Accordion("What is found instead: first hits", open=False):
            heat = chart("failure-heat", 420, "First hits by what was asked")
            confusion = _html(elem_id="failure-confusion")
        with gr.Column(elem_id="failure-which"):
            gr.HTML("<h2>Which queries</h2>", apply_default_css=False, elem_classes="m3-flat")
            with gr.Row(elem_id="failure-filter"):
                group = gr.Dropdown([("all", "")], value="", label="Group", interactive=True, elem_id="failure-group")
                kind = gr.Dropdown([("any", "")], value="", label="Kind", interactive=True, elem_id="failure-kind")
                agree = gr.Dropdown(
                    [(words, name) for name, words in AGREEMENTS.items()],
                    value="",
                    label="Models that fail",
                    interactive=True,
                    elem_id="failure-agree",
                )
                order = gr.Dropdown(
                    [("worst first", "worst")], value="worst", label="Order", interactive=True, elem_id="failure-order"
                )
                text = gr.Textbox(
                    label="Words, id or facet", max_length=200, interactive=True, elem_id="failure-text", lines=1
                )
                failing = gr.Checkbox(
                    True, label="Failures only", interactive=True, container=False, elem_id="failure-only"
                )
            which = listing("failure-list")
            with gr.Row(elem_id="failure-files"):
                to_csv = gr.Button("Save list (CSV)", size="sm", elem_id="save-csv")
                to_json = gr.Button("Save list (JSON)", size="sm", elem_id="save-json")
                to_notes = gr.Button("Save notes and re-judgements (CSV)", size="sm", elem_id="save-notes")
                to_qrels = gr.Button("Save judgements as qrels (zip)", size="sm", elem_id="save-qrels")
            back_in = picked("read-notes", "Read notes and re-judgements back", ".csv")
            left_out = _html(elem_id="failure-left-out")
        made = _html(elem_id="failure-provenance")

    with gr.Column(elem_id="failure-case"):
        case = sheet("failure-sheet")
        with gr.Column(elem_id="failure-look"):
            _html(
                '<button type="button" class="m3-unlook">Close picture</button>',
                _script("unlook"),
                elem_id="failure-unlook",
            )
            pictures = viewer("failure-viewer")
            words = _html(elem_id="failure-words")
        author = gr.Textbox(
            label="Your name or initials",
            max_length=80,
            interactive=True,
            elem_id="failure-author",
            info="Stands beside your notes and judgements."
            if context.notes is not None
            else "Notes stay in this browser session only: save them as a file before you leave.",
        )
        note = notes_form("failure-note")
    file = download("failure-download")

    choice_widgets = [label, task, scope, run, beside, by, k, measure, anew]
    filters = [failing, group, kind, agree, text, order, found]
    shown = [finding, rates, groups, kinds, ablation, heat, confusion, group, order, made, overlay]
    one_case = [case, listed, note, pictures, words, opened]

    def choice_of(values) -> Choice:
        name, task, scope, run, beside, by, k, measure, anew = values
        return Choice(name, task, scope, run, tuple(beside or ()), by, int(k), measure, bool(anew))

    # Spelled out, because Gradio finds the places of event and progress by these names.
    def see(wanted, label, task, scope, run, beside, by, k, measure, anew, session, progress=PROGRESS):
        if not wanted:
            return [gr.skip()] * len(shown)
        return tab.overview(choice_of((label, task, scope, run, beside, by, k, measure, anew)), session, progress)

    def find(
        wanted,
        label,
        task,
        scope,
        run,
        beside,
        by,
        k,
        measure,
        anew,
        failing,
        group,
        kind,
        agree,
        text,
        order,
        found,
        overlay,
        progress=PROGRESS,
    ):
        if not wanted:
            return gr.skip(), gr.skip()
        choice = choice_of((label, task, scope, run, beside, by, k, measure, anew))
        wanted = Wanted(
            failing=bool(failing),
            group=(by, group) if group else None,
            found=None if isinstance(found, Named) else found,
            named=found if isinstance(found, Named) else None,
            kinds=(kind,) if kind else (),
            agreement=agree or "",
            text=text or "",
            order=order or "worst",
        )
        return tab.list_queries(choice, wanted, overlay, progress)

    def open_row(event: gr.EventData, listed, drafts, author, session):
        return tab.open_case(listed, drafts, author, session, event, "i")

    def choose_group(event: gr.EventData):
        return _named(event)

    def choose_task(event: gr.EventData, label):
        name = _named(event)
        return name if name in context.dataset(label).tasks else gr.skip()

    def choose_point(event: gr.EventData, by):
        name = point_of(event)
        return gr.skip() if name is None or by == "task" else name

    def choose_cell(event: gr.EventData, by):
        name = point_of(event)
        asked, _, hit = (name or "").partition(SEPARATOR)
        facet = by if by in FACETS else "domain"
        return (asked if by == facet else gr.skip(), (facet, hit)) if hit else (gr.skip(), None)

    # One at a time, so that of two lists that were asked for in turn the later one is shown last.
    listing_run = {"show_progress_on": [which], "concurrency_id": "listing", "concurrency_limit": 1, **PRIVATE}
    seeing = {"show_progress_on": [finding], "concurrency_id": "analysis", "concurrency_limit": 2, **PRIVATE}
    see_args = [see, [always, *choice_widgets, session], shown]
    find_args = [find, [always, *choice_widgets, *filters, overlay], [which, listed]]

    def and_list(event):
        return event.then(lambda: None, None, found, **LIGHT).then(*find_args, **listing_run)

    def only_if(flag, args):
        function, (_, *inputs), outputs = args
        return [function, [flag, *inputs], outputs]

    runs_of = [run, beside, by, scope, measure, group, kind]
    # What is shown already stays, also what another tab has just asked for.
    opening = seen.shown(tab.open_tab, [label, shown_for], [task, *runs_of, shown_for, fresh], **QUIET)
    opening = opening.then(*only_if(fresh, see_args), **seeing)
    opening = opening.then(lambda new: None if new else gr.skip(), fresh, found, **LIGHT)
    opening.then(*only_if(fresh, find_args), **listing_run)
    label.input(None, None, None, js=_script("data"), **PRIVATE)
    and_list(task.input(tab.choose_task, [label, task, scope, run, by], runs_of, **QUIET).then(*see_args, **seeing))
    tasks = groups.task(choose_task, label, task, **LIGHT)
    and_list(tasks.then(tab.choose_task, [label, task, scope, run, by], runs_of, **QUIET).then(*see_args, **seeing))
    and_list(scope.input(tab.choose_task, [label, task, scope, run, by], runs_of, **QUIET).then(*see_args, **seeing))
    and_list(run.input(tab.choose_run, [label, task, scope, run, beside], beside, **QUIET).then(*see_args, **seeing))
    for widget in (beside, by, k, measure, anew):
        and_list(widget.input(*see_args, **seeing))
    and_list(again.click(*see_args, **seeing))

    for widget in (group, kind, agree, order, failing):
        widget.input(*find_args, **listing_run)
    text.change(*find_args, trigger_mode="always_last", **listing_run)
    show_list = {"js": _script("show_list"), **PRIVATE}
    for event in (
        groups.group(choose_group, None, group, **LIGHT),
        kinds.kind(choose_group, None, kind, **LIGHT),
        rates.point(choose_point, by, group, **LIGHT),
        heat.point(choose_cell, by, [group, found], **LIGHT),
    ):
        event.then(*find_args, **listing_run).then(None, None, None, **show_list)
    which.turn(tab.turn_page, listed, [which, listed], **LIGHT)
    which.all(lambda: None, None, found, **LIGHT).then(*find_args, **listing_run)

    with_case = [listed, drafts, author, session]
    which.open(open_row, with_case, one_case, **LATEST).then(None, None, None, js=_script("open"), **PRIVATE)
    case.goto(open_row, with_case, one_case, **LATEST).then(None, None, None, js=_script("stepped"), **PRIVATE)
    case.back(None, None, None, js=_script("close"), **PRIVATE)
    case.look(tab.look, listed, [pictures, words, opened], **LATEST).then(
        None, None, None, js=_script("look"), **PRIVATE
    )
    pictures.step(tab.step, [listed, opened], pictures, **LATEST)
    case.judge(acts.judge, with_case, [case, note, session], trigger_mode="multiple", **LIGHT)
    note.save(acts.save_note, with_case, [note, drafts, session], **LIGHT)
    note.draft(acts.keep_draft, with_case, drafts, **LIGHT)
    case.save(files.save_case, [listed, session], file, **LIGHT)

    to_csv.click(lambda listed: files.save_list(listed, "csv"), listed, file, **LIGHT)
    to_json.click(lambda listed: files.save_list(listed, "json"), listed, file, **LIGHT)
    to_notes.click(files.save_notes, [label, session], file, **LIGHT)
    to_qrels.click(files.save_qrels, [label, session], [file, left_out], **LIGHT)
    back_in.file(files.read_notes, [label, session], [back_in, session], **LIGHT)

    request = gr.State(None, time_to_live=HOUR)
    asked, turned = _html("", visible="hidden"), _html("", visible="hidden")  # the browser sees no State

    def turn(request):
        return (gr.Tabs(selected="failures"), "turned") if request is not None else (gr.skip(), "")

    def follow(event) -> None:
        """After ``event``, which has set ``request``, if not to None: show what it asks for, and the case it names."""
        steps = event.then(tab.apply, [label, request], [task, *runs_of[:-2], shown_for], **LIGHT)
        steps = steps.then(turn, request, [tabs, turned], **LIGHT)
        steps = steps.then(None, turned, None, js=_script("turn"), **PRIVATE)
        steps = steps.then(*only_if(request, see_args), **seeing)
        steps = steps.then(tab.filters_of, request, [failing, group, kind, agree, text, order, found], **LIGHT)
        steps = steps.then(*only_if(request, find_args), **listing_run)
        steps.then(tab.open_asked, [request, *with_case], [*one_case, asked], **LIGHT).then(
            None, asked, None, js=_script("opened"), **PRIVATE
        )

    return Entry(request, follow)
