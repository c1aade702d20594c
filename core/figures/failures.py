"""Where a run fails, which facet it answers with instead, and what goes with failing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from core.figures import style

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure

    from core.analyze.slices import Confusion, Group, KindRow

SEPARATOR = "\u001f"
"""Between row and column in the ``customdata`` of a cell."""

_ROW = 34
_DOT = 11
_AXIS = 60
"""Pixels below the rows: ticks and the axis' title."""
_LEGEND = 32
_WIDE, _NARROW = 30, 17
"""Characters of a label's line."""


def rates(groups: Sequence[Group], title: str, k: int, colour: str) -> Figure:
    """Failure rate of every group as a dot with its interval, the first group on top and pooled ones, hollow, last.

    A failure has no relevant document in the first ``k``. ``customdata`` of a dot is the group's name. A rate that is
    N/A is a gap with these letters.
    """
    import plotly.graph_objects as go

    ordered = sorted(groups, key=lambda group: group.pooled)
    shares = [style.percent(group.rate.mean) for group in ordered]
    lows = [style.percent(group.rate.low) for group in ordered]
    highs = [style.percent(group.rate.high) for group in ordered]
    none = [row for row, share in enumerate(shares) if share is None]
    dots = go.Scatter(
        x=shares,
        y=list(range(len(ordered))),
        mode="markers",
        customdata=[group.name for group in ordered],
        hovertext=[_rate_words(group) for group in ordered],
        hoverinfo="text",
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [_reach(high, share) for high, share in zip(highs, shares, strict=True)],
            "arrayminus": [_reach(share, low) for share, low in zip(shares, lows, strict=True)],
            "color": style.INK,
            "thickness": 1.5,
            "width": 4,
        },
        marker={
            "size": _DOT,
            "color": [style.PAPER if group.pooled else colour for group in ordered],
            "line": {"color": style.INK, "width": [2 if group.pooled else 1 for group in ordered]},
            "opacity": 1,
        },
    )
    counts = [f"n = {_count(group.n, 'query')} / {_count(group.clusters, 'cluster')}" for group in ordered]
    beside = [_beside(row, words) for row, words in enumerate(counts)]
    labels = [style.lines(group.name, _WIDE) for group in ordered]
    short = [f"{style.lines(group.name, _NARROW)}<br>n = {group.n:,} / {group.clusters:,}" for group in ordered]
    end = style.upper_end([value for value in (*shares, *highs) if value is not None])
    drawn = style.layout(
        title,
        f"share without a relevant document in the first {k}, 95 % interval; "
        f"{_count(sum(group.n for group in ordered), 'query')}",
        style.tall(labels, _ROW) + _AXIS,
        xaxis=style.axis(f"share of queries without a relevant document in the first {k} (%)") | {"range": [0, end]},
        yaxis=style.rows(labels),
        annotations=beside,
        margin={"r": 212},
        meta=style.narrow(
            yaxis={"ticktext": short},
            xaxis={"title": {"text": "failures (%)"}},
            annotations=[],
            margin={"r": 16},
            height=style.tall(short, _ROW) + _AXIS,
        ),
    )
    return go.Figure(data=[dots, _gaps(none, 0, end)], layout=drawn)


def confusion(confusion: Confusion, title: str) -> Figure:
    """How often the best hit of a row's queries has the column's value: colour by the share of the row in %, the
    counts as text. ``customdata`` of a cell is row, `SEPARATOR`, column. A row without queries is a gap."""
    import plotly.graph_objects as go

    names, counts = confusion.names, confusion.counts
    totals = [sum(row) for row in counts]
    shares = [[100 * n / total if total else None for n in row] for row, total in zip(counts, totals, strict=True)]
    cells = go.Heatmap(
        z=shares,
        x=list(range(len(names))),
        y=list(range(len(names))),
        text=[[str(n) if n else "" for n in row] for row in counts],
        texttemplate="%{text}",
        customdata=[[f"{row}{SEPARATOR}{column}" for column in names] for row in names],
        hovertext=[[_cell_words(names, counts, totals, i, j) for j in range(len(names))] for i in range(len(names))],
        hoverinfo="text",
        hoverongaps=False,
        colorscale=[[0, style.PAPER], [1, style.TINT]],
        textfont={"color": style.INK},
        zmin=0,
        zmax=100,
        xgap=1,
        ygap=1,
        colorbar={
            "title": {"text": "% of row", "side": "right", "font": {"size": style.SIZE}},
            "thickness": 10,
            "outlinewidth": 0,
        },
    )
    rows = [f"{style.lines(name, _WIDE)}  {i}" for i, name in enumerate(names, 1)]
    short = [f"{style.lines(name, _NARROW)} {i}" for i, name in enumerate(names, 1)]
    numbers = [str(i) for i in range(1, len(names) + 1)]
    without = f"; {_count(confusion.without, 'query')} left out: no value or no hit" if confusion.without else ""
    drawn = style.layout(
        title,
        f"{confusion.facet} of the query (rows) and of its best hit (columns, by number); "
        f"counts, {_count(confusion.n, 'query')}{without}",
        style.tall(rows, 30) + _AXIS,
        xaxis=style.axis(
            f"{confusion.facet} of the best hit",
            tickvals=list(range(len(names))),
            ticktext=numbers,
            range=[-0.5, len(names) - 0.5],
            showgrid=False,
            tickangle=0,
        ),
        yaxis=style.rows(rows) | {"showgrid": False},
        shapes=[_outline(i) for i, total in enumerate(totals) if total],
        meta=style.narrow(
            [{"texttemplate": "", "showscale": False}],
            yaxis={"ticktext": short},
            xaxis={"tickfont": {"size": 10, "color": style.INK}, "title": {"text": "best hit"}},
            height=style.tall(short, 24) + _AXIS,
        ),
    )
    none = [i for i, total in enumerate(totals) if not total]
    return go.Figure(data=[cells, _gaps(none, -0.5, len(names) - 0.5)], layout=drawn)


def kinds(rows: Sequence[KindRow], title: str) -> Figure:
    """How often a kind is found among failures (filled) and among the other queries (hollow), one row a kind in the
    given order. ``customdata`` of a dot is the kind's name; a kind that cannot be told is a gap."""
    import plotly.graph_objects as go

    failed = [style.percent(row.share) for row in rows]
    others = [style.percent(row.others) for row in rows]
    places = list(range(len(rows)))
    pairs = [(a, b, y) for a, b, y in zip(failed, others, places, strict=True) if a is not None and b is not None]
    between = go.Scatter(
        x=[x for a, b, _ in pairs for x in (a, b, None)],
        y=[y for _, _, at in pairs for y in (at, at, None)],
        mode="lines",
        line={"color": style.QUIET, "width": 1.5},
        hoverinfo="skip",
        showlegend=False,
    )

    def dots(shares: list[float | None], name: str, fill: str) -> go.Scatter:
        return go.Scatter(
            x=shares,
            y=places,
            mode="markers",
            name=name,
            customdata=[row.name for row in rows],
            hovertext=[_kind_words(row) for row in rows],
            hoverinfo="text",
            marker={"size": _DOT, "color": fill, "line": {"color": style.INK, "width": 1.5}, "opacity": 1},
        )

    end = style.upper_end([value for value in (*failed, *others) if value is not None])
    none = [at for at in places if failed[at] is None and others[at] is None]
    labels = [style.lines(row.name, _WIDE) for row in rows]
    short = [style.lines(row.name, _NARROW) for row in rows]
    drawn = style.layout(
        title,
        "share of queries in %; a query can be of several kinds",
        style.tall(labels, 28) + _AXIS + _LEGEND,
        xaxis=style.axis("share of queries (%)") | {"range": [0, end]},
        yaxis=style.rows(labels),
        showlegend=True,
        margin={"b": 48 + _LEGEND},
        meta=style.narrow(yaxis={"ticktext": short}, height=style.tall(short, 28) + _AXIS + 2 * _LEGEND),
    )
    hollow = dots(others, "among the other queries", style.PAPER)
    filled = dots(failed, "among failures", style.INK)
    return go.Figure(data=[between, hollow, filled, _gaps(none, 0, end)], layout=drawn)


def _reach(end: float | None, start: float | None) -> float | None:
    """Length of a whisker; None draws none."""
    return None if end is None or start is None else max(0.0, end - start)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {'queries' if what == 'query' else what + 's'}"


def _gaps(places: Sequence[int], start: float, end: float) -> Bar:
    """Hatched rows with the letters N/A, from ``start`` to ``end``, where there is no value."""
    import plotly.graph_objects as go

    return go.Bar(
        orientation="h",
        y=list(places),
        x=[end - start for _ in places],
        base=[start for _ in places],
        width=0.5,
        text=[f" {style.NA} " for _ in places],
        textposition="inside",
        insidetextanchor="start",
        textfont={"color": style.INK, "size": style.SIZE},
        marker={"color": style.PAPER, "pattern": style.HATCH, "line": {"color": style.LINE, "width": 1}},
        hoverinfo="skip",
        showlegend=False,
    )


def _beside(row: int, words: str) -> dict[str, Any]:
    quiet = {"color": style.QUIET, "size": style.SIZE - 1}
    return {"xref": "paper", "x": 1, "xanchor": "left", "xshift": 8, "y": row, "showarrow": False, "font": quiet} | {
        "text": words
    }


def _outline(at: int) -> dict[str, Any]:
    """The frame of a cell where the best hit has the query's own value."""
    edges = {"x0": at - 0.5, "x1": at + 0.5, "y0": at - 0.5, "y1": at + 0.5}
    return {"type": "rect", **edges, "line": {"color": style.INK, "width": 1.5}}


def _share_words(share: float | None) -> str:
    return style.NA if share is None or math.isnan(share) else f"{100 * share:.1f} %"


def _rate_words(group: Group) -> str:
    rate = group.rate
    between = "" if rate.low is None or rate.high is None else f" ({100 * rate.low:.1f}–{100 * rate.high:.1f} %)"
    often = f"<br>most marked: {style.plain(group.dominant)}" if group.dominant else ""
    return (
        f"<b>{style.plain(group.name)}</b><br>{_share_words(rate.mean)}{between}<br>"
        f"{group.failures:,} of {_count(group.n, 'query')}, {_count(group.clusters, 'cluster')}{often}"
    )


def _cell_words(names: Sequence[str], counts: Sequence[Sequence[int]], totals: Sequence[int], i: int, j: int) -> str:
    share = f", {100 * counts[i][j] / totals[i]:.1f} %" if totals[i] else ""
    return (
        f"<b>{style.plain(names[i])}</b><br>best hit: {style.plain(names[j])}<br>"
        f"{counts[i][j]:,} of {_count(totals[i], 'query')}{share}"
    )


def _kind_words(row: KindRow) -> str:
    if row.share is None and row.others is None:
        return f"<b>{style.plain(row.name)}</b><br>{style.NA}: {style.plain(row.reason)}"
    return (
        f"<b>{style.plain(row.name)}</b><br>among failures: {_share_words(row.share)} ({row.failures:,})<br>"
        f"among the other queries: {_share_words(row.others)}"
    )
