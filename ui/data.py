"""The row above the tabs: which data set this is, what it holds, and whether all of it can be read."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from core.context import AppContext


@dataclass(frozen=True, slots=True)
class DataRow:
    """Its widgets. The Search tab fills them; every tab reads ``data``, the label of the data set."""

    data: gr.Dropdown
    facts: gr.HTML
    check: gr.Button
    health: gr.HTML


def build(context: AppContext) -> DataRow:
    """Add the row to the open blocks."""
    labels = [source.label for source in context.sources]
    html = {"js_on_load": None, "apply_default_css": False, "elem_classes": "m3-flat"}
    with gr.Row():
        with gr.Column(elem_id="data-column"):
            data = gr.Dropdown(labels, value=labels[0], label="Data set", interactive=True, elem_id="data")
        with gr.Column(elem_id="facts-column"):
            facts = gr.HTML("", elem_id="facts", min_height=44, **html)
            check = gr.Button("Check every line and picture", size="sm", elem_id="check")
            health = gr.HTML("", elem_id="health", **html)
    return DataRow(data, facts, check, health)
