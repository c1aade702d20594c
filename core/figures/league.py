"""Means of models by group: bars with intervals, and a heat map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.figures import style
from core.figures.faces import Face
from core.figures.failures import SEPARATOR

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure

    from core.analyze.compare import Group, Standing

MOST_UPRIGHT = 7
"""Groups whose bars stand upright where there is room; more lie, and all do where there is little."""

_BAR, _CELL = 12, 30
"""Pixels of a lying bar, and of a row of the heat map."""
_SCALED = 5
"""Rows of the heat map from which on its scale is drawn beside it."""
_ENTRY = 20
"""Pixels of a line of the legend."""
_AXIS = 60
_WIDE, _NARROW = 26, 16


def bars(
    groups: Sequence[Group], shown: Sequence[str], faces: Mapping[str, Face], title: str, measure: str, by: str
) -> Figure:
    """The mean of every shown model in every group with its 95 % interval; N/A is a hatched gap.

    Models without a value in any group are named, not drawn. ``customdata`` of a bar is group, `SEPARATOR`, model.
    """
    import plotly.graph_objects as go

    drawn, lacking = _drawn(groups, shown)
    end = _end(groups, drawn)
    places = list(range(len(groups)))
    upright = len(groups) <= MOST_UPRIGHT
    traces, narrow = [], []
    for name in drawn:
        found = [_of(group, name) for group in groups]
        values = [_value(one) for one in found]
        whiskers = _whiskers(found)
        about = {
            "name": style.plain(name),
            "offsetgroup": name,
            "legendgroup": name,
            "customdata": [f"{group.name}{SEPARATOR}{name}" for group in groups],
            "hovertext": [_words(group, one, name) for group, one in zip(groups, found, strict=True)],
            "hoverinfo": "text",
            "marker": faces[name].area(),
        }
        lying = {"orientation": "h", "x": values, "y": places, "error_x": whiskers, "error_y": {"visible": False}}
        standing = {"x": places, "y": values, "error_y": whiskers}
        traces.append(go.Bar(**about, **(standing if upright else lying)))
        narrow.append(lying)
        gaps = [at for at, value in zip(places, values, strict=True) if value is None]
        if gaps:
            long, text = [end] * len(gaps), [style.NA] * len(gaps)
            lying = {"orientation": "h", "x": long, "y": gaps, "textangle": 0}
            standing = {"x": gaps, "y": long, "textangle": -90}
            traces.append(_gap(name, text, standing if upright else lying))
            narrow.append(lying)
    starred = [_star(group) for group in groups]
    sizes = [_size(group) for group in groups]
    wide = [f"{style.lines(name, _WIDE)}<br>{size}" for name, size in zip(starred, sizes, strict=True)]
    short = [f"{style.lines(name, _NARROW)}<br>{size}" for name, size in zip(starred, sizes, strict=True)]
    note = "; * not ranked: too few clusters" if any(group.reason for group in groups) else ""
    note += f"; N/A everywhere: {', '.join(lacking)}" if lacking else ""
    rows = {True: _legend(drawn, 1000), False: _legend(drawn, 260)}
    high = _lying(groups, drawn, rows[False])
    # Ticks are spelled out: a figure that takes the place of one with other axes would keep theirs.
    axis = style.axis(f"mean {measure}", range=[0, end], tickmode="linear", tick0=0, dtick=0.1 if end > 0.3 else 0.05)
    across = {**style.rows(short), "tickmode": "array", "showgrid": False, "title": {"text": ""}}
    named = style.axis(
        tickmode="array", tickvals=places, ticktext=wide, range=[-0.5, len(groups) - 0.5], showgrid=False, tickangle=0
    )
    swap = {"tickvals": None, "ticktext": None, "showgrid": True, **axis}
    layout = style.layout(
        title,
        f"mean {measure} (0 to 1, higher is better), 95 % interval; n queries / clusters by {by}{note}",
        330 + rows[True] if upright else _lying(groups, drawn, rows[True]),
        xaxis=named if upright else axis,
        yaxis=axis if upright else {**style.rows(wide), "tickmode": "array", "showgrid": False},
        barmode="group",
        bargap=0.18,
        bargroupgap=0.04,
        showlegend=True,
        margin={"b": 48 + rows[True]},
        meta=style.narrow(narrow, xaxis=swap, yaxis=across, height=high, margin={"b": 48 + rows[False]}),
    )
    return go.Figure(data=traces, layout=layout)


def heat(groups: Sequence[Group], shown: Sequence[str], title: str, measure: str, by: str) -> Figure:
    """The mean of every shown model (columns) in every group (rows); N/A is a hatched cell with these letters.

    ``customdata`` of a cell is group, `SEPARATOR`, model.
    """
    import plotly.graph_objects as go

    drawn, lacking = _drawn(groups, shown)
    found = [[_of(group, name) for name in drawn] for group in groups]
    values = [[_value(one) for one in row] for row in found]
    known = [value for row in values for value in row if value is not None]
    cells = go.Heatmap(
        z=values,
        x=list(range(len(drawn))),
        y=list(range(len(groups))),
        text=[["" if value is None else f"{value:.3f}" for value in row] for row in values],
        texttemplate="%{text}",
        customdata=[[f"{group.name}{SEPARATOR}{name}" for name in drawn] for group in groups],
        hovertext=[
            [_words(group, one, name) for one, name in zip(row, drawn, strict=True)]
            for group, row in zip(groups, found, strict=True)
        ],
        hoverinfo="text",
        hoverongaps=False,
        colorscale=[[0, style.PAPER], [1, style.TINT]],
        textfont={"color": style.INK},
        zmin=0,
        zmax=style.tenth(known),
        xgap=1,
        ygap=1,
        showscale=len(groups) >= _SCALED,
        colorbar={
            "title": {"text": f"mean {measure}", "side": "right", "font": {"size": style.SIZE}},
            "thickness": 10,
            "outlinewidth": 0,
        },
    )
    gaps = [(i, j) for i, row in enumerate(values) for j, value in enumerate(row) if value is None]
    hatched = go.Bar(
        orientation="h",
        y=[i for i, _ in gaps],
        x=[1.0 for _ in gaps],
        base=[j - 0.5 for _, j in gaps],
        width=1,
        text=[style.NA for _ in gaps],
        textposition="inside",
        insidetextanchor="middle",
        textfont={"color": style.INK},
        marker={"color": style.PAPER, "pattern": style.HATCH, "line": {"color": style.LINE, "width": 1}},
        hoverinfo="skip",
    )
    rows = [f"{style.lines(group.name, _WIDE)} ({_size(group)})" for group in groups]
    short = [style.lines(group.name, _NARROW) for group in groups]
    note = f"; N/A everywhere: {', '.join(lacking)}" if lacking else ""
    columns = {"tickvals": list(range(len(drawn))), "range": [-0.5, len(drawn) - 0.5], "showgrid": False}
    layout = style.layout(
        title,
        f"mean {measure} by {by} (rows, with n queries / clusters) and model (columns){note}",
        style.tall(rows, _CELL) + _AXIS,
        xaxis=style.axis(ticktext=[style.lines(name, 16) for name in drawn], side="top", tickangle=0, **columns),
        yaxis={**style.rows(rows), "showgrid": False},
        meta=style.narrow(
            [{"texttemplate": "", "showscale": False}, {"text": ["" for _ in gaps]}],
            xaxis={"tickangle": -90, "ticktext": [style.plain(name) for name in drawn]},
            yaxis={"ticktext": short},
            height=style.tall(short, 26) + _AXIS + 120,
        ),
        margin={"b": 16},
    )
    return go.Figure(data=[cells, hatched], layout=layout)


def _drawn(groups: Sequence[Group], shown: Sequence[str]) -> tuple[list[str], list[str]]:
    """The models with a value somewhere, and the others."""
    has = {one.name for group in groups for one in group.standings if not math.isnan(one.estimate.mean)}
    return [name for name in shown if name in has], [name for name in shown if name not in has]


def _of(group: Group, name: str) -> Standing | None:
    return next((one for one in group.standings if one.name == name), None)


def _value(one: Standing | None) -> float | None:
    return None if one is None or math.isnan(one.estimate.mean) else one.estimate.mean


def _whiskers(found: Sequence[Standing | None]) -> dict[str, Any]:
    """Lengths to either side; None draws none."""
    up, down = [], []
    for one in found:
        e = one.estimate if one is not None else None
        has = e is not None and e.low is not None and e.high is not None
        up.append(max(0.0, e.high - e.mean) if has else None)
        down.append(max(0.0, e.mean - e.low) if has else None)
    about = {"type": "data", "symmetric": False, "color": style.INK, "thickness": 1.2, "width": 2, "visible": True}
    return {**about, "array": up, "arrayminus": down}


def _end(groups: Sequence[Group], drawn: Sequence[str]) -> float:
    estimates = [one.estimate for group in groups for one in group.standings if one.name in drawn]
    return style.tenth([e.high if e.high is not None else e.mean for e in estimates if not math.isnan(e.mean)])


def _gap(name: str, text: list[str], where: Mapping[str, Any]) -> Bar:
    import plotly.graph_objects as go

    return go.Bar(
        offsetgroup=name,
        legendgroup=name,
        showlegend=False,
        text=text,
        textposition="inside",
        insidetextanchor="start",
        textfont={"color": style.INK, "size": style.SIZE - 2},
        marker={"color": style.PAPER, "pattern": style.HATCH, "line": {"color": style.LINE, "width": 1}},
        hoverinfo="skip",
        **where,
    )


def _legend(names: Sequence[str], width: int) -> int:
    """Pixels of the legend's lines below the axis."""
    lines = max(1, -(-sum(8 * len(name) + 50 for name in names) // width))
    return _ENTRY * lines


def _lying(groups: Sequence[Group], drawn: Sequence[str], legend: int) -> int:
    return len(groups) * max(40, _BAR * len(drawn) + 14) + _AXIS + legend


def _star(group: Group) -> str:
    return f"{group.name}*" if group.reason else group.name


def _size(group: Group) -> str:
    sizes = {(one.estimate.n, one.estimate.clusters) for one in group.standings if not math.isnan(one.estimate.mean)}
    n, clusters = max(sizes, default=(0, 0))
    return f"{n:,} / {clusters:,}"


def _words(group: Group, one: Standing | None, name: str) -> str:
    head = f"<b>{style.plain(name)}</b><br>{style.plain(group.name)}<br>"
    if one is None or math.isnan(one.estimate.mean):
        return f"{head}{style.NA}: {style.plain((one.reason if one else 'no stored run').removeprefix('N/A: '))}"
    e = one.estimate
    between = "" if e.low is None or e.high is None else f" ({e.low:.3f}–{e.high:.3f})"
    rank = "" if one.rank is None else f"<br>rank {'–'.join(map(str, dict.fromkeys(one.rank)))}"
    return f"{head}{e.mean:.3f}{between}<br>{e.n:,} queries, {e.clusters:,} clusters{rank}"
