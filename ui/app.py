"""The page: its frame and tabs. Maths lives in core, tabs in their own folders."""

from __future__ import annotations

from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from core.context import AppContext
from ui import charts, data, text
from ui.compare import layout as compare
from ui.errors import message
from ui.failures import layout as failures
from ui.guard import Guard
from ui.router import keys_of, router
from ui.search import layout as search
from ui.theme import STYLE, theme

KEYS = """() => document.addEventListener('keydown', e => {
  if (!(e.ctrlKey || e.metaKey) || e.key !== 'Enter' || document.documentElement.dataset.m3Tab !== 'search') return;
  e.preventDefault(); document.querySelector('#go').click(); })"""
"""Ctrl+Enter searches while the Search tab is the visible one."""

TABS = {"search": "Search", "failures": "Failure cases", "compare": "Model comparison"}
"""Ids and labels of the tabs, in their order."""


def build(context: AppContext) -> gr.Blocks:
    """The whole page; nothing heavy is imported and no model is loaded."""
    with gr.Blocks(title=text.TITLE, analytics_enabled=False, fill_width=True, delete_cache=(600, 600)) as blocks:
        gr.HTML(
            f'<div class="m3-top"><h1>{text.TITLE}</h1><p>{text.PURPOSE}</p>'
            f'<p class="m3-warning">{text.WARNING}</p></div>',
            apply_default_css=False,
            elem_classes="m3-flat",
        )
        if context.workspace.note:
            gr.HTML(
                message(context.workspace.note),
                apply_default_css=False,
                elem_classes="m3-flat",
                elem_id="workspace-note",
            )
        row = data.build(context)
        address = router(list(TABS))
        with gr.Tabs(selected="search", overflow_behavior="wrap", elem_id="tabs") as tabs:
            with gr.Tab(TABS["search"], id="search"):
                search.build(context, blocks, row)
            with gr.Tab(TABS["failures"], id="failures"):
                cases = failures.build(context, blocks, row, tabs)
            with gr.Tab(TABS["compare"], id="compare"):
                compare.build(context, row, cases)
        address.nav(go_to, None, tabs, queue=False, show_progress="hidden", api_visibility="private")
    blocks.queue(max_size=32, default_concurrency_limit=4)
    blocks.space_id = None  # opened directly on a Space, Gradio would fetch a header from other hosts
    return blocks


def go_to(event: gr.EventData) -> gr.Tabs:
    """Show the tab that an address names; the first one where it names none."""
    tab = keys_of(event).get("tab", "")
    return gr.Tabs(selected=tab if tab in TABS else next(iter(TABS)))


def launch_options() -> dict[str, Any]:
    """Keyword arguments of ``launch()``: private by default, nothing recorded, nothing from other hosts."""
    return {
        "theme": theme(),
        "head": STYLE,
        "js": f"() => {{ ({KEYS})(); ({charts.AHEAD})(); }}",
        "ssr_mode": False,
        "pwa": False,
        "share": False,
        "run_history": False,
        "mcp_server": False,
        "enable_monitoring": False,
        "show_error": False,
        "footer_links": [],
        "max_file_size": 1,
        "app_kwargs": {"openapi_url": None, "middleware": [Middleware(Guard)], "routes": [charts.ROUTE]},
    }
