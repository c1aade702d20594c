"""A sheet made by hand, in which every text that can come from data wants to be code; and the tab's callbacks over the
runs that are shipped for the demo."""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from core.analyze.case import CaseSheet, Column, Gold, Kind, Line, Picture, SheetDoc, SheetQuery
from core.analyze.diagnosis import Diagnosis
from core.analyze.lists import Wanted
from core.analyze.notes import NoteStore
from core.context import AppContext
from core.settings import Settings
from ui.failures.state import Choice, Drafts, Listed
from ui.failures.tab import Failures

EVIL = "\"><script>alert(1)</script>${x}{{y}}'`\\frac"
URIS = tuple(f"data:image/webp;base64,PICTURE{i}=" for i in range(4))


def document(number: int, **changes) -> SheetDoc:
    values = {
        "collection": "query_to_image/Head",
        "id": f"d{number}",
        "title": "",
        "beginning": "",
        "picture": Picture(URIS[number]) if number < 3 else None,
        "pictures": 1,
        "domain": "Head",
        "facets": ("CT",),
        "judgement": "unjudged",
        "anew": "",
    }
    return SheetDoc(**(values | changes))


def column(label: str, lines: tuple[Line, ...], **changes) -> Column:
    values = {
        "label": label,
        "model_id": f"{label}-id",
        "revision": "r1",
        "colour": "#0072B2",
        "source": "",
        "run_ids": (f"{label}-run",),
        "depth": 1000,
        "reason": "",
        "value": 0.25,
        "first": 12,
        "failed": True,
        "kinds": (Kind("near miss", "first relevant document at rank 12", "A sentence."),),
        "lines": lines,
        "known": 20,
    }
    return Column(**(values | changes))


@pytest.fixture
def evil() -> str:
    return EVIL


@pytest.fixture
def uris() -> tuple[str, ...]:
    return URIS


@pytest.fixture
def case() -> CaseSheet:
    """Three models: the second has a document up, one new, one equal; the third was trained on the query. Documents 0
    to 2 have a picture; 3 has none and hostile text; 4 lost its picture."""
    shares = (0.5, -0.25)
    first = (Line(1, 0, 0.75, shares, 1), Line(2, 1, 0.5, None, 2), Line(3, 3, -0.0001, None, 3))
    second = (Line(1, 1, 9.5, None, 2), Line(2, 2, 8.0, None, None), Line(3, 3, 7.0, None, 3), Line(4, 0, 6, None, 1))
    return CaseSheet(
        query=SheetQuery(
            collection="query_to_image/Head",
            id=EVIL,
            task="Query to image",
            domain="Head",
            facets=("Head", EVIL),
            cluster=f"cluster:{EVIL}",
            text=f"words {EVIL}",
            pictures=(Picture(URIS[3]), Picture(None, f"lost {EVIL}")),
        ),
        at=2,
        of=1234,
        k=10,
        measure="nDCG@10",
        overlay="",
        documents=(
            document(0, judgement="relevant-2", anew="0"),
            document(1),
            document(2, judgement="not-relevant", pictures=3),
            document(3, id=EVIL, title=EVIL, beginning=EVIL, facets=(EVIL,), collection=EVIL, judgement="not-listed"),
            document(4, picture=Picture(None, f"broken {EVIL}"), judgement="relevant-1"),
        ),
        gold=(Gold(0, (1, 4, None)), Gold(4, (0, 1234, None))),
        columns=(
            column("medlite", first, kinds=(Kind("near miss", EVIL, EVIL), Kind("tie", "by half", "A sentence."))),
            column(EVIL, second, model_id=EVIL, revision=EVIL, source=EVIL, run_ids=(EVIL,), first=0),
            column("seen", (), reason=f"left out {EVIL}", value=None, first=0, failed=False, kinds=()),
        ),
    )


DEMO = "Demo library"
CHOICE = Choice(DEMO, "summary", "pool", "bm25", (), "modality", 10, "nDCG@10", False)


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> AppContext:
    """The demo with its shipped runs, opened once, in public mode: no test can leave notes in it."""
    return AppContext(Settings((), str(tmp_path_factory.mktemp("demo")), True))


@pytest.fixture
def tab(demo) -> Failures:
    """The callbacks in public mode."""
    return Failures(demo)


@pytest.fixture
def private(demo, tmp_path, monkeypatch) -> Failures:
    """The callbacks in private mode, with a file of notes of this test's own."""
    monkeypatch.setattr(demo, "notes", NoteStore(tmp_path / "notes.sqlite"))
    return Failures(demo)


@pytest.fixture
def choice():
    """What is chosen above the finding: failures of bm25 on the summaries of the demo; keyword arguments change it."""
    return lambda **changes: replace(CHOICE, **changes)


@pytest.fixture
def opened(event):
    """Opens the case at a place of the list: what was shown, and the list with that place."""

    def open_(tab: Failures, at: int = 0, chosen: Choice = CHOICE, session=None, author: str = "", drafts=None):
        _, listed = tab.list_queries(chosen, Wanted(), None)
        shown = tab.open_case(listed, drafts or Drafts(), author, session, event({"i": at}), "i")
        return shown, shown[1]

    return open_


@pytest.fixture
def note(event):
    """An event of the form below a case."""
    return lambda key, text, tags="": event({"collection": key[0], "id": key[1], "text": text, "tags": tags})


@pytest.fixture
def judgement(event):
    return lambda doc, grade: event({"collection": doc[0], "doc": doc[1], "grade": grade})


@pytest.fixture
def sent():
    """Name and bytes of a file for the browser."""

    def read(value: str) -> tuple[str, bytes]:
        found = json.loads(value)
        return found["name"], base64.b64decode(found["base64"])

    return read


@pytest.fixture
def read(demo):
    """What is kept: of a session, or in the file."""
    data_id = demo.dataset(DEMO).data_id
    return lambda session=None: (session or demo.notes).read(data_id)


@pytest.fixture
def first_hit():
    """The document that bm25 finds first for the open query."""

    def find(tab: Failures, listed: Listed) -> tuple[str, str]:
        desk = tab.context.desk(tab.context.dataset(DEMO))
        main = desk.diagnosis(next(one for one in desk.runs("summary", "pool")[0] if one.label == "bm25"))
        return main.hits(main.at(listed.keys[listed.at]))[0][0]

    return find


# The data sets that the tests of failure analysis write line by line; it is only here that two rooms share fixtures.
_spec = spec_from_file_location("studies", Path(__file__).parents[2] / "core" / "analyze" / "conftest.py")
_studies = module_from_spec(_spec)
sys.modules["studies"] = _studies  # its dataclasses look their module up
_spec.loader.exec_module(_studies)
new_study = _studies.new_study


@pytest.fixture(scope="session")
def hostile(new_study) -> Diagnosis:
    """A diagnosis in which ids, words and facets want to be code: 12 queries of a group that is ranked, 4 of two that
    are pooled. Query n finds its document at rank n + 1 if it is one of the first 12; the others find nothing."""
    study = new_study()
    for at in range(16):
        specialty = EVIL if at < 12 else f"{EVIL} {at % 2}"
        study.query(f"{EVIL} {at:02}", f"words {EVIL} {at}" if at else "", specialty=specialty, modality=EVIL)
        study.doc(f"{EVIL} d{at:02}", f"text {EVIL} {at}", specialty=specialty, modality=EVIL)
        study.judge(f"{EVIL} {at:02}", f"{EVIL} d{at:02}", 2)
        others = [f"{EVIL} d{i:02}" for i in range(16) if i != at]
        study.rank(f"{EVIL} {at:02}", [*others[:at], f"{EVIL} d{at:02}"] if at < 12 else others)
    dataset = study.open()
    study.store(dataset, EVIL)
    desk = study.desk(dataset)
    return desk.diagnosis(desk.runs(_studies.TASK)[0][0])
