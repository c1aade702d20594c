"""Collections are found in every layout, named once each, and nothing outside the folder is read."""

from __future__ import annotations

import json
import os

import pytest

from core.data import layouts
from core.data.layouts import DataError, discover, task_of_name
from tests.conftest import write_collection, write_jsonl


def make(folder, name="x"):
    write_collection(folder, [{"_id": "q", "caption": name}], [{"_id": "d", "text": name}], [("q", "d", 1)])
    return folder


def keys(root, **more) -> list[str]:
    return [layout.key for layout in discover(root, **more).layouts]


def kinds(found) -> list[tuple[str, str]]:
    return [(f.kind, f.file) for f in found.faults]


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("case_study", "case_study"),
        ("CaseStudyRetrieval", "case_study"),
        ("Case Study", "case_study"),
        ("M3Retrieve_CaseStudyRetrieval", "case_study"),
        ("VisualContextRetrieval", "visual_context"),
        ("visual-context", "visual_context"),
        ("SummaryRetrieval", "summary"),
        ("MMQSD_Ret", "summary"),
        ("Query2Image", None),
        ("query_to_image", "query_to_image"),
        ("QueryToImageRetrieval", "query_to_image"),
        ("Cardiology", None),
        ("retrieval", None),
        ("", None),
        ("要約", None),
    ],
)
def test_tasks_by_the_names_of_folders(name, task):
    assert task_of_name(name) == task


def test_nested_flat_and_root_layouts(tmp_path):
    make(tmp_path / "nested" / "SummaryRetrieval" / "Head")
    make(tmp_path / "nested" / "case_study" / "Psychiatry and Behavioral Health")
    make(tmp_path / "flat" / "Cardiology")
    make(tmp_path / "flat" / "Anatomie für Ärzte 解剖")
    make(tmp_path / "one")
    nested = discover(tmp_path / "nested")
    assert [(x.key, x.task, x.domain, x.path) for x in nested.layouts] == [
        ("summary/Head", "summary", "Head", "SummaryRetrieval/Head"),
        (
            "case_study/Psychiatry and Behavioral Health",
            "case_study",
            "Psychiatry and Behavioral Health",
            "case_study/Psychiatry and Behavioral Health",
        ),
    ]
    assert keys(tmp_path / "flat") == ["retrieval/Anatomie für Ärzte 解剖", "retrieval/Cardiology"]
    (one,) = discover(tmp_path / "one").layouts
    assert (one.key, one.path, one.folder) == ("retrieval/one", "", (tmp_path / "one").resolve())
    assert nested.faults == () and one.queries.name == "queries.jsonl" and one.qrels.name == "test.tsv"


def test_a_folder_that_holds_a_corpus_is_a_collection_named_after_it_even_if_it_is_called_like_a_task(tmp_path):
    make(tmp_path / "data" / "case_study")
    make(tmp_path / "data" / "summary" / "Head")
    assert keys(tmp_path / "data") == ["retrieval/case_study", "summary/Head"]


@pytest.mark.parametrize("opened", ["summary", "summary/Head"])
def test_a_part_of_a_data_set_keeps_its_task(tmp_path, opened):
    make(tmp_path / "data" / "summary" / "Head")
    assert keys(tmp_path / "data" / opened) == ["summary/Head"]


def test_the_nearest_parent_with_a_tasks_name_counts(tmp_path):
    make(tmp_path / "summary" / "case_study" / "a" / "Head")
    assert keys(tmp_path / "summary") == ["case_study/Head"]


def test_collections_of_one_task_and_name_are_told_apart_by_their_paths(tmp_path):
    for path in ("Head", "a/Head", "b/Head", "summary/Head", "b/Neck"):
        make(tmp_path / "Head" / path)
    make(tmp_path / "Head")
    found = keys(tmp_path / "Head")
    assert found == [
        "retrieval/.",
        "retrieval/Head",
        "retrieval/a/Head",
        "retrieval/b/Head",
        "retrieval/Neck",
        "summary/Head",
    ]


def test_only_four_folders_deep_and_not_in_hidden_picture_or_judgement_folders(tmp_path):
    for path in ("a/b/c/d", "a/b/c/d/e", ".hidden/a", "images/a", "qrels/a", "x/hyde", "__MACOSX/a"):
        make(tmp_path / path)
    assert keys(tmp_path) == ["retrieval/d"]


def test_benchmark_json_declares_task_and_domain(tmp_path):
    make(tmp_path / "Head")
    make(tmp_path / "summary" / "Neck")
    make(tmp_path / "other")
    entries = [
        {"path": "./Head/", "task": "case_study", "domain": "Skull"},
        {"path": "summary/Neck", "task": "visual_context"},
        {"path": "other", "domain": "More", "more": 1},
    ]
    (tmp_path / "benchmark.json").write_text(json.dumps({"collections": entries}), encoding="utf-8-sig")
    found = discover(tmp_path)
    assert [(x.key, x.domain) for x in found.layouts] == [
        ("case_study/Head", "Skull"),
        ("retrieval/other", "More"),
        ("visual_context/Neck", "Neck"),
    ]
    assert found.faults == () and found.benchmark["collections"] == entries


def test_benchmark_json_declares_the_root_too(tmp_path):
    make(tmp_path / "data")
    (tmp_path / "data" / "benchmark.json").write_text('{"collections": [{"path": ".", "task": "summary"}]}')
    assert keys(tmp_path / "data") == ["summary/data"] and discover(tmp_path / "data").faults == ()


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ('{"name":\n "cut', 2, "not JSON"),
        ("[1]", 0, "one JSON object"),
        ("", 1, "not JSON"),
        ("[" * 100_000, 0, "nested"),
        ('{"version": NaN}', 0, "NaN"),
        ('{"name": "\\ud800"}', 0, "surrogate"),
        (b"\xff\xfe{}", 0, "utf-8"),
        ('{"collections": [{"path": "Head", "task": "unknown"}]}', 0, "one of visual_context"),
        ('{"collections": [{"path": 5}]}', 0, "needs path"),
        ('{"collections": ["Head"]}', 0, "needs path"),
        ('{"collections": "Head"}', 0, "needs path"),
    ],
)
def test_a_wrong_benchmark_json_is_named_and_the_rest_is_read(tmp_path, content, line, reason):
    make(tmp_path / "Head")
    (tmp_path / "benchmark.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    found = discover(tmp_path)
    assert [x.key for x in found.layouts] == ["retrieval/Head"]
    assert [(f.kind, f.file, f.line) for f in found.faults] == [("malformed", "benchmark.json", line)]
    assert reason in found.faults[0].detail


def test_a_declared_collection_that_is_not_there_is_named(tmp_path):
    make(tmp_path / "Head")
    (tmp_path / "benchmark.json").write_text('{"collections": [{"path": "Haed", "task": "summary"}]}')
    (fault,) = discover(tmp_path).faults
    assert (fault.kind, fault.file, fault.id) == ("no_corpus", "benchmark.json", "Haed")


def test_what_is_missing_is_named(tmp_path):
    write_jsonl(tmp_path / "documents only" / "corpus.jsonl", [{"_id": "d"}])
    write_jsonl(tmp_path / "queries only" / "queries.jsonl", [{"_id": "q"}])
    make(tmp_path / "whole")
    found = discover(tmp_path)
    assert [x.key for x in found.layouts] == ["retrieval/documents only", "retrieval/whole"]
    assert kinds(found) == [
        ("no_corpus", "queries only/corpus.jsonl"),
        ("no_queries", "documents only/queries.jsonl"),
        ("no_qrels", "documents only/qrels/test.tsv"),
    ]


def test_another_judgement_file_is_chosen_by_name(tmp_path):
    make(tmp_path / "a")
    (tmp_path / "a/qrels/test.tsv").rename(tmp_path / "a/qrels/dev-2.1.tsv")
    (fault,) = discover(tmp_path).faults
    assert fault.kind == "no_qrels" and "there is dev-2.1: choose with --qrels" in fault.detail
    for name in ("dev-2.1", "dev-2.1.tsv"):
        found = discover(tmp_path, name)
        assert found.layouts[0].qrels.name == "dev-2.1.tsv" and found.faults == ()


@pytest.mark.parametrize("name", ["", "../test", "a/b", "..", ".hidden", "a b", "a\0", "-x"])
def test_a_judgement_file_is_named_plainly(tmp_path, name):
    make(tmp_path)
    with pytest.raises(ValueError, match="not a plain file name"):
        discover(tmp_path, name)


@pytest.mark.parametrize("content", ["nothing", "file", "empty", "queries only"])
def test_without_any_corpus_there_is_no_data_set(tmp_path, content):
    root = tmp_path / "data"
    if content == "file":
        root.write_bytes(b"")
    elif content != "nothing":
        root.mkdir()
    if content == "queries only":
        write_jsonl(root / "queries.jsonl", [{"_id": "q"}])
    with pytest.raises(DataError, match=str(root)):
        discover(root)


@pytest.mark.parametrize("name", ["queries.jsonl", "qrels/test.tsv", "qrels"])
def test_a_link_out_of_the_folder_is_named_once_and_not_read(tmp_path, name):
    make(tmp_path / "outside", "secret")
    path = make(tmp_path / "data" / "Head") / name
    if path.is_dir():
        (path / "test.tsv").unlink()
        path.rmdir()
    else:
        path.unlink()
    path.symlink_to(tmp_path / "outside" / name)
    found = discover(tmp_path / "data")
    file = "Head/qrels/test.tsv" if "qrels" in name else f"Head/{name}"
    assert kinds(found) == [("outside_folder", file)]
    assert (found.layouts[0].queries is None) == (name == "queries.jsonl")
    assert (found.layouts[0].qrels is None) == (name != "queries.jsonl")


def test_a_corpus_or_benchmark_json_behind_a_link_out_of_the_folder_is_not_read(tmp_path):
    outside = make(tmp_path / "outside")
    (outside / "benchmark.json").write_text('{"name": "secret"}')
    make(tmp_path / "data" / "Head")
    make(tmp_path / "data" / "Neck")
    (tmp_path / "data" / "Head" / "corpus.jsonl").unlink()
    (tmp_path / "data" / "Head" / "corpus.jsonl").symlink_to(outside / "corpus.jsonl")
    (tmp_path / "data" / "benchmark.json").symlink_to(outside / "benchmark.json")
    found = discover(tmp_path / "data")
    assert [x.key for x in found.layouts] == ["retrieval/Neck"] and found.benchmark == {}
    assert kinds(found) == [("outside_folder", "benchmark.json"), ("outside_folder", "Head/corpus.jsonl")]


def test_links_inside_the_folder_are_read_and_dangling_ones_are_named(tmp_path):
    make(tmp_path / "Head")
    (tmp_path / "Head" / "corpus.jsonl").rename(tmp_path / "shared.jsonl")
    (tmp_path / "Head" / "corpus.jsonl").symlink_to("../shared.jsonl")
    (tmp_path / "Head" / "queries.jsonl").unlink()
    (tmp_path / "Head" / "queries.jsonl").symlink_to("queries.jsonl")
    found = discover(tmp_path)
    assert [x.key for x in found.layouts] == ["retrieval/Head"] and found.layouts[0].queries is None
    assert kinds(found) == [("outside_folder", "Head/queries.jsonl")] and "no file" in found.faults[0].detail


@pytest.mark.parametrize("target", ["outside", "data/Head", "data"])
def test_a_linked_folder_is_named_and_not_followed(tmp_path, target):
    make(tmp_path / "outside")
    make(tmp_path / "data" / "Head")
    make(tmp_path / "data")
    (tmp_path / "data" / "link").symlink_to(tmp_path / target)
    found = discover(tmp_path / "data")
    assert [x.path for x in found.layouts] == ["", "Head"]
    assert kinds(found) == [("linked_folder", "link")]


def test_a_data_set_may_itself_be_a_link(tmp_path):
    make(tmp_path / "real" / "Head")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = discover(tmp_path / "link")
    assert found.root == (tmp_path / "real").resolve() and found.faults == ()


def test_names_that_are_not_utf_8_are_shown_escaped(tmp_path):
    name = os.fsdecode(b"K\xf6rper")
    make(tmp_path / name)
    (tmp_path / name / "queries.jsonl").unlink()
    (tmp_path / name / "qrels" / "test.tsv").rename(tmp_path / name / "qrels" / name)
    found = discover(tmp_path)
    (one,) = found.layouts
    assert (one.key, one.domain, one.path) == ("retrieval/K\\xf6rper", "K\\xf6rper", "K\\xf6rper")
    assert one.corpus.is_file()
    for fault in found.faults:
        assert "K\\xf6rper" in fault.file and json.dumps(fault.as_dict(), ensure_ascii=False).encode()


def test_what_may_not_be_read_is_named_and_the_rest_is_read(tmp_path, monkeypatch):
    for name in ("a", "b", "closed", "shut"):
        make(tmp_path / name)
    refused = {str(tmp_path / name) for name in ("a/queries.jsonl", "b/corpus.jsonl", "shut")}
    real_access, real_scan = os.access, os.scandir
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) not in refused and real_access(path, mode))

    def scan(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return real_scan(path)

    monkeypatch.setattr(os, "scandir", scan)
    found = discover(tmp_path)
    assert [(x.key, x.queries is None) for x in found.layouts] == [("retrieval/a", True)]
    assert sorted(kinds(found)) == [
        ("unreadable", "a/queries.jsonl"),
        ("unreadable", "b/corpus.jsonl"),
        ("unreadable", "closed"),
        ("unreadable", "shut"),
    ]


def test_the_order_of_collections_does_not_depend_on_the_file_system(tmp_path):
    names = ["b", "a", "a-1", "a/x", "B", "c d"]
    for name in names:
        make(tmp_path / name)
    paths = [x.path for x in discover(tmp_path).layouts]
    assert paths == sorted(names, key=lambda n: n.split("/")) and layouts.discover(tmp_path).faults == ()
