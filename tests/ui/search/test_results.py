"""The hits' side of the page without a browser: searches, the first view, and the case that a hit opens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import gradio as gr
import pytest
from PIL import Image

from core.models import specs
from core.models.base import ModelUnavailable
from core.search.strength import Calibration, Evidence, fit
from ui.search.results import EDITED, STORED
from ui.search.state import Held

ROOT = Path(__file__).resolve().parents[3]
HEAD, THORAX = "query_to_image/Head", "query_to_image/Thorax"
OPEN = re.compile(r'<li class="m3-card">.*?data-collection="(.*?)" data-id="(.*?)" aria-label="(.*?)"', re.S)


def ids(hits: str) -> list[tuple[str, str]]:
    """(collection, id) of the cards in order."""
    return [(unescape(a), unescape(b)) for a, b, _ in OPEN.findall(hits)]


def card(hits: str, identity: str, collection: str = HEAD) -> str:
    """The HTML of one card."""
    parts = hits.split('<li class="m3-card">')[1:]
    (found,) = [p for p in parts if f'data-collection="{collection}" data-id="{identity}"' in p]
    return found


def test_cards_are_grouped_by_case_folded_and_marked(page, event, form, ready):
    strip, hits = page.results.search(form(words="a red lesion", held=ready()))
    # d1b is of d1a's case, d2 looks like d1a. "d1a" of the thorax is another document.
    assert ids(hits)[0] == (HEAD, "d1a") and set(ids(hits)) == {
        (HEAD, "d1a"),
        (HEAD, "d3"),
        (HEAD, "d5"),
        (THORAX, "d1a"),
    }
    first = card(hits, "d1a")
    assert "C1 · Head" in first and "+1 more of this case" in first and "1 looks alike, folded" in first
    assert 'aria-label="Open hit 1: case C1, Head, Head imaging, CT"' in first
    _, flat = page.results.search(form(words="a red lesion", held=ready(), by_case=False, fold=False))
    rank = [identity for _, identity in ids(flat)].index("d1b") + 1
    # The best hit itself is judged not relevant; the case's other picture is the most relevant one.
    assert rank > 1 and f"●● most relevant at rank {rank}</span>" in first
    assert "○ judged not relevant</span>" in card(flat, "d1a") and "●● most relevant</span>" in card(flat, "d1b")
    assert "● relevant</span>" in card(hits, "d3") and "◌ unjudged</span>" in card(hits, "d5")
    assert "picture" in card(hits, "d5") and "is in neither" in card(hits, "d5")
    assert "Marked by the judgements of query q1" in strip and "Hits, marked by" in hits


def test_grouping_and_folding_are_switched_each_by_itself(page, event, form, ready):
    def names(**changes):
        return {i for c, i in ids(page.results.search(form(words="x", held=ready(), **changes))[1]) if c == HEAD}

    assert names() == {"d1a", "d3", "d5"}
    assert names(by_case=False) == {"d1a", "d1b", "d3", "d5"}
    assert names(fold=False) == {"d1a", "d2", "d3", "d5"}
    assert names(fold=False, by_case=False) == {"d1a", "d1b", "d2", "d3", "d5"}


def test_words_mark_words_and_texts_are_escaped(page, form):
    strip, hits = page.results.search(form(task="visual_context", words="<red> lesions", weight=0.0))
    assert "The <mark>red</mark> <mark>lesion</mark> of case one." in hits
    assert len(ids(hits)) == 3 and "<script" not in hits and "${" not in hits and "{{" not in hits
    assert "&lt;script&gt;alert(1)" in hits and "m3-mark" not in hits
    assert "<strong>3</strong> documents of Visual context in Clinic" in strip and "picture 0.00 · words 1.00" in strip


def test_the_strip_names_the_model_the_index_and_the_seconds(page, form):
    strip, _ = page.results.search(form(words="red"))
    spec = specs.get("medlite")
    assert spec.model_id in strip and spec.revision in strip and "exact search" in strip
    assert re.search(r"· \d+\.\d\d s</p>", strip) and "stored" not in strip


def test_as_many_cards_as_asked_for(page, event, form):
    for k in (1, 2):
        assert len(ids(page.results.search(form(words="red", k=k))[1])) == k


def test_filters_narrow_the_search(page, event, form):
    everything = ids(page.results.search(form(words="red"))[1])
    strip, hits = page.results.search(form({"domain": ["Thorax"]}, words="red"))
    assert ids(hits) == [(THORAX, "d1a")] != everything and "<strong>1</strong> documents" in strip
    _, hits = page.results.search(form({"domain": ["Head"], "modality": ["MR"]}, words="red", by_case=False))
    assert set(ids(hits)) == {(HEAD, "d1b"), (HEAD, "d3")}
    _, hits = page.results.search(form({"domain": ["Thorax"], "modality": ["MR"]}, words="red"))
    assert "No document passes" in hits
    # The case of the only hit has one picture that passes the filter.
    _, hits = page.results.search(form({"modality": ["MR"]}, words="red"))
    assert "more of this case" not in hits


def test_what_cannot_be_searched_is_one_sentence_and_leaves_the_strip_empty(page, event, form, encoder, sentence):
    asked = {
        "Choose a data set and a task first.": form(task=None, words="red"),
        "Give a picture, words, or both.": form(words="  "),
        "No domain 'Foot' in query_to_image; there are: Head, Thorax.": form({"domain": ["Foot"]}, words="red"),
        "There is no data set '/etc' here.": form(label="/etc", words="red"),
        "The filters arrived damaged. Choose them again.": form(filters="{", words="red"),
    }
    for said, one in asked.items():
        before = encoder.encoded
        strip, hits = page.results.search(one)
        assert sentence(hits) == said and strip == '<div class="m3-strip"></div>'
        if "domain" in said:
            continue  # the pool's documents are encoded before the filter is looked at
        assert encoder.encoded == before


@pytest.mark.parametrize("value", [None, "", "[]", '{"chosen": {"colour": ["red"]}}', '{"chosen": {"domain": "Head"}}'])
def test_damaged_filters_are_one_sentence(page, form, event, value, sentence):
    assert "arrived damaged" in sentence(page.results.search(form(words="red", filters=value))[1])
    sent = event({"collection": HEAD, "id": "d1a"})
    assert "arrived damaged" in sentence(page.results.search_like(form(filters=value), sent)[1])


def test_a_model_that_is_not_ready_is_one_sentence(page, event, form, monkeypatch, sentence):
    def absent(*_):
        raise ModelUnavailable("Install the package with the weights.")

    monkeypatch.setattr(page.context, "pipeline", absent)
    for _, hits in (
        page.results.search(form(words="red")),
        page.results.search_like(form(), event({"collection": HEAD, "id": "d1a"})),
    ):
        assert sentence(hits) == "Install the package with the weights."
    assert page.results.example("clinic", "query_to_image", "medlite", 10) is None


def test_an_unknown_model_or_task_is_a_message_and_no_traceback(page, form, caplog, sentence):
    for one in (form(words="red", model="nosuch"), form(words="secret words", task="nosuch")):
        strip, hits = page.results.search(one)
        assert sentence(hits) and "Traceback" not in hits and strip == '<div class="m3-strip"></div>'
    assert "secret" not in caplog.text


def test_edited_words_are_not_marked_by_the_query_they_came_from(page, event, form, ready):
    strip, hits = page.results.search(form(words="a knee", held=ready()))
    assert ids(hits) and "m3-mark" not in hits and EDITED in strip and "judgements of" not in hits
    strip, hits = page.results.search(form(words=" a red lesion\n", held=ready()))
    assert "m3-mark" in hits and EDITED not in strip


def test_a_query_of_another_data_set_or_task_marks_nothing(page, event, form, ready):
    mine = ready()
    for one in (
        form(task="visual_context", words="a red lesion", held=mine),
        form(words="a red lesion", held=replace(mine, query=("another data_id", *mine.query[1:]))),
        form(words="a red lesion", held=replace(mine, query=(mine.query[0], "gone", "q1"))),
        form(label="toy", words="a red lesion", held=mine),
    ):
        strip, hits = page.results.search(one)
        assert ids(hits) and "m3-mark" not in hits and EDITED not in strip and "Marked" not in strip


def test_two_sessions_do_not_share_what_they_hold(page, event, form, ready):
    first, second = ready(), ready("q0")
    one = page.results.search(form(words="a red lesion", held=first))[1]
    other = page.results.search(form(words="", held=second))
    assert "Marked by the judgements of query q0" in other[0] and "most relevant" not in other[1]
    assert page.results.search(form(words="a red lesion", held=first))[1] == one
    assert "m3-mark" not in page.results.search(form(words="a red lesion"))[1]


@pytest.fixture
def calibrated(page):
    """The clinic's pool with a measured match strength: best hits above 0.5 were right, the others wrong."""
    dataset = page.context.dataset("clinic")
    rows = [Evidence(at / 100, at >= 50, str(at)) for at in range(100)]
    curve = fit(rows)
    assert curve.auroc > 0.9
    searcher = page.context.searcher(dataset, "query_to_image", "medlite")
    searcher.calibration = Calibration({"picture": curve, "both": curve}, searcher.default_weight)


def test_the_strip_says_how_sure_the_best_hit_is(page, event, form, calibrated, ready):
    mine = ready()
    strip, _ = page.results.search(form(held=mine))
    assert "●●● Strong match</strong> · Of judged queries whose best hit scored like this, 100 %" in strip
    strip, _ = page.results.search(form({"domain": ["Head"]}, held=mine))
    assert "Strong" not in strip and "(no band: the judged queries were searched without filters)" in strip
    strip, _ = page.results.search(form(words="a red lesion", held=mine, weight=1.0))
    assert "Not calibrated: the weight of the picture is 1.00; match strength was measured at 0.50" in strip
    strip, _ = page.results.search(form(words="red"))
    assert "Not calibrated: 0 judged queries of this kind" in strip


def test_the_strip_gives_no_strength_for_a_case_the_model_was_trained_on(
    page, event, form, calibrated, encoder, clinic, trained_card, ready
):
    encoder.card = trained_card(clinic / "images" / "c1b.png")
    strip, _ = page.results.search(form(words="a red lesion", held=ready(), weight=0.5))
    assert "Not calibrated: the model was trained on this query" in strip and "%" not in strip
    strip, _ = page.results.search(form(words="no case", held=ready("q5"), weight=0.5))
    assert "trained on this" not in strip


def test_a_pool_that_was_never_measured_says_how_to_measure_it(page, form):
    assert "Not calibrated: it was not measured for this data set yet" in page.results.search(form(words="red"))[0]


def test_more_like_this_does_not_give_the_document_itself(page, event, form, ready):
    sent = event({"collection": HEAD, "id": "d1a"})
    both = {"by_case": False, "fold": False}
    strip, hits = page.results.search_like(form(words="ignored", held=ready(), **both), sent)
    assert (HEAD, "d1a") not in ids(hits) and (THORAX, "d1a") in ids(hits) and len(ids(hits)) == 5
    # As the picture itself ranks them, without the document.
    own = page.results.search(form(held=replace(ready(), query=None), **both))[1]
    assert [name for name in ids(own) if name != (HEAD, "d1a")] == ids(hits)
    assert "More like document d1a. Press Search to come back to your query." in strip
    assert "m3-mark" not in hits and "Not calibrated" in strip and "document of the pool" in strip


def test_more_like_a_text_marks_its_words(page, event, form):
    sent = event({"collection": "visual_context/Head", "id": "p3"})
    strip, hits = page.results.search_like(form(task="visual_context"), sent)
    assert "<mark>case</mark>" in hits and "p3" not in [identity for _, identity in ids(hits)]
    hostile = event({"collection": "visual_context/Head", "id": ids(hits)[0][1]})
    strip, _ = page.results.search_like(form(task="visual_context"), hostile)
    assert "<script" not in strip and "${" not in strip


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"collection": "visual_context/Head", "id": "p1"}, "not in the pool"),
        ({"collection": HEAD, "id": "gone"}, "not in the pool"),
        ({"collection": HEAD, "id": "d5"}, "is in neither"),
        (None, "arrived damaged"),
    ],
)
def test_what_more_like_this_cannot_do_is_one_sentence(page, event, form, data, said, sentence):
    strip, hits = page.results.search_like(form(), event(data))
    assert said in sentence(hits) and strip == '<div class="m3-strip"></div>'


def test_searching_reports_its_steps(page, form):
    steps = []
    page.results.search(form(words="red"), lambda at, desc: steps.append(desc))
    assert any(step.startswith("Encoding pictures") for step in steps) and "Searching" in steps[-1]


def test_without_stored_vectors_the_first_view_stays_empty_and_encodes_nothing(page, encoder):
    assert page.results.example("clinic", "query_to_image", "medlite", 10) is None
    assert encoder.encoded == 0
    for label, task, model in (
        ("absent", "query_to_image", "medlite"),
        ("clinic", None, "medlite"),
        ("clinic", "nosuch", "medlite"),
        ("clinic", "query_to_image", "nosuch"),
    ):
        assert page.results.example(label, task, model, 10) is None


def test_the_first_view_is_what_a_search_of_its_query_gives(page, form, encoder, clinic):
    dataset = page.context.dataset("clinic")
    query = dataset.collections[HEAD].query("q1")
    searcher = page.context.searcher(dataset, "query_to_image", "medlite")
    assert searcher.stored_queries([query], None)[0] is not None
    before = encoder.encoded
    example = page.results.example("clinic", "query_to_image", "medlite", 10)
    words, face, mine, about, names, strip, hits = page.results.show_example(
        example, "clinic", "query_to_image", None, ""
    )
    assert encoder.encoded == before
    # q0 comes first but has no words and nothing relevant: it could not show how judgements mark.
    assert words == "a red lesion" and mine.query[2] == "q1" and "Query q1" in about
    assert json.loads(face)["src"] and json.loads(names)["chosen"] == "a red lesion"
    assert strip.startswith(f'<div class="m3-strip" role="status"><p>{STORED}</p>') and "from stored vectors" in strip
    searched = page.results.search(form(words=words, held=mine, weight=searcher.default_weight))
    assert hits == searched[1] and "m3-mark" in hits
    assert len(ids(page.results.example("clinic", "query_to_image", "medlite", 1)[1][6])) == 1


def test_a_query_in_the_form_is_not_overwritten_by_an_example(page, event, ready):
    dataset = page.context.dataset("clinic")
    searcher = page.context.searcher(dataset, "query_to_image", "medlite")
    searcher.stored_queries([dataset.collections[HEAD].query("q1")], None)
    where = ("clinic", "query_to_image")
    example, nothing = page.results.example(*where, "medlite", 10), [gr.skip()] * 7
    own = Held(images=(Image.new("RGB", (4, 4)),))
    for mine, words in ((own, ""), (None, "my words"), (ready(), "a red lesion")):
        assert page.results.show_example(example, *where, mine, words) == nothing
    for mine, words in ((Held(), " "), (None, None)):
        assert page.results.show_example(example, *where, mine, words)[0] == "a red lesion"
    # Another data set or task was chosen while it was made.
    assert page.results.show_example(example, "toy", "query_to_image", None, "") == nothing
    assert page.results.show_example(example, "clinic", "visual_context", None, "") == nothing
    assert page.results.show_example(None, *where, None, "") == nothing


def test_hits_of_another_data_set_or_task_are_taken_away(page, event, ready):
    ready, own = ready(), Held(images=(Image.new("RGB", (4, 4)),))
    now, skip = ("clinic", "query_to_image"), gr.skip()
    for before in (None, now, list(now)):
        assert page.results.clear(*now, before, ready, "a red lesion") == (*[skip] * 5, now)
    for before in (("toy", "query_to_image"), ("clinic", "visual_context"), ("clinic", None)):
        words, face, mine, strip, hits, after = page.results.clear(*now, before, ready, "a red lesion")
        assert (words, mine, after) == ("", Held(), now) and json.loads(face)["src"] is None
        assert strip == '<div class="m3-strip"></div>' and "m3-card" not in hits and "press Search" in hits
        # The user's own words or picture stay where they are.
        for mine, words in ((own, ""), (Held(), "mine"), (None, "mine")):
            cleared = page.results.clear(*now, before, mine, words)
            assert cleared[:3] == (skip, skip, skip) and "press Search" in cleared[4]


def test_the_first_view_of_the_demo_loads_no_engine(tmp_path):
    code = f"""
import sys
from core.context import AppContext
from core.settings import Settings
from ui.search.query import QuerySide
from ui.search.results import Results
context = AppContext(Settings((), {str(tmp_path / "w")!r}, False))
_, filled = Results(context, QuerySide(context)).example("Demo library", "query_to_image", "medlite", 10)
print([m for m in ("torch", "timm", "transformers", "hnswlib") if m in sys.modules])
print(filled[6].count('<li class="m3-card">'), "from stored vectors" in filled[5], "Demo library" in filled[5])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "10 True True"]
