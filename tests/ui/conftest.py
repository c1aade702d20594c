"""Shared by the tests of the page: a small clinic of cases, and the page's callbacks over it with the toy encoder."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from core.context import AppContext
from core.models import specs
from core.settings import Settings
from ui.search import chips
from ui.search.query import QuerySide
from ui.search.results import Form, Results
from ui.search.state import Held

HOSTILE = '"><script>alert(1)</script>${x}{{y}}'


def textured(seed: int, tint: tuple[float, float, float]) -> Image.Image:
    """A picture with a look of its own in one colour."""
    noise = np.random.default_rng(seed).integers(60, 250, (6, 8)).astype(np.uint8)
    grey = Image.fromarray(noise).resize((64, 48), Image.Resampling.BICUBIC)
    return Image.merge("RGB", [grey.point(lambda v, t=t: int(v * t)) for t in tint])


@pytest.fixture
def clinic(tmp_path: Path, collection_writer) -> Path:
    """Two tasks. Case C1 has two pictures, one text and three queries; C2 looks like C1's first picture; the picture
    of C5 is missing; the case of a passage has a hostile name."""
    root = tmp_path / "clinic"
    (root / "images").mkdir(parents=True)
    first = textured(1, (1, 0.1, 0.1))
    pictures = {
        "c1a": first,
        "c1b": textured(2, (0.1, 0.1, 1)),
        "c2": first.point(lambda v: min(255, v + 2)),
        "c3": textured(3, (0.1, 1, 0.1)),
        "c6": textured(6, (1, 1, 0.1)),
    }
    for name, image in pictures.items():
        image.save(root / "images" / f"{name}.png")

    def meta(domain: str, case: str | None, modality: str = "CT") -> dict:
        return {"domain": domain, "specialty": f"{domain} imaging", "modality": modality} | (
            {"case": case} if case else {}
        )

    def query(name: str, caption: str, picture: str | list | None, case: str | None) -> dict:
        pictures = {"image_path": picture} if picture else {}
        return {"_id": name, "caption": caption, "meta": meta("Head", case), **pictures}

    head = [
        {"_id": "d1a", "text": "", "image_path": "images/c1a.png", "meta": meta("Head", "C1")},
        {"_id": "d1b", "text": "", "image_path": "images/c1b.png", "meta": meta("Head", "C1", "MR")},
        {"_id": "d2", "text": "", "image_path": "images/c2.png", "meta": meta("Head", "C2")},
        {"_id": "d3", "text": "", "image_path": "images/c3.png", "meta": meta("Head", "C3", "MR")},
        {"_id": "d5", "text": "its picture is lost", "image_path": "images/gone.png", "meta": meta("Head", "C5")},
    ]
    queries = [
        query("q0", "", "images/c1b.png", "C1"),
        query("q1", "a red lesion", "images/c1a.png", "C1"),
        query("q2", "only words", None, "C2"),
        query("q3", "two pictures", ["images/c1a.png", "images/c1b.png"], "C1"),
        query("q4", "lost picture", "images/gone.png", "C5"),
        query("q5", "no case", "images/c3.png", None),
    ]
    judged = [("q1", "d1a", 0), ("q1", "d1b", 2), ("q1", "d3", 1), ("q0", "d3", 0)]
    collection_writer(root / "query_to_image" / "Head", queries, head, judged)
    thorax = [{"_id": "d1a", "text": "", "image_path": "images/c6.png", "meta": meta("Thorax", "C6")}]
    collection_writer(root / "query_to_image" / "Thorax", [], thorax, [])
    passages = [
        {"_id": "p1", "title": "C1", "text": "The red lesion of case one.", "meta": meta("Head", "C1")},
        {"_id": HOSTILE, "title": HOSTILE, "text": f"red {HOSTILE}", "meta": meta("Head", HOSTILE)},
        {"_id": "p3", "title": "", "text": "A passage of no case.", "meta": meta("Head", None)},
    ]
    collection_writer(root / "visual_context" / "Head", queries[1:2], passages, [("q1", "p1", 1)])
    (root / "benchmark.json").write_text(json.dumps({"name": "Clinic", "licence": "CC0-1.0"}))
    return root


@pytest.fixture
def context(clinic, toy, tmp_path, encoder, monkeypatch) -> AppContext:
    """The data sets "clinic" and "toy"; every model of the table is the toy encoder."""
    monkeypatch.setattr(specs, "load", lambda name, device=None: specs.get(name) and encoder)
    return AppContext(Settings((str(clinic), str(toy)), str(tmp_path / "workspace"), False))


@pytest.fixture
def page(context) -> SimpleNamespace:
    """The callbacks of both sides."""
    query = QuerySide(context)
    return SimpleNamespace(query=query, results=Results(context, query), context=context)


@pytest.fixture
def form():
    """A search form of the clinic; keyword arguments change it. ``chosen`` are the filters."""
    blank = Form("clinic", "query_to_image", "medlite", "{}", "", 1.0, 10, True, True, True, None)

    def make(chosen: dict | None = None, **changes) -> Form:
        values = {name: dict.fromkeys(wanted, 1) for name, wanted in (chosen or {}).items()}
        return replace(blank, **({"filters": chips.face(values, chosen)} if chosen else {}), **changes)

    return make


@pytest.fixture
def event():
    """An event of the browser with this data."""
    return lambda data: gr.EventData(None, data)


@pytest.fixture
def ready(page, event):
    """What a session of the clinic holds after a ready query was chosen."""

    def choose(name: str = "q1") -> Held:
        sent = event({"collection": "query_to_image/Head", "id": name})
        return page.query.choose_query("clinic", "query_to_image", "medlite", sent)[2]

    return choose


@pytest.fixture
def sentence():
    """The one sentence of a message that takes the place of hits or of the panel."""

    def read(html: str) -> str:
        found = re.fullmatch(r'<div class="m3-message" role="alert"><p>(.*)</p></div>(?:<!-- [0-9a-f]{8} -->)?', html)
        assert found, html
        return unescape(found[1])

    return read


@pytest.fixture
def trained_card(tmp_path: Path):
    """Makes the folder of a model card that names these picture files as training data."""

    def make(*files: Path) -> Path:
        folder = tmp_path / "card"
        folder.mkdir()
        pictures = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
        (folder / "training_cases.json").write_text(json.dumps({"somewhere": {"pictures": pictures}}))
        return folder

    return make


@pytest.fixture
def events_of():
    """The events of a page that run Python of this package."""
    return lambda blocks, package: [
        fn for fn in blocks.fns.values() if getattr(fn.fn, "__module__", "").startswith(package)
    ]


@pytest.fixture
def named():
    """Those of these events that run the function of a name; there must be one."""

    def find(events: list, name: str) -> list:
        found = [fn for fn in events if fn.fn.__name__ == name]
        assert found, name
        return found

    return find


@pytest.fixture
def requests_to():
    """Makes raw requests of browser sessions to a page: status and answer of the event of this number."""

    def to(blocks: gr.Blocks):
        blocks.show_error = False
        client = TestClient(gr.routes.App.create_app(blocks), raise_server_exceptions=False)

        def send(number: int, data: list, event: object = None, session: str = "s"):
            body = {"fn_index": number, "data": data, "event_data": event, "session_hash": session}
            answer = client.post("/gradio_api/run/predict", json=body)
            return answer.status_code, answer.json()

        return send

    return to
