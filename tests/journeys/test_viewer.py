"""The picture viewer alone on a page, in a real Chromium."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path

import gradio as gr
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Page

from core.media.frames import frame_of, open_frame
from core.media.picture import PictureError
from ui.app import launch_options
from ui.theme import STYLE
from ui.viewer import Item, face, step_of, viewer

pytestmark = pytest.mark.journey
CSS = (Path(__file__).resolve().parents[2] / "ui" / "viewer.css").read_text()
EVIL = '<img src=x onerror="window.hit=1"> ${window.hit=2} {{x}} </script><script>window.hit=3</script>'


def deep() -> bytes:
    """16 bits, 64 × 32: above a ramp from 0 to 4000, below 1000 on the left and 1001 on the right."""
    values = np.full((32, 64), 1000, np.uint16)
    values[:, 32:] = 1001
    values[:16] = np.linspace(0, 4000, 64)
    return png(values)


def png(values: np.ndarray) -> bytes:
    buffer = BytesIO()
    Image.fromarray(values).save(buffer, "PNG")
    return buffer.getvalue()


ACROSS = np.repeat(np.arange(256, dtype=np.uint8)[None], 160, axis=0)
PICTURES = (deep(), png(np.dstack([ACROSS, ACROSS[:, ::-1], 0 * ACROSS])), b"no picture", png(ACROSS), png(ACROSS.T))
ITEMS = tuple(Item(f"p{i}", f"Picture {i} {EVIL}", f"Caption {i} {EVIL}", f"Head · CT · {EVIL}") for i in range(5))


@dataclass
class Desk:
    """The page under test: its address and the indices the browser has asked for."""

    url: str
    asked: list[int] = field(default_factory=list)


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    query = frame_of(Image.new("RGB", (40, 60), (40, 90, 200)))
    flat = replace(open_frame(PICTURES[3]), spacing=(2.0, 1.0))
    result = Desk("")

    def shown(at: int, step: bool = False) -> str:
        try:
            return face(ITEMS, at, open_frame(PICTURES[at]), query=query, step=step)
        except PictureError as error:
            return face(ITEMS, at, problem=str(error), query=query, step=step)

    def answer(event: gr.EventData) -> str:
        at = step_of(event, ITEMS)
        assert at is not None
        result.asked.append(at)
        return shown(at, step=True)

    with gr.Blocks(analytics_enabled=False) as page:
        gr.Markdown("# Viewer")
        pictures = viewer("pictures")
        other = gr.Button("Open a case without a query", elem_id="other")
        options = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
        pictures.step(answer, None, pictures, trigger_mode="always_last", **options)
        page.load(lambda: shown(0), None, pictures, **options)
        other.click(lambda: face([Item("x", "Alone")], 0, flat), None, pictures, **options)
    launch = launch_options() | {"head": f"{STYLE}<style>{CSS}</style>", "quiet": True, "prevent_thread_lock": True}
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

    def open_page(width: int = 1440, dark: bool = False, touch: bool = False) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", has_touch=touch
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.on("request", lambda r: hosts.add(r.url.split("/")[2]) if r.url.startswith("http") else None)
        page.goto(desk.url)
        says(page, "64 × 32 · 16 bit")
        desk.asked.clear()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == [] and hosts <= {desk.url.removeprefix("http://")}


def says(page: Page, words: str, pane: str = "case") -> None:
    page.wait_for_function(
        "([pane, words]) => document.querySelector(`.m3-${pane} [role=status]`)?.innerText.includes(words)",
        arg=[pane, words],
    )


def status(page: Page) -> str:
    settle(page)
    return page.locator(".m3-case [role=status]").inner_text()


def settle(page: Page) -> None:
    """Two frames of the screen: whatever was planned has been drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def pixels(page: Page, pane: str = "case") -> np.ndarray:
    """[h, w, 4] of the canvas as it stands."""
    settle(page)
    sent = page.evaluate("pane => document.querySelector(`.m3-${pane} canvas`).toDataURL('image/png')", pane)
    return np.asarray(Image.open(BytesIO(b64decode(sent.split(",")[1]))).convert("RGBA"))


def drawn(canvas: np.ndarray) -> tuple[int, int, int, int]:
    """Left, top, width and height of what is drawn."""
    rows, columns = np.where(canvas[..., 3].any(1))[0], np.where(canvas[..., 3].any(0))[0]
    return columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1


def centre(page: Page, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
    box = page.locator(".m3-case canvas").bounding_box()
    return box["x"] + box["width"] * across, box["y"] + box["height"] * down


def tool(page: Page, name: str, pane: str = "case"):
    return page.locator(f".m3-{pane} [data-do={name}]")


def slide(page: Page, kind: str, value: float) -> None:
    page.locator(f".m3-case [data-slide={kind}]").fill(str(round(value)))


@pytest.mark.parametrize("width", [1440, 390])
def test_a_narrow_window_shows_single_steps_of_16_bits(look, width):
    page = look(width)
    before = pixels(page)
    left, top, wide, high = drawn(before)
    assert abs(wide / high - 2) < 0.02, "stretched or cropped"
    assert wide == before.shape[1] or high == before.shape[0], "not fitted"
    below = top + high * 3 // 4
    here, there = (below, left + wide // 4), (below, left + wide * 3 // 4)
    assert abs(int(before[here][0]) - int(before[there][0])) <= 1
    c, w = (float(part) for part in status(page).split("window ")[1].split(" · ")[0].split(" / "))
    slide(page, "brightness", c - 1000)
    slide(page, "contrast", 100 - 100 * np.log(8) / np.log(w))
    after = pixels(page)
    now, width_now = (float(part) for part in status(page).split("window ")[1].split(" · ")[0].split(" / "))
    assert abs(now - 1000) <= 1 and 6 < width_now < 10
    expected = [np.clip((v - (now - width_now / 2)) / width_now * 255, 0, 255) for v in (1000, 1001)]
    assert after[there][0] - int(after[here][0]) > 20
    assert np.abs(np.array([after[here][0], after[there][0]]) - expected).max() <= 3
    tool(page, "invert").click()
    inverted = pixels(page)
    assert np.abs(inverted[..., 0].astype(int) + after[..., 0] - 255)[after[..., 3] == 255].max() <= 1
    assert tool(page, "invert").get_attribute("aria-pressed") == "true" and "inverted" in status(page)
    tool(page, "reset").click()
    assert (pixels(page) == before).all()


def test_zoom_pan_and_window_by_pointer(look):
    page = look()
    page.locator("[data-by='1']").click()
    says(page, "256 × 160 · 8 bit colour")
    fitted, label = pixels(page), status(page)
    x, y = centre(page, 0.55, 0.4)
    box = page.locator(".m3-case canvas").bounding_box()
    spot = round(y - box["y"]), round(x - box["x"])
    page.mouse.move(x, y)
    for _ in range(4):
        page.mouse.wheel(0, -200)
    close = pixels(page)
    assert status(page) != label and not (close == fitted).all()
    assert np.abs(close[spot].astype(int) - fitted[spot]).max() <= 6, "the picture moved under the pointer"
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=4)
    page.mouse.up()
    moved = pixels(page)
    assert (moved[:, 100:400] == close[:, 40:340]).all()
    for key, options in (("Shift", {}), (None, {"button": "right"})):
        window = status(page).split("window ")[1]
        if key:
            page.keyboard.down(key)
        page.mouse.move(x, y)
        page.mouse.down(**options)
        page.mouse.move(x - 80, y + 30, steps=4)
        page.mouse.up(**options)
        if key:
            page.keyboard.up(key)
        now = status(page).split("window ")[1]
        (c, w), (c_before, w_before) = ([float(n) for n in s.split(" · ")[0].split(" / ")] for s in (now, window))
        assert w < w_before * 0.7 and c > c_before
    for _ in range(20):
        page.mouse.wheel(0, 400)
    tool(page, "reset").click()
    assert status(page) == label and (pixels(page) == fitted).all()


def test_the_keyboard_alone(look, desk):
    page = look()
    page.locator(".m3-case canvas").focus()
    fitted, label = pixels(page), status(page)
    page.keyboard.press("+")
    page.keyboard.press("+")
    close = pixels(page)
    assert status(page) != label
    page.keyboard.press("ArrowRight")
    assert not (pixels(page) == close).all() and desk.asked == []
    page.keyboard.press("-")
    page.keyboard.press("i")
    assert "inverted" in status(page)
    page.keyboard.press("0")
    assert (pixels(page) == fitted).all()
    page.keyboard.press("ArrowRight")
    says(page, "256 × 160 · 8 bit colour")
    page.keyboard.press("ArrowLeft")
    says(page, "64 × 32 · 16 bit")
    for key, words in (("PageDown", "2 of 5"), ("]", "3 of 5"), ("PageUp", "2 of 5"), ("[", "1 of 5")):
        page.keyboard.press(key)
        says(page, words)
    says(page, "64 × 32 · 16 bit")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.do") == "out"
    for _ in range(4):
        page.keyboard.press("Tab")
    window = status(page)
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.slide") == "brightness" and status(page) != window


def test_steps_ask_for_one_picture_and_only_the_last(look, desk):
    page = look()
    title = page.locator("#pictures .m3-title")
    for _ in range(3):
        page.locator("[data-by='1']").click()
    assert title.inner_text() == ITEMS[3].title
    says(page, "256 × 160 · 8 bit · ")
    assert desk.asked == [3] and "4 of 5" in status(page)
    assert page.locator("#pictures .m3-caption").inner_text() == ITEMS[3].caption
    canvas = pixels(page)
    middle = canvas[canvas.shape[0] // 2, :, 0][canvas[canvas.shape[0] // 2, :, 3] == 255].astype(int)
    assert np.abs(middle - np.linspace(0, 255, len(middle))).max() <= 2
    page.locator("[data-by='-1']").click()
    page.wait_for_function("() => document.querySelector('.m3-sheet p').innerText.includes('not a picture')")
    assert not pixels(page).any() and tool(page, "in").is_disabled()
    for _ in range(2):
        page.locator("[data-by='1']").click()
    says(page, "160 × 256")
    assert page.locator("[data-by='1']").get_attribute("aria-disabled") == "true"
    page.locator("[data-by='1']").click(force=True)
    page.wait_for_timeout(300)
    assert desk.asked == [3, 2, 4] and page.evaluate("window.hit") is None


@pytest.mark.parametrize("width", [1440, 390])
def test_beside_the_query(look, width):
    page = look(width)
    query = page.locator(".m3-query")
    assert query.is_hidden()
    page.get_by_role("button", name="Show beside the query").click()
    says(page, "40 × 60", "query")
    here, there = page.locator(".m3-case").bounding_box(), query.bounding_box()
    if width == 1440:
        assert here["y"] == there["y"] and there["x"] >= here["x"] + here["width"]
    else:
        assert here["x"] == there["x"] and there["y"] >= here["y"] + here["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    canvas = pixels(page, "query")
    _, _, wide, high = drawn(canvas)
    assert abs(wide / high - 2 / 3) < 0.02
    assert (canvas[canvas[..., 3] == 255] == (40, 90, 200, 255)).all()
    before = pixels(page)
    tool(page, "invert", "query").click()
    canvas = pixels(page, "query")
    assert (canvas[canvas[..., 3] == 255] == (215, 165, 55, 255)).all()
    assert (pixels(page) == before).all(), "the two are not to be linked"
    page.locator("[data-by='1']").click()
    says(page, "2 of 5")
    assert "inverted" in page.locator(".m3-query [role=status]").inner_text()
    page.get_by_role("button", name="Show beside the query").click()
    assert query.is_hidden()
    page.locator("#other").click()
    page.wait_for_function("() => document.querySelector('.m3-title').innerText === 'Alone'")
    says(page, "256 × 160")
    _, _, wide, high = drawn(pixels(page))
    assert abs(wide / high - 256 / 320) < 0.02, "rows 2 mm apart, columns 1 mm"
    assert page.locator(".m3-beside").is_hidden() and page.locator("[data-by]").first.is_hidden()


def test_two_fingers(look):
    page = look(390, touch=True)
    label = status(page)
    x, y = centre(page)
    remote = page.context.new_cdp_session(page)

    def touch(kind: str, *far: float) -> None:
        points = [{"x": x + d, "y": y, "id": i} for i, d in enumerate((-far[0], far[0]))] if far else []
        remote.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 30)
    for far in (40, 50, 60, 70, 80, 90):
        touch("touchMove", far)
    touch("touchEnd")
    zoom = [float(s.split("zoom ")[1].split(" %")[0]) for s in (label, status(page))]
    assert 2 < zoom[1] / zoom[0] < 4


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_serious_for_axe(look, width, dark):
    page = look(width, dark)
    page.get_by_role("button", name="Show beside the query").click()
    says(page, "40 × 60", "query")
    page.locator("#pictures summary").click()
    found = Axe().run(page, context="#pictures").response["violations"]
    assert [(v["id"], json.dumps(v["nodes"])[:300]) for v in found if v["impact"] in ("serious", "critical")] == []
