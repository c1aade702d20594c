"""Planted faults are each named with file and line while the rest loads; counts are those of a plain loop."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from core.data import health
from core.data.dataset import open_dataset
from tests.conftest import write_collection

Expected = tuple[str, str, int, str]
"""kind, file, line, id"""


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def append(path: Path, line: dict | str | bytes) -> int:
    """Write one more line; return its number."""
    line = json.dumps(line) if isinstance(line, dict) else line
    with path.open("ab") as stream:
        stream.write((line.encode() if isinstance(line, str) else line) + b"\n")
    return lines_in(path)


def first(path: Path) -> dict:
    return json.loads(path.read_bytes().split(b"\n")[0])


def new_doc(kind: str, row: dict | str | bytes, shown: str = "", before: Callable[[Path], None] | None = None):
    """A plant: one more line of the corpus, found as ``kind`` under the id ``shown``."""

    def plant(root: Path, path: str) -> Expected:
        if before is not None:
            before(root)
        file = f"{path}/corpus.jsonl"
        return kind, file, append(root / file, row), shown

    return plant


def new_query(kind: str, row: dict, judged: bool):
    def plant(root: Path, path: str) -> Expected:
        file = f"{path}/queries.jsonl"
        if judged:
            doc = first(root / path / "corpus.jsonl")["_id"]
            append(root / path / "qrels" / "test.tsv", f"{row['_id']}\t{doc}\t1")
        return kind, file, append(root / file, row), row["_id"]

    return plant


def new_judgement(kind: str, form: str, shown: str):
    def plant(root: Path, path: str) -> Expected:
        query = json.loads((root / path / "queries.jsonl").read_text("utf-8").split("\n")[-2])["_id"]
        doc = json.loads((root / path / "corpus.jsonl").read_text("utf-8").split("\n")[-2])["_id"]
        file = f"{path}/qrels/test.tsv"
        line = append(root / file, form.format(q=query, d=doc))
        return kind, file, line, shown.format(q=query, d=doc)

    return plant


def judged_again(root: Path, path: str) -> Expected:
    file = f"{path}/qrels/test.tsv"
    line = (root / file).read_text("utf-8").split("\n")[1]
    return "duplicate_judgement", file, append(root / file, line), line.split("\t")[0]


def duplicate(root: Path, path: str) -> Expected:
    file = f"{path}/corpus.jsonl"
    row = first(root / file)
    return "duplicate_id", file, append(root / file, {**row, "text": "not the same"}), row["_id"]


def crlf(root: Path, path: str) -> Expected:
    file = root / path / "queries.jsonl"
    lines = file.read_bytes().split(b"\n")
    lines[1] += b"\r"
    file.write_bytes(b"\n".join(lines))
    return "crlf", f"{path}/queries.jsonl", 2, ""


def bom(root: Path, path: str) -> Expected:
    file = root / path / "corpus.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    return "bom", f"{path}/corpus.jsonl", 1, ""


def cut_picture(root: Path) -> None:
    whole = root / "images" / "whole.png"
    Image.effect_noise((64, 64), 50).save(whole)
    (root / "images" / "cut.png").write_bytes(whole.read_bytes()[:-500])
    whole.unlink()


def outside(root: Path) -> None:
    Image.new("RGB", (8, 8)).save(root.parent / "outside.png")


def linked(root: Path) -> None:
    outside(root)
    (root / "images" / "link.png").symlink_to(root.parent / "outside.png")


def doc(identity: str, picture: str = "", text: str = "words") -> dict:
    return {"_id": identity, "text": text, "image_path": picture}


PLANTS = {
    "a judgement of an unknown query": new_judgement("unknown_query", "none\t{d}\t1", "none"),
    "a judgement of an unknown document": new_judgement("unknown_document", "{q}\tnone\t1", "none"),
    "a score that is no number": new_judgement("bad_score", "{q}\t{d}\tNaN", "{q}"),
    "a pair judged again": judged_again,
    "a score that is half": new_judgement("bad_score", "{q}\t{d}\t0.5", "{q}"),
    "two columns": new_judgement("malformed", "{q}\t{d}", ""),
    "a duplicate id": duplicate,
    "a line cut short": new_doc("malformed", '{"_id": "cut", "text": "cut'),
    "NaN": new_doc("malformed", '{"_id": "nan", "text": "a", "meta": {"size": NaN}}'),
    "half a surrogate pair": new_doc("malformed", '{"_id": "half", "text": "\\ud800"}'),
    "bytes that are not UTF-8": new_doc("malformed", b'{"_id": "latin", "text": "\xe9"}'),
    "an id with a space": new_doc("id_whitespace", doc("an id"), "an id"),
    "a missing picture": new_doc("picture_missing", doc("p1", "images/none.png"), "p1"),
    "a picture cut short": new_doc("picture_unreadable", doc("p2", "images/cut.png"), "p2", cut_picture),
    "a path out of the folder": new_doc("picture_outside", doc("p3", "../outside.png"), "p3", outside),
    "an absolute path": new_doc("picture_outside", doc("p4", "/etc/hostname"), "p4"),
    "a link out of the folder": new_doc("picture_outside", doc("p5", "images/link.png"), "p5", linked),
    "a document of nothing": new_doc("empty_document", doc("e1", text=" \n"), "e1"),
    "a query of nothing": new_query("empty_query", {"_id": "e2", "caption": ""}, judged=True),
    "a query without answer": new_query("no_relevant", {"_id": "e3", "caption": "words"}, judged=False),
    "line ends of Windows": crlf,
    "a byte order mark": bom,
}


def loaded(dataset) -> dict[str, set]:
    """What loads, as a set per kind of thing."""
    collections = dataset.collections.values()
    return {
        "documents": {(d.collection, d.id, d.text) for c in collections for d in c.docs()},
        "queries": {(q.collection, q.id, q.text) for c in collections for q in c.all_queries()},
        "judgements": {(c.key, q, d, g) for c in collections for q, row in c.qrels.items() for d, g in row.items()},
    }


def named(findings) -> list[Expected]:
    return sorted((f.kind, f.file, f.line, f.id) for f in findings)


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_fault_is_named_and_everything_else_loads(toy, workspace, plant):
    before = loaded(open_dataset(toy, workspace))
    assert health.check(open_dataset(toy, workspace)).faults == []
    expected = PLANTS[plant](toy, "query_to_image/Head")
    opened = open_dataset(toy, workspace)
    report = health.check(opened)
    assert named(report.faults) == [expected]
    for kind, things in loaded(opened).items():
        assert before[kind] <= things
    rows = {row["collection"]: row["faults"] for row in report.collections}
    assert rows.pop("query_to_image/Head") == {expected[0]: 1} and not any(rows.values())


def plant_all(root: Path, path: str) -> list[Expected]:
    return sorted(plant(root, path) for plant in PLANTS.values())


def test_all_faults_at_once_are_named_and_everything_else_loads(toy, workspace):
    before = loaded(open_dataset(toy, workspace))
    expected = plant_all(toy, "query_to_image/Head")
    opened = open_dataset(toy, workspace)
    assert named(health.check(opened).faults) == expected
    for kind, things in loaded(opened).items():
        assert before[kind] <= things


@pytest.mark.realdata
def test_faults_in_a_copy_of_real_data_are_named_and_everything_else_loads(shared, tmp_path, workspace):
    from core.data.medpix import prepare

    prepare(shared / "medpix-2.0", tmp_path / "whole")
    root, path = tmp_path / "copy", "query_to_image/Reproductive and Urinary System"
    others = ("visual_context/Reproductive and Urinary System", "case_study/Reproductive and Urinary System")
    for name in (path, *others):
        shutil.copytree(tmp_path / "whole" / name, root / name)
    (root / "images").mkdir()
    opened = open_dataset(root, workspace)
    pictures = {r for c in opened.collections.values() for d in (*c.docs(), *c.all_queries()) for r in d.images}
    for reference in pictures:
        shutil.copyfile(tmp_path / "whole" / reference, root / reference)
    before = loaded(open_dataset(root, workspace))
    report = health.check(open_dataset(root, workspace))
    assert report.faults == [] and report.totals["pictures"] == len(pictures) > 100
    expected = plant_all(root, path)
    opened = open_dataset(root, workspace)
    assert named(health.check(opened).faults) == expected
    for kind, things in loaded(opened).items():
        assert len(before[kind]) > 300 and before[kind] <= things


# --- counts and notes ----------------------------------------------------------------------------------------------


def one(root: Path, queries: list[dict], corpus: list[dict], qrels: list[tuple]) -> Path:
    write_collection(root / "summary" / "Head", queries, corpus, qrels)
    return root


def test_counts_of_the_toy(toy, workspace):
    report = health.check(open_dataset(toy, workspace))
    rows = {row["collection"]: row for row in report.collections}
    row = rows["visual_context/Thorax"]
    assert {k: row[k] for k in ("task", "domain", "path", "queries", "documents", "judgements")} == {
        "task": "visual_context",
        "domain": "Thorax",
        "path": "visual_context/Thorax",
        "queries": 1,
        "documents": 2,
        "judgements": 2,
    }
    assert row["grades"] == {"1": 1, "0": 1} and row["judgement_type"] == "graded"
    assert rows["query_to_image/Head"]["judgement_type"] == "positives-only"
    assert row["pictures"] == {"distinct": 1, "missing": 0, "unreadable": 0, "outside": 0}
    # Four files, named by ten lines in four collections.
    assert report.totals["pictures"] == 4
    assert (report.totals["queries"], report.totals["documents"], report.totals["judgements"]) == (6, 8, 8)
    assert {f.kind for f in report.notes} == {"positives_only", "empty_text"}
    assert json.loads(json.dumps(report.as_dict()))["totals"] == report.totals
    for collection in open_dataset(toy, workspace).collections.values():
        counted = health.counts(collection)
        assert counted.items() <= rows[collection.key].items()


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("Replace this - DESCRIPTION OF THE IMAGE OR FINDINGS.", True),
        ("  replace THIS: findings", True),
        ("Replace thistle", False),
        ("Do not replace this", False),
        ("", False),
    ],
)
def test_template_text(text, template):
    assert health.is_template(text) is template


def test_notes_are_named_line_by_line_and_are_no_faults(tmp_path, workspace):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    template = "Replace this - DESCRIPTION"
    queries = [
        {"_id": "q1", "caption": "twice"},
        {"_id": "q2", "caption": "twice", "meta": {"domain": "Neck"}},
        {"_id": "q3", "caption": template, "image_path": "a.png"},
        {"_id": "q4", "caption": template, "image_path": "a.png"},
        {"_id": "q5", "caption": "", "image_path": "a.png"},
        {"_id": "q6", "caption": " ", "image_path": "a.png"},
        {"_id": "q7", "caption": "once", "meta": {"domain": "Head"}},
    ]
    corpus = [
        {"_id": "d1", "text": "twice"},
        {"_id": "d2", "text": "twice", "meta": {"domain": ["Head"]}},
        {"_id": "d3", "title": "Replace this", "text": ""},
        {"_id": "d4", "title": "T", "text": "", "image_path": "a.png"},
    ]
    root = one(tmp_path, queries, corpus, [(q["_id"], "d1", 1) for q in queries])
    report = health.check(open_dataset(root, workspace))
    queries_file, corpus_file = "summary/Head/queries.jsonl", "summary/Head/corpus.jsonl"
    assert report.faults == []
    assert named(report.notes) == sorted(
        [
            *(("repeated_caption", queries_file, n, f"q{n}") for n in (1, 2, 3, 4)),
            *(("template_text", queries_file, n, f"q{n}") for n in (3, 4)),
            *(("empty_text", queries_file, n, f"q{n}") for n in (5, 6)),
            ("other_domain", queries_file, 2, "q2"),
            ("other_domain", corpus_file, 2, "d2"),
            ("template_text", corpus_file, 3, "d3"),
            ("positives_only", "summary/Head/qrels/test.tsv", 0, ""),
        ]
    )
    (row,) = report.collections
    assert row["template_texts"] == report.totals["template_texts"] == {"lines": 3, "distinct": 2}
    assert row["repeated_captions"] == report.totals["repeated_captions"] == {"lines": 4, "distinct": 2}
    assert row["empty_texts"] == 2 and row["queries_without_relevant"] == 0
    assert row["domain"] == "Head" and row["faults"] == {}
    assert row["notes"] == {
        "empty_text": 2,
        "other_domain": 2,
        "positives_only": 1,
        "repeated_caption": 4,
        "template_text": 3,
    }
    assert row["pictures"]["distinct"] == report.totals["pictures"] == 1


def test_nothing_is_ever_cut(tmp_path, workspace):
    queries = [{"_id": f"q{n}", "caption": "the same"} for n in range(1500)]
    corpus = [{"_id": f"d{n}", "image_path": [f"no/{n}.png", "no/shared.png"]} for n in range(1500)]
    report = health.check(open_dataset(one(tmp_path, queries, corpus, []), workspace))
    kinds = [f.kind for f in report.faults]
    assert kinds.count("picture_missing") == 3000 and kinds.count("no_relevant") == 1500 and len(kinds) == 4500
    assert sum(f.kind == "repeated_caption" for f in report.notes) == 1500
    assert report.collections[0]["pictures"] == {"distinct": 1501, "missing": 3000, "unreadable": 0, "outside": 0}
    assert report.totals["pictures"] == 0


def test_without_judgements_queries_are_not_called_unanswered(tmp_path, workspace):
    root = one(tmp_path, [{"_id": "q", "caption": "a"}], [{"_id": "d", "text": "b"}], [])
    shutil.rmtree(root / "summary" / "Head" / "qrels")
    report = health.check(open_dataset(root, workspace))
    assert [(f.kind, f.file) for f in report.faults] == [("no_qrels", "summary/Head/qrels/test.tsv")]
    assert report.notes == [] and report.collections[0]["judgement_type"] == "none"


def test_only_judgements_of_zero_leave_a_query_unanswered(tmp_path, workspace):
    root = one(tmp_path, [{"_id": "q", "caption": "a"}], [{"_id": "d", "text": "b"}], [("q", "d", 0)])
    report = health.check(open_dataset(root, workspace))
    assert named(report.faults) == [("no_relevant", "summary/Head/queries.jsonl", 1, "q")] and report.notes == []


def test_faults_of_one_collection_are_not_counted_for_another(tmp_path, workspace):
    for path in ("", "Head", "Head/qrels2"):
        write_collection(tmp_path / "data" / path, [], [{"_id": "d", "text": "a"}, {"_id": "d"}], [])
    report = health.check(open_dataset(tmp_path / "data", workspace))
    assert [row["faults"] for row in report.collections] == [{"duplicate_id": 1}] * 3 and len(report.faults) == 3


def test_progress_counts_every_reference_to_a_picture(toy, workspace):
    heard = []
    health.check(open_dataset(toy, workspace), lambda *step: heard.append(step))
    assert heard == [("Opening pictures", n, 10) for n in range(1, 11)]
