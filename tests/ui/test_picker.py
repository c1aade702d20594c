"""The query picker without a browser: what it is given, what it may send."""

from __future__ import annotations

import json

import gradio as gr
import pytest

from core.data.find import Found, FoundQuery
from core.records import QueryError
from ui.search import picker

ODD = ("</script><script>x", "{{x}}", "${x}", "`", "نزيف داخل الجمجمة", "🧠 scan", "<!--")
ROWS = tuple(FoundQuery("c/</script>", f"q{n}", "Head", "", text, n, n > 0) for n, text in enumerate(ODD))


def event(data: object) -> gr.EventData:
    return gr.EventData(None, data)


def test_answers_keep_every_text_and_have_no_tag():
    for text in (picker.face(Found(9, 9, ROWS), ROWS[0]), picker.answer(Found(9, 7, ROWS), "</script>", 0)):
        assert "<" not in text and text.isascii()
        rows = json.loads(text)["rows"]
        assert ["".join(piece for piece, _ in row["text"]) for row in rows] == list(ODD)
        assert {row["collection"] for row in rows} == {"c/</script>"}


def test_no_value_is_part_of_a_template():
    config = picker.picker().get_config()
    assert all(sign not in config["html_template"] for sign in ("{{", "${", "@children"))
    assert not any(name in config["js_on_load"] for name in ("innerHTML", "outerHTML", "insertAdjacentHTML"))


def test_an_answer_marks_words_and_says_what_a_query_has():
    row = FoundQuery("c", "lung-1", "Thorax", "Lung", "A lung", 3, False)
    data = json.loads(picker.answer(Found(4708, 37, (row,)), "lung", 20))
    assert {k: data[k] for k in ("kind", "of", "total", "words", "start")} == {
        "kind": "answer",
        "of": 4708,
        "total": 37,
        "words": "lung",
        "start": 20,
    }
    (shown,) = data["rows"]
    assert shown["text"] == [["A ", False], ["lung", True]]
    assert shown["about"] == [[["Thorax", False]], [["Lung", True]], [["lung", True], ["-1", False]]]
    assert shown["facts"] == ["3 pictures", "no judgements"]


@pytest.mark.parametrize(("pictures", "said"), [(0, "words only"), (1, "picture"), (2, "2 pictures")])
def test_pictures_are_counted_in_words(pictures, said):
    row = FoundQuery("c", "q", "Head", "", "text", pictures, True)
    assert json.loads(picker.face(Found(1, 1, (row,))))["rows"][0]["facts"] == [said]


def test_the_field_names_the_chosen_query():
    without = FoundQuery("c", "q7", "Head", "", "", 1, True)
    assert json.loads(picker.face(Found(1, 1, (without,)), without))["chosen"] == "q7"
    assert json.loads(picker.face(Found(1, 1, ROWS), ROWS[4]))["chosen"] == ODD[4]
    assert json.loads(picker.face(Found(1, 1, ROWS)))["chosen"] == ""


def test_a_look_and_a_choice_are_read():
    assert picker.look_of(event({"words": "ring 🧠", "start": 20})) == ("ring 🧠", 20)
    assert picker.choice_of(event({"collection": "c/</script>", "id": "{{x}}"})) == ("c/</script>", "{{x}}")


LOOKS = [None, [], "x", {}, {"words": "x"}, {"start": 0}, {"words": None, "start": 0}, {"words": ["x"], "start": 0}]
LOOKS += [{"words": "x", "start": s} for s in (-1, 400, 10**30, 0.0, "0", True, None, [0])]
LOOKS += [{"words": "x" * 201, "start": 0}]


@pytest.mark.parametrize("data", LOOKS)
def test_a_junk_look_is_refused(data):
    with pytest.raises(QueryError):
        picker.look_of(event(data))


CHOICES = [
    None,
    [],
    "x",
    {},
    {"collection": "c"},
    {"id": "q"},
    {"collection": "c", "id": 7},
    {"collection": "", "id": "q"},
]
CHOICES += [{"collection": ["c"], "id": "q"}, {"collection": "c", "id": "q" * 2001}]


@pytest.mark.parametrize("data", CHOICES)
def test_a_junk_choice_is_refused(data):
    with pytest.raises(QueryError, match="again"):
        picker.choice_of(event(data))
