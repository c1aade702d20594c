"""The files of notes and re-judgements: one CSV, out and in, and qrels beside the data set's own, in a zip."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from core.analyze.rejudge import Annotations, Judged, Key, Note, Overlay, apply, tags_of
from core.data.dataset import DataSet
from core.evaluate.imported import FileRefused

COLUMNS = ("kind", "collection", "query", "doc_collection", "doc", "grade", "tags", "text", "author", "time")
"""The columns of the CSV file; ``kind`` is ``note`` or ``judgement``."""

MAX_BYTES, MAX_ROWS = 5 * 2**20, 100_000
"""Limits of a CSV file that is read."""

QRELS = "rejudged"
"""The name of the exported judgement files, for ``--qrels``."""

_FORMULA = tuple("=+-@＝＋－＠")


def to_csv(annotations: Annotations) -> str:
    """One CSV file (RFC 4180) with the columns `COLUMNS`, notes first, each kind by key; `from_csv` reads it back.

    A cell that a spreadsheet would run as a formula begins with an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for note in annotations.notes:
        cells = ["note", note.collection, note.query, "", "", "", "; ".join(note.tags), note.text]
        writer.writerow(map(_defused, [*cells, note.author, note.time]))
    for row in annotations.judged:
        cells = ["judgement", row.collection, row.query, row.doc_collection, row.doc, row.grade, "", ""]
        writer.writerow(map(_defused, [*cells, row.author, row.time]))
    return out.getvalue()


def _runs(cell: str) -> bool:
    """Whether a spreadsheet may run the cell, without apostrophes before it: those are counted, so nothing is lost."""
    bare = cell.lstrip("'")
    return bare.startswith(("\t", "\r")) or bare.lstrip().startswith(_FORMULA)


def _defused(cell: str) -> str:
    return f"'{cell}" if _runs(cell) else cell


def _restored(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _runs(cell) else cell


def from_csv(data: bytes, name: str, dataset: DataSet) -> Annotations:
    """Read what `to_csv` wrote for this data set. ``name`` is the file's, for messages.

    Raises `FileRefused`, one sentence that names file, line and field, for anything that cannot be kept as it stands:
    nothing is left out.
    """
    if len(data) > MAX_BYTES:
        raise FileRefused(f"{name} has more than {MAX_BYTES >> 20} MB; split it and read its parts one by one.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileRefused(f"{name}, line {line}: not UTF-8; save the table as CSV in UTF-8.") from None
    found: dict[tuple[str, ...], tuple[Note | Judged, str]] = {}
    records = _records(text, name)
    if tuple(next(records, ("", []))[1]) != COLUMNS:
        raise FileRefused(f"{name}, line 1: must be {','.join(COLUMNS)}; keep it, and part columns by commas.")
    for where, cells in records:
        if len(found) == MAX_ROWS:
            raise FileRefused(f"{where}: more than {MAX_ROWS:,} entries; split the file and read its parts one by one.")
        if len(cells) != len(COLUMNS):
            raise FileRefused(f"{where}: {len(cells)} columns where {len(COLUMNS)} must be; mend or remove the line.")
        values = dict(zip(COLUMNS, map(_restored, cells), strict=True))
        try:
            row = _row(values, dataset)
        except ValueError as error:
            raise FileRefused(f"{where}: {error}") from None
        earlier = found.setdefault((values["kind"], *row.key), (row, where))
        if earlier[1] != where:
            raise FileRefused(f"{where}: this author's {values['kind']} is there already ({earlier[1]}); keep one.")
    rows = [row for row, _ in found.values()]
    notes = tuple(row for row in rows if isinstance(row, Note))
    return Annotations(notes, tuple(row for row in rows if isinstance(row, Judged)))


def _records(text: str, name: str) -> Iterator[tuple[str, list[str]]]:
    """(file and line on which it begins, cells) of every record that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        where = f"{name}, line {reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise FileRefused(f"{where}: no CSV ({error}); mend it, or export the notes again.") from None
        if any(cells):
            yield where, cells


def _row(values: Mapping[str, str], dataset: DataSet) -> Note | Judged:
    kind = values["kind"]
    unused = {"note": ("doc_collection", "doc", "grade"), "judgement": ("tags", "text")}.get(kind)
    if unused is None:
        raise ValueError(f"The kind {kind[:40]!r} is neither note nor judgement; write one of these.")
    for column in unused:
        if values[column]:
            raise ValueError(f"The {column} of a {kind} must be empty; empty it, or mend the kind.")
    _find(dataset, values, "collection", "query")
    if kind == "note":
        own = {column: values[column] for column in ("collection", "query", "text", "author", "time")}
        return Note(**own, tags=tags_of(values["tags"]))
    _find(dataset, values, "doc_collection", "doc")
    return Judged(**{column: values[column] for column in COLUMNS if column not in ("kind", *unused)})


def _find(dataset: DataSet, values: Mapping[str, str], where: str, what: str) -> None:
    """ValueError where the data set lacks the collection, or the query or document in it."""
    collection = dataset.collections.get(values[where])
    hint = "choose the data set that the file was made for, or mend it (spreadsheets change ids such as 007)"
    if collection is None:
        raise ValueError(f"The {where} {values[where][:80]!r} is not in {dataset.name}; {hint}.")
    table = collection.queries if what == "query" else collection.corpus
    if table.find(values[what]) is None:
        raise ValueError(f"The {what} {values[what][:80]!r} is not in {collection.key}; {hint}.")


@dataclass(frozen=True, slots=True)
class QrelsZip:
    """A zip file of judgements, and a sentence for everything that it cannot say."""

    data: bytes = field(repr=False)
    left_out: tuple[str, ...]


def qrels_zip(dataset: DataSet, overlay: Overlay) -> QrelsZip:
    """``<collection's folder>/qrels/rejudged.tsv`` with the merged judgements of every collection, the same bytes
    for the same input. Unpacked over a copy of the data set it is read with ``--qrels rejudged``.

    What qrels of a collection cannot say stands in ``LEFT_OUT.txt``.
    """
    left_out: list[str] = []
    sayable: dict[Key, dict[Key, int]] = {}
    for query, row in sorted(overlay.grades.items()):
        for doc, grade in sorted(row.items()):
            reason = _unsayable(dataset, query, doc)
            if reason:
                left_out.append(f"Query {query!r}, document {doc!r}, grade {grade}: {reason}.")
            else:
                sayable.setdefault(query, {})[doc] = grade
    files: dict[str, str] = {}
    for collection in dataset.collections.values():
        if _leads_away(collection.path):
            left_out.append(f"Collection {collection.key!r}: its folder's name may lead out of the folder it is in.")
            continue
        qrels = apply(collection.qrels, Overlay(sayable), collection.key)
        lines = (f"{q}\t{d}\t{grade}\n" for q, row in sorted(qrels.items()) for d, grade in sorted(row.items()))
        path = (PurePosixPath(collection.path) / "qrels" / f"{QRELS}.tsv").as_posix()
        files[path] = "query-id\tcorpus-id\tscore\n" + "".join(lines)
    if left_out:
        files["LEFT_OUT.txt"] = "\n".join(["Not in these judgements:", *left_out, ""])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in sorted(files.items()):
            entry = zipfile.ZipInfo(path)  # dated 1980, so that equal content is equal bytes
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text.encode(), zipfile.ZIP_DEFLATED)
    return QrelsZip(out.getvalue(), tuple(left_out))


def _unsayable(dataset: DataSet, query: Key, doc: Key) -> str:
    """Why the qrels of a collection cannot say a judgement; "" where they can."""
    collection = dataset.collections.get(query[0])
    if query[0] != doc[0]:
        return "the document lies in another collection than the query"
    if collection is None or collection.queries.find(query[1]) is None or collection.corpus.find(doc[1]) is None:
        return "not in the data set"
    return "an id holds a tab or a line break" if re.search(r"[\t\n]", query[1] + doc[1]) else ""


def _leads_away(path: str) -> bool:
    """Whether a folder's path could mean one outside, on any system that unpacks it."""
    return bool(path.startswith("/") or "\\" in path or ".." in path.split("/") or re.match("[A-Za-z]:", path))
