"""Filter chips without a browser: what they are given, what they may send."""

from __future__ import annotations

import json

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data.pool import FILTERS
from core.records import QueryError
from ui.search import chips

ODD = ("</script><script>x", "{{x}}", "${x}", "`", "مخ وأعصاب", "🧠", "<!--", "\u2028")
VALUES = {"domain": {name: n for n, name in enumerate(ODD)}, "specialty": {}, "modality": {"CT": 1204, "MR": 3}}


def event(data: object) -> gr.EventData:
    return gr.EventData(None, data)


def test_the_face_keeps_every_name_and_has_no_tag():
    text = chips.face(VALUES, {"domain": ["🧠", "gone"], "specialty": ["gone"]})
    assert "<" not in text and text.isascii()
    data = json.loads(text)
    assert data["facets"] == [
        ["domain", [[name, n] for n, name in enumerate(ODD)]],
        ["modality", [["CT", 1204], ["MR", 3]]],
    ]
    assert data["chosen"] == {"domain": ["🧠"], "modality": []}


def test_nothing_to_filter_by_is_an_empty_face():
    assert json.loads(chips.face({})) == {"facets": [], "chosen": {}}


def test_no_value_is_part_of_a_template():
    config = chips.chips().get_config()
    assert all(sign not in config["html_template"] for sign in ("{{", "${", "@children"))
    assert not any(name in config["js_on_load"] for name in ("innerHTML", "outerHTML", "insertAdjacentHTML"))


def test_what_is_chosen_is_read_by_facet():
    assert chips.chosen_of(event({"domain": ["Head", "Head", "مخ"]})) == {
        "domain": ["Head", "مخ"],
        "specialty": [],
        "modality": [],
    }
    assert chips.chosen_in(chips.face(VALUES, {"modality": ["CT"]})) == {
        "domain": [],
        "specialty": [],
        "modality": ["CT"],
    }
    assert chips.chosen_in("{}") == {name: [] for name in FILTERS}


JUNK = [None, [], "domain", 7, {"colour": ["red"]}, {"domain": "Head"}, {"domain": [1]}, {"domain": [""]}]
JUNK += [{"domain": [["Head"]]}, {"domain": {"Head": 1}}, {"domain": ["x" * 2001]}, {"modality": ["x"] * 10_001}]
JUNK += [{"domain": None}, {7: []}]


@pytest.mark.parametrize("data", JUNK)
def test_junk_is_refused(data):
    with pytest.raises(QueryError, match="again"):
        chips.chosen_of(event(data))
    if not isinstance(data, dict) or 7 not in data:
        with pytest.raises(QueryError, match="again"):
            chips.chosen_in(json.dumps({"chosen": data}))


@pytest.mark.parametrize("value", [None, 7, "", "{", "[]", "null", "[" * 100_000, ["{}"]])
def test_a_value_that_is_no_face_is_refused(value):
    with pytest.raises(QueryError, match="again"):
        chips.chosen_in(value)


@given(st.dictionaries(st.sampled_from(FILTERS), st.lists(st.text(min_size=1), max_size=5)))
def test_what_the_browser_echoes_is_what_was_chosen(chosen):
    values = {name: dict.fromkeys(chosen.get(name, []), 1) for name in FILTERS}
    expected = {name: list(dict.fromkeys(chosen.get(name, []))) for name in FILTERS}
    assert chips.chosen_in(chips.face(values, chosen)) == expected
    assert chips.chosen_of(event(chosen)) == expected
