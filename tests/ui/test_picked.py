"""A file that a visitor chooses: its bytes come out of the event as they are, or a sentence does."""

from __future__ import annotations

import base64

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.picked import LONGEST, bytes_of, picked


def sent(data: object) -> gr.EventData:
    return gr.EventData(None, data)


@given(st.binary(max_size=300), st.text(max_size=20))
def test_bytes_and_name_arrive_as_they_are(data, name):
    event = sent({"b64": base64.b64encode(data).decode(), "name": name})
    assert bytes_of(event, 300) == (data, name)


def test_a_file_of_just_the_limit_is_taken_and_a_larger_one_refused():
    most = 3 << 20
    event = sent({"b64": base64.b64encode(bytes(most)).decode(), "name": "n" * 500})
    data, name = bytes_of(event, most)
    assert len(data) == most and name == "n" * LONGEST
    with pytest.raises(ValueError, match="more than 3 MiB; choose a smaller one"):
        bytes_of(sent({"b64": base64.b64encode(bytes(most + 3)).decode(), "name": "x"}), most)


@pytest.mark.parametrize("data", [None, [], "b64", {}, {"b64": "QQ=="}, {"name": "x"}, {"b64": b"QQ==", "name": "x"}])
def test_no_file_is_said(data):
    with pytest.raises(ValueError, match="No file arrived"):
        bytes_of(sent(data))


@pytest.mark.parametrize("text", ["QQ", "Q Q==", "QQ==\n", "QQ==QQ==", "ä===", "\ud800", "=", "_-A="])
def test_a_damaged_file_is_said(text):
    with pytest.raises(ValueError, match="arrived damaged"):
        bytes_of(sent({"b64": text, "name": "x"}))


def test_the_button_is_a_labelled_input_of_one_kind_of_file():
    with gr.Blocks():
        made = picked("id", '"><b>Read', '.csv"', 7)
    assert "&quot;&gt;&lt;b&gt;Read" in made.html_template and 'accept=".csv&quot;"' in made.html_template
    assert made.html_template.count("<label>") == 1 and 'role="status"' in made.html_template
