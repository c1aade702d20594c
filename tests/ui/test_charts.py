"""Charts without a browser: what a value holds, what a click may say, and how plotly's code is served."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import plotly
import plotly.graph_objects as go
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from core.figures import style
from ui import charts
from ui.app import build, launch_options

EVIL = '</p><script>alert(1)</script>${x}{{y}}`"'


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=launch_options()["app_kwargs"]["routes"]))


def code() -> bytes:
    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()


def test_a_figure_travels_without_a_tag_and_unchanged():
    figure = go.Figure(go.Scatter(x=[1], y=[2], text=[EVIL]))
    sent = charts.to_json(figure)
    assert "<" not in sent and json.loads(sent) == json.loads(figure.to_json())


def test_labels_are_escaped_and_take_no_part_in_templates():
    html = charts.chart("c", 320, EVIL).html_template
    assert "<script" not in html and "${" not in html and "{{" not in html and "`" not in html
    assert 'role="img"' in html and "min-height:320px" in html and "tabindex" not in html


@pytest.mark.parametrize(
    "data", [None, "x", [], {}, {"customdata": None}, {"customdata": 3}, {"customdata": ""}, {"customdata": "x" * 1001}]
)
def test_damaged_clicks_name_nothing(event, data):
    assert charts.point_of(event(data)) is None


def test_a_click_names_its_mark(event):
    assert charts.point_of(event({"customdata": "Head\u001fChest"})) == "Head\u001fChest"


def test_the_code_is_that_of_the_wheel_packed_and_kept_for_good(client):
    packed = client.get(f"/{charts.SOURCE}", headers={"accept-encoding": "gzip, br"})
    assert packed.status_code == 200 and packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-type"].startswith("text/javascript")
    assert packed.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert packed.headers["vary"] == "Accept-Encoding" and int(packed.headers["content-length"]) < 1_700_000
    assert packed.content == code() == gzip.decompress(charts._sent(True))
    plain = client.get(f"/{charts.SOURCE}", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.content == code()
    assert charts._sent(True) is charts._sent(True), "packed once"
    assert plotly.__version__ in charts.SOURCE


def test_nothing_else_is_served_there(client):
    for path in ("", "x", "plotly.min.js", "../requirements.txt", f"{Path(charts.SOURCE).name}/../../app.py"):
        assert client.get(f"/vendor/{path}").status_code == 404, path
    for method in ("POST", "PUT", "DELETE"):
        assert client.request(method, f"/{charts.SOURCE}").status_code == 405


def test_every_colour_of_print_has_one_on_the_page(context):
    sheet = launch_options()["head"]
    inks = charts.chart("c", 1, "x").props["inks"]
    assert set(inks) == {style.INK, style.QUIET, style.LINE, style.PAPER, style.DEEP, style.TINT}
    assert all(f"{name}:" in sheet for name in inks.values())
    assert all("vendor/" not in str(b.value) for b in build(context).blocks.values() if hasattr(b, "value"))
