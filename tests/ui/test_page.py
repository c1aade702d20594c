"""The page as a whole without a browser: what it costs to import, what it exposes and refuses, how it is wired."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
from html import unescape
from pathlib import Path

import gradio as gr
import pytest

from core.records import QueryError
from ui.app import TABS, build, launch_options
from ui.compare.state import Brought
from ui.errors import KNOWN, explain, message
from ui.failures.state import Drafts, Listed
from ui.guard import DENIED, Guard
from ui.search.state import Held, Opened

ROOT = Path(__file__).resolve().parents[2]
EVIL = '"><script>alert(1)</script>${x}{{y}}'


@pytest.fixture
def blocks(context) -> gr.Blocks:
    return build(context)


def wired(blocks: gr.Blocks, name: str, room: str = "ui.search"):
    """The events that run the function of this name in a room of the page."""
    own = [fn for fn in blocks.fns.values() if getattr(fn.fn, "__module__", "").startswith(room)]
    found = [fn for fn in own if fn.fn.__name__ == name]
    assert found, name
    return found


def test_importing_the_app_loads_no_engine_and_launches_nothing():
    engines = ("torch", "timm", "transformers", "hnswlib", "plotly")
    code = f"import sys, app; print([m for m in {engines} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_core_never_imports_gradio_or_ui():
    for path in (ROOT / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [n for n in names if n.split(".")[0] in ("gradio", "ui")], path


def test_no_endpoint_is_public_and_nothing_is_recorded(blocks):
    config = blocks.get_config_file()
    assert len(config["dependencies"]) > 20
    assert {d["api_visibility"] for d in config["dependencies"]} == {"private"}
    options = launch_options()
    assert options["run_history"] is False and options["enable_monitoring"] is False and options["share"] is False
    assert options["show_error"] is False and options["mcp_server"] is False and options["ssr_mode"] is False
    assert blocks.analytics_enabled is False and blocks.space_id is None


def test_what_a_session_holds_ends_and_starts_empty(blocks):
    states = [block for block in blocks.blocks.values() if isinstance(block, gr.State)]
    held = [s for s in states if s.value is not None]
    assert all(s.value in (Held(), Opened(), Listed(), Drafts(), Brought(), True) for s in held)
    assert all(s.time_to_live in (1800, 3600) for s in held)
    assert sum(isinstance(s.value, Held) for s in held) == 1


def test_every_callback_gives_as_many_values_as_it_is_wired_to(page, event, form, blocks):
    """What Gradio would only say at run time."""
    where, sent = ("clinic", "query_to_image", "medlite"), event({"collection": "query_to_image/Head", "id": "d1a"})
    query = event({"collection": "query_to_image/Head", "id": "q1"})
    gives = {
        "choose_data": page.query.choose_data("clinic", None),
        "choose_task": page.query.choose_task(*where, None),
        "choose_query": page.query.choose_query(*where, query),
        "random_query": page.query.random_query(*where),
        "take_picture": page.query.take_picture("clinic", "query_to_image", "", None, event({})),
        "remove_picture": page.query.remove_picture("clinic", "query_to_image"),
        "use_document": page.query.use_document("clinic", "query_to_image", sent),
        "model_state": page.query.model_state("medlite"),
        "search": page.results.search(form(words="red")),
        "search_like": page.results.search_like(form(), sent),
        "show_example": page.results.show_example(None, "clinic", "query_to_image", None, ""),
        "clear": page.results.clear("clinic", "query_to_image", ("toy", "x"), None, ""),
        "open_hit": page.results.open_hit("clinic", "", None, sent),
        "open_own": page.results.open_own("clinic", None),
    }
    for name, values in gives.items():
        for fn in wired(blocks, name):
            assert len(fn.outputs) == len(values), name
    for name in ("look", "step", "check_all", "example"):
        assert all(len(fn.outputs) == 1 for fn in wired(blocks, name))


def test_searches_queue_and_the_rest_answers_at_once(blocks):
    for name in ("search", "search_like", "check_all"):
        for fn in wired(blocks, name):
            assert fn.queue is not False and fn.concurrency_id == "engine", name
    for name in ("look", "open_hit", "open_own", "step", "choose_query", "take_picture", "use_document"):
        assert all(fn.queue is False for fn in wired(blocks, name)), name


def test_no_file_can_be_sent_to_the_page(blocks):
    kinds = {type(block) for block in blocks.blocks.values()}
    assert not kinds & {gr.File, gr.Image, gr.UploadButton, gr.Gallery, gr.ImageEditor}


def test_the_tabs_share_one_row_of_the_data_set(blocks):
    tabs = [b for b in blocks.blocks.values() if isinstance(b, gr.Tabs)]
    assert [(tab.id, tab.label) for tab in tabs[0].children] == list(TABS.items()) and len(tabs) == 1
    assert tabs[0].selected == "search" and tabs[0].overflow_behavior == "wrap"

    def tab_of(name: str) -> str | None:
        block = next(b for b in blocks.blocks.values() if getattr(b, "elem_id", None) == name)
        while block is not None and not isinstance(block, gr.Tab):
            block = block.parent
        return block.id if block else None

    assert [tab_of(name) for name in ("data", "facts", "check", "health", "router")] == [None] * 5
    assert [tab_of(name) for name in ("words", "go", "hits", "panel")] == ["search"] * 4


def test_a_workspace_that_is_elsewhere_is_said(context):
    from dataclasses import replace

    context.workspace = replace(context.workspace, note=f"The folder is {EVIL}")
    notes = [b.value for b in build(context).blocks.values() if getattr(b, "elem_id", None) == "workspace-note"]
    assert len(notes) == 1 and "&lt;script&gt;" in notes[0] and "<script" not in notes[0] and "${" not in notes[0]


def test_unknown_errors_show_a_code_and_log_no_content(caplog):
    try:
        raise RuntimeError("patient Jane Doe")
    except RuntimeError as error:
        html = explain(error)
    code = html.split("code ")[1][:8]
    assert code in caplog.text and "Jane" not in caplog.text and "Jane" not in html
    assert "RuntimeError" in caplog.text and "test_unknown_errors_show_a_code" in caplog.text


def test_known_errors_speak_for_themselves_and_are_escaped(caplog):
    html = explain(QueryError(EVIL))
    assert html == message(EVIL) and 'role="alert"' in html and caplog.text == ""
    assert "<script" not in html and "${" not in html and "{{" not in html and EVIL in unescape(html)
    assert len(KNOWN) == len(set(KNOWN)) and all(issubclass(kind, Exception) for kind in KNOWN)


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
    assert headers[b"referrer-policy"] == b"no-referrer"


@pytest.mark.parametrize(("name", "value"), [("M3R_WORKSPACE", "/proc/nowhere"), ("M3R_PUBLIC", "maybe")])
def test_a_bad_setting_ends_the_start_in_one_sentence(name, value):
    environment = {**os.environ, name: value}
    done = subprocess.run([sys.executable, "app.py"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith(f"Error: {name} is") and "Traceback" not in done.stderr
