"""A newcomer searches the demo library, and MedPix, with a picture and words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from core.settings import DEMO

pytestmark = pytest.mark.journey
ROOT = Path(__file__).resolve().parents[2]
MEDPIX_SEARCH = 600_000
"""Milliseconds that the first search of MedPix may take: it encodes its pictures."""


def one_card_a_document(visit) -> list[tuple[str, str]]:
    """Take away the grouping by case and the folding, which the command line does not have; give the hits."""
    visit.search(visit.page.locator("#by-case input").uncheck)
    return visit.search(visit.page.locator("#fold-alike input").uncheck)


def command_hits(data: Path, workspace: Path, *options: str) -> list[dict]:
    command = [sys.executable, "-m", "core", "search", str(data), "--json", *options]
    environment = {**os.environ, "M3R_WORKSPACE": str(workspace)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["hits"]


def on_the_command_line(data: Path, workspace: Path, *options: str) -> list[tuple[str, str]]:
    return [(h["collection"], h["doc_id"]) for h in command_hits(data, workspace, *options)]


def test_picture_and_words_on_the_demo_library(demo_server, visit):
    visit = visit(demo_server)
    page = visit.page
    assert "synthetic" in page.locator("#facts").inner_text()
    picture = DEMO / "images" / "D002_1.webp"
    visit.give(picture)
    visit.say("ring-enhancing lesion with oedema")
    visit.weigh(0.6)
    assert len(visit.search()) == 10
    assert page.locator("#hits .m3-card img").count() == 10
    page.locator("#query-column button", has_text="Settings").click()
    page.locator("#k label", has_text="50").click()
    both = one_card_a_document(visit)
    options = ("--task", "query_to_image", "--text", "ring-enhancing lesion with oedema")
    mixed = (*options, "--image", str(picture), "--weight", "0.6", "-k", "75")
    everything = command_hits(DEMO, demo_server.workspace, *mixed)
    assert both == [(h["collection"], h["doc_id"]) for h in everything[:50]]
    best_of_case: dict[str, tuple[str, str]] = {}
    for hit in everything:
        best_of_case.setdefault(hit["meta"]["case"], (hit["collection"], hit["doc_id"]))
    cases = visit.search(page.locator("#by-case input").check)
    assert cases == list(best_of_case.values())[:50] != both
    page.locator("#k label", has_text="10").click()
    both = visit.search(page.locator("#by-case input").uncheck)
    assert len(both) == 10

    visit.weigh(0)
    words = visit.search()
    assert words != both
    assert words == on_the_command_line(DEMO, demo_server.workspace, *options)

    visit.tick("Domain", "Thorax")
    inside = visit.search()
    assert inside and {c for c, _ in inside} == {"query_to_image/Thorax"}
    assert "HNSW" in page.locator("#strip").inner_text() or "exact" in page.locator("#strip").inner_text()
    assert not any(p.is_file() for p in demo_server.uploads.rglob("*")), "a picture was put on disk"


def test_a_ready_query_marks_its_hits(demo_server, visit):
    visit = visit(demo_server)
    page = visit.page
    page.locator("#queries input").click()
    page.locator("#queries [role=option]").nth(3).click()
    page.wait_for_function("() => !document.querySelector('.m3-note').innerText.endsWith(' D001_1')")
    name = visit.note().removeprefix("picture of query ")
    assert page.input_value("#words textarea")
    visit.search()
    hits = one_card_a_document(visit)
    assert ("query_to_image/Abdomen", name) not in hits
    marks = page.locator("#hits .m3-mark").all_inner_texts()
    options = ("--task", "query_to_image", "--query", f"query_to_image/Abdomen/{name}")
    grades = [h["relevance"] for h in command_hits(DEMO, demo_server.workspace, *options)]
    words = {2: "●● most relevant", 1: "● relevant", 0: "○ judged not relevant", None: "◌ unjudged"}
    assert marks == [words[grade] for grade in grades]
    assert set(marks) & {words[1], words[2]}
    assert f"Marked by the judgements of query {name}" in page.locator("#strip").inner_text()


def test_tabbing_through_the_form_changes_nothing(demo_server, visit):
    visit = visit(demo_server)
    page = visit.page
    visit.choose("task", "Summary")
    page.wait_for_function("() => document.querySelector('#queries input').placeholder === 'Search 60 queries'")
    visit.tick("Domain", "Thorax")
    visit.weigh(0.33)
    for widget in ("#data", "#task"):
        page.locator(f"{widget} input").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
    assert visit.search(), "what Tab has sent was answered before"
    assert page.input_value("#task input") == "Summary"
    assert page.input_value("#weight input[type=number]") == "0.33"
    assert page.locator("#filters .m3-chosen").all_text_contents() == ["Remove Domain Thorax×"]


def test_passages_are_read_in_one_column(demo_server, visit):
    visit = visit(demo_server)
    visit.choose("task", "Case study")
    visit.say("sudden chest pain and breathlessness")
    assert visit.search()
    assert visit.page.locator("#hits ol.m3-texts .m3-passage").first.inner_text()


def test_what_cannot_be_read_is_said_and_the_page_goes_on(demo_server, visit, tmp_path):
    visit = visit(demo_server)
    page = visit.page
    bad = tmp_path / "patient-name.png"
    Image.new("RGB", (64, 64), "red").save(bad)
    bad.write_bytes(bad.read_bytes()[:60])
    visit.hand_over(bad)
    page.wait_for_function(
        "() => /trunc|ends|damaged|incomplete|cannot/i.test(document.querySelector('.m3-note').innerText)"
    )
    visit.say("")
    assert visit.search() == []
    assert "Give a picture, words, or both." in page.locator("#hits").inner_text()
    visit.say("kidney stone")
    assert len(visit.search()) == 10
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
    visit = visit(serve(root))
    page = visit.page
    visit.choose("data", "b>", then=".m3-empty")
    assert "onerror" in page.locator("#facts").inner_text()
    visit.unfold("Domain")
    assert page.locator("#filters .m3-pop:visible .m3-tick").all_text_contents() == ["Head(3)"]
    visit.unfold("Specialty")
    assert page.locator("#filters .m3-pop:visible .m3-tick bdi").all_text_contents() == [evil]
    page.keyboard.press("Escape")
    page.locator("#queries input").click()
    page.locator("#queries [role=option]").first.click()
    page.wait_for_function("() => document.querySelector('#words textarea').value.includes('lung')")
    assert len(visit.search()) == 3
    assert evil in page.locator("#hits .m3-passage strong").first.inner_text()
    visit.open(1)
    assert evil in page.locator("#panel-head h2").inner_text() and evil in page.locator("#panel .m3-meta").inner_text()
    visit.page.keyboard.press("Escape")
    assert page.evaluate("window.hit") is None


@pytest.mark.realdata
def test_medpix(medpix_server, medpix, visit):
    visit = visit(medpix_server)
    page = visit.page
    visit.choose("data", medpix.name, then=medpix_server.first_sight())
    visit.unfold("Domain")
    documents = len((medpix / "query_to_image" / "Head" / "corpus.jsonl").read_text().splitlines())
    assert f"Head({documents})" in page.locator("#filters .m3-pop:visible .m3-tick").all_text_contents()
    page.keyboard.press("Escape")
    picture = medpix / "images" / "MPX1009_synpic46283.png"
    visit.give(picture)
    visit.say("bladder diverticulum")
    visit.weigh(0.75)
    visit.search(timeout=MEDPIX_SEARCH)
    both = one_card_a_document(visit)
    assert len(both) == 10 and both[0][1] == "MPX1009_synpic46283"
    assert page.locator("#hits .m3-card img").count() == 10
    assert "HNSW · recall@10" in page.locator("#strip").inner_text()
    options = ("--task", "query_to_image", "--text", "bladder diverticulum", "--image", str(picture))
    assert both == on_the_command_line(medpix, medpix_server.workspace, *options, "--weight", "0.75")
    visit.weigh(0.1)
    lighter = visit.search()
    assert lighter != both
    visit.tick("Domain", "Head")
    head = visit.search()
    assert head != lighter and {c for c, _ in head} == {"query_to_image/Head"}
    alone = (*options, "--weight", "0.1", "--domain", "Head")
    assert head == on_the_command_line(medpix, medpix_server.workspace, *alone)
