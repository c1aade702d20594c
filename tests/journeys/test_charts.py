"""Charts and downloads alone on a page, in a real Chromium."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import gradio as gr
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Page

from core.analyze.slices import Confusion, Group, KindRow
from core.evaluate.stats import Estimate
from core.figures import failures
from ui.app import launch_options
from ui.charts import SOURCE, chart, point_of, to_json
from ui.download import MAX_BYTES, download, payload

pytestmark = pytest.mark.journey
EVIL = '<a href="https://example.org">x</a> ${window.hit=1} {{x}} </script>'
NAMES = ("Brain and Neuro", "Musculoskeletal, Bone and Joint", EVIL, "Breast", "other")


def group(name: str, mean: float, low: float | None, high: float | None) -> Group:
    rate = Estimate(mean, low, high, 769, 140, "percentile bootstrap")
    return Group(name, name == "other", 769, 140, 221, rate, rate, "near miss", 0.4, 0.1, ())


def rates(colour: str = "#56B4E9"):
    values = [(0.61, 0.52, 0.7), (0.29, 0.24, 0.34), (0.2, 0.1, 0.31), (math.nan, None, None), (0.05, 0.0, 0.12)]
    rows = [group(name, *value) for name, value in zip(NAMES, values, strict=True)]
    return failures.rates(rows, "medlite: where it fails, by specialty", 10, colour)


def confusion():
    counts = ((30, 4, 2, 0, 1), (3, 40, 9, 1, 0), (0, 1, 12, 6, 0), (0, 0, 0, 0, 0), (1, 2, 3, 4, 5))
    return failures.confusion(Confusion("specialty", NAMES, counts, 124, 3), "medlite: what it finds instead")


def kinds():
    rows = [
        KindRow("near miss", "depth", "A sentence.", 30, 0.6, 0.1, ""),
        KindRow("picture ignored", "reading", "A sentence.", 0, None, None, "medlite has words only"),
        KindRow("wrong domain of the first three hits", "cause", "A sentence.", 12, 0.24, 0.3, ""),
    ]
    return failures.kinds(rows, "medlite: why it fails")


@dataclass
class Desk:
    """The page under test: its address and the marks that were clicked."""

    url: str
    points: list[str | None] = field(default_factory=list)


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    result = Desk("")
    files = {
        "csv": ("../slice of Head.csv", "text/csv", "id,ä\n1,ö\n".encode()),
        "large": ("all.json", "application/json", bytes(20 << 20)),
        "too-large": ("everything.json", "application/json", bytes(MAX_BYTES + 1)),
    }
    quiet = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}

    def clicked(event: gr.EventData) -> None:
        result.points.append(point_of(event))

    with gr.Blocks(analytics_enabled=False) as page:
        gr.Markdown("# Charts")
        save = download()
        for name, file in files.items():
            gr.Button(name, elem_id=name).click(lambda file=file: payload(*file), None, save, **quiet)
        with gr.Tabs():
            with gr.Tab("Words"):
                gr.Markdown("No chart is in view here.")
            with gr.Tab("Charts"):
                plots = [chart(name, 300, f"Chart {name}") for name in ("rates", "confusion", "kinds")]
                empty = gr.Button("Nothing", elem_id="empty")
                again = gr.Button("Another colour", elem_id="again")
        empty.click(lambda: "", None, plots[0], **quiet)
        again.click(lambda: to_json(rates("#E69F00")), None, plots[0], **quiet)
        for plot in plots:
            plot.point(clicked, None, None, **quiet)
        page.load(lambda: [to_json(f) for f in (rates(), confusion(), kinds())], None, plots, **quiet)
    launch = launch_options() | {"quiet": True, "prevent_thread_lock": True}
    _, url, _ = page.launch(server_name="127.0.0.1", **launch)
    result.url = url.rstrip("/")
    yield result
    page.close()


@pytest.fixture
def look(browser, desk) -> Iterator[Callable[..., Page]]:
    """Open the page in a fresh context; at the end no error may have been logged and no other host asked."""
    errors: list[str] = []
    hosts: set[str] = set()
    contexts = []

    def open_page(width: int = 1440, dark: bool = False) -> Page:
        scheme = "dark" if dark else "light"
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.on("request", lambda r: hosts.add(r.url.split("/")[2]) if r.url.startswith("http") else None)
        page.goto(desk.url)
        page.get_by_role("tab", name="Charts").wait_for()
        desk.points.clear()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == [] and hosts == {desk.url.removeprefix("http://")}


def show(page: Page, name: str = "rates") -> None:
    """Turn to the charts and wait until one is drawn."""
    page.get_by_role("tab", name="Charts").click()
    page.locator(f"#{name} .m3-chart").scroll_into_view_if_needed()
    page.locator(f"#{name} .m3-plot .xaxislayer-above").wait_for(state="attached")
    page.locator(f"#{name} [data-save=png]:enabled").wait_for()


def wait_for(page: Page, desk: Desk, n: int) -> None:
    for _ in range(100):
        if len(desk.points) >= n:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{len(desk.points)} clicks arrived, not {n}")


def test_the_code_of_charts_comes_with_the_first_one_in_view(look):
    page = look()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(500)
    assert page.evaluate("window.Plotly") is None and not page.locator("script[src*=vendor]").count()
    show(page)
    show(page, "kinds")
    # It may have been fetched ahead; it is run once, and nothing else is asked for.
    assert {url for url in asked if "vendor" in url} == {f"{page.url}{SOURCE}"}
    assert page.locator("script[src*=vendor]").count() == 1


def test_a_click_on_a_mark_names_it(look, desk):
    page = look()
    show(page)
    points = page.locator("#rates .scatterlayer .point")
    assert points.count() == 4, "N/A has no dot"
    points.nth(0).click(force=True)
    wait_for(page, desk, 1)
    points.nth(2).hover(force=True)
    page.wait_for_timeout(100)  # plotly looks for the mark under the pointer every 50 ms
    points.nth(2).click(force=True)
    wait_for(page, desk, 2)
    show(page, "confusion")
    box = page.locator("#confusion .heatmaplayer image").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.1)
    wait_for(page, desk, 3)
    page.click("#again")
    page.wait_for_function("() => document.querySelector('#rates .scatterlayer').innerHTML.includes('230, 159, 0')")
    points.nth(1).click(force=True)
    wait_for(page, desk, 4)
    assert desk.points == [NAMES[0], NAMES[2], f"{NAMES[0]}\u001f{NAMES[1]}", NAMES[1]]


def test_names_never_become_links_or_code(look):
    page = look()
    show(page)
    show(page, "confusion")
    assert page.locator(".m3-plot a").count() == 0 and page.evaluate("window.hit") is None
    assert "${window.hit=1}" in page.locator("#rates .yaxislayer-above").text_content()


def test_no_value_is_a_sentence(look):
    page = look()
    show(page)
    page.click("#empty")
    page.locator("#rates .m3-nothing", has_text="There is nothing to draw here.").wait_for()
    assert page.locator("#rates .m3-plot").is_hidden() and page.locator("#rates [data-save=svg]").is_disabled()
    page.click("#again")
    page.locator("#rates .m3-plot").wait_for()
    assert page.locator("#rates .m3-nothing").is_hidden()


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_charts_fit_pass_axe_and_take_no_tab_stop(look, width, dark):
    page = look(width, dark)
    for name in ("rates", "confusion", "kinds"):
        show(page, name)
        plot = page.locator(f"#{name} .m3-plot")
        assert plot.locator("svg.main-svg").first.bounding_box()["width"] <= width
        inside = plot.bounding_box()
        for text in plot.locator(".yaxislayer-above text, .annotation text").all():
            box = text.bounding_box()
            assert box["x"] >= inside["x"] - 1 and box["x"] + box["width"] <= inside["x"] + inside["width"] + 1
        assert plot.get_attribute("aria-label").startswith(f"Chart {name}: medlite: ")
        assert plot.locator("[tabindex='0'], a, button").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.locator("#rates .annotation").count() == (5 if width == 1440 else 0)
    found = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")] == []


def test_the_theme_is_followed(look):
    page = look()
    show(page)
    ink = "() => getComputedStyle(document.querySelector('#rates .ytick text')).fill.match(/\\d+/g).map(Number)"
    assert max(page.evaluate(ink)) < 90
    page.evaluate("() => document.body.classList.add('dark')")
    page.wait_for_function(f"() => Math.min(...({ink})()) > 200")


@pytest.mark.parametrize("dark", [False, True])
def test_pictures_are_saved_on_white_paper_with_their_title(look, dark, tmp_path):
    page = look(390, dark)
    show(page)
    with page.expect_download() as caught:
        page.click("#rates [data-save=png]")
    assert caught.value.suggested_filename == "rates.png"
    caught.value.save_as(tmp_path / "rates.png")
    picture = Image.open(tmp_path / "rates.png").convert("RGB")
    assert picture.width == 2000 and picture.getpixel((3, 3)) == (255, 255, 255)
    assert min(picture.convert("L").crop((0, 0, 1000, 60)).tobytes()) < 80, "the title is missing"
    with page.expect_download() as caught:
        page.click("#rates [data-save=svg]")
    assert caught.value.suggested_filename == "rates.svg"
    caught.value.save_as(tmp_path / "rates.svg")
    words = " ".join(ET.parse(tmp_path / "rates.svg").getroot().itertext())
    for part in ("medlite: where it fails, by specialty", "95 % interval", "n = 769 queries / 140 clusters", "N/A"):
        assert part in re.sub(r"\s+", " ", words)


def test_files_arrive_with_their_bytes_and_a_safe_name(look, tmp_path):
    page = look()
    for _ in range(2):  # the second time the same file is asked for again
        with page.expect_download() as caught:
            page.click("#csv")
        assert caught.value.suggested_filename == "slice-of-Head.csv"
        caught.value.save_as(tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == "id,ä\n1,ö\n".encode()
    assert page.locator("#download").is_hidden()
    with page.expect_download(timeout=60_000) as caught:
        page.click("#large")
    caught.value.save_as(tmp_path / "file")
    assert (tmp_path / "file").stat().st_size == 20 << 20
    page.click("#too-large")
    page.locator("#download .m3-problem", has_text="everything.json would have 32.0 MiB").wait_for()
    with page.expect_download():
        page.click("#csv")
    assert page.locator("#download").is_hidden()
