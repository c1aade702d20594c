"""A TREC run that somebody brings, of one collection or of all collections of a task in one file; as bytes, as a page
has it, or read before, as the command line does."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.data.collection import Collection
from core.data.dataset import DataSet
from core.data.names import document, trec_id
from core.evaluate.export import store_import
from core.evaluate.imported import (
    SHOWN,
    FileRefused,
    Imported,
    Scores,
    Unknown,
    matched_part,
    nothing_known,
    readings,
)
from core.evaluate.io_trec import Given, read_run
from core.evaluate.make import Made
from core.models import specs
from core.retrievers.place import Place
from core.store.workspace import Workspace

MAX_BYTES = 64 << 20
"""Bytes of an upload after decompression."""

MAX_LINES = 1_000_000
"""Lines of an upload."""

LONGEST = 60
"""Characters of a model's name and revision."""

NOT_STATED = "not stated"


@dataclass(frozen=True)
class Upload:
    """A file that was read whole and fits: ``imported`` by the key of each collection that it has queries of.

    ``notes`` say what was left out, a sentence each; ``lines`` are the results of the whole file.
    """

    name: str
    revision: str
    task: str
    imported: Mapping[str, Imported] = field(repr=False)
    notes: tuple[str, ...]
    lines: int
    file_hash: str


def checked_name(name: str, taken: Names[str] = ()) -> str:
    """The name of a model that is brought, blanks trimmed; `FileRefused` says why it cannot be one."""
    short = " ".join(part for part in name.split(" ") if part)
    if not short:
        raise FileRefused("The model has no name; give it one, so that tables can tell it from others.")
    if len(short) > LONGEST or not short.isprintable():
        raise FileRefused(f"The name of a model has at most {LONGEST} printable characters; change it.")
    if ":" in short:
        raise FileRefused("The name of a model has no colon, which stands in the names of hybrids; change it.")
    if short in specs.SPECS:
        raise FileRefused(f"{short!r} is the name of a model that makes its own runs; give yours another name.")
    if short in taken:
        raise FileRefused(f"A run of this task is called {short!r} already; give yours another name.")
    return short


def read_upload(
    data: bytes,
    file_name: str,
    dataset: DataSet,
    task: str,
    name: str,
    revision: str = "",
    collection: str | None = None,
) -> Upload:
    """Read a TREC run that lies nowhere, plain or gzip; nothing is stored. See `upload_of`."""
    members_of(dataset, task, collection)  # before the work of reading
    shown = "".join(c if c.isprintable() else "?" for c in file_name).strip() or "the file"
    scores = read_run(Given(shown, data, MAX_BYTES, MAX_LINES))
    return upload_of(scores, dataset, task, name, revision, collection)


def upload_of(
    scores: Scores, dataset: DataSet, task: str, name: str, revision: str = "", collection: str | None = None
) -> Upload:
    """What a run has of a task, or of one of its collections.

    Ids are those of the data set, or as runs of pools spell them: collection, "/", id, each percent-encoded. A query
    of several collections must be spelled like that, and documents are those of its query's collection; all others
    are unknown, and counted. Raises `FileRefused` for a file that is ambiguous or of other data and for a revision
    that is too long, and `DataError` for an unknown task.
    """
    revision = revision.strip() or NOT_STATED
    if len(revision) > LONGEST or not revision.isprintable():
        raise FileRefused(f"The revision has at most {LONGEST} printable characters; change it.")
    members = members_of(dataset, task, collection)
    whole = task if collection is None else ""
    parts, unknown = _parts(scores, members)
    if not parts:
        raise nothing_known(scores.name, "query", unknown, members[0], whole)
    found = {
        one.key: matched_part(parts[one.key], one, dataset.ignore_identical_ids) for one in members if one.key in parts
    }
    if not any(any(one.rankings.values()) or one.own_documents for one in found.values()):
        first = next(one for one in members if one.key in found)
        raise nothing_known(scores.name, "document", found[first.key].unknown_documents, first, whole)
    notes = [f"{key}: {note}" for key, imported in found.items() for note in imported.notes()]
    if unknown.count:
        notes.insert(0, f"{unknown.count} queries of the file are not in {collection or task}: {unknown.named}.")
    notes += [f"The file has no query of {one.key}, so {one.domain} is N/A." for one in members if one.key not in found]
    return Upload(name, revision, task, found, tuple(notes), scores.lines, scores.file_hash)


def members_of(dataset: DataSet, task: str, collection: str | None) -> list[Collection]:
    """The collections of a task, or the one of them that is named; `FileRefused` where there is none of that name."""
    every = dataset.pool(task).collections
    members = [one for one in every if collection in (None, one.key)]
    if not members:
        known = ", ".join(one.key for one in every)
        raise FileRefused(f"There is no collection {collection!r} of {task}; there are: {known}.")
    return members


def _parts(scores: Scores, members: Sequence[Collection]) -> tuple[dict[str, Scores], Unknown]:
    """The results of the queries of each collection, and the queries that none has."""
    homes: dict[str, list[str]] = {}  # collections by query id
    for member in members:
        for identity in member.queries.column("id").to_pylist():
            homes.setdefault(identity, []).append(member.key)
    found: dict[str, dict[str, Mapping[str, float]]] = {}
    lost = []
    for spelling, row in scores.scores.items():
        exact = _exact(spelling, homes)
        if len(exact) > 1:
            raise FileRefused(
                f"{scores.name}: query {spelling!r} is in {' and '.join(exact)}; write it as "
                f"{' or '.join(exact.values())}, its documents alike or as they are, or choose one collection."
            )
        for key in exact:
            found.setdefault(key, {})[spelling] = row
        if not exact:
            lost.append(spelling)
    parts = {key: replace(scores, scores=own, lines=sum(map(len, own.values()))) for key, own in found.items()}
    return parts, Unknown(len(lost), tuple(lost[:SHOWN]))


def _exact(spelling: str, homes: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The collections that have a query, and its exact spelling for each; a collection in front decides."""
    key, identity = document(spelling, "")
    if key in homes.get(identity, ()):
        return {key: spelling}
    exact: dict[str, str] = {}
    for reading in readings(spelling):
        for home in homes.get(reading, ()):
            exact.setdefault(home, trec_id(home, reading))
    return exact


def store_upload(upload: Upload, dataset: DataSet, workspace: Workspace, model_id: str = "") -> list[Made]:
    """Store an upload as runs of an imported model, one a collection; it was read and matched whole before.

    ``model_id``: the model's full name where it has another one.
    """
    who = (upload.name, model_id or upload.name, upload.revision)
    return [
        store_import(imported, Place(dataset, upload.task, workspace, key), *who, workspace.root)
        for key, imported in upload.imported.items()
    ]
