"""What a visitor does with a case: notes, drafts, re-judgements, scoring with them; and whose work it is."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape

import gradio as gr
import pytest

from core.analyze.lists import Wanted
from core.analyze.notes import SessionNotes
from core.analyze.rejudge import MOST_TEXT, Annotations
from ui.failures.acts import JUDGED, JUDGED_AGAIN, NO_AUTHOR, SAVED, UNSAVED, Acts
from ui.failures.files import Files
from ui.failures.state import DRAFTS, Drafts, Listed
from ui.failures.tab import Failures

DEMO = "Demo library"
EVIL = '"><script>alert(1)</script>${x}{{y}}'


def skipped(value: object) -> bool:
    return isinstance(value, dict) and value == gr.skip()


# Notes


def test_a_note_needs_a_name_and_is_kept_as_a_draft_until_it_has_one(private, opened, note, read):
    _, listed = opened(private)
    key = listed.keys[0]
    form, drafts, session = Acts(private).save_note(listed, Drafts(), "  ", None, note(key, f"hard {EVIL}", "a; b"))
    assert NO_AUTHOR in unescape(form) and 'role="alert"' in form and read() == Annotations() and session is None
    assert f"hard {EVIL}" in unescape(form) and "<script" not in form and "{{" not in form
    assert drafts.kept == {(listed.data_id, *key): (f"hard {EVIL}", "a; b")}
    form, drafts, _ = Acts(private).save_note(listed, drafts, " Ann ", None, note(key, f"hard {EVIL}", "a; b"))
    assert SAVED in form and drafts == Drafts() and "<strong>Ann</strong>" in form and "<script" not in form
    (kept,) = read().notes
    assert (kept.collection, kept.query, kept.text, kept.tags) == (*key, f"hard {EVIL}", ("a", "b"))
    assert kept.author == "Ann"
    form, _, _ = Acts(private).save_note(listed, drafts, "Ann", None, note(key, " ", ""))
    assert SAVED in form and read().notes == ()


def test_a_note_is_saved_under_the_query_it_was_written_for_whatever_is_open(private, opened, note, read):
    _, listed = opened(private)
    first, open_now = listed.keys[0], listed.keys[5]
    late = replace(listed, at=5)
    form, drafts, _ = Acts(private).save_note(late, Drafts(), "Ann", None, note(first, "of the first"))
    assert [(one.collection, one.query) for one in read().notes] == [first] and drafts == Drafts()
    assert f"Note on query {open_now[1]}" in form and "of the first" not in form
    drafts = Acts(private).keep_draft(late, Drafts(), "Ann", None, note(first, "changed"))
    assert list(drafts.kept) == [(listed.data_id, *first)]
    for key in ((first[0], "no such query"), ("nowhere", first[1])):
        form, drafts, _ = Acts(private).save_note(listed, Drafts(), "Ann", None, note(key, "of nothing"))
        assert "not in the data set" in form and len(read().notes) == 1


def test_drafts_come_back_with_their_case_and_leave_when_they_are_as_saved(private, opened, note, event):
    _, listed = opened(private)
    one, two = listed.keys[0], listed.keys[1]
    drafts = Acts(private).keep_draft(listed, Drafts(), "Ann", None, note(one, "begun", "x; y"))
    drafts = Acts(private).keep_draft(listed, drafts, "Ann", None, note(two, "also"))
    shown = private.open_case(listed, drafts, "Ann", None, event({"i": 0}), "i")[2]
    assert UNSAVED in shown and ">begun</textarea>" in shown and 'value="x; y"' in shown and "also" not in shown
    assert ">also</textarea>" in private.open_case(listed, drafts, "Ann", None, event({"i": 1}), "i")[2]
    assert UNSAVED not in private.open_case(listed, drafts, "Ann", None, event({"i": 2}), "i")[2]
    Acts(private).save_note(listed, Drafts(), "Ann", None, note(one, "saved", "t"))
    drafts = Acts(private).keep_draft(listed, drafts, "Ann", None, note(one, "saved", "t"))
    assert list(drafts.kept) == [(listed.data_id, *two)]
    # Another author's note is not mine: what I begin with is empty.
    assert ">saved</textarea>" not in private.open_case(listed, drafts, "Bob", None, event({"i": 0}), "i")[2]
    assert ">saved</textarea>" in private.open_case(listed, drafts, "Ann", None, event({"i": 0}), "i")[2]


def test_drafts_are_few_and_damaged_ones_are_passed_over(private, opened, note, event):
    _, listed = opened(private)
    drafts = Drafts()
    for number in range(DRAFTS + 5):
        drafts = Acts(private).keep_draft(listed, drafts, "", None, note((listed.keys[0][0], f"q{number}"), "x"))
    assert len(drafts.kept) == DRAFTS and (listed.data_id, listed.keys[0][0], "q4") not in drafts.kept
    for data in (None, {}, {"collection": "a", "id": "b", "text": 1, "tags": ""}):
        assert Acts(private).keep_draft(listed, drafts, "", None, event(data)) is drafts
    assert Acts(private).keep_draft(Listed(), drafts, "", None, note(listed.keys[0], "x")) is drafts


@pytest.mark.parametrize(
    ("text", "tags", "author", "words"),
    [
        ("x" * (MOST_TEXT + 1), "", "Ann", "shorten it"),
        ("x", "; ".join(f"t{n}" for n in range(13)), "Ann", "At most 12 tags"),
        ("x", "t" * 41, "Ann", "A tag has 41 characters"),
        ("a\x00b", "", "Ann", "control character"),
        ("x", "", "A" * 81, "author's name has 81"),
    ],
)
def test_what_cannot_be_kept_is_one_sentence_and_stays_in_the_form(
    private, opened, note, read, text, tags, author, words
):
    _, listed = opened(private)
    form, drafts, _ = Acts(private).save_note(listed, Drafts(), author, None, note(listed.keys[0], text, tags))
    assert words in unescape(form) and 'role="alert"' in form and read() == Annotations()
    assert drafts.kept[(listed.data_id, *listed.keys[0])] == (text, tags)


@pytest.mark.parametrize("data", [None, {}, [], {"collection": "", "id": "x", "text": "", "tags": ""}])
def test_damaged_notes_and_those_of_no_case_save_nothing(private, opened, note, event, read, data):
    _, listed = opened(private)
    assert skipped(Acts(private).save_note(listed, Drafts(), "Ann", None, event(data))[0])
    for closed in (Listed(), replace(listed, at=None), replace(listed, at=10_000)):
        assert skipped(Acts(private).save_note(closed, Drafts(), "Ann", None, note(listed.keys[0], "x"))[0])
    assert read() == Annotations()


# Re-judgements


def test_a_judgement_is_saved_shown_and_taken_back(private, opened, judgement, read, first_hit):
    _, listed = opened(private)
    doc = first_hit(private, listed)
    html, form, _ = Acts(private).judge(listed, Drafts(), " ", None, judgement(doc, "2"))
    assert NO_AUTHOR in unescape(form) and read() == Annotations() and 'data-anew="2"' not in html
    for grade, words in (("2", "most relevant"), ("unsure", "unsure")):
        html, form, _ = Acts(private).judge(listed, Drafts(), "Ann", None, judgement(doc, grade))
        (kept,) = read().judged
        assert (kept.collection, kept.query) == listed.keys[0] and (kept.doc_collection, kept.doc) == doc
        assert kept.grade == grade and kept.author == "Ann"
        assert f'data-id="{doc[1]}" data-anew="{grade}"' in html and f'<option value="{grade}" selected' in html
        assert f"judged {doc[1]} anew: {words}" in form and JUDGED in form
    again = Acts(private).judge(listed, Drafts(), "Ann", None, judgement(doc, "unsure"))[0]
    assert again != html  # the menu in the browser waits for news
    html, form, _ = Acts(private).judge(listed, Drafts(), "Ann", None, judgement(doc, ""))
    assert read().judged == () and f'data-id="{doc[1]}" data-anew=""' in html and " anew: " not in form


def test_a_draft_outlives_a_judgement(private, opened, judgement, note, first_hit):
    _, listed = opened(private)
    drafts = Acts(private).keep_draft(listed, Drafts(), "Ann", None, note(listed.keys[0], "begun"))
    form = Acts(private).judge(listed, drafts, "Ann", None, judgement(first_hit(private, listed), "1"))[1]
    assert ">begun</textarea>" in form and JUDGED in form


def test_only_documents_of_the_task_can_be_judged(private, opened, judgement, event, read, first_hit):
    _, listed = opened(private)
    doc = first_hit(private, listed)
    for other in (
        (doc[0], "no such document"),
        ("nowhere", doc[1]),
        ("query_to_image/Head", "D001_1"),
        ("\ud800", "x"),
    ):
        form = Acts(private).judge(listed, Drafts(), "Ann", None, judgement(other, "2"))[1]
        assert "not among those of the task" in form, other
    for data in ({"collection": doc[0], "doc": doc[1], "grade": "3"}, {"grade": "2"}, {}, None, "2"):
        assert skipped(Acts(private).judge(listed, Drafts(), "Ann", None, event(data))[0])
    for closed in (Listed(), replace(listed, at=None)):
        assert skipped(Acts(private).judge(closed, Drafts(), "Ann", None, judgement(doc, "2"))[0])
    assert read() == Annotations()


def test_scoring_with_re_judgements_changes_labels_ids_and_figures(private, choice, opened, judgement, first_hit):
    before = private.overview(choice(), None)
    assert private.overview(choice(anew=True), None)[10] is None  # nothing is judged anew
    _, listed = opened(private)
    doc = first_hit(private, listed)
    Acts(private).judge(listed, Drafts(), "Ann", None, judgement(doc, "2"))
    assert private.overview(choice(), None)[:3] == before[:3]
    after = private.overview(choice(anew=True), None)
    overlay = after[10]
    label = f"bm25, judged anew ({overlay.hash})"
    assert overlay.hash and label in after[0] and label in json.loads(after[1])["layout"]["title"]["text"]
    assert f"judged anew {overlay.hash}" in after[9] and label not in before[0]
    runs = {html: html.partition("<dt>runs</dt><dd>")[2].partition("</dd>")[0] for html in (before[9], after[9])}
    assert len(set(runs.values())) == 2 and all(runs.values())
    key = listed.keys[0]
    assert key in private.list_queries(choice(), Wanted(), None)[1].keys
    html, anew = private.list_queries(choice(anew=True), Wanted(), overlay)
    assert key not in anew.keys and len(anew.keys) == len(listed.keys) - 1  # its first hit is relevant now
    assert label in html and anew.overlay == overlay
    everything = private.list_queries(choice(anew=True), Wanted(failing=False), overlay)[1]
    case = replace(everything, at=everything.keys.index(key))
    # What is judged now is not on the screen yet, which goes on with what it was scored with.
    html, form, _ = Acts(private).judge(case, Drafts(), "Ann", None, judgement(doc, "0"))
    assert JUDGED_AGAIN in form and f"judged anew ({overlay.hash})" in html
    assert private.overview(choice(anew=True), None)[10].hash not in ("", overlay.hash)


# Whose work it is


def test_two_sessions_in_public_mode_see_nothing_of_each_other(
    tab, choice, opened, note, judgement, read, sent, first_hit
):
    ann, bob = SessionNotes(), SessionNotes()
    _, listed = opened(tab)
    doc = first_hit(tab, listed)
    assert Acts(tab).save_note(listed, Drafts(), "Ann", ann, note(listed.keys[0], "of Ann"))[2] is ann
    assert Acts(tab).judge(listed, Drafts(), "Ann", ann, judgement(doc, "2"))[2] is ann
    shown = opened(tab, session=bob, author="Ann")[0]
    assert "of Ann" not in shown[2] and 'data-anew="2"' not in shown[0] and read(bob) == Annotations()
    assert len(read(ann)) == 2 and tab.context.notes is None
    assert tab.overview(choice(anew=True), bob)[10] is None and tab.overview(choice(anew=True), ann)[10].hash
    rows = {name: sent(Files(tab).save_notes(DEMO, of))[1].count(b"Ann") for name, of in (("ann", ann), ("bob", bob))}
    assert rows["ann"] >= 2 and rows["bob"] == 0
    assert not list(tab.context.workspace.root.rglob("notes.sqlite*"))


def test_in_private_mode_saved_work_is_shared_and_drafts_are_not(private, demo, opened, note):
    _, listed = opened(private)
    drafts = Acts(private).keep_draft(listed, Drafts(), "Ann", None, note(listed.keys[1], "begun by Ann"))
    Acts(private).save_note(listed, drafts, "Ann", None, note(listed.keys[0], "saved by Ann"))
    other = Failures(demo)
    assert "saved by Ann" in opened(other, 0, author="Bob")[0][2]
    assert "begun by Ann" not in opened(other, 1, author="Bob")[0][2]
    assert "begun by Ann" in opened(private, 1, author="Ann", drafts=drafts)[0][2]


def test_notes_that_cannot_be_read_are_said_everywhere_and_left_alone(
    private,
    opened,
    note,
    judgement,
    sentence,
    event,
    first_hit,
):
    _, listed = opened(private)
    doc = first_hit(private, listed)
    path = private.context.notes.path
    path.write_bytes(b"no database")
    assert "is damaged" in sentence(private.open_case(listed, Drafts(), "", None, event({"i": 0}), "i")[0])
    form, drafts, _ = Acts(private).save_note(listed, Drafts(), "Ann", None, note(listed.keys[0], "kept"))
    assert "is damaged" in form and ">kept</textarea>" in form and drafts.kept
    assert Acts(private).keep_draft(listed, Drafts(), "Ann", None, note(listed.keys[0], "kept")).kept
    html, form, _ = Acts(private).judge(listed, Drafts(), "Ann", None, judgement(doc, "2"))
    assert skipped(html) and "is damaged" in form
    assert "is damaged" in json.loads(Files(private).save_notes(DEMO, None))["problem"]
    assert "is damaged" in sentence(Files(private).save_qrels(DEMO, None)[1])
    assert path.read_bytes() == b"no database"
