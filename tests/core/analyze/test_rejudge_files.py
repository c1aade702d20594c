"""The CSV of notes and re-judgements is read back equal or refused by line; exported qrels are read as judgements."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analyze.rejudge import Annotations, Judged, Note, Overlay, apply
from core.analyze.rejudge_files import COLUMNS, MAX_BYTES, from_csv, qrels_zip, to_csv
from core.data.dataset import open_dataset
from core.data.health import check
from core.data.layouts import discover
from core.evaluate.imported import FileRefused
from core.evaluate.io_trec import read_qrels

TIME = "2026-07-01T12:00:00Z"
HEAD, THORAX = "visual_context/Head", "visual_context/Thorax"
NOTE = Note(HEAD, "a1", "why?", ("odd",), "Ann", TIME)
JUDGED = Judged(HEAD, "a1", HEAD, "p1", "2", "Ann", TIME)


@pytest.fixture
def dataset(toy: Path, workspace):
    return open_dataset(toy, workspace)


class Anything:
    """A data set that holds every collection and id, for files of whatever a researcher may type."""

    name = "anything"

    def __init__(self) -> None:
        table = SimpleNamespace(find=lambda identity: 0)
        self.collections = SimpleNamespace(get=lambda key: SimpleNamespace(key=key, queries=table, corpus=table))


letters = st.characters(exclude_categories=["Cs"])
plain = st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters=",;")
starts = st.sampled_from(["", "'", "''", "=", "+", "-1", "@", "'=", " =", "' -", "＝", '"', "tis", "007"])
ids = st.builds(str.__add__, starts, st.text(letters, max_size=4)).filter(bool)
tags = st.lists(st.builds(str.__add__, starts, st.text(plain, max_size=4)).filter(str.strip), max_size=3).map(tuple)
authors = st.builds(str.__add__, starts, st.text(plain, min_size=1, max_size=4)).filter(str.strip)
texts = st.builds(
    str.__add__, starts, st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\r\t"))
)
times = st.datetimes().map(lambda t: f"{t.replace(microsecond=0).isoformat()}Z")
notes = st.builds(Note, ids, ids, texts.map("x".__add__) | texts.filter(str.strip), tags, authors, times)
rows = st.builds(Judged, ids, ids, ids, ids, st.sampled_from(["2", "1", "0", "unsure"]), authors, times)
annotations = st.builds(
    lambda notes, rows: Annotations(
        tuple({n.key: n for n in notes}.values()), tuple({r.key: r for r in rows}.values())
    ),
    st.lists(notes, max_size=4),
    st.lists(rows, max_size=4),
)


@settings(max_examples=100)
@given(annotations)
def test_csv_write_read_equal(found: Annotations) -> None:
    text = to_csv(found)
    assert from_csv(text.encode(), "notes.csv", Anything()) == found
    assert from_csv(b"\xef\xbb\xbf" + text.encode(), "notes.csv", Anything()) == found
    for cells in csv.reader(io.StringIO(text, newline="")):
        for cell in cells:  # no cell is a formula, whatever white space a spreadsheet passes over
            assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
            assert not cell.startswith(("\t", "\r"))


def test_csv_is_rfc_4180_and_for_people(dataset) -> None:
    found = Annotations((dataclasses.replace(NOTE, text='=1+1, "so"\nend', tags=("b", "a")),), (JUDGED,))
    assert to_csv(found) == (
        "kind,collection,query,doc_collection,doc,grade,tags,text,author,time\r\n"
        f'note,{HEAD},a1,,,,b; a,"\'=1+1, ""so""\nend",Ann,{TIME}\r\n'
        f"judgement,{HEAD},a1,{HEAD},p1,2,,,Ann,{TIME}\r\n"
    )
    assert from_csv(to_csv(found).encode(), "n.csv", dataset) == found
    assert from_csv(to_csv(Annotations()).encode(), "n.csv", dataset) == Annotations()
    # As other programs write it: LF or CR LF everywhere, blank lines, an apostrophe that is the author's own.
    edited = to_csv(found).replace("\r\n", "\n").replace("Ann", "'t Hooft").replace("judgement", ",,,,,,,,,\njudgement")
    for text in (edited, edited.replace("\n", "\r\n")):
        again = from_csv(text.encode(), "n.csv", dataset)
        assert again.notes[0].text == found.notes[0].text and again.judged[0].author == "'t Hooft"


HEADER = ",".join(COLUMNS) + "\n"
GOOD_NOTE = f"note,{HEAD},a1,,,,,why,Ann,{TIME}\n"
GOOD = f"judgement,{HEAD},a1,{HEAD},p1,2,,,Ann,{TIME}\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "n.csv, line 1: must be kind,collection"),
        (HEADER.replace(",", ";") + GOOD, "n.csv, line 1: must be kind,collection"),
        (GOOD, "n.csv, line 1: must be kind,collection"),
        (HEADER + GOOD.replace("2,,,", "2,,"), "n.csv, line 2: 9 columns where 10"),
        (HEADER + GOOD.strip() + ",\n", "n.csv, line 2: 11 columns where 10"),
        (HEADER + GOOD_NOTE.replace("why", '"two\nlines"') + "x\n", "n.csv, line 4: 1 columns"),
        (HEADER + GOOD.replace("judgement", "grade"), "line 2: The kind 'grade' is neither"),
        (HEADER + GOOD.replace("/Head,a1", "/Foot,a1"), "line 2: The collection 'visual_context/Foot' is not in Toy"),
        (HEADER + GOOD.replace("a1", "zz"), "line 2: The query 'zz' is not in visual_context/Head"),
        (HEADER + GOOD.replace("p1", "zz"), "line 2: The doc 'zz' is not in visual_context/Head"),
        (HEADER + GOOD.replace(",visual_context/Head,p1", ",x,p1"), "line 2: The doc_collection 'x' is not in"),
        (HEADER + GOOD.replace("p1,2", "p1,4"), "line 2: The grade '4' is none of"),
        (HEADER + GOOD.replace("2,,,", "2,tag,,"), "line 2: The tags of a judgement must be empty"),
        (HEADER + GOOD.replace("2,,,", "2,,text,"), "line 2: The text of a judgement must be empty"),
        (HEADER + GOOD_NOTE.replace(",,,,,", ",,,2,,"), "line 2: The grade of a note must be empty"),
        (HEADER + GOOD_NOTE.replace("Ann", " "), "line 2: The author's name is empty"),
        (HEADER + GOOD_NOTE.replace("why", "y" * 4001), "line 2: The text has 4,001"),
        (HEADER + GOOD_NOTE.replace("why", "y" * 200_000), r"line 2: no CSV \(field larger"),
        (HEADER + GOOD_NOTE.replace("why", '"a"b'), "line 2: no CSV"),
        (HEADER + GOOD + GOOD_NOTE.replace("why", '"open'), "line 3: no CSV"),
        (HEADER + GOOD.replace("Z", ""), "line 2: The time '2026-07-01T12:00:00' is no time"),
        (
            HEADER + GOOD + GOOD.replace(",2,", ",1,"),
            r"line 3: this author's judgement is there already \(n.csv, line 2",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_by_line(dataset, text: str, sentence: str) -> None:
    with pytest.raises(FileRefused, match=sentence) as caught:
        from_csv(text.encode(), "n.csv", dataset)
    assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


def test_limits_and_bytes_that_are_no_text(dataset, monkeypatch) -> None:
    with pytest.raises(FileRefused, match="more than 5 MB; split it"):
        from_csv(b"x" * (MAX_BYTES + 1), "n.csv", dataset)
    with pytest.raises(FileRefused, match=r"n\.csv, line 2: not UTF-8; save"):
        from_csv(HEADER.encode() + b"note,\xff", "n.csv", dataset)
    monkeypatch.setattr("core.analyze.rejudge_files.MAX_ROWS", 2)
    assert len(from_csv((HEADER + GOOD + GOOD_NOTE).encode(), "n.csv", dataset)) == 2
    with pytest.raises(FileRefused, match="line 4: more than 2 entries"):
        from_csv((HEADER + GOOD + GOOD_NOTE + GOOD).encode(), "n.csv", dataset)


def overlay_of(*judged: tuple[str, str, str, str, int]) -> Overlay:
    grades: dict = {}
    for collection, query, where, doc, grade in judged:
        grades.setdefault((collection, query), {})[where, doc] = grade
    return Overlay(grades)


def unpacked(data: bytes, source: Path, folder: Path) -> Path:
    """A copy of a data set with the zip unpacked over it."""
    shutil.copytree(source, folder)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(folder)
    return folder


def test_exported_qrels_are_read_beside_the_original(toy: Path, dataset, workspace, tmp_path: Path) -> None:
    pictures = "query_to_image/Head"
    overlay = overlay_of((HEAD, "a1", HEAD, "p0", 0), (HEAD, "a1", HEAD, "p1", 2), (pictures, "a2", pictures, "a2", 1))
    made = qrels_zip(dataset, overlay)
    assert made.left_out == () and qrels_zip(dataset, overlay) == made
    names = zipfile.ZipFile(io.BytesIO(made.data)).namelist()
    assert names == sorted(f"{c.path}/qrels/rejudged.tsv" for c in dataset.collections.values())
    copy = unpacked(made.data, toy, tmp_path / "copy")
    anew = open_dataset(copy, workspace, "rejudged")
    assert anew.faults == [] == [fault for fault in check(anew).faults if "qrels" in fault.file]
    for key, collection in dataset.collections.items():
        assert anew.collections[key].qrels == apply(collection.qrels, overlay, key)
    assert anew.collections[HEAD].qrels == {"a1": {"p0": 0, "p1": 2}}
    assert anew.collections[THORAX].qrels == dataset.collections[THORAX].qrels
    assert open_dataset(copy, workspace).collections[HEAD].qrels == dataset.collections[HEAD].qrels
    assert read_qrels(copy / HEAD / "qrels" / "rejudged.tsv") == {"a1": {"p0": 0, "p1": 2}}  # and by other tools


def test_what_qrels_cannot_say_is_said(toy: Path, dataset, workspace, tmp_path: Path) -> None:
    overlay = overlay_of((HEAD, "a1", THORAX, "p0", 2), (HEAD, "a1", HEAD, "p1", 1), (HEAD, "zz", HEAD, "p0", 1))
    made = qrels_zip(dataset, overlay)
    assert len(made.left_out) == 2 and "another collection" in made.left_out[0] and "'zz'" in made.left_out[1]
    archive = zipfile.ZipFile(io.BytesIO(made.data))
    assert archive.read("LEFT_OUT.txt").decode().splitlines()[1:] == list(made.left_out)
    anew = open_dataset(unpacked(made.data, toy, tmp_path / "copy"), workspace, "rejudged")
    assert anew.collections[HEAD].qrels == {"a1": {"p0": 1, "p1": 1}} and anew.faults == []


def test_odd_ids_folders_and_collections_at_the_root(collection_writer, workspace, tmp_path: Path) -> None:
    for folder in ("", "back\\slash", "C:x", "Übung 1"):
        rows = [{"_id": "a b%", "text": "x"}, {"_id": "a\tb", "text": "y"}, {"_id": "#1\r2", "text": "z"}]
        collection_writer(tmp_path / "odd" / folder, rows, rows, [("a b%", "a b%", 1)])
    shutil.rmtree(tmp_path / "odd" / "Übung 1" / "qrels")
    dataset = open_dataset(tmp_path / "odd", workspace)
    keys = {layout.path: layout.key for layout in discover(tmp_path / "odd").layouts}
    root, own = keys[""], keys["Übung 1"]
    judged = [(root, "a b%", root, "#1\r2", 2), (own, "#1\r2", own, "a b%", 0), (root, "a\tb", root, "a b%", 1)]
    made = qrels_zip(dataset, overlay_of(*judged))
    names = zipfile.ZipFile(io.BytesIO(made.data)).namelist()
    assert names == ["LEFT_OUT.txt", "qrels/rejudged.tsv", "Übung 1/qrels/rejudged.tsv"]
    assert len(made.left_out) == 3 and sum("folder's name" in line for line in made.left_out) == 2
    assert any("a tab or a line break" in line for line in made.left_out)
    anew = open_dataset(unpacked(made.data, tmp_path / "odd", tmp_path / "copy" / "odd"), workspace, "rejudged")
    assert anew.collections[root].qrels == {"a b%": {"a b%": 1, "#1\r2": 2}}
    assert anew.collections[own].qrels == {"#1\r2": {"a b%": 0}}


def test_data_sets_without_judgements(toy: Path, workspace, tmp_path: Path) -> None:
    for path in toy.rglob("qrels"):
        shutil.rmtree(path)
    (toy / "benchmark.json").write_text(json.dumps({"name": "Toy"}))
    dataset = open_dataset(toy, workspace)
    made = qrels_zip(dataset, overlay_of((HEAD, "a1", HEAD, "p0", 1)))
    anew = open_dataset(unpacked(made.data, toy, tmp_path / "copy"), workspace, "rejudged")
    assert {key: c.qrels for key, c in anew.collections.items() if c.qrels} == {HEAD: {"a1": {"p0": 1}}}
