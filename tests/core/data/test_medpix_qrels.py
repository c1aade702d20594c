"""The qrels of `prepare` once more, by a naive second implementation that reads the raw entries."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from core.data.medpix import prepare

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "medpix-2.0"
HEAD, SPINE = "Head", "Spine and Muscles"
EMPTY = {"n/a", "na", "none", "-", ""}


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


def build(folder: Path, cases, images) -> Path:
    (folder / "images").mkdir(parents=True)
    (folder / "Case_topic.json").write_text(json.dumps(cases), encoding="utf-8")
    (folder / "Descriptions.json").write_text(json.dumps(images, ensure_ascii=False), encoding="utf-8")
    for entry in images:
        (folder / "images" / f"{entry['image']}.png").write_bytes(b"a picture is only copied")
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_bytes().decode()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def rows(path: Path) -> list[tuple[str, str, int]]:
    head, *body = path.read_bytes().decode().split("\n")[:-1]
    assert head == "query-id\tcorpus-id\tscore"
    return [(q, d, int(score)) for q, d, score in (row.split("\t") for row in body)]


def naive(cases: list[dict], images: list[dict]) -> dict[str, set[tuple[str, str, int]]]:
    def said(value):
        value = (value or "").strip()
        return "" if value.lower() in EMPTY else value

    raw = {c["U_id"]: c for c in cases}
    topic = {
        u: (said(c["Topic"].get("Title")) or said(c["Case"].get("Title"))).lower() or object() for u, c in raw.items()
    }
    domain = {}
    for u in {i["U_id"] for i in images}:
        seen = [i["Location Category"].strip() for i in images if i["U_id"] == u]
        domain[u] = max(seen, key=lambda d: (seen.count(d), -seen.index(d)))
    words = {u: said(raw[u]["Case"].get("History")) or said(raw[u]["Case"].get("Exam")) for u in domain}
    found = {u: said(raw[u]["Case"].get("Findings")) for u in domain}
    result: dict[str, set[tuple[str, str, int]]] = {}
    for region in {i["Location Category"].strip() for i in images}:
        here = [u for u in domain if domain[u] == region]
        shown = [i for i in images if i["Location Category"].strip() == region]
        result[f"query_to_image/{region}"] = {
            (a["image"], b["image"], 2 if a["U_id"] == b["U_id"] else 1)
            for a in shown
            for b in shown
            if a is not b and topic[a["U_id"]] == topic[b["U_id"]]
        }
        pairs = {(a, b, 2 if a == b else 1) for a in here for b in here if topic[a] == topic[b] and words[a]}
        result[f"case_study/{region}"] = {(f"q-{a}", b, g) for a, b, g in pairs}
        result[f"summary/{region}"] = {(f"q-{a}", b, g) for a, b, g in pairs if found[a] and found[b]}
        texts = {
            u: {p.strip() for p in "\n".join(line if line.strip() else "" for line in
                said(raw[u]["Topic"].get("Disease Discussion")).split("\n")).split("\n\n")}
            for u in here
        }  # fmt: skip
        result[f"visual_context/{region}"] = {
            (i["image"], text, 1)
            for i in images
            if i["U_id"] in here
            for u in here
            if topic[u] == topic[i["U_id"]]
            for text in texts[u]
            if len(text) >= 40
        }
    return result


def assert_equal_to_naive(out: Path, cases: list[dict], images: list[dict]) -> None:
    expected = naive(cases, images)
    position = {entry["image"]: n for n, entry in enumerate(images)}
    first: dict[str, int] = {}
    for n, entry in enumerate(images):
        first.setdefault(entry["U_id"], n)
    paths = {p.parent.relative_to(out).as_posix() for p in out.rglob("corpus.jsonl")}
    assert paths == set(expected)
    for path, judged in expected.items():
        written = rows(out / path / "qrels" / "test.tsv")
        corpus, queries = lines(out / path / "corpus.jsonl"), lines(out / path / "queries.jsonl")
        text = {d["_id"]: d["text"] for d in corpus}
        shown = [(q, text[d], g) for q, d, g in written] if path.startswith("visual") else written
        assert len(set(shown)) == len(shown) and set(shown) == judged, path
        assert {q["_id"] for q in queries} == {q for q, _, _ in judged}, path
        # The order: queries by their image, rows by query, then document.
        order = [position[q["image_path"][7:-4]] for q in queries]
        assert order == sorted(order)
        q_at, d_at = ({line["_id"]: n for n, line in enumerate(part)} for part in (queries, corpus))
        keys = [(q_at[q], d_at[d]) for q, d, _ in written]
        assert keys == sorted(keys)
        if path.startswith(("case", "summary")):
            at = [first[d["_id"]] for d in corpus]
            assert at == sorted(at)


def random_source(seed: int) -> tuple[list[dict], list[dict]]:
    rng = random.Random(seed)
    texts = ["", "N/A", " none ", "-", "some words", "other words"]
    pool = [f"{letter * 45} paragraph" for letter in "abcdef"] + ["short", "  "]
    titles = ["Stroke", "stroke ", "Tumour", "N/A", "", None]
    cases, images = [], []
    for n in range(rng.randrange(1, 25)):
        disease = rng.choice(["\n\n", "\n \n", "\r\n\t\r\n"]).join(rng.choices(pool, k=rng.randrange(4)))
        fields = {k: rng.choice(texts) for k in ("History", "Exam", "Findings", "Discussion") if rng.random() < 0.8}
        cases.append(case(f"C{n}", rng.choice(titles), disease, Title=rng.choice(titles[:5]), **fields))
        for _ in range(rng.randrange(4)):
            where = rng.choice([HEAD, SPINE, "Thorax"])
            images.append(image(f"i{len(images)}-C{n}", f"C{n}", where, "x", rng.choice(["CT", "MR"]), "Axial", "c"))
    rng.shuffle(images)
    rng.shuffle(cases)
    return cases, images


@pytest.mark.parametrize("seed", range(25))
def test_qrels_of_random_sources_equal_the_naive_ones(seed, tmp_path):
    cases, images = random_source(seed)
    if not images:
        images = [image("i0", "C0", HEAD, "x", "CT", "Axial", "c")]
    prepare(build(tmp_path / "src", cases, images), tmp_path / "out")
    assert_equal_to_naive(tmp_path / "out", cases, images)


@pytest.mark.realdata
def test_qrels_of_the_public_copy(tmp_path):
    if not REAL.is_dir():
        pytest.skip("../shared/data/medpix-2.0 is not here")
    prepare(REAL, tmp_path / "out")
    names = ("Case_topic.json", "Descriptions.json")
    cases, images = (json.loads((REAL / name).read_text(encoding="utf-8")) for name in names)
    assert_equal_to_naive(tmp_path / "out", cases, images)
