"""Open a data set folder: identity, Arrow cache, collections and pools.

The first opening streams every file once into ``workspace/data/<data_id>``; later ones map that cache.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from core.data import layouts, rows
from core.data.collection import JUDGEMENTS, Collection
from core.data.layouts import DataError, Layout
from core.data.pool import Pool
from core.data.table import Table, files_of, write_table
from core.records import TASKS, Fault
from core.store import manifest
from core.store.atomic import atomic_folder, remove_leftovers, write_bytes
from core.store.lock import lock
from core.store.workspace import Workspace

FORMAT = 1
"""Raise when rows are read differently: a cache of another format is made again."""

Progress = Callable[[str, int, int], None]
"""``progress(what, done, total)``; a total of 0 means unknown."""


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


class DataSet:
    """An opened data set. ``faults`` are those met while reading; `core.data.health.check` adds the rest."""

    def __init__(self, found: layouts.Found, data_id: str, qrels: str, cache: Path) -> None:
        self.root, self.data_id, self.qrels_name = found.root, data_id, qrels
        self.benchmark: Mapping[str, Any] = found.benchmark
        self.collections: dict[str, Collection] = {}
        self.faults: list[Fault] = list(found.faults)
        for layout in found.layouts:
            tables = cache / "tables" / _slug(layout)
            judgements = cache / f"qrels-{qrels}" / f"{_slug(layout)}.arrow"
            self.collections[layout.key] = Collection(found.root, layout, tables, judgements)
        for part in (cache / "tables", cache / f"qrels-{qrels}"):
            self.faults += [Fault(**f) for f in json.loads((part / "faults.json").read_bytes())]

    @cached_property
    def name(self) -> str:
        return self._text("name") or layouts.printable(self.root.name)

    @cached_property
    def licence(self) -> str:
        return self._text("licence") or self._text("license") or "not stated by the data set"

    @property
    def synthetic(self) -> bool:
        return self.benchmark.get("synthetic") is True

    @property
    def ignore_identical_ids(self) -> bool:
        """True if a document with the query's own id is never its answer (a picture is query and document)."""
        return self.benchmark.get("ignore_identical_ids") is True

    def _text(self, field: str) -> str:
        value = self.benchmark.get(field)
        return value if isinstance(value, str) else ""

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that have a collection, in the benchmark's order."""
        present = {c.task for c in self.collections.values()}
        return tuple(t for t in TASKS if t in present)

    def pool(self, task: str) -> Pool:
        """All collections of one task, searched as one; raises `DataError` for a task without collection."""
        members = [c for c in self.collections.values() if c.task == task]
        if not members:
            raise DataError(f"{self.name} has no task {task!r}; it has {', '.join(self.tasks)}.")
        return Pool(self.data_id, task, members)


def open_dataset(root: Path, workspace: Workspace, qrels: str = "test", progress: Progress = silent) -> DataSet:
    """Open the data set at ``root``; raise `DataError` where there is none.

    ``qrels`` names the judgement file, ``qrels/<qrels>.tsv``; ValueError if it cannot be a file's name.
    """
    qrels = qrels.removesuffix(".tsv")
    found = layouts.discover(Path(root), qrels)
    data_id = identify(found, workspace)
    cache = workspace.path("data", data_id)
    tables_request = {"format": FORMAT, "data_id": data_id, "part": "tables"}
    qrels_request = {"format": FORMAT, "data_id": data_id, "part": "qrels", "qrels": qrels}
    tables, judgements = cache / "tables", cache / f"qrels-{qrels}"
    if not (_complete(tables, tables_request) and _complete(judgements, qrels_request)):
        held = workspace.path("locks", f"data-{data_id}")
        with lock(held, f"reading {found.root}", say=lambda text: progress(text, 0, 0)):
            remove_leftovers(cache)
            if not _complete(tables, tables_request):
                with atomic_folder(tables) as folder:
                    _write_tables(folder, found, tables_request, progress)
            if not _complete(judgements, qrels_request):
                with atomic_folder(judgements) as folder:
                    _write_judgements(folder, found, tables, qrels_request)
    return DataSet(found, data_id, qrels, cache)


def identify(found: layouts.Found, workspace: Workspace) -> str:
    """``data_id``: the bytes of jsonl, tsv and ``benchmark.json`` files; of pictures and zips, path and size.

    Also each collection's task, which the name of a folder around the data set may give. Nothing else of where the
    data set lies counts, nor when its files were written.
    """
    texts = [found.root / "benchmark.json"]
    for layout in found.layouts:
        texts += [p for p in (layout.corpus, layout.queries) if p is not None]
        texts += sorted((layout.folder / "qrels").glob("*.tsv"))
    texts = [p for p in texts if p.is_file() and p.resolve().is_relative_to(found.root) and os.access(p, os.R_OK)]
    hashes = workspace.hash_of(texts)
    content = {p.relative_to(found.root).as_posix(): h for p, h in zip(texts, hashes, strict=True)}
    tasks = [[layout.path, layout.task] for layout in found.layouts]
    return manifest.short_hash({"files": content, "pictures": _picture_sizes(found.root), "tasks": tasks})


def _picture_sizes(root: Path) -> list[tuple[str, int]]:
    sizes, stack = [], [""]
    while stack:
        folder = stack.pop()
        try:
            entries = os.scandir(root / folder)
        except PermissionError:  # named by `layouts.discover`
            continue
        with entries:
            for entry in entries:
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not name.startswith("."):
                        stack.append(f"{folder}{name}/")
                elif name[name.rfind(".") :].lower() in layouts.PICTURE_SUFFIXES or name == "images.zip":
                    sizes.append((f"{folder}{name}", entry.stat(follow_symlinks=False).st_size))
    return sorted(sizes)


def _complete(folder: Path, request: Mapping[str, Any]) -> bool:
    try:
        manifest.read(folder, request)
    except manifest.ManifestError:
        return False  # what is derived from the data set is simply made again
    return True


def _slug(layout: Layout) -> str:
    return manifest.short_hash(layout.path)  # not the key, which for a collection at the root is the folder's name


def _write_tables(folder: Path, found: layouts.Found, request: dict[str, Any], progress: Progress) -> None:
    faults: list[Fault] = []
    files: list[str] = []
    for done, layout in enumerate(found.layouts):
        progress(f"Reading {layout.key}", done, len(found.layouts))
        target = folder / _slug(layout)
        target.mkdir()
        corpus_faults = rows.faults_to(faults, layouts.relative(found.root, layout.corpus))
        write_table(target, "corpus", rows.docs_of(layout.corpus, layout.key, corpus_faults))
        queries: Any = ()
        if layout.queries is not None:
            query_faults = rows.faults_to(faults, layouts.relative(found.root, layout.queries))
            queries = rows.queries_of(layout.queries, layout.key, query_faults)
        write_table(target, "queries", queries)
        files += [f"{_slug(layout)}/{f}" for f in files_of("corpus") + files_of("queries")]
    _finish(folder, request, files, faults)


def _write_judgements(folder: Path, found: layouts.Found, tables: Path, request: dict[str, Any]) -> None:
    faults: list[Fault] = []
    files: list[str] = []
    for layout in found.layouts:
        judged: dict[str, dict[str, int]] = {}
        if layout.qrels is not None:
            report = rows.faults_to(faults, layouts.relative(found.root, layout.qrels))
            queries, corpus = (Table(tables / _slug(layout), name) for name in ("queries", "corpus"))
            for line, query, doc, grade in rows.judgements_of(layout.qrels, report):
                if queries.find(query) is None:
                    report("unknown_query", line, query, "judges a query that is not in this collection; left out")
                elif corpus.find(doc) is None:
                    report("unknown_document", line, doc, f"not in this collection, judged for {query!r}; left out")
                elif doc in judged.setdefault(query, {}):
                    report("duplicate_judgement", line, query, f"document {doc!r} is judged on an earlier line")
                else:
                    judged[query][doc] = grade
        name = f"{_slug(layout)}.arrow"
        columns = [[q for q, row in judged.items() for _ in row]]
        columns += [[d for row in judged.values() for d in row], [g for row in judged.values() for g in row.values()]]
        table = pa.Table.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, JUDGEMENTS, strict=True)], JUDGEMENTS.names
        )
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_file(sink, JUDGEMENTS) as writer:
            writer.write_table(table)
        files.append(name)
    _finish(folder, request, files, faults)


def _finish(folder: Path, request: dict[str, Any], files: list[str], faults: list[Fault]) -> None:
    write_bytes(folder / "faults.json", json.dumps([f.as_dict() for f in faults], ensure_ascii=False).encode())
    manifest.write(folder, request, [*files, "faults.json"])
