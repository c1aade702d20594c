"""The Failure cases tab, as a researcher uses it: where, which, why, and what is kept of it. All runs are shipped."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = pytest.mark.journey
LIST, SHEET = "#failure-list .m3-list", "#failure-sheet .m3-failure"
HERE = "#tab=failures"
HOSTILE = '<img src=x onerror="window.evil=1">${1+1}{{y}}'


def shown(page):
    """The page, once the list of the tab is shown."""
    page.locator(LIST).wait_for(timeout=120_000)
    return page


def choose(page, name: str, option: str, done: str) -> None:
    """Choose an option of a menu and wait until the tab says ``done``."""
    page.locator(f"#failure-{name} input").first.click()
    page.locator(f"#failure-{name} [role=option]", has_text=option).first.click()
    page.wait_for_function(
        "words => document.querySelector('#failure-overview').innerText.includes(words)", arg=done, timeout=120_000
    )


def open_case(page, number: int = 0) -> None:
    page.locator(".m3-opens").nth(number).click()
    page.locator(f"{SHEET}:focus").wait_for()


def find_case(page, query: str) -> None:
    """The case of a query that bm25 fails on in the task Case study, in a page that was opened anew."""
    choose(page, "task", "Case study", "of 60 judged")
    choose(page, "run", "bm25", "bm25 fails")
    page.locator("#failure-text textarea, #failure-text input").first.fill(query)
    page.locator("#failure-list caption", has_text="1–1 of 1 failing").wait_for()
    open_case(page)


def runs_of(page) -> str:
    """The ids of the runs, as the line at the end names them."""
    return page.locator("#failure-provenance dt:text-is('runs') + dd").inner_text()


def saved(page, press) -> bytes:
    with page.expect_download() as found:
        press()
    return Path(found.value.path()).read_bytes()


def test_from_where_to_a_judgement_that_counts(demo_server, serve, visit):
    page = visit(demo_server).page
    page.get_by_role("tab", name="Failure cases", exact=True).click()
    shown(page)
    finding = page.locator("#failure-finding .m3-strength").inner_text()
    assert finding.startswith("medlite fails on") and "queries" in finding
    page.locator("#failure-rates .main-svg").first.wait_for(timeout=60_000)
    assert (
        page.locator("#failure-groups tbody tr").count() == 4
    )  # the tasks: no other group of the demo is large enough

    # A task by its row, a kind by its row, and the worst case.
    page.locator("#failure-groups button", has_text="Query to image").click()
    page.wait_for_function("() => document.querySelector('#failure-list').innerText.includes('of 17 failing')")
    page.locator("#failure-kinds [data-kind='near miss']").click()
    page.wait_for_function("() => !document.querySelector('#failure-list').innerText.includes('of 17 failing')")
    choose(page, "kind", "any", "of 17 failing")
    open_case(page)
    assert page.locator(SHEET).inner_text().startswith("Previous\nNext\nCase 1 of 17")
    page.locator("[data-do=back]").click()
    page.locator(".m3-opens[data-i='0']:focus").wait_for()

    # A second model beside it.
    choose(page, "task", "Case study", "of 60 judged")
    choose(page, "run", "bm25", "bm25 fails")
    choose(page, "beside", "medlite", "medlite nDCG@10")
    page.keyboard.press("Escape")
    every = page.locator("#failure-list caption").inner_text()
    choose(page, "agree", "only this one fails", "failing queries of bm25")
    page.wait_for_function("was => document.querySelector('#failure-list caption').innerText !== was", arg=every)
    listed = page.locator(".m3-opens").count()
    assert 1 < listed <= 16
    open_case(page)
    assert page.locator("#failure-sheet .m3-column").count() == 2
    assert page.locator("#failure-sheet .m3-moves path").count() >= 1

    # Ten fast presses end at the right case, and the ends are the ends.
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("n => document.querySelector('.m3-failure')?.dataset.at === n", arg=str(min(10, listed - 1)))
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => document.querySelector('.m3-failure')?.dataset.at === '0'")
    query = page.locator(SHEET).get_attribute("aria-label").partition("query ")[2]
    page.locator("#failure-note h3", has_text=query).wait_for()

    # The viewer by keyboard.
    page.locator("#failure-sheet .m3-asked .m3-look").first.focus()
    page.keyboard.press("Enter")
    page.locator("#failure-look").wait_for()
    page.keyboard.press("Escape")
    page.locator("#failure-look").wait_for(state="hidden")

    # Nothing is judged without a name; then a note, tags and a judgement.
    menu = page.locator("#failure-sheet .m3-hit .m3-judge").first
    document = menu.get_attribute("data-id")
    menu.select_option("1")
    page.locator("#failure-note [role=alert]", has_text="name or initials").wait_for()
    page.locator("#failure-author input, #failure-author textarea").first.fill("AB")
    page.locator("#failure-sheet .m3-hit .m3-judge").first.select_option("1")
    page.locator("#failure-note", has_text="Judgement saved").wait_for()
    page.locator("#failure-note textarea").fill(HOSTILE)
    page.locator("#failure-note input").fill("look again; twin")
    page.locator("#failure-note [data-do=save]").click()
    page.locator("#failure-note .m3-said", has_text="AB").wait_for()

    # Another session sees what is saved and nothing of what is only written; a draft survives steps.
    page.locator("#failure-note textarea").fill("not saved yet")
    page.locator(SHEET).focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.m3-failure')?.dataset.at === '1'")
    page.keyboard.press("ArrowLeft")
    page.locator("#failure-note", has_text="This note is not saved yet.").wait_for()
    assert page.locator("#failure-note textarea").input_value() == "not saved yet"
    other = shown(visit(demo_server, hash=HERE).page)
    find_case(other, query)
    other.locator("#failure-note .m3-said", has_text=HOSTILE).wait_for()
    assert "not saved yet" not in other.content() and other.evaluate("window.evil") is None
    assert other.locator(f"#failure-sheet .m3-judge[data-id='{document}']").first.input_value() == "1"

    # After a reload it is still there; saved, read back into an empty workspace, and scored with.
    page.reload()
    shown(page)
    find_case(page, query)
    assert page.locator("#failure-note .m3-said p").inner_text() == HOSTILE
    assert page.locator("#failure-note .m3-tag").all_inner_texts() == ["look again", "twin"]
    page.locator(f"#failure-sheet .m3-judge[data-id='{document}'][data-set]").first.wait_for()
    page.locator("[data-do=back]").click()
    notes = saved(page, lambda: page.locator("#save-notes").click())
    rows = list(csv.DictReader(io.StringIO(notes.decode())))
    assert {row["kind"] for row in rows} == {"note", "judgement"} and {row["author"] for row in rows} == {"AB"}
    assert {row["query"] for row in rows} == {query}
    with zipfile.ZipFile(io.BytesIO(saved(page, lambda: page.locator("#save-qrels").click()))) as archive:
        judged = [archive.read(name).decode() for name in archive.namelist() if name.endswith("rejudged.tsv")]
    assert len(judged) == 20 and any(f"{query}\t" in text for text in judged)
    fresh = shown(visit(serve(), hash=HERE).page)
    fresh.locator("#read-notes input").set_input_files({"name": "notes.csv", "mimeType": "text/csv", "buffer": notes})
    fresh.locator("#read-notes .m3-line", has_text="2 added").wait_for()
    fresh.locator("#read-notes input").set_input_files(
        {"name": "bad.csv", "mimeType": "text/csv", "buffer": notes.replace(b"judgement,", b"judgment,")}
    )
    fresh.locator("#read-notes [role=alert]", has_text="bad.csv").wait_for()
    assert saved(fresh, lambda: fresh.locator("#save-notes").click()) == notes
    find_case(fresh, query)
    fresh.locator("#failure-note .m3-said", has_text=HOSTILE).wait_for()
    assert fresh.locator(f"#failure-sheet .m3-judge[data-id='{document}']").first.input_value() == "1"
    fresh.locator("[data-do=back]").click()
    fresh.locator(".m3-opens[data-i='0']:focus").wait_for()
    fresh.locator("#failure-text textarea, #failure-text input").first.fill("")
    fresh.locator("#failure-list caption", has_text="of 16 failing queries of bm25").wait_for()
    before = runs_of(fresh)
    fresh.locator("#failure-anew input").check()
    fresh.wait_for_function("() => document.querySelector('#failure-overview').innerText.includes('judged anew (')")
    fresh.locator("#failure-list caption", has_text="of 15 failing queries of bm25, judged anew (").wait_for()
    assert runs_of(fresh) != before and "judged anew" in fresh.locator("#failure-provenance").inner_text()
    table = saved(fresh, lambda: fresh.locator("#save-csv").click()).decode()
    assert "judged anew" in table and len(table.splitlines()) > 5


def test_public_notes_stay_in_their_session(serve, visit, monkeypatch):
    monkeypatch.setenv("M3R_PUBLIC", "1")
    server = serve()
    one, two = (shown(visit(server, hash=HERE).page) for _ in range(2))
    for page in (one, two):
        open_case(page)
    one.locator("#failure-author input, #failure-author textarea").first.fill("AB")
    one.locator("#failure-note textarea").fill("for this session")
    one.locator("#failure-note [data-do=save]").click()
    one.locator("#failure-note .m3-said", has_text="for this session").wait_for()
    two.keyboard.press("ArrowRight")
    two.keyboard.press("ArrowLeft")
    two.wait_for_timeout(500)
    assert "for this session" not in two.content()
    assert not (server.workspace / "notes.sqlite").exists()
    file = saved(one, lambda: one.locator("[data-do=save]").first.click()).decode()
    assert "for this session" in file and "default-src 'none'" in file and "<script" not in file


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_it_fits_and_can_be_used_by_everybody(demo_server, visit, width, dark):
    page = shown(visit(demo_server, width=width, height=844, dark=dark, hash=HERE).page)
    page.locator("#failure-rates .main-svg").first.wait_for(timeout=60_000)
    for step in ("overview", "case"):
        if step == "case":
            open_case(page)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{step} is {wide} px too wide"
        found = Axe().run(page, context="#tabs")
        serious = [v for v in found.response["violations"] if v["impact"] in ("serious", "critical")]
        assert not serious, [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in serious]
