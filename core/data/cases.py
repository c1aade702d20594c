"""Cases: which documents and queries of a data set belong together, joined on ``meta.case`` across its collections."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.data.collection import Collection
from core.data.dataset import DataSet
from core.data.pool import Pool
from core.media.picture import PictureError

NAMED, ALONE = "case:", "doc:"
"""How the name of a case begins: one that the data set names, and a document that has none."""

NO_CASE = -1


def case_name(collection: str, identity: str, meta: Mapping[str, Any]) -> str:
    """The case of a document: ``case:`` and its ``meta.case``, else ``doc:`` and its collection and id, encoded.

    ``meta.case`` counts where it is a whole number or a text that is not empty; case 7 is case "7".
    """
    case = meta.get("case")
    if isinstance(case, int) and not isinstance(case, bool):
        return f"{NAMED}{case}"
    if isinstance(case, str) and case:
        return NAMED + case
    return f"{ALONE}{quote(collection, safe='')}/{quote(identity, safe='')}"


class Cases:
    """The cases of one data set, numbered from 0: the named ones in the order of their first appearance, then every
    document without a case in the order of collections and files.

    A query without a case joins the document of its own id where the data set says that both are the same thing
    (``ignore_identical_ids``), else it belongs to none. Only the column of cases is read; memory is 8 bytes a
    document or query and the distinct names.
    """

    def __init__(self, dataset: DataSet) -> None:
        self._collections = list(dataset.collections.values())
        self._doc_starts = np.cumsum([0] + [len(c.corpus) for c in self._collections])
        self._query_starts = np.cumsum([0] + [len(c.queries) for c in self._collections])
        n_docs = int(self._doc_starts[-1])
        chunks = [k for c in self._collections for k in c.corpus.column("case").chunks]
        chunks += [k for c in self._collections for k in c.queries.column("case").chunks]
        encoded = pa.chunked_array(chunks, pa.string()).dictionary_encode().unify_dictionaries().combine_chunks()
        self._names = encoded.dictionary
        numbers = encoded.indices.fill_null(NO_CASE).to_numpy(zero_copy_only=False).astype(np.int32)
        self._of_doc, self._of_query = numbers[:n_docs].copy(), numbers[n_docs:].copy()
        alone = np.flatnonzero(self._of_doc == NO_CASE)
        self._alone = alone  # position of each document that is its own case
        self._of_doc[alone] = len(self._names) + np.arange(len(alone), dtype=np.int32)
        if dataset.ignore_identical_ids:
            self._join_queries()
        self._doc_order = np.argsort(self._of_doc, kind="stable")
        self._query_order = np.argsort(self._of_query, kind="stable")

    def _join_queries(self) -> None:
        """Give queries without a case that of the document with their id, where that is a case of its own."""
        for at, collection in enumerate(self._collections):
            start, end = self._query_starts[at], self._query_starts[at + 1]
            for row in np.flatnonzero(self._of_query[start:end] == NO_CASE).tolist():
                position = collection.corpus.find(collection.queries.column("id")[row].as_py())
                if position is not None:
                    number = self._of_doc[self._doc_starts[at] + position]
                    if number >= len(self._names):
                        self._of_query[start + row] = number

    def __len__(self) -> int:
        """Number of cases."""
        return len(self._names) + len(self._alone)

    def name(self, number: int) -> str:
        """The name of case ``number``, as `case_name` gives it; IndexError where there is none."""
        if not 0 <= number < len(self):
            raise IndexError(f"case {number} of {len(self)}")
        if number < len(self._names):
            return NAMED + self._names[number].as_py()
        collection, identity = self._doc_key(int(self._alone[number - len(self._names)]))
        return case_name(collection, identity, {})

    def of_doc(self, collection: str, identity: str) -> str:
        """The case of a document; raises KeyError naming the document where there is none."""
        return self.name(int(self._of_doc[self._doc_place(collection, identity)]))

    def documents(self, case: str) -> list[tuple[str, str]]:
        """(collection, id) of the documents of a case, collections in order, then file order.

        KeyError where there is no such case; a case may have queries only.
        """
        return [self._doc_key(place) for place in self._members(case, self._of_doc, self._doc_order)]

    def queries(self, case: str) -> list[tuple[str, str]]:
        """(collection, id) of the queries of a case, like `documents`."""
        return [self._query_key(place) for place in self._members(case, self._of_query, self._query_order)]

    def pictures(self, case: str) -> list[tuple[str, str]]:
        """(collection, reference) of the pictures of a case: those of its documents, then of its queries.

        One entry a file, however many tasks show it and however they spell it. A picture that cannot be found has an
        entry too, one a spelling, so that its absence can be said. KeyError where there is no such case.
        """
        places = [
            (*self._split(place, self._doc_starts), True)
            for place in self._members(case, self._of_doc, self._doc_order)
        ]
        places += [
            (*self._split(place, self._query_starts), False)
            for place in self._members(case, self._of_query, self._query_order)
        ]
        found: dict[object, tuple[str, str]] = {}
        for collection, position, of_doc in places:
            table = collection.corpus if of_doc else collection.queries
            for reference in table.column("images")[position].as_py():
                try:
                    where = collection.pictures.resolve(reference)
                    file: object = (where.path, where.member)
                except PictureError:
                    file = reference
                found.setdefault(file, (collection.key, reference))
        return list(found.values())

    def rows(self, pool: Pool) -> np.ndarray:
        """int32 [len(pool)]: the number of the case of each pool row; ``pool`` is one of this data set's."""
        at = {c.key: i for i, c in enumerate(self._collections)}
        parts = [self._of_doc[self._doc_starts[at[c.key]] : self._doc_starts[at[c.key] + 1]] for c in pool.collections]
        return np.concatenate(parts)

    def _members(self, case: str, numbers: np.ndarray, order: np.ndarray) -> list[int]:
        number = self._number(case)
        first, last = np.searchsorted(numbers, [number, number + 1], sorter=order)
        return order[first:last].tolist()

    def _number(self, case: str) -> int:
        if case.startswith(NAMED):
            with suppress(UnicodeEncodeError):  # what is asked for may be no valid text; what is stored always is
                number = pc.index(self._names, case.removeprefix(NAMED)).as_py()
                if number >= 0:
                    return number
        elif case.startswith(ALONE):
            collection, _, identity = case.removeprefix(ALONE).partition("/")
            number = int(self._of_doc[self._doc_place(unquote(collection), unquote(identity))])
            if number >= len(self._names):
                return number
        raise KeyError(f"no case {case!r} in this data set")

    def _doc_place(self, collection: str, identity: str) -> int:
        """The number of a document among all of the data set; raises KeyError."""
        for start, member in zip(self._doc_starts, self._collections, strict=False):
            if member.key == collection:
                position = member.corpus.find(identity)
                if position is not None:
                    return int(start) + position
        raise KeyError(f"no document {identity!r} in {collection}")

    def _split(self, place: int, starts: np.ndarray) -> tuple[Collection, int]:
        at = int(np.searchsorted(starts, place, side="right")) - 1
        return self._collections[at], place - int(starts[at])

    def _doc_key(self, place: int) -> tuple[str, str]:
        collection, position = self._split(place, self._doc_starts)
        return collection.key, collection.corpus.column("id")[position].as_py()

    def _query_key(self, place: int) -> tuple[str, str]:
        collection, position = self._split(place, self._query_starts)
        return collection.key, collection.queries.column("id")[position].as_py()
