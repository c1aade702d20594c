"""The tab as it is built: what its events give, and what raw requests can and cannot do."""

from __future__ import annotations

import json
import logging

import gradio as gr
import pytest

from ui.app import build
from ui.compare.opening import Opening
from ui.compare.state import Brought
from ui.compare.tab import MENUS, VIEWS, Compare

DEMO = "Demo library"


@pytest.fixture(scope="module")
def blocks(demo) -> gr.Blocks:
    return build(demo)


@pytest.fixture
def own(blocks, events_of) -> list:
    return events_of(blocks, "ui.compare")


@pytest.fixture
def called(own, named):
    return lambda name: named(own, name)


@pytest.fixture
def post(blocks, requests_to):
    return requests_to(blocks)


def test_every_event_is_private_and_only_fusions_and_files_wait_in_the_queue(own):
    assert len(own) > 20 and all(fn.api_visibility == "private" for fn in own)
    for fn in own:
        waits = fn.fn.__name__ in ("see_both", "bring", "save_report") or fn.fn.__name__ == "save"
        assert waits or fn.queue is False, fn.fn.__name__
        if fn.fn.__name__ == "see_both":
            assert (fn.concurrency_id, fn.concurrency_limit) == ("fusing", 1)


def test_every_callback_gives_as_many_values_as_it_is_wired_to(tab, choice, nobody, event, called):
    """What Gradio would only say at run time."""
    again = (DEMO, None, None, None, (), None, None, (), nobody)
    gives = {
        "open_tab": tab.open_tab(DEMO, DEMO, nobody),
        "choose": tab.choose(*again),
        "choose_again": tab.choose(*again, "mine"),
        "see": tab.overview(choice(), nobody),
        "see_details": tab.details(choice(task=None), nobody, ""),
        "see_pair": tab.pair(choice(), nobody),
        "ask_query": Opening(tab).query(choice(), nobody, event(None)),
        "ask_point": Opening(tab).point(choice(), nobody, event(None)),
        "ask_outcome": Opening(tab).outcome(choice(), nobody, event(None)),
    }
    for name, values in gives.items():
        for fn in called(name):
            assert len(fn.outputs) == len(values), name
    assert len(gives["choose"]) == MENUS + VIEWS == len(gives["open_tab"]) - 1
    assert all(len(fn.outputs) == 2 for fn in called("see_cost"))
    for name in ("see_both", "save", "save_report"):
        assert all(len(fn.outputs) == 1 for fn in called(name)), name


def test_all_widgets_can_be_used_and_are_labelled(blocks):
    made = {block.elem_id: block for block in blocks.blocks.values() if getattr(block, "elem_id", None)}
    for name in ("task", "measure", "by", "shown", "a", "b", "cost-by"):
        assert made[f"compare-{name}"].interactive is True and made[f"compare-{name}"].label, name
    for name in ("name", "revision", "where"):
        assert made[f"bring-{name}"].interactive is True and made[f"bring-{name}"].label, name


def test_a_menu_asks_once(blocks):
    """`input` of a menu comes twice for one choice in the installed version."""
    made = {block._id: getattr(block, "elem_id", None) for block in blocks.blocks.values()}
    asked = {
        made[target]: kind
        for fn in blocks.fns.values()
        for target, kind in fn.targets
        if (made.get(target) or "").startswith("compare-")
    }
    assert {asked[f"compare-{name}"] for name in ("task", "measure", "by", "a", "b")} == {"select"}


def test_raw_requests_with_damaged_data_break_nothing_and_tell_nothing(post, own, caplog):
    caplog.set_level(logging.CRITICAL)
    damaged = [None, "x", {"outcome": 1}, {"outcome": "wins", "within": ["x"]}, {"collection": "..", "query": {}}]
    damaged += [{"customdata": "\x1f"}, {"name": "../../x", "b64": "%"}, {"name": "x", "b64": "QQ=="}]
    for fn in own:
        names = [DEMO if getattr(block, "elem_id", None) == "data" else None for block in fn.inputs]
        for event in damaged:
            status, answer = post(fn._id, names, event)
            text = json.dumps(answer)
            assert status in (200, 500) and "Traceback" not in text and "/work" not in text, fn.fn.__name__
        for data in ([], [None] * 30, [{"a": 1}] * 11, ["x"] * 9):
            status, answer = post(fn._id, data)
            assert status in (200, 422, 500) and "Traceback" not in json.dumps(answer), fn.fn.__name__


def test_what_a_session_brings_is_not_seen_by_another(post, called, run_of, blocks):
    import base64

    (bring,), (opens,) = called("bring"), called("open_tab")
    for who in ("ann", "bob"):
        assert post(opens._id, [DEMO, None, None], None, who)[0] == 200
    sent = {"name": "my.run", "b64": base64.b64encode(run_of("summary")).decode()}
    status, answer = post(bring._id, [DEMO, "summary", "", "mine alone", "", None], sent, "ann")
    assert status == 200 and "browser session only" in json.dumps(answer["data"][0])
    choose = called("choose")[0]
    chosen = [DEMO, "summary", "nDCG@10", "domain", [], None, None, None, None]
    status, ann = post(choose._id, chosen, None, "ann")
    _, bob = post(choose._id, chosen, None, "bob")
    assert "mine alone" in json.dumps(ann) and "mine alone" not in json.dumps(bob)
    states = [b for b in blocks.blocks.values() if isinstance(b, gr.State) and isinstance(b.value, Brought)]
    assert len(states) == 1 and states[0].value == Brought() and states[0].time_to_live == 3600


def test_the_tab_is_wired_to_its_own_callbacks(called):
    assert isinstance(called("choose")[0].fn.__self__, Compare)
