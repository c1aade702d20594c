"""Two models query by query: every pair of scores as one mark."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.figures import style
from core.figures.failures import SEPARATOR

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Key = tuple[str, str]
"""(collection, query id)."""

_LEAST, _MOST = 6.0, 46.0
"""Pixels across of a mark of one query, and of the largest."""


@dataclass(frozen=True, slots=True)
class Point:
    """The queries whose scores are ``x`` under B and ``y`` under A, to three decimals. ``key`` names the mark."""

    x: float
    y: float
    keys: tuple[Key, ...]

    @property
    def key(self) -> str:
        return f"{self.x:.3f}{SEPARATOR}{self.y:.3f}"


def points(a: Mapping[Key, float], b: Mapping[Key, float]) -> list[Point]:
    """The marks of the queries that both have a value of, the largest first, so that small ones lie on top."""
    together: dict[tuple[float, float], list[Key]] = defaultdict(list)
    for key in sorted(a.keys() & b.keys()):
        if math.isfinite(a[key]) and math.isfinite(b[key]):
            together[round(b[key], 3), round(a[key], 3)].append(key)
    found = [Point(x, y, tuple(keys)) for (x, y), keys in together.items()]
    return sorted(found, key=lambda point: (-len(point.keys), point.x, point.y))


def scatter(found: Sequence[Point], a: str, b: str, title: str, measure: str) -> Figure:
    """Every query by its score under ``b`` (across) and ``a`` (up); queries of equal scores are one mark whose area
    is their number. Above the line A is better. ``customdata`` of a mark is `Point.key`."""
    import plotly.graph_objects as go

    n = sum(len(point.keys) for point in found)
    largest = max((len(point.keys) for point in found), default=1)
    scale = min(_MOST**2 / largest, _LEAST**2 * 4)
    sizes = [max(_LEAST, math.sqrt(scale * len(point.keys))) for point in found]
    line = go.Scatter(
        x=[0, 1], y=[0, 1], mode="lines", line={"color": style.QUIET, "width": 1, "dash": "dot"}, hoverinfo="skip"
    )
    marks = go.Scatter(
        x=[point.x for point in found],
        y=[point.y for point in found],
        mode="markers",
        customdata=[point.key for point in found],
        hovertext=[_words(point, a, b) for point in found],
        hoverinfo="text",
        marker={
            "size": sizes,
            "color": style.DEEP,
            "opacity": 0.55,
            "line": {"color": style.INK, "width": 1},
        },
        cliponaxis=False,
    )
    ends = {"range": [-0.04, 1.04], "dtick": 0.2, "showgrid": True}
    layout = style.layout(
        title,
        f"{measure} of each query under {a} (up) and {b} (across), {n:,} queries; the area of a mark is the number of "
        f"queries with these two scores; above the line {a} is better",
        400,
        xaxis=style.axis(f"{measure}, {style.plain(b)}") | ends,
        yaxis=style.axis(f"{measure}, {style.plain(a)}") | ends,
        meta=style.narrow(height=340),
    )
    return go.Figure(data=[line, marks], layout=layout)


def _words(point: Point, a: str, b: str) -> str:
    names = ", ".join(style.plain(f"{collection}/{query}") for collection, query in point.keys[:3])
    more = f" and {len(point.keys) - 3:,} more" if len(point.keys) > 3 else ""
    count = f"{len(point.keys):,} quer{'y' if len(point.keys) == 1 else 'ies'}"
    return f"<b>{count}</b><br>{style.plain(a)}: {point.y:.3f}<br>{style.plain(b)}: {point.x:.3f}<br>{names}{more}"
