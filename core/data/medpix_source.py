"""MedPix 2.0 as its repository lays it out: ``Case_topic.json``, ``Descriptions.json`` and sometimes ``splits.json``.

Every text is stripped at both ends and otherwise kept; one that says only "N/A" or the like is empty.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES, IMAGES, SPLITS = "Case_topic.json", "Descriptions.json", "splits.json"
EMPTY = frozenset({"n/a", "na", "none", "-", ""})


class PrepareError(Exception):
    """The source cannot be converted; the message names the file, the entry and what is wrong."""


@dataclass(frozen=True, slots=True)
class Image:
    """One entry of ``Descriptions.json``."""

    name: str
    case: str
    domain: str
    location: str
    kind: str
    plane: str
    caption: str


@dataclass(frozen=True, slots=True)
class Case:
    """One entry of ``Case_topic.json`` that has images; its ``domain`` is that of most of them."""

    id: str
    title: str
    history: str
    exam: str
    findings: str
    discussion: str
    disease: str
    topic: str
    split: str
    domain: str
    images: tuple[Image, ...]

    def shares_topic(self, other: Case) -> bool:
        """True for the same disease; a case without any title is only like itself."""
        return self.id == other.id or (self.topic != "" and self.topic == other.topic)

    @property
    def words(self) -> str:
        """What a patient's case asks: history and examination."""
        return " ".join(t for t in (self.history, self.exam) if t)

    @property
    def report(self) -> str:
        return "\n".join(t for t in (self.title, self.findings, self.discussion or self.disease) if t)


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise PrepareError(f"{path.name} cannot be read in {path.parent}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise PrepareError(f"{path.name} is not valid JSON: {error}.") from error


def _entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every entry of a list, with words that say where it stands."""
    content = _load(path)
    if not isinstance(content, list):
        raise PrepareError(f"{path.name} must hold a list, not {type(content).__name__}.")
    for number, entry in enumerate(content, 1):
        where = f"{path.name}, entry {number}"
        if not isinstance(entry, dict):
            raise PrepareError(f"{where} must be an object, not {type(entry).__name__}.")
        yield where, entry


def _text(where: str, entry: dict[str, Any], *keys: str) -> str:
    """The text below ``keys``, stripped; nothing where it is absent, null or one of `EMPTY`."""
    value: Any = entry
    for key in keys:
        if not isinstance(value, dict):
            raise PrepareError(f"{where}: {'.'.join(keys)} cannot be read, since what holds it is not an object.")
        value = value.get(key)
        if value is None:
            return ""
    if not isinstance(value, str):
        raise PrepareError(f"{where}: {'.'.join(keys)} must be text, not {type(value).__name__}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise PrepareError(f"{where}: {'.'.join(keys)} holds half a character (a lone surrogate).") from None
    value = value.strip()
    return "" if value.lower() in EMPTY else value


def _plain_name(where: str, entry: dict[str, Any], key: str) -> str:
    """A text that becomes an id, a file or a folder."""
    value = _text(where, entry, key)
    if not value or value.startswith(".") or re.search(r"[/\\:\x00-\x1f\x7f]", value):
        raise PrepareError(f"{where}: {key} is {value[:80]!r}, which cannot be the name of a file or an id.")
    return value


def read_source(src: Path) -> tuple[list[Case], list[Image]]:
    """Cases in the order of their first image, and images in the order of ``Descriptions.json``."""
    images = _read_images(src / IMAGES)
    of_case: dict[str, list[Image]] = {}
    for image in images:
        of_case.setdefault(image.case, []).append(image)
    splits = _read_splits(src / SPLITS)
    cases: dict[str, Case] = {}
    known: set[str] = set()
    for where, entry in _entries(src / CASES):
        name = _plain_name(where, entry, "U_id")
        where = f"{where} ({name})"
        if name in known:
            raise PrepareError(f"{where}: this U_id has come before.")
        known.add(name)
        if name not in of_case:
            continue  # only cases with an image count
        title = _text(where, entry, "Case", "Title")
        own = tuple(of_case[name])
        cases[name] = Case(
            id=name,
            title=title,
            history=_text(where, entry, "Case", "History"),
            exam=_text(where, entry, "Case", "Exam"),
            findings=_text(where, entry, "Case", "Findings"),
            discussion=_text(where, entry, "Case", "Discussion"),
            disease=_text(where, entry, "Topic", "Disease Discussion"),
            topic=(_text(where, entry, "Topic", "Title") or title).lower(),
            split=splits.get(name, ""),
            # Of equally frequent domains the first counted wins: Counter keeps the order of first appearance.
            domain=Counter(image.domain for image in own).most_common(1)[0][0],
            images=own,
        )
    for number, image in enumerate(images, 1):
        if image.case not in cases:
            raise PrepareError(f"{IMAGES}, entry {number} ({image.name}): there is no case {image.case} in {CASES}.")
    return [cases[name] for name in of_case], images


def _read_images(path: Path) -> list[Image]:
    images: dict[str, Image] = {}
    for where, entry in _entries(path):
        name = _plain_name(where, entry, "image")
        where = f"{where} ({name})"
        if name in images:
            raise PrepareError(f"{where}: this image has come before.")
        images[name] = Image(
            name=name,
            case=_plain_name(where, entry, "U_id"),
            domain=_plain_name(where, entry, "Location Category"),
            location=_text(where, entry, "Location"),
            kind=_text(where, entry, "Type"),
            plane=_text(where, entry, "Description", "Plane"),
            caption=_text(where, entry, "Description", "Caption"),
        )
    if not images:
        raise PrepareError(f"{path.name} lists no image.")
    return list(images.values())


def _read_splits(path: Path) -> dict[str, str]:
    """Case -> split, in the file's order; nothing where there is no such file."""
    if not path.exists():
        return {}
    content = _load(path)
    splits: dict[str, str] = {}
    for split, names in content.items() if isinstance(content, dict) else [("", None)]:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise PrepareError(f"{path.name} must hold an object of lists of case ids (at {split!r}).")
        for name in names:
            if splits.setdefault(name, split) != split:
                raise PrepareError(f"{path.name}: the case {name} is in two splits, {splits[name]} and {split}.")
    return splits
