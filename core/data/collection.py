"""A collection: queries, documents and judgements of one (task, domain) of a data set, opened from its cache."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from core.data.layouts import Layout
from core.data.table import Table
from core.media.picture import DEFAULT_LIMITS
from core.media.source import PictureSource
from core.records import Doc, Query

JUDGEMENTS = pa.schema([("query", pa.string()), ("doc", pa.string()), ("grade", pa.int64())])


class Collection:
    """Read access by id, by position, or in file order; nothing is loaded before it is asked for."""

    def __init__(self, root: Path, layout: Layout, tables: Path, judgements: Path) -> None:
        self.layout = layout
        self.key, self.task, self.domain, self.path = layout.key, layout.task, layout.domain, layout.path
        self.pictures = PictureSource(root, layout.folder)
        self._tables, self._judgements = tables, judgements

    @cached_property
    def queries(self) -> Table:
        return Table(self._tables, "queries")

    @cached_property
    def corpus(self) -> Table:
        return Table(self._tables, "corpus")

    @cached_property
    def qrels(self) -> dict[str, dict[str, int]]:
        """``qrels[query_id][doc_id] = grade``; an absent pair is unjudged. Only loaded queries and documents."""
        result: dict[str, dict[str, int]] = {}
        with pa.memory_map(str(self._judgements)) as source:
            table = pa.ipc.open_file(source).read_all()
        for query, doc, grade in zip(*(table.column(i).to_pylist() for i in range(3)), strict=True):
            result.setdefault(query, {})[doc] = grade
        return result

    @cached_property
    def positives_only(self) -> bool:
        """True if no pair is judged *not relevant*: then absence says nothing (house rule for badges)."""
        return not any(grade == 0 for row in self.qrels.values() for grade in row.values())

    def query(self, identity: str) -> Query:
        """The query with this id; raises KeyError naming the collection."""
        position = self.queries.find(identity)
        if position is None:
            raise KeyError(f"no query {identity!r} in {self.key}")
        return self.query_at(position)

    def query_at(self, position: int) -> Query:
        row = self.queries.row(position)
        return Query(self.key, row["id"], row["text"], row["images"], row["meta"], row["line"])

    def doc(self, identity: str) -> Doc:
        """The document with this id; raises KeyError naming the collection."""
        position = self.corpus.find(identity)
        if position is None:
            raise KeyError(f"no document {identity!r} in {self.key}")
        return self.doc_at(position)

    def doc_at(self, position: int) -> Doc:
        return self._doc(self.corpus.row(position))

    def docs(self) -> Iterator[Doc]:
        """All documents in file order."""
        return map(self._doc, self.corpus.rows())

    def all_queries(self) -> Iterator[Query]:
        """All queries in file order."""
        for row in self.queries.rows():
            yield Query(self.key, row["id"], row["text"], row["images"], row["meta"], row["line"])

    def picture(self, reference: str) -> bytes:
        """The bytes of a picture of this collection; raises `core.media.picture.PictureError`."""
        return self.pictures.read(reference, DEFAULT_LIMITS.max_bytes)

    def _doc(self, row: dict) -> Doc:
        return Doc(self.key, row["id"], row["title"], row["text"], row["images"], row["meta"], row["line"])
