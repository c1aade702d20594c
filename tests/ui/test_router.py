"""The address behind #: what of it is believed, and which tab it shows."""

from __future__ import annotations

import pytest

from ui.app import TABS, go_to
from ui.router import LONGEST, MOST, keys_of, router


@pytest.mark.parametrize("data", [None, "x", 3, [], {"tab": None}, {"tab": ["failures"]}, {"tab": "x" * (LONGEST + 1)}])
def test_what_is_no_short_text_is_left_out(event, data):
    assert keys_of(event(data)) == {}


def test_keys_are_limited_in_number(event):
    sent = {f"k{i}": "v" for i in range(MOST + 5)}
    assert keys_of(event(sent)) == dict(list(sent.items())[:MOST])


ADDRESSES = [({"tab": "failures", "case": "x"}, "failures"), ({"tab": "search"}, "search"), ({"tab": "evil"}, "search")]


@pytest.mark.parametrize(("data", "tab"), [*ADDRESSES, ({}, "search"), (None, "search")])
def test_an_address_shows_its_tab_and_the_first_one_without(event, data, tab):
    assert go_to(event(data)).selected == tab


def test_the_browser_knows_the_same_tabs():
    assert router(list(TABS)).props["tabs"] == list(TABS) == ["search", "failures", "compare"]
