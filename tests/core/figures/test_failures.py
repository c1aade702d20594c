"""What the figures of failures say: positions, intervals, names, hollow marks, gaps."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from core.analyze.slices import Confusion, Group, KindRow
from core.evaluate.stats import Estimate
from core.figures import failures, style

ROOT = Path(__file__).resolve().parents[3]
EVIL = "<a href='x'>Head & Neck</a>"


def group(name: str, mean: float, low: float | None, high: float | None, n: int = 100, pooled: bool = False) -> Group:
    rate = Estimate(mean, low, high, n, 12, "percentile bootstrap")
    return Group(name, pooled, n, 12, 40, rate, rate, "near miss", 0.5, 0.1, ("a", "b") if pooled else ())


GROUPS = [
    group("Head", 0.4, 0.3, 0.45),
    group("other", 0.1, 0.05, 0.2, pooled=True),
    group("Chest", math.nan, None, None, n=1),
    group(EVIL, 0.25, None, None, n=1200),
]


def parts(figure) -> tuple[list[dict], dict]:
    """Traces and layout as the browser gets them."""
    read = json.loads(figure.to_json())
    return read["data"], read["layout"]


def gaps(traces: list[dict]) -> dict:
    return next(t for t in traces if t["type"] == "bar")


def test_importing_figures_does_not_import_plotly():
    code = "import sys, core.figures.failures; print('plotly' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_rates_keep_the_order_with_the_pooled_row_hollow_and_last():
    traces, layout = parts(failures.rates(GROUPS, "Title", 10, "#E69F00"))
    dots = traces[0]
    assert dots["customdata"] == ["Head", "Chest", EVIL, "other"] and dots["y"] == [0, 1, 2, 3]
    assert layout["yaxis"]["range"] == [3.5, -0.5], "the first row is on top"
    assert dots["marker"]["color"] == ["#E69F00", "#E69F00", "#E69F00", style.PAPER]
    assert dots["marker"]["line"]["width"] == [1, 1, 1, 2] and dots["marker"]["line"]["color"] == style.INK


def test_rates_are_percentages_with_the_interval_as_whiskers():
    traces, layout = parts(failures.rates(GROUPS, "Title", 5, "#E69F00"))
    dots = traces[0]
    assert dots["x"] == [pytest.approx(40), None, pytest.approx(25), pytest.approx(10)]
    above, below = dots["error_x"]["array"], dots["error_x"]["arrayminus"]
    assert above == [pytest.approx(5), None, None, pytest.approx(10)]
    assert below == [pytest.approx(10), None, None, pytest.approx(5)]
    assert layout["xaxis"]["range"] == [0, 50]
    assert layout["xaxis"]["title"]["text"] == "share of queries without a relevant document in the first 5 (%)"


def test_a_rate_that_is_not_available_is_a_hatched_gap_and_never_zero():
    traces, _ = parts(failures.rates(GROUPS, "Title", 10, "#E69F00"))
    bar = gaps(traces)
    assert bar["y"] == [1] and bar["text"] == [" N/A "] and bar["base"] == [0] and bar["x"] == [50]
    assert bar["marker"]["pattern"]["shape"] == "/" and bar["marker"]["color"] == style.PAPER
    assert "N/A" in traces[0]["hovertext"][1] and "nan" not in json.dumps(traces).lower()


def test_every_rate_says_its_n_beside_the_row_or_below_the_name_where_it_is_narrow():
    _, layout = parts(failures.rates(GROUPS, "Title", 10, "#E69F00"))
    assert [(a["y"], a["text"]) for a in layout["annotations"]] == [
        (0, "n = 100 queries / 12 clusters"),
        (1, "n = 1 query / 12 clusters"),
        (2, "n = 1,200 queries / 12 clusters"),
        (3, "n = 100 queries / 12 clusters"),
    ]
    small = layout["meta"]["narrow"]["layout"]
    assert small["annotations"] == [] and small["yaxis"]["ticktext"][0] == "Head<br>n = 100 / 12"
    assert (
        "1,401 queries" in layout["title"]["subtitle"]["text"]
        and "95 % interval" in layout["title"]["subtitle"]["text"]
    )


def test_names_are_text_in_every_label():
    rates = failures.rates(GROUPS, EVIL, 10, "#E69F00")
    rows = [KindRow(EVIL, "cause", "", 1, 0.5, 0.5, ""), KindRow("b", "cause", "", 0, None, None, EVIL)]
    cells = Confusion("specialty", (EVIL, "b"), ((1, 0), (0, 0)), 1, 0)
    for figure in (rates, failures.kinds(rows, EVIL), failures.confusion(cells, EVIL)):
        traces, layout = parts(figure)
        for trace in traces:
            trace.pop("customdata", None)
        assert "<a " not in json.dumps([traces, layout]) and "Head &amp; Neck" in json.dumps([traces, layout])


def test_confusion_shows_shares_of_rows_and_counts():
    counts = ((6, 2, 0), (0, 0, 0), (1, 0, 3))
    traces, layout = parts(failures.confusion(Confusion("specialty", ("A", "B", "C"), counts, 12, 5), "Title"))
    cells = traces[0]
    assert cells["z"] == [[75, 25, 0], [None, None, None], [25, 0, 75]]
    assert cells["text"] == [["6", "2", ""], ["", "", ""], ["1", "", "3"]]
    assert cells["customdata"][0][1] == "A\u001fB" and cells["customdata"][2][0] == "C\u001fA"
    assert cells["colorscale"] == [[0, style.PAPER], [1, style.TINT]] and (cells["zmin"], cells["zmax"]) == (0, 100)
    assert gaps(traces)["y"] == [1], "a row without queries is a gap"
    assert [(s["x0"], s["y0"]) for s in layout["shapes"]] == [(-0.5, -0.5), (1.5, 1.5)]
    assert layout["yaxis"]["ticktext"] == ["A  1", "B  2", "C  3"] and layout["xaxis"]["ticktext"] == ["1", "2", "3"]
    assert "12 queries; 5 queries left out" in layout["title"]["subtitle"]["text"]
    assert "1 of 4 queries, 25.0 %" in cells["hovertext"][2][0]


def test_kinds_pair_failures_filled_with_the_others_hollow():
    rows = [
        KindRow("near miss", "depth", "", 30, 0.6, 0.1, ""),
        KindRow("picture hurts", "cause", "", 0, None, None, "words only"),
        KindRow("tie", "cause", "", 2, 0.04, None, ""),
    ]
    traces, layout = parts(failures.kinds(rows, "Title"))
    between, others, failed = traces[:3]
    assert failed["name"] == "among failures" and failed["x"] == [60, None, 4]
    assert others["name"] == "among the other queries" and others["x"] == [10, None, None]
    assert failed["marker"]["color"] == style.INK and others["marker"]["color"] == style.PAPER
    assert failed["customdata"] == others["customdata"] == ["near miss", "picture hurts", "tie"]
    assert between["x"] == [60, 10, None] and between["y"] == [0, 0, None] and between["mode"] == "lines"
    assert gaps(traces)["y"] == [1] and "words only" in failed["hovertext"][1]
    assert layout["showlegend"] is True and layout["yaxis"]["ticktext"] == ["near miss", "picture hurts", "tie"]


@pytest.mark.parametrize(("values", "end"), [([], 10), ([9.9], 10), ([10], 20), ([61.2, 3], 70), ([100], 100)])
def test_an_axis_of_percentages_ends_at_the_next_ten(values, end):
    assert style.upper_end(values) == end


def test_empty_tables_give_figures_without_rows():
    for figure in (
        failures.rates([], "Title", 10, "#E69F00"),
        failures.kinds([], "Title"),
        failures.confusion(Confusion("domain", (), (), 0, 0), "Title"),
    ):
        assert all(not trace.get("y") for trace in parts(figure)[0])


def test_long_labels_get_the_room_of_their_lines():
    assert style.lines("Musculoskeletal imaging", 16) == "Musculoskeletal<br>imaging"
    assert style.lines("x" * 40, 20).count("<br>") == 1 and style.lines("", 9) == ""
    assert style.tall(["a", "b"], 34) == 68 and style.tall(["a<br>b<br>c", "d"], 34) == 2 * (3 * 17 + 8)
