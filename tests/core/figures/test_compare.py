"""What the figures of models by group say: faces, means, intervals, gaps, names, and their narrow form."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analyze.compare import Group, Standing
from core.evaluate.stats import Estimate
from core.figures import style
from core.figures.compare import bars, faces, heat
from core.figures.failures import SEPARATOR
from core.models.specs import SPECS

ROOT = Path(__file__).resolve().parents[3]
EVIL = "<a href='x'>Head & Neck</a>"
SHOWN = ["bm25", "medlite", "mine"]


def standing(name: str, mean: float, half: float | None = 0.05, n: int = 40, reason: str = "") -> Standing:
    known = half is not None and not math.isnan(mean)
    low, high = (mean - half, mean + half) if known else (None, None)
    rank = None if reason else (1, 2)
    return Standing(name, name, "1", ("r",), Estimate(mean, low, high, n, 12, "t"), rank, reason)


def absent(name: str) -> Standing:
    return standing(name, math.nan, None, 0, f"N/A: no queries of {EVIL}")


SMALL = "5 clusters: fewer than 10 are neither ranked nor tested"
GROUPS = [
    Group("Head", (standing("medlite", 0.4), standing("bm25", 0.25, None), standing("mine", 0.1)), ()),
    Group("Chest", (standing("bm25", 0.3, n=1200), absent("medlite")), ()),
    Group("other", (standing("mine", 0.52), standing("bm25", 0.2, reason=SMALL), absent("medlite")), (), SMALL, ("x",)),
]


def many(count: int) -> list[Group]:
    return [Group(f"group {at}", (standing("bm25", 0.01 * at), standing("medlite", 0.2)), ()) for at in range(count)]


def merged(one: dict, other: dict | None) -> dict:
    """What the page does with the narrow form: dictionaries are merged, everything else is replaced."""
    out = dict(one)
    for key, value in (other or {}).items():
        out[key] = merged(out.get(key) or {}, value) if isinstance(value, dict) else value
    return out


def parts(figure, narrow: bool = False) -> tuple[list[dict], dict]:
    """Traces and layout as the browser gets them, or as it draws them where there is little width."""
    read = json.loads(figure.to_json())
    traces, layout = read["data"], read["layout"]
    if narrow:
        changes = layout["meta"]["narrow"]
        traces = [
            merged(trace, changes["traces"][at] if at < len(changes["traces"]) else None)
            for at, trace in enumerate(traces)
        ]
        layout = merged(layout, changes["layout"])
    return traces, layout


def drawn(groups=GROUPS, shown=SHOWN, narrow: bool = False) -> tuple[list[dict], dict]:
    return parts(bars(groups, shown, faces(shown), "Title", "nDCG@10", "domain"), narrow)


def models(traces: list[dict]) -> dict[str, dict]:
    return {trace["name"]: trace for trace in traces if "name" in trace}


def gaps(traces: list[dict]) -> dict[str, dict]:
    return {trace["offsetgroup"]: trace for trace in traces if trace.get("text")}


def test_importing_figures_does_not_import_plotly():
    code = "import sys, core.figures.compare, core.figures.cost; print('plotly' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@given(st.lists(st.sampled_from([*SPECS, *(f"run {at}" for at in range(8))]), max_size=13))
def test_faces_tell_models_apart_and_keep_those_of_the_registry(names):
    found, alone = faces(names), faces(list(SPECS))
    assert list(found) == list(dict.fromkeys(names))
    assert sum(face.coloured for face in found.values()) <= 6
    for name, face in found.items():
        assert face.coloured == (face.colour != style.OTHERS)
        if name in SPECS:
            assert face == alone[name] and face.colour == SPECS[name].colour
    first = list(found.values())[:8]
    assert len({(face.colour, face.pattern) for face in first}) == len(first)
    if len(found) <= 8:
        assert len({face.pattern for face in first}) == len({face.symbol for face in first}) == len(first), "in print"


def test_the_first_model_without_a_spec_is_coloured_and_the_rest_are_grey():
    found = faces(["one", "bm25", "two", "three"])
    assert [found[name].colour for name in ("one", "two", "three")] == ["#7B61A8", style.OTHERS, style.OTHERS]
    assert found["two"].pattern != found["three"].pattern and found["two"].symbol != found["three"].symbol
    assert len({face.pattern for face in faces(list(SPECS)).values()}) == len(SPECS), "told apart in print"


def test_bars_have_one_trace_a_model_with_the_interval_as_whiskers():
    traces, layout = drawn()
    found = models(traces)
    assert list(found) == SHOWN
    bm25, medlite, mine = (found[name] for name in SHOWN)
    assert bm25["y"] == [0.25, 0.3, 0.2] and bm25["x"] == [0, 1, 2]
    assert medlite["y"] == [0.4, None, None] and mine["y"] == [0.1, None, 0.52]
    assert bm25["error_y"]["array"] == [None, pytest.approx(0.05), pytest.approx(0.05)]
    assert bm25["error_y"]["arrayminus"] == [None, pytest.approx(0.05), pytest.approx(0.05)]
    assert medlite["error_y"]["array"] == [pytest.approx(0.05), None, None]
    assert layout["yaxis"]["range"] == [0, pytest.approx(0.6 * 1.03)], "from 0 to beyond the highest whisker, 0.57"
    assert layout["barmode"] == "group" and layout["showlegend"] is True


def test_a_whisker_beyond_the_tenth_of_its_mean_is_on_the_axis():
    _, layout = drawn([Group("Head", (standing("bm25", 0.49, 0.2),), ())], ["bm25"])
    assert 0.69 < layout["yaxis"]["range"][1] < 0.75


def test_bars_have_fill_pattern_and_outline_of_their_model():
    found, look = models(drawn()[0]), faces(SHOWN)
    for name in SHOWN:
        marker = found[name]["marker"]
        assert marker["color"] == look[name].colour and marker["pattern"]["shape"] == look[name].pattern
        assert marker["line"] == {"color": style.INK, "width": 1}


def test_what_is_not_available_is_a_hatched_gap_in_the_place_of_its_model_and_never_zero():
    traces, layout = drawn()
    found = gaps(traces)
    assert found.keys() == {"medlite", "mine"}
    top = pytest.approx(0.6)
    assert found["medlite"]["x"] == [1, 2] and found["medlite"]["y"] == [top, top]
    assert found["mine"]["x"] == [1] and found["mine"]["text"] == ["N/A"]
    for name, gap in found.items():
        assert gap["marker"]["pattern"]["shape"] == "/" and gap["marker"]["color"] == style.PAPER
        assert gap["showlegend"] is False and gap["legendgroup"] == models(traces)[name]["legendgroup"]
        assert gap["offsetgroup"] == models(traces)[name]["offsetgroup"]
    assert found["medlite"]["customdata"] == [f"Chest{SEPARATOR}medlite", f"other{SEPARATOR}medlite"]
    assert "N/A: no stored run" in found["mine"]["hovertext"][0]
    assert all(value != 0 for trace in models(traces).values() for value in trace["y"])
    assert "nan" not in json.dumps([traces, layout]).lower()


def test_a_mean_of_zero_is_a_bar_and_no_gap():
    traces, _ = drawn([Group("Head", (standing("bm25", 0.0, 0.0),), ())], ["bm25"])
    assert models(traces)["bm25"]["y"] == [0] and not gaps(traces)


def test_a_model_without_any_value_is_named_and_not_drawn():
    traces, layout = drawn(shown=["bm25", "nowhere", EVIL])
    assert list(models(traces)) == ["bm25"] and not gaps(traces)
    subtitle = layout["title"]["subtitle"]["text"]
    assert "N/A everywhere: nowhere, &lt;a href" in subtitle


def test_clicks_and_pointing_name_group_and_model():
    bm25 = models(drawn()[0])["bm25"]
    assert bm25["customdata"] == [f"{name}{SEPARATOR}bm25" for name in ("Head", "Chest", "other")]
    assert (
        bm25["hovertext"][1]
        == "<b>bm25</b><br>Chest<br>0.300 (0.250–0.350)<br>n = 1,200 queries / 12 clusters<br>rank 1–2"
    )
    assert "rank" not in bm25["hovertext"][2] and bm25["hovertext"][0].count("–") == 1, "no interval, no words of one"


def test_groups_say_their_size_and_whether_they_are_ranked():
    _, layout = drawn()
    assert layout["xaxis"]["ticktext"] == ["Head<br>n = 40 / 12", "Chest<br>n = 1,200 / 12", "other*<br>n = 40 / 12"]
    subtitle = layout["title"]["subtitle"]["text"]
    assert subtitle == "mean nDCG@10 (0–1) by domain, 95 % interval; n = queries / clusters, 1,280 in all; * not ranked"
    _, layout = drawn(GROUPS[:2])
    assert "not ranked" not in layout["title"]["subtitle"]["text"]
    nobody = Group("empty", (absent("bm25"),), ())
    assert drawn([GROUPS[0], nobody])[1]["xaxis"]["ticktext"][1] == "empty<br>N/A"


def test_up_to_seven_groups_stand_and_more_lie_with_the_first_on_top():
    upright, _ = drawn(many(7), ["bm25", "medlite"])
    assert all(trace.get("orientation", "v") == "v" for trace in upright)
    lying, layout = drawn(many(8), ["bm25", "medlite"])
    assert all(trace["orientation"] == "h" for trace in lying)
    assert lying[0]["y"] == list(range(8)) and lying[0]["x"][3] == pytest.approx(0.03)
    assert layout["yaxis"]["range"] == [7.5, -0.5] and layout["yaxis"]["ticktext"][0].startswith("group 0<br>")
    _, taller = drawn(many(16), ["bm25", "medlite"])
    assert taller["height"] - layout["height"] == 8 * 42, "rows as tall as their labels"
    names = [f"m{at}" for at in range(8)]
    crowd = [Group(f"g{at}", tuple(standing(name, 0.3) for name in names), ()) for at in range(20)]
    heights = [drawn(crowd[:n], names)[1]["height"] for n in (10, 20)]
    assert heights[1] - heights[0] == 10 * (12 * 8 + 14), "12 pixels a bar"


@pytest.mark.parametrize("groups", [GROUPS, many(9)])
def test_narrow_bars_lie_with_the_same_values(groups):
    wide, _ = drawn(groups)
    traces, layout = drawn(groups, narrow=True)
    along = "y" if len(groups) <= 7 else "x"
    for before, after in zip(wide, traces, strict=True):
        assert (
            after["orientation"] == "h"
            and after["x"] == before[along]
            and after["y"] == before["x" if along == "y" else "y"]
        )
        assert after.get("customdata") == before.get("customdata")
        if "name" in after:
            assert after["error_x"]["array"] == before[f"error_{along}"]["array"]
            assert after["error_y"]["visible"] is False and after["error_x"]["visible"] is True
    assert layout["yaxis"]["range"] == [len(groups) - 0.5, -0.5] and layout["xaxis"]["range"][0] == 0
    assert layout["yaxis"]["tickvals"] == list(range(len(groups))) and layout["yaxis"]["tickmode"] == "array"
    assert layout["xaxis"]["tickmode"] == "linear", "no ticks of the groups are left on the other axis"
    assert layout["yaxis"]["title"]["text"] == "" and layout["xaxis"]["title"]["text"] == "mean nDCG@10"


@pytest.mark.parametrize(("mean", "wide", "narrow"), [(0.15, 0.05, 0.05), (0.45, 0.1, 0.1), (0.8, 0.1, 0.2)])
def test_ticks_have_room(mean, wide, narrow):
    groups = [Group("Head", (standing("bm25", mean),), ())]
    assert drawn(groups, ["bm25"])[1]["yaxis"]["dtick"] == wide
    assert drawn(groups, ["bm25"], narrow=True)[1]["xaxis"]["dtick"] == narrow


def test_names_are_text_in_every_label():
    group = Group(EVIL, (standing(EVIL, 0.2), absent("bm25")), ())
    look = faces([EVIL, "bm25"])
    for figure in (
        bars([group, GROUPS[0]], [EVIL, "bm25"], look, EVIL, EVIL, EVIL),
        heat([group, GROUPS[0]], [EVIL, "bm25"], EVIL, EVIL, EVIL),
    ):
        read = parts(figure)
        for trace in read[0]:
            for raw in ("customdata", "offsetgroup", "legendgroup"):
                trace.pop(raw, None)
        assert "<a " not in json.dumps(read) and "&lt;a " in json.dumps(read)


def heated(narrow: bool = False, shown=SHOWN) -> tuple[list[dict], dict]:
    return parts(heat(GROUPS, shown, "Title", "nDCG@10", "specialty"), narrow)


def test_heat_shows_means_as_colour_and_number():
    (cells, _), layout = heated()
    assert cells["z"] == [[0.25, 0.4, 0.1], [0.3, None, None], [0.2, None, 0.52]]
    assert cells["text"] == [["0.250", "0.400", "0.100"], ["0.300", "", ""], ["0.200", "", "0.520"]]
    assert cells["customdata"][2][0] == f"other{SEPARATOR}bm25"
    assert (cells["zmin"], cells["zmax"]) == (0, pytest.approx(0.6))
    assert cells["colorscale"] == [[0, style.PAPER], [1, style.TINT]] and cells["textfont"]["color"] == style.INK
    assert layout["yaxis"]["range"] == [2.5, -0.5] and layout["xaxis"]["ticktext"] == SHOWN
    assert layout["yaxis"]["ticktext"] == ["Head  (n = 40 / 12)", "Chest  (n = 1,200 / 12)", "other*  (n = 40 / 12)"]
    assert "95 % interval" in layout["title"]["subtitle"]["text"] and "0.400 (0.350–0.450)" in cells["hovertext"][0][1]


def test_cells_that_are_not_available_are_hatched_with_the_letters():
    (cells, hatched), _ = heated()
    assert list(zip(hatched["y"], hatched["base"], hatched["x"], strict=True)) == [
        (1, 0.5, 1),
        (1, 1.5, 1),
        (2, 0.5, 1),
    ]
    assert hatched["text"] == ["N/A"] * 3 and hatched["marker"]["pattern"]["shape"] == "/"
    assert hatched["customdata"] == [cells["customdata"][i][j] for i, j in ((1, 1), (1, 2), (2, 1))]
    assert "N/A: no queries of &lt;a" in hatched["hovertext"][0]


def test_narrow_heat_has_short_numbers_or_none_and_names_upright():
    (cells, hatched), layout = heated(narrow=True)
    assert cells["text"][0] == [".25", ".40", ".10"] and cells["texttemplate"] == "%{text}" and not cells["showscale"]
    assert layout["xaxis"]["tickangle"] == -90 and layout["yaxis"]["ticktext"][0] == "Head<br>n = 40 / 12"
    assert hatched["text"] == ["N/A"] * 3
    names = [f"run {at}" for at in range(7)]
    figure = heat([Group("Head", tuple(standing(name, 0.3) for name in names), ())], names, "T", "AP", "domain")
    assert parts(figure, narrow=True)[0][0]["texttemplate"] == ""


def test_long_names_of_columns_break_after_what_joins_their_parts():
    name = "rrf:bm25+medlite"
    figure = heat([Group("Head", (standing(name, 0.3),), ())], [name], "T", "AP", "domain")
    assert parts(figure)[1]["xaxis"]["ticktext"] == ["rrf:bm25+<br>medlite"]


def test_long_names_are_cut_in_labels_that_cannot_break_and_whole_where_they_are_keys():
    name = "a name that nobody would give to a run of theirs"
    group = Group("Head", (standing(name, 0.3),), ())
    (bar,), _ = parts(bars([group], [name], faces([name]), "T", "AP", "domain"))
    assert bar["name"] == "a name that nobody woul…" and bar["customdata"] == [f"Head{SEPARATOR}{name}"]
    assert name in bar["hovertext"][0] and bar["offsetgroup"] == name
    _, layout = parts(heat([group], [name], "T", "AP", "domain"), narrow=True)
    assert layout["xaxis"]["ticktext"] == ["a name that nobody woul…"]


def test_no_groups_and_no_models_give_figures_without_marks():
    for figure in (
        bars([], SHOWN, faces(SHOWN), "T", "AP", "domain"),
        bars(GROUPS, [], {}, "T", "AP", "domain"),
        heat([], SHOWN, "T", "AP", "domain"),
        heat(GROUPS, [], "T", "AP", "domain"),
    ):
        assert all(not any(trace.get("x") or []) for trace in parts(figure)[0])
        parts(figure, narrow=True)
