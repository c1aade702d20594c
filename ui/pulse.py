"""What tells the server that a tab has come into view: when it is opened, and when the data set changes meanwhile."""

from __future__ import annotations

import gradio as gr

SCRIPT = """const root = document.documentElement;
let last = performance.now();  // one opening may be told in several ways
const tell = event => requestAnimationFrame(() => {
  if (root.dataset.m3Tab !== props.tab || (event.type !== 'm3-data' && performance.now() - last < 400)) return;
  last = performance.now(); trigger('shown'); });
for (const name of ['m3-route', 'm3-nav', 'm3-data']) document.addEventListener(name, tell);
trigger('shown');"""


def pulse(tab: str) -> gr.HTML:
    """The component, inside of the tab of this id; it sends ``shown``."""
    return gr.HTML("<i></i>", js_on_load=SCRIPT, apply_default_css=False, visible="hidden", tab=tab)
