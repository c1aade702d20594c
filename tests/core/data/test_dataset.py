"""A data set opened: what was written is what is read, whatever its layout and its names."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data.dataset import open_dataset
from core.store.workspace import Workspace
from tests.conftest import write_collection, write_jsonl


def test_the_toy_is_read_as_it_was_written(toy, workspace):
    opened = open_dataset(toy, workspace)
    assert (opened.name, opened.licence, opened.ignore_identical_ids, opened.synthetic) == (
        "Toy",
        "CC0-1.0",
        True,
        False,
    )
    assert opened.tasks == ("visual_context", "query_to_image") and opened.faults == []
    assert list(opened.collections) == [
        "query_to_image/Head",
        "query_to_image/Thorax",
        "visual_context/Head",
        "visual_context/Thorax",
    ]
    head = opened.collections["visual_context/Head"]
    rows = [json.loads(line) for line in (toy / "visual_context/Head/corpus.jsonl").read_text().splitlines()]
    assert [(d.id, d.title, d.text, d.meta) for d in head.docs()] == [
        (r["_id"], r["title"], r["text"], r["meta"]) for r in rows
    ]
    assert head.qrels == {"a1": {"p0": 1, "p1": 0}} and not head.positives_only
    assert opened.collections["query_to_image/Head"].positives_only
    assert head.doc("p0").full_text == "Head A passage about the head." and head.query("a1").images == (
        "images/a1.png",
    )
    for missing, get in (("p9", head.doc), ("a2", head.query), ("\ud800", head.doc)):
        with pytest.raises(KeyError, match="visual_context/Head"):
            get(missing)


def test_pictures_lie_in_the_folder_or_in_a_zip_at_the_root_or_in_the_collection(toy, workspace):
    before = {}
    opened = open_dataset(toy, workspace)
    for key in ("query_to_image/Head", "query_to_image/Thorax"):
        collection = opened.collections[key]
        before |= {(key, d.images[0]): collection.picture(d.images[0]) for d in collection.docs()}
    assert len(set(before.values())) == 4
    zipped = sorted((toy / "images").iterdir())
    for place, names in ((toy, ("a1", "a2")), (toy / "query_to_image" / "Thorax", ("b1", "b2"))):
        with zipfile.ZipFile(place / "images.zip", "w") as archive:
            for path in zipped:
                if path.stem in names:
                    archive.write(path, f"images/{path.name}")
    shutil.rmtree(toy / "images")
    again = open_dataset(toy, workspace)
    assert again.data_id != opened.data_id and again.faults == []
    assert {(k, r): again.collections[k].picture(r) for k, r in before} == before


def test_names_with_blanks_and_letters_of_any_script(tmp_path, workspace):
    name = "Anatomie für Ärzte & 解剖 'x'"
    write_collection(
        tmp_path / name / name, [{"_id": "q", "caption": "a"}], [{"_id": "d", "text": "b"}], [("q", "d", 2.0)]
    )
    opened = open_dataset(tmp_path / name, workspace)
    collection = opened.collections[f"retrieval/{name}"]
    assert opened.name == name and collection.qrels == {"q": {"d": 2}} and opened.faults == []


def test_collections_of_one_name_stay_apart(tmp_path, workspace):
    paths = ["", "x", "a/x", "b/x"]
    for path in paths:
        write_collection(tmp_path / "x" / path, [], [{"_id": "d", "text": path}], [])
    opened = open_dataset(tmp_path / "x", workspace)
    assert len(opened.collections) == 4
    assert {c.path: c.doc("d").text for c in opened.collections.values()} == {p: p for p in paths}
    assert len(opened.pool("retrieval")) == 4


def test_a_folder_that_cannot_be_read_is_named_and_the_rest_loads(toy, workspace, monkeypatch):
    real = os.scandir

    def scan(path):
        if str(path).endswith("Thorax"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scan)
    opened = open_dataset(toy, workspace)
    assert list(opened.collections) == ["query_to_image/Head", "visual_context/Head"]
    assert [(f.kind, f.file) for f in opened.faults] == [
        ("unreadable", "query_to_image/Thorax"),
        ("unreadable", "visual_context/Thorax"),
    ]


def test_qrels_of_another_name(toy, workspace):
    folder = toy / "visual_context" / "Head" / "qrels"
    (folder / "dev.tsv").write_text("query-id\tcorpus-id\tscore\na1\tp1\t2\n")
    test, dev = open_dataset(toy, workspace), open_dataset(toy, workspace, "dev.tsv")
    assert test.data_id == dev.data_id and (test.qrels_name, dev.qrels_name) == ("test", "dev")
    key = "visual_context/Head"
    assert dev.collections[key].qrels == {"a1": {"p1": 2}} and test.collections[key].qrels == {"a1": {"p0": 1, "p1": 0}}
    assert [(f.kind, f.file) for f in dev.faults] == [
        ("no_qrels", f"{c.path}/qrels/dev.tsv") for c in dev.collections.values() if c.key != key
    ]


def test_judgements_keep_only_known_pairs_and_their_first_line(tmp_path, workspace):
    queries, corpus = [{"_id": "q1"}, {"_id": "q 2"}], [{"_id": "d1"}, {"_id": " d2"}]
    pairs = [("q1", "d1", 1), ("q9", "d1", 1), ("q1", "d9", 1), ("q1", "d1", 2), ("q 2", " d2", "0.0"), ("d1", "q1", 1)]
    write_collection(tmp_path / "data", queries, corpus, pairs)
    opened = open_dataset(tmp_path / "data", workspace)
    assert opened.collections["retrieval/data"].qrels == {"q1": {"d1": 1}, "q 2": {" d2": 0}}
    found = [(f.kind, f.file, f.line, f.id) for f in opened.faults if f.kind != "id_whitespace"]
    assert found == [
        ("unknown_query", "qrels/test.tsv", 3, "q9"),
        ("unknown_document", "qrels/test.tsv", 4, "d9"),
        ("duplicate_judgement", "qrels/test.tsv", 5, "q1"),
        ("unknown_query", "qrels/test.tsv", 7, "d1"),
    ]


IDS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r"), min_size=1, max_size=6), max_size=5, unique=True
)


@given(IDS, IDS, st.data())
@settings(deadline=None, max_examples=25)
def test_a_data_set_that_is_written_is_read(query_ids, doc_ids, data):
    text = st.text(max_size=20)
    queries = [{"_id": i, "caption": data.draw(text)} for i in query_ids]
    corpus = [{"_id": i, "title": data.draw(text), "text": data.draw(text)} for i in doc_ids]
    pairs = [(q, d) for q in query_ids for d in doc_ids]
    chosen = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    qrels = [(q, d, data.draw(st.integers(0, 3))) for q, d in chosen]
    with tempfile.TemporaryDirectory() as folder:
        write_collection(Path(folder) / "data", queries, corpus, qrels)
        opened = open_dataset(Path(folder) / "data", Workspace(Path(folder) / "workspace"))
        collection = opened.collections["retrieval/data"]
        assert [(q.id, q.text) for q in collection.all_queries()] == [(q["_id"], q["caption"]) for q in queries]
        assert [(d.id, d.title, d.text) for d in collection.docs()] == [
            (d["_id"], d["title"], d["text"]) for d in corpus
        ]
        for position, row in enumerate(corpus):
            assert collection.doc(row["_id"]) == collection.doc_at(position)
        expected: dict = {}
        for q, d, grade in qrels:
            expected.setdefault(q, {})[d] = grade
        assert collection.qrels == expected
        assert {f.kind for f in opened.faults} <= {"id_whitespace"}


def _plain(path: Path) -> list[dict]:
    # Not by splitlines: pubmedqa_beir has U+2028 inside its texts.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["medlars_beir", "pubmedqa_beir"])
def test_public_beir_collections_are_read(shared, workspace, name):
    root = shared / "eval" / name
    opened = open_dataset(root, workspace)
    (collection,) = opened.collections.values()
    assert opened.faults == [] and (collection.task, collection.domain) == ("retrieval", name)
    docs, queries = _plain(root / "corpus.jsonl"), _plain(root / "queries.jsonl")
    assert [(d.id, d.title, d.text) for d in collection.docs()] == [
        (row["_id"], row.get("title", ""), row["text"]) for row in docs
    ]
    assert [(q.id, q.text) for q in collection.all_queries()] == [(row["_id"], row["text"]) for row in queries]
    lines = (root / "qrels" / "test.tsv").read_text().splitlines()[1:]
    expected: dict = {}
    for query, doc, grade in (line.split("\t") for line in lines):
        expected.setdefault(query, {})[doc] = int(float(grade))
    assert collection.qrels == expected


@pytest.mark.realdata
def test_of_r2med_documents_are_read_and_queries_refused_with_the_reason(shared, workspace):
    root = shared / "eval" / "r2med_demo"
    opened = open_dataset(root, workspace)
    (collection,) = opened.collections.values()
    assert [d.text for d in collection.docs()] == [d["text"] for d in _plain(root / "corpus.jsonl")]
    assert len(collection.queries) == 0 and collection.qrels == {}
    assert [(f.kind, f.file) for f in opened.faults] == [
        ("no_queries", "queries.jsonl"),
        ("no_qrels", "qrels/test.tsv"),
    ]
    assert "query.jsonl (R2MED's own layout) is not read" in opened.faults[0].detail


def test_a_corpus_of_another_layout_keeps_its_documents(tmp_path, workspace):
    write_jsonl(tmp_path / "data" / "corpus.jsonl", [{"id": "1", "text": "a"}])
    write_jsonl(tmp_path / "data" / "query.jsonl", [{"id": "1", "text": "b"}])
    opened = open_dataset(tmp_path / "data", workspace)
    assert [d.id for d in opened.pool("retrieval").docs()] == ["1"]
    assert [f.kind for f in opened.faults] == ["no_queries", "no_qrels"] and "R2MED" in opened.faults[0].detail
