"""Filter chips and query picker on a small page of their own, over the demo library."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import gradio as gr
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from core.data.dataset import open_dataset
from core.data.find import QueryTexts, find_queries, random_query
from core.data.pool import FILTERS, Pool
from core.settings import DEMO
from core.store.workspace import open_workspace
from ui.app import launch_options
from ui.search import chips, picker

pytestmark = pytest.mark.journey
ROOT = Path(__file__).resolve().parents[2]
TASK = "query_to_image"
WIRED = {"show_progress": "hidden", "queue": False, "trigger_mode": "always_last", "api_visibility": "private"}


def build_page(pool: Pool) -> gr.Blocks:
    """Both components in a narrow column, and what Python made of their events beside them."""
    texts = QueryTexts()

    def begin():
        values = {name: pool.values(name) for name in FILTERS}
        return chips.face(values), picker.face(find_queries(pool, "", 0, picker.PAGE, texts))

    def look(event: gr.EventData):
        words, start = picker.look_of(event)
        return picker.answer(find_queries(pool, words, start, picker.PAGE, texts), words, start)

    def draw():
        query = random_query(pool, random.Random(3))
        return picker.face(find_queries(pool, "", 0, picker.PAGE, texts), query), json.dumps(["random", query.id])

    def chose(event: gr.EventData):
        return json.dumps(picker.choice_of(event))

    def filtered(event: gr.EventData):
        return json.dumps(chips.chosen_of(event))

    def search(value: str):
        return json.dumps(chips.chosen_in(value))

    with gr.Blocks(title="Parts", analytics_enabled=False, fill_width=True) as blocks:
        gr.HTML("<h1>Parts</h1>")
        with gr.Row():
            with gr.Column(elem_id="query-column"):
                filters = chips.chips()
                queries = picker.picker()
                go = gr.Button("Search", elem_id="go")
            with gr.Column(elem_id="hits-column"):
                sent = gr.Textbox(label="Filters sent", elem_id="sent")
                chosen = gr.Textbox(label="Query chosen", elem_id="chosen")
                searched = gr.Textbox(label="Searched with", elem_id="searched")
                again = gr.Button("Start again", elem_id="again")
        gr.on([blocks.load, again.click], begin, None, [filters, queries], **WIRED)
        filters.filter(filtered, None, sent, **WIRED)
        queries.look(look, None, queries, **WIRED)
        queries.choose(chose, None, chosen, **WIRED)
        queries.random(draw, None, [queries, chosen], **WIRED)
        go.click(search, filters, searched, **WIRED)
    return blocks


def launch(pool: Pool) -> tuple[gr.Blocks, str]:
    css = (ROOT / "ui" / "search" / "parts.css").read_text()
    options = launch_options()
    options["head"] += f"<style>{css}</style>"
    options.pop("js")
    blocks = build_page(pool)
    _, url, _ = blocks.launch(prevent_thread_lock=True, quiet=True, **options)
    return blocks, url


@pytest.fixture(scope="module")
def demo_pool(tmp_path_factory) -> Pool:
    workspace = open_workspace(str(tmp_path_factory.mktemp("parts") / "workspace"))
    return open_dataset(DEMO, workspace).pool(TASK)


@pytest.fixture(scope="module")
def parts(demo_pool) -> Iterator[str]:
    blocks, url = launch(demo_pool)
    yield url
    blocks.close()


@dataclass
class Opened:
    page: Page
    errors: list[str] = field(default_factory=list)


@pytest.fixture
def opened(browser, parts) -> Iterator:
    """Open the page; at the end it may have no error."""
    everything: list[Opened] = []

    def open_page(width: int = 1440, dark: bool = False) -> Page:
        scheme = "dark" if dark else "light"
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.set_default_timeout(10_000)
        one = Opened(page)
        everything.append(one)
        page.on("pageerror", lambda error: one.errors.append(str(error)))
        page.on("console", lambda m: one.errors.append(m.text) if m.type == "error" else None)
        page.goto(parts)
        page.locator("#filters .m3-facet-head").first.wait_for(timeout=60_000)
        page.locator("#queries input[placeholder]").wait_for()
        return page

    yield open_page
    for one in everything:
        assert one.errors == []
        one.page.close()


def head(page: Page, name: str):
    return page.locator("#filters .m3-facet-head", has_text=f"{name}: ")


def wait_for_box(page: Page, box: str, wanted: object) -> None:
    """Wait until the log box holds ``wanted`` as JSON."""
    page.wait_for_function(
        "([box, text]) => document.querySelector(box + ' textarea').value === text", arg=[f"#{box}", json.dumps(wanted)]
    )


def option_count(page: Page) -> int:
    return page.locator("#queries [role=option]").count()


def wait_for_total(page: Page, text: str) -> None:
    page.wait_for_function("t => document.querySelector('#queries .m3-total').textContent === t", arg=text)


def test_two_domains_by_mouse_and_one_taken_away(opened, demo_pool):
    page = opened()
    counts = demo_pool.values("domain")
    assert head(page, "Domain").text_content() == "Domain: all▾"
    before = page.locator("#queries").bounding_box()
    head(page, "Domain").click()
    assert page.locator("#filters .m3-pop:visible .m3-tick").all_inner_texts() == [
        f"{name}\n({n:,})" for name, n in counts.items()
    ]
    assert page.locator("#queries").bounding_box() == before, "the list of values moved the page"
    for name in ("Thorax", "Head"):
        page.locator("#filters .m3-tick", has_text=name).click()
    wait_for_box(page, "sent", {"domain": ["Thorax", "Head"], "specialty": [], "modality": []})
    assert head(page, "Domain").text_content() == "Domain: Thorax, Head▾"
    page.mouse.click(1200, 700)
    assert head(page, "Domain").get_attribute("aria-expanded") == "false"
    page.locator("#filters .m3-chosen", has_text="Thorax").click()
    wait_for_box(page, "sent", {"domain": ["Head"], "specialty": [], "modality": []})
    assert page.locator("#filters .m3-chosen").all_text_contents() == ["Remove Domain Head×"]
    assert page.evaluate("document.activeElement.dataset.value") == "Head"


def test_a_search_at_once_after_a_tick_has_the_tick(opened):
    page = opened()
    head(page, "Modality").click()
    page.evaluate(
        "() => { document.querySelector('#filters .m3-pop:not([hidden]) input[value=CT]').click();"
        " document.querySelector('#go').click(); }"
    )
    wait_for_box(page, "searched", {"domain": [], "specialty": [], "modality": ["CT"]})


def test_specialty_by_keyboard_alone(opened):
    page = opened()
    head(page, "Domain").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").startswith("Specialty")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    wait_for_box(page, "sent", {"domain": [], "specialty": ["Gastrointestinal"], "modality": []})
    page.keyboard.press("Escape")
    assert head(page, "Specialty").evaluate("e => e === document.activeElement && e.ariaExpanded === 'false'")
    page.keyboard.press("Enter")
    page.locator("#filters .m3-pop:visible .m3-plain", has_text="Clear").focus()
    page.keyboard.press("Enter")
    wait_for_box(page, "sent", {"domain": [], "specialty": [], "modality": []})
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    assert page.locator("#filters .m3-pop:visible").count() == 0, "leaving by Tab closes the list"


def test_python_can_start_again_with_the_same_values(opened):
    page = opened()
    head(page, "Domain").click()
    page.locator("#filters .m3-tick", has_text="Head").click()
    page.locator("#filters .m3-chosen").wait_for()
    page.click("#again")
    page.wait_for_function("() => !document.querySelector('#filters .m3-chosen')")
    assert head(page, "Domain").text_content() == "Domain: all▾"


def test_a_query_is_searched_and_chosen_by_keyboard_alone(opened, demo_pool):
    page = opened()
    found = find_queries(demo_pool, "HEAD ring", 0, 20, QueryTexts())
    assert 1 < found.total < found.of
    page.locator("#queries input").focus()
    page.keyboard.type("HEAD ring")
    wait_for_total(page, f"{found.total} of {found.of} queries")
    assert option_count(page) == min(found.total, 20)
    assert {t.casefold() for t in page.locator("#queries mark").all_inner_texts()} >= {"head", "ring"}
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    active = page.locator("#queries input").get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    page.keyboard.press("Enter")
    wait_for_box(page, "chosen", [found.rows[1].collection, found.rows[1].id])
    assert page.locator("#queries input").get_attribute("aria-expanded") == "false"
    assert page.locator("#queries .m3-pop").is_hidden()
    page.click("#again")
    page.wait_for_function("() => document.querySelector('#queries input').value === ''")


def test_python_can_empty_the_field_though_nothing_was_searched(opened):
    page = opened()
    page.locator("#queries input").click()
    page.locator("#queries [role=option]").first.click()
    page.wait_for_function("() => document.querySelector('#queries input').value !== ''")
    page.click("#again")
    page.wait_for_function("() => document.querySelector('#queries input').value === ''")


def test_the_list_grows_to_the_end(opened, demo_pool):
    page = opened()
    total = find_queries(demo_pool, "", 0, 0, QueryTexts()).total
    page.locator("#queries input").click()
    wait_for_total(page, f"{total} queries")
    assert option_count(page) == 20
    page.locator("#queries .m3-more").click()
    page.wait_for_function("() => document.querySelectorAll('#queries [role=option]').length === 40")
    page.locator("#queries [role=listbox]").evaluate("e => { e.scrollTop = e.scrollHeight; }")
    page.wait_for_function("() => document.querySelectorAll('#queries [role=option]').length === 60")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.wait_for_function(f"() => document.querySelectorAll('#queries [role=option]').length === {total}")
    assert page.locator("#queries .m3-more").is_hidden()
    page.keyboard.press("Escape")
    assert page.locator("#queries .m3-pop").is_hidden()


def test_fast_typing_ends_with_the_last_words(opened, demo_pool):
    page = opened()
    page.locator("#queries input").click()
    for words in ("lung", "lung nod", "thorax"):
        page.locator("#queries input").fill(words)
        page.wait_for_timeout(205)
    found = find_queries(demo_pool, "thorax", 0, 20, QueryTexts())
    wait_for_total(page, f"{found.total} of {found.of} queries")
    page.locator("#queries input").fill("no such words anywhere")
    wait_for_total(page, f"0 of {found.of} queries. Try fewer or other words.")


def test_a_random_query_fills_the_field(opened, demo_pool):
    page = opened()
    page.click("#queries .m3-random")
    query = random_query(demo_pool, random.Random(3))
    wait_for_box(page, "chosen", ["random", query.id])
    assert page.input_value("#queries input") == query.text


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1440])
def test_open_lists_fit_the_page_and_pass_axe(opened, width, dark):
    page = opened(width, dark)

    def look(what: str) -> None:
        assert page.evaluate("document.documentElement.scrollWidth") <= width, what
        box = page.locator(".m3-pop:visible").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, what
        for part in ("#filters", "#queries"):
            found = Axe().run(page, context=part).response["violations"]
            assert [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")] == [], (
                what
            )
        small = page.evaluate(
            "() => [...document.querySelectorAll('#filters button, #filters label, #queries button, #queries input,"
            " #queries li')].filter(e => e.offsetParent && e.getBoundingClientRect().height < 32).length"
        )
        assert small == 0, f"{what}: too low to touch"

    for name in ("Domain", "Specialty", "Modality"):
        head(page, name).click()
        page.locator("#filters .m3-pop:visible .m3-tick").first.click()
        look(name)
    page.keyboard.press("Escape")
    page.locator("#queries input").click()
    page.locator("#queries input").fill("lung")
    page.locator("#queries mark").first.wait_for()
    page.keyboard.press("ArrowDown")
    look("picker")


def test_names_and_texts_of_a_data_set_never_become_code(browser, tmp_path, workspace, collection_writer):
    evil = '<img src=x onerror="window.hit=1"></script><script>window.hit=5</script> ${window.hit=2} {{window.hit=3}}'
    names = [f"{evil} {n} نخاع 🧠" for n in range(13)]
    docs = [{"_id": f"d{n}", "text": "a lung", "meta": {"specialty": name}} for n, name in enumerate(names)]
    query = {"_id": evil, "caption": f"lung {evil}", "meta": {"specialty": evil}}
    collection_writer(tmp_path / "evil" / "Head", [query], docs, [(evil, "d0", 2)])
    blocks, url = launch(open_dataset(tmp_path / "evil", workspace).pool("retrieval"))
    page = browser.new_page(viewport={"width": 390, "height": 900})
    try:
        page.goto(url)
        head(page, "Specialty").click()
        page.locator("#filters .m3-find input").fill("نخاع 12")
        assert page.locator("#filters .m3-pop:visible .m3-tick bdi").all_text_contents() == [names[12]]
        page.locator("#filters .m3-pop:visible .m3-tick input").check()
        wait_for_box(page, "sent", {"domain": [], "specialty": [names[12]], "modality": []})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.keyboard.press("Escape")
        page.locator("#queries input").fill("WINDOW.HIT lung")
        page.locator("#queries mark").first.wait_for()
        assert page.locator("#queries .m3-text").all_text_contents() == [f"lung {evil}"]
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        wait_for_box(page, "chosen", ["retrieval/Head", evil])
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("window.hit") is None
    finally:
        page.close()
        blocks.close()
