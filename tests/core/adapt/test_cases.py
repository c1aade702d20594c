from __future__ import annotations

import hashlib
import json

import pytest

from core.adapt.cases import read_cases, training_pairs


def row(case: str, image: str, caption):
    return {"U_id": case, "image": image, "Description": {"Caption": caption}}


@pytest.fixture
def folder(tmp_path):
    discussion = (
        "First paragraph, which is long enough to be kept.\n \t\nshort\n\nSecond one, which is long enough as well."
    )
    cases = [
        {
            "U_id": "B",
            "Case": {"Title": "Title", "History": "Cough ", "Exam": "N/A", "Findings": " Nodule"},
            "Topic": {"Title": " Granuloma ", "Disease Discussion": discussion},
        },
        {
            "U_id": "A",
            "Case": {"Title": "Own Title", "History": None, "Exam": "none", "Findings": "-", "Discussion": "Said."},
            "Topic": {"Title": "n/a", "Disease Discussion": None},
        },
        {"U_id": "D", "Case": {"Title": "dev"}, "Topic": {"Title": "dev"}},
    ]
    described = [
        row("B", "b1", " A nodule. "),
        row("D", "d1", "Never read."),
        row("A", "a1", "Replace this - DESCRIPTION OF THE IMAGE OR FINDINGS."),
        row("B", "b2", "A nodule."),
        row("B", "b3", "A nodule."),
        row("A", "a2", None),
    ]
    (tmp_path / "Case_topic.json").write_text(json.dumps(cases))
    (tmp_path / "Descriptions.json").write_text(json.dumps(described))
    (tmp_path / "splits.json").write_text(json.dumps({"train": ["B", "A"], "dev": ["D"]}))
    (tmp_path / "images").mkdir()
    for name, content in {"b1": b"one", "b2": b"two", "b3": b"one", "a1": b"three", "a2": b"four"}.items():
        (tmp_path / "images" / f"{name}.png").write_bytes(content)
    return tmp_path


def test_cases_of_the_split_only_sorted_and_cleaned(folder):
    first, second = read_cases(folder, "train")
    assert (first.id, first.topic, first.question, first.findings) == ("A", "own title", "", "")
    assert first.report == "Own Title\nSaid."
    assert [p.caption for p in first.pictures] == ["Replace this - DESCRIPTION OF THE IMAGE OR FINDINGS.", ""]
    assert (second.topic, second.question) == ("granuloma", "Cough")
    assert second.report.startswith("Title\nNodule\nFirst paragraph")
    assert second.paragraphs == (
        "First paragraph, which is long enough to be kept.",
        "Second one, which is long enough as well.",
    )


def test_pairs_are_distinct_and_say_something(folder):
    pairs = training_pairs(read_cases(folder, "train"))
    assert [(case.id, picture.path.stem, picture.caption) for case, picture in pairs] == [
        ("B", "b1", "A nodule."),
        ("B", "b2", "A nodule."),
    ]


def test_the_hash_of_a_case_as_the_card_defines_it(folder):
    case = read_cases(folder, "train")[1]
    pictures = sorted(hashlib.sha256(content).hexdigest() for content in (b"one", b"two", b"one"))
    wanted = hashlib.sha256(json.dumps([pictures, ["A nodule."]], separators=(",", ":")).encode()).hexdigest()
    assert case.sha256 == wanted


def test_a_missing_file_is_named(folder):
    (folder / "images" / "b2.png").unlink()
    with pytest.raises(ValueError, match=r"b2\.png is missing.*Descriptions\.json"):
        read_cases(folder, "train")
    (folder / "splits.json").write_text("{")
    with pytest.raises(ValueError, match=r"splits\.json cannot be read"):
        read_cases(folder, "train")
