"""A real server and a real Chromium. Nothing here is skipped: where a browser is missing, the journey fails."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from core.data.medpix import prepare

ROOT = Path(__file__).resolve().parents[2]
SHORT = 120
"""Documents that are kept of a collection of MedPix."""

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FIRST_SEARCH = 300_000
"""Milliseconds that the first search may take: it loads the model and encodes the pool."""

WATCH = """() => { let began = false; window.searched = false;
  const strip = document.querySelector('#strip'), tracker = '[data-testid=status-tracker]';
  const observer = new MutationObserver(() => {
    if (!strip.querySelector(tracker).classList.contains('hide')) { began = true; return; }
    if (!began) return;
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => { window.searched = true; })); });
  observer.observe(strip, {subtree: true, childList: true, attributes: true}); }"""
"""Set ``window.searched`` once the strip has shown that a search runs, and then that none does. What it brought may
equal what stood there, so that nothing else tells."""

STILL = "() => document.getAnimations().every(a => a.playState !== 'running' || a.effect.getTiming().iterations > 1)"
"""Nothing fades or moves but what turns for ever."""

CARRY = """([place, kind, sent, name, type]) => {
  const bytes = Uint8Array.from(atob(sent), c => c.charCodeAt(0)), data = new DataTransfer();
  data.items.add(new File([bytes], name, {type}));
  const where = document.querySelector(place), how = {bubbles: true, cancelable: true};
  if (kind === 'paste') where.dispatchEvent(new ClipboardEvent('paste', {...how, clipboardData: data}));
  else for (const step of ['dragenter', 'dragover', 'drop'])
    where.dispatchEvent(new DragEvent(step, {...how, dataTransfer: data})); }"""
"""Drop a file on a place, or paste it there, as the browser itself does it."""


@dataclass
class Server:
    """A running app. ``url`` ends without a slash."""

    url: str
    workspace: Path
    uploads: Path
    log: Path
    process: subprocess.Popen

    def first_sight(self) -> str:
        """What choosing the data set given brings (see `Visit.choose`): an example is stored once it was encoded."""
        return ".m3-card" if (self.workspace / "vectors").is_dir() else ".m3-empty"


@pytest.fixture(scope="session")
def serve(tmp_path_factory) -> Iterator[Callable[..., Server]]:
    """Start the app on the demo library plus the data sets given; stopped at the end of the session."""
    started: list[Server] = []

    def start(*data: Path) -> Server:
        base = tmp_path_factory.mktemp("server")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {
            **os.environ,
            "M3R_DATA": ";".join(map(str, data)),
            "M3R_WORKSPACE": str(base / "workspace"),
            "GRADIO_TEMP_DIR": str(base / "uploads"),
            "GRADIO_SERVER_PORT": str(port),
            "HF_HUB_OFFLINE": "1",
        }
        log = base / "log"
        with log.open("wb") as stream:
            command = [sys.executable, "app.py"]
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stream, stderr=subprocess.STDOUT)
        server = Server(f"http://127.0.0.1:{port}", base / "workspace", base / "uploads", log, process)
        started.append(server)
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(server.url, timeout=5).close()
                return server
            except OSError:
                assert process.poll() is None, f"the app ended: {log.read_text()}"
                assert time.monotonic() < deadline, f"the app does not answer: {log.read_text()}"
                time.sleep(0.2)

    yield start
    for server in started:
        server.process.terminate()
        server.process.wait(timeout=30)


@pytest.fixture(scope="session")
def demo_server(serve) -> Server:
    return serve()


@pytest.fixture(scope="session")
def medpix(shared, tmp_path_factory) -> Path:
    """MedPix 2.0 in the benchmark's layout: of each collection of ``query_to_image`` the first `SHORT` documents and
    what belongs to them, so that two cores encode it in a minute."""
    root = tmp_path_factory.mktemp("medpix") / "medpix"
    prepare(shared / "medpix-2.0", root)
    for folder in root.iterdir():
        if folder.is_dir() and folder.name not in ("images", "query_to_image"):
            shutil.rmtree(folder)
    for folder in (root / "query_to_image").iterdir():
        corpus, queries, judged = (folder / name for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"))
        kept = corpus.read_text().splitlines(keepends=True)[:SHORT]
        ids = {json.loads(line)["_id"] for line in kept}
        asked = [q for q in queries.read_text().splitlines(keepends=True) if json.loads(q)["_id"] in ids]
        head, *rows = judged.read_text().splitlines(keepends=True)
        corpus.write_text("".join(kept))
        queries.write_text("".join(asked))
        judged.write_text("".join([head, *(r for r in rows if set(r.split("\t")[:2]) <= ids)]))
    return root


@pytest.fixture(scope="session")
def medpix_server(serve, medpix) -> Server:
    return serve(medpix)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert chromium, "Chromium is missing: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page with what went wrong on it and what it asked, and what a visitor does there."""

    page: Page
    errors: list[str] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Method and address of every request but those of ``data:`` and ``blob:``."""

    def mark_old(self, what: str) -> None:
        """Mark elements, so that those that replace them are told apart."""
        self.page.evaluate("what => document.querySelectorAll(what).forEach(e => { e.dataset.old = 1; })", what)

    def hits(self) -> list[tuple[str, str]]:
        """Collection and document of every card."""
        return self.page.eval_on_selector_all(
            "#hits .m3-card",
            "cards => cards.map(c => c.querySelector('.m3-open').dataset).map(d => [d.collection, d.id])",
        )

    def still(self) -> None:
        """Wait until nothing fades or moves any more."""
        self.page.wait_for_function(STILL)

    def search(self, press: Callable[[], None] | None = None, timeout: float = FIRST_SEARCH) -> list[tuple[str, str]]:
        """Press Search, or do what else starts a search, and give `hits` once they belong to it."""
        self.page.evaluate(WATCH)
        with self.page.expect_response(lambda r: "/queue/join" in r.url):
            press() if press else self.page.click("#go")
        self.page.wait_for_function("() => window.searched", timeout=timeout)
        self.still()  # what was dimmed while the search ran is itself again
        return [tuple(pair) for pair in self.hits()]

    def say(self, words: str) -> None:
        """Type over the words."""
        self.page.fill("#words textarea", words)

    def give(self, path: Path, how: str = "choose", place: str = "#picture-well .m3-well") -> None:
        """Hand over a picture ("choose", "drop" or "paste") and wait until the page has read it."""
        self.mark_old("#picture-well img")
        self.hand_over(path, how, place)
        self.page.locator("#picture-well img:not([data-old])").wait_for(timeout=30_000)
        assert "pixels" in self.note()

    def hand_over(self, path: Path, how: str = "choose", place: str = "#picture-well .m3-well") -> None:
        """Like `give`, without waiting."""
        if how == "choose":
            self.page.locator("#picture-well input[type=file]").set_input_files(path)
            return
        kind = {".png": "image/png", ".webp": "image/webp"}.get(path.suffix, "application/octet-stream")
        self.page.evaluate(CARRY, [place, how, base64.b64encode(path.read_bytes()).decode(), path.name, kind])

    def note(self) -> str:
        """The line below the picture."""
        return self.page.locator("#picture-well .m3-note").inner_text()

    def weigh(self, weight: float) -> None:
        """Set the weight of the picture, 0 … 1."""
        box = self.page.locator("#weight input[type=number]")
        box.fill(str(weight))
        box.press("Tab")

    def unfold(self, facet: str) -> None:
        """Open the list of a filter."""
        self.page.locator("#filters .m3-facet-head", has_text=f"{facet}: ").click()

    def tick(self, facet: str, value: str) -> None:
        """Narrow the search to a value of a filter; the list is closed again."""
        self.unfold(facet)
        self.page.locator("#filters .m3-pop:visible .m3-tick", has_text=value).locator("input").check()
        self.page.keyboard.press("Escape")

    def choose(self, name: str, option: str, then: str = ".m3-card") -> None:
        """Choose in the drop-down ``data`` or ``task``, and wait until everything follows, the hits last: ``then`` is
        ".m3-card" where an example is stored for what was chosen, else ".m3-empty"."""
        self.mark_old("#hits :is(.m3-card, .m3-empty)")
        self.page.locator(f"#{name} input").click()
        self.page.locator(f"#{name} [role=option]", has_text=option).click()
        self.page.locator(f"#hits {then}:not([data-old])").first.wait_for(timeout=60_000)

    def open(self, rank: int = 1) -> None:
        """Open the card at a 1-based place, by a click."""
        self.page.locator("#hits .m3-open").nth(rank - 1).click()
        self.opened()

    def opened(self, focus: str = "h2") -> None:
        """Wait until the panel has the focus and its picture, if it has one, is drawn."""
        self.page.locator(f"#panel {focus}:focus").wait_for()
        self.page.wait_for_function(
            "() => document.querySelector('#panel-viewer .m3-case [role=status]').innerText.includes('window') || "
            "document.querySelector('#panel-viewer .m3-sheet p').innerText"
        )

    def picture(self, pane: str = "case") -> str:
        """What the viewer says of its ``case`` or ``query`` picture, once planned drawing is done."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.page.locator(f"#panel-viewer .m3-{pane} [role=status]").inner_text()

    def says(self, words: str, pane: str = "case") -> None:
        """Wait until the viewer says ``words`` of a picture."""
        self.page.wait_for_function(
            "([p, w]) => document.querySelector(`#panel-viewer .m3-${p} [role=status]`).innerText.includes(w)",
            arg=[pane, words],
        )

    def fits(self, what: str) -> None:
        """Nothing sticks out of the page or of the panel."""
        wide = self.page.evaluate(
            "() => [document.documentElement, document.querySelector('#panel')].map(e => e.scrollWidth - e.clientWidth)"
        )
        assert max(wide) <= 0, f"{what}: {wide} px too wide (page, panel)"


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open the app in a fresh context; at the end no page may have an error or have asked another host.

    ``hash``: the address of another tab than Search, whose parts are not waited for then.
    """
    visits: list[tuple[Visit, Server]] = []
    contexts = []

    def open_page(server: Server, width: int = 1440, height: int = 900, dark: bool = False, hash: str = "") -> Visit:
        scheme = "dark" if dark else "light"
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        result = Visit(page)
        page.on("pageerror", lambda error: result.errors.append(str(error)))
        page.on("console", lambda m: result.errors.append(m.text) if m.type == "error" else None)
        page.on("request", lambda r: result.asked.append((r.method, r.url)) if r.url.startswith("http") else None)
        page.goto(f"{server.url}/{hash}")
        page.locator("#facts strong").first.wait_for(timeout=60_000)
        if not hash:
            page.locator("#filters .m3-facet-head").first.wait_for(timeout=60_000)
            page.locator("#hits .m3-card").first.wait_for(timeout=60_000)
        visits.append((result, server))
        return result

    yield open_page
    for result, server in visits:
        assert result.errors == []
        assert {url.split("/")[2] for _, url in result.asked} == {server.url.removeprefix("http://")}
    for context in contexts:
        context.close()
