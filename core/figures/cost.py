"""Marks by two numbers or one: two models query by query, quality against cost, published figures beside ours."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from core.analyze.quality import COSTS, CostRow
from core.figures import style
from core.figures.compare import mean_words
from core.figures.failures import SEPARATOR

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from core.analyze.scored import Key
    from core.evaluate.published import Published
    from core.evaluate.stats import Estimate
    from core.figures.compare import Face

_MARK, _ROW, _AXIS, _LEGEND = 13, 26, 60, 28
_WIDE, _NARROW = (960, 300), (270, 370)
"""Pixels of the plot that labels are placed for."""
_LEAST, _MOST = 7.0, 36.0
"""Pixels across of the smallest and of the largest bubble."""
_SIDES = {
    **{"middle right": (1, 0), "middle left": (-1, 0), "top right": (1, 1), "bottom right": (1, -1)},
    **{"top left": (-1, 1), "bottom left": (-1, -1), "top center": (0, 1), "bottom center": (0, -1)},
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


def mark_of(x: float, y: float) -> str:
    """`Point.key` of the queries with these two scores."""
    return f"{round(x, 3):.3f}{SEPARATOR}{round(y, 3):.3f}"


def at_mark(values_a: Mapping[Key, float], values_b: Mapping[Key, float], name: str) -> list[Key]:
    """The queries that stand behind the mark of this `Point.key`, by name; empty for any other text."""
    both = sorted(values_a.keys() & values_b.keys())
    return [key for key in both if mark_of(values_b[key], values_a[key]) == name]


def points(values_a: Mapping[Key, float], values_b: Mapping[Key, float]) -> list[Point]:
    """The queries that both have a value of, those with the same two scores (to three decimals) as one point; the
    largest first, so that small ones lie on top."""
    together: dict[tuple[float, float], list[str]] = defaultdict(list)
    for key in values_a.keys() & values_b.keys():
        y, x = values_a[key], values_b[key]
        if not (math.isnan(x) or math.isnan(y)):
            together[round(x, 3), round(y, 3)].append("/".join(key))
    found = [Point(x, y, len(names), mark_of(x, y), tuple(sorted(names))) for (x, y), names in together.items()]
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
        500,
        xaxis=style.axis(style.plain(f"{measure}, {b}"), **ticks, constraintoward="left"),
        yaxis=style.axis(style.plain(f"{measure}, {a}"), **ticks, scaleanchor="x", constraintoward="top"),
        meta=style.narrow(height=390),
    )
    return go.Figure(data=[diagonal, marks], layout=drawn)


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

    def box(x: float, low_mean: float, to: float, high_mean: float) -> Box:
        across = [(math.log10(value) - low) / (high - low) for value in (x, to)]
        return (across[0], (low_mean - bottom) / (top - bottom), across[1], (high_mean - bottom) / (top - bottom))

    names = [style.short(row.model) for row in drawn]
    step = sorted((x, row.macro.mean) for x, row in zip(places, drawn, strict=True) if row.front)
    lines = [part for (x, y), (to, up) in pairwise(step) for part in (box(x, y, to, y), box(to, y, to, up))]
    reach = [(row.macro.low, row.macro.high) for row in drawn]
    lines += [box(x, a, x, b) for x, (a, b) in zip(places, reach, strict=True) if a is not None and b is not None]
    points = [box(x, row.macro.mean, x, row.macro.mean) for x, row in zip(places, drawn, strict=True)]
    small = style.SIZE - 2
    front = go.Scatter(
        x=[x for x, _ in step],
        y=[y for _, y in step],
        mode="lines",
        line={"color": style.QUIET, "width": 1.5, "shape": "hv"},
        hoverinfo="skip",
    )
    marks = go.Scatter(
        x=places,
        y=[row.macro.mean for row in drawn],
        mode="markers+text",
        text=[style.plain(name) for name in names],
        textposition=_sides(names, points, lines, style.SIZE, _WIDE),
        textfont={"color": style.INK},
        customdata=[row.model for row in drawn],
        hovertext=[_cost_words(row, by) for row in drawn],
        hoverinfo="text",
        cliponaxis=False,
        error_y=style.whiskers([row.macro for row in drawn]) | {"color": style.QUIET, "width": 3},
        marker=_filled([faces[row.model] for row in drawn]),
    )
    steps_of = (1, 2, 5) if last < 100 * first else (1,)
    decades = range(math.floor(math.log10(first)) - 1, math.floor(high) + 1)
    marked = [n * 10.0**power for power in decades for n in steps_of]
    ticks = {zero: "0"} if free else {}
    ticks |= {value: f"{value:,.12g}" for value in marked if value > 0.6 * first}
    rule = {"type": "line", "x0": math.sqrt(zero * first), "x1": math.sqrt(zero * first), "y0": 0, "y1": 1}
    n, clusters = max(((row.macro.n, row.macro.clusters) for row in drawn), default=(0, 0))
    lost = [row for row in rows if not _known(row, by)]
    reasons = {_why(row, by) for row in lost}
    without = f"{len(lost)} not drawn" + (f" ({min(reasons)})" if len(reasons) == 1 else "")
    below = f"macro mean (0–1), 95 % interval, n = {n:,} queries / {clusters:,} clusters; line: Pareto front"
    layout = style.layout(
        title,
        style.with_names(below, [row.model for row in lost], without),
        360,
        xaxis=style.axis(
            f"{COSTS[by]}, log scale",
            **{"type": "log", "range": [low, high], "tickvals": list(ticks), "ticktext": list(ticks.values())},
        ),
        yaxis=style.axis("macro mean", range=[bottom, top + 0.03 * (top - bottom)]),
        shapes=[rule | {"yref": "paper", "line": {"color": style.QUIET, "width": 1, "dash": "dot"}}] if free else [],
        meta=style.narrow(
            [{}, {"textposition": _sides(names, points, lines, small, _NARROW), "textfont": {"size": small}}],
            xaxis={"title": {"text": COSTS[by]}},
            height=450,
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
        error_x=style.whiskers(estimates),
        marker=_filled(looks),
    )
    none = [at for at, value in enumerate(values) if value is None]
    gaps = go.Bar(
        **style.hatched([f" {style.NA} " for _ in none], "start"),
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


def _filled(looks: Sequence[Face]) -> dict[str, Any]:
    face = {"symbol": [face.symbol for face in looks], "color": [face.colour for face in looks]}
    return {**face, "size": _MARK, "line": style.OUTLINE, "opacity": 1}


def _known(row: CostRow, by: str) -> bool:
    value = row.values.get(by)
    return value is not None and 0 <= value < math.inf and math.isfinite(row.macro.mean)


def _why(row: CostRow, by: str) -> str:
    """Why a row is not drawn, in few words."""
    if row.values.get(by) is not None and math.isnan(row.macro.mean):
        return "no macro mean"
    return row.reason.removeprefix("N/A: ").split(" (")[0] or "not measured"


def _ends(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """The twentieths below and above all intervals: positions, unlike bars, need no 0."""
    lows = [e.mean if e.low is None else e.low for e in estimates]
    highs = [e.mean if e.high is None else e.high for e in estimates]
    bottom = math.floor(20 * min(lows, default=0.0)) / 20
    return bottom, max(math.ceil(20 * max(highs, default=1.0)) / 20, bottom + 0.05)


def _sides(
    names: Sequence[str], marks: Sequence[Box], lines: Sequence[Box], font: int, size: tuple[int, int]
) -> list[str]:
    """Where each name stands beside its mark: the side on which it covers fewest marks, names placed before, and
    ``lines``. Boxes are in shares of the plot of ``size`` pixels; those of marks are their points."""
    width, height = size
    at = [(width * left, height * low) for left, low, _, _ in marks]
    drawn = [(x - 7, y - 7, x + 7, y + 7) for x, y in at]
    thin = [(width * a - 1, height * b - 1, width * c + 1, height * d + 1) for a, b, c, d in lines]
    placed: list[Box] = []
    found = [""] * len(names)
    for i in sorted(range(len(names)), key=lambda i: (-at[i][1], at[i][0])):
        boxes = {side: _label(*at[i], *ways, 0.56 * font * len(names[i])) for side, ways in _SIDES.items()}
        heavy = [*placed, *drawn[:i], *drawn[i + 1 :]]
        covered = {
            side: sum(200 + _overlap(box, other) for other in heavy if _overlap(box, other))
            + sum(50 for other in thin if _overlap(box, other))
            + 1e4 * (box[0] < -8 or box[2] > width + 8)
            for side, box in boxes.items()
        }
        found[i] = min(covered, key=lambda side: covered[side])
        placed.append(boxes[found[i]])
    return found


def _label(x: float, y: float, across: int, up: int, wide: float) -> Box:
    """The box of a name beside a mark at ``x``, ``y``; ``across`` and ``up`` are −1, 0 or 1."""
    left = x + 9 if across > 0 else x - 9 - wide if across < 0 else x - wide / 2
    down = y - 8 + 16 * up
    return left, down, left + wide, down + 16


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _cost_words(row: CostRow, by: str) -> str:
    front = "<br>on the Pareto front" if row.front else ""
    return f"<b>{style.plain(row.model)}</b><br>{mean_words(row.macro)}<br>{row.values[by]:,.3g} {COSTS[by]}{front}"


def _fact_words(fact: Published) -> str:
    value = style.NA if fact.ndcg_at_10 is None else f"{fact.ndcg_at_10:.3f}"
    return f"<b>{style.plain(fact.model)}</b>, published<br>{value}"
