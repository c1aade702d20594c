"""The Model comparison tab, as a visitor and a researcher use it: who is better, where, on which queries, and files of
it. All runs are shipped; two more are brought."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from core.data.dataset import open_dataset
from core.settings import DEMO
from core.store.workspace import open_workspace

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.journey
HERE = "#tab=compare"
HOSTILE = '<img src=x onerror="window.evil=1">'


def shown(page):
    """The page, once the tab shows everything, the fusions last."""
    page.locator("#compare-provenance dl").wait_for(timeout=120_000)
    page.locator("#compare-both table").first.wait_for(timeout=120_000)
    return page


def choose(page, name: str, option: str, where: str, done: str) -> None:
    """Choose an option of a menu and wait until a part of the tab says ``done``."""
    page.locator(f"#compare-{name} input").first.click()
    page.locator(f"#compare-{name} [role=option]", has_text=option).first.click()
    page.wait_for_function(
        "([where, words]) => document.querySelector(where).innerText.includes(words)",
        arg=[f"#compare-{where}", done],
        timeout=60_000,
    )


def saved(page, button: str) -> bytes:
    with page.expect_download() as found:
        page.click(f"#{button}")
    return Path(found.value.path()).read_bytes()


def rows_of(page, table: str) -> list[list[str]]:
    """The cells of a table's body, the name first."""
    return page.eval_on_selector_all(
        f"{table} tbody tr", "rows => rows.map(r => [...r.cells].map(c => c.innerText.trim()))"
    )


def commanded(server, *more: str) -> list[dict]:
    """What the command line says of the same runs."""
    done = subprocess.run(
        [sys.executable, "-m", "core", "compare", str(DEMO), "--json", *more],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "M3R_WORKSPACE": str(server.workspace), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_who_is_better_where_and_on_which_queries(demo_server, visit):
    page = visit(demo_server).page
    page.get_by_role("tab", name="Model comparison", exact=True).click()
    shown(page)
    said = page.locator("#compare-finding .m3-strength").inner_text()
    assert said.startswith("Across the 5 domains of Visual context") and "clusters" in said
    page.locator("#compare-bars .main-svg").first.wait_for(timeout=60_000)
    assert page.locator("#compare-bars .trace.bars").count() == 7

    # Another task, measure and grouping.
    choose(page, "task", "Case study", "finding", "domains of Case study")
    choose(page, "measure", "R@10", "means", "R@10 by domain")
    choose(page, "by", "modality", "means", "by modality")
    choose(page, "by", "task", "means", "each task ranked by itself")
    page.locator("#compare-by input").first.click()
    page.keyboard.press("Control+A")
    page.keyboard.type("plane")
    page.wait_for_function("() => document.querySelectorAll('#compare-by [role=option]').length === 1")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#compare-means').innerText.includes('by plane')")
    page.keyboard.press("Tab")
    choose(page, "by", "domain", "means", "R@10 by domain")
    choose(page, "measure", "nDCG@10", "means", "nDCG@10 by domain")

    # Two models; what the page says is what the command line says.
    choose(page, "b", "bm25", "pair", "− bm25")
    choose(page, "a", "late", "pair", "late − bm25")
    (told,) = commanded(demo_server, "--task", "case_study")
    groups = {group["name"]: group for group in (told["macro"], *told["domains"])}
    for name, difference, _, size, p, verdict, *_, wins, ties, losses in rows_of(page, "#compare-pair"):
        group = groups["macro" if name == "Macro" else name]
        pair = next(p for p in group["pairs"] if {p["a"], p["b"]} == {"late", "bm25"})
        sign = 1 if pair["a"] == "late" else -1
        mean = f"{sign * pair['difference']['mean']:+.3f}"
        assert difference.replace("−", "-") == mean and size.startswith(str(pair["difference"]["n"]))
        if pair["p_adjusted"] is None:
            assert (p, verdict) == ("", "not tested")
        else:
            assert p == ("< 0.001" if pair["p_adjusted"] < 0.001 else f"{pair['p_adjusted']:.3f}")
            said = pair["verdict"] if sign > 0 else {"better": "worse", "worse": "better"}.get(pair["verdict"])
            assert verdict.endswith(said or "not established")
        counts = [sum(c[i] for c in pair["outcomes"].values()) for i in range(3)][::sign]
        assert [int(wins), int(ties), int(losses)] == counts
    before = rows_of(page, "#compare-pair")

    # Who is shown changes no verdict.
    page.locator("#compare-shown [aria-label*=minilm], #compare-shown .token-remove").nth(1).click()
    page.wait_for_function("() => document.querySelectorAll('#compare-means tbody tr').length === 6")
    assert rows_of(page, "#compare-pair") == before

    # From a cell of losses to a failing case, and back to the same pair.
    cell = page.locator("#compare-pair [data-outcome=losses]").first
    n = cell.inner_text()
    cell.click()
    page.locator("#failure-list .m3-only", has_text=f"{n} losses of late against bm25").wait_for(timeout=120_000)
    page.locator("#failure-list caption", has_text=f"of {n} queries of late").wait_for()
    assert "tab=failures" in page.url
    page.locator(".m3-opens").first.click()
    page.locator("#failure-sheet .m3-failure:focus").wait_for()
    assert page.locator("#failure-sheet .m3-column").count() == 2
    page.get_by_role("tab", name="Model comparison", exact=True).click()
    assert rows_of(page, "#compare-pair") == before

    # From a row of the largest differences to that query; the model that does worse is looked at.
    row = page.locator("#compare-largest .m3-opens").first
    query = row.get_attribute("data-query")
    row.click()
    page.locator(f"#failure-sheet .m3-failure[aria-label*='query {query}']").wait_for(timeout=120_000)
    assert page.locator("#failure-sheet .m3-column").first.inner_text().startswith("bm25")


def test_a_mark_of_the_scatter_opens_its_queries(demo_server, visit):
    visited = visit(demo_server, hash=HERE)
    page = shown(visited.page)
    page.locator("#compare-scatter").scroll_into_view_if_needed()
    page.locator("#compare-scatter .main-svg").first.wait_for(timeout=60_000)
    page.wait_for_function("() => document.querySelectorAll('#compare-scatter .point').length > 5")
    visited.still()
    at = page.evaluate(
        """() => { const plot = document.querySelector('#compare-scatter .m3-plot'), marks = plot.data[1];
        const sizes = marks.marker.size, i = sizes.indexOf(Math.min(...sizes));
        const box = plot.querySelectorAll('.point')[i].getBoundingClientRect();
        return [marks.customdata[i], box.x + box.width / 2, box.y + box.height / 2]; }"""
    )
    page.mouse.click(at[1], at[2])
    page.locator("#failure-sheet .m3-failure").wait_for(timeout=120_000)
    assert "tab=failures" in page.url


def test_a_run_is_brought_with_a_broken_line_and_mended(serve, visit, tmp_path):
    server = serve()
    dataset = open_dataset(DEMO, open_workspace(str(tmp_path / "w")))
    lines = []
    for collection in dataset.pool("summary").collections:
        for query in collection.all_queries():
            judged = collection.qrels.get(query.id, {})
            relevant = sorted((doc for doc, grade in judged.items() if grade > 0), key=lambda doc: -judged[doc])
            key = collection.key.replace("/", "%2F").replace(" ", "%20")
            lines += [f"{key}/{query.id} Q0 {doc} {i} {10 - i} best" for i, doc in enumerate(relevant, 1)]
    good = "\n".join(lines) + "\n"
    bad = lines.copy()
    bad[6] = bad[6].replace(" Q0 ", " ")
    page = shown(visit(server, hash=HERE).page)
    choose(page, "task", "Summary", "finding", "domains of Summary")
    page.locator("#compare-bring button").first.click()
    page.locator("#bring-name textarea, #bring-name input").first.fill(HOSTILE)

    def give(content: str) -> None:
        (tmp_path / "mine.run").write_text(content)
        page.locator("#bring-run input[type=file]").set_input_files(tmp_path / "mine.run")

    give("\n".join(bad))
    page.locator("#bring-run [role=alert]", has_text="mine.run, line 7:").wait_for(timeout=60_000)
    assert "5 columns where a run has six" in page.locator("#bring-run [role=alert]").inner_text()
    give(good)
    page.locator("#bring-run .m3-saved", has_text="60 queries").wait_for(timeout=60_000)
    page.locator("#compare-means th", has_text=HOSTILE).wait_for(timeout=60_000)
    top = rows_of(page, "#compare-means")[0]
    assert top[0] == HOSTILE and top[1] == "1.000" and top[3].startswith("1 of 8")
    assert page.evaluate("() => window.evil") is None
    assert HOSTILE in page.locator("#compare-finding .m3-strength").inner_text()

    # It is stored: another visitor of this private page sees it too, and the other tab knows it.
    other = shown(visit(server, hash=HERE).page)
    choose(other, "task", "Summary", "means", HOSTILE)
    other.locator("#compare-pair [data-outcome=wins]").first.click()
    other.locator("#failure-list .m3-only", has_text="wins of").wait_for(timeout=120_000)


def test_files_say_what_is_shown_and_the_report_opens_offline(demo_server, visit, browser, tmp_path):
    page = shown(visit(demo_server, hash=HERE).page)
    means = rows_of(page, "#compare-means")
    found = list(csv.DictReader(io.StringIO(saved(page, "save-figures").decode())))
    assert [(row["model"], f"{float(row['macro']):.3f}") for row in found] == [(row[0], row[1]) for row in means]
    assert all(row["data"] and row["code"] and row["date"] for row in found)
    assert saved(page, "save-latex").startswith(b"% data: Demo library")
    pairs = list(csv.DictReader(io.StringIO(saved(page, "save-pairs").decode())))
    assert {row["verdict"] for row in pairs} <= {"better", "worse", "not established", "not tested"}
    scores = list(csv.DictReader(io.StringIO(saved(page, "save-scores").decode())))
    assert len(scores) == 75
    with zipfile.ZipFile(io.BytesIO(saved(page, "save-mteb"))) as archive:
        assert sum("model_meta" in name for name in archive.namelist()) == 7

    report = saved(page, "save-report")
    (tmp_path / "report.html").write_bytes(report)
    assert len(report) < 16 << 20
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900})
    alone = context.new_page()
    asked, errors = [], []
    alone.on("request", lambda request: asked.append(request.url))
    alone.on("pageerror", lambda error: errors.append(str(error)))
    alone.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    alone.goto((tmp_path / "report.html").as_uri())
    alone.wait_for_function("() => document.querySelectorAll('.main-svg').length >= 5", timeout=60_000)
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == [] and errors == []
    assert asked[0].startswith("file:") and sum(url.startswith("file:") for url in asked) == 1
    text = alone.locator("body").inner_text()
    assert page.locator("#compare-finding .m3-strength").inner_text() in text and "Where this comes from" in text
    assert alone.locator("button[data-outcome], button[data-query]").count() == 0
    context.close()


def test_pictures_that_are_saved_say_what_made_them(demo_server, visit, tmp_path):
    page = shown(visit(demo_server, hash=HERE).page)
    page.locator("#compare-bars [data-save=svg]:enabled").wait_for(timeout=60_000)
    with page.expect_download() as found:
        page.click("#compare-bars [data-save=svg]")
    svg = Path(found.value.path()).read_text()
    assert "data: Demo library (synthetic)" in svg and "code: M3Retrieve Explorer" in svg
    with page.expect_download() as found:
        page.click("#compare-bars [data-save=png]")
    from PIL import Image

    with Image.open(found.value.path()) as picture:
        assert picture.width == 2000 and picture.getpixel((5, picture.height - 5))[:3] == (255, 255, 255)
        assert picture.height > 2 * page.locator("#compare-bars .m3-plot").bounding_box()["height"]


def test_in_public_mode_a_run_stays_in_its_session(serve, visit, tmp_path, monkeypatch):
    monkeypatch.setenv("M3R_PUBLIC", "1")
    server = serve()
    page = shown(visit(server, hash=HERE).page)
    page.locator("#compare-bring button").first.click()
    page.locator("#bring-name textarea, #bring-name input").first.fill("only mine")
    collection = open_dataset(DEMO, open_workspace(str(tmp_path / "w"))).pool("visual_context").collections[0]
    lines = [
        f"{query.id} Q0 {doc} 1 {grade} t"
        for query in collection.all_queries()
        for doc, grade in collection.qrels.get(query.id, {}).items()
    ]
    (tmp_path / "mine.run").write_text("\n".join(lines))
    page.locator("#bring-where input").click()
    page.locator("#bring-where [role=option]", has_text=collection.key).click()
    page.locator("#bring-run input[type=file]").set_input_files(tmp_path / "mine.run")
    page.locator("#bring-run .m3-saved", has_text="browser session only").wait_for(timeout=60_000)
    page.locator("#compare-means th", has_text="only mine").wait_for(timeout=60_000)
    assert "N/A" in rows_of(page, "#compare-means")[-1]
    other = shown(visit(server, hash=HERE).page)
    assert "only mine" not in other.locator("body").inner_text()
    assert not [path for path in server.workspace.rglob("*") if b"only mine" in path.name.encode()]
    assert "only mine" not in server.log.read_text() and "mine.run" not in server.log.read_text()


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_the_tab_passes_axe_and_fits(demo_server, visit, width, dark):
    visited = visit(demo_server, width=width, height=900, dark=dark, hash=HERE)
    page = shown(visited.page)
    page.evaluate("() => document.querySelectorAll('#compare details').forEach(d => { d.open = true; })")
    for chart in ("bars", "heat", "scatter", "cost", "published"):
        page.locator(f"#compare-{chart}").scroll_into_view_if_needed()
        page.locator(f"#compare-{chart} .main-svg").first.wait_for(timeout=60_000)
    visited.still()
    assert page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    found = Axe().run(page, context="#compare")
    assert found.violations_count == 0, found.generate_report()


def test_the_last_of_quick_choices_is_shown(demo_server, visit):
    page = shown(visit(demo_server, hash=HERE).page)

    def pick(name: str, option: str) -> None:
        page.locator(f"#compare-{name} input").first.click()
        page.locator(f"#compare-{name} [role=option]", has_text=option).first.click()

    for task in ("Case study", "Query to image", "Summary"):
        pick("task", task)
    page.locator("#compare-finding", has_text="domains of Summary").wait_for(timeout=60_000)
    page.locator("#compare-heat figcaption", has_text="Summary").wait_for(timeout=60_000)
    for model in ("bm25", "late", "zsum:bm25+minilm"):
        pick("b", model)
    page.locator("#compare-pair caption", has_text="− zsum:bm25+minilm").wait_for(timeout=60_000)
    page.locator("#compare-both th", has_text="Only zsum:bm25+minilm").wait_for(timeout=60_000)
    page.wait_for_timeout(3000)  # nothing older comes later
    assert page.locator("#compare-task input").input_value() == "Summary"
    assert "domains of Summary" in page.locator("#compare-finding").inner_text()
    assert page.locator("#compare-b input").input_value() == "zsum:bm25+minilm"
    assert "Only zsum:bm25+minilm" in page.locator("#compare-both").inner_text()
    assert "zsum:bm25+minilm" in page.locator("#compare-pair caption").inner_text()
