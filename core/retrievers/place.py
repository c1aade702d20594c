"""Where a run is made: one collection (the benchmark's protocol) or the pool of a task.

In a collection every document counts for itself. In a pool equal content in several places is one answer, named by its
first document, and relevant if any copy is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property

import numpy as np

from core.data.collection import Collection
from core.data.dataset import DataSet
from core.data.names import trec_id, trec_name
from core.embed.pipeline import picture_keys
from core.records import Doc, Query
from core.store.workspace import Workspace


class Place:
    """``name`` is a collection's key or ``pool-<task>``.

    ``rows`` int [answers]: the pool row of each answer, ``ids`` their TREC ids; ``queries`` and ``query_ids`` alike.
    ``answer_of_row``: the number of the answer that a pool row is, or is a copy of.
    """

    def __init__(self, dataset: DataSet, task: str, workspace: Workspace, collection: str | None = None) -> None:
        self.dataset, self.task, self.pool = dataset, task, dataset.pool(task)
        self.is_pool = collection is None
        self.name = f"pool-{task}" if collection is None else collection
        members = [c for c in self.pool.collections if collection in (None, c.key)]
        if not members:
            raise KeyError(f"{collection} is no collection of {task}")
        self.collections: tuple[Collection, ...] = tuple(members)
        self._workspace = workspace
        if self.is_pool:
            self.rows, self.answer_of_row = _distinct(self.pool, workspace)
        else:
            start = self.pool.start_of(members[0].key)
            self.rows = np.arange(start, start + len(members[0].corpus))
            self.answer_of_row = {row: at for at, row in enumerate(self.rows.tolist())}
        self.ids = [self._name(*self.pool.key(row)) for row in self.rows.tolist()]
        self.queries: tuple[Query, ...] = tuple(query for c in members for query in c.all_queries())
        self.query_ids = [self._name(query.collection, query.id) for query in self.queries]

    def _name(self, collection: str, identity: str) -> str:
        return trec_id(collection, identity) if self.is_pool else trec_name(identity)

    def docs(self) -> Iterator[Doc]:
        """The answers' documents, in the order of ``ids``."""
        return (self.pool.doc(row) for row in self.rows.tolist())

    @cached_property
    def has_text(self) -> bool:
        """Whether any answer has words."""
        return any(doc.full_text for doc in self.docs())

    @cached_property
    def positives_only(self) -> bool:
        """Whether no collection of this place judges anything not relevant."""
        return all(collection.positives_only for collection in self.collections)

    @cached_property
    def number(self) -> dict[str, int]:
        """The position in ``ids`` of each answer."""
        return {name: at for at, name in enumerate(self.ids)}

    @cached_property
    def qrels(self) -> dict[str, dict[str, int]]:
        """``{query: {answer: grade}}`` in TREC ids, {} for a query without judgements; of copies the best counts."""
        return {name: self.judged(query) for name, query in zip(self.query_ids, self.queries, strict=True)}

    def judged(self, query: Query, anew: Mapping[tuple[str, str], int] | None = None) -> dict[str, int]:
        """``{answer: grade}`` of a query, in TREC ids; of copies the best counts.

        ``anew``: re-judgements by document (collection, id). They replace what is said of the answer and all of its
        copies; those of documents that are no answer here are passed over.
        """
        own = self.pool.collection(query.collection).qrels.get(query.id, {})
        grades = self._of_answers({(query.collection, doc): grade for doc, grade in own.items()})
        return grades | self._of_answers(anew or {})

    def _of_answers(self, judged: Mapping[tuple[str, str], int]) -> dict[str, int]:
        grades: dict[str, int] = {}
        for key, grade in judged.items():
            row = self._row(*key)
            if row is not None:
                answer = self.ids[self.answer_of_row[row]]
                grades[answer] = max(grade, grades.get(answer, grade))
        return grades

    def _row(self, collection: str, identity: str) -> int | None:
        """The pool row of a document of this place."""
        if all(collection != member.key for member in self.collections):
            return None
        return self.pool.row_of(collection, identity)

    def own(self, query: Query) -> str | None:
        """The answer that is the query itself, where the data set says that equal ids are no answer."""
        if not self.dataset.ignore_identical_ids:
            return None
        row = self.pool.row_of(query.collection, query.id)
        return None if row is None else self.ids[self.answer_of_row[row]]


def _distinct(pool, workspace: Workspace) -> tuple[np.ndarray, dict[int, int]]:
    """The first row of each content of a pool, and the answer that each row belongs to."""
    answers: dict[Hashable, int] = {}
    rows: list[int] = []
    answer_of_row: dict[int, int] = {}
    row = 0
    for collection in pool.collections:
        docs = list(collection.docs())
        keys = picture_keys(workspace, collection, [r for doc in docs for r in doc.images])
        for doc in docs:
            pictures = tuple(keys.get(r, (collection.key, r)) for r in doc.images)
            # A document of nothing is like no other.
            content: Hashable = (doc.full_text, pictures) if doc.full_text or pictures else (collection.key, doc.id)
            if content not in answers:
                answers[content] = len(rows)
                rows.append(row)
            answer_of_row[row] = answers[content]
            row += 1
    return np.array(rows, int), answer_of_row
