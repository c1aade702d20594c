from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from core.data.medpix import PrepareError, prepare

CASES = [
    {
        "U_id": f"C{n}",
        "Case": {"Title": f"Case {n}", "History": "h", "Findings": "f"},
        "Topic": {"Title": "Stroke", "Disease Discussion": f"Paragraph {n} is long enough to become a document."},
    }
    for n in range(1, 5)
]
IMAGES = [
    {
        "Type": "CT",
        "U_id": f"C{(n + 1) // 2}",
        "image": f"i{n}",
        "Description": {"Caption": f"caption {n}", "Plane": "Axial"},
        "Location": "Brain",
        "Location Category": "Head",
    }
    for n in range(1, 9)
]
SPLITS = {"train": ["C1", "C3"], "dev": ["C2", "C4"]}


def build(folder: Path, cases=CASES, images=IMAGES, splits: Any = SPLITS) -> Path:
    (folder / "images").mkdir(parents=True)
    for name, content in (("Case_topic", cases), ("Descriptions", images), ("splits", splits)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    for entry in images:
        (folder / "images" / f"{entry['image']}.png").write_bytes(entry["image"].encode())
    return folder


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


def failure(src: Path, out: Path) -> str:
    before = sorted(out.parent.rglob("*"))
    with pytest.raises(PrepareError) as caught:
        prepare(src, out)
    assert sorted(out.parent.rglob("*")) == before  # nothing half-written, nothing left over
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    return message


ENTRIES = {
    "a case that is not there": (lambda c, i, s: i[3].update(U_id="C99"), "Descriptions.json, entry 4 (i4)", "C99"),
    "an image twice": (lambda c, i, s: i[4].update(image="i1"), "Descriptions.json, entry 5 (i1)", "before"),
    "a case twice": (lambda c, i, s: c[2].update(U_id="C1"), "Case_topic.json, entry 3 (C1)", "before"),
    "a number": (lambda c, i, s: c[1]["Case"].update(History=5), "Case_topic.json, entry 2 (C2)", "Case.History"),
    "a topic in words": (lambda c, i, s: c[1].update(Topic="x"), "Case_topic.json, entry 2 (C2)", "Topic.Disease"),
    "no domain": (lambda c, i, s: i[0].update({"Location Category": " "}), "entry 1 (i1)", "Location Category"),
    "a domain with a path": (lambda c, i, s: i[0].update({"Location Category": "../x"}), "entry 1 (i1)", "../x"),
    "an image with a path": (lambda c, i, s: i[0].update(image="a/b"), "Descriptions.json, entry 1", "a/b"),
    "half a character": (lambda c, i, s: i[0]["Description"].update(Caption="\ud800"), "entry 1 (i1)", "Caption"),
    "no case": (lambda c, i, s: i[0].pop("U_id"), "Descriptions.json, entry 1 (i1)", "U_id"),
    "no image": (lambda c, i, s: i.clear(), "Descriptions.json", "no image"),
    "a case in words": (lambda c, i, s: c.insert(0, "x"), "Case_topic.json, entry 1", "object"),
    "a split in words": (lambda c, i, s: s.update(train="C1"), "splits.json", "'train'"),
    "a case in two splits": (lambda c, i, s: s["dev"].append("C1"), "splits.json", "C1 is in two splits"),
}


@pytest.mark.parametrize("what", ENTRIES)
def test_malformed_entries_are_named(what, tmp_path):
    change, *said = ENTRIES[what]
    cases, images, splits = copy.deepcopy((CASES, IMAGES, SPLITS))
    src = build(tmp_path / "src")
    change(cases, images, splits)
    for name, content in (("Case_topic", cases), ("Descriptions", images), ("splits", splits)):
        (src / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    message = failure(src, tmp_path / "out")
    for part in said:
        assert part in message


def test_files_that_cannot_be_read(src, tmp_path):
    for name, content, said in (
        ("Case_topic.json", b'[{"U_id": ', "line 1"),
        ("Descriptions.json", b"\xff\xfe[]", "utf-8"),
        ("Descriptions.json", b"{}", "list"),
        ("splits.json", b"[]", "object"),
        ("Case_topic.json", b"[" * 200_000, "not valid JSON"),
    ):
        kept = (src / name).read_bytes()
        (src / name).write_bytes(content)
        message = failure(src, tmp_path / "out")
        assert name in message and said in message
        (src / name).write_bytes(kept)
    (src / "Case_topic.json").unlink()
    assert "Case_topic.json" in failure(src, tmp_path / "out")
    assert "not a folder" in failure(tmp_path / "nowhere", tmp_path / "out")


def test_pictures_that_are_missing_or_outside(src, tmp_path):
    (src / "images" / "i7.png").unlink()
    assert "Descriptions.json, entry 7 (i7)" in failure(src, tmp_path / "out")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (src / "images" / "i7.png").symlink_to(tmp_path / "secret.png")
    assert "link" in failure(src, tmp_path / "out")


def test_which_outputs_are_refused_and_which_replaced(src, out, tmp_path):
    first = tree(out)
    assert json.loads((out / "benchmark.json").read_text())["name"] == "MedPix 2.0"
    (out / "images" / "i1.png").write_bytes(b"damaged")
    prepare(src, out)  # its own work is replaced
    assert tree(out) == first and oct(out.stat().st_mode & 0o777) == "0o755"
    for extra in ("notes.txt", "images/note.txt", "case_study/Head/mine.jsonl", "mine/x.png"):
        (out / extra).parent.mkdir(exist_ok=True)
        (out / extra).write_bytes(b"precious")
        message = failure(src, out)
        assert extra.split("/")[0] in message and (out / extra).read_bytes() == b"precious"
        (out / extra).unlink()
        if extra.startswith("mine"):
            (out / "mine").rmdir()
    (out / "link").symlink_to(src)
    assert "link" in failure(src, out)
    other = tmp_path / "other"
    other.mkdir()
    prepare(src, other)  # an empty folder is fine
    assert tree(other) == first
    (tmp_path / "a_file").write_bytes(b"x")
    assert "is a file" in failure(src, tmp_path / "a_file")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "benchmark.json").write_text('{"source": "another", "collections": []}')
    assert "benchmark.json" in failure(src, foreign)


def test_source_and_output_stay_apart(src, tmp_path):
    (tmp_path / "link").symlink_to(src)
    for target in (src, src / "out", tmp_path, tmp_path / "link" / "out", src / "images" / ".." / "x"):
        with pytest.raises(PrepareError, match="lie in one another"):
            prepare(src, target)


def test_progress_and_stopping(src, tmp_path):
    told = []
    prepare(src, tmp_path / "out", lambda what, done, total: told.append((what, done, total)))
    assert told == [("copying pictures", n, 8) for n in range(1, 9)]
    first = tree(tmp_path / "out")

    def stop(what, done, total):
        if done == 4:
            raise KeyboardInterrupt

    for target in (tmp_path / "out", tmp_path / "new"):
        with pytest.raises(KeyboardInterrupt):
            prepare(src, target, stop)
    assert tree(tmp_path / "out") == first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "src"]
