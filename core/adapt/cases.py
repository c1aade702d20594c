"""Training cases from a raw MedPix 2.0 folder: pictures, captions, texts, topics, and a hash of each case."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.store.manifest import canonical

EMPTY = frozenset({"", "n/a", "na", "none", "-"})
TEMPLATE = "replace this -"
MIN_PARAGRAPH = 40


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture of a case: its file, the sha256 of the file's bytes and its caption, stripped ('' when empty)."""

    path: Path
    sha256: str
    caption: str

    @property
    def described(self) -> bool:
        """The caption says something: not empty, not text of a form that nobody filled in."""
        return bool(self.caption) and not self.caption.lower().startswith(TEMPLATE)


@dataclass(frozen=True, slots=True)
class Case:
    """One case with its pictures in the order of ``Descriptions.json``; texts are stripped, '' when empty.

    ``question`` is history and examination, ``report`` title, findings and discussion, ``paragraphs`` those of the
    disease discussion: the texts of the benchmark's tasks.
    """

    id: str
    topic: str
    pictures: tuple[Picture, ...]
    question: str
    findings: str
    report: str
    paragraphs: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """sha256 of the canonical JSON of [sorted sha256 of its picture files, its sorted distinct captions]."""
        pictures = sorted(p.sha256 for p in self.pictures)
        return hashlib.sha256(canonical([pictures, sorted({p.caption for p in self.pictures})])).hexdigest()


def clean(value: Any) -> str:
    """A text field stripped at both ends; '' where it says nothing (``N/A``, ``none``, ``-``, absent)."""
    text = (value or "").strip()
    return "" if text.lower() in EMPTY else text


def read_cases(folder: Path, split: str) -> list[Case]:
    """The cases of one split (``splits.json``) that have a picture, sorted by id.

    ValueError names the file that is missing or cannot be read, or a picture that is not in ``images/``.
    """
    names = set(_read(folder / "splits.json")[split])
    pictures: dict[str, list[Picture]] = {}
    for row in _read(folder / "Descriptions.json"):
        if row["U_id"] in names:
            path = folder / "images" / f"{row['image']}.png"
            if not path.is_file():
                raise ValueError(f"{path} is missing, but Descriptions.json names it.")
            picture = Picture(path, hashlib.sha256(path.read_bytes()).hexdigest(), clean(row["Description"]["Caption"]))
            pictures.setdefault(row["U_id"], []).append(picture)
    cases = {row["U_id"]: row for row in _read(folder / "Case_topic.json")}
    return [_case(cases[name], tuple(pictures[name])) for name in sorted(pictures)]


def training_pairs(cases: list[Case]) -> list[tuple[Case, Picture]]:
    """Every distinct (picture bytes, caption) with a caption that says something, in order of the cases."""
    pairs: dict[tuple[str, str], tuple[Case, Picture]] = {}
    for case in cases:
        for picture in case.pictures:
            if picture.described:
                pairs.setdefault((picture.sha256, picture.caption), (case, picture))
    return list(pairs.values())


def _case(row: dict[str, Any], pictures: tuple[Picture, ...]) -> Case:
    case, topic = row["Case"], row["Topic"]
    findings, discussion = clean(case.get("Findings")), clean(topic.get("Disease Discussion"))
    paragraphs = (clean(part) for part in re.split(r"\n\s*\n", discussion))
    return Case(
        id=row["U_id"],
        topic=(clean(topic.get("Title")) or clean(case.get("Title"))).lower(),
        pictures=pictures,
        question=" ".join(filter(None, (clean(case.get("History")), clean(case.get("Exam"))))),
        findings=findings,
        report="\n".join(
            filter(None, (clean(case.get("Title")), findings, clean(case.get("Discussion")) or discussion))
        ),
        paragraphs=tuple(p for p in paragraphs if len(p) >= MIN_PARAGRAPH),
    )


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}); give a MedPix 2.0 folder.") from None
