"""The picture viewer of every tab: zoom, pan, window and invert in the browser, side by side with the query's picture.

Pixels travel one picture at a time. The browser asks for another picture of the case by the event ``step``; wire it as

    pictures.step(answer, None, pictures, trigger_mode="always_last", show_progress="hidden", queue=False)

where ``answer(event: gr.EventData)`` checks the event by `step_of` and gives a new `face`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import gradio as gr

from core.media.frames import Frame, payload

NOTHING_OPEN = "No picture is open. Choose a case to see its pictures."

_PANE = """<figure class="m3-pane m3-{name}"{hidden}><div class="m3-sheet">
<canvas tabindex="0" role="application" aria-keyshortcuts="+ - 0 i PageUp PageDown"></canvas><p></p></div>
<figcaption><strong></strong> <span role="status"></span></figcaption>
<div class="m3-tools" role="group">
<button type="button" data-do="out" aria-label="Zoom out" title="Zoom out (key −)">−</button>
<button type="button" data-do="in" aria-label="Zoom in" title="Zoom in (key +)">+</button>
<button type="button" data-do="invert" aria-pressed="false" title="Swap black and white (key i)">Invert</button>
<button type="button" data-do="reset" title="Fit the picture, window as at first (key 0)">Reset</button>
<span class="m3-slides"><label>Brightness <input type="range" data-slide="brightness" step="1"></label>
<label>Contrast <input type="range" data-slide="contrast" min="-100" max="100" step="1"></label></span>
</div></figure>"""

TEMPLATE = f"""<div class="m3-viewer">
<div class="m3-about"><p class="m3-title"></p><p class="m3-line"></p></div>
<div class="m3-tools m3-steps" role="group" aria-label="Pictures of this case">
<button type="button" data-by="-1" title="Previous picture (key Page up)">Show previous</button>
<button type="button" data-by="1" title="Next picture (key Page down)">Show next</button>
<button type="button" class="m3-beside" aria-pressed="false" hidden>Show beside the query</button></div>
<div class="m3-panes">{_PANE.format(name="case", hidden="")}{_PANE.format(name="query", hidden=" hidden")}</div>
<p class="m3-caption"></p>
<details><summary>Keys and pointer</summary><p>On the picture: wheel or pinch zooms, dragging moves; dragging with Shift
or the right button changes the window (across: width, up and down: brightness). Keys + and − zoom, arrows move a zoomed
picture, i inverts, 0 resets, Page up and Page down (or [ and ], or left and right while not zoomed) step through the
case.</p></details></div>"""

SCRIPT = Path(__file__).with_name("viewer.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Item:
    """One picture of a case in words: ``line`` names domain and facets. Plain text, escaped by the browser."""

    id: str
    title: str
    caption: str = ""
    line: str = ""


def viewer(elem_id: str | None = None) -> gr.HTML:
    """The component; its value is a `face`, and it sends ``step`` (``at``, ``id``)."""
    return gr.HTML(
        "{}",
        html_template=TEMPLATE,
        js_on_load=SCRIPT,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes="m3-flat",
        nothing=NOTHING_OPEN,
    )


def face(
    items: Sequence[Item],
    at: int = 0,
    frame: Frame | None = None,
    problem: str = "",
    query: Frame | None = None,
    labels: tuple[str, str] = ("Case picture", "Query picture"),
    step: bool = False,
) -> str:
    """What the viewer shows: all ``items`` of a case in words, and the pixels of the one at 0-based index ``at``.

    Without a ``frame`` the sentence ``problem`` stands in its place. ``query`` is the picture to compare with.
    ``labels`` name the two. ``step``: this answers a step, and is passed over where another case was opened meanwhile.
    Raises ``IndexError`` where ``at`` names no item.
    """
    if items and not 0 <= at < len(items):
        raise IndexError(f"There is no picture {at} among {len(items)}.")
    shown = {
        "items": [asdict(item) for item in items],
        "at": at,
        "frame": payload(frame) if frame else None,
        "problem": problem,
        "compare": payload(query) if query else None,
        "labels": labels,
        "step": step,
    }
    return json.dumps(shown).replace("<", "\\u003c")  # no tag even for who looks for tags in a component's value


def step_of(event: gr.EventData, items: Sequence[Item]) -> int | None:
    """The index a ``step`` event asks for; None where it does not name one of ``items``, as an old page may."""
    data = getattr(event, "_data", None)
    at = data.get("at") if isinstance(data, dict) else None
    if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < len(items) or data.get("id") != items[at].id:
        return None
    return at
