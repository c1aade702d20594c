"""What the figures of two numbers say: every query under two models, quality and cost, published figures."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analyze.quality import COSTS, CostRow
from core.evaluate.published import Published
from core.evaluate.stats import Estimate
from core.figures import cost as figures
from core.figures import style
from core.figures.compare import faces, mean_words
from core.figures.cost import Point, at_mark, cost, mark_of, points, published, scatter
from core.figures.failures import SEPARATOR

EVIL = "<a href='x'>Head & Neck</a>"


def parts(figure) -> tuple[list[dict], dict]:
    read = json.loads(figure.to_json())
    return read["data"], read["layout"]


def row(
    model: str, mean: float, value: float | None, front: bool = False, reason: str = "", half: float = 0.05
) -> CostRow:
    ends = (None, None) if math.isnan(mean) else (mean - half, mean + half)
    return CostRow(model, Estimate(mean, *ends, 40, 12, ""), dict.fromkeys(COSTS, value), front, reason)


# Every query under two models


VALUES = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.sampled_from("123456")),
    st.sampled_from([0.0, 0.1, 0.1000004, 0.5, 1.0, math.nan]),
)


@given(VALUES, VALUES)
def test_points_are_the_common_queries_by_their_two_scores(a, b):
    found = points(a, b)
    seen = []
    for key in a:
        if key in b and a[key] == a[key] and b[key] == b[key]:
            seen.append((f"{b[key]:.3f}", f"{a[key]:.3f}", f"{key[0]}/{key[1]}"))
    told = [(*point.key.split(SEPARATOR), name) for point in found for name in point.names]
    assert sorted(told) == sorted(seen)
    for point in found:
        assert point.n == len(point.names) and list(point.names) == sorted(point.names)
        assert point.key == f"{point.x:.3f}{SEPARATOR}{point.y:.3f}" == mark_of(point.x, point.y)
        assert sorted("/".join(key) for key in at_mark(a, b, point.key)) == list(point.names)
    assert at_mark(a, b, "no such mark") == []
    assert len({point.key for point in found}) == len(found)
    assert [p.n for p in found] == sorted((p.n for p in found), reverse=True), "small ones lie on top"
    assert found == points(dict(reversed(a.items())), dict(reversed(b.items())))


def test_the_area_of_a_mark_is_its_number_of_queries():
    few = [Point(0, 0, 16, "k1", ("c/1",) * 16), Point(0.5, 1, 4, "k2", ("c/2",) * 4), Point(1, 0, 1, "k3", (EVIL,))]
    (line, marks), layout = parts(scatter(few, "medlite", "bm25", "Title", "nDCG@10"))
    big, middle, small = marks["marker"]["size"]
    assert big / middle == pytest.approx(2) and middle / small == pytest.approx(2) and small == pytest.approx(7)
    assert marks["x"] == [0, 0.5, 1] and marks["y"] == [0, 1, 0] and marks["customdata"] == ["k1", "k2", "k3"]
    assert line["x"] == line["y"] == [0, 1] and line["mode"] == "lines"
    assert (
        layout["xaxis"]["title"]["text"] == "nDCG@10, bm25" and layout["yaxis"]["title"]["text"] == "nDCG@10, medlite"
    )
    assert layout["title"]["subtitle"]["text"] == (
        "one mark for all queries with the same two scores, its area their number; 21 queries; above the line "
        "medlite is better"
    )
    assert layout["xaxis"]["range"] == layout["yaxis"]["range"] == [-0.04, 1.04]
    assert marks["hovertext"][1] == (
        "<b>4 queries</b><br>medlite: 1.000<br>bm25: 0.500<br>c/2<br>c/2<br>c/2<br>and 1 more"
    )
    assert marks["hovertext"][2].startswith("<b>1 query</b>") and "&lt;a href" in marks["hovertext"][2]


def test_marks_are_never_smaller_than_seven_pixels_nor_huge():
    points = [Point(0, 0, 5000, "k1", ("c/1",)), Point(1, 1, 1, "k2", ("c/2",))]
    sizes = parts(scatter(points, "a", "b", "T", "AP"))[0][1]["marker"]["size"]
    assert sizes[1] == 7 and 30 < sizes[0] < 50


# Quality and cost


NAMES = ["bm25", "medlite", "late"]
MADE = [row("bm25", 0.2, 0.5, True), row("medlite", 0.4, 40, True), row("late", 0.3, 100)]


def test_cost_is_on_a_log_scale_with_whiskers_and_the_front_as_steps():
    (front, marks), layout = parts(cost(MADE, "query_ms", faces(NAMES), "Title"))
    assert marks["x"] == [0.5, 40, 100] and marks["y"] == [0.2, 0.4, 0.3] and marks["customdata"] == NAMES
    assert layout["xaxis"]["type"] == "log" and layout["xaxis"]["title"]["text"] == "ms to encode a query, log scale"
    assert marks["error_y"]["array"] == [pytest.approx(0.05)] * 3 == marks["error_y"]["arrayminus"]
    assert front["x"] == [0.5, 40] and front["y"] == [0.2, 0.4] and front["line"]["shape"] == "hv"
    assert marks["text"] == NAMES and marks["mode"] == "markers+text"
    look = faces(NAMES)
    assert marks["marker"]["symbol"] == [look[name].symbol for name in NAMES]
    assert marks["marker"]["color"] == [look[name].colour for name in NAMES]
    low, high = layout["xaxis"]["range"]
    assert (
        low < math.log10(0.5)
        and high > 2
        and layout["yaxis"]["range"][0] <= 0.15
        and layout["yaxis"]["range"][1] > 0.45
    )
    assert layout["xaxis"]["ticktext"] == ["1", "10", "100"] and not layout.get("shapes")
    assert layout["title"]["subtitle"]["text"] == (
        "macro mean (0–1), 95 % interval, n = 40 queries / 12 clusters; line: Pareto front"
    )
    assert "on the Pareto front" in marks["hovertext"][0] and "Pareto" not in marks["hovertext"][2]


def test_what_costs_nothing_stands_in_a_column_of_its_own():
    rows = [row("bm25", 0.2, 0.0, True), row("medlite", 0.4, 91.0, True)]
    (front, marks), layout = parts(cost(rows, "model_mb", faces(NAMES), "Title"))
    ticks = dict(zip(layout["xaxis"]["ticktext"], layout["xaxis"]["tickvals"], strict=True))
    assert ticks["0"] == marks["x"][0] == front["x"][0] and marks["x"][1] == 91 and ticks["100"] == 100
    (rule,) = layout["shapes"]
    assert marks["x"][0] < rule["x0"] == rule["x1"] < 91 and rule["line"]["dash"] == "dot"
    assert all(value > rule["x0"] for text, value in ticks.items() if text != "0"), "no number in the column of 0"
    low, high = layout["xaxis"]["range"]
    assert low < math.log10(ticks["0"]) < math.log10(91) < high
    alone = parts(cost(rows[:1], "model_mb", faces(NAMES), "Title"))[1]
    assert alone["xaxis"]["ticktext"][0] == "0"


def test_what_has_no_cost_or_mean_is_counted_and_named_and_not_drawn():
    late = row("late", 0.3, None, reason="N/A: not measured yet (this makes it)")
    rows = [*MADE[:2], late, row("<i>", math.nan, 3.0), row("x", 0.1, math.nan)]
    traces, layout = parts(cost(rows, "query_ms", faces([r.model for r in rows]), "Title"))
    assert traces[1]["customdata"] == ["bm25", "medlite"]
    assert layout["title"]["subtitle"]["text"].endswith("; 3 not drawn: late, &lt;i&gt;, x")
    one = parts(cost([*MADE[:2], late], "query_ms", faces(NAMES), "Title"))[1]
    assert one["title"]["subtitle"]["text"].endswith("; 1 not drawn (not measured yet): late")
    one = parts(cost([row("a", math.nan, 3.0)], "query_ms", faces(["a"]), "Title"))[1]
    assert one["title"]["subtitle"]["text"].endswith("; 1 not drawn (no macro mean): a")
    assert "nan" not in json.dumps(traces).lower()
    assert parts(cost([], "query_ms", {}, "Title"))[0][1]["x"] == []


def test_labels_are_on_free_sides():
    apart = cost([row("a", 0.2, 1), row("b", 0.4, 10)], "query_ms", faces(["a", "b"]), "T")
    assert parts(apart)[0][1]["textposition"] == ["middle right", "middle right"]
    same = [row(name, 0.3, 10) for name in ("first model", "second model", "third model")]
    sides = parts(cost(same, "query_ms", faces([r.model for r in same]), "T"))[0][1]["textposition"]
    assert len(set(sides)) == 3
    # A long name at the right end stands on the left of its mark.
    edge = figures._sides(["x" * 20], [(0.99, 0.5, 0.99, 0.5)], [], 13, (960, 300))
    assert edge[0].endswith("left")
    # A line to the right is in the way of a name there.
    line = [(0.5, 0.5, 0.9, 0.5)]
    assert figures._sides(["abc"], [(0.5, 0.5, 0.5, 0.5)], line, 13, (960, 300)) != ["middle right"]


def test_long_names_are_cut_in_labels_only():
    name = "a name that nobody would give to a run of theirs"
    marks = parts(cost([row(name, 0.3, 5.0)], "query_ms", faces([name]), "T"))[0][1]
    assert marks["text"] == ["a name that nobody woul…"] and marks["customdata"] == [name]
    assert name in marks["hovertext"][0]


def test_names_and_costs_are_text():
    rows = [row(EVIL, 0.3, 5.0), row("b", math.nan, 1.0, reason=EVIL)]
    traces, layout = parts(cost(rows, "query_ms", faces([EVIL, "b"]), EVIL))
    traces[1].pop("customdata")
    assert "<a " not in json.dumps([traces, layout])


def test_narrow_cost_has_labels_of_its_own_places_and_a_short_axis_title():
    _, layout = parts(cost(MADE, "document_bytes", faces(NAMES), "T"))
    narrow = layout["meta"]["narrow"]
    assert len(narrow["traces"][1]["textposition"]) == 3 and narrow["layout"]["height"] > layout["height"] - style.HEAD
    assert narrow["layout"]["xaxis"]["title"]["text"] == "bytes of the index a document"
    # 20 letters fit on the right of a mark in the middle of 960 pixels, and not of 270.
    name = "a model of twenty-one"
    around = [row("l", 0.2, 1), row(name, 0.3, 10), row("r", 0.4, 20)]
    figure = parts(cost(around, "query_ms", faces(["l", name, "r"]), "T"))
    wide, small = figure[0][1], figure[1]["meta"]["narrow"]["traces"][1]
    assert wide["textposition"][1].endswith("right") and small["textposition"][1].endswith("left")


# Published figures


def fact(model: str, value: float | None) -> Published:
    return Published(model, model, "dense text", "summary", value, "", "")


FACTS = [fact("B", 0.2), fact("none", None), fact("A", 0.45), fact(EVIL, 0.0)]
OURS = {
    "medlite": (Estimate(0.3, 0.25, 0.62, 40, 12, ""), faces(["medlite"])["medlite"]),
    "lost": (Estimate(math.nan, None, None, 0, 0, ""), faces(["lost"])["lost"]),
    "bm25": (Estimate(0.35, None, None, 40, 12, ""), faces(["bm25"])["bm25"]),
}


def test_published_figures_are_hollow_and_ours_filled_below():
    (hollow, filled, gaps), layout = parts(published(FACTS, OURS, "Title"))
    assert hollow["customdata"] == ["A", "B", EVIL, "none"] and hollow["x"] == [0.45, 0.2, 0, None]
    assert filled["customdata"] == ["bm25", "medlite", "lost"] and filled["x"] == [0.35, 0.3, None]
    assert hollow["y"] == [0, 1, 2, 3] and filled["y"] == [4, 5, 6] and layout["yaxis"]["range"] == [6.5, -0.5]
    assert hollow["marker"]["color"] == style.PAPER and hollow["marker"]["line"] == {"color": style.INK, "width": 2}
    assert filled["marker"]["color"] == [OURS[name][1].colour for name in filled["customdata"]]
    assert filled["error_x"]["array"] == [None, pytest.approx(0.32), None] and "error_x" not in hollow
    assert gaps["y"] == [3, 6] and gaps["text"] == [" N/A ", " N/A "] and gaps["marker"]["pattern"]["shape"] == "/"
    assert (hollow["name"], filled["name"]) == ("published", "ours") and layout["showlegend"] is True
    assert layout["xaxis"]["range"] == [0, pytest.approx(0.7)]
    assert layout["yaxis"]["ticktext"][4:] == ["bm25 (ours)", "medlite (ours)", "lost (ours)"]
    subtitle = layout["title"]["subtitle"]["text"]
    assert "ours on this data set" in subtitle and "95 % interval" in subtitle and "n = 40 queries" in subtitle
    assert [s["y0"] for s in layout["shapes"]] == [3.5]


def test_published_names_are_text_and_empty_ones_draw_nothing():
    traces, layout = parts(published(FACTS, {EVIL: OURS["bm25"]}, EVIL))
    for trace in traces:
        trace.pop("customdata", None)
    assert "<a " not in json.dumps([traces, layout]) and "Head &amp; Neck" in json.dumps(layout)
    traces, layout = parts(published([], {}, "Title"))
    assert all(not trace.get("y") for trace in traces) and not layout.get("shapes")
    assert "nan" not in json.dumps(parts(published(FACTS, OURS, "T"))[0]).lower()


# What figures share


def test_a_subtitle_names_as_many_as_there_is_room_for():
    assert (
        style.with_names("below", [], "lost") == "below"
        and style.with_names("b", ["x", "y"], "lost") == "b; lost: x, y"
    )
    names = [f"model number {at}" for at in range(30)]
    long = style.with_names("below", names, "lost")
    shown = long.removeprefix("below; lost: ").split(" and ")[0].split(", ")
    assert shown == names[: len(shown)] and long.endswith(f" and {30 - len(shown)} more") and 100 < len(long) <= 165


def test_whiskers_reach_from_the_mean_to_the_ends_of_the_interval():
    estimates = [
        Estimate(0.5, 0.4, 0.7, 9, 3, ""),
        Estimate(0.5, None, None, 9, 1, ""),
        Estimate(math.nan, None, None, 0, 0, ""),
        None,
    ]
    made = style.whiskers(estimates)
    assert made["array"] == [pytest.approx(0.2), None, None, None]
    assert made["arrayminus"] == [pytest.approx(0.1), None, None, None] and made["symmetric"] is False


def test_a_mean_in_words():
    assert mean_words(Estimate(0.5, 0.4, 0.7, 9, 3, "")) == "0.500 (0.400–0.700)"
    assert mean_words(Estimate(0.5, None, None, 9, 1, "")) == "0.500"
    assert mean_words(Estimate(math.nan, None, None, 0, 0, "")) == mean_words(None) == "N/A"
