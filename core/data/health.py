"""What is wrong, and what is worth knowing, in a data set: counts per collection, faults and notes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from core.data.collection import Collection
from core.data.dataset import DataSet, Progress, silent
from core.data.table import Table
from core.media.picture import PictureError, open_picture
from core.records import Fault

NOTES = frozenset({"template_text", "repeated_caption", "empty_text", "positives_only", "other_domain"})
"""Kinds that are worth knowing and leave the exit code 0; every other kind is a fault."""

_TEMPLATE = re.compile(r"\s*replace this\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Report:
    """``collections``: counts of each; ``totals``: distinct over all; faults and notes never cut."""

    collections: list[dict[str, Any]]
    totals: dict[str, Any]
    faults: list[Fault]
    notes: list[Fault]

    def as_dict(self) -> dict[str, Any]:
        return {
            "collections": self.collections,
            "totals": self.totals,
            "faults": [f.as_dict() for f in self.faults],
            "notes": [f.as_dict() for f in self.notes],
        }


def is_template(text: str) -> bool:
    """True for text that nobody filled in: "Replace this - DESCRIPTION OF THE IMAGE"."""
    return _TEMPLATE.match(text) is not None


def counts(collection: Collection) -> dict[str, Any]:
    """Sizes and judgements of a collection, read from its cache: no picture is opened."""
    grades = Counter(grade for row in collection.qrels.values() for grade in row.values())
    kind = "none" if not grades else "graded" if 0 in grades else "positives-only"
    return {
        "collection": collection.key,
        "task": collection.task,
        "domain": collection.domain,
        "path": collection.path,
        "queries": len(collection.queries),
        "documents": len(collection.corpus),
        "judgements": sum(grades.values()),
        "grades": {str(g): n for g, n in sorted(grades.items(), reverse=True)},
        "judgement_type": kind,
    }


def check(dataset: DataSet, progress: Progress = silent) -> Report:
    """Look at every line and open every picture once; the data set is only read."""
    findings: list[Fault] = list(dataset.faults)
    pictures = _Pictures(dataset, progress)
    rows, template_pictures, repeated, template_lines = [], set(), set(), 0
    for collection in dataset.collections.values():
        row = counts(collection)
        seen = len(findings)
        texts = _check_texts(collection, findings)
        _check_judgements(collection, findings)
        row["pictures"] = pictures.check(collection, findings)
        new = findings[seen:] + [f for f in dataset.faults if _belongs(f, collection)]
        kinds = Counter(f.kind for f in new)
        row["template_texts"] = {"lines": kinds["template_text"], "distinct": len(texts["template"])}
        row["repeated_captions"] = {"lines": kinds["repeated_caption"], "distinct": len(texts["repeated"])}
        row["empty_texts"] = kinds["empty_text"]
        row["queries_without_relevant"] = kinds["no_relevant"]
        row["faults"] = {k: n for k, n in sorted(kinds.items()) if k not in NOTES}
        row["notes"] = {k: n for k, n in sorted(kinds.items()) if k in NOTES}
        template_lines += kinds["template_text"]
        template_pictures |= texts["template"]
        repeated |= texts["repeated"]
        rows.append(row)
    totals = {
        "queries": sum(r["queries"] for r in rows),
        "documents": sum(r["documents"] for r in rows),
        "judgements": sum(r["judgements"] for r in rows),
        "pictures": pictures.distinct,
        "template_texts": {"lines": template_lines, "distinct": len(template_pictures)},
        "repeated_captions": {"lines": sum(r["repeated_captions"]["lines"] for r in rows), "distinct": len(repeated)},
    }
    faults = [f for f in findings if f.kind not in NOTES]
    return Report(rows, totals, faults, [f for f in findings if f.kind in NOTES])


def _belongs(fault: Fault, collection: Collection) -> bool:
    folder = fault.file.rpartition("/")[0]
    parent, _, last = folder.rpartition("/")
    return (parent if last == "qrels" else folder) == collection.path


def _file(collection: Collection, name: str) -> str:
    return f"{collection.path}/{name}".lstrip("/")


def _check_texts(collection: Collection, findings: list[Fault]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"template": set(), "repeated": set()}
    captions = Counter(t for t in collection.queries.column("text").to_pylist() if t.strip())
    for name, table in (("queries.jsonl", collection.queries), ("corpus.jsonl", collection.corpus)):
        file, queries = _file(collection, name), table is collection.queries
        for row in table.rows():
            text = f"{row['title']} {row['text']}".strip()

            def add(kind: str, detail: str, row: dict[str, Any] = row, file: str = file) -> None:
                findings.append(Fault(kind, file, row["line"], row["id"], detail))

            if not text and not row["images"]:
                add("empty_query" if queries else "empty_document", "has neither text nor picture")
            elif not text:
                add("empty_text", "has a picture and no text")
            elif is_template(text):
                add("template_text", f"text that nobody filled in: {text[:60]!r}")
                found["template"].update(row["images"] or (row["id"],))
            if queries and captions[row["text"]] > 1:
                add("repeated_caption", f"{captions[row['text']]} queries of {collection.key} have this caption")
                found["repeated"].add(row["text"])
            domain = row["meta"].get("domain")
            if domain is not None and domain != collection.domain:
                add("other_domain", f"meta.domain is {domain!r}; grouped under {collection.domain!r}")
    return found


def _check_judgements(collection: Collection, findings: list[Fault]) -> None:
    if collection.layout.qrels is None:
        return
    if collection.positives_only and collection.qrels:
        file = _file(collection, f"qrels/{collection.layout.qrels.name}")
        detail = "no pair is judged not relevant: documents that are not listed may still be relevant"
        findings.append(Fault("positives_only", file, 0, "", detail))
    file = _file(collection, "queries.jsonl")
    ids, lines = (collection.queries.column(name).to_pylist() for name in ("id", "line"))
    for identity, line in zip(ids, lines, strict=True):
        if not any(grade > 0 for grade in collection.qrels.get(identity, {}).values()):
            detail = f"no relevant document in {collection.layout.qrels.name}; left out of every measure"
            findings.append(Fault("no_relevant", file, line, identity, detail))


class _Pictures:
    """Opens each distinct picture once, however many lines name it."""

    def __init__(self, dataset: DataSet, progress: Progress) -> None:
        self._progress, self._seen = progress, {}
        self._total = sum(_references(t) for c in dataset.collections.values() for t in (c.queries, c.corpus))
        self._done = 0

    @property
    def distinct(self) -> int:
        """Number of distinct pictures that opened."""
        return sum(problem is None for problem in self._seen.values())

    def check(self, collection: Collection, findings: list[Fault]) -> dict[str, int]:
        result: Counter[str] = Counter()
        distinct = set()
        for name, table in (("queries.jsonl", collection.queries), ("corpus.jsonl", collection.corpus)):
            columns = (table.column(c).to_pylist() for c in ("images", "id", "line"))
            for images, identity, line in zip(*columns, strict=True):
                for reference in images:
                    self._done += 1
                    self._progress("Opening pictures", self._done, self._total)
                    distinct.add(reference)
                    problem = self._problem(collection, reference)
                    if problem is not None:
                        kind = problem.kind if problem.kind in ("missing", "outside") else "unreadable"
                        result[kind] += 1
                        detail = f"{reference}: {problem}"
                        findings.append(Fault(f"picture_{kind}", _file(collection, name), line, identity, detail))
        kinds = {kind: result[kind] for kind in ("missing", "unreadable", "outside")}
        return {"distinct": len(distinct), **kinds}

    def _problem(self, collection: Collection, reference: str) -> PictureError | None:
        try:
            place = collection.pictures.resolve(reference)
        except PictureError as error:
            return error
        if place not in self._seen:
            try:
                open_picture(collection.picture(reference))
                self._seen[place] = None
            except PictureError as error:
                self._seen[place] = error
        return self._seen[place]


def _references(table: Table) -> int:
    return sum(len(images) for images in table.column("images").to_pylist())
