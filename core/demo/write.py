"""Writes the demo library in the benchmark's layout: ``<task>/<Domain>/``, ``images/``, ``benchmark.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.demo.content import Case, Condition, Domain, Picture, domains
from core.demo.scenes import picture

NAME = "Demo library (synthetic)"
TASKS = ("visual_context", "summary", "query_to_image", "case_study")
SOURCE = (
    "Schematic pictures drawn and texts invented for demonstration by python -m core demo. "
    "Synthetic: nothing here comes from a patient, and nothing here is fit for diagnosis or teaching."
)
QUALITY = 82


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a file together with the case and condition that its judgements follow from."""

    line: dict[str, Any]
    condition: Condition
    case: Case


def _entry(domain: Domain, condition: Condition, case: Case, fields: dict[str, Any], **meta: str) -> Entry:
    meta = {"domain": domain.name, "specialty": condition.specialty, "case": case.id, "cluster": condition.name, **meta}
    return Entry({**fields, "meta": meta}, condition, case)


def _path(shown: Picture) -> str:
    return f"images/{shown.id}.webp"


def _cases(domain: Domain) -> Iterator[tuple[Condition, Case]]:
    for condition in domain.conditions:
        for case in condition.cases:
            yield condition, case


def _pictures(domain: Domain, words: str) -> list[Entry]:
    """A line for every picture; its caption is ``words`` of a query, a picture document has an empty text."""
    return [
        _entry(
            domain,
            condition,
            case,
            {"_id": p.id, words: p.caption if words == "caption" else "", "image_path": _path(p)},
            modality=p.modality,
            plane=p.plane,
        )
        for condition, case in _cases(domain)
        for p in case.pictures
    ]


def queries(task: str, domain: Domain) -> list[Entry]:
    """The queries of a task: every picture with its caption, or every case with its first picture and the patient's
    question (summary) or history and exam (case_study)."""
    if task in ("visual_context", "query_to_image"):
        return _pictures(domain, "caption")
    found = []
    for condition, case in _cases(domain):
        first = case.pictures[0]
        words = case.question if task == "summary" else f"{case.history} {case.exam}"
        fields = {"_id": f"q-{case.id}", "caption": words, "image_path": _path(first)}
        kinds = "+".join(sorted({p.modality for p in case.pictures}))
        found.append(_entry(domain, condition, case, fields, modality=kinds, plane=first.plane))
    return found


def documents(task: str, domain: Domain) -> list[Entry]:
    """The documents of a task: passages, findings, pictures without words, or whole reports."""
    if task == "query_to_image":
        return _pictures(domain, "text")
    if task == "visual_context":
        slug = domain.name.lower().replace(" ", "-")
        passages = [(c, text) for c in domain.conditions for text in c.passages]
        return [
            _entry(domain, c, c.cases[0], {"_id": f"{slug}-p{n}", "text": text}) for n, (c, text) in enumerate(passages)
        ]
    found = []
    for condition, case in _cases(domain):
        text = case.findings if task == "summary" else f"{case.title}\n{case.findings}\n{case.report}"
        found.append(_entry(domain, condition, case, {"_id": case.id, "text": text}))
    return found


def grade(task: str, query: Entry, document: Entry) -> int | None:
    """The judgement of a pair: 2 same case, 1 same condition, 0 a look-alike condition, ``None`` unjudged.

    Passages describe a condition, so there 1 is the highest. A picture is never judged against itself.
    """
    if task == "query_to_image" and query.line["_id"] == document.line["_id"]:
        return None
    if query.condition.key == document.condition.key:
        return 2 if task != "visual_context" and query.case.id == document.case.id else 1
    return 0 if document.condition.key in query.condition.lookalikes else None


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _collection(folder: Path, task: str, domain: Domain) -> dict[str, int]:
    asked, offered = queries(task, domain), documents(task, domain)
    judged = [(q.line["_id"], d.line["_id"], grade(task, q, d)) for q in asked for d in offered]
    rows = [f"{q}\t{d}\t{g}" for q, d, g in judged if g is not None]
    _write(folder / "queries.jsonl", [json.dumps(e.line, ensure_ascii=False) for e in asked])
    _write(folder / "corpus.jsonl", [json.dumps(e.line, ensure_ascii=False) for e in offered])
    _write(folder / "qrels" / "test.tsv", ["query-id\tcorpus-id\tscore", *rows])
    return {"queries": len(asked), "documents": len(offered), "judgements": len(rows)}


def _refuse_foreign(out: Path) -> None:
    card = out / "benchmark.json"
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if card.is_file() and json.loads(card.read_text(encoding="utf-8")).get("name") == NAME:
        return
    raise ValueError(f"{out} holds something else than the demo library; name an empty or new folder.")


def generate(out: Path) -> dict[str, int]:
    """Write the demo library to ``out`` (new, empty, or an earlier demo library) and return its counts.

    The same content gives the same bytes on one machine and one version of the libraries. Raises ``ValueError`` where
    ``out`` holds anything else.
    """
    _refuse_foreign(out)
    regions = domains()
    shown = [p for domain in regions for _, case in _cases(domain) for p in case.pictures]
    counts = {
        "conditions": sum(len(d.conditions) for d in regions),
        "cases": sum(1 for d in regions for _ in _cases(d)),
        "pictures": len(shown),
        "queries": 0,
        "documents": 0,
        "judgements": 0,
    }
    collections = []
    for task in TASKS:
        for domain in regions:
            for key, number in _collection(out / task / domain.name, task, domain).items():
                counts[key] += number
            collections.append({"path": f"{task}/{domain.name}", "task": task, "domain": domain.name})
    (out / "images").mkdir(exist_ok=True)
    for p in shown:
        picture(p.scene, p.id, p.draw).save(out / _path(p), "WEBP", quality=QUALITY, method=6)
    card = {
        "name": NAME,
        "source": SOURCE,
        "licence": "CC0-1.0",
        "synthetic": True,
        "tasks": list(TASKS),
        "domains": [d.name for d in regions],
        "domain_meaning": "body region",
        "ignore_identical_ids": True,
        "counts": counts,
        "judgements": "graded",
        "collections": collections,
    }
    _write(out / "benchmark.json", json.dumps(card, ensure_ascii=False, indent=2).split("\n"))
    return counts
