"""Find the collections of a data set folder and say where each of their files lies.

Reads M3Retrieve and BEIR layouts: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<name>.tsv``, flat
(``<Field>/…``), nested (``<Task>/<Field>/…``), or one collection at the root.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from core.data.rows import parse_json
from core.records import TASKS, Fault

PICTURE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm"}
)
_DEPTH = 4
_QRELS = re.compile(r"\w[\w.-]*")
_SKIPPED = frozenset({"images", "qrels", "hyde", "__MACOSX"})


class DataError(Exception):
    """There is no data set to read here; the message says what was looked for and where."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where one collection lies. ``key`` is ``<task>/<name>``; ``path`` is its folder relative to the data set."""

    key: str
    task: str
    domain: str
    path: str
    folder: Path
    corpus: Path
    queries: Path | None
    qrels: Path | None


@dataclass(frozen=True, slots=True)
class Found:
    """What `discover` found: collections in path order, the content of ``benchmark.json``, and faults so far."""

    root: Path
    layouts: tuple[Layout, ...]
    benchmark: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()


def task_of_name(name: str) -> str | None:
    """The benchmark task that a folder name spells (``CaseStudyRetrieval``, ``case_study``), else ``None``."""
    plain = re.sub(r"[^a-z]", "", name.lower()).removeprefix("mretrieve")
    plain = plain.removesuffix("retrieval").removesuffix("ret")
    return _TASK_SPELLINGS.get(plain)


_TASK_SPELLINGS = {task.replace("_", ""): task for task in TASKS if task != "retrieval"} | {"mmqsd": "summary"}


def discover(root: Path, qrels: str = "test") -> Found:
    """List the collections below ``root``; raise `DataError` where there is none.

    ``qrels`` names the judgement file, ``qrels/<qrels>.tsv``; ValueError if it cannot be a file's name. Links that
    lead out of ``root`` are not followed.
    """
    if not root.is_dir():
        raise DataError(f"{root} is not a folder. Name the folder that holds the data set.")
    root = root.resolve()
    qrels = qrels.removesuffix(".tsv")
    if not _QRELS.fullmatch(qrels):
        raise ValueError(f"--qrels {qrels!r} is not a plain file name; give the name of a file in the qrels folder.")
    faults: list[Fault] = []
    benchmark = _benchmark(root, faults)
    declared = _declared(benchmark, faults)
    places: list[tuple[str, Path, Path, str]] = []
    for folder in _folders(root, faults):
        alone = "queries.jsonl has no corpus.jsonl beside it" if (folder / "queries.jsonl").is_file() else ""
        corpus = _inside(root, folder / "corpus.jsonl", faults, "no_corpus", alone)
        if corpus is not None:
            path = "" if folder == root else relative(root, folder)
            task = declared.get(path, {}).get("task") or _task_of_parents(root, folder) or "retrieval"
            places.append((path, folder, corpus, task))
    if not places:
        raise DataError(
            f"No corpus.jsonl in {root} or up to {_DEPTH} folders below it. "
            "A data set has corpus.jsonl, queries.jsonl and qrels/test.tsv in each collection's folder."
        )
    for path in sorted(declared.keys() - {place[0] for place in places}):
        detail = f"collections: there is no corpus.jsonl in {path!r}"
        faults.append(Fault("no_corpus", "benchmark.json", 0, path, detail))
    names = Counter((task, folder.name) for _, folder, _, task in places)
    layouts: list[Layout] = []
    for path, folder, corpus, task in places:
        name = printable(folder.name)
        domain = declared.get(path, {}).get("domain") or name
        # Two folders of one task and name are told apart by their paths.
        key = f"{task}/{name if names[task, folder.name] == 1 else path or '.'}"
        queries = _inside(root, folder / "queries.jsonl", faults, "no_queries", _missing_queries(folder))
        of_qrels = folder / "qrels" / f"{qrels}.tsv"
        judgements = _inside(root, of_qrels, faults, "no_qrels", _missing_qrels(folder, qrels))
        layouts.append(Layout(key, task, domain, path, folder, corpus, queries, judgements))
    return Found(root, tuple(layouts), benchmark, tuple(faults))


def _folders(root: Path, faults: list[Fault]) -> list[Path]:
    """All folders of ``root`` that may hold a collection, in path order."""

    def closed(error: OSError) -> None:
        detail = f"this folder cannot be read: {error.strerror}"
        faults.append(Fault("unreadable", relative(root, Path(error.filename)), 0, "", detail))

    found = []
    for base, names, _ in os.walk(root, onerror=closed, followlinks=False):
        folder = Path(base)
        if not os.access(folder, os.X_OK):  # its names can be listed, its files cannot be looked at
            closed(PermissionError(errno.EACCES, "permission denied", base))
            names.clear()
            continue
        found.append(folder)
        deep = len(folder.relative_to(root).parts) >= _DEPTH
        names[:] = [] if deep else sorted(n for n in names if not n.startswith(".") and n not in _SKIPPED)
        for link in (folder / n for n in names):
            if link.is_symlink() and (link / "corpus.jsonl").is_file():
                detail = "a link to a collection's folder; links to folders are not followed"
                faults.append(Fault("linked_folder", relative(root, link), 0, "", detail))
    return sorted(found, key=lambda folder: folder.relative_to(root).parts)


def _inside(root: Path, path: Path, faults: list[Fault], kind: str = "", missing: str = "") -> Path | None:
    """``path`` if it is a file in ``root`` that can be read; else ``faults`` says why not.

    A file that is simply not there is a fault of ``kind`` where ``missing`` says what that means.
    """
    if path.is_file():
        if not path.resolve().is_relative_to(root):
            kind, missing = "outside_folder", "leads out of the data set's folder and is not read; copy the file there"
        elif not os.access(path, os.R_OK):
            kind, missing = "unreadable", "permission denied; not read"
        else:
            return path
    elif path.is_symlink():
        kind, missing = "outside_folder", "a link that leads to no file"
    if missing:
        faults.append(Fault(kind, relative(root, path), 0, "", missing))
    return None


def relative(root: Path, path: Path) -> str:
    """The path below ``root`` as faults and keys show it: with slashes, always valid text."""
    return printable(path.relative_to(root).as_posix())


def printable(name: str) -> str:
    """A file's name with bytes that are not UTF-8 shown as ``\\xff``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _task_of_parents(root: Path, folder: Path) -> str | None:
    # A collection that is itself the root may lie in a folder named by its task.
    last = root.parent if folder == root else root
    for parent in folder.parents:
        task = task_of_name(parent.name)
        if task:
            return task
        if parent == last:
            return None
    return None


def _missing_queries(folder: Path) -> str:
    other = folder / "query.jsonl"
    if other.is_file():
        return "no queries.jsonl; query.jsonl (R2MED's own layout) is not read, so only documents are loaded"
    return "no queries.jsonl: documents can be searched, nothing can be evaluated"


def _missing_qrels(folder: Path, name: str) -> str:
    others = sorted(p.stem for p in (folder / "qrels").glob("*.tsv") if _QRELS.fullmatch(p.stem))
    if others:
        return f"no {name}.tsv; there is {', '.join(others)}: choose with --qrels NAME"
    return f"no qrels/{name}.tsv: hits cannot be marked as relevant"


def _benchmark(root: Path, faults: list[Fault]) -> dict[str, Any]:
    path = _inside(root, root / "benchmark.json", faults)
    if path is None:
        return {}
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        line = getattr(error.__cause__, "lineno", 0)
        faults.append(Fault("malformed", "benchmark.json", line, "", f"{error}; the file is not read"))
        return {}
    if not isinstance(content, dict):
        faults.append(Fault("malformed", "benchmark.json", 0, "", "must hold one JSON object"))
        return {}
    return content


def _declared(benchmark: Mapping[str, Any], faults: list[Fault]) -> dict[str, dict[str, str]]:
    result: dict[str, dict[str, str]] = {}
    entries = benchmark.get("collections", [])
    for entry in entries if isinstance(entries, list) else [entries]:
        fine = isinstance(entry, dict) and all(isinstance(entry.get(k, ""), str) for k in ("path", "task", "domain"))
        if not fine or entry.get("task", "retrieval") not in TASKS:
            detail = f"collections: {json.dumps(entry)[:120]} needs path, task (one of {', '.join(TASKS)}) and domain"
            faults.append(Fault("malformed", "benchmark.json", 0, "", detail))
            continue
        path = PurePosixPath(entry.get("path", "").strip("/")).as_posix()
        result["" if path == "." else path] = entry
    return result
