"""Charts of every tab: a plotly figure drawn in the browser in the page's colours, with plotly's code from this server.

The code is fetched when the page has nothing else to do, or the first chart comes into view. Marks take no keyboard
focus: whoever builds a chart renders the same numbers as a table behind it.
"""

from __future__ import annotations

import gzip
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import gradio as gr
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.figures import style
from ui.cards import escape

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SOURCE = f"vendor/plotly-{version('plotly')}.min.js"
"""Address of plotly's code, relative to the page's."""

AHEAD = f"""() => {{ const later = window.requestIdleCallback || (done => setTimeout(done, 2000));
  if (!navigator.connection?.saveData) later(() => {{ const link = document.createElement('link');
    link.rel = 'prefetch'; link.as = 'script'; link.href = '{SOURCE}';
    document.head.append(link); }}, {{timeout: 5000}}); }}"""
"""For a page that is there and has nothing else to do: fetches the code for the first chart that will be shown."""

LONGEST = 1000
"""Characters of the name that a click on a mark sends."""

NOTHING = "There is nothing to draw here."

_TEMPLATE = """<figure class="m3-chart"><figcaption><strong></strong> <span></span></figcaption>
<div class="m3-plot" role="img" aria-label="{label}" style="min-height:{height}px"></div>
<p class="m3-nothing" hidden></p>
<div class="m3-save" role="group" aria-label="Save: {label}">
<button type="button" data-save="png" disabled>Save picture (PNG)</button>
<button type="button" data-save="svg" disabled>Save picture (SVG)</button></div></figure>"""

_SCRIPT = Path(__file__).with_name("chart.js").read_text(encoding="utf-8")

_INKS = {
    style.INK: "--m3-ink",
    style.QUIET: "--m3-quiet",
    style.LINE: "--m3-line",
    style.PAPER: "--m3-paper",
    style.DEEP: "--m3-deep",
    style.TINT: "--m3-tint",
}
"""Colours of print, and the variables of the style sheet that hold those of the page."""


def chart(elem_id: str, height: int, label: str, nothing: str = NOTHING) -> gr.HTML:
    """The component; its value is `to_json` of a figure, or "" for the sentence ``nothing``.

    ``height`` in pixels is reserved before the first figure. A click on a mark sends ``point`` (see `point_of`).
    """
    return gr.HTML(
        "",
        html_template=_TEMPLATE.format(label=escape(label), height=height),
        js_on_load=_SCRIPT,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes="m3-flat",
        source=SOURCE,
        named=label,
        file=elem_id,
        nothing=nothing,
        inks=_INKS,
        plain=style.PLAIN,
        titled=style.HEAD,
    )


def to_json(figure: Figure) -> str:
    """A figure as the value of a `chart`; no tag even for who looks for tags in a component's value."""
    return figure.to_json().replace("<", "\\u003c")


def point_of(event: gr.EventData) -> str | None:
    """``customdata`` of the mark that was clicked; None where the event carries no such text. Not trusted: the caller
    checks that it names something."""
    data = getattr(event, "_data", None)
    name = data.get("customdata") if isinstance(data, dict) else None
    return name if isinstance(name, str) and 0 < len(name) <= LONGEST else None


def code() -> bytes:
    """plotly.min.js of the installed wheel."""
    return Path(find_spec("plotly").submodule_search_locations[0], "package_data", "plotly.min.js").read_bytes()


@lru_cache(maxsize=2)
def _sent(packed: bool) -> bytes:
    """The code as it is sent, packed once a process."""
    return gzip.compress(code(), 6, mtime=0) if packed else code()


def _serve(request: Request) -> Response:
    packed = "gzip" in request.headers.get("accept-encoding", "")
    headers = {"cache-control": "public, max-age=31536000, immutable", "vary": "Accept-Encoding"}
    if packed:
        headers["content-encoding"] = "gzip"
    return Response(_sent(packed), media_type="text/javascript", headers=headers)


ROUTE = Route(f"/{SOURCE}", _serve, methods=["GET"])
"""For the server's routes; exactly this one file."""
