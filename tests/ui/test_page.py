"""The page without a browser: what it costs to import, what it exposes, what its callbacks do."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import gradio as gr
import pytest
from PIL import Image

from core.context import AppContext
from core.settings import Settings
from ui.app import build, launch_options
from ui.errors import explain
from ui.guard import DENIED, Guard
from ui.search.callbacks import LONGEST, Held, SearchPage
from ui.search.well import MAX_BYTES, bytes_of

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(toy, tmp_path) -> SearchPage:
    return SearchPage(AppContext(Settings((str(toy),), str(tmp_path / "workspace"), False)))


def png(size=(40, 30), colour="red") -> bytes:
    buffer = BytesIO()
    Image.new("RGB", size, colour).save(buffer, "PNG")
    return buffer.getvalue()


def event(data) -> gr.EventData:
    return gr.EventData(None, data)


def test_importing_the_app_loads_no_engine_and_launches_nothing():
    code = "import sys, app; print([m for m in ('torch', 'timm', 'transformers', 'hnswlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_core_never_imports_gradio_or_ui():
    import ast

    for path in (ROOT / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [n for n in names if n.split(".")[0] in ("gradio", "ui")], path


def test_no_endpoint_is_public_and_nothing_is_recorded(page):
    blocks = build(page.context)
    config = blocks.get_config_file()
    assert {d["api_visibility"] for d in config["dependencies"]} == {"private"}
    options = launch_options()
    assert options["run_history"] is False and options["enable_monitoring"] is False and options["share"] is False
    assert blocks.analytics_enabled is False


def test_choosing_data_and_task_fills_the_widgets(page):
    label = page.context.sources[1].label
    facts, tasks, _, applied = page.choose_data(label, None)
    assert "Toy" in facts and "CC0-1.0" in facts
    assert tasks.value == "query_to_image"
    domains, weight, queries, applied = page.choose_task(label, "query_to_image", applied)
    assert applied == (label, "query_to_image")
    assert domains.choices == [("Head (2)", "Head"), ("Thorax (2)", "Thorax")]
    assert 0 <= weight.value <= 1
    assert len(queries.choices) == 4 and "all 4" in queries.label


def test_a_data_set_that_is_not_there_is_said(tmp_path):
    page = SearchPage(AppContext(Settings((str(tmp_path / "absent"),), str(tmp_path / "w"), False)))
    facts, tasks, _, applied = page.choose_data("absent", None)
    assert page.choose_task("absent", None, applied)[3] == ("absent", None)
    assert "is not a folder" in facts and tasks.value is None
    _, message = page.search("absent", None, [], "x", 0.5, 10, False, Held())
    assert "Choose a data set" in message


def test_a_picture_is_decoded_reduced_and_held_without_its_file(page):
    face, held, query = page.take_picture(event({"b64": base64.b64encode(png((3000, 20))).decode()}))
    assert max(held.images[0].size) == LONGEST and held.query is None and query is None
    shown = json.loads(face)
    assert shown["src"].startswith("data:image/webp;base64,") and "3000 × 20" in shown["note"]
    assert held.images[0].info == {}


@pytest.mark.parametrize(
    "data", [None, {}, {"b64": 3}, {"b64": ""}, {"b64": "***"}, {"b64": base64.b64encode(b"text").decode()}]
)
def test_anything_else_than_a_picture_is_refused_in_words(page, data):
    face, held, _ = page.take_picture(event(data))
    assert held == Held() and json.loads(face)["src"] is None and len(json.loads(face)["note"]) > 10


def test_the_size_is_checked_before_decoding(monkeypatch):
    monkeypatch.setattr(base64, "b64decode", lambda *a, **k: pytest.fail("decoded first"))
    with pytest.raises(Exception, match="MiB"):
        bytes_of(event({"b64": "A" * (MAX_BYTES // 3 * 4 + 100)}))


def test_a_ready_query_brings_words_pictures_and_its_name(page):
    label = page.context.sources[1].label
    words, face, held = page.choose_query(label, "query_to_image/Head\na1")
    assert words == "a red square" and len(held.images) == 1 and held.query[1:] == ("query_to_image/Head", "a1")
    assert json.loads(face)["src"]
    words, face, held = page.choose_query(label, "query_to_image/Head\nnowhere")
    assert held == Held() and "not in the data set" in json.loads(face)["note"]


def test_search_gives_strip_and_marked_hits_and_errors_stay_on_the_page(page):
    label = page.context.sources[1].label
    _, _, held = page.choose_query(label, "query_to_image/Head\na1")
    strip, hits = page.search(label, "query_to_image", [], "a red square", 0.75, 10, False, held)
    assert "<strong>4</strong> documents" in strip and "medlite" in strip
    assert 'data-doc="a2"' in hits and 'data-doc="a1"' not in hits and "most relevant" in hits
    _, hits = page.search(label, "query_to_image", ["Thorax"], "blue", 0.5, 10, False, Held())
    assert 'data-collection="query_to_image/Thorax"' in hits and "/Head" not in hits
    for bad in (["Foot"],):
        _, message = page.search(label, "query_to_image", bad, "blue", 0.5, 10, False, Held())
        assert "there are: Head, Thorax" in message
    _, message = page.search(label, "query_to_image", [], "  ", 0.5, 10, False, None)
    assert "Give a picture, words, or both." in message


def test_a_dropdown_that_only_loses_the_focus_changes_nothing(page):
    label = page.context.sources[1].label
    skip = gr.skip()
    assert page.choose_data(label, (label, "summary")) == [skip] * 4
    assert page.choose_task(label, "summary", (label, "summary")) == [skip] * 4


def test_edited_words_are_not_marked_by_the_query_they_came_from(page):
    label = page.context.sources[1].label
    _, _, held = page.choose_query(label, "query_to_image/Head\na1")
    strip, hits = page.search(label, "query_to_image", [], "a knee", 0.75, 10, False, held)
    assert "m3-card" in hits and "m3-mark" not in hits and "were edited" in strip


def test_a_query_of_another_data_set_or_task_marks_nothing(page):
    label = page.context.sources[1].label
    _, _, held = page.choose_query(label, "query_to_image/Head\na1")
    _, hits = page.search(label, "visual_context", [], "a red square", 0.5, 10, False, held)
    assert "m3-card" in hits and "m3-mark" not in hits
    elsewhere = Held(held.images, ("another data_id", *held.query[1:]))
    _, hits = page.search(label, "query_to_image", [], "a red square", 0.5, 10, False, elsewhere)
    assert "m3-card" in hits and "m3-mark" not in hits


def test_unknown_errors_show_a_code_and_log_no_content(caplog):
    try:
        raise RuntimeError("patient Jane Doe")
    except RuntimeError as error:
        html = explain(error)
    code = html.split("code ")[1][:8]
    assert code in caplog.text and "Jane" not in caplog.text and "Jane" not in html


def test_the_full_check_is_shown(page):
    assert "4 distinct pictures opened" in page.check(page.context.sources[1].label)


def test_the_guard_denies_and_adds_headers():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    def ask(path):
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "path": path, "method": "GET", "headers": []}
        asyncio.run(Guard(app)(scope, None, send))
        return sent[0]["status"], dict(sent[0]["headers"])

    for name in DENIED:
        assert ask(f"/gradio_api/{name}")[0] == 404
        assert ask(f"/gradio_api//{name}/x")[0] == 404
    status, headers = ask("/")
    assert status == 200 and b"frame-ancestors" in headers[b"content-security-policy"]


@pytest.mark.parametrize(("name", "value"), [("M3R_WORKSPACE", "/proc/nowhere"), ("M3R_PUBLIC", "maybe")])
def test_a_bad_setting_ends_the_start_in_one_sentence(name, value):
    environment = {**os.environ, name: value}
    done = subprocess.run([sys.executable, "app.py"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith(f"Error: {name} is") and "Traceback" not in done.stderr
