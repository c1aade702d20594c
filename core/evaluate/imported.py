"""What a file of somebody else's results or judgements says of one collection: its ids found, the rest counted.

Files spell ids as they stand in the data set or percent-encoded. An id that decodes to one of the collection's, and
would be written that way here, is that one; else it counts as it stands, else decoded. Before all that, an id with the
collection in front, as runs of pools have it, ``<collection>/<id>``, both percent-encoded, is that id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar
from urllib.parse import unquote

from core.data.collection import Collection
from core.data.names import document
from core.data.table import Table
from core.evaluate.measures import trec_order
from core.evaluate.run import Rankings, Run, RunInfo, trec_name
from core.store.manifest import short_hash

SHOWN = 5
"""Unknown ids that are named; all are counted."""

_TO_ENCODE = re.compile(r"[\s%\x00-\x1f\x7f\ufeff]|^#")

Value = TypeVar("Value", int, float)


class FileRefused(ValueError):
    """A file that somebody supplied cannot be used; the message names file and line and says what to do."""


@dataclass(frozen=True, slots=True)
class Scores:
    """What a file of results holds, ids spelled as in the file: ``scores[query][document]``.

    ``lines``: how many results; ``file_hash``: 16 hex digits of the sha256 of the bytes of the file or files.
    """

    name: str
    scores: Mapping[str, Mapping[str, float]] = field(repr=False)
    lines: int
    tag: str
    file_hash: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Ids of a file that a collection does not have: how many, and the first `SHOWN`, as spelled in the file."""

    count: int
    first: tuple[str, ...]

    @property
    def named(self) -> str:
        return ", ".join(map(repr, self.first)) + (", …" if self.count > len(self.first) else "")


@dataclass(frozen=True, slots=True)
class Imported:
    """Results of a file for one collection, its TREC ids, each ranking in trec_eval's order.

    Left out: unknown queries, unknown documents of known queries, and ``own_documents``, the documents with the
    query's own id, where the data set says that these never answer. ``absent_queries`` of the collection are not in
    the file; those that are judged score 0.
    """

    rankings: Rankings = field(repr=False)
    unknown_queries: Unknown
    unknown_documents: Unknown
    absent_queries: int
    own_documents: int
    lines: int
    tag: str
    file_hash: str

    def notes(self) -> list[str]:
        """What somebody who reads figures of this import must know, a sentence each."""
        queries, documents = self.unknown_queries, self.unknown_documents
        said = [
            (queries.count, f"{queries.count} queries of the file are not in the collection: {queries.named}."),
            (
                documents.count,
                f"{documents.count} documents of the file are not in the collection and are left out, which moves "
                f"those below them up: {documents.named}.",
            ),
            (self.absent_queries, f"{self.absent_queries} queries of the collection are not in the file and score 0."),
            (self.own_documents, f"{self.own_documents} results are the query itself and are left out."),
        ]
        return [sentence for count, sentence in said if count]


@dataclass(frozen=True, slots=True)
class ImportedQrels:
    """Judgements of a file for one collection: ``qrels[query_id][doc_id] = grade``, the collection's own ids."""

    qrels: dict[str, dict[str, int]] = field(repr=False)
    unknown_queries: Unknown
    unknown_documents: Unknown


def outside_name(identity: str) -> str:
    """The id in files for others: as it is, percent-encoded where it holds white space, controls or ``%``."""
    return trec_name(identity) if _TO_ENCODE.search(identity) else identity


def readings(spelling: str) -> tuple[str, ...]:
    """The ids that a spelling without a collection in front can mean, one or two, the likelier first."""
    decoded = unquote(spelling)
    if decoded == spelling:
        return (spelling,)
    as_written_here = spelling in (trec_name(decoded), outside_name(decoded))
    return (decoded, spelling) if as_written_here else (spelling, decoded)


class KnownIds:
    """Which id of a table a spelling means; remembers the spellings that mean none, in the order they came.

    ``key`` names the collection of the table, which may stand in front of the ids.
    """

    def __init__(self, table: Table, key: str = "") -> None:
        self._table, self._key = table, key
        self._found: dict[str, str | None] = {}

    def __call__(self, spelling: str) -> str | None:
        if spelling not in self._found:
            self._found[spelling] = self._look_up(spelling)
        return self._found[spelling]

    def _look_up(self, spelling: str) -> str | None:
        key, identity = document(spelling, "")
        inside = (identity,) if key and key == self._key else ()
        return next((c for c in (*inside, *readings(spelling)) if self._table.find(c) is not None), None)

    @property
    def unknown(self) -> Unknown:
        ids = [spelling for spelling, found in self._found.items() if found is None]
        return Unknown(len(ids), tuple(ids[:SHOWN]))


def matched_ids(
    name: str, found: Mapping[str, Mapping[str, Value]], collection: Collection
) -> tuple[dict[str, dict[str, Value]], KnownIds, KnownIds]:
    """``found`` with the collection's own ids, without what it lacks; refused where that is everything."""
    result, queries, docs = _own_ids(name, found, collection)
    for what, ids, missing in (("query", queries, not result), ("document", docs, not any(result.values()))):
        if missing:
            raise nothing_known(name, what, ids.unknown, collection)
    return result, queries, docs


def _own_ids(
    name: str, found: Mapping[str, Mapping[str, Value]], collection: Collection
) -> tuple[dict[str, dict[str, Value]], KnownIds, KnownIds]:
    queries, docs = KnownIds(collection.queries, collection.key), KnownIds(collection.corpus, collection.key)
    result: dict[str, dict[str, Value]] = {}
    for spelling, row in found.items():
        query = queries(spelling)
        if query is None:
            continue
        if query in result:
            raise FileRefused(f"{name}: query {query!r} is there in two spellings; keep one.")
        pairs = [(doc, value) for d, value in row.items() if (doc := docs(d)) is not None]
        result[query] = dict(pairs)
        if len(result[query]) != len(pairs):
            raise FileRefused(f"{name}: a document of query {spelling!r} is there in two spellings; keep one.")
    return result, queries, docs


def nothing_known(name: str, what: str, unknown: Unknown, collection: Collection, task: str = "") -> FileRefused:
    """A file has no "query" or no "document" of a collection, or of any of a task, of which it names one's ids."""
    table = collection.queries if what == "query" else collection.corpus
    theirs = ", ".join(repr(i) for i in table.column("id")[:SHOWN].to_pylist()) or "none"
    where, holder, choice = collection.key, "the collection", "collection"
    if task:
        where, holder, choice = task, collection.key, "task or collection"
    return FileRefused(
        f"{name}: no {what} id of it is in {where}. The file has {unknown.named or 'none'}; {holder} has {theirs}. "
        f"Choose the {choice} that the file was made for, or rename the ids."
    )


def matched(file: Scores, collection: Collection, ignore_identical_ids: bool = False) -> Imported:
    """The results of a file that are of ``collection``; raises `FileRefused` where none is.

    ``ignore_identical_ids`` is the data set's: a document with the query's own id is then left out.
    """
    return _imported(file, collection, ignore_identical_ids, *matched_ids(file.name, file.scores, collection))


def matched_part(file: Scores, collection: Collection, ignore_identical_ids: bool = False) -> Imported:
    """`matched` for a part of a file, which may have no document of the collection: its queries then find nothing."""
    return _imported(file, collection, ignore_identical_ids, *_own_ids(file.name, file.scores, collection))


def _imported(
    file: Scores,
    collection: Collection,
    ignore_identical_ids: bool,
    scores: Mapping[str, Mapping[str, float]],
    queries: KnownIds,
    docs: KnownIds,
) -> Imported:
    own = sum(query in row for query, row in scores.items()) if ignore_identical_ids else 0
    encoded = cache(trec_name)  # one string for each id, however many rankings have it
    rankings = {
        trec_name(query): trec_order(
            (encoded(d), s) for d, s in row.items() if not (ignore_identical_ids and d == query)
        )
        for query, row in sorted(scores.items())
    }
    absent = len(collection.queries) - len(rankings)
    return Imported(rankings, queries.unknown, docs.unknown, absent, own, file.lines, file.tag, file.file_hash)


def run_of_import(
    imported: Imported, collection: Collection, model: str, model_id: str, revision: str, overlay: str = ""
) -> Run:
    """The run of an imported model, ready for `core.evaluate.run.save`; its encoder is the file it came from, with the
    names that it was given: the same file under two names is two runs.

    ``overlay`` names the judgements, see `core.evaluate.make.judged_by`.
    """
    info = RunInfo(
        model=model,
        model_id=model_id,
        revision=revision,
        encoder_ids=(imported.file_hash, short_hash((model, model_id, revision))),
        task=collection.task,
        place=collection.key,
        fusion="imported",
        weight=None,
        centring="imported",
        index_kind="imported",
        depth=max(map(len, imported.rankings.values())),
        overlay=overlay,
    )
    return Run(info, imported.rankings)
