"""Quality against cost with the Pareto front, and published figures beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from core.analyze.quality import COSTS, CostRow
from core.figures import style
from core.figures.faces import Face

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from core.evaluate.published import Published
    from core.evaluate.stats import Estimate

_MARK = 13
_ROW = 26
_AXIS, _LEGEND = 60, 28
_PLACES = (("middle right", 1, 0), ("middle left", -1, 0), ("top center", 0, 1), ("bottom center", 0, -1))
_WIDTH, _HEIGHT = 900, 300
"""Pixels of the plot that labels are placed for."""


def cost(rows: Sequence[CostRow], by: str, faces: Mapping[str, Face], title: str, measure: str) -> Figure:
    """Macro mean with its interval against a cost of `core.analyze.quality.COSTS`, on a log scale; what costs nothing
    stands left of the dotted line. Models without a mean or a cost are named, not drawn."""
    import plotly.graph_objects as go

    words = COSTS[by][0]
    drawn = [row for row in rows if row.values[by] is not None and math.isfinite(row.macro.mean)]
    lacking = [row.model for row in rows if row not in drawn]
    positive = [row.values[by] for row in drawn if row.values[by] > 0]
    free = any(row.values[by] == 0 for row in drawn)
    first, last = (min(positive), max(positive)) if positive else (1.0, 1.0)
    zero = 10 ** (math.floor(math.log10(first)) - 1)
    places = {row.model: row.values[by] or zero for row in drawn}
    low = math.log10(zero) - 0.3 if free else math.log10(first) - 0.25
    high = max(math.log10(last) + 0.35, low + 1)
    bottom, end = _ends([row.macro for row in drawn])
    at = {
        row.model: (
            _WIDTH * (math.log10(places[row.model]) - low) / (high - low),
            _HEIGHT * (row.macro.mean - bottom) / (end - bottom),
        )
        for row in drawn
    }
    labels = _labels(at)
    front = sorted((row for row in drawn if row.front), key=lambda row: (places[row.model], row.macro.mean))
    traces = [
        go.Scatter(
            x=[places[row.model] for row in front],
            y=[row.macro.mean for row in front],
            mode="lines",
            line={"color": style.QUIET, "width": 1.5, "shape": "hv"},
            hoverinfo="skip",
            name="Pareto front",
        )
    ]
    for row in drawn:
        e = row.macro
        has = e.low is not None and e.high is not None
        traces.append(
            go.Scatter(
                x=[places[row.model]],
                y=[e.mean],
                mode="markers+text",
                name=style.plain(row.model),
                text=[style.plain(row.model) if row.model in labels else ""],
                textposition=labels.get(row.model),
                textfont={"color": style.INK},
                customdata=[row.model],
                hovertext=[_cost_words(row, by)],
                hoverinfo="text",
                cliponaxis=False,
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [max(0.0, e.high - e.mean) if has else None],
                    "arrayminus": [max(0.0, e.mean - e.low) if has else None],
                    "color": style.QUIET,
                    "thickness": 1.2,
                    "width": 3,
                },
                marker=faces[row.model].mark(_MARK),
            )
        )
    decades = range(math.ceil(low if not free else math.log10(zero) + 0.5), math.floor(high) + 1)
    ticks = {10.0**power: f"{10.0**power:,.12g}" for power in decades} | ({zero: "0"} if free else {})
    between = math.sqrt(zero * first)
    rule = {"type": "line", "x0": between, "x1": between, "y0": 0, "y1": 1, "yref": "paper"}
    note = f"; not drawn, N/A: {', '.join(lacking)}" if lacking else ""
    clusters = f"{drawn[0].macro.n:,} queries / {drawn[0].macro.clusters:,} clusters" if drawn else "no model"
    layout = style.layout(
        title,
        f"macro {measure} with its 95 % interval, {clusters}, against {words}; up and left is better; the line is the "
        f"Pareto front{note}",
        340 + _LEGEND,
        xaxis=style.axis(f"{words}, log scale")
        | {"type": "log", "range": [low, high], "tickvals": list(ticks), "ticktext": list(ticks.values())},
        yaxis=style.axis(f"macro {measure}") | {"range": [bottom, end]},
        showlegend=True,
        margin={"b": 48 + _LEGEND},
        shapes=[rule | {"line": {"color": style.LINE, "width": 1, "dash": "dot"}}] if free else [],
        meta=style.narrow(
            [{}, *({"mode": "markers"} for _ in drawn)],
            height=360 + _LEGEND * -(-len(drawn) // 2),
            margin={"b": 48 + _LEGEND * -(-len(drawn) // 2)},
        ),
    )
    return go.Figure(data=traces, layout=layout)


def published(facts: Sequence[Published], ours: Mapping[str, tuple[Estimate, Face]], title: str) -> Figure:
    """The published nDCG@10 of one task as hollow marks, best first, and below ours, filled, with intervals. A figure
    that is N/A is a gap with these letters."""
    import plotly.graph_objects as go

    theirs = sorted(facts, key=lambda fact: (fact.ndcg_at_10 is None, -(fact.ndcg_at_10 or 0), fact.model))
    own = sorted(ours, key=lambda name: (math.isnan(ours[name][0].mean), -_or_zero(ours[name][0].mean), name))
    labels = [*(fact.model for fact in theirs), *(f"{name} (ours)" for name in own)]
    values = [*(fact.ndcg_at_10 for fact in theirs), *(_known(ours[name][0].mean) for name in own)]
    highs = [ours[name][0].high for name in own]
    end = style.tenth([value for value in (*values, *highs) if value is not None])
    hollow = go.Scatter(
        x=values[: len(theirs)],
        y=list(range(len(theirs))),
        mode="markers",
        name="published, on the benchmark's own data",
        customdata=[fact.model for fact in theirs],
        hovertext=[f"<b>{style.plain(f.model)}</b><br>{_three(f.ndcg_at_10)}, published" for f in theirs],
        hoverinfo="text",
        marker={"symbol": "circle", "color": style.PAPER, "size": 12, "line": {"color": style.INK, "width": 2}},
    )
    filled = go.Scatter(
        x=values[len(theirs) :],
        y=list(range(len(theirs), len(labels))),
        mode="markers",
        name="ours, on this data set",
        customdata=own,
        hovertext=[f"<b>{style.plain(name)}</b><br>{_three(ours[name][0].mean)}, ours" for name in own],
        hoverinfo="text",
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [_reach(ours[name][0].high, ours[name][0].mean) for name in own],
            "arrayminus": [_reach(ours[name][0].mean, ours[name][0].low) for name in own],
            "color": style.INK,
            "thickness": 1.2,
            "width": 3,
        },
        marker={
            "symbol": [ours[name][1].symbol for name in own],
            "color": [ours[name][1].colour for name in own],
            "size": 12,
            "line": {"color": style.INK, "width": 1},
            "opacity": 1,
        },
    )
    none = [at for at, value in enumerate(values) if value is None]
    gaps = go.Bar(
        orientation="h",
        y=none,
        x=[end for _ in none],
        width=0.6,
        text=[f" {style.NA} " for _ in none],
        textposition="inside",
        insidetextanchor="start",
        textfont={"color": style.INK},
        marker={"color": style.PAPER, "pattern": style.HATCH, "line": {"color": style.LINE, "width": 1}},
        hoverinfo="skip",
        showlegend=False,
    )
    short = [style.lines(label, 18) for label in labels]
    layout = style.layout(
        title,
        "nDCG@10; published without intervals, ours with 95 % intervals; the two are of different data",
        style.tall([style.plain(label) for label in labels], _ROW) + _AXIS + _LEGEND,
        xaxis=style.axis("nDCG@10") | {"range": [0, end]},
        yaxis=style.rows([style.plain(label) for label in labels]),
        shapes=[
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": len(theirs) - 0.5, "y1": len(theirs) - 0.5}
            | {"line": {"color": style.LINE, "width": 1}}
        ],
        showlegend=True,
        margin={"b": 48 + _LEGEND},
        meta=style.narrow(
            yaxis={"ticktext": short},
            height=style.tall(short, _ROW) + _AXIS + 2 * _LEGEND,
            margin={"b": 48 + 2 * _LEGEND},
        ),
    )
    return go.Figure(data=[hollow, filled, gaps], layout=layout)


def _labels(at: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """Where each name stands beside its mark: the first side on which it covers no other name or mark. Who finds none
    is told by the legend."""
    taken = {name: (x - _MARK, y - _MARK, x + _MARK, y + _MARK) for name, (x, y) in at.items()}
    found = {}
    for name, (x, y) in sorted(at.items(), key=lambda item: (-item[1][1], item[0])):
        wide, tall = 7.5 * len(name), 16
        for words, across, up in _PLACES:
            left = x + (10 if across > 0 else -10 - wide if across < 0 else -wide / 2)
            down = y + (12 if up > 0 else -12 - tall if up < 0 else -tall / 2)
            box = (left, down, left + wide, down + tall)
            inside = left >= 0 and left + wide <= _WIDTH + 80
            if inside and not any(_cover(box, other) for one, other in taken.items() if one != name):
                found[name], taken[f"label of {name}"] = words, box
                break
    return found


def _ends(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """The lower and upper end of an axis that need not begin at 0, in twentieths."""
    lows = [e.low if e.low is not None else e.mean for e in estimates]
    highs = [e.high if e.high is not None else e.mean for e in estimates]
    bottom = math.floor(20 * min(lows, default=0.0)) / 20
    return bottom, max(math.ceil(20 * max(highs, default=1.0)) / 20, bottom + 0.05)


def _cover(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _reach(end: float | None, start: float | None) -> float | None:
    return None if end is None or start is None or math.isnan(end - start) else max(0.0, end - start)


def _three(value: float | None) -> str:
    return style.NA if value is None or math.isnan(value) else f"{value:.3f}"


def _cost_words(row: CostRow, by: str) -> str:
    e = row.macro
    between = "" if e.low is None or e.high is None else f" ({e.low:.3f}–{e.high:.3f})"
    front = "<br>on the Pareto front" if row.front else ""
    return f"<b>{style.plain(row.model)}</b><br>{e.mean:.3f}{between}<br>{row.values[by]:,.3g} {COSTS[by][0]}{front}"
