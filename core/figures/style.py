"""What all figures share: fonts, margins, colours for white paper, and how N/A is drawn.

`INK`, `QUIET`, `LINE`, `PAPER`, `DEEP` and `TINT` are the colours of print. The page replaces them by those of its
theme, in both modes; every other colour stays as it is. No figure says anything by hue alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from core.evaluate.stats import Estimate

INK, QUIET, LINE, PAPER = "#1e293b", "#475569", "#cbd5e1", "#ffffff"
DEEP = "#0b4a86"
"""The one hue of marks that are no model's."""

TINT = "#84b4e1"
"""The far end of the one-hue scale that begins at `PAPER`; `INK` is readable on all of it."""

OTHERS = "#8a8f98"
"""Fill of models without a colour of their own."""

FONT = "system-ui, sans-serif"
SIZE = 13
HEAD, PLAIN = 56, 8
"""Pixels above the axes: with a title and its second line, and without."""

HATCH = {"shape": "/", "solidity": 0.25, "size": 6, "fgcolor": QUIET, "bgcolor": PAPER}
"""`marker.pattern` of an area that is N/A."""

OUTLINE = {"color": INK, "width": 1}
"""The thin dark line around every fill, so that light hues hold on white and in print."""

NA = "N/A"


def plain(text: str) -> str:
    """Text for any label of a figure: plotly reads labels as HTML."""
    return escape(text, quote=False)


def lines(text: str, width: int) -> str:
    """A label broken into lines of at most ``width`` characters."""
    return "<br>".join(plain(part) for part in wrap(text, width) or [""])


def percent(share: float | None) -> float | None:
    """A share 0 … 1 in %; None where it is None or NaN, which plotly leaves out."""
    return None if share is None or math.isnan(share) else 100 * share


def upper_end(values: list[float]) -> float:
    """Where an axis of percentages ends: the next ten above all ``values``, at most 100."""
    return min(100.0, 10.0 * math.floor(max(values, default=0.0) / 10 + 1))


def tenth(values: Sequence[float]) -> float:
    """Where an axis of means from 0 to 1 ends: the next tenth above all ``values``, at most 1.02."""
    return min(1.02, math.floor(max(values, default=0.0) * 10 + 1) / 10)


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """An axis with quiet lines that cannot be dragged."""
    shown = {"title": {"text": title, "standoff": 8, "font": {"size": SIZE}}} if title else {}
    common = {"gridcolor": LINE, "linecolor": QUIET, "zeroline": False, "fixedrange": True, "automargin": True}
    return {**common, "tickfont": {"color": INK}, **shown, **more}


def rows(labels: list[str], **more: Any) -> dict[str, Any]:
    """A vertical axis with one label a row, the first one on top."""
    n = len(labels)
    ticks = {"tickvals": list(range(n)), "ticktext": labels, "range": [n - 0.5, -0.5]}
    return axis(**ticks, showgrid=True, ticklabelstandoff=6, **more)


def tall(labels: list[str], least: int) -> int:
    """Height in pixels of as many rows as ``labels``, each with room for the longest of them, at least ``least``."""
    most = max((label.count("<br>") + 1 for label in labels), default=1)
    return max(least, 17 * most + 8) * len(labels)


def layout(title: str, below: str, height: int, **more: Any) -> dict[str, Any]:
    """The shared layout: ``title`` names measure and data, ``below`` unit, interval and n. ``height`` in pixels
    without the title's lines."""
    margin = {"t": HEAD, "b": 48, "l": 8, "r": 16, **more.pop("margin", {})}
    subtitle = {"text": plain(below), "font": {"size": SIZE - 1, "color": QUIET}}
    return {
        "title": {"text": plain(title), "subtitle": subtitle, "x": 0.01, "xanchor": "left", "font": {"size": SIZE + 2}},
        "font": {"family": FONT, "size": SIZE, "color": INK},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "hoverlabel": {"bgcolor": PAPER, "bordercolor": QUIET, "font": {"color": INK}, "align": "left"},
        "height": height + HEAD,
        "margin": margin,
        "hovermode": "closest",
        "dragmode": False,
        "showlegend": False,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yref": "container", "yanchor": "bottom"},
        **more,
    }


def narrow(traces: list[Mapping[str, Any]] | None = None, **changes: Any) -> dict[str, Any]:
    """``layout.meta`` of a figure: what the page changes of layout and traces where there is little width."""
    return {"narrow": {"layout": changes, "traces": traces or []}}


def sourced(figure: Figure, facts: Mapping[str, str]) -> Figure:
    """The figure with what made it, in words by name; pictures that are saved of it say so at their foot."""
    meta = dict(figure.layout.meta or {})
    figure.layout.meta = meta | {"source": " · ".join(f"{name}: {value}" for name, value in facts.items() if value)}
    return figure


LONGEST = 150
"""Characters of a second line that fit a saved picture."""


def with_names(below: str, names: Sequence[str], what: str) -> str:
    """The subtitle with ``what`` and the ``names`` it is true of, as many as there is room for."""
    if not names:
        return below
    start, said = f"{below}; {what}: ", [names[0]]
    for name in names[1:]:
        if len(start) + len(", ".join([*said, name])) > LONGEST:
            return f"{start}{', '.join(said)} and {len(names) - len(said)} more"
        said.append(name)
    return start + ", ".join(said)


def whiskers(estimates: Sequence[Estimate | None]) -> dict[str, Any]:
    """``error_x`` or ``error_y`` with the 95 % interval of each mean; None draws no whisker."""
    have = [e if e and e.low is not None and e.high is not None and not math.isnan(e.mean) else None for e in estimates]
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, e.high - e.mean) if e else None for e in have],
        "arrayminus": [max(0.0, e.mean - e.low) if e else None for e in have],
        "color": INK,
        "thickness": 1.2,
        "width": 2,
        "visible": True,
    }


def hatched(text: list[str], anchor: str) -> dict[str, Any]:
    """What bars that are N/A have in common; ``text`` has the letters, at the ``anchor`` ("start", "middle")."""
    return {
        "text": text,
        "textposition": "inside",
        "constraintext": "none",
        "insidetextanchor": anchor,
        "textfont": {"color": INK, "size": SIZE - 2},
        "marker": {"color": PAPER, "pattern": HATCH, "line": {"color": LINE, "width": 1}},
        "showlegend": False,
    }


def short(name: str, most: int = 24) -> str:
    """A name cut to ``most`` characters, for labels that cannot break; whoever uploads a run names it as they like."""
    return name if len(name) <= most else f"{name[: most - 1].rstrip()}…"
