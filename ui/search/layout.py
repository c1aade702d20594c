"""The widgets of the Search tab and their wiring."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from core.context import AppContext
from core.models import specs
from core.search.searcher import MAX_WORDS
from ui import cards
from ui.data import DataRow
from ui.search.chips import chips
from ui.search.picker import picker
from ui.search.query import MODEL, QuerySide
from ui.search.results import Form, Results
from ui.search.state import Held, Opened
from ui.search.well import well
from ui.viewer import viewer

PRIVATE = {"api_visibility": "private"}
QUIET = {"show_progress": "hidden", **PRIVATE}
LIGHT = {"queue": False, **QUIET}
LATEST = {"trigger_mode": "always_last", **LIGHT}

PROGRESS = gr.Progress()
"""As a default it marks the parameter that Gradio fills in anew for each run."""

FOLD = """() => { if (innerWidth > 900 || !document.querySelector('#hits .m3-card')) return;
  const column = document.querySelector('#query-column'), line = document.querySelector('.m3-fold');
  const words = document.querySelector('#words textarea').value.trim();
  const picture = document.querySelector('#picture-well img') ? 'Picture' : '';
  line.textContent = 'Change the query: ' + [picture, words].filter(Boolean).join(' · ');
  column.classList.add('folded'); document.querySelector('#strip').scrollIntoView({block: 'start'}); }"""
"""On a narrow page the query folds to one line after a search, and the hits come into view."""

CLOSE = "(...values) => { delete document.documentElement.dataset.m3Panel; return values; }"
FOCUS = """() => { const root = document.documentElement, panel = document.querySelector('#panel');
  const all = [...document.querySelectorAll('#hits .m3-open')], at = all.findIndex(b => b.hasAttribute('data-current'));
  for (const b of panel.querySelectorAll('[data-hit]')) b.disabled = !all[at + Number(b.dataset.hit)];
  const again = panel.querySelector(`[data-hit="${root.dataset.m3Step}"]:not(:disabled)`);
  delete root.dataset.m3Step; (again || panel.querySelector('h2'))?.focus(); }"""
"""The panel's heading takes the focus, or the button that stepped here; at the ends that button is off."""
UNFOLD = """element.addEventListener('click', () => { const column = document.querySelector('#query-column');
  column.classList.remove('folded'); column.scrollIntoView({block: 'start'});
  column.querySelector('textarea').focus(); });"""


def _html(value: str = "", script: str = "", **more: object) -> gr.HTML:
    code = Path(__file__).with_name(script).read_text() if script.endswith(".js") else script
    return gr.HTML(value, js_on_load=code or None, apply_default_css=False, elem_classes="m3-flat", **more)


def build(context: AppContext, blocks: gr.Blocks, row: DataRow) -> None:
    """Add the tab's widgets to ``blocks`` and connect them, and the row of the data set, which all tabs share."""
    query_side = QuerySide(context)
    results = Results(context, query_side)
    data, facts, check, health = row.data, row.facts, row.check, row.health
    held = gr.State(Held(), time_to_live=1800)
    opened = gr.State(Opened(), time_to_live=1800)
    applied, shown_for, stored = gr.State(None), gr.State(None), gr.State(None, time_to_live=1800)

    with gr.Row():
        with gr.Column(elem_id="query-column"):
            _html('<button type="button" class="m3-fold">Change the query</button>', UNFOLD, elem_id="fold")
            picture = well()
            words = gr.Textbox(
                label="Words",
                lines=3,
                max_lines=8,
                max_length=MAX_WORDS,
                placeholder="for example: ring-enhancing lesion",
                interactive=True,
                elem_id="words",
            )
            weight = gr.Slider(
                0,
                1,
                value=0.5,
                step=0.01,
                label="Words ↔ picture",
                interactive=True,
                elem_id="weight",
                info="0: words decide alone, 1: the picture decides alone. Starts at the model's default.",
            )
            task = gr.Dropdown([], label="Search in", interactive=True, elem_id="task")
            filters = chips()
            lacks = _html(elem_id="lacks")
            go = gr.Button("Search", variant="primary", elem_id="go")
            queries = picker()
            about = _html(script="about.js", elem_id="about")
            with gr.Accordion("Settings", open=False):
                models = [(f"{s.name}: {s.model_id}, {s.revision}", name) for name, s in specs.SPECS.items() if s.live]
                model = gr.Dropdown(models, value=MODEL, label="Model", interactive=True, elem_id="model")
                k = gr.Radio([10, 20, 50], value=10, label="Hits", interactive=True, elem_id="k")
        with gr.Column(elem_id="hits-column"):
            strip = _html('<div class="m3-strip"></div>', elem_id="strip", min_height=56)
            with gr.Row(elem_id="options"):
                box = {"interactive": True, "container": False}
                by_case = gr.Checkbox(True, label="One card a case", elem_id="by-case", **box)
                fold = gr.Checkbox(True, label="Fold pictures that look alike", elem_id="fold-alike", **box)
                exact = gr.Checkbox(False, label="Search exactly (no HNSW)", elem_id="exact", **box)
            hits = _html(cards.empty(), "hits.js", elem_id="hits")

    with gr.Column(elem_id="panel"):
        head = _html(script="panel.js", elem_id="panel-head")
        pictures = viewer("panel-viewer")
        body = _html(elem_id="panel-body")

    # Spelled out, because Gradio finds the places of event and progress by these names.
    def search(label, task, model, filters, words, weight, k, by_case, fold, exact, held, progress=PROGRESS):
        return results.search(Form(label, task, model, filters, words, weight, k, by_case, fold, exact, held), progress)

    def search_like(
        event: gr.EventData,
        label,
        task,
        model,
        filters,
        words,
        weight,
        k,
        by_case,
        fold,
        exact,
        held,
        progress=PROGRESS,
    ):
        form = Form(label, task, model, filters, words, weight, k, by_case, fold, exact, held)
        return results.search_like(form, event, progress)

    def check_all(label, progress=PROGRESS):
        return query_side.check(label, progress)

    form = [data, task, model, filters, words, weight, k, by_case, fold, exact, held]
    shown = [strip, hits]
    filled = [words, picture, held, about]
    panel = [head, pictures, body, opened]
    running = {"show_progress_on": [strip], "concurrency_id": "engine", "concurrency_limit": 4, **PRIVATE}

    task_widgets = [filters, weight, queries, about, applied]
    first = blocks.load(query_side.choose_data, [data, applied], [facts, task, health, applied], **QUIET)
    first = first.then(query_side.choose_task, [data, task, model, applied], task_widgets, **QUIET)
    chosen = data.input(query_side.choose_data, [data, applied], [facts, task, health, applied], **QUIET)
    example = [results.example, [data, task, model, k], stored]
    show = [results.show_example, [stored, data, task, held, words], [*filled, queries, *shown]]
    cleared = [results.clear, [data, task, shown_for, held, words], [words, picture, held, *shown, shown_for]]
    ready = [
        event(query_side.choose_task, [data, task, model, applied], task_widgets, **QUIET)
        for event in (chosen.then, task.input)
    ]
    state = [query_side.model_state, model, [lacks, go]]
    for event in (first, *ready):
        shows = event.then(*cleared, js=CLOSE, **QUIET).then(*example, **QUIET).then(*show, **LIGHT)
        if event is first:
            shows.then(*state, **QUIET)
    model.input(*state, **QUIET)
    check.click(check_all, data, health, concurrency_id="engine", **PRIVATE)

    queries.look(query_side.look, [data, task], queries, **LATEST)
    queries.choose(query_side.choose_query, [data, task, model], filled, **LIGHT)
    queries.random(query_side.random_query, [data, task, model], [queries, *filled], **LIGHT)
    own_picture = [picture, held, queries, about]
    picture.picture(query_side.take_picture, [data, task, words, held], [words, *own_picture], **LIGHT)
    picture.removed(query_side.remove_picture, [data, task], own_picture, **LIGHT)

    triggers = [go.click, words.submit, by_case.input, fold.input, exact.input]
    done = gr.on(triggers, search, form, shown, api_name="search", **running)
    done.then(None, None, None, js=FOLD, **PRIVATE)
    head.like(search_like, form, shown, **running).then(None, None, None, js=FOLD, **PRIVATE)
    head.use(query_side.use_document, [data, task], [words, *own_picture], **LIGHT)

    for asked in (
        hits.open(results.open_hit, [data, words, held], panel, **LATEST),
        about.own(results.open_own, [data, held], panel, **LIGHT),
    ):
        asked.then(None, None, None, js=FOCUS, **PRIVATE)
    pictures.step(results.step, [data, opened], pictures, **LATEST)
