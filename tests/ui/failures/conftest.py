"""A sheet made by hand, in which every text that can come from data wants to be code."""

from __future__ import annotations

import pytest

from core.analyze.case import CaseSheet, Column, Gold, Kind, Line, Picture, SheetDoc, SheetQuery

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
