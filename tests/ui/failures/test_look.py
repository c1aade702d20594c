"""The viewer beside a case: which pictures it gets, and what stands beside them."""

from __future__ import annotations

import json

import pytest

from core.records import QueryError
from ui.failures.look import face_of, look

HEAD = "query_to_image/Head"


@pytest.fixture
def opened(context):
    """Opens a document, or the query itself, for a query of the clinic."""
    dataset = context.dataset("clinic")

    def open_(query: str, collection: str = HEAD, identity: str = "", own: bool = False):
        asked = dataset.collections[HEAD].query(query)
        face, view, state = look(dataset, context.cases(dataset), asked, collection, identity, own)
        return json.loads(face), view, state

    return open_


def test_a_document_opens_its_case_at_its_own_picture_beside_the_query(opened, context):
    face, view, state = opened("q1", HEAD, "d1b")
    assert [item["id"] for item in face["items"]] == ["images/c1a.png", "images/c1b.png"] and face["at"] == 1
    assert face["frame"] and face["compare"] and face["frame"] != face["compare"] and not face["step"]
    assert view.name == "C1" and state.data_id == context.dataset("clinic").data_id
    step = json.loads(face_of(context.dataset("clinic"), state, 0, step=True))
    assert step["at"] == 0 and step["step"] and step["frame"] == step["compare"] == face["compare"]


def test_the_query_itself_stands_alone_with_or_without_a_case(opened):
    face, view, _ = opened("q1", own=True)
    assert (
        view.name == "C1" and face["frame"] and face["compare"] is None and face["labels"][0] == "Picture of the query"
    )
    face, view, _ = opened("q5", own=True)
    assert view is None and [item["id"] for item in face["items"]] == ["images/c3.png"] and face["frame"]


def test_what_has_no_picture_or_lost_it_says_so(opened):
    face, view, _ = opened("q2", "visual_context/Head", "p3")
    assert face["items"] == [] and face["problem"] == "There is no picture here." and face["compare"] is None
    assert view.id == "p3"
    face, _, _ = opened("q4", HEAD, "d5")
    assert face["frame"] is None and "gone.png" in face["problem"] and face["compare"] is None


def test_a_document_that_is_not_there_is_refused(opened):
    for collection, identity in ((HEAD, "nothing"), ("nowhere", "d1b")):
        with pytest.raises(QueryError, match="not in the data set"):
            opened("q1", collection, identity)
