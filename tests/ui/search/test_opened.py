"""The case that a hit, or a ready query, opens: panel, viewer, and what the session holds of it."""

from __future__ import annotations

import base64
import json
import zlib

import gradio as gr
import pytest
from PIL import Image

from ui.search.state import Held, Opened

HEAD = "query_to_image/Head"


def pixels(payload: dict) -> bytes:
    return zlib.decompress(base64.b64decode(payload["data"]))


def opened(page, event, collection: str, identity: str, words: str = "", mine: Held | None = None):
    sent = event({"collection": collection, "id": identity})
    head, face, body, state = page.results.open_hit("clinic", words, mine, sent)
    return head, json.loads(face), body, state


def test_a_hit_opens_its_case_at_its_own_picture_beside_the_query(page, event, clinic, ready):
    mine = ready()
    head, face, body, state = opened(page, event, HEAD, "d1b", "red lesion", mine)
    assert "Case C1" in head and "document d1b" in head and 'data-act="use"' in head
    assert [item["id"] for item in face["items"]] == ["images/c1a.png", "images/c1b.png"] and face["at"] == 1
    assert pixels(face["frame"]) == Image.open(clinic / "images" / "c1b.png").tobytes()
    assert pixels(face["compare"]) == Image.open(clinic / "images" / "c1a.png").tobytes()
    assert "The <mark>red</mark> <mark>lesion</mark> of case one." in body  # a text of another task
    assert state.data_id == page.context.dataset("clinic").data_id and state.query is mine.frame
    assert opened(page, event, HEAD, "d1b")[1]["compare"] is None


def test_a_case_without_pictures_and_a_missing_picture_are_said(page, event):
    _, face, body, state = opened(page, event, "visual_context/Head", "p3")
    assert face["items"] == [] and "no picture" in face["problem"] and state.pictures == ()
    assert "A passage of no case." in body
    _, face, _, state = opened(page, event, HEAD, "d5")
    assert len(face["items"]) == 1 and face["frame"] is None and "is in neither" in face["problem"]
    assert len(state.pictures) == 1


def test_a_hostile_case_is_shown_as_text(page, event):
    name = next(
        doc.id for doc in page.context.dataset("clinic").collections["visual_context/Head"].docs() if "<" in doc.id
    )
    sent = event({"collection": "visual_context/Head", "id": name})
    head, face, body, state = page.results.open_hit("clinic", "red", None, sent)
    for html in (head, face, body):
        assert "<script" not in html
    for html in (head, body):
        assert "&lt;script&gt;" in html and "${" not in html and "{{" not in html
    assert state.data_id


@pytest.mark.parametrize(
    ("label", "data", "said"),
    [
        ("clinic", {"collection": HEAD, "id": "gone"}, "This document is not in the data set. Search again."),
        ("clinic", {"collection": "gone", "id": "d1a"}, "This document is not in the data set. Search again."),
        ("clinic", {"collection": HEAD}, "The document's name arrived damaged. Search again."),
        ("clinic", None, "The document's name arrived damaged. Search again."),
        ("absent", {"collection": HEAD, "id": "d1a"}, "There is no data set 'absent' here."),
    ],
)
def test_a_hit_that_cannot_be_opened_is_one_sentence(page, event, label, data, said, sentence):
    head, face, body, state = page.results.open_hit(label, "", None, event(data))
    assert sentence(head) == said and json.loads(face)["items"] == [] and body == "" and state == Opened()


def test_the_viewer_steps_within_the_opened_case_only(page, event, clinic, toy, ready):
    state = opened(page, event, HEAD, "d1b", mine=ready("q0"))[3]
    face = json.loads(page.results.step("clinic", state, event({"at": 0, "id": "images/c1a.png"})))
    assert face["at"] == 0 and pixels(face["frame"]) == Image.open(clinic / "images" / "c1a.png").tobytes()
    assert pixels(face["compare"]) == Image.open(clinic / "images" / "c1b.png").tobytes()
    for data in ({"at": 0, "id": "images/c1b.png"}, {"at": 2, "id": "images/c1a.png"}, {"at": -1}, None):
        assert page.results.step("clinic", state, event(data)) == gr.skip()
    sent = event({"at": 0, "id": "images/c1a.png"})
    assert page.results.step("toy", state, sent) == gr.skip()
    assert page.results.step("clinic", None, sent) == gr.skip()


def test_a_step_after_a_data_set_that_cannot_be_read_was_chosen_changes_nothing(page, event):
    state = opened(page, event, HEAD, "d1b")[3]
    assert page.results.step("absent", state, event({"at": 0, "id": "images/c1a.png"})) == gr.skip()
    assert page.results.step("absent", None, event(None)) == gr.skip()


def test_the_own_case_of_a_ready_query_opens_without_a_comparison(page, event, ready):
    head, face, body, state = page.results.open_own("clinic", ready())
    assert "The query's own case: Case C1" in head and "data-act" not in head and "data-hit" not in head
    face = json.loads(face)
    assert [item["id"] for item in face["items"]] == ["images/c1a.png", "images/c1b.png"] and face["at"] == 0
    assert face["compare"] is None and state.query is None and "a red lesion" in body
    assert json.loads(page.results.open_own("clinic", ready("q0"))[1])["at"] == 1


def test_an_own_case_that_is_not_there_is_one_sentence(page, event, ready, sentence):
    mine = ready()
    for label, one, said in (
        ("clinic", None, "Choose a ready query of this data set first."),
        ("clinic", Held(), "Choose a ready query of this data set first."),
        ("toy", mine, "Choose a ready query of this data set first."),
        ("clinic", ready("q5"), "The data set names no case for query q5."),
    ):
        head, face, body, state = page.results.open_own(label, one)
        assert sentence(head) == said and json.loads(face)["items"] == [] and body == "" and state == Opened()
