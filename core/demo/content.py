"""The invented cases of the demo library, read from the TOML files of ``content/`` (one a domain)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "content"


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: its id, words, kind, and the scene that draws it with its parameters."""

    id: str
    caption: str
    modality: str
    plane: str
    scene: str
    draw: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """One invented case; ``question`` is what the patient would ask, ``report`` the discussion."""

    id: str
    title: str
    history: str
    exam: str
    findings: str
    report: str
    question: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """A disease with its encyclopaedic ``passages`` and its cases; ``lookalikes`` are keys of its domain."""

    key: str
    name: str
    specialty: str
    passages: tuple[str, ...]
    cases: tuple[Case, ...]
    lookalikes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Domain:
    """A body region and its conditions, in the order of the file."""

    name: str
    conditions: tuple[Condition, ...]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _case(raw: dict[str, Any]) -> Case:
    words = {k: _flat(raw[k]) for k in ("title", "history", "exam", "findings", "report", "question")}
    pictures = tuple(
        Picture(f"{raw['id']}_{n}", _flat(p["caption"]), p["modality"], p["plane"], p["scene"], p.get("draw", {}))
        for n, p in enumerate(raw["picture"], 1)
    )
    return Case(id=raw["id"], **words, pictures=pictures)


def read_domain(path: Path) -> Domain:
    """The domain of one file. Raises ``ValueError`` naming the file where a look-alike pair names no condition."""
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    pairs = raw["lookalikes"]
    unknown = {k for pair in pairs for k in pair} - {c["key"] for c in raw["condition"]}
    if unknown:
        raise ValueError(f"{path.name}: lookalikes names {sorted(unknown)}, which no condition has as its key.")
    conditions = tuple(
        Condition(
            key=c["key"],
            name=c["name"],
            specialty=c["specialty"],
            passages=tuple(_flat(p) for p in c["passages"].split("\n\n")),
            cases=tuple(_case(case) for case in c["case"]),
            lookalikes=frozenset(k for pair in pairs if c["key"] in pair for k in pair if k != c["key"]),
        )
        for c in raw["condition"]
    )
    return Domain(raw["domain"], conditions)


def domains() -> tuple[Domain, ...]:
    """All domains, sorted by name."""
    return tuple(sorted((read_domain(p) for p in FOLDER.glob("*.toml")), key=lambda d: d.name))
