"""Filter chips: domain, specialty and modality in one line. Chosen values narrow what is searched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from core.data.pool import FILTERS
from core.records import QueryError

LONGEST = 2000
"""Characters that one value may have when it comes from the browser."""

MOST_VALUES = 10_000
"""Values of one facet that the browser may send."""

TEMPLATE = """<div class="m3-chips" role="group" aria-label="Filters"><span class="m3-label">Filters</span>
<div class="m3-line"></div></div>"""

SCRIPT = Path(__file__).with_name("chips.js").read_text()


def chips(elem_id: str = "filters") -> gr.HTML:
    """The component. After each change it sends ``filter``; read it by `chosen_of`. Its value, as an input of another
    event, is always current; read it by `chosen_in`. Wire ``filter`` with ``trigger_mode="always_last"``."""
    return gr.HTML(
        "{}",
        html_template=TEMPLATE,
        js_on_load=SCRIPT,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["m3-flat", "m3-over"],
        labels={name: name.capitalize() for name in FILTERS},
    )


def face(pool_values: Mapping[str, Mapping[str, int]], chosen: Mapping[str, Sequence[str]] | None = None) -> str:
    """What the chips show: for each facet its values with their numbers of documents, and which are chosen.

    A facet without values is absent, and so is a chosen value that is not among them.
    """
    facets = [[name, list(pool_values[name].items())] for name in FILTERS if pool_values.get(name)]
    wanted = chosen or {}
    kept = {name: [v for v in wanted.get(name, ()) if v in pool_values[name]] for name, _ in facets}
    return json.dumps({"facets": facets, "chosen": kept}).replace("<", "\\u003c")


def chosen_of(event: gr.EventData) -> dict[str, list[str]]:
    """The chosen values in a ``filter`` event, by facet; raises `QueryError`. The event is not trusted: whether the
    values exist is for `core.data.pool.Pool.mask` to say."""
    return _chosen(getattr(event, "_data", None))


def chosen_in(value: object) -> dict[str, list[str]]:
    """The chosen values in the component's value, as a callback receives it; raises `QueryError`. Not trusted."""
    try:
        data = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        data = None
    return _chosen(data.get("chosen", {}) if isinstance(data, dict) else None)


def _chosen(data: Any) -> dict[str, list[str]]:
    if not isinstance(data, dict) or not set(data) <= set(FILTERS):
        raise QueryError("The filters arrived damaged. Choose them again.")
    chosen: dict[str, list[str]] = {}
    for name in FILTERS:
        values = data.get(name, [])
        if not isinstance(values, list) or len(values) > MOST_VALUES:
            raise QueryError(f"The filter {name!r} arrived damaged. Choose its values again.")
        if not all(isinstance(v, str) and 0 < len(v) <= LONGEST for v in values):
            raise QueryError(f"The filter {name!r} arrived damaged. Choose its values again.")
        chosen[name] = list(dict.fromkeys(values))
    return chosen
