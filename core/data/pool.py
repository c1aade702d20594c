"""A pool: all collections of one task, searched as one, with domain, specialty and modality as filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.data.collection import Collection
from core.records import Doc, QueryError

FILTERS = ("domain", "specialty", "modality")


class Pool:
    """Documents of several collections under one row number: collections in order, then file order."""

    def __init__(self, data_id: str, task: str, collections: Sequence[Collection]) -> None:
        self.data_id, self.task, self.collections = data_id, task, tuple(collections)
        self._starts = np.cumsum([0] + [len(c.corpus) for c in self.collections])

    def __len__(self) -> int:
        """Number of documents."""
        return int(self._starts[-1])

    @property
    def domains(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c.domain for c in self.collections))

    @cached_property
    def sides(self) -> frozenset[str]:
        """What the documents have: "image", "text" or both."""
        found = set()
        for c in self.collections:
            if pc.any(pc.greater(pc.list_value_length(c.corpus.column("images")), 0)).as_py():
                found.add("image")
            if any(pc.any(pc.not_equal(c.corpus.column(name), "")).as_py() for name in ("title", "text")):
                found.add("text")
        return frozenset(found)

    @property
    def target(self) -> str:
        """The kind of documents, for default weights: "image", "text" or "both"."""
        return "both" if len(self.sides) != 1 else next(iter(self.sides))

    def collection(self, key: str) -> Collection:
        """The member collection ``key``; raises KeyError."""
        return {c.key: c for c in self.collections}[key]

    def place(self, row: int) -> tuple[Collection, int]:
        """The collection of a pool row and the position in its corpus."""
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        at = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self.collections[at], row - int(self._starts[at])

    def key(self, row: int) -> tuple[str, str]:
        """The collection and id of the document at a pool row, without reading the document."""
        collection, position = self.place(row)
        return collection.key, collection.corpus.column("id")[position].as_py()

    def doc(self, row: int) -> Doc:
        collection, position = self.place(row)
        return collection.doc_at(position)

    def docs(self) -> Iterator[Doc]:
        """All documents in row order."""
        for collection in self.collections:
            yield from collection.docs()

    def start_of(self, collection: str) -> int:
        """The row of a member collection's first document; KeyError where it is no member."""
        for start, member in zip(self._starts, self.collections, strict=False):
            if member.key == collection:
                return int(start)
        raise KeyError(f"{collection} is no collection of {self.task}")

    def row_of(self, collection: str, identity: str) -> int | None:
        """The row of a document, or ``None``."""
        for start, member in zip(self._starts, self.collections, strict=False):
            if member.key == collection:
                position = member.corpus.find(identity)
                return None if position is None else int(start) + position
        return None

    @cached_property
    def _facets(self) -> dict[str, pa.ChunkedArray]:
        columns = {}
        for name in ("specialty", "modality"):
            chunks = [chunk for c in self.collections for chunk in c.corpus.column(name).chunks]
            columns[name] = pa.chunked_array(chunks, pa.string())
        return columns

    def values(self, facet: str) -> dict[str, int]:
        """The values of ``domain``, ``specialty`` or ``modality`` with their numbers of documents, by name."""
        if facet == "domain":
            counts: dict[str, int] = {}
            for c in self.collections:
                counts[c.domain] = counts.get(c.domain, 0) + len(c.corpus)
            return counts
        table = pc.value_counts(self._facets[facet].drop_null()).to_pylist()
        return {entry["values"]: entry["counts"] for entry in sorted(table, key=lambda e: e["values"])}

    def mask(self, filters: Mapping[str, Sequence[str]]) -> np.ndarray | None:
        """Which rows pass: bool [len(self)], or ``None`` when nothing is filtered.

        A facet's values are alternatives, facets add up. An unknown facet or value raises QueryError with the
        values there are.
        """
        result: np.ndarray | None = None
        for facet, wanted in filters.items():
            if not wanted:
                continue
            if facet not in FILTERS:
                raise QueryError(f"There is no filter {facet!r}; there are {', '.join(FILTERS)}.")
            known = self.values(facet)
            unknown = [v for v in wanted if v not in known]
            if unknown:
                raise QueryError(f"No {facet} {unknown[0]!r} in {self.task}; there are: {', '.join(known) or 'none'}.")
            if facet == "domain":
                sizes = [len(c.corpus) for c in self.collections]
                passes = np.repeat([c.domain in wanted for c in self.collections], sizes)
            else:
                inside = pc.is_in(self._facets[facet], value_set=pa.array(list(wanted), pa.string()))
                passes = inside.to_numpy(zero_copy_only=False)
            result = passes if result is None else result & passes
        return result
