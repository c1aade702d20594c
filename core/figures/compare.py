"""Models beside one another: how each looks, and their means by group as bars and as a heat map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from core.figures import style
from core.figures.failures import SEPARATOR
from core.models.specs import SPECS
from core.records import TASK_LABELS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from core.analyze.compare import Group, Standing
    from core.evaluate.stats import Estimate

FIRST_OTHER = "#7B61A8"
"""Fill of the first model that the registry does not know."""

MOST_COLOURED = 6
MOST_UPRIGHT = 7
"""Groups whose bars stand where there is room; more of them lie."""

_PATTERNS = ("", "/", "x", "-", ".", "\\", "|", "+")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon", "triangle-down", "bowtie")
_BAR, _CELL = 12, 30
"""Pixels of a lying bar, and of a row of the heat map."""
_AXIS, _ENTRY = 60, 22
"""Pixels of ticks and title below the rows, and of a line of the legend."""
_WIDE, _NARROW = 26, 15
"""Characters of a label's line."""


@dataclass(frozen=True, slots=True)
class Face:
    """How one model looks in every figure: ``colour`` of the fill, ``pattern`` (`marker.pattern.shape`) of its area and
    ``symbol`` of its mark tell it apart in print; ``coloured``: the fill is a hue of its own, not `style.OTHERS`."""

    colour: str
    pattern: str
    symbol: str
    coloured: bool


def faces(names: Sequence[str]) -> dict[str, Face]:
    """The face of every name, given in the order of tables. A model of the registry keeps its own whatever else is
    there; of the others the first is coloured, the rest are grey and differ by pattern and symbol."""
    known = {name: at for at, name in enumerate(SPECS)}
    spare = sum(name in known for name in set(names)) < MOST_COLOURED
    found: dict[str, Face] = {}
    others = 0
    for name in dict.fromkeys(names):
        at = known.get(name, len(known) + others)
        coloured = name in known or (spare and not others)
        colour = SPECS[name].colour if name in known else FIRST_OTHER if coloured else style.OTHERS
        others += name not in known
        found[name] = Face(colour, _PATTERNS[at % len(_PATTERNS)], _SYMBOLS[at % len(_SYMBOLS)], coloured)
    return found


class TaskRow(Protocol):
    """One model over several tasks: by task its macro mean (NaN is N/A), and why there is no mean or rank."""

    name: str
    estimates: Mapping[str, Estimate]
    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Cell:
    """One model in one group; ``rank`` is in words, "" where there is none. ``reason``: why the mean is N/A."""

    estimate: Estimate | None
    reason: str
    rank: str

    @property
    def value(self) -> float | None:
        return None if self.estimate is None or math.isnan(self.estimate.mean) else self.estimate.mean


@dataclass(frozen=True, slots=True)
class _Row:
    """One group with the cells of the shown models, in their order."""

    name: str
    ranked: bool
    cells: tuple[_Cell, ...]

    @property
    def size(self) -> tuple[int, int]:
        """The most queries and clusters that a mean of the group is over."""
        sizes = [(c.estimate.n, c.estimate.clusters) for c in self.cells if c.estimate and c.value is not None]
        return max(sizes, default=(0, 0))


def bars(
    groups: Sequence[Group], shown: Sequence[str], faces: Mapping[str, Face], title: str, measure: str, by: str
) -> Figure:
    """The mean of every shown model in every group with its 95 % interval, ``measure`` from 0 to 1; N/A is a hatched
    gap with these letters. ``customdata`` of a bar is group, `SEPARATOR`, model. Groups that are not ranked have a
    star. Bars lie where there are many groups or little width."""
    return _bars(_rows_of(groups, shown), shown, faces, title, f"mean {measure} (0–1) by {by}", measure)


def task_bars(
    rows: Sequence[TaskRow], shown: Sequence[str], faces: Mapping[str, Face], title: str, measure: str
) -> Figure:
    """`bars` of macro means with tasks as the groups; ``customdata`` has the task's own name."""
    models = {row.name: row for row in rows}
    tasks = list(dict.fromkeys(task for row in rows for task in row.estimates))

    def cell(task: str, name: str) -> _Cell:
        row = models.get(name)
        if row is None or task not in row.estimates:
            return _Cell(None, "no stored run", "")
        return _Cell(row.estimates[task], row.reasons.get(task, ""), "")

    drawn = [_Row(task, True, tuple(cell(task, name) for name in shown)) for task in tasks]
    return _bars(drawn, shown, faces, title, f"macro mean {measure} (0–1) by task", measure, TASK_LABELS)


def heat(groups: Sequence[Group], shown: Sequence[str], title: str, measure: str, by: str) -> Figure:
    """The mean of every shown model (columns) in every group (rows, the first on top) as colour and number; N/A is a
    hatched cell with these letters. ``customdata`` of a cell is group, `SEPARATOR`, model."""
    import plotly.graph_objects as go

    rows, columns = _rows_of(groups, shown), list(range(len(shown)))
    values = [[cell.value for cell in row.cells] for row in rows]
    end = style.tenth([value for row in values for value in row if value is not None])
    cells = go.Heatmap(
        z=values,
        x=columns,
        y=list(range(len(rows))),
        text=[["" if value is None else f"{value:.3f}" for value in row] for row in values],
        texttemplate="%{text}",
        textfont={"color": style.INK},
        customdata=[[f"{row.name}{SEPARATOR}{name}" for name in shown] for row in rows],
        hovertext=[[_words(row.name, *pair) for pair in zip(shown, row.cells, strict=True)] for row in rows],
        hoverinfo="text",
        hoverongaps=False,
        colorscale=[[0, style.PAPER], [1, style.TINT]],
        zmin=0,
        zmax=end,
        xgap=1,
        ygap=1,
        showscale=len(rows) > 4,
        colorbar={
            "title": {"text": style.plain(f"mean {measure}"), "side": "right", "font": {"size": style.SIZE}},
            "thickness": 10,
            "outlinewidth": 0,
        },
    )
    none = [(i, j) for i, row in enumerate(values) for j, value in enumerate(row) if value is None]
    gaps = go.Bar(
        **hatched([style.NA] * len(none), "middle"),
        **{"orientation": "h", "y": [i for i, _ in none], "x": [1.0 for _ in none], "base": [j - 0.5 for _, j in none]},
        width=1,
        customdata=[cells.customdata[i][j] for i, j in none],
        hovertext=[cells.hovertext[i][j] for i, j in none],
        hoverinfo="text",
    )
    labels = [f"{style.lines(_star(row), _WIDE)}  (n = {_size(row)})" for row in rows]
    short = [f"{style.lines(_star(row), _NARROW)}<br>n = {_size(row)}" for row in rows]
    fits = len(shown) <= 5
    small = [["" if value is None else f"{value:.2f}".lstrip("0") for value in row] for row in values]
    upright = 8 * max(map(len, shown), default=0)
    drawn = style.layout(
        title,
        f"mean {measure} (0–1) by {by} (rows) and model (columns), no intervals; {_counts(rows)}",
        style.tall(labels, _CELL) + _AXIS,
        xaxis=style.axis(
            **{"tickvals": columns, "ticktext": [style.lines(name, 13) for name in shown], "side": "top"},
            **{"range": [-0.5, len(shown) - 0.5], "showgrid": False, "tickangle": 0},
        ),
        yaxis=style.rows(labels) | {"showgrid": False},
        margin={"b": 16},
        meta=style.narrow(
            [
                {"text": small, "texttemplate": "%{text}" if fits else "", "showscale": False},
                {"text": [style.NA if fits else "" for _ in none], "textfont": {"size": 10}},
            ],
            xaxis={"tickangle": -90, "ticktext": [style.plain(name) for name in shown]},
            yaxis={"ticktext": short},
            height=style.tall(short, 24) + upright + 32,
        ),
    )
    return go.Figure(data=[cells, gaps], layout=drawn)


def whiskers(estimates: Sequence[Estimate | None]) -> dict[str, Any]:
    """``error_x`` or ``error_y`` with the 95 % interval of each mean; None draws no whisker."""
    have = [e if e and e.low is not None and e.high is not None and not math.isnan(e.mean) else None for e in estimates]
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, e.high - e.mean) if e else None for e in have],
        "arrayminus": [max(0.0, e.mean - e.low) if e else None for e in have],
        "color": style.INK,
        "thickness": 1.2,
        "width": 2,
        "visible": True,
    }


def mean_words(estimate: Estimate | None) -> str:
    """ "0.123 (0.100–0.150)" or "N/A"."""
    if estimate is None or math.isnan(estimate.mean):
        return style.NA
    low, high = estimate.low, estimate.high
    return f"{estimate.mean:.3f}" + ("" if low is None or high is None else f" ({low:.3f}–{high:.3f})")


def _rows_of(groups: Sequence[Group], shown: Sequence[str]) -> list[_Row]:
    def cell(standings: Mapping[str, Standing], name: str) -> _Cell:
        one = standings.get(name)
        if one is None:
            return _Cell(None, "no stored run", "")
        return _Cell(one.estimate, one.reason, "" if one.rank is None else "–".join(map(str, dict.fromkeys(one.rank))))

    by_name = [(group, {one.name: one for one in group.standings}) for group in groups]
    return [_Row(g.name, not g.reason, tuple(cell(standings, name) for name in shown)) for g, standings in by_name]


def _bars(
    rows: Sequence[_Row],
    shown: Sequence[str],
    faces: Mapping[str, Face],
    title: str,
    below: str,
    measure: str,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    import plotly.graph_objects as go

    labels = labels or {}
    upright, places = len(rows) <= MOST_UPRIGHT, list(range(len(rows)))
    known = [cell.estimate for row in rows for cell in row.cells if cell.value is not None]
    end = style.tenth([e.mean if e.high is None else e.high for e in known])
    traces, lying = [], []
    for at, name in enumerate(shown):
        cells = [row.cells[at] for row in rows]
        values, reach = [cell.value for cell in cells], whiskers([cell.estimate for cell in cells])
        flat = {"orientation": "h", "x": values, "y": places, "error_x": reach, "error_y": {"visible": False}}
        traces.append(
            go.Bar(
                name=style.plain(name),
                **{"offsetgroup": name, "legendgroup": name},
                customdata=[f"{row.name}{SEPARATOR}{name}" for row in rows],
                hovertext=[_words(labels.get(r.name, r.name), name, cell) for r, cell in zip(rows, cells, strict=True)],
                hoverinfo="text",
                marker=_area(faces[name]),
                **({"x": places, "y": values, "error_y": reach} if upright else flat),
            )
        )
        lying.append(flat)
        none = [place for place in places if values[place] is None]
        if none:
            flat = {"orientation": "h", "x": [end] * len(none), "y": none, "textangle": 0}
            gap = {"x": none, "y": [end] * len(none), "textangle": -90} if upright else flat
            words = {key: [traces[-1][key][place] for place in none] for key in ("customdata", "hovertext")}
            more = {"offsetgroup": name, "legendgroup": name, "hoverinfo": "text"}
            traces.append(go.Bar(**hatched([style.NA] * len(none), "start"), **more, **words, **gap))
            lying.append(flat)
    named = [labels.get(row.name, row.name) + ("" if row.ranked else "*") for row in rows]
    room = max(10, 130 // max(1, len(rows))) if upright else _WIDE
    ticks = [f"{style.lines(name, room)}<br>n = {_size(row)}" for name, row in zip(named, rows, strict=True)]
    short = [f"{style.lines(name, _NARROW)}<br>n = {_size(row)}" for name, row in zip(named, rows, strict=True)]
    wide, small = _legend(shown, 1000), _legend(shown, 310)
    least = _BAR * len(shown) + 14
    # Every tick is spelled out, so that the narrow form can swap the axes.
    scale = {"range": [0, end], "tickmode": "linear", "tick0": 0, "dtick": 0.1 if end > 0.3 else 0.05, "showgrid": True}
    across = style.axis(style.plain(f"mean {measure}"), **scale)
    groups = {"tickmode": "array", "tickvals": places, "showgrid": False}
    standing = style.axis(**groups, ticktext=ticks, range=[-0.5, len(rows) - 0.5], tickangle=0)
    drawn = style.layout(
        title,
        f"{below}, 95 % interval; {_counts(rows)}",
        (340 if upright else style.tall(ticks, least) + _AXIS) + wide,
        **{"barmode": "group", "bargap": 0.18, "bargroupgap": 0.05, "showlegend": True, "margin": {"b": 48 + wide}},
        xaxis=standing if upright else across,
        yaxis=across if upright else style.rows(ticks) | groups,
        meta=style.narrow(
            lying,
            xaxis=across,
            yaxis=style.rows(short) | groups | {"title": {"text": ""}},
            height=style.tall(short, least) + _AXIS + small,
            margin={"b": 48 + small},
        ),
    )
    return go.Figure(data=traces, layout=drawn)


def _area(face: Face) -> dict[str, Any]:
    hatch = {"shape": face.pattern, "fillmode": "overlay", "fgcolor": style.INK, "size": 7, "solidity": 0.15}
    return {"color": face.colour, "line": style.OUTLINE, "pattern": hatch}


def hatched(text: list[str], anchor: str) -> dict[str, Any]:
    """What bars that are N/A have in common; ``text`` has the letters, at the ``anchor`` ("start", "middle")."""
    return {
        "text": text,
        "textposition": "inside",
        "insidetextanchor": anchor,
        "textfont": {"color": style.INK, "size": style.SIZE - 2},
        "marker": {"color": style.PAPER, "pattern": style.HATCH, "line": {"color": style.LINE, "width": 1}},
        "showlegend": False,
    }


def _legend(names: Sequence[str], width: int) -> int:
    """Pixels of the legend's lines: all of its entries are as wide as the longest."""
    entry = 7.5 * max(map(len, names), default=0) + 48
    return _ENTRY * -(-len(names) // max(1, int(width // entry)))


def _star(row: _Row) -> str:
    return row.name if row.ranked else f"{row.name}*"


def _size(row: _Row) -> str:
    n, clusters = row.size
    return f"{n:,} / {clusters:,}"


def _counts(rows: Sequence[_Row]) -> str:
    total = sum(row.size[0] for row in rows)
    star = "" if all(row.ranked for row in rows) else "; * not ranked"
    return f"n = queries / clusters, {total:,} {'query' if total == 1 else 'queries'} in all{star}"


def _words(group: str, name: str, cell: _Cell) -> str:
    head = f"<b>{style.plain(name)}</b><br>{style.plain(group)}<br>{mean_words(cell.estimate)}"
    if cell.value is None or cell.estimate is None:
        return f"{head}: {style.plain(cell.reason.removeprefix('N/A: '))}"
    rank = f"<br>rank {cell.rank}" if cell.rank else ""
    return f"{head}<br>n = {cell.estimate.n:,} queries / {cell.estimate.clusters:,} clusters{rank}"
