"""A newcomer searches the demo library, and MedPix, with a picture and words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page

from core.settings import DEMO

pytestmark = pytest.mark.journey
ROOT = Path(__file__).resolve().parents[2]
FIRST_SEARCH = 300_000
"""Milliseconds that the first search may take: it loads the model and encodes the pool."""


def search(page: Page, timeout: float = FIRST_SEARCH) -> list[tuple[str, str]]:
    """Press Search and give the (collection, document) of the hits, once they belong to this search."""
    page.evaluate("document.querySelectorAll('#hits .m3-card, #hits .m3-message').forEach(c => c.dataset.old = 1)")
    page.evaluate("document.querySelector('#hits').dataset.waiting = document.querySelector('#strip').innerText")
    with page.expect_response(lambda r: "/queue/join" in r.url):
        page.click("#go")
    page.wait_for_function(
        "() => !document.querySelector('#strip .wrap.generating, #strip .progress-text') && "
        "!document.querySelector('#hits [data-old]') && document.querySelector('#hits .m3-card, #hits .m3-message')",
        timeout=timeout,
    )
    cards = page.locator("#hits .m3-card")
    return [
        (cards.nth(i).get_attribute("data-collection"), cards.nth(i).get_attribute("data-doc"))
        for i in range(cards.count())
    ]


def set_weight(page: Page, weight: float) -> None:
    box = page.locator("#weight input[type=number]")
    box.fill(str(weight))
    box.press("Tab")


def tick_domain(page: Page, name: str) -> None:
    page.locator("#domain label", has_text=name).locator("input").check()


def give_picture(page: Page, path: Path) -> None:
    page.locator("#picture-well input[type=file]").set_input_files(path)
    page.locator("#picture-well .m3-frame img").wait_for(timeout=30_000)


def command_hits(data: Path, workspace: Path, *options: str) -> list[dict]:
    command = [sys.executable, "-m", "core", "search", str(data), "--json", *options]
    environment = {**os.environ, "M3R_WORKSPACE": str(workspace)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["hits"]


def on_the_command_line(data: Path, workspace: Path, *options: str) -> list[tuple[str, str]]:
    return [(h["collection"], h["doc_id"]) for h in command_hits(data, workspace, *options)]


def test_picture_and_words_on_the_demo_library(demo_server, visit, tmp_path):
    page = visit(demo_server).page
    assert "synthetic" in page.locator("#facts").inner_text()
    picture = sorted((DEMO / "images").glob("*.webp"))[0]
    give_picture(page, picture)
    page.fill("#words textarea", "ring-enhancing lesion with oedema")
    set_weight(page, 0.6)
    both = search(page)
    assert len(both) == 10
    assert page.locator("#hits .m3-card img").count() == 10
    options = ("--task", "query_to_image", "--text", "ring-enhancing lesion with oedema")
    same = on_the_command_line(DEMO, demo_server.workspace, *options, "--image", str(picture), "--weight", "0.6")
    assert both == same

    set_weight(page, 0)
    words = search(page)
    assert words != both
    assert words == on_the_command_line(DEMO, demo_server.workspace, *options)

    tick_domain(page, "Thorax")
    inside = search(page)
    assert inside and {c for c, _ in inside} == {"query_to_image/Thorax"}
    assert "HNSW" in page.locator("#strip").inner_text() or "exact" in page.locator("#strip").inner_text()
    assert not any(p.is_file() for p in demo_server.uploads.rglob("*")), "a picture was put on disk"


def test_a_ready_query_marks_its_hits(demo_server, visit):
    page = visit(demo_server).page
    page.locator("#queries input").click()
    page.locator("#queries [role=option]").nth(3).click()
    page.locator("#picture-well .m3-frame img").wait_for()
    name = page.locator("#picture-well .m3-note").inner_text().removeprefix("picture of query ")
    assert page.input_value("#words textarea")
    hits = search(page)
    assert ("query_to_image/Abdomen", name) not in hits
    marks = page.locator("#hits .m3-mark").all_inner_texts()
    options = ("--task", "query_to_image", "--query", f"query_to_image/Abdomen/{name}")
    grades = [h["relevance"] for h in command_hits(DEMO, demo_server.workspace, *options)]
    words = {2: "●● most relevant", 1: "● relevant", 0: "○ judged not relevant", None: "◌ unjudged"}
    assert marks == [words[grade] for grade in grades]
    assert set(marks) & {words[1], words[2]}
    assert f"Marked by the judgements of query {name}" in page.locator("#strip").inner_text()


def test_tabbing_through_the_form_changes_nothing(demo_server, visit):
    page = visit(demo_server).page
    page.locator("#task input").click()
    page.locator("#task [role=option]", has_text="Summary").click()
    page.wait_for_function("() => document.querySelector('#queries').innerText.includes('(all 60)')")
    tick_domain(page, "Thorax")
    set_weight(page, 0.33)
    for widget in ("#data", "#task"):
        page.locator(f"{widget} input").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
    page.wait_for_timeout(1500)
    assert page.input_value("#task input") == "Summary"
    assert page.input_value("#weight input[type=number]") == "0.33"
    assert page.locator("#domain input:checked").count() == 1


def test_passages_are_read_in_one_column(demo_server, visit):
    page = visit(demo_server).page
    page.locator("#task input").click()
    page.locator("#task [role=option]", has_text="Case study").click()
    page.wait_for_function("() => document.querySelector('#queries input').closest('#queries').innerText.length > 0")
    page.wait_for_timeout(800)
    page.fill("#words textarea", "sudden chest pain and breathlessness")
    assert search(page)
    assert page.locator("#hits ol.m3-texts .m3-passage").first.inner_text()


def test_what_cannot_be_read_is_said_and_the_page_goes_on(demo_server, visit, tmp_path):
    page = visit(demo_server).page
    bad = tmp_path / "patient-name.png"
    Image.new("RGB", (64, 64), "red").save(bad)
    bad.write_bytes(bad.read_bytes()[:60])
    page.locator("#picture-well input[type=file]").set_input_files(bad)
    page.wait_for_function(
        "() => /trunc|ends|damaged|incomplete|cannot/i.test(document.querySelector('.m3-note').innerText)"
    )
    assert search(page) == []
    assert "Give a picture, words, or both." in page.locator("#hits").inner_text()
    page.fill("#words textarea", "kidney stone")
    assert len(search(page)) == 10
    assert "patient-name" not in demo_server.log.read_text() and "kidney stone" not in demo_server.log.read_text()


def test_an_upload_route_does_not_exist(demo_server, visit):
    page = visit(demo_server).page
    for path in ("/gradio_api/upload", "/gradio_api/upload_progress", "/gradio_api/file=http://127.0.0.1/x"):
        response = (
            page.request.post(demo_server.url + path)
            if path.endswith("upload")
            else page.request.get(demo_server.url + path)
        )
        assert response.status == 404


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_sticks_out_of_the_page(demo_server, visit, width, dark):
    page = visit(demo_server, width=width, dark=dark).page
    page.fill("#words textarea", "pneumothorax")
    assert search(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_text_of_a_data_set_never_becomes_code(serve, visit, tmp_path_factory, collection_writer):
    root = tmp_path_factory.mktemp("evil") / "evil <b>set</b>"
    evil = (
        '<img src=x onerror="window.hit=1"> ${window.hit=2} {{window.hit=3}} `${window.hit=4}` '
        "</script><script>window.hit=5</script>"
    )
    docs = [
        {"_id": f"{evil} {i}", "title": evil, "text": f"{evil} lung {i} " * 40, "meta": {"specialty": evil}}
        for i in range(3)
    ]
    collection_writer(
        root / "Head", [{"_id": evil, "caption": f"lung {evil}", "meta": {}}], docs, [(evil, docs[0]["_id"], 2)]
    )
    (root / "benchmark.json").write_text(json.dumps({"name": evil, "licence": evil}))
    server = serve(root)
    page = visit(server).page
    page.locator("#data input").click()
    page.locator("#data [role=option]").nth(1).click()
    page.wait_for_function("() => document.querySelector('#facts').innerText.includes('onerror')")
    page.wait_for_function("() => document.querySelector('#domain').innerText.includes('Head (3)')")
    page.locator("#queries input").click()
    page.locator("#queries [role=option]").first.click()
    page.wait_for_function("() => document.querySelector('#words textarea').value.includes('lung')")
    assert len(search(page)) == 3
    assert evil in page.locator("#hits .m3-passage strong").first.inner_text()
    assert page.evaluate("window.hit") is None


@pytest.mark.realdata
def test_medpix(serve, visit, shared, tmp_path_factory):
    from core.data.medpix import prepare

    root = tmp_path_factory.mktemp("medpix") / "medpix"
    prepare(shared / "medpix-2.0", root)
    server = serve(root)
    page = visit(server).page
    page.locator("#data input").click()
    page.locator("#data [role=option]").nth(1).click()
    page.wait_for_function("() => document.querySelector('#domain').innerText.includes('Head (808)')", timeout=60_000)
    picture = root / "images" / "MPX1009_synpic46283.png"
    give_picture(page, picture)
    page.fill("#words textarea", "bladder diverticulum")
    set_weight(page, 0.75)
    both = search(page, timeout=600_000)
    assert len(both) == 10 and both[0][1] == "MPX1009_synpic46283"
    assert page.locator("#hits .m3-card img").count() == 10
    assert "HNSW · recall@10" in page.locator("#strip").inner_text()
    options = ("--task", "query_to_image", "--text", "bladder diverticulum", "--image", str(picture))
    assert both == on_the_command_line(root, server.workspace, *options, "--weight", "0.75")
    set_weight(page, 0.1)
    lighter = search(page)
    assert lighter != both
    tick_domain(page, "Head")
    head = search(page)
    assert head != lighter and {c for c, _ in head} == {"query_to_image/Head"}
    assert head == on_the_command_line(root, server.workspace, *options, "--weight", "0.1", "--domain", "Head")
