from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from core.data.medpix import paragraphs, prepare

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "medpix-2.0"
HEAD, SPINE = "Head", "Spine and Muscles"

P_A = "Paragraph A is shared by two regions and kept in each of them."
P_B = "Paragraph B – held by two diseases of one region.\nIt has a second line."
P_C = "Paragraph C stands behind a blank line with carriage returns."
P_D = "Paragraph D is the only one of the first spine case, MPX2."
P_40 = "exactly forty characters make the cut ok"


def image(name, case, domain, location, kind, plane, caption) -> dict[str, Any]:
    return {
        "Type": kind,
        "U_id": case,
        "image": name,
        "Description": {"Caption": caption, "Plane": plane, "Age": "73", "Figure Part": None},
        "Location": location,
        "Location Category": domain,
    }


def case(name, topic, disease, **fields) -> dict[str, Any]:
    head = {} if topic is None else {"Title": topic}
    return {"U_id": name, "TAC": [], "MRI": [], "Case": fields, "Topic": head | {"Disease Discussion": disease}}


IMAGES = [
    image("i1", "C1", HEAD, "Brain", "CT", " Axial ", "  “First” caption \n"),
    image("i2", "C2", SPINE, "Spine", "MR", None, "N/A"),
    image("i3", "C1", SPINE, "Spine", "MR", "Coronal", "Third"),  # C1 is tied: Head comes first
    image("i4", "C3", HEAD, "Eye", "CT", "Axial", "Fourth"),  # C3 belongs to the spine, two to one
    image("i5", "C4", HEAD, "Brain", "CT", "Axial", "Same"),
    image("i6", "C3", SPINE, "Muscle", "CT", "Axial", "Same"),
    image("i7", "C3", SPINE, "Muscle", "CT", "Sagittal", "Same"),
    image("i8", "C5", HEAD, "Brain", "MR", "Axial", "Eighth"),
    image("i9", "C7", HEAD, "Skull", "CT", "Axial", "Ninth"),
    image("i10", "C8", SPINE, "Spine", "CT", "Axial", "Tenth"),
]

CASES = [
    case("C8", "Lonely", "N/A", Title="Lonely", History="h8", Discussion="D8"),
    case("C7", "Odd", f"{P_B}\n\n{'x' * 39}", Title="Odd", History="n/a", Exam="e7", Findings="  "),
    case("C6", "Stroke", "This case has no image, so that its paragraph counts nowhere.", Title="x", Findings="F6"),
    case("C5", None, "None", Title=" Stroke\n", History="none", Exam="-", Findings="NA"),
    case("C4", " STROKE ", f"{P_B}\r\n\r\n{P_C}\n", Title="Second", History=" h4\n", Findings="F4", Discussion="None"),
    case("C3", "pneumonia", f"  {P_A}\n\n  {P_40}  ", Title="Third", History="h3", Findings="F3"),
    case("C2", "Pneumonia", P_D, Title="N/A", Exam="e2", Findings=" F2", Discussion=""),
    case("C1", "Stroke", f"{P_A}\n \t\xa0\nshort\n\n\n{P_B}", Title="First", History="h1", Exam="e1", Findings="F1")
    | {"extra": 1},
]
CASES[-1]["Case"]["Discussion"] = "D1"

SPLITS = {"train": ["C1", "C3", "C5", "C8", "unknown"], "dev": ["C2", "C4"]}


def build(folder: Path, cases=CASES, images=IMAGES, splits: Any = SPLITS) -> Path:
    (folder / "images").mkdir(parents=True)
    (folder / "Case_topic.json").write_text(json.dumps(cases), encoding="utf-8")
    (folder / "Descriptions.json").write_text(json.dumps(images, ensure_ascii=False), encoding="utf-8")
    if splits is not None:
        (folder / "splits.json").write_text(json.dumps(splits), encoding="utf-8")
    for number, entry in enumerate(images):
        Image.new("L", (4, 4), number % 256).save(folder / "images" / f"{entry['image']}.png")
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_bytes().decode()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def rows(path: Path) -> list[tuple[str, str, int]]:
    head, *body = path.read_bytes().decode().split("\n")[:-1]
    assert head == "query-id\tcorpus-id\tscore"
    return [(q, d, int(score)) for q, d, score in (row.split("\t") for row in body)]


def tree(folder: Path) -> dict[str, str]:
    return {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in folder.rglob("*")
        if p.is_file()
    }


@pytest.fixture
def src(tmp_path) -> Path:
    return build(tmp_path / "src")


@pytest.fixture
def out(tmp_path, src) -> Path:
    prepare(src, tmp_path / "out")
    return tmp_path / "out"


def q_meta(domain, specialty, case, cluster, modality, plane, split=None):
    meta = {"domain": domain, "specialty": specialty, "case": case, "cluster": cluster}
    return meta | {"modality": modality, "plane": plane} | ({"split": split} if split else {})


def d_meta(domain, specialty, case, cluster):
    return {"domain": domain, "specialty": specialty, "case": case, "cluster": cluster}


def test_query_to_image(out):
    folder = out / "query_to_image" / HEAD
    assert lines(folder / "queries.jsonl") == [
        {
            "_id": "i1",
            "caption": "“First” caption",
            "image_path": "images/i1.png",
            "meta": q_meta(HEAD, "Brain", "C1", "stroke", "CT", "Axial", "train"),
        },
        {
            "_id": "i5",
            "caption": "Same",
            "image_path": "images/i5.png",
            "meta": q_meta(HEAD, "Brain", "C4", "stroke", "CT", "Axial", "dev"),
        },
        {
            "_id": "i8",
            "caption": "Eighth",
            "image_path": "images/i8.png",
            "meta": q_meta(HEAD, "Brain", "C5", "stroke", "MR", "Axial", "train"),
        },
    ]
    corpus = lines(folder / "corpus.jsonl")
    assert [doc["_id"] for doc in corpus] == ["i1", "i4", "i5", "i8", "i9"]
    assert corpus[1] == {
        "_id": "i4",
        "text": "",
        "image_path": "images/i4.png",
        "meta": q_meta(HEAD, "Eye", "C3", "pneumonia", "CT", "Axial"),
    }
    assert rows(folder / "qrels" / "test.tsv") == [
        ("i1", "i5", 1),
        ("i1", "i8", 1),
        ("i5", "i1", 1),
        ("i5", "i8", 1),
        ("i8", "i1", 1),
        ("i8", "i5", 1),
    ]
    folder = out / "query_to_image" / SPINE
    queries = lines(folder / "queries.jsonl")
    assert [q["_id"] for q in queries] == ["i2", "i6", "i7"]
    assert queries[0]["caption"] == "" and queries[0]["meta"]["plane"] == ""
    assert [d["_id"] for d in lines(folder / "corpus.jsonl")] == ["i2", "i3", "i6", "i7", "i10"]
    assert rows(folder / "qrels" / "test.tsv") == [
        ("i2", "i6", 1),
        ("i2", "i7", 1),
        ("i6", "i2", 1),
        ("i6", "i7", 2),
        ("i7", "i2", 1),
        ("i7", "i6", 2),
    ]


def test_case_study(out):
    folder = out / "case_study" / HEAD
    assert lines(folder / "queries.jsonl") == [
        {
            "_id": "q-C1",
            "caption": "h1 e1",
            "image_path": "images/i1.png",
            "meta": q_meta(HEAD, "Brain", "C1", "stroke", "CT+MR", "Axial", "train"),
        },
        {
            "_id": "q-C4",
            "caption": "h4",
            "image_path": "images/i5.png",
            "meta": q_meta(HEAD, "Brain", "C4", "stroke", "CT", "Axial", "dev"),
        },
        {
            "_id": "q-C7",
            "caption": "e7",
            "image_path": "images/i9.png",
            "meta": q_meta(HEAD, "Skull", "C7", "odd", "CT", "Axial"),
        },
    ]
    assert lines(folder / "corpus.jsonl") == [
        {"_id": "C1", "text": "First\nF1\nD1", "meta": d_meta(HEAD, "Brain", "C1", "stroke")},
        {"_id": "C4", "text": f"Second\nF4\n{P_B}\r\n\r\n{P_C}", "meta": d_meta(HEAD, "Brain", "C4", "stroke")},
        {"_id": "C5", "text": "Stroke", "meta": d_meta(HEAD, "Brain", "C5", "stroke")},
        {"_id": "C7", "text": f"Odd\n{P_B}\n\n{'x' * 39}", "meta": d_meta(HEAD, "Skull", "C7", "odd")},
    ]
    assert rows(folder / "qrels" / "test.tsv") == [
        ("q-C1", "C1", 2),
        ("q-C1", "C4", 1),
        ("q-C1", "C5", 1),
        ("q-C4", "C1", 1),
        ("q-C4", "C4", 2),
        ("q-C4", "C5", 1),
        ("q-C7", "C7", 2),
    ]
    folder = out / "case_study" / SPINE
    # The picture of C3 is its first, which lies in the head; so does its specialty.
    assert lines(folder / "queries.jsonl")[1] == {
        "_id": "q-C3",
        "caption": "h3",
        "image_path": "images/i4.png",
        "meta": q_meta(SPINE, "Eye", "C3", "pneumonia", "CT", "Axial", "train"),
    }
    assert [(d["_id"], d["text"]) for d in lines(folder / "corpus.jsonl")] == [
        ("C2", f"F2\n{P_D}"),
        ("C3", f"Third\nF3\n{P_A}\n\n  {P_40}"),
        ("C8", "Lonely\nD8"),
    ]
    assert rows(folder / "qrels" / "test.tsv") == [
        ("q-C2", "C2", 2),
        ("q-C2", "C3", 1),
        ("q-C3", "C2", 1),
        ("q-C3", "C3", 2),
        ("q-C8", "C8", 2),
    ]


def test_summary(out):
    folder = out / "summary" / HEAD
    assert [q["_id"] for q in lines(folder / "queries.jsonl")] == ["q-C1", "q-C4"]
    assert lines(folder / "queries.jsonl") == lines(out / "case_study" / HEAD / "queries.jsonl")[:2]
    assert lines(folder / "corpus.jsonl") == [
        {"_id": "C1", "text": "F1", "meta": d_meta(HEAD, "Brain", "C1", "stroke")},
        {"_id": "C4", "text": "F4", "meta": d_meta(HEAD, "Brain", "C4", "stroke")},
    ]
    assert rows(folder / "qrels" / "test.tsv") == [
        ("q-C1", "C1", 2),
        ("q-C1", "C4", 1),
        ("q-C4", "C1", 1),
        ("q-C4", "C4", 2),
    ]
    folder = out / "summary" / SPINE
    assert [q["_id"] for q in lines(folder / "queries.jsonl")] == ["q-C2", "q-C3"]
    assert [(d["_id"], d["text"]) for d in lines(folder / "corpus.jsonl")] == [("C2", "F2"), ("C3", "F3")]


def test_visual_context(out):
    folder = out / "visual_context" / HEAD
    queries = lines(folder / "queries.jsonl")
    assert [q["_id"] for q in queries] == ["i1", "i3", "i5", "i8", "i9"]
    # i3 shows the spine, but its case belongs to the head, and so does this collection.
    assert queries[1] == {
        "_id": "i3",
        "caption": "Third",
        "image_path": "images/i3.png",
        "meta": q_meta(HEAD, "Spine", "C1", "stroke", "MR", "Coronal", "train"),
    }
    assert lines(folder / "corpus.jsonl") == [
        {"_id": "head-p0", "text": P_A, "meta": d_meta(HEAD, "Brain", "C1", "stroke")},
        {"_id": "head-p1", "text": P_B, "meta": d_meta(HEAD, "Brain", "C1", "stroke")},
        {"_id": "head-p2", "text": P_C, "meta": d_meta(HEAD, "Brain", "C4", "stroke")},
    ]
    everything = [f"head-p{n}" for n in range(3)]
    assert rows(folder / "qrels" / "test.tsv") == [
        *[(query, doc, 1) for query in ("i1", "i3", "i5", "i8") for doc in everything],
        ("i9", "head-p1", 1),
    ]
    folder = out / "visual_context" / SPINE
    assert [q["_id"] for q in lines(folder / "queries.jsonl")] == ["i2", "i4", "i6", "i7"]
    assert lines(folder / "corpus.jsonl") == [
        {"_id": "spine-and-muscles-p0", "text": P_D, "meta": d_meta(SPINE, "Spine", "C2", "pneumonia")},
        {"_id": "spine-and-muscles-p1", "text": P_A, "meta": d_meta(SPINE, "Eye", "C3", "pneumonia")},
        {"_id": "spine-and-muscles-p2", "text": P_40, "meta": d_meta(SPINE, "Eye", "C3", "pneumonia")},
    ]
    assert rows(folder / "qrels" / "test.tsv") == [
        (query, f"spine-and-muscles-p{n}", 1) for query in ("i2", "i4", "i6", "i7") for n in range(3)
    ]


def test_benchmark_json(src, out, tmp_path):
    benchmark = json.loads((out / "benchmark.json").read_text(encoding="utf-8"))
    assert benchmark == prepare(src, tmp_path / "again")
    counts = benchmark.pop("counts")
    tasks = ["visual_context", "summary", "query_to_image", "case_study"]
    assert benchmark == {
        "name": "MedPix 2.0",
        "source": "https://github.com/CHILab1/MedPix-2.0",
        "licence": "the source states no licence for its data",
        "tasks": tasks,
        "domains": [HEAD, SPINE],
        "domain_meaning": "body region",
        "splits": ["dev", "train"],
        "judgements": "positives-only",
        "ignore_identical_ids": True,
        "collections": [{"path": f"{t}/{d}", "task": t, "domain": d} for t in tasks for d in (HEAD, SPINE)],
    }
    numbers = {  # queries, documents, judgements, dropped
        f"visual_context/{HEAD}": (5, 3, 13, 0),
        f"visual_context/{SPINE}": (4, 3, 12, 1),
        f"summary/{HEAD}": (2, 2, 4, 1),
        f"summary/{SPINE}": (2, 2, 4, 1),
        f"query_to_image/{HEAD}": (3, 5, 6, 2),
        f"query_to_image/{SPINE}": (3, 5, 6, 2),
        f"case_study/{HEAD}": (3, 4, 7, 0),
        f"case_study/{SPINE}": (3, 3, 5, 0),
    }
    assert {path: tuple(c.values()) for path, c in counts["collections"].items()} == numbers
    assert tuple(counts["total"].values()) == tuple(map(sum, zip(*numbers.values(), strict=True)))
    assert (counts["cases"], counts["images"]) == (7, 10)


def test_bytes_and_key_order(src, out, tmp_path):
    first = (out / "query_to_image" / HEAD / "queries.jsonl").read_bytes().split(b"\n")[0].decode()
    assert first == (
        '{"_id": "i1", "caption": "“First” caption", "image_path": "images/i1.png", "meta": {"domain": "Head", '
        '"specialty": "Brain", "case": "C1", "cluster": "stroke", "modality": "CT", "plane": "Axial", '
        '"split": "train"}}'
    )
    for entry in IMAGES:
        copied, original = (folder / "images" / f"{entry['image']}.png" for folder in (out, src))
        assert copied.read_bytes() == original.read_bytes() and not copied.is_symlink()
        assert copied.stat().st_ino != original.stat().st_ino and copied.stat().st_nlink == 1
    shutil.copytree(src, tmp_path / "elsewhere" / "source")
    prepare(tmp_path / "elsewhere" / "source", tmp_path / "elsewhere" / "result")
    assert tree(tmp_path / "elsewhere" / "result") == tree(out)
    assert str(tmp_path).encode() not in (out / "benchmark.json").read_bytes()


def test_without_splits(tmp_path):
    benchmark = prepare(build(tmp_path / "src", splits=None), tmp_path / "out")
    assert benchmark["splits"] == []
    for path in (tmp_path / "out").rglob("queries.jsonl"):
        assert all("split" not in query["meta"] for query in lines(path))


def test_documents_carry_no_split_and_texts_no_modality(out):
    for path in out.rglob("corpus.jsonl"):
        for doc in lines(path):
            assert "split" not in doc["meta"]
            assert ("modality" in doc["meta"]) == ("plane" in doc["meta"]) == ("image_path" in doc)


def test_a_case_without_any_title_is_like_no_other(tmp_path):
    cases = [case(f"C{n}", "N/A", P_A, Title="", History="h", Findings="f") for n in (1, 2)]
    images = [image(f"i{n}", f"C{n}", HEAD, "Brain", "CT", "Axial", "c") for n in (1, 2)]
    prepare(build(tmp_path / "src", cases, images, None), tmp_path / "out")
    assert rows(tmp_path / "out" / "case_study" / HEAD / "qrels" / "test.tsv") == [("q-C1", "C1", 2), ("q-C2", "C2", 2)]
    assert rows(tmp_path / "out" / "query_to_image" / HEAD / "qrels" / "test.tsv") == []


def test_paragraphs_equal_a_plain_reading_line_by_line():
    rng = random.Random(3)
    pieces = ["\n", "\r\n", " \n", "\t\n", "\xa0\n", "x" * 39, "y" * 40, " z" * 25, "\n\n"]
    for _ in range(300):
        text = "".join(rng.choices(pieces, k=rng.randrange(12)))
        expected, current = [], []
        for line in [*text.split("\n"), ""]:
            if line.strip():
                current.append(line)
            elif current:
                whole = "\n".join(current).strip()
                expected += [whole] if len(whole) >= 40 else []
                current = []
        assert paragraphs(text) == expected


@pytest.mark.realdata
def test_the_public_copy(tmp_path):
    if not REAL.is_dir():
        pytest.skip("../shared/data/medpix-2.0 is not here")
    benchmark = prepare(REAL, tmp_path / "a")
    prepare(REAL, tmp_path / "b")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    assert len(benchmark["collections"]) == 20 and benchmark["splits"] == ["dev", "train"]
    assert len(list((tmp_path / "a" / "images").iterdir())) == 1850
    for path, counts in benchmark["counts"]["collections"].items():
        print(f"{path:55}", *(f"{key} {value:5}" for key, value in counts.items()))
        assert counts["queries"] == len(lines(tmp_path / "a" / path / "queries.jsonl"))
        assert counts["documents"] == len(lines(tmp_path / "a" / path / "corpus.jsonl"))
        assert counts["judgements"] == len(rows(tmp_path / "a" / path / "qrels" / "test.tsv"))
