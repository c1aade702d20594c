"""The Failure cases tab: opening it and stepping through cases, beside an empty callback of the same page.

    M3R_WORKSPACE=WORKSPACE python tests/bench/failures_speed.py DATA [--task TASK] [--beside N …] [--rounds 3]

The data set's runs are stored in the workspace (python -m core evaluate). *Open*: from the click on the tab, in a fresh
page where the data set is chosen, to the list shown. *Step*: from an arrow key to the next case shown with all of its
pictures, once for every N, with N further models beside the first. *Empty*: a turn of the list to a page that does not
exist, which the server answers with nothing, from the event to its answer, after every step. Twenty actions each in
each of three rounds, all in one run, the server warm; printed are the medians of every round, the best of them, and
its ratio to the best of the empty callback. All are timed in the page, and end two animation frames after what they
wait for, so that it is painted.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
ACTIONS, ROUNDS = 20, 3
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PATIENCE = 300_000

TIMED = """([act, shown]) => new Promise(done => {
  const started = performance.now(), is = new Function('return ' + shown);
  new Function(act)();
  const look = () => is() ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - started)))
    : requestAnimationFrame(look);
  look(); })"""


def server(data: Path) -> tuple[subprocess.Popen, str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "M3R_DATA": str(data), "GRADIO_SERVER_PORT": str(port), "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        [sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return process, url
        except OSError:
            assert process.poll() is None, "the app ended"
            time.sleep(0.2)
    raise SystemExit("the app does not answer")


def timed(page: Page, act: str, shown: str) -> float:
    """Milliseconds from ``act`` (statements) until ``shown`` (an expression) holds and is painted."""
    return page.evaluate(TIMED, [act, shown])


def chosen(page: Page, url: str, label: str) -> None:
    """A fresh page with the data set chosen."""
    page.goto(url)
    page.locator("#hits .m3-card").first.wait_for(timeout=PATIENCE)
    page.locator("#data input").click()
    page.locator("#data [role=option]", has_text=label).click()
    page.wait_for_function("() => !document.querySelector('#facts').innerText.includes('synthetic')", timeout=PATIENCE)
    page.wait_for_timeout(500)


def pick(page: Page, name: str, option: str, done: str) -> None:
    page.locator(f"#failure-{name} input").first.click()
    page.locator(f"#failure-{name} [role=option]", has_text=option).first.click()
    page.wait_for_function(
        "w => document.querySelector('#failure-overview').innerText.includes(w)", arg=done, timeout=PATIENCE
    )


OPEN = (
    "document.querySelector('[role=tab][data-tab-id=failures]').click()",
    "document.querySelector('#failure-list .m3-list')",
)
STEP = """document.querySelector('.m3-failure').dispatchEvent(
  new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))"""
STEPPED = """document.querySelector('.m3-failure').dataset.at === 'AT' &&
  [...document.querySelectorAll('#failure-sheet img')].every(i => i.complete)"""
EMPTY = """performance.clearResourceTimings(); const b = document.createElement('button'); b.dataset.page = '999999';
  document.querySelector('#failure-list .m3-scroll').append(b); b.click(); b.remove()"""
ANSWERED = "performance.getEntriesByType('resource').some(e => e.name.includes('/run/predict') && e.responseEnd)"


def open_beside(page: Page, beside: int) -> None:
    """Show so many models beside the first one, where at most as many are shown, and open the first case."""
    while (columns := page.locator("#failure-list thead th").count()) < 4 + 2 * beside:
        page.locator("#failure-beside input").first.click()
        page.locator("#failure-beside [role=option][aria-selected=false]").first.click()
        page.wait_for_function(
            "n => document.querySelectorAll('#failure-list thead th').length === n", arg=columns + 2, timeout=PATIENCE
        )
    page.keyboard.press("Escape")
    page.locator(".m3-opens").first.click()
    page.locator("#failure-sheet .m3-failure:focus").wait_for(timeout=PATIENCE)
    assert page.locator("#failure-sheet .m3-column").count() == beside + 1


def print_medians(found: dict[str, list[list[float]]]) -> None:
    """Of every action the medians of its rounds in ms, the best of them, and its ratio to that of "empty"."""
    base = min(statistics.median(r) for r in found["empty"])
    print(f"{'action':16} {'medians of the rounds, ms':52} {'best, ms':>9} {'× empty':>8}")
    for name, rounds in found.items():
        medians = [statistics.median(r) for r in rounds]
        shown = "  ".join(f"{value:7.0f}" for value in medians)
        print(f"{name:16} {shown:52} {min(medians):9.0f} {min(medians) / base:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", default="Visual context")
    parser.add_argument("--beside", type=int, nargs="+", default=[0, 3])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    process, url = server(given.data.absolute())
    found: dict[str, list[list[float]]] = {"empty": [], "open": []}
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=FLAGS
            )
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            chosen(page, url, given.data.name)
            timed(page, *OPEN)  # makes the diagnoses that are missing
            for _ in range(given.rounds):
                opened = []
                for _ in range(ACTIONS):
                    fresh = browser.new_page(viewport={"width": 1440, "height": 900})
                    chosen(fresh, url, given.data.name)
                    opened.append(timed(fresh, *OPEN))
                    fresh.close()
                found["open"].append(opened)
            pick(page, "task", given.task, f"{given.task}")
            page.wait_for_timeout(3000)
            for beside in given.beside:
                open_beside(page, beside)
                steps = found[f"step, {beside + 1} model{'s' if beside else ''}"] = []
                at = 0
                for _ in range(given.rounds):
                    steps.append([])
                    found["empty"].append([])
                    for _ in range(ACTIONS):
                        at += 1
                        steps[-1].append(timed(page, STEP, STEPPED.replace("AT", str(at))))
                        found["empty"][-1].append(timed(page, EMPTY, ANSWERED))
                page.locator("#failure-sheet [data-do=back]").click()
            browser.close()
    finally:
        process.terminate()
        process.wait(timeout=30)
    print(f"{given.data.name}, {given.task}; load {os.getloadavg()[0]:.1f}")
    print_medians(found)


if __name__ == "__main__":
    main()
