from __future__ import annotations

import base64
import json
import warnings
import zlib

import gradio as gr
import pytest
from PIL import Image

from core.media.frames import frame_of
from ui.viewer import SCRIPT, TEMPLATE, Item, face, step_of, viewer

EVIL = '</script><script>alert(1)</script> {{value}} ${alert(1)} `x` \\frac "quoted" <img src=x onerror=alert(1)>'
ITEMS = [Item("a", "First", "A caption", "Head · CT"), Item("b", EVIL, EVIL, EVIL)]


def red():
    return frame_of(Image.new("RGB", (3, 2), "red"))


def test_a_face_carries_words_of_all_and_pixels_of_one():
    shown = json.loads(
        face(ITEMS, 1, red(), query=frame_of(Image.new("RGB", (2, 2), "white")), labels=("Hit", "Query"))
    )
    assert [item["id"] for item in shown["items"]] == ["a", "b"]
    assert shown["items"][0] == {"id": "a", "title": "First", "caption": "A caption", "line": "Head · CT"}
    assert shown["at"] == 1 and shown["labels"] == ["Hit", "Query"] and shown["problem"] == ""
    assert zlib.decompress(base64.b64decode(shown["frame"]["data"])) == bytes([255, 0, 0] * 6)
    assert zlib.decompress(base64.b64decode(shown["compare"]["data"])) == bytes([255] * 4)


def test_a_face_without_pixels_says_why():
    shown = json.loads(face(ITEMS, 0, problem="The file is empty."))
    assert shown["frame"] is None and shown["compare"] is None and shown["problem"] == "The file is empty."
    assert json.loads(face([]))["items"] == []
    for at in (-1, 2):
        with pytest.raises(IndexError, match="among 2"):
            face(ITEMS, at)


def test_text_of_a_data_set_stays_text():
    value = face(ITEMS, problem=EVIL)
    assert "<" not in value
    assert json.loads(value)["items"][1]["title"] == EVIL and json.loads(value)["problem"] == EVIL
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # gr.HTML warns of tags that look like scripts
        assert viewer().postprocess(value) == value


def test_the_template_and_the_script_hold_no_data():
    component = viewer("pictures")
    assert component.html_template == TEMPLATE and component.value == "{}" and component.elem_id == "pictures"
    for sign in ("${", "{{", "`", 'id="'):  # ids would repeat: every tab has a viewer of its own
        assert sign not in TEMPLATE
    for way in ("innerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in SCRIPT
    assert "trigger('step'" in SCRIPT and callable(component.step)


@pytest.mark.parametrize(
    ("data", "index"),
    [
        ({"at": 1, "id": "b"}, 1),
        ({"at": 0, "id": "a"}, 0),
        ({"at": 0, "id": "b"}, None),
        ({"at": 2, "id": "b"}, None),
        ({"at": -1, "id": "b"}, None),
        ({"at": "1", "id": "b"}, None),
        ({"at": True, "id": "b"}, None),
        ({"at": 1.0, "id": "b"}, None),
        ({"at": 1}, None),
        ({}, None),
        ([1], None),
        (None, None),
    ],
)
def test_a_step_event_is_not_trusted(data, index):
    assert step_of(gr.EventData(None, data), ITEMS) == index
