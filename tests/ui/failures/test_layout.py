"""The tab as it is built: what its events cost and give, and what raw requests can and cannot do."""

from __future__ import annotations

import json
import logging

import gradio as gr
import pytest

from core.analyze.lists import Wanted
from core.analyze.notes import NoteStore, SessionNotes
from ui.app import build
from ui.failures.acts import Acts
from ui.failures.files import Files
from ui.failures.state import Drafts, Listed
from ui.failures.tab import CUTS, Failures

DEMO = "Demo library"
FILTERS = [True, "", "", "", "", "worst", None, None]
"""Failures only, group, kind, agreement, words, order, first hit, overlay."""


@pytest.fixture(scope="module")
def blocks(demo) -> gr.Blocks:
    return build(demo)


@pytest.fixture
def own(blocks, events_of) -> list:
    return events_of(blocks, "ui.failures")


@pytest.fixture
def called(own, named):
    return lambda name: named(own, name)


@pytest.fixture
def post(blocks, called, requests_to):
    """A raw request to an event's function by its name, the one of these ``at`` a place, or to its number."""
    send = requests_to(blocks)

    def to(name: str | int, data: list, event: object = None, session: str = "s", at: int = 0):
        return send(name if isinstance(name, int) else called(name)[at]._id, data, event, session)

    return to


def test_every_event_is_private_and_only_scoring_and_listing_wait_in_the_queue(blocks, own):
    assert len(own) > 40
    assert {fn["api_visibility"] for fn in blocks.get_config_file()["dependencies"]} == {"private"}
    for fn in own:
        shared = {"see": ("analysis", 2), "find": ("listing", 1)}.get(fn.fn.__name__)
        assert shared is None or ((fn.concurrency_id, fn.concurrency_limit) == shared and fn.queue)
        if not shared and fn.fn.__name__ not in ("open_tab", "choose_task", "choose_run"):
            assert fn.queue is False, fn.fn.__name__
    for name in ("open_row", "look", "step"):
        assert {fn.trigger_mode for fn in own if fn.fn.__name__ == name} == {"always_last"}, name
    assert [fn.trigger_mode for fn in own if fn.fn.__name__ == "judge"] == ["multiple"]


def test_every_callback_gives_as_many_values_as_it_is_wired_to(tab, choice, event, opened, called):
    """What Gradio would only say at run time."""
    nothing = event(None)
    _, listed = opened(tab)
    gives = {
        "open_tab": tab.open_tab(DEMO, DEMO),
        "see": tab.overview(choice(), None),
        "find": tab.list_queries(choice(), Wanted(), None),
        "turn_page": tab.turn_page(Listed(), nothing),
        "open_row": tab.open_case(listed, Drafts(), "", None, nothing, "i"),
        "look": tab.look(listed, nothing),
        "judge": Acts(tab).judge(listed, Drafts(), "", None, nothing),
        "save_note": Acts(tab).save_note(listed, Drafts(), "", None, nothing),
        "save_qrels": Files(tab).save_qrels(DEMO, None),
        "read_notes": Files(tab).read_notes(DEMO, None, nothing),
    }
    assert len(tab.open_tab(DEMO, None)) == len(gives["open_tab"])
    assert len(tab.overview(choice(run=None), None)) == len(gives["see"])
    assert len(tab.choose_task(DEMO, "summary", None, None, None)) == len(tab.choose_task(DEMO, None, None, None, None))
    for name, values in gives.items():
        for fn in called(name):
            assert len(fn.outputs) == len(values), name
    for name in ("choose_run", "step", "keep_draft", "save_case", "save_notes"):
        assert all(len(fn.outputs) == 1 for fn in called(name)), name
    assert {len(fn.outputs) for fn in called("choose_task")} == {1, 7}  # a task's name, and its widgets


def test_all_widgets_can_be_used_and_are_labelled(blocks):
    made = {block.elem_id: block for block in blocks.blocks.values() if getattr(block, "elem_id", None)}
    names = ("task", "run", "beside", "by", "k", "measure", "scope", "group", "kind", "agree", "order", "text")
    for name in (*names, "anew", "only", "author"):
        block = made[f"failure-{name}"]
        assert block.interactive is True and block.label, name
    assert made["failure-k"].value == 10 and [value for _, value in made["failure-k"].choices] == list(CUTS)
    assert "session only" in made["failure-author"].info


def test_notes_are_of_the_session_in_public_mode_and_of_the_workspace_in_private(blocks, demo, tmp_path, monkeypatch):
    def sessions(of: gr.Blocks) -> list:
        return [b for b in of.blocks.values() if isinstance(b, gr.State) and isinstance(b.value, SessionNotes)]

    assert len(sessions(blocks)) == 1
    monkeypatch.setattr(demo, "notes", NoteStore(tmp_path / "notes.sqlite"))
    private = build(demo)
    author = next(b for b in private.blocks.values() if getattr(b, "elem_id", None) == "failure-author")
    assert not sessions(private) and "session only" not in author.info


def walk(post, session: str, run: str = "bm25") -> tuple[list, str]:
    """Opens the tab, the list of a run and its first case, as a browser does; what is chosen, and the form's query."""
    status, answer = post("open_tab", [DEMO, None], session=session)
    assert status == 200 and len(answer["data"]) == 10
    status, answer = post("choose_task", [DEMO, "summary", "pool", run, "modality"], session=session)
    assert status == 200 and answer["data"][0]["value"] == run
    chosen = [DEMO, "summary", "pool", run, [], "modality", 10, "nDCG@10", False]
    status, answer = post("find", [None, *chosen, *FILTERS], session=session, at=1)
    assert status == 200 and "1–" in answer["data"][0], answer
    status, answer = post("open_row", [None, None, "Ann", None], {"i": 0}, session)
    assert status == 200 and "Case 1 of" in answer["data"][0]
    return chosen, answer["data"][2]


def test_two_browser_sessions_see_nothing_of_each_other(post, demo):
    _, form = walk(post, "ann")
    key = {name: form.partition(f'data-{name}="')[2].partition('"')[0] for name in ("collection", "id")}
    note = {**key, "text": "only of Ann", "tags": ""}
    assert post("keep_draft", [None, None, "Ann", None], note, "ann")[0] == 200
    assert "only of Ann" not in walk(post, "bob")[1]
    assert "only of Ann" in walk(post, "ann")[1]
    status, answer = post("save_note", [None, None, "Ann", None], note, "ann")
    assert status == 200 and "Saved." in answer["data"][0] and "<strong>Ann</strong>" in answer["data"][0]
    assert "<strong>Ann</strong>" not in walk(post, "bob")[1] and "<strong>Ann</strong>" in walk(post, "ann")[1]
    assert not list(demo.workspace.root.rglob("notes.sqlite*"))


DAMAGED = [
    None,
    "x",
    {"i": 1e9, "to": -1, "name": {"a": 1}, "customdata": ["x"], "b64": "%", "at": "0", "id": None},
    {
        "i": "0",
        "to": 10**30,
        "name": "no such",
        "customdata": "\x1f",
        "b64": "",
        "collection": "x",
        "id": "y",
        "text": 0,
    },
    {"collection": "x", "id": "y", "doc": "z", "grade": "2", "query": False, "text": "x", "tags": "", "at": 0},
]


def test_raw_requests_with_damaged_data_break_nothing_and_tell_nothing(post, own, caplog):
    """Events with damaged data, before and after a case is open, and inputs of wrong kinds and numbers."""
    caplog.set_level(logging.CRITICAL)
    light = [fn for fn in own if fn.fn.__name__ not in ("see", "find", "open_tab", "choose_task", "choose_run")]
    chosen, _ = walk(post, "open")
    shown = post("open_row", [None, None, "Ann", None], {"i": 0}, "open")[1]["data"][0]
    for fn in light:
        names = [DEMO if getattr(block, "elem_id", None) == "data" else None for block in fn.inputs]
        for session in ("new", "open"):
            for event in DAMAGED:
                status, answer = post(fn._id, names, event, session)
                text = json.dumps(answer)
                assert status in (200, 500) and "Traceback" not in text and "/work" not in text, fn.fn.__name__
                assert session == "open" or status == 200 or answer == {"error": None}, (fn.fn.__name__, event)
    for name in ("see", "find", "choose_task", "open_row"):
        for data in ([], [None] * 30, [{"a": 1}] * 17, ["x"] * 10):
            status, answer = post(name, data, {"i": 0}, "open")
            assert status in (200, 422, 500) and "Traceback" not in json.dumps(answer)
    bad = {"by": 5, "k": 6, "measure": 7, "run": 3, "task": 1, "data": 0}
    for name, at in bad.items():
        wrong = [*chosen[:at], "<nothing>", *chosen[at + 1 :]]
        status, answer = post("find", [None, *wrong, *FILTERS], session="open", at=1)
        assert status == 500 and answer["error"], name
    again = post("open_row", [None, None, "Ann", None], {"i": 0}, "open")[1]["data"][0]
    assert again == shown and walk(post, "new")


def test_buttons_of_tables_choose_only_what_there_is(blocks, demo, called, event):
    tab = Failures(demo)
    task = next(fn for fn in called("choose_task") if len(fn.outputs) == 1).fn
    group = called("choose_group")[0].fn
    assert task(event({"name": "summary"}), DEMO) == "summary"
    for data in ({"name": "nowhere"}, {"name": 1}, {}, None):
        assert task(event(data), DEMO) == gr.skip()
    assert group(event({"name": "CT"})) == "CT"
    assert [group(event(data)) for data in ({"name": 7}, {"name": "x" * 1001}, [], None)] == [""] * 4
    point, cell = called("choose_point")[0].fn, called("choose_cell")[0].fn
    assert point(event({"customdata": "CT"}), "modality") == "CT"
    assert point(event({"customdata": "Summary"}), "task") == gr.skip()
    assert cell(event({"customdata": "Head\x1fChest"}), "domain") == ("Head", ("domain", "Chest"))
    assert cell(event({"customdata": "Head\x1fChest"}), "plane") == (gr.skip(), ("domain", "Chest"))
    assert cell(event({"customdata": "Head"}), "domain") == cell(event(None), "domain") == (gr.skip(), None)
    assert tab.context is demo
