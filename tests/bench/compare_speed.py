"""The Model comparison tab: opening it and choosing another task, beside an empty callback of the same page.

    M3R_WORKSPACE=WORKSPACE python tests/bench/compare_speed.py DATA [--extra 3] [--rounds 3]

The data set's runs are stored in the workspace (python -m core evaluate). ``--extra``: so many further models, each an
import on every collection, are made of medlite's stored rankings with seeded swaps and stored there first.

*Open*: from the click on the tab, in a fresh page where the data set is chosen, to the finding and the tables of the
means and of the pair; *drawn*: until the bars are drawn as well, which needs the code of the charts. *Task*: from the
choice of another task to all of that, for each task in turn. *Empty*: an event that the server answers with nothing (a
cell of wins that does not exist), from the event to its answer, three seconds after the task, when nothing is made any
more. Twenty actions each in each of three rounds, all in one run, the server warm: every task was shown once before,
which is timed as *first*. What stands further down follows after. Printed are the medians of every round, the best of
them, and its ratio to the best of the empty callback. All are timed in the page, and end two animation frames after
what they wait for, so that it is painted.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from failures_speed import ACTIONS, FLAGS, ROUNDS, chosen, print_medians, server, timed

TABLES = """document.querySelector('#compare-finding .m3-strength')?.innerText.includes('of TASK ') &&
  [...document.querySelectorAll('#compare-provenance dd')].some(d => d.innerText === 'TASK') &&
  document.querySelector('#compare-means table') && document.querySelector('#compare-pair .m3-flat')?.innerText"""
DRAWN = f"""{TABLES} && document.querySelector('#compare-bars figcaption strong')?.innerText.includes('TASK') &&
  document.querySelector('#compare-bars .m3-plot')?.getAttribute('aria-label')?.includes('TASK') &&
  document.querySelector('#compare-bars .main-svg')"""
OPEN = "document.querySelector('[role=tab][data-tab-id=compare]').click()"
CHOOSE = """const input = document.querySelector('#compare-task input');
  [...document.querySelectorAll('#compare-task [role=option]')].find(o => o.innerText.includes('TASK'))
    .dispatchEvent(new MouseEvent('mousedown', {bubbles: true}))"""
EMPTY = """performance.clearResourceTimings(); const b = document.createElement('button'); b.dataset.outcome = 'none';
  b.dataset.within = ''; document.querySelector('#compare-pair .m3-flat').append(b); b.click(); b.remove()"""
ANSWERED = "performance.getEntriesByType('resource').some(e => e.name.includes('/run/predict') && e.responseEnd)"


def store_extra(data: Path, many: int) -> int:
    """Store the further models; the number of listed runs of the first task."""
    from core.analyze.league import Leagues
    from core.data.dataset import open_dataset
    from core.evaluate.export import store_import
    from core.evaluate.imported import Imported, Unknown
    from core.retrievers.place import Place
    from core.store.workspace import open_workspace

    workspace = open_workspace(os.environ["M3R_WORKSPACE"])
    dataset = open_dataset(data, workspace)
    leagues = Leagues(dataset, workspace)
    none = Unknown(0, ())
    for number in range(many):
        chance, name = random.Random(number), f"extra-{number + 1}"
        for task in dataset.tasks:
            if leagues.imported(task, name):
                continue
            medlite = next(run for run in leagues.of(task, "nDCG@10").scored if run.name == "medlite")
            for key, stored in leagues.stored(medlite).items():
                rankings = {}
                for query, hits in stored.run.rankings.items():
                    docs = [doc for doc, _ in hits[:100]]
                    for at in range(len(docs) - 1):
                        if chance.random() < 0.3:
                            docs[at], docs[at + 1] = docs[at + 1], docs[at]
                    rankings[query] = [(doc, float(-rank)) for rank, doc in enumerate(docs)]
                made = Imported(rankings, none, none, 0, 0, 1, name, f"{number:016x}")
                store_import(made, Place(dataset, task, workspace, key), name, name, "seeded swaps", workspace.root)
    return len(Leagues(dataset, workspace).of(dataset.tasks[0], "nDCG@10").scored)


def choose_task(page: Page, label: str) -> float:
    """Choose a task and wait for its figures; the list of tasks is opened before the clock starts."""
    page.locator("#compare-task input").click()
    page.locator("#compare-task [role=option]", has_text=label).wait_for()
    return timed(page, CHOOSE.replace("TASK", label), DRAWN.replace("TASK", label))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--extra", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    runs = store_extra(given.data.absolute(), given.extra)
    process, url = server(given.data.absolute())
    found: dict[str, list[list[float]]] = {"empty": [], "open": [], "open, drawn": [], "task": []}
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=FLAGS
            )
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            chosen(page, url, given.data.name)
            first = [timed(page, OPEN, DRAWN.replace("TASK", "Visual context"))]
            page.wait_for_timeout(3000)
            page.locator("#compare-task input").click()
            tasks = [option.inner_text() for option in page.locator("#compare-task [role=option]").all()]
            tasks = [words.replace("✓", "").strip() for words in tasks]
            page.keyboard.press("Escape")
            for label in tasks[1:]:
                first.append(choose_task(page, label))
                page.wait_for_timeout(3000)
            for _ in range(given.rounds):
                for name, until in (("open", TABLES), ("open, drawn", DRAWN)):
                    found[name].append([])
                    for _ in range(ACTIONS):
                        fresh = browser.new_page(viewport={"width": 1440, "height": 900})
                        chosen(fresh, url, given.data.name)
                        found[name][-1].append(timed(fresh, OPEN, until.replace("TASK", tasks[0])))
                        fresh.close()
            for _ in range(given.rounds):
                found["task"].append([])
                found["empty"].append([])
                for at in range(ACTIONS):
                    found["task"][-1].append(choose_task(page, tasks[at % len(tasks)]))
                    page.wait_for_timeout(3000)
                    found["empty"][-1].append(timed(page, EMPTY, ANSWERED))
            browser.close()
    finally:
        process.terminate()
        process.wait(timeout=30)
    print(f"{given.data.name}, {runs} runs of {tasks[0]}; load {os.getloadavg()[0]:.1f}")
    print(f"first time each task was shown, ms: {', '.join(f'{value:.0f}' for value in first)}")
    print_medians(found)


if __name__ == "__main__":
    main()
