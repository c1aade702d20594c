"""The query's side of the page without a browser: what each callback fills in, and what it refuses."""

from __future__ import annotations

import base64
import dataclasses
import json
from io import BytesIO

import gradio as gr
import numpy as np
import pytest
from PIL import Image

from core.context import AppContext
from core.data.find import Found
from core.embed.pipeline import text_key
from core.models.base import ModelUnavailable
from core.records import QueryError
from core.search.searcher import MAX_WORDS
from core.settings import Settings
from ui.search import picker, query
from ui.search.query import QuerySide, document_of, found_query
from ui.search.state import LONGEST, MOST_PICTURES, Held, Opened
from ui.search.well import MAX_BYTES, bytes_of

HEAD = "query_to_image/Head"
WHERE = ("clinic", "query_to_image", "medlite")


def png(image: Image.Image | None = None) -> str:
    buffer = BytesIO()
    (image or Image.new("RGB", (40, 30), "red")).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image)


def chosen(page, event, name: str, collection: str = HEAD, where=WHERE):
    words, face, held, about = page.query.choose_query(*where, event({"collection": collection, "id": name}))
    return words, json.loads(face), held, about


def test_choosing_data_and_task_fills_the_widgets(page):
    facts, tasks, health, applied = page.query.choose_data("clinic", None)
    assert "Clinic" in facts and "CC0-1.0" in facts and health == "" and applied == ("clinic", None)
    assert tasks.value == "query_to_image"
    assert tasks.choices == [("Visual context", "visual_context"), ("Query to image", "query_to_image")]
    filters, weight, queries, about, applied = page.query.choose_task(*WHERE, applied)
    assert applied == ("clinic", "query_to_image") and about == ""
    assert dict(json.loads(filters)["facets"]) == {
        "domain": [["Head", 5], ["Thorax", 1]],
        "specialty": [["Head imaging", 5], ["Thorax imaging", 1]],
        "modality": [["CT", 4], ["MR", 2]],
    }
    assert json.loads(filters)["chosen"] == {"domain": [], "specialty": [], "modality": []}
    assert weight.value == 0.5  # the toy encoder's default where documents have pictures and words
    assert json.loads(queries)["of"] == 6 and json.loads(queries)["chosen"] == ""
    assert [row["id"] for row in json.loads(queries)["rows"]] == ["q0", "q1", "q2", "q3", "q4", "q5"]
    _, weight, *_ = page.query.choose_task("clinic", "visual_context", "medlite", applied)
    assert weight.value == 0.3


def test_a_task_is_the_first_of_a_data_set_that_has_no_query_to_image(collection_writer, tmp_path):
    collection_writer(tmp_path / "only/summary/Head", [], [{"_id": "a", "text": "words"}], [])
    side = QuerySide(AppContext(Settings((str(tmp_path / "only"),), str(tmp_path / "w"), False)))
    assert side.choose_data("only", None)[1].value == "summary"


def test_a_dropdown_that_only_loses_the_focus_changes_nothing(page):
    assert page.query.choose_data("clinic", ("clinic", "visual_context")) == [gr.skip()] * 4
    # What the browser hands back of a state is a list or a tuple.
    for applied in (("clinic", "query_to_image"), ["clinic", "query_to_image"]):
        assert page.query.choose_task(*WHERE, applied) == [gr.skip()] * 5
    assert page.query.choose_data("toy", ("clinic", "visual_context"))[3] == ("toy", None)
    assert page.query.choose_task(*WHERE, ("clinic", "visual_context"))[4] == ("clinic", "query_to_image")


def test_a_data_set_that_is_not_there_is_said(tmp_path, event):
    side = QuerySide(AppContext(Settings((str(tmp_path / "absent"),), str(tmp_path / "w"), False)))
    facts, tasks, _, applied = side.choose_data("absent", None)
    assert "is not a folder" in facts and tasks.value is None and tasks.choices == []
    filters, _, queries, _, applied = side.choose_task("absent", None, "medlite", applied)
    assert applied == ("absent", None) and json.loads(filters)["facets"] == [] and json.loads(queries)["of"] == 0
    where = ("absent", None, "medlite")
    for filled in (
        side.choose_query(*where, event({"collection": HEAD, "id": "q1"})),
        side.random_query(*where)[1:],
        side.use_document("absent", None, event({"collection": HEAD, "id": "d1a"}))[:3],
    ):
        assert "is not a folder" in json.loads(filled[1])["note"] and filled[2] == Held()
    assert json.loads(side.look("absent", None, event({"words": "x", "start": 0})))["of"] == 0
    assert "is not a folder" in side.check("absent")


def test_a_look_answers_with_the_queries_that_hold_the_words(page, event):
    answer = json.loads(page.query.look("clinic", "query_to_image", event({"words": "pictures TWO", "start": 0})))
    assert (answer["kind"], answer["of"], answer["total"]) == ("answer", 6, 1)
    assert answer["rows"][0]["id"] == "q3" and answer["words"] == "pictures TWO"
    later = json.loads(page.query.look("clinic", "query_to_image", event({"words": "", "start": 4})))
    assert [row["id"] for row in later["rows"]] == ["q4", "q5"]
    for junk in (None, {"words": "x" * 10_000, "start": 0}, {"words": "x", "start": -1}):
        assert json.loads(page.query.look("clinic", "query_to_image", event(junk)))["kind"] == "face"


def test_a_ready_query_brings_words_picture_its_name_and_what_is_known(page, event, clinic):
    words, face, held, about = chosen(page, event, "q1")
    assert words == "a red lesion" and face["src"].startswith("data:image/webp;base64,")
    assert face["note"] == "picture of query q1"
    data_id = page.context.dataset("clinic").data_id
    assert held.query == (data_id, HEAD, "q1") and len(held.images) == 1
    original = Image.open(clinic / "images" / "c1a.png")
    assert (pixels(held.images[0]) == pixels(original)).all()
    assert held.frame is not None and held.frame.pixels == original.tobytes()
    assert "judged: 1 ●● most relevant, 1 ● relevant, 1 ○ judged not relevant" in about and "m3-own" in about


def test_a_ready_query_without_a_picture_or_a_case_says_so(page, event):
    words, face, held, about = chosen(page, event, "q2")
    assert words == "only words" and face["src"] is None and "has no picture" in face["note"]
    assert held.images == () and held.frame is None and held.query[2] == "q2" and "judged: nothing" in about
    about = chosen(page, event, "q5")[3]
    assert "m3-own" not in about and "Query q5" in about


def test_several_pictures_are_all_held_and_the_first_is_shown(page, event, clinic):
    _, face, held, _ = chosen(page, event, "q3")
    assert len(held.images) == 2 and face["note"] == "first of 2 pictures of query q3"
    assert held.frame.pixels == Image.open(clinic / "images" / "c1a.png").tobytes()


@pytest.mark.parametrize(
    ("name", "collection", "said"),
    [
        ("nowhere", HEAD, "not in the data set"),
        ("q1", "query_to_image/Foot", "not in the data set"),
        ("q4", HEAD, "is in neither the data set"),
        ("", HEAD, "damaged"),
        (7, HEAD, "damaged"),
    ],
)
def test_a_query_that_cannot_be_had_is_said_and_clears_what_was_held(page, event, name, collection, said):
    words, face, held, about = chosen(page, event, name, collection)
    assert said in face["note"] and (words, held, about) == ("", Held(), "") and face["src"] is None


def test_too_many_pictures_of_one_query_are_refused_before_one_is_opened(
    page, event, collection_writer, tmp_path, monkeypatch
):
    root = tmp_path / "many"
    (root / "images").mkdir(parents=True)
    names = [f"images/{n}.png" for n in range(MOST_PICTURES + 1)]
    for name in names:
        Image.new("RGB", (4, 4), "red").save(root / name)
    rows = [{"_id": f"q{n}", "caption": "x", "image_path": names[:n]} for n in (MOST_PICTURES, MOST_PICTURES + 1)]
    collection_writer(root / "query_to_image" / "Head", rows, [{"_id": "d", "text": "x"}], [])
    page.query = QuerySide(AppContext(Settings((str(root),), str(tmp_path / "w"), False)))
    where = ("many", "query_to_image", "medlite")
    assert len(chosen(page, event, "q20", where=where)[2].images) == 20
    monkeypatch.setattr(query, "open_picture", lambda data: pytest.fail("opened first"))
    _, face, held, _ = chosen(page, event, "q21", where=where)
    assert "has 21 pictures; at most 20 are read" in face["note"] and held == Held()


def test_a_random_query_is_one_of_the_pool_and_the_picker_names_it(page, monkeypatch):
    names = set()
    monkeypatch.setattr(query.random.SystemRandom, "randrange", lambda self, n: len(names) % n)
    for wanted in ("q0", "q1", "q2"):
        queries, words, face, held, about = page.query.random_query(*WHERE)
        names.add(held.query[2])
        assert held.query[2] == wanted and f"Query {wanted}" in about
        assert json.loads(queries)["chosen"] == (words or wanted) and json.loads(queries)["of"] == 6
    monkeypatch.setattr(query.random.SystemRandom, "randrange", lambda self, n: 4)  # q4: its picture is lost
    queries, words, face, held, about = page.query.random_query(*WHERE)
    assert queries == gr.skip() and held == Held() and "neither" in json.loads(face)["note"] and words == about == ""


def test_a_pool_without_queries_has_no_random_one(collection_writer, tmp_path):
    collection_writer(tmp_path / "none/summary/Head", [], [{"_id": "a", "text": "words"}], [])
    side = QuerySide(AppContext(Settings((str(tmp_path / "none"),), str(tmp_path / "w"), False)))
    queries, *rest = side.random_query("none", "summary", "medlite")
    assert json.loads(queries)["of"] == 0 and rest == [gr.skip()] * 4


def test_training_data_is_named_with_the_query(page, event, encoder, clinic, trained_card):
    encoder.card = trained_card(clinic / "images" / "c1a.png")
    assert "The model was trained on this case." in chosen(page, event, "q1")[3]
    assert "trained" not in chosen(page, event, "q5")[3]


def test_a_model_that_is_not_ready_is_said_where_a_query_is_chosen(page, event, monkeypatch):
    def absent(*_):
        raise ModelUnavailable("Install the package with the weights.")

    monkeypatch.setattr(page.context, "pipeline", absent)
    words, face, held, _ = chosen(page, event, "q1")
    assert face["note"] == "Install the package with the weights." and held == Held() and words == ""
    dataset = page.context.dataset("clinic")
    readable = found_query(dataset, dataset.collections["query_to_image/Head"].query("q1"))
    monkeypatch.setattr("ui.search.query.random_query", lambda *_: readable)
    _, words, face, held, _ = page.query.random_query(*WHERE)
    assert json.loads(face)["note"] == "Install the package with the weights." and held == Held()


def test_a_model_that_lacks_something_says_so_and_search_cannot_be_pressed(page, encoder, monkeypatch):
    assert page.query.model_state("medlite")[0] == "" and page.query.model_state("medlite")[1].interactive
    encoder.requires = lambda: ["Install <torch>.", "Restore the head."]
    html, button = page.query.model_state("medlite")
    assert "medlite cannot search here. Install &lt;torch&gt;. Restore the head. Hits that are stored" in html
    assert button.interactive is False
    html, button = page.query.model_state("nosuch")
    assert "No model is called &#x27;nosuch&#x27;" in html and button.interactive is False

    def absent(*_):
        raise ModelUnavailable("The config is damaged.")

    monkeypatch.setattr(page.context, "pipeline", absent)
    html, button = page.query.model_state("medlite")
    assert "The config is damaged." in html and button.interactive is False


def test_an_unknown_model_leaves_the_task_without_widgets(page):
    filters, _, queries, _, applied = page.query.choose_task("clinic", "query_to_image", "nosuch", None)
    assert json.loads(filters)["facets"] == [] and json.loads(queries)["of"] == 0 and applied == ("clinic", None)


def test_a_picture_is_decoded_reduced_and_held_without_its_file(page, event):
    sent = event({"b64": png(Image.new("RGB", (3000, 20), "red"))})
    words, face, held, queries, about = page.query.take_picture("clinic", "query_to_image", "typed", None, sent)
    assert words == gr.skip()
    assert max(held.images[0].size) == LONGEST and held.query is None and held.images[0].info == {}
    shown = json.loads(face)
    assert shown["src"].startswith("data:image/webp;base64,") and "3000 × 20 pixels" in shown["note"]
    assert shown["alt"] == "Your picture" and json.loads(queries)["chosen"] == "" and about == ""
    # The shown copy is small; the held one is what is searched with.
    webp = Image.open(BytesIO(base64.b64decode(shown["src"].split(",")[1])))
    assert max(webp.size) == 480


def test_a_16_bit_picture_keeps_its_values_for_the_viewer(page, event):
    values = (np.arange(48 * 64, dtype=np.uint16) * 21).reshape(48, 64)
    sent = event({"b64": png(Image.fromarray(values))})
    _, face, held, _, _ = page.query.take_picture("clinic", "query_to_image", "", None, sent)
    assert held.frame.bits == 16 and held.frame.channels == 1 and held.frame.window is not None
    assert (np.frombuffer(held.frame.pixels, "<u2").reshape(48, 64) == values).all()
    assert held.images[0].mode == "RGB" and json.loads(face)["src"]


JUNK = [None, {}, {"b64": 3}, {"b64": ""}, {"b64": "***"}, {"b64": base64.b64encode(b"text").decode()}]


@pytest.mark.parametrize("data", JUNK)
def test_anything_else_than_a_picture_is_refused_in_words(page, event, data):
    _, face, held, _, about = page.query.take_picture("clinic", "query_to_image", "", None, event(data))
    shown = json.loads(face)
    assert held == Held() and shown["src"] is None and len(shown["note"]) > 10 and about == ""


def test_the_words_of_a_ready_query_go_with_its_picture_and_others_stay(page, event, ready):
    sent = event({"b64": png(Image.new("RGB", (8, 8), "red"))})
    where = ("clinic", "query_to_image")
    own = page.context.dataset("clinic").collections["query_to_image/Head"].query("q1").text
    assert page.query.take_picture(*where, f" {own} ", ready(), sent)[0] == ""
    for words, held in ((f"{own} edited", ready()), (own, None), (own, Held()), ("", None)):
        assert page.query.take_picture(*where, words, held, sent)[0] == gr.skip()
    assert page.query.take_picture(*where, own, ready(), event({}))[0] == ""


def test_the_size_is_checked_before_decoding(event, monkeypatch):
    monkeypatch.setattr(base64, "b64decode", lambda *a, **k: pytest.fail("decoded first"))
    with pytest.raises(Exception, match="MiB"):
        bytes_of(event({"b64": "A" * (MAX_BYTES // 3 * 4 + 100)}))


def test_removing_the_picture_clears_everything_of_it(page):
    face, held, queries, about = page.query.remove_picture("clinic", "query_to_image")
    assert json.loads(face) == {"src": None, "note": "", "alt": ""} and held == Held() and about == ""
    assert json.loads(queries)["of"] == 6 and json.loads(queries)["chosen"] == ""


def test_an_opened_document_becomes_the_query(page, event, clinic):
    sent = event({"collection": HEAD, "id": "d1b"})
    words, face, held, queries, about = page.query.use_document("clinic", "query_to_image", sent)
    assert words == "" and json.loads(face)["src"] and "document you opened" in json.loads(face)["note"]
    original = Image.open(clinic / "images" / "c1b.png")
    assert (pixels(held.images[0]) == pixels(original)).all() and held.frame.pixels == original.tobytes()
    assert held.query is None and about == ""  # no ready query: it marks nothing
    assert json.loads(queries)["chosen"] == ""
    sent = event({"collection": "visual_context/Head", "id": "p1"})
    words, face, held, _, _ = page.query.use_document("clinic", "visual_context", sent)
    assert words == "C1 The red lesion of case one." and held == Held()
    assert json.loads(face)["src"] is None and "has no picture" in json.loads(face)["note"]


def test_a_long_document_is_cut_to_what_a_query_may_have(page, event, collection_writer, tmp_path):
    collection_writer(tmp_path / "long/summary/Head", [], [{"_id": "a", "text": "word " * 9000}], [])
    side = QuerySide(AppContext(Settings((str(tmp_path / "long"),), str(tmp_path / "w"), False)))
    words, *_ = side.use_document("long", "summary", event({"collection": "summary/Head", "id": "a"}))
    assert len(words) == MAX_WORDS


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"collection": HEAD, "id": "gone"}, "not in the data set"),
        ({"collection": "x", "id": "d1a"}, "not in the data set"),
        ({"collection": HEAD, "id": "d5"}, "is in neither"),
        (None, "arrived damaged"),
        ({"collection": HEAD}, "arrived damaged"),
    ],
)
def test_a_document_that_cannot_be_used_is_said_and_the_words_stay(page, event, data, said):
    words, face, held, _, about = page.query.use_document("clinic", "query_to_image", event(data))
    assert said in json.loads(face)["note"] and words == gr.skip() and held == Held() and about == ""


BAD = [None, [], "x", {}, {"id": "d"}, {"collection": "", "id": "d"}, {"collection": "c", "id": 7}]
BAD += [{"collection": ["c"], "id": "d"}, {"collection": "c", "id": "d" * (picker.LONGEST + 1)}]


@pytest.mark.parametrize("data", BAD)
def test_a_damaged_document_name_is_refused(event, data):
    with pytest.raises(QueryError, match="Search again"):
        document_of(event(data))
    assert document_of(event({"collection": "c/</script>", "id": "{{x}}"})) == ("c/</script>", "{{x}}")


def test_a_query_is_named_as_a_search_of_the_picker_names_it(page):
    dataset = page.context.dataset("clinic")
    rows = json.loads(page.query.names("clinic", "query_to_image"))["rows"]
    for row, one in zip(rows, dataset.collections[HEAD].all_queries(), strict=True):
        shown = json.loads(picker.face(Found(1, 1, (found_query(dataset, one),))))["rows"]
        assert shown == [row]


def test_the_full_check_is_shown_with_progress(page):
    steps = []
    html = page.query.check("clinic", lambda at, desc: steps.append((at, desc)))
    assert "5 distinct pictures opened" in html and "images/gone.png" in html
    assert steps and all(desc for _, desc in steps)


def test_what_a_session_holds_is_frozen_and_the_callbacks_hold_nothing(page, event):
    for kind in (Held, Opened):
        assert dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen
    with pytest.raises(dataclasses.FrozenInstanceError):
        Held().query = ("a", "b", "c")
    first = chosen(page, event, "q1")[2]
    second = chosen(page, event, "q3")[2]
    assert first.query[2] == "q1" and second.query[2] == "q3" and first.images[0] is not second.images[0]
    assert vars(page.query) == {"context": page.context}
    assert vars(page.results) == {"context": page.context, "query_side": page.query}


def test_choosing_looking_and_filling_in_encode_nothing(page, event, encoder):
    page.query.choose_task(*WHERE, None)
    chosen(page, event, "q1")
    page.query.look("clinic", "query_to_image", event({"words": "red", "start": 0}))
    page.query.use_document("clinic", "query_to_image", event({"collection": HEAD, "id": "d1a"}))
    assert encoder.encoded == 0
    assert text_key("a red lesion") not in page.context.pipeline("medlite").stores["text"]
