"""The page: its start, its memory, its first hits and its searches, each beside an empty Gradio page.

    python tests/bench/page_speed.py [--data DATA]

The peer is a page of one button and one ``gr.HTML``, served with the same options. *Start*: seconds from the start of
the process to the first byte of the page, three starts each, in turn. *Memory*: resident set of the process once it is
idle after its first view. *First view*: headless Chromium, from navigation to the first hit card of the demo library
that is painted, five fresh contexts each, in turn; for the peer, to its button. *Search*: from the click to the new
cards painted (their pictures may follow), 20 searches with words of the data set typed over whatever query the page
shows, after one that loads the model; the page's own line of the last search says whether a picture took part. For
the peer, from a click to its new line; three runs each, in turn. ``--data``: a data set that is encoded already, in
``M3R_WORKSPACE``; else the demo library is searched. Painted: in the document, then two animation frames.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.data.dataset import open_dataset
from core.settings import DEMO, REPOSITORY, Settings
from core.store.workspace import open_workspace

STARTS, VIEWS, RUNS, SEARCHES, SEED = 3, 5, 3, 20, 20
PATIENCE, LOADING = 15_000, 300_000
"""Milliseconds that a card may take, and that the first search may take, which loads the model."""

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

EMPTY = """
import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
import time

import gradio as gr

with gr.Blocks(analytics_enabled=False) as demo:
    press = gr.Button("Press", elem_id="press")
    out = gr.HTML("", elem_id="out")
    press.click(lambda: f'<p class="new">{time.time_ns()}</p>', None, out)
demo.queue(max_size=32, default_concurrency_limit=4)
demo.launch(
    ssr_mode=False, pwa=False, share=False, run_history=False, mcp_server=False, enable_monitoring=False,
    show_error=False, footer_links=[], app_kwargs={"openapi_url": None},
)
"""

PARTS = {"app": {"card": "#hits .m3-card", "button": "#go"}, "empty": {"button": "#press"}}
"""What is waited for in a view of each page."""

PAINTED = """(() => {
  const wanted = WANTED, seen = new Set(), painted = window.painted = {};
  const look = () => {
    for (const [name, selector] of Object.entries(wanted)) {
      const node = seen.has(name) ? null : document.querySelector(selector);
      if (!node || !node.checkVisibility() || !node.getBoundingClientRect().height) continue;
      seen.add(name);
      requestAnimationFrame(() => requestAnimationFrame(() => { painted[name] = performance.now(); }));
    }
    if (seen.size < Object.keys(wanted).length) requestAnimationFrame(look);
  };
  look();
})()"""
"""Milliseconds since the navigation began at which each part was painted, as ``window.painted``."""

CLICK = """([button, place, old, fresh, patience]) => new Promise(resolve => {
  const where = document.querySelector(place);
  for (const node of where.querySelectorAll(old)) node.dataset.old = '1';
  let started;
  const observer = new MutationObserver(() => {
    if (where.querySelector('[data-old]') || !where.querySelector(fresh)) return;
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - started)));
  });
  observer.observe(where, {childList: true, subtree: true, attributes: true, characterData: true});
  setTimeout(() => { observer.disconnect(); resolve(null); }, patience);
  started = performance.now();
  document.querySelector(button).click();
})"""
"""Milliseconds from a click to what it brought, painted; null when nothing came. What is there before is marked, and
gone or rewritten afterwards."""

SEARCH = ["#go", "#hits", ".m3-card, .m3-message", ".m3-card"]
PRESS = ["#press", "#out", ".new", ".new"]


@dataclass
class Server:
    """A running page and the seconds from its process's start to its first byte."""

    url: str
    process: subprocess.Popen
    first_byte: float


@contextmanager
def served(page: str, data: Path | None = None, workspace: str | None = None) -> Iterator[Server]:
    """Serve the ``app`` or the ``empty`` page; without a workspace given, the app has an empty one."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "empty.py").write_text(EMPTY)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {
            **os.environ,
            "M3R_DATA": str(data.absolute()) if data else "",
            "M3R_WORKSPACE": workspace or f"{folder}/workspace",
            "GRADIO_TEMP_DIR": f"{folder}/uploads",
            "GRADIO_SERVER_PORT": str(port),
            "HF_HUB_OFFLINE": "1",
        }
        command = [sys.executable, str(REPOSITORY / "app.py") if page == "app" else f"{folder}/empty.py"]
        with (Path(folder) / "log").open("w+b") as log:
            started = time.monotonic()
            process = subprocess.Popen(command, env=environment, cwd=REPOSITORY, stdout=log, stderr=subprocess.STDOUT)
            try:
                while not answers(port):
                    if process.poll() is not None or time.monotonic() > started + 120:
                        sys.exit(f"the {page} page does not answer:\n{(Path(folder) / 'log').read_text()}")
                    time.sleep(0.005)
                yield Server(f"http://127.0.0.1:{port}", process, time.monotonic() - started)
            finally:
                process.terminate()
                process.wait(timeout=30)


def answers(port: int) -> bool:
    """Whether the page's first bytes came."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        return connection.recv(12).startswith(b"HTTP/1.1 200")
    return False


def idle_memory(process: subprocess.Popen) -> float:
    """MB of the resident set, once the process has used no more than 10 % of a CPU for two seconds (at most 60 s)."""
    stat, deadline = Path(f"/proc/{process.pid}/stat"), time.monotonic() + 60

    def ticks() -> int:
        return sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13]))

    before = ticks()
    while time.monotonic() < deadline:
        time.sleep(2)
        now = ticks()
        if now - before <= 0.2 * os.sysconf("SC_CLK_TCK"):
            break
        before = now
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) * 1024 / 1e6


@contextmanager
def opened(browser: Browser, server: Server, parts: Mapping[str, str]) -> Iterator[Page]:
    """The page in a fresh context (nothing cached), with `PAINTED` at work."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(PAINTED.replace("WANTED", json.dumps(parts)))
    page = context.new_page()
    page.goto(server.url, wait_until="commit")
    yield page
    context.close()


def view(page: Page, parts: Mapping[str, str]) -> dict[str, float]:
    """Milliseconds at which the parts of a page that is being opened were painted; those that came."""
    with suppress(TimeoutError):
        page.wait_for_function(f"() => Object.keys(window.painted).length === {len(parts)}", timeout=PATIENCE)
    return page.evaluate("window.painted")


def ratio(ours: float, peer: float, unit: str, target: str) -> str:
    return f"app {ours:.2f} {unit}, empty page {peer:.2f} {unit}, ratio {ours / peer:.2f} (target {target})"


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def start() -> None:
    seconds: dict[str, list[float]] = {"app": [], "empty": []}
    for _ in range(STARTS):
        for page, found in seconds.items():
            with served(page) as server:
                found.append(server.first_byte)
    for page, found in seconds.items():
        print(f"start to first byte, {page}: {', '.join(f'{s:.2f}' for s in found)} s")
    best, medians = map(min, seconds.values()), map(statistics.median, seconds.values())
    print(f"start to first byte, best of {STARTS}: {ratio(*best, 's', 'ratio ≤ 1.4')}")
    print(f"start to first byte, median: {ratio(*medians, 's', 'ratio ≤ 1.4')}; {load()}", flush=True)


def first_view(browser: Browser) -> None:
    with served("app") as app, served("empty") as empty:
        servers, memory = {"app": app, "empty": empty}, {}
        for name, server in servers.items():
            with opened(browser, server, PARTS[name]) as page:
                found = view(page, PARTS[name])
                memory[name] = idle_memory(server.process)
            print(f"very first view, {name}: {', '.join(f'{k} {v:.0f} ms' for k, v in found.items())}")
        print(f"idle after the first view: {ratio(memory['app'], memory['empty'], 'MB', 'app ≤ 350 MB')}", flush=True)
        views: dict[str, list[dict[str, float]]] = {"app": [], "empty": []}
        for _ in range(VIEWS):
            for name, server in servers.items():
                with opened(browser, server, PARTS[name]) as page:
                    views[name].append(view(page, PARTS[name]))
    peer = statistics.median(v["button"] for v in views["empty"])
    button = statistics.median(v["button"] for v in views["app"])
    print(f"navigation to a painted button, median of {VIEWS}: {ratio(button, peer, 'ms', 'none')}")
    cards = [v["card"] for v in views["app"] if "card" in v]
    if len(cards) < VIEWS:
        print(f"no hit card within {PATIENCE // 1000} s in {VIEWS - len(cards)} of {VIEWS} views")
    if cards:
        print(
            f"navigation to the first painted hit card, median of {len(cards)}: "
            f"{ratio(statistics.median(cards), peer, 'ms', 'app ≤ 3000 ms')}; {load()}",
            flush=True,
        )


def words_of(root: Path, workspace: str | None, count: int) -> list[str]:
    """Distinct words of queries of the task that the page opens with, drawn by seed."""
    dataset = open_dataset(root, open_workspace(workspace))
    task = "query_to_image" if "query_to_image" in dataset.tasks else dataset.tasks[0]
    texts = {q.text.strip() for c in dataset.pool(task).collections for q in c.all_queries()} - {""}
    return random.Random(SEED).sample(sorted(texts), min(count, len(texts)))


def ask(page: Page, words: str, patience: int) -> float | None:
    page.locator("#words textarea, #words input").first.fill(words)
    page.wait_for_timeout(200)  # what else the page does about typed words is over
    return page.evaluate(CLICK, [*SEARCH, patience])


def searches(browser: Browser, data: Path | None) -> None:
    workspace = Settings.from_environment().workspace if data else None
    runs: dict[str, list[list[float]]] = {"app": [], "empty": []}
    with tempfile.TemporaryDirectory() as folder, served("app", data, workspace) as app, served("empty") as empty:
        words = words_of(data or DEMO, workspace or folder, SEARCHES)
        with opened(browser, app, PARTS["app"]) as page, opened(browser, empty, PARTS["empty"]) as peer:
            view(page, PARTS["app"])
            peer.locator("#out").wait_for(state="attached")
            if data:
                page.locator("#data input").first.click()
                page.get_by_role("option", name=data.absolute().name).click()
            page.wait_for_timeout(5000)  # whatever the page shows by itself is there
            first = ask(page, "fracture", LOADING)
            print(f"first search: {'no hits' if first is None else f'{first:.0f} ms'}")
            for _ in range(RUNS):
                page.bring_to_front()
                runs["app"].append([ms for text in words if (ms := ask(page, text, PATIENCE)) is not None])
                peer.bring_to_front()
                presses = [peer.evaluate(CLICK, [*PRESS, PATIENCE]) for _ in words]
                runs["empty"].append([ms for ms in presses if ms is not None])
            print(f"the page says of the last search: {' '.join(page.locator('#strip').inner_text().split())}")
    for name, found in runs.items():
        medians = ", ".join(f"{statistics.median(run):.0f} ms (n = {len(run)})" if run else "none" for run in found)
        print(f"click to new content, {name}, medians: {medians}")
    if all(run for found in runs.values() for run in found):
        best = [min(map(statistics.median, found)) for found in runs.values()]
        print(f"click to painted hits, best of {RUNS} medians: {ratio(*best, 'ms', 'app ≤ 600 ms')}; {load()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is missing: apt-get install chromium")
    print(f"{os.cpu_count()} CPUs, load {', '.join(f'{value:.1f}' for value in os.getloadavg())}")
    start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        first_view(browser)
        searches(browser, arguments.data)
        browser.close()


if __name__ == "__main__":
    main()
