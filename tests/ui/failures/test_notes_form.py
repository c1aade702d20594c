"""The form of notes: what it shows of everybody, and which events it takes."""

from __future__ import annotations

import re
from html import unescape

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analyze.rejudge import MOST_TEXT, Annotations, Judged, Note
from ui.failures.notes_form import LONGEST, MOST_LINE, note_of, rendered

TIME = "2026-01-02T03:04:05Z"


def harmless(html: str) -> bool:
    return not any(sign in html for sign in ("<script", "${", "{{", "}}", "`", "\\frac"))


def test_everything_that_people_wrote_is_text(evil):
    tag = evil[:30].replace(";", "")
    notes = (Note("c", evil, f"said {evil}", (tag,), evil[:60], TIME), Note("c", "other", "elsewhere", (), "Bob", TIME))
    judged = (Judged("c", evil, "c", evil, "unsure", evil[:60], TIME),)
    html = rendered(("c", evil), f"mine {evil}", f"{evil}; b", Annotations(notes, judged), "<p>said</p>")
    assert harmless(html) and "elsewhere" not in html and "<p>said</p>" in html
    assert unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", html, re.DOTALL)[1]) == f"mine {evil}"
    assert unescape(re.search(r'data-id="([^"]*)"', html)[1]) == evil
    assert unescape(re.search(r'type="text"[^>]* value="([^"]*)"', html)[1]) == f"{evil}; b"
    assert f"judged {evil} anew: unsure" in unescape(html) and unescape(html).count(TIME) == 2


def test_without_a_word_of_anybody_there_is_no_list():
    html = rendered(("c", "q"), "", "", Annotations())
    assert "m3-said" not in html and f'maxlength="{MOST_TEXT}"' in html and f'maxlength="{MOST_LINE}"' in html


def test_an_event_brings_query_text_and_tags():
    data = {"collection": "c", "id": "q", "text": "line\nline", "tags": "a; b", "more": 1}
    assert note_of(gr.EventData(None, data)) == (("c", "q"), "line\nline", "a; b")


@pytest.mark.parametrize(
    "change",
    [
        {"collection": ""},
        {"collection": None},
        {"id": 7},
        {"id": "x" * (LONGEST + 1)},
        {"text": None},
        {"text": "x" * (2 * MOST_TEXT + 1)},
        {"tags": ["a"]},
        {"tags": "x" * (2 * MOST_LINE + 1)},
        {"text": "half a character \ud83d"},
        {"id": "\udc00"},
    ],
)
def test_a_damaged_event_brings_nothing(change):
    good = {"collection": "c", "id": "q", "text": "", "tags": ""}
    assert note_of(gr.EventData(None, good)) is not None
    assert note_of(gr.EventData(None, good | change)) is None
    for name in good:
        assert note_of(gr.EventData(None, {n: v for n, v in good.items() if n != name})) is None


anything = st.none() | st.booleans() | st.integers() | st.lists(st.text(max_size=3), max_size=2) | st.text(max_size=8)
damaged = anything | st.dictionaries(st.sampled_from(["collection", "id", "text", "tags"]), anything)


@given(damaged)
def test_whatever_arrives_is_a_note_of_texts_or_nothing(data):
    found = note_of(gr.EventData(None, data))
    parts = [data.get(name) for name in ("collection", "id", "text", "tags")] if isinstance(data, dict) else [None]
    good = all(isinstance(part, str) for part in parts) and all(parts[:2])
    assert found == (((parts[0], parts[1]), parts[2], parts[3]) if good else None)
