"""Models beside one another: how each looks, and their means by group as bars and as a heat map."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from core.figures import style
from core.figures.failures import SEPARATOR
from core.models.specs import SPECS

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
_AXIS, _ENTRY = 60, 29
"""Pixels of ticks and title below the rows, and of a line of the legend."""
_WIDE, _NARROW = 26, 16
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
    order = list(dict.fromkeys(names))
    own = [known[name] for name in order[: len(_PATTERNS)] if name in known]
    patterns, symbols = _spare(_PATTERNS, own), _spare(_SYMBOLS, own)
    others = [name for name in order if name not in known]
    coloured = others[: max(0, min(1, MOST_COLOURED - sum(name in known for name in order)))]
    found = {}
    for name in order:
        if name in known:
            looks, at, colour = (_PATTERNS, _SYMBOLS), known[name], SPECS[name].colour
        else:
            looks, at = (patterns, symbols), others.index(name)
            colour = FIRST_OTHER if name in coloured else style.OTHERS
        pattern, symbol = (kind[at % len(kind)] for kind in looks)
        found[name] = Face(colour, pattern, symbol, colour != style.OTHERS)
    return found


def _spare(looks: Sequence[str], own: Sequence[int]) -> Sequence[str]:
    """The looks that no model of the registry has, then those of models that are not there."""
    return [*looks[len(SPECS) :], *(look for at, look in enumerate(looks[: len(SPECS)]) if at not in own)] or looks


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
    """One group, with its ``label``, and the cells of the shown models in their order."""

    name: str
    label: str
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
    gap with these letters, and a model that is N/A in every group is only named. ``customdata`` of a bar is group,
    `SEPARATOR`, model. Groups that are not ranked have a star. Bars lie where there are many groups or little width."""
    return _bars(_rows_of(groups, shown), shown, faces, title, f"mean {measure} (0–1) by {by}", measure)


def heat(groups: Sequence[Group], shown: Sequence[str], title: str, measure: str, by: str) -> Figure:
    """The mean of every shown model (columns) in every group (rows, the first on top) as colour and number; N/A is a
    hatched cell with these letters, and a model that is N/A in every group is only named. ``customdata`` of a cell is
    group, `SEPARATOR`, model."""
    import plotly.graph_objects as go

    rows, shown, lacking = _with_values(_rows_of(groups, shown), shown)
    columns = list(range(len(shown)))
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
        hovertext=[[_words(row, *pair) for pair in zip(shown, row.cells, strict=True)] for row in rows],
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
        **style.hatched([style.NA] * len(none), "middle"),
        **{"orientation": "h", "y": [i for i, _ in none], "x": [1.0 for _ in none], "base": [j - 0.5 for _, j in none]},
        width=1,
        customdata=[cells.customdata[i][j] for i, j in none],
        hovertext=[cells.hovertext[i][j] for i, j in none],
        hoverinfo="text",
    )
    names = [style.short(name) for name in shown]
    under = [_column(name) for name in names]
    labels = [f"{style.lines(row.label, _WIDE)}  ({_size(row)})" for row in rows]
    short = [f"{style.lines(row.label, _NARROW)}<br>{_size(row)}" for row in rows]
    foot = 16 + 17 * max((label.count("<br>") + 1 for label in under), default=1)
    fits = len(shown) <= 5
    small = [["" if value is None else f"{value:.2f}".lstrip("0") for value in row] for row in values]
    upright = 8 * max(map(len, names), default=0) + 24
    drawn = style.layout(
        title,
        style.with_names(
            f"mean {measure} (0–1) by {by} (rows) and model (columns), 95 % interval on hover; {_counts(rows)}",
            lacking,
            "N/A everywhere",
        ),
        style.tall(labels, _CELL) + foot,
        xaxis=style.axis(
            **{"tickvals": columns, "ticktext": under},
            **{"range": [-0.5, len(shown) - 0.5], "showgrid": False, "tickangle": 0, "automargin": False},
        ),
        yaxis=style.rows(labels) | {"showgrid": False},
        margin={"b": foot},
        meta=style.narrow(
            [
                {"text": small, "texttemplate": "%{text}" if fits else "", "showscale": False},
                {"text": [style.NA if fits else "" for _ in none], "textfont": {"size": 10}},
            ],
            xaxis={"tickangle": -90, "ticktext": [style.plain(name) for name in names]},
            yaxis={"ticktext": short},
            height=style.tall(short, 24) + upright + style.PLAIN,
            margin={"b": upright},
        ),
    )
    return go.Figure(data=[cells, gaps], layout=drawn)


def mean_words(estimate: Estimate | None) -> str:
    """A mean with its interval, as 0.123 (0.100–0.150), or N/A."""
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
    return [
        _Row(g.name, f"{g.name}*" if g.reason else g.name, not g.reason, tuple(cell(standings, name) for name in shown))
        for g, standings in by_name
    ]


def _with_values(rows: Sequence[_Row], shown: Sequence[str]) -> tuple[list[_Row], list[str], list[str]]:
    """The rows with the models that have a value somewhere, these models, and the others: hatching them in every group
    would hide what there is."""
    kept = [at for at in range(len(shown)) if any(row.cells[at].value is not None for row in rows)]
    cut = [replace(row, cells=tuple(row.cells[at] for at in kept)) for row in rows]
    return cut, [shown[at] for at in kept], [name for at, name in enumerate(shown) if at not in kept]


def _bars(
    rows: Sequence[_Row], shown: Sequence[str], faces: Mapping[str, Face], title: str, below: str, measure: str
) -> Figure:
    import plotly.graph_objects as go

    rows, shown, lacking = _with_values(rows, shown)
    upright, places = len(rows) <= MOST_UPRIGHT, list(range(len(rows)))
    known = [cell.estimate for row in rows for cell in row.cells if cell.value is not None]
    end = style.tenth([e.mean if e.high is None else e.high for e in known])
    traces, lying = [], []
    for at, name in enumerate(shown):
        cells = [row.cells[at] for row in rows]
        values, reach = [cell.value for cell in cells], style.whiskers([cell.estimate for cell in cells])
        flat = {"orientation": "h", "x": values, "y": places, "error_x": reach, "error_y": {"visible": False}}
        traces.append(
            go.Bar(
                name=style.plain(style.short(name)),
                **{"offsetgroup": name, "legendgroup": name},
                customdata=[f"{row.name}{SEPARATOR}{name}" for row in rows],
                hovertext=[_words(r, name, cell) for r, cell in zip(rows, cells, strict=True)],
                hoverinfo="text",
                marker=_area(faces[name]),
                **({"x": places, "y": values, "error_y": reach} if upright else flat),
            )
        )
        lying.append(flat)
        none = [place for place in places if values[place] is None]
        if none:
            small = {"color": style.INK, "size": 9}
            flat = {"orientation": "h", "x": [end] * len(none), "y": none, "textangle": 0, "textfont": small}
            gap = {"x": none, "y": [end] * len(none), "textangle": -90} if upright else flat
            words = {key: [traces[-1][key][place] for place in none] for key in ("customdata", "hovertext")}
            more = {"offsetgroup": name, "legendgroup": name, "hoverinfo": "text"}
            traces.append(go.Bar(**(style.hatched([style.NA] * len(none), "start") | more | words | gap)))
            lying.append(flat)
    room = max(10, 130 // max(1, len(rows))) if upright else _WIDE
    ticks = [f"{style.lines(row.label, room)}<br>{_size(row)}" for row in rows]
    short = [f"{style.lines(row.label, _NARROW)}<br>{_size(row)}" for row in rows]
    wide, small = (_legend([style.short(name) for name in shown], width) for width in (940, 330))
    least = _BAR * len(shown) + 14
    # Every tick is spelled out, so that the narrow form can swap the axes.
    scale = {"range": [0, 1.03 * end], "tickmode": "linear", "tick0": 0, "showgrid": True, "tickangle": 0}
    across = style.axis(style.plain(f"mean {measure}"), **scale, dtick=0.1 if end > 0.3 else 0.05)
    groups = {"tickmode": "array", "tickvals": places, "showgrid": False}
    standing = style.axis(**groups, ticktext=ticks, range=[-0.5, len(rows) - 0.5], tickangle=0)
    drawn = style.layout(
        title,
        style.with_names(f"{below}, 95 % interval; {_counts(rows)}", lacking, "N/A everywhere"),
        (340 if upright else style.tall(ticks, least) + _AXIS) + wide,
        **{"barmode": "group", "bargroupgap": 0.05, "bargap": max(0.18, 0.6 - 0.1 * len(shown))},
        showlegend=True,
        margin={"b": 48 + wide},
        xaxis=standing if upright else across,
        yaxis=across if upright else style.rows(ticks) | groups,
        meta=style.narrow(
            lying,
            xaxis=across | {"dtick": 0.2 if end > 0.6 else across["dtick"]},
            yaxis=style.rows(short) | groups | {"title": {"text": ""}},
            height=style.tall(short, least) + _AXIS + small,
            margin={"b": 48 + small},
            legend={"xref": "container", "x": 0.02},
        ),
    )
    return go.Figure(data=traces, layout=drawn)


def _area(face: Face) -> dict[str, Any]:
    hatch = {"shape": face.pattern, "fillmode": "overlay", "fgcolor": style.INK, "size": 7, "solidity": 0.15}
    return {"color": face.colour, "line": style.OUTLINE, "pattern": hatch}


def _legend(names: Sequence[str], width: int) -> int:
    """Pixels of the legend's lines."""
    lines, left = 0, 0.0
    for name in names:
        entry = 7.5 * len(name) + 48
        lines, left = (lines, left - entry) if entry <= left else (lines + 1, width - entry)
    return _ENTRY * lines


def _column(name: str) -> str:
    """A name in lines of about 13 characters, broken after the marks that join its parts."""
    return "<br>".join(style.lines(part, 13) for part in re.findall(r".{1,13}$|.{1,12}[:+/\s-]|.{13}", name))


def _size(row: _Row) -> str:
    n, clusters = row.size
    return f"n = {n:,} / {clusters:,}" if n else style.NA


def _counts(rows: Sequence[_Row]) -> str:
    total = sum(row.size[0] for row in rows)
    star = "" if all(row.ranked for row in rows) else "; * not ranked"
    return f"n = queries / clusters, {total:,} in all{star}"


def _words(row: _Row, name: str, cell: _Cell) -> str:
    head = f"<b>{style.plain(name)}</b><br>{style.plain(row.label)}<br>{mean_words(cell.estimate)}"
    if cell.value is None or cell.estimate is None:
        return f"{head}: {style.plain(cell.reason.removeprefix('N/A: '))}"
    rank = f"<br>rank {cell.rank}" if cell.rank else ""
    return f"{head}<br>n = {cell.estimate.n:,} queries / {cell.estimate.clusters:,} clusters{rank}"
