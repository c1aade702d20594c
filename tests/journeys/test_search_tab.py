"""What people do on the Search tab, from its first view to the next query: by mouse, by keyboard, on a telephone."""

from __future__ import annotations

import csv
import json
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from core.settings import DEMO

pytestmark = pytest.mark.journey
ABSCESS = DEMO / "images" / "D013_1.webp"
TASK = "query_to_image"

RADIOLOGIST = 8, 60
"""Actions and seconds that a radiologist needs at most, from the first action to the second case."""


def demo_rows(kind: str) -> list[dict]:
    """Every document (``corpus``) or query (``queries``) of the demo library."""
    return [json.loads(line) for file in DEMO.glob(f"*/*/{kind}.jsonl") for line in file.read_text().splitlines()]


def pictures_of(case: str) -> set[str]:
    """Picture files of a case of the demo library, in documents and queries."""
    rows = (row for kind in ("corpus", "queries") for row in demo_rows(kind) if row["meta"].get("case") == case)
    return {row["image_path"] for row in rows if row.get("image_path")}


def case_of(document: str) -> str:
    return next(row["meta"]["case"] for row in demo_rows("corpus") if row["_id"] == document)


def loaded_torch(server) -> bool:
    return "libtorch" in Path(f"/proc/{server.process.pid}/maps").read_text()


def drawn(visit, pane: str = "case") -> str:
    """The viewer's picture as a ``data:`` address, once planned drawing is done."""
    visit.picture(pane)
    return visit.page.evaluate("p => document.querySelector(`#panel-viewer .m3-${p} canvas`).toDataURL()", pane)


def zoom(visit) -> int:
    return int(re.search(r"zoom (\d+) %", visit.picture())[1])


def serious(page) -> list[tuple[str, str]]:
    """Serious and critical findings of axe on the page as it stands: rule and element."""
    found = Axe().run(page).response["violations"]
    bad = [v for v in found if v["impact"] in ("serious", "critical")]
    return [(v["id"], node["html"][:200]) for v in bad for node in v["nodes"]]


def body_for_another(url: str) -> bytes:
    """What another client gets there; of a stream that stays open, what comes within half a second of silence."""
    body = b""
    try:
        with urllib.request.urlopen(url, timeout=0.5) as answer:
            while piece := answer.read1(1 << 20):
                body += piece
    except (TimeoutError, urllib.error.HTTPError):
        pass
    return body


class Counted:
    """What a user does, one call an action: a drop, a text typed over the old one, a click, a key."""

    def __init__(self, visit) -> None:
        self.visit, self.actions, self.started = visit, 0, time.monotonic()

    def act(self, deed, *values) -> None:
        self.actions += 1
        deed(*values)


def be_the_radiologist(visit, picture: Path) -> None:
    """Drop a picture, type words, limit to Head, open the best case, compare, step to the next."""
    page = visit.page
    user = Counted(visit)
    user.act(visit.give, picture, "drop")
    user.act(visit.say, "ring-enhancing lesion")
    user.act(visit.unfold, "Domain")
    user.act(page.locator("#filters .m3-pop:visible .m3-tick", has_text="Head").click)
    user.actions += 1
    hits = visit.search(lambda: page.keyboard.press("Control+Enter"))
    assert hits and {collection for collection, _ in hits} == {f"{TASK}/Head"}
    user.act(visit.open, 1)
    best = page.locator("#panel h2").inner_text()
    user.act(page.locator("#panel .m3-beside").click)
    visit.says("window", "query")
    user.act(page.locator("#panel [data-hit='1']").click)
    page.wait_for_function("old => document.querySelector('#panel h2').innerText !== old", arg=best)
    visit.opened("[data-hit='1']")  # the button keeps the focus: the next step is one key
    visit.says("window", "query")
    spent = time.monotonic() - user.started
    assert user.actions <= RADIOLOGIST[0]
    assert spent <= RADIOLOGIST[1], f"{spent:.0f} s"


def test_first_view_and_a_radiologist_on_a_server_without_a_model(serve, visit):
    server = serve()
    visit = visit(server)
    strip = visit.page.locator("#strip").inner_text()
    assert "An example from the data set, with stored hits: no model was loaded yet." in strip
    assert visit.page.locator("#hits .m3-card").count() == 10 and visit.page.locator("#hits img").count() == 10
    assert not loaded_torch(server)
    be_the_radiologist(visit, ABSCESS)
    assert loaded_torch(server)


def test_a_radiologist_on_a_warm_server(demo_server, visit):
    visit = visit(demo_server)
    visit.search()
    be_the_radiologist(visit, ABSCESS)


@pytest.mark.realdata
def test_a_radiologist_on_medpix(medpix_server, medpix, visit):
    visit = visit(medpix_server)
    visit.choose("data", medpix.name, then=medpix_server.first_sight())
    visit.say("ring")
    visit.search(timeout=600_000)
    be_the_radiologist(visit, medpix / "images" / "MPX1009_synpic46283.png")


def test_from_a_picture_to_the_next_query(demo_server, visit):
    visit = visit(demo_server)
    page = visit.page
    visit.give(ABSCESS)
    visit.say("ring-enhancing lesion")
    visit.weigh(0.7)
    visit.tick("Domain", "Head")
    assert page.locator("#filters .m3-chosen").all_text_contents() == ["Remove Domain Head×"]
    hits = visit.search()
    assert {collection for collection, _ in hits} == {f"{TASK}/Head"} and hits[0][1] == "D013_1"
    assert "picture 0.70 · words 0.30" in page.locator("#strip").inner_text()
    assert "+1 more of this case" in page.locator("#hits .m3-card").first.inner_text()

    visit.open(1)
    assert page.locator("#panel h2").inner_text() == "Case D013"
    there = len(pictures_of("D013"))
    assert there > 1 and visit.picture().endswith(f"1 of {there}")
    assert "Brain and Neuro" in page.locator("#panel .m3-meta").inner_text()
    plain, fitted = drawn(visit), zoom(visit)
    tools = page.locator("#panel-viewer .m3-case .m3-tools")
    tools.locator("[data-do=in]").click()
    assert zoom(visit) > fitted
    tools.locator("[data-do=invert]").click()
    assert "inverted" in visit.picture() and drawn(visit) != plain
    tools.locator("[data-slide=brightness]").fill("20")
    tools.locator("[data-do=reset]").click()
    assert drawn(visit) == plain
    page.locator("#panel .m3-beside").click()
    visit.says("window", "query")
    given = drawn(visit, "query")
    assert given == drawn(visit), "the picture given is the first of this case"
    page.locator("#panel-viewer [data-by='1']").click()
    visit.says(f"2 of {there}")
    assert drawn(visit) != given == drawn(visit, "query")
    assert page.locator("#panel-viewer .m3-title").inner_text() == "D013_2"
    page.locator("#panel [data-hit='1']").click()
    name = f"Case {case_of(hits[1][1])}"
    page.wait_for_function("name => document.querySelector('#panel h2').innerText === name", arg=name)
    page.locator("#panel [data-hit='-1']").click()
    page.wait_for_function("() => document.querySelector('#panel h2').innerText === 'Case D013'")

    alike = visit.search(page.locator("#panel [data-act=like]").click)
    assert page.locator("#panel").is_hidden()
    assert "More like document D013_1." in page.locator("#strip").inner_text()
    assert alike and "D013_1" not in {document for _, document in alike}
    visit.open(2)
    document = alike[1][1]
    visit.mark_old("#picture-well img")
    page.locator("#panel [data-act=use]").click()
    page.locator("#picture-well img:not([data-old])").wait_for()
    assert visit.note() == "picture of the document you opened" and page.locator("#panel").is_hidden()
    text = next(row["text"] for row in demo_rows("corpus") if row["_id"] == document)
    assert page.input_value("#words textarea") == text
    again = visit.search()
    assert again[0][1] == document and not page.locator("#hits .m3-mark").count()


def test_a_ready_query_is_chosen_by_keyboard_and_judges_its_hits(demo_server, visit):
    visit = visit(demo_server)
    page = visit.page
    page.locator("#queries input").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("gadolinium thin bright ring")
    page.wait_for_function("() => document.querySelector('#queries .m3-total').innerText === '1 of 75 queries'")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.m3-note').innerText === 'picture of query D013_1'")
    with (DEMO / TASK / "Head" / "qrels" / "test.tsv").open() as stream:
        grades = {
            r["corpus-id"]: int(r["score"]) for r in csv.DictReader(stream, delimiter="\t") if r["query-id"] == "D013_1"
        }
    counts = {grade: sum(v == grade for v in grades.values()) for grade in (2, 1, 0)}
    words = {2: "●● most relevant", 1: "● relevant", 0: "○ judged not relevant"}
    said = ", ".join(f"{n} {words[grade]}" for grade, n in counts.items() if n)
    assert f"Query D013_1 · Head · judged: {said}" in page.locator("#about").inner_text()

    hits = visit.search()
    best = {}
    for document, grade in grades.items():
        best[case_of(document)] = max(grade, best.get(case_of(document), 0))
    marks = page.locator("#hits .m3-mark").all_inner_texts()
    assert len(marks) == len(hits)
    for mark, (_, document) in zip(marks, hits, strict=True):
        assert mark.startswith(words.get(best.get(case_of(document)), "◌ unjudged")), document
    first = next(rank for rank, (_, document) in enumerate(hits, 1) if best.get(case_of(document), 0) > 0)
    relevant = sum(n for grade, n in counts.items() if grade)
    strip = page.locator("#strip").inner_text()
    assert f"best relevant document at rank {first}, {relevant} relevant here" in strip

    assert page.locator("#panel").is_hidden(), "the own case is shown before it was asked for"
    page.locator("#about .m3-own").click()
    visit.opened()
    assert page.locator("#panel h2").inner_text() == "The query's own case: Case D013"
    there = pictures_of("D013")
    titles = {page.locator("#panel-viewer .m3-title").inner_text()}
    for at in range(2, len(there) + 1):
        page.locator("#panel-viewer [data-by='1']").click()
        visit.says(f"{at} of {len(there)}")
        titles.add(page.locator("#panel-viewer .m3-title").inner_text())
    assert titles == {Path(reference).stem for reference in there}
    assert not page.locator("#panel [data-act], #panel [data-hit]").count(), "the own case is no hit"

    page.keyboard.press("Escape")
    visit.say("something of my own")
    visit.search()
    assert not page.locator("#hits .m3-mark").count()
    assert "The words of the ready query were edited" in page.locator("#strip").inner_text()


def test_pasted_dropped_damaged_and_too_large(demo_server, visit, tmp_path):
    visit = visit(demo_server)
    page = visit.page
    visit.give(ABSCESS, "paste", "#words textarea")
    width, height = Image.open(ABSCESS).size
    assert f"{width} × {height} pixels" in visit.note()
    pasted = page.locator("#picture-well img").get_attribute("src")
    visit.hand_over(ABSCESS, "paste", "body")
    page.wait_for_function("() => document.querySelector('.m3-note').innerText.includes('pixels')")
    other = DEMO / "images" / "D002_1.webp"
    visit.give(other, "drop")
    assert page.locator("#picture-well img").get_attribute("src") != pasted

    wrong = tmp_path / "a report.png"
    wrong.write_text("Findings: none of this is a picture.")
    for _ in range(2):  # the second time the answer equals the first
        visit.hand_over(wrong, "drop")
        page.wait_for_function("() => /not a picture/i.test(document.querySelector('.m3-note').innerText)")
        assert page.locator("#picture-well img").count() == 0
    vast = tmp_path / "vast.png"
    Image.new("1", (40_000, 20_000)).save(vast)
    visit.hand_over(vast)
    page.wait_for_function("() => /pixels/.test(document.querySelector('.m3-note').innerText)")
    assert page.locator("#picture-well img").count() == 0, "800 million pixels were opened"
    heavy = tmp_path / "heavy.png"
    heavy.write_bytes(bytes(33 << 20))
    before = len(visit.asked)
    visit.hand_over(heavy)
    page.wait_for_function("() => document.querySelector('.m3-note').innerText.startsWith('This file has 33.0 MiB')")
    assert len(visit.asked) == before, "what is too large was sent"
    visit.give(other, "drop")
    page.locator("#picture-well .m3-clear").click()
    page.locator("#picture-well img").wait_for(state="detached")


def test_nothing_passes_and_nothing_given(demo_server, visit):
    visit = visit(demo_server)
    page = visit.page
    visit.tick("Domain", "Head")
    visit.tick("Specialty", "Gastrointestinal")
    assert visit.search() == []
    assert page.locator("#hits").inner_text().startswith("No document passes these filters.")
    while page.locator("#filters .m3-chosen").count():
        page.locator("#filters .m3-chosen").first.click()
    page.locator("#picture-well .m3-clear").click()
    page.locator("#picture-well img").wait_for(state="detached")
    visit.say("  ")
    assert visit.search() == []
    assert page.locator("#hits [role=alert]").inner_text() == "Give a picture, words, or both."


def test_keyboard_alone(demo_server, visit):
    visit = visit(demo_server)
    page = visit.page

    def tab_to(what: str, most: int = 40) -> None:
        for _ in range(most):
            page.keyboard.press("Tab")
            if page.evaluate("what => document.activeElement.matches(what)", what):
                return
        raise AssertionError(f"{what} is not within {most} Tabs")

    def here(expression: str) -> object:
        return page.evaluate(f"document.activeElement.{expression}")

    tab_to("#words textarea")
    page.keyboard.press("Control+A")
    page.keyboard.type("fracture of the femur")
    visit.search(lambda: page.keyboard.press("Control+Enter"))
    tab_to("#hits .m3-open")
    ids = [document for _, document in visit.hits()]
    for key, at in (
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("ArrowDown", 5),
        ("ArrowUp", 1),
        ("End", 9),
    ):
        page.keyboard.press(key)
        assert here("dataset.id") == ids[at], key
    page.keyboard.press("End")
    assert here("dataset.id") == ids[-1]
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    visit.opened()
    assert here("tagName") == "H2"
    assert page.locator("#panel h2").inner_text() == f"Case {case_of(ids[1])}"
    tab_to("#panel-viewer .m3-case canvas")
    fitted = zoom(visit)
    page.keyboard.press("+")
    assert zoom(visit) > fitted
    page.keyboard.press("i")
    assert "inverted" in visit.picture()
    page.keyboard.press("0")
    assert zoom(visit) == fitted and "inverted" not in visit.picture()
    page.keyboard.press("Escape")
    page.locator("#panel").wait_for(state="hidden")
    assert here("dataset.id") == ids[1], "the focus is not back on the card"
    page.keyboard.press("ArrowRight")
    assert here("dataset.id") == ids[2]


LOOKS = [(1440, False, True), (1440, True, True), (390, False, False), (390, True, True)]
"""Width, dark, and whether axe looks as well."""


@pytest.mark.parametrize(("width", "dark", "axe"), LOOKS)
def test_every_state_fits_and_passes_axe(demo_server, visit, width, dark, axe):
    visit = visit(demo_server, width=width, dark=dark)
    page = visit.page
    narrow = width == 390

    def look(what: str) -> None:
        visit.fits(what)
        assert not axe or serious(page) == [], what

    look("first view")
    visit.unfold("Domain")
    look("chips open")
    page.keyboard.press("Escape")
    page.locator("#queries input").click()
    page.locator("#queries [role=option]").first.wait_for()
    look("picker open")
    page.keyboard.press("Escape")
    visit.say("pneumothorax")
    assert visit.search()
    if narrow:
        page.locator("#query-column.folded").wait_for()
        line = page.locator("#fold button")
        page.wait_for_function("() => document.querySelector('#strip').getBoundingClientRect().top < 100")
        assert line.inner_text() == "Change the query: Picture · pneumothorax"
        assert page.locator("#words").is_hidden() and line.bounding_box()["height"] < 48
    look("after a search")
    visit.open(1)
    box = page.locator("#panel").bounding_box()
    assert (box["width"], box["height"]) == (390 if narrow else 480, 900)
    assert page.locator("#panel [data-close]").bounding_box()["y"] < 60
    look("panel open")
    page.locator("#panel .m3-beside").click()
    visit.says("window", "query")
    look("beside the query")
    page.locator("#panel [data-close]").click()
    page.locator("#panel").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.matches('#hits .m3-open')")
    if narrow:
        page.locator("#fold button").click()
        assert page.evaluate("document.activeElement.matches('#words textarea')")
    page.locator("#picture-well .m3-clear").click()
    page.locator("#picture-well img").wait_for(state="detached")
    visit.say("")
    assert visit.search() == []
    assert page.locator("#words").is_visible(), "the query was folded away from its error"
    look("an error")


def test_two_at_once_see_nothing_of_each_other(demo_server, visit):
    one, two = visit(demo_server), visit(demo_server)
    stored = two.page.content()
    one.give(ABSCESS)
    secret = "zebrafish-7731 ring-enhancing lesion"
    one.say(secret)
    one.search()
    one.open(1)
    one.page.locator("#panel .m3-beside").click()
    one.says("window", "query")
    shown = one.page.locator("#picture-well img").get_attribute("src").split(",")[1]
    hits = two.search()
    assert len(hits) == 10 and two.note() != one.note()
    assert shown in one.page.content()
    assert two.page.content() and stored
    for text in (two.page.content(), stored):
        assert shown not in text and secret not in text

    asked = sorted({url for method, url in one.asked if method == "GET"})
    assert any("session_hash=" in url for url in asked) and any("/theme.css" in url for url in asked)
    for url in asked:
        body = body_for_another(url)
        assert shown.encode() not in body and secret.encode() not in body, url
    for visitor in (one, two):
        assert visitor.page.request.post(f"{demo_server.url}/gradio_api/upload").status == 404
    assert not any(p.is_file() for p in demo_server.uploads.rglob("*")), "a picture was put on disk"
    assert "zebrafish" not in demo_server.log.read_text()
