"""Cases against plain loops over every document and query."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from core.data.cases import Cases, case_name
from core.data.dataset import open_dataset


@pytest.fixture
def mixed(tmp_path: Path, collection_writer) -> Path:
    """Cases across tasks and domains, documents without one, odd values, a picture under two spellings, one missing."""
    root = tmp_path / "mixed"
    (root / "images").mkdir(parents=True)
    for name in ("one", "two", "three"):
        Image.new("RGB", (4, 4)).save(root / "images" / f"{name}.png")
    collection_writer(
        root / "query_to_image" / "Head",
        [
            {"_id": "i1", "caption": "words", "image_path": "one.png", "meta": {"case": "7"}},
            {"_id": "i4", "caption": "alone, like its document"},
            {"_id": "q", "caption": "no document has this id"},
            {"_id": "i1b", "caption": "only queries", "meta": {"case": "queries only"}},
        ],
        [
            {"_id": "i1", "text": "", "image_path": "images/one.png", "meta": {"case": 7}},
            {"_id": "i2", "text": "", "image_path": ["images/two.png", "images/gone.png"], "meta": {"case": "7"}},
            {"_id": "i3", "text": "odd", "meta": {"case": True}},
            {"_id": "i4", "text": "none"},
            {"_id": "i5", "text": "empty", "meta": {"case": ""}},
        ],
        [("i1", "i2", 2)],
    )
    collection_writer(
        root / "case_study" / "Foot",
        [{"_id": "k", "caption": "words", "image_path": "images/three.png", "meta": {"case": "7"}}],
        [
            {"_id": "i3", "text": "the same id elsewhere"},
            {"_id": "x/1 é", "text": "odd id", "image_path": "images/gone.png"},
            {"_id": "t", "text": "words", "image_path": "images/two.png", "meta": {"case": "7"}},
            {"_id": "d", "text": "named like a document", "meta": {"case": "query_to_image/Head/i3"}},
        ],
        [("k", "t", 1)],
    )
    (root / "benchmark.json").write_text(json.dumps({"ignore_identical_ids": True}))
    return root


def plain(dataset):
    """{case: (documents, queries)} by loops, from the parsed rows."""
    result: dict[str, tuple[list, list]] = {}
    for collection in dataset.collections.values():
        for doc in collection.docs():
            name = case_name(doc.collection, doc.id, doc.meta)
            result.setdefault(name, ([], []))[0].append((doc.collection, doc.id))
    for collection in dataset.collections.values():
        for query in collection.all_queries():
            name = case_name(query.collection, query.id, query.meta)
            if name.startswith("case:"):
                result.setdefault(name, ([], []))[1].append((query.collection, query.id))
            elif dataset.ignore_identical_ids and name in result:
                result[name][1].append((query.collection, query.id))
    return result


@pytest.mark.parametrize("ignore", [True, False])
@pytest.mark.parametrize("name", ["mixed", "toy"])
def test_cases_are_those_of_plain_loops(request, name, ignore, workspace):
    root = request.getfixturevalue(name)
    (root / "benchmark.json").write_text(json.dumps({"ignore_identical_ids": ignore}))
    dataset = open_dataset(root, workspace)
    cases, truth = Cases(dataset), plain(dataset)
    assert sorted(map(cases.name, range(len(cases)))) == sorted(truth)
    for case, (documents, queries) in truth.items():
        assert cases.documents(case) == documents
        assert cases.queries(case) == queries
        assert all(cases.of_doc(*key) == case for key in documents)
    for task in dataset.tasks:
        pool = dataset.pool(task)
        rows = cases.rows(pool)
        assert [cases.name(n) for n in rows.tolist()] == [case_name(d.collection, d.id, d.meta) for d in pool.docs()]


def test_a_case_without_a_name_is_one_document_of_one_collection(mixed, workspace):
    cases = Cases(open_dataset(mixed, workspace))
    head = cases.of_doc("query_to_image/Head", "i3")
    assert cases.documents(head) == [("query_to_image/Head", "i3")]
    assert cases.queries(cases.of_doc("query_to_image/Head", "i4")) == [("query_to_image/Head", "i4")]
    assert cases.documents("case:queries only") == []
    assert cases.documents("case:query_to_image/Head/i3") == [("case_study/Foot", "d")]


def test_pictures_of_a_case_are_distinct_files_in_order(mixed, workspace):
    cases = Cases(open_dataset(mixed, workspace))
    collections = {key for key, _ in cases.documents("case:7")}
    assert collections == {"query_to_image/Head", "case_study/Foot"}
    found = cases.pictures("case:7")
    # The file of i2 and t is one entry, that of i1 under two spellings too; what is missing is there once.
    assert sorted(Path(r).stem for _, r in found) == ["gone", "one", "three", "two"]
    assert found[-1] == ("case_study/Foot", "images/three.png")  # of a query only, so after the documents'
    assert found == Cases(open_dataset(mixed, workspace)).pictures("case:7")


@pytest.mark.parametrize("case", ["", "7", "case:", "case:8", "case:\ud800", "doc:", "doc:a/b", "doc:%ff/\ud800"])
def test_what_is_no_case_is_said(mixed, workspace, case):
    cases = Cases(open_dataset(mixed, workspace))
    for ask in (cases.documents, cases.queries, cases.pictures):
        with pytest.raises(KeyError):
            ask(case)


def test_a_named_document_is_no_case_of_its_own(mixed, workspace):
    cases = Cases(open_dataset(mixed, workspace))
    with pytest.raises(KeyError, match="no case"):
        cases.documents(case_name("query_to_image/Head", "i1", {}))
    with pytest.raises(KeyError, match="no document 'zz'"):
        cases.of_doc("query_to_image/Head", "zz")
    with pytest.raises(IndexError):
        cases.name(len(cases))


@pytest.mark.parametrize(
    ("meta", "name"),
    [
        ({"case": "A1"}, "case:A1"),
        ({"case": 7}, "case:7"),
        ({"case": "7"}, "case:7"),
        ({"case": 7.0}, "doc:t%2Fd/x%2F1"),
        ({"case": True}, "doc:t%2Fd/x%2F1"),
        ({"case": ""}, "doc:t%2Fd/x%2F1"),
        ({"case": ["A1"]}, "doc:t%2Fd/x%2F1"),
        ({}, "doc:t%2Fd/x%2F1"),
    ],
)
def test_the_name_of_a_case(meta, name):
    assert case_name("t/d", "x/1", meta) == name


def test_documents_and_no_queries(tmp_path, collection_writer, workspace):
    collection_writer(tmp_path / "bare" / "Head", [], [{"_id": "a", "text": "words"}], [])
    cases = Cases(open_dataset(tmp_path / "bare", workspace))
    assert len(cases) == 1 and cases.pictures(cases.name(0)) == []
