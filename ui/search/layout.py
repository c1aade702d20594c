"""The widgets of the Search tab and their wiring."""

from __future__ import annotations

import gradio as gr

from core.context import AppContext
from core.search.searcher import MAX_WORDS
from ui import cards
from ui.search.callbacks import Held, SearchPage
from ui.search.well import well

PRIVATE = {"api_visibility": "private"}
LIGHT = {"queue": False, "show_progress": "hidden", **PRIVATE}

SHOW_HITS = """() => { if (innerWidth <= 900) document.querySelector('#strip').scrollIntoView({block: 'start'}); }"""
"""On a narrow page the hits lie below the query: bring them into view."""


def build(context: AppContext, blocks: gr.Blocks) -> None:
    """Add the tab's widgets to ``blocks`` and connect them."""
    page = SearchPage(context)
    labels = [source.label for source in context.sources]
    held = gr.State(Held(), time_to_live=1800)
    applied = gr.State(None)

    with gr.Row():
        with gr.Column(elem_id="data-column"):
            data = gr.Dropdown(labels, value=labels[0], label="Data set", interactive=True, elem_id="data")
        with gr.Column(elem_id="facts-column"):
            facts = gr.HTML("", apply_default_css=False, elem_classes="m3-flat", elem_id="facts", min_height=44)
            check = gr.Button("Check every line and picture", size="sm", elem_id="check")
            health = gr.HTML("", apply_default_css=False, elem_classes="m3-flat", elem_id="health")

    with gr.Row():
        with gr.Column(elem_id="query-column"):
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
            domain = gr.CheckboxGroup([], label="Domains (none ticked: all)", interactive=True, elem_id="domain")
            go = gr.Button("Search", variant="primary", elem_id="go")
            queries = gr.Dropdown([], label="Ready queries of this data set", interactive=True, elem_id="queries")
            with gr.Accordion("Settings", open=False):
                k = gr.Radio([10, 20, 50], value=10, label="Hits", interactive=True, elem_id="k")
                exact = gr.Checkbox(False, label="Search exactly (no HNSW)", interactive=True, elem_id="exact")
        with gr.Column(elem_id="hits-column"):
            strip = gr.HTML(
                '<div class="m3-strip"></div>',
                apply_default_css=False,
                elem_classes="m3-flat",
                elem_id="strip",
                min_height=56,
            )
            hits = gr.HTML(cards.empty(), apply_default_css=False, elem_classes="m3-flat", elem_id="hits")

    def search(label, task, domains, words, weight, k, exact, held, progress=gr.Progress()):  # noqa: B008
        return page.search(label, task, domains, words, weight, k, exact, held, progress)

    def check_all(label, progress=gr.Progress()):  # noqa: B008
        return page.check(label, progress)

    data_widgets, pool_widgets = [facts, task, health, applied], [domain, weight, queries, applied]
    asked = [data, task, domain, words, weight, k, exact, held]
    running = {"show_progress_on": [strip], "concurrency_id": "engine", "concurrency_limit": 4, **PRIVATE}

    quiet = {"show_progress": "hidden", **PRIVATE}
    chosen = gr.on([blocks.load, data.input], page.choose_data, [data, applied], data_widgets, **quiet)
    for event in (chosen.then, task.input):
        event(page.choose_task, [data, task, applied], pool_widgets, **quiet)
    check.click(check_all, data, health, concurrency_id="engine", **PRIVATE)
    queries.input(page.choose_query, [data, queries], [words, picture, held], **LIGHT)
    picture.picture(page.take_picture, None, [picture, held, queries], **LIGHT)
    picture.removed(page.remove_picture, None, [picture, held, queries], **LIGHT)
    done = gr.on([go.click, words.submit], search, asked, [strip, hits], api_name="search", **running)
    done.then(None, None, None, js=SHOW_HITS, **PRIVATE)
