"""The frame of the page: its tabs, its address, and what belongs to one tab only."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = pytest.mark.journey
TABS = {"search": "#words", "failures": "#failure-overview"}


def turn(page, name: str) -> None:
    page.get_by_role("tab", name={"search": "Search", "failures": "Failure cases"}[name], exact=True).click()
    shown(page, name)


def shown(page, name: str) -> None:
    """This tab is the visible one, its button says so, and no other one is."""
    page.locator(TABS[name]).wait_for()
    assert page.locator("[role=tab][aria-selected=true]").count() == 1
    for other in TABS.keys() - {name}:
        page.locator(TABS[other]).wait_for(state="hidden")


def address(page) -> str:
    return page.evaluate("location.hash")


def test_back_and_forward_walk_the_tabs(demo_server, visit):
    page = visit(demo_server).page
    shown(page, "search")
    assert address(page) == "" and page.locator(TABS["failures"]).count() == 0, "only the first tab is mounted"
    turn(page, "failures")
    assert address(page) == "#tab=failures"
    assert page.locator("#data input").is_visible() and page.locator("#facts strong").first.is_visible()
    turn(page, "search")
    assert address(page) == ""
    page.go_back()
    shown(page, "failures")
    page.go_back()
    shown(page, "search")
    page.go_forward()
    shown(page, "failures")
    assert address(page) == "#tab=failures" and page.evaluate("history.length") == 4


def test_a_link_opens_its_tab_and_a_damaged_one_the_first(demo_server, visit):
    first = visit(demo_server).page
    for hash, name in (("#tab=failures", "failures"), ("#tab=evil&x=%00", "search")):
        page = first.context.new_page()
        page.goto(f"{demo_server.url}/{hash}")
        shown(page, name)
        page.wait_for_timeout(1000)  # whatever the tabs still do at the start
        shown(page, name)
        assert address(page) == hash and page.evaluate("history.length") == 2, "the start adds nothing to walk back to"
        turn(page, "failures" if name == "search" else "search")
        page.go_back()
        shown(page, name)
        assert address(page) == hash


def test_keys_stay_with_their_tab(demo_server, visit):
    page = visit(demo_server).page
    page.evaluate("document.addEventListener('m3-nav', e => { window.told = e.detail; })")
    say = "detail => document.dispatchEvent(new CustomEvent('m3-route', {detail}))"
    turn(page, "failures")
    page.evaluate(say, {"case": "a b&c"})
    assert address(page) == "#tab=failures&case=a+b%26c"
    turn(page, "search")
    assert address(page) == ""
    turn(page, "failures")
    assert address(page) == "#tab=failures&case=a+b%26c"
    page.evaluate(say, {"case": None})
    assert address(page) == "#tab=failures"
    page.go_back()
    page.wait_for_function("() => window.told?.case === 'a b&c'")


def test_ctrl_enter_searches_on_the_search_tab_alone(demo_server, visit):
    visit = visit(demo_server)
    page = visit.page
    assert visit.search(lambda: page.keyboard.press("Control+Enter"))
    turn(page, "failures")
    page.evaluate("document.querySelector('#go').addEventListener('click', () => { window.pressed = true; })")
    page.keyboard.press("Control+Enter")
    assert page.evaluate("window.pressed") is None
    turn(page, "search")
    page.keyboard.press("Control+Enter")
    assert page.evaluate("window.pressed") is True


def test_an_open_panel_stays_with_its_tab(demo_server, visit):
    visit = visit(demo_server)
    page = visit.page
    visit.open(1)
    room = "() => parseInt(getComputedStyle(document.querySelector('#facts-column')).paddingRight)"
    assert page.evaluate(room) == 480
    turn(page, "failures")
    assert page.locator("#panel").is_hidden() and page.evaluate(room) == 0
    turn(page, "search")
    assert page.locator("#panel").is_visible() and page.evaluate(room) == 480
    visit.fits("back on the Search tab")


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_all_tabs_are_in_view_and_pass_axe(demo_server, visit, width, dark):
    visit = visit(demo_server, width=width, dark=dark)
    page = visit.page
    for name in TABS:
        turn(page, name)
        for tab in page.get_by_role("tab").all():
            box = tab.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["height"] >= 30
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{name}: {wide} px too wide"
        found = Axe().run(page, "#tabs > .tab-wrapper").response["violations"]
        assert [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")] == []
