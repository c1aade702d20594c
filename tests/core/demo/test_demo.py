"""The demo library: what is committed is what the generator writes, and what it writes is a sound graded benchmark."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.demo import generate
from core.demo.content import domains, read_domain

COMMITTED = Path(__file__).resolve().parents[3] / "assets" / "demo"
TASKS = ("visual_context", "summary", "query_to_image", "case_study")
REGIONS = ("Abdomen", "Head", "Reproductive and Urinary System", "Spine and Muscles", "Thorax")
COLLECTIONS = [f"{task}/{region}" for task in TASKS for region in REGIONS]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "library"
    generate(out)
    return out


def _lines(collection: str, name: str) -> list[dict]:
    text = (COMMITTED / collection / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _qrels(collection: str) -> list[tuple[str, str, int]]:
    header, *rows = (COMMITTED / collection / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "query-id\tcorpus-id\tscore"
    return [(q, d, int(s)) for q, d, s in (row.split("\t") for row in rows)]


def _files(folder: Path) -> dict[str, Path]:
    return {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}


def test_regenerated_is_committed(fresh: Path) -> None:
    made, kept = _files(fresh), _files(COMMITTED)
    assert list(made) == list(kept)
    for name, path in made.items():
        if path.suffix != ".webp":
            assert path.read_bytes() == kept[name].read_bytes(), name
            continue
        with Image.open(path) as new, Image.open(kept[name]) as old:
            difference = np.abs(np.asarray(new, dtype=int) - np.asarray(old, dtype=int))
        assert difference.max() <= 2, name


def test_card_describes_what_is_there() -> None:
    card = json.loads((COMMITTED / "benchmark.json").read_text(encoding="utf-8"))
    assert card["synthetic"] is True
    assert "synthetic" in card["name"].lower()
    assert "patient" in card["source"]
    assert [c["path"] for c in card["collections"]] == COLLECTIONS
    assert all(c["path"] == f"{c['task']}/{c['domain']}" for c in card["collections"])
    counted = {
        "queries": sum(len(_lines(c, "queries.jsonl")) for c in COLLECTIONS),
        "documents": sum(len(_lines(c, "corpus.jsonl")) for c in COLLECTIONS),
        "judgements": sum(len(_qrels(c)) for c in COLLECTIONS),
        "pictures": len(list((COMMITTED / "images").iterdir())),
        "cases": sum(len(_lines(f"case_study/{r}", "corpus.jsonl")) for r in REGIONS),
        "conditions": len({d["meta"]["cluster"] for r in REGIONS for d in _lines(f"summary/{r}", "corpus.jsonl")}),
    }
    assert card["counts"] == counted


def test_it_is_small() -> None:
    assert sum(p.stat().st_size for p in _files(COMMITTED).values()) < 3_000_000


def test_every_picture_opens_and_is_used() -> None:
    named = set()
    for collection in COLLECTIONS:
        for line in _lines(collection, "queries.jsonl") + _lines(collection, "corpus.jsonl"):
            if "image_path" in line:
                named.add(line["image_path"])
    for path in named:
        with Image.open(COMMITTED / path) as opened:
            opened.load()
            assert max(opened.size) == 256, path
    assert named == {f"images/{p.name}" for p in (COMMITTED / "images").iterdir()}


def test_no_two_pictures_are_alike() -> None:
    small = []
    for path in sorted((COMMITTED / "images").iterdir()):
        with Image.open(path) as opened:
            small.append(np.asarray(opened.convert("L").resize((64, 64)), dtype=float))
    for i, a in enumerate(small):
        for b in small[i + 1 :]:
            assert np.abs(a - b).mean() > 2


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_judgements_follow_from_case_condition_and_lookalikes(collection: str) -> None:
    """The slow way: from the meta of the written lines and the names of the look-alike pairs."""
    task, region = collection.split("/")
    domain = next(d for d in domains() if d.name == region)
    names = {c.key: c.name for c in domain.conditions}
    pairs = {frozenset((c.name, names[k])) for c in domain.conditions for k in c.lookalikes}
    expected = set()
    for q in _lines(collection, "queries.jsonl"):
        for d in _lines(collection, "corpus.jsonl"):
            same = q["meta"]["cluster"] == d["meta"]["cluster"]
            if task == "query_to_image" and q["_id"] == d["_id"]:
                continue
            if same and task != "visual_context" and q["meta"]["case"] == d["meta"]["case"]:
                expected.add((q["_id"], d["_id"], 2))
            elif same:
                expected.add((q["_id"], d["_id"], 1))
            elif frozenset((q["meta"]["cluster"], d["meta"]["cluster"])) in pairs:
                expected.add((q["_id"], d["_id"], 0))
    rows = _qrels(collection)
    assert len(rows) == len(set(rows))
    assert set(rows) == expected
    grades = {g for _, _, g in rows}
    assert grades == ({0, 1} if task == "visual_context" else {0, 1, 2})


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_every_query_has_a_relevant_document_and_an_unjudged_one(collection: str) -> None:
    rows, asked, offered = _qrels(collection), _lines(collection, "queries.jsonl"), _lines(collection, "corpus.jsonl")
    relevant, judged = defaultdict(int), defaultdict(int)
    for q, _, g in rows:
        relevant[q] += g > 0
        judged[q] += 1
    assert {q for q, _, _ in rows} <= {q["_id"] for q in asked}
    assert {d for _, d, _ in rows} <= {d["_id"] for d in offered}
    for q in asked:
        assert relevant[q["_id"]] >= 1
        assert judged[q["_id"]] < len(offered) - (collection.startswith("query_to_image"))


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_lines_carry_what_the_layout_asks(collection: str) -> None:
    task, region = collection.split("/")
    asked, offered = _lines(collection, "queries.jsonl"), _lines(collection, "corpus.jsonl")
    for lines in (asked, offered):
        assert len({line["_id"] for line in lines}) == len(lines)
        for line in lines:
            assert line["meta"]["domain"] == region
            assert {"domain", "specialty", "case", "cluster"} <= set(line["meta"])
    assert all(q["caption"] and {"modality", "plane"} <= set(q["meta"]) for q in asked)
    if task == "query_to_image":
        assert all(d["text"] == "" and d["image_path"] and "modality" in d["meta"] for d in offered)
        assert [d["_id"] for d in offered] == [q["_id"] for q in asked]
    else:
        assert all(len(d["text"]) >= 40 and "image_path" not in d and "modality" not in d["meta"] for d in offered)


def test_no_text_contains_an_id() -> None:
    ids, texts = set(), []
    for collection in COLLECTIONS:
        for line in _lines(collection, "queries.jsonl") + _lines(collection, "corpus.jsonl"):
            ids |= {line["_id"], line["meta"]["case"]}
            texts.append(line.get("caption", "") + line.get("text", ""))
    assert not [(i, t) for t in texts for i in ids if i.lower() in t.lower()]


def test_captions_vary_and_many_do_not_name_the_disease() -> None:
    shown = [q for r in REGIONS for q in _lines(f"query_to_image/{r}", "queries.jsonl")]
    counts = Counter(q["caption"] for q in shown)
    assert sum(n - 1 for n in counts.values()) <= 0.1 * len(shown)
    naming = sum(q["meta"]["cluster"].split()[-1] in q["caption"].lower() for q in shown)
    assert 0 < naming < len(shown) / 2


def test_lookalikes_must_name_conditions(tmp_path: Path) -> None:
    path = tmp_path / "knee.toml"
    path.write_text('domain = "Knee"\nlookalikes = [["gout", "sprain"]]\n[[condition]]\nkey = "gout"\n')
    with pytest.raises(ValueError, match=r"knee\.toml.*sprain"):
        read_domain(path)


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="empty or new folder"):
        generate(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]
