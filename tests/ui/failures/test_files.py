"""Files of the tab: the list, a case, notes and judgements out and back in, qrels."""

from __future__ import annotations

import base64
import csv
import io
import json
import zipfile
from dataclasses import replace
from html import unescape

import gradio as gr
import pytest

from core.analyze.lists import Wanted
from core.analyze.notes import SessionNotes
from core.analyze.rejudge import Annotations
from core.analyze.rejudge_files import COLUMNS
from ui.failures.acts import Acts
from ui.failures.files import Files
from ui.failures.state import Drafts, Listed

DEMO = "Demo library"
EVIL = '"><script>alert(1)</script>${x}{{y}}'


def skipped(value: object) -> bool:
    return isinstance(value, dict) and value == gr.skip()


def test_the_list_is_saved_whole_as_csv_and_json(tab, choice, sent):
    chosen = choice(run="rrf:bm25+medlite")
    _, listed = tab.list_queries(chosen, Wanted(failing=False), None)
    name, data = sent(Files(tab).save_list(replace(listed, page=1), "csv"))
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert name == "failures-rrf-bm25-medlite-summary.csv"
    assert [(row["collection"], row["query"]) for row in rows] == list(listed.keys) and len(rows) == 60
    assert {row["run"] for row in rows} == {"rrf:bm25+medlite"}
    name, data = sent(Files(tab).save_list(listed, "json"))
    told = json.loads(data, parse_constant=lambda name: pytest.fail(name))
    assert name == "failures-rrf-bm25-medlite-summary.json" and told["k"] == 10
    assert [row["query"] for row in told["queries"]] == [row["query"] for row in rows]
    assert [row["nDCG@10"] for row in told["queries"]] == [float(row["nDCG@10"]) for row in rows]
    assert listed.data_id in told["provenance"]["data"] and told["provenance"]["runs"]
    assert skipped(Files(tab).save_list(Listed(), "csv"))


def test_the_open_case_is_saved_as_a_page(tab, choice, opened, sent):
    (_, listed, *_), _ = opened(tab, 1, choice(beside=("medlite",)))
    name, data = sent(Files(tab).save_case(listed, SessionNotes()))
    page = data.decode()
    assert name == f"case-{listed.keys[1][1]}.html" and page.startswith("<!doctype html>") and "<script" not in page
    assert listed.keys[1][1] in page and listed.data_id in page and "medlite" in page
    assert skipped(Files(tab).save_case(replace(listed, at=None), None)) and skipped(
        Files(tab).save_case(Listed(), None)
    )


def chosen_file(event, data: bytes, name: str = "notes.csv"):
    return event({"b64": base64.b64encode(data).decode(), "name": name})


def test_notes_and_judgements_are_saved_and_read_back(tab, opened, note, judgement, event, sent, read, first_hit):
    ann, bob = SessionNotes(), SessionNotes()
    _, listed = opened(tab)
    Acts(tab).save_note(listed, Drafts(), "Ann", ann, note(listed.keys[0], f"=1+1 {EVIL}\nline", "a; b"))
    Acts(tab).judge(listed, Drafts(), "Ann", ann, judgement(first_hit(tab, listed), "1"))
    name, data = sent(Files(tab).save_notes(DEMO, ann))
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert name == "notes-and-judgements.csv" and len(rows) == 2 and rows[0]["text"].startswith("'=1+1")
    said, session = Files(tab).read_notes(DEMO, bob, chosen_file(event, data))
    assert "2 added, 0 updated" in said and session is bob and read(bob) == read(ann)
    assert "0 added, 0 updated" in Files(tab).read_notes(DEMO, bob, chosen_file(event, data))[0]
    older = replace(read(ann).notes[0], text="older", time="2020-01-01T00:00:00Z")
    old = SessionNotes()
    old.save_note(listed.data_id, older)
    assert "1 added, 1 updated" in Files(tab).read_notes(DEMO, old, chosen_file(event, data))[0] and read(old) == read(
        ann
    )


def test_a_file_that_cannot_be_read_back_is_one_sentence_and_nothing_is_taken(tab, opened, event, sentence, read):
    session, head = SessionNotes(), ",".join(COLUMNS)
    _, listed = opened(tab)
    collection, query = listed.keys[0]
    good = f"note,{collection},{query},,,,,fine,Ann,2026-01-01T00:00:00Z"
    bad = f"note,{collection},nothing,,,,,x,Ann,2026-01-01T00:00:00Z"
    for data, words in (
        (f"{head}\n{good}\n{bad}\n".encode(), "notes.csv, line 3: The query 'nothing' is not in"),
        (b"a,b\n", "line 1"),
        (f"{head}\n{good}\n".encode() + b"\xff", "line 3: not UTF-8"),
    ):
        said, _ = Files(tab).read_notes(DEMO, session, chosen_file(event, data))
        assert words in sentence(said)
    for data in (None, {}, {"b64": 1, "name": "x"}, {"b64": "???", "name": "x"}):
        assert "Choose it again" in sentence(Files(tab).read_notes(DEMO, session, event(data))[0])
    said, _ = Files(tab).read_notes(DEMO, session, chosen_file(event, b"a,b\n", f"{EVIL}.csv"))
    assert "<script" not in said and "{{" not in said and EVIL in unescape(said)
    assert "no data set" in sentence(Files(tab).read_notes("gone", session, chosen_file(event, b"x"))[0])
    assert read(session) == Annotations()


def test_judgements_are_saved_as_qrels_with_what_they_cannot_say(tab, opened, judgement, sent, first_hit):
    session = SessionNotes()
    _, listed = opened(tab)
    doc, (collection, query) = first_hit(tab, listed), listed.keys[0]
    Acts(tab).judge(listed, Drafts(), "Ann", session, judgement(doc, "2"))
    value, said = Files(tab).save_qrels(DEMO, session)
    name, data = sent(value)
    files = zipfile.ZipFile(io.BytesIO(data))
    lines = files.read(f"{collection}/qrels/rejudged.tsv").decode().splitlines()
    assert name == "rejudged-qrels.zip" and len(files.namelist()) >= 20
    assert (f"{query}\t{doc[1]}\t2" in lines) is (doc[0] == collection)
    assert ("Not in these judgements (1)" in said) is (doc[0] != collection)
    own = tab.context.dataset(DEMO).collections[collection].corpus.column("id")[0].as_py()
    Acts(tab).judge(listed, Drafts(), "Ann", session, judgement((collection, own), "0"))
    files = zipfile.ZipFile(io.BytesIO(sent(Files(tab).save_qrels(DEMO, session)[0])[1]))
    assert f"{query}\t{own}\t0" in files.read(f"{collection}/qrels/rejudged.tsv").decode().splitlines()
