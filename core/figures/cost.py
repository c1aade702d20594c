"""Marks by two numbers or one: two models query by query, quality against cost, published figures beside ours."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.figures import style
from core.figures.compare import hatched, mean_words, whiskers
from core.figures.failures import SEPARATOR

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from core.evaluate.published import Published
    from core.evaluate.stats import Estimate
    from core.figures.compare import Face

Key = tuple[str, str]
"""(collection, query id)."""

COSTS = {
    "query_ms": "ms to encode a query",
    "document_ms": "ms to encode a document",
    "document_bytes": "bytes of the index a document",
    "model_mb": "size of the model (MB)",
}
"""What a model costs, in words with the unit; less is better."""

_MARK, _ROW, _AXIS, _LEGEND = 13, 26, 60, 28
_WIDE, _NARROW, _HEIGHT = 960, 270, 300
"""Pixels of the plot that labels are placed for."""
_LEAST, _MOST = 7.0, 46.0
"""Pixels across of the smallest and of the largest bubble."""
_SIDES = {
    "middle right": (1, 0),
    "middle left": (-1, 0),
    "top right": (1, 1),
    "bottom right": (1, -1),
    "top left": (-1, 1),
    "bottom left": (-1, -1),
}

Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""


@dataclass(frozen=True, slots=True)
class Point:
    """The ``n`` queries with the scores ``x`` under B and ``y`` under A; ``names`` are "collection/id", sorted."""

    x: float
    y: float
    n: int
    key: str
    names: tuple[str, ...]


def points(values_a: Mapping[Key, float], values_b: Mapping[Key, float]) -> list[Point]:
    """The queries that both have a value of, those with the same two scores (to three decimals) as one point; the
    largest first, so that small ones lie on top."""
    together: dict[tuple[float, float], list[str]] = defaultdict(list)
    for key in values_a.keys() & values_b.keys():
        y, x = values_a[key], values_b[key]
        if not (math.isnan(x) or math.isnan(y)):
            together[round(x, 3), round(y, 3)].append("/".join(key))
    found = [
        Point(x, y, len(names), f"{x:.3f}{SEPARATOR}{y:.3f}", tuple(sorted(names)))
        for (x, y), names in together.items()
    ]
    return sorted(found, key=lambda point: (-point.n, point.x, point.y))


def scatter(points: Sequence[Point], a: str, b: str, title: str, measure: str) -> Figure:
    """Every query by its ``measure`` (0 to 1) under ``b`` (across) and ``a`` (up); the area of a mark is its number of
    queries. ``customdata`` of a mark is `Point.key`."""
    import plotly.graph_objects as go

    scale = min(_MOST**2 / max((point.n for point in points), default=1), _LEAST**2)
    marks = go.Scatter(
        x=[point.x for point in points],
        y=[point.y for point in points],
        mode="markers",
        customdata=[point.key for point in points],
        hovertext=[_point_words(point, a, b) for point in points],
        hoverinfo="text",
        cliponaxis=False,
        marker={
            "size": [max(_LEAST, math.sqrt(scale * point.n)) for point in points],
            "color": style.DEEP,
            "opacity": 0.55,
            "line": style.OUTLINE,
        },
    )
    line = {"color": style.QUIET, "width": 1}
    diagonal = go.Scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, hoverinfo="skip")
    n = sum(point.n for point in points)
    ticks = {"range": [-0.04, 1.04], "dtick": 0.2, "constrain": "domain"}
    drawn = style.layout(
        title,
        f"one mark for all queries with the same two scores, its area their number; {n:,} "
        f"{'query' if n == 1 else 'queries'}; above the line {a} is better",
        440,
        xaxis=style.axis(style.plain(f"{measure}, {b}"), **ticks, constraintoward="left"),
        yaxis=style.axis(style.plain(f"{measure}, {a}"), **ticks, scaleanchor="x", constraintoward="top"),
        meta=style.narrow(height=390),
    )
    return go.Figure(data=[diagonal, marks], layout=drawn)


@dataclass(frozen=True, slots=True)
class CostRow:
    """One model: its macro mean, its cost by the names of `COSTS` (None where ``reason`` says why), and whether it is
    on the Pareto front."""

    model: str
    macro: Estimate
    values: Mapping[str, float | None]
    front: bool
    reason: str


def pareto(rows: Sequence[CostRow], by: str) -> list[CostRow]:
    """The rows with ``front`` set: no other is at least as good in mean and cost and better in one of them. Rows that
    are N/A in either are never on it."""
    known = [(row.values[by], row.macro.mean) for row in rows if _known(row, by)]

    def beaten(row: CostRow) -> bool:
        cost, mean = row.values[by], row.macro.mean
        return any(c <= cost and m >= mean and (c, m) != (cost, mean) for c, m in known)

    return [replace(row, front=_known(row, by) and not beaten(row)) for row in rows]


def cost(rows: Sequence[CostRow], by: str, faces: Mapping[str, Face], title: str) -> Figure:
    """Macro mean with its 95 % interval against a cost of `COSTS` on a log scale, the Pareto front as a quiet stepped
    line. What costs nothing stands in a column of its own, "0", left of a dotted line. Rows without a cost or a mean
    are named, not drawn. ``customdata`` of a mark is the model."""
    import plotly.graph_objects as go

    drawn = [row for row in rows if _known(row, by)]
    costs = [row.values[by] for row in drawn]
    positive = [value for value in costs if value > 0]
    first, last = (min(positive), max(positive)) if positive else (1.0, 1.0)
    free, zero = 0 in costs, 10 ** (math.log10(first) - 1)
    places = [value or zero for value in costs]
    low = math.log10(zero if free else first) - 0.3
    high = max(math.log10(last) + 0.5, low + 1.2)
    bottom, top = _ends([row.macro for row in drawn])
    shares = [
        ((math.log10(x) - low) / (high - low), (row.macro.mean - bottom) / (top - bottom))
        for x, row in zip(places, drawn, strict=True)
    ]
    names = [row.model for row in drawn]
    step = sorted((x, row.macro.mean) for x, row in zip(places, drawn, strict=True) if row.front)
    front = go.Scatter(
        x=[x for x, _ in step],
        y=[y for _, y in step],
        mode="lines",
        line={"color": style.QUIET, "width": 1.5, "shape": "hv"},
        hoverinfo="skip",
    )
    looks = [faces[name] for name in names]
    marks = go.Scatter(
        x=places,
        y=[row.macro.mean for row in drawn],
        mode="markers+text",
        text=[style.plain(name) for name in names],
        textposition=_sides(names, shares, _WIDE),
        textfont={"color": style.INK},
        customdata=names,
        hovertext=[_cost_words(row, by) for row in drawn],
        hoverinfo="text",
        cliponaxis=False,
        error_y=whiskers([row.macro for row in drawn]) | {"color": style.QUIET, "width": 3},
        marker={
            "symbol": [face.symbol for face in looks],
            "color": [face.colour for face in looks],
            "size": _MARK,
            "line": style.OUTLINE,
            "opacity": 1,
        },
    )
    powers = range(math.ceil(math.log10(first) - 0.2), math.floor(high) + 1)
    ticks = ({zero: "0"} if free else {}) | {10.0**power: f"{10.0**power:,.12g}" for power in powers}
    rule = {"type": "line", "x0": math.sqrt(zero * first), "x1": math.sqrt(zero * first), "y0": 0, "y1": 1}
    n, clusters = max(((row.macro.n, row.macro.clusters) for row in drawn), default=(0, 0))
    without = [f"{row.model} ({_why(row, by)})" for row in rows if not _known(row, by)]
    note = f"; {len(without)} not drawn: {', '.join(without)}" if without else ""
    layout = style.layout(
        title,
        f"macro mean (0–1) with 95 % interval, n = {n:,} queries / {clusters:,} clusters; line: Pareto front{note}",
        360,
        xaxis=style.axis(
            f"{COSTS[by]}, log scale",
            **{"type": "log", "range": [low, high], "tickvals": list(ticks), "ticktext": list(ticks.values())},
        ),
        yaxis=style.axis("macro mean", range=[bottom, top]),
        shapes=[rule | {"yref": "paper", "line": {"color": style.QUIET, "width": 1, "dash": "dot"}}] if free else [],
        meta=style.narrow(
            [{}, {"textposition": _sides(names, shares, _NARROW), "textfont": {"size": style.SIZE - 2}}],
            xaxis={"title": {"text": COSTS[by]}},
        ),
    )
    return go.Figure(data=[front, marks], layout=layout)


def published(facts: Sequence[Published], ours: Mapping[str, tuple[Estimate, Face]], title: str) -> Figure:
    """The published nDCG@10 of one task, best first, as hollow marks, and below ours, filled, with 95 % intervals; N/A
    is last of its kind, a hatched gap with these letters. ``customdata`` of a mark is the model."""
    import plotly.graph_objects as go

    theirs = sorted(facts, key=lambda fact: (fact.ndcg_at_10 is None, -(fact.ndcg_at_10 or 0.0), fact.model))
    absent = {name: math.isnan(estimate.mean) for name, (estimate, _) in ours.items()}
    own = sorted(ours, key=lambda name: (absent[name], 0.0 if absent[name] else -ours[name][0].mean, name))
    estimates, looks = [ours[name][0] for name in own], [ours[name][1] for name in own]
    means = [None if absent[name] else ours[name][0].mean for name in own]
    values = [*(fact.ndcg_at_10 for fact in theirs), *means]
    end = style.tenth([v for v in (*values, *(e.high for e in estimates)) if v is not None])
    hollow = go.Scatter(
        x=values[: len(theirs)],
        y=list(range(len(theirs))),
        mode="markers",
        name="published",
        customdata=[fact.model for fact in theirs],
        hovertext=[_fact_words(fact) for fact in theirs],
        hoverinfo="text",
        marker={"size": _MARK, "color": style.PAPER, "line": {"color": style.INK, "width": 2}, "opacity": 1},
    )
    filled = go.Scatter(
        x=means,
        y=list(range(len(theirs), len(values))),
        mode="markers",
        name="ours",
        customdata=own,
        hovertext=[
            f"<b>{style.plain(name)}</b>, ours<br>{mean_words(e)}<br>n = {e.n:,} queries / {e.clusters:,} clusters"
            for name, e in zip(own, estimates, strict=True)
        ],
        hoverinfo="text",
        error_x=whiskers(estimates),
        marker={
            "symbol": [face.symbol for face in looks],
            "color": [face.colour for face in looks],
            "size": _MARK,
            "line": style.OUTLINE,
            "opacity": 1,
        },
    )
    none = [at for at, value in enumerate(values) if value is None]
    gaps = go.Bar(
        **hatched([f" {style.NA} " for _ in none], "start"),
        **{"orientation": "h", "y": none, "x": [end for _ in none], "width": 0.6, "hoverinfo": "skip"},
    )
    names = [*(fact.model for fact in theirs), *(f"{name} (ours)" for name in own)]
    labels, short = [style.lines(name, 30) for name in names], [style.lines(name, 17) for name in names]
    n = max((e.n for e in estimates), default=0)
    between = {"xref": "paper", "x0": 0, "x1": 1, "y0": len(theirs) - 0.5, "y1": len(theirs) - 0.5}
    layout = style.layout(
        title,
        f"nDCG@10 (0–1); published: no intervals; ours on this data set, which is not theirs: 95 % interval, n = {n:,} "
        "queries",
        style.tall(labels, _ROW) + _AXIS + _LEGEND,
        xaxis=style.axis("nDCG@10", range=[0, end]),
        yaxis=style.rows(labels),
        shapes=[{"type": "line", **between, "line": {"color": style.QUIET, "width": 1}}] if theirs and own else [],
        showlegend=True,
        margin={"b": 48 + _LEGEND},
        meta=style.narrow(yaxis={"ticktext": short}, height=style.tall(short, _ROW) + _AXIS + _LEGEND),
    )
    return go.Figure(data=[hollow, filled, gaps], layout=layout)


def _point_words(point: Point, a: str, b: str) -> str:
    names = "<br>".join(style.plain(name) for name in point.names[:3])
    more = f"<br>and {point.n - 3:,} more" if point.n > 3 else ""
    count = f"{point.n:,} {'query' if point.n == 1 else 'queries'}"
    scores = f"{style.plain(a)}: {point.y:.3f}<br>{style.plain(b)}: {point.x:.3f}"
    return f"<b>{count}</b><br>{scores}<br>{names}{more}"


def _known(row: CostRow, by: str) -> bool:
    value = row.values.get(by)
    return value is not None and math.isfinite(value) and math.isfinite(row.macro.mean)


def _why(row: CostRow, by: str) -> str:
    """Why a row is not drawn."""
    return row.reason or ("no macro mean" if row.values.get(by) is not None else "not measured")


def _ends(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """The twentieths below and above all intervals: positions, unlike bars, need no 0."""
    lows = [e.mean if e.low is None else e.low for e in estimates]
    highs = [e.mean if e.high is None else e.high for e in estimates]
    bottom = math.floor(20 * min(lows, default=0.0)) / 20
    return bottom, max(math.ceil(20 * max(highs, default=1.0)) / 20, bottom + 0.05)


def _sides(names: Sequence[str], shares: Sequence[tuple[float, float]], width: int) -> list[str]:
    """Where each name stands beside its mark, whose place is given in shares of the plot: the side on which it covers
    least of the marks, whiskers' middles and names placed before."""
    at = [(width * x, _HEIGHT * y) for x, y in shares]
    taken: dict[str, Box] = {f"mark {i}": (x - 7, y - 7, x + 7, y + 7) for i, (x, y) in enumerate(at)}
    found = [""] * len(names)
    for i in sorted(range(len(names)), key=lambda i: (-at[i][1], at[i][0])):
        boxes = {side: _label(*at[i], *ways, len(names[i])) for side, ways in _SIDES.items()}
        others = [box for name, box in taken.items() if name != f"mark {i}"]
        covered = {
            side: sum(_overlap(box, other) for other in others) + 1e3 * (box[0] < -8 or box[2] > width + 8)
            for side, box in boxes.items()
        }
        found[i] = min(covered, key=lambda side: covered[side])
        taken[f"label {i}"] = boxes[found[i]]
    return found


def _label(x: float, y: float, across: int, up: int, characters: int) -> Box:
    """The box of a name beside a mark at ``x``, ``y``; ``across`` and ``up`` are −1, 0 or 1."""
    wide, tall, gap = 7.2 * characters, 16, 9 if not up else 4
    left = x + gap if across > 0 else x - gap - wide
    down = y - tall / 2 + up * (tall / 2 + 5)
    return left, down, left + wide, down + tall


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _cost_words(row: CostRow, by: str) -> str:
    front = "<br>on the Pareto front" if row.front else ""
    return f"<b>{style.plain(row.model)}</b><br>{mean_words(row.macro)}<br>{row.values[by]:,.3g} {COSTS[by]}{front}"


def _fact_words(fact: Published) -> str:
    value = style.NA if fact.ndcg_at_10 is None else f"{fact.ndcg_at_10:.3f}"
    return f"<b>{style.plain(fact.model)}</b>, published<br>{value}"
