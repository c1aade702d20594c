"""TREC runs and judgements, in and out.

A run has six columns, ``query Q0 document rank score tag``; judgements have four, ``query 0 document grade``, or the
three of BEIR's files, ``query-id corpus-id score`` with or without that header. Columns end at tabs or blanks, lines
that begin with ``#`` are comments (as for trec_eval), gzip is recognised by its first bytes. Files come from others:
what cannot be used is refused with `FileRefused`, which names file and line and says what to do.

The rank column never counts: rankings are made from the scores, ties by id, as trec_eval does it. Ids that hold white
space or ``%`` are percent-encoded when written; `core.evaluate.imported` finds the collection's ids for them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from core.data.collection import Collection
from core.data.layouts import printable
from core.evaluate.imported import FileRefused, Imported, ImportedQrels, Scores, matched, matched_ids, outside_name
from core.evaluate.run import Run, document, trec_name
from core.store.atomic import write_bytes
from core.store.manifest import sha256_file

MAX_BYTES = 512 * 2**20
"""Bytes read of a file, counted after decompression, so that a small gzip cannot fill the memory."""

MAX_LINES = 5_000_000
"""Lines of a file: 5,000 queries of 1,000 documents, about 1 GB in memory. Larger runs come in parts."""

MAX_LINE = 16 * 2**10
"""Bytes of a line: two ids of 600 characters fit, percent-encoded in any script."""

_GZIP = b"\x1f\x8b"
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_TOO_LARGE = (2 - 2**-24) * 2.0**127  # from here on numbers are rounded to infinity as 32-bit floats
_HEADER = re.compile(r"(query|topic)([-_ ]?id)?|q[-_ ]?id", re.IGNORECASE)
_RUN_COLUMNS = "query, Q0, document, rank, score and tag"


@dataclass(frozen=True, slots=True)
class Given:
    """A file that was handed over as bytes and lies nowhere; ``most_bytes`` (unpacked) and ``most_lines`` bound it."""

    name: str
    data: bytes = field(repr=False)
    most_bytes: int = MAX_BYTES
    most_lines: int = MAX_LINES

    def open(self, mode: str) -> BinaryIO:
        """The bytes as a stream, like `Path.open` with mode "rb"."""
        assert mode == "rb"
        return io.BytesIO(self.data)


def text_lines(path: Path | Given) -> Iterator[tuple[int, str]]:
    """Yield (1-based number, line without its end) of a text file, plain or gzip; a byte order mark is passed over.

    Raises `FileRefused` beyond the limits, for NUL bytes and what is not UTF-8, and for a file that cannot be read.
    """
    name, total, number = printable(path.name), 0, 0
    given = isinstance(path, Given)
    most_bytes, most_lines = (path.most_bytes, path.most_lines) if given else (MAX_BYTES, MAX_LINES)
    try:
        with path.open("rb") as raw:
            packed = raw.read(len(_GZIP)) == _GZIP
            raw.seek(0)
            stream: Any = gzip.GzipFile(fileobj=raw) if packed else raw
            while line := stream.readline(MAX_LINE + 1):
                number, total = number + 1, total + len(line)
                where = f"{name}, line {number}"
                if len(line) > MAX_LINE:
                    raise FileRefused(f"{where}: longer than {MAX_LINE:,} bytes; write one entry a line.")
                if total > most_bytes or number > most_lines:
                    limits = f"{most_bytes >> 20} MiB or {most_lines:,} lines"
                    raise FileRefused(f"{where}: more than {limits}; split the file by query.")
                if b"\0" in line:
                    raise FileRefused(f"{where}: holds a NUL byte, so this is no text file; save it as UTF-8 text.")
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise FileRefused(f"{where}: not UTF-8 at byte {error.start + 1}; save it as UTF-8 text.") from None
                yield number, text.rstrip("\r\n")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileRefused(f"{name} cannot be read after line {number}: {reason}. Check or copy it again.") from None


def _entries(path: Path | Given) -> Iterator[tuple[str, str]]:
    """(where, line) of lines that are neither blank nor comments."""
    for number, line in text_lines(path):
        if line.strip(" \t") and not line.startswith("#"):
            yield f"{printable(path.name)}, line {number}", line


def _cells(line: str, counts: tuple[int, ...]) -> list[str]:
    """The columns: cells between tabs where there are so many (then they may hold blanks), else between blanks."""
    tabbed = [cell.strip(" ") for cell in line.split("\t")]
    return tabbed if len(tabbed) in counts else [cell for cell in line.replace("\t", " ").split(" ") if cell]


def finite(cell: str) -> float | None:
    """The number a cell holds, None for what is no finite number, also as a 32-bit float."""
    value = float(cell) if _NUMBER.fullmatch(cell) else math.inf
    return value if abs(value) < _TOO_LARGE else None


def read_run(path: Path | Given) -> Scores:
    """Read a TREC run, ids as they stand there. Raises `FileRefused`."""
    scores: dict[str, dict[str, float]] = {}
    same: dict[str, str] = {}  # each id is kept once, however many lines hold it
    lines, first_tag = 0, ""
    for where, line in _entries(path):
        cells = _cells(line, (6,))
        if len(cells) != 6:
            hint = "ids must hold no white space: percent-encode them, or separate columns by tabs"
            raise FileRefused(f"{where}: {len(cells)} columns where a run has six, {_RUN_COLUMNS}; {hint}.")
        query, _, doc, rank, score, tag = cells
        value = finite(score)
        if value is None:
            raise FileRefused(f"{where}: the score {score[:40]!r} (column 5) is no finite number; mend or remove it.")
        if finite(rank) is None:
            raise FileRefused(f"{where}: the rank {rank[:40]!r} (column 4) is no number; columns are {_RUN_COLUMNS}.")
        if not query or not doc:
            raise FileRefused(f"{where}: an empty id; columns are {_RUN_COLUMNS}.")
        row = scores.setdefault(query, {})
        if doc in row:
            raise FileRefused(f"{where}: document {doc!r} stands twice for query {query!r}; keep one of the lines.")
        row[same.setdefault(doc, doc)] = value
        lines, first_tag = lines + 1, first_tag or tag
    if not lines:
        raise FileRefused(f"{printable(path.name)} holds no results; a run has the columns {_RUN_COLUMNS}.")
    digest = hashlib.sha256(path.data).hexdigest() if isinstance(path, Given) else sha256_file(path)
    return Scores(printable(path.name), scores, lines, first_tag, digest[:16])


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Read judgements, ``{query: {document: grade}}`` with ids as they stand there. Raises `FileRefused`.

    Grades are whole numbers up to 1000, also written as ``2.0``; a negative one means not judged, as for trec_eval,
    and the pair is left out. A pair may be repeated, with one grade.
    """
    qrels: dict[str, dict[str, int]] = {}
    for position, (where, line) in enumerate(_entries(path)):
        cells = _cells(line, (3, 4))
        if len(cells) not in (3, 4) or not cells[0] or not cells[-2]:
            columns = "query, 0, document and grade, or query, document and grade"
            raise FileRefused(f"{where}: {len(cells)} columns or an empty id; judgements have {columns}.")
        query, doc, score = cells[0], cells[-2], cells[-1]
        grade = finite(score)
        if grade is None and position == 0 and _HEADER.fullmatch(query):
            continue
        if grade is None or grade > 1000 or grade != int(grade):
            what = "is no whole number up to 1000; mend it, or leave out what was not judged"
            raise FileRefused(f"{where}: the grade {score[:40]!r} {what}.")
        if grade < 0:
            continue
        if qrels.setdefault(query, {}).setdefault(doc, int(grade)) != grade:
            raise FileRefused(f"{where}: document {doc!r} has two grades for query {query!r}; keep one of the lines.")
    if not qrels:
        raise FileRefused(f"{printable(path.name)} holds no judgements.")
    return qrels


def import_run(path: Path, collection: Collection, ignore_identical_ids: bool = False) -> Imported:
    """Read a TREC run for a collection, as `matched` says; raises `FileRefused`."""
    return matched(read_run(path), collection, ignore_identical_ids)


def import_qrels(path: Path, collection: Collection) -> ImportedQrels:
    """Read judgements for a collection; raises `FileRefused` where no pair is of it."""
    qrels, queries, docs = matched_ids(printable(path.name), read_qrels(path), collection)
    return ImportedQrels(qrels, queries.unknown, docs.unknown)


def write_run(path: Path, run: Run) -> None:
    """Write a run of a collection for others, gzip where the name ends in ``.gz``; queries without hits have no line.

    Equal runs are equal bytes. A run of a pool keeps its ids, ``<collection>/<id>``.
    """
    in_pool = run.info.place.startswith("pool-")
    tag = trec_name(run.info.model)

    def name(trec: str) -> str:
        return trec if in_pool else outside_name(document(trec, "")[1])

    _write(
        path,
        (
            f"{name(query)} Q0 {name(doc)} {rank} {score:.9g} {tag}\n"
            for query in sorted(run.rankings)
            for rank, (doc, score) in enumerate(run.rankings[query], 1)
        ),
    )


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write judgements, ``qrels[query_id][doc_id] = grade``, in TREC's four columns; gzip as in `write_run`."""
    _write(
        path,
        (
            f"{outside_name(query)} 0 {outside_name(doc)} {grade}\n"
            for query in sorted(qrels)
            for doc, grade in sorted(qrels[query].items())
        ),
    )


def _write(path: Path, lines: Iterable[str]) -> None:
    content = "".join(lines).encode("utf-8")
    write_bytes(path, gzip.compress(content, 6, mtime=0) if path.suffix == ".gz" else content)
