"""Read the lines of ``queries.jsonl``, ``corpus.jsonl`` and ``qrels/*.tsv``, one at a time.

Every spelling seen in public copies of the benchmark is read; whatever cannot be read becomes a `Fault` that
names the line, and reading goes on.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from core.records import Doc, Fault, Query

Report = Callable[[str, int, str, str], None]
"""``report(kind, line, id, detail)``"""

MAX_LINE = 16 * 2**20
"""Longest line read, in bytes."""

MAX_DEPTH = 64
"""Deepest nesting of lists and objects in a JSON value."""

TEXT_FIELDS = ("caption", "text", "txt", "query")
PICTURE_FIELDS = ("image_path", "img_path", "image")
ID_FIELDS = ("_id", "id")
_HEADER = re.compile(r"(query|topic)([-_ ]?id)?|q[-_ ]?id", re.IGNORECASE)


class _Malformed(ValueError):
    pass


def lines_of(path: Path, report: Report) -> Iterator[tuple[int, str]]:
    """Yield (1-based line number, line without its end); blank lines are passed over.

    Splits at LF only, so that other line separators inside a text stay text. A byte order mark, CRLF ends, a line
    that is not UTF-8 and one over `MAX_LINE` are reported.
    """
    crlf = first_crlf = 0
    with path.open("rb") as stream:
        number = 0
        while raw := stream.readline(MAX_LINE + 1):
            number += 1
            if len(raw) > MAX_LINE:
                report("malformed", number, "", f"longer than {MAX_LINE >> 20} MiB; the line is left out")
                while raw and not raw.endswith(b"\n"):
                    raw = stream.readline(MAX_LINE + 1)
                continue
            if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                report("bom", 1, "", "starts with a byte order mark; it is passed over")
                raw = raw[3:]
            if raw.endswith(b"\r\n"):
                crlf += 1
                first_crlf = first_crlf or number
            raw = raw.rstrip(b"\r\n")
            if not raw.strip():
                continue
            try:
                yield number, raw.decode("utf-8")
            except UnicodeDecodeError as error:
                report("malformed", number, "", f"not UTF-8 at byte {error.start + 1}; the line is left out")
    if crlf:
        report("crlf", first_crlf, "", f"{crlf} lines end in CR LF; they are read as LF")


def parse_json(text: str) -> Any:
    """The JSON value in ``text``; raises ValueError with the reason.

    Also refused: what could not be shown or written again (NaN, infinities, half of a surrogate pair), and what is
    nested more than `MAX_DEPTH` levels deep.
    """
    too_deep = _Malformed(f"JSON nested more than {MAX_DEPTH} levels deep")
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise too_deep from None
    except json.JSONDecodeError as error:
        raise _Malformed(f"not JSON: {error.msg} at column {error.colno}") from error
    except _Malformed:
        raise
    except ValueError:  # Python's own limit for the digits of whole numbers
        raise _Malformed("not JSON: a number has too many digits") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _deeper_than(MAX_DEPTH, value):
        raise too_deep
    if "\\ud" in text or "\\uD" in text:  # the only way for half of a pair to get past UTF-8
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise _Malformed("holds half of a surrogate pair, which is not valid text") from None
    return value


def _no_number(name: str) -> None:
    raise _Malformed(f"not JSON: {name} is not a number")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _Malformed(f"not JSON: {digits[:40]} is too large a number")
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)


def _deeper_than(levels: int, value: Any) -> bool:
    if not isinstance(value, dict | list):
        return False
    children = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper_than(levels - 1, child) for child in children)


def objects_of(path: Path, report: Report) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, JSON object) of a ``.jsonl`` file; other lines are reported as malformed."""
    for number, line in lines_of(path, report):
        try:
            value = parse_json(line)
        except ValueError as error:
            report("malformed", number, "", f"{error}; the line is left out")
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            report("malformed", number, "", "not a JSON object; the line is left out")


def queries_of(path: Path, collection: str, report: Report) -> Iterator[Query]:
    """Yield the queries of a ``queries.jsonl``; a duplicate id keeps its first line."""
    for number, row, identity in _rows(path, report):
        try:
            text = _text(row, TEXT_FIELDS)
            yield Query(collection, identity, text, _pictures(row), _meta(row, number, identity, report), number)
        except _Malformed as error:
            report("malformed", number, identity, f"{error}; the line is left out")


def docs_of(path: Path, collection: str, report: Report) -> Iterator[Doc]:
    """Yield the documents of a ``corpus.jsonl``; a duplicate id keeps its first line."""
    for number, row, identity in _rows(path, report):
        try:
            title, text = _text(row, ("title",)), _text(row, ("text", "txt", "caption"))
            yield Doc(collection, identity, title, text, _pictures(row), _meta(row, number, identity, report), number)
        except _Malformed as error:
            report("malformed", number, identity, f"{error}; the line is left out")


def _rows(path: Path, report: Report) -> Iterator[tuple[int, dict[str, Any], str]]:
    seen: set[str] = set()
    for number, row in objects_of(path, report):
        try:
            identity = _identity(row)
        except _Malformed as error:
            report("malformed", number, "", f"{error}; the line is left out")
            continue
        if identity in seen:
            report("duplicate_id", number, identity, "this id stands on an earlier line; this line is left out")
            continue
        seen.add(identity)
        if any(c.isspace() for c in identity):
            report("id_whitespace", number, identity, "the id holds white space; it is percent-encoded in TREC files")
        yield number, row, identity


def _identity(row: dict[str, Any]) -> str:
    value = next((row[f] for f in ID_FIELDS if f in row), None)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise _Malformed("no _id, or _id is not a text")
    return value


def _text(row: dict[str, Any], fields: tuple[str, ...]) -> str:
    for name in fields:
        value = row.get(name)
        if value is None or value == "":
            continue
        if not isinstance(value, str):
            raise _Malformed(f"{name} is not a text")
        return value
    return ""


def _pictures(row: dict[str, Any]) -> tuple[str, ...]:
    for name in PICTURE_FIELDS:
        value = row.get(name)
        if value is None or value == "" or value == []:
            continue
        paths = [value] if isinstance(value, str) else value
        if not isinstance(paths, list) or not all(isinstance(p, str) and p for p in paths):
            raise _Malformed(f"{name} is neither a path nor a list of paths")
        return tuple(paths)
    return ()


def _meta(row: dict[str, Any], number: int, identity: str, report: Report) -> dict[str, Any]:
    value = row.get("meta")
    if value is None:
        return {}
    if not isinstance(value, dict):
        report("malformed", number, identity, "meta is not a JSON object; it is passed over")
        return {}
    return value


def judgements_of(path: Path, report: Report) -> Iterator[tuple[int, str, str, int]]:
    """Yield (line, query id, document id, grade) of a qrels file.

    Tab-separated ``query-id corpus-id score`` with or without a header, or TREC's four columns
    ``query-id 0 corpus-id grade``; without any tab, cells end at blanks. Grades are whole numbers from 0 to 1000,
    also written as ``2.0``.
    """
    for position, (number, line) in enumerate(lines_of(path, report)):
        cells = line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))
        if len(cells) == 4:
            cells = [cells[0], *cells[2:]]
        if len(cells) != 3 or not cells[0] or not cells[1]:
            detail = f"needs query-id, corpus-id and score, has {len(cells)} columns or an empty id"
            report("malformed", number, "", f"{detail}; the line is left out")
            continue
        query, doc, score = cells
        try:
            value = float(score)
        except ValueError:
            if position == 0 and _HEADER.fullmatch(query) and score.strip():
                continue
            value = math.nan
        if not math.isfinite(value) or not 0 <= value <= 1000 or value != int(value):
            detail = (
                f"score {score[:40]!r} for document {doc!r} is no whole number from 0 to 1000; the line is left out"
            )
            report("bad_score", number, query, detail)
            continue
        yield number, query, doc, int(value)


def faults_to(collected: list[Fault], file: str) -> Report:
    """A `Report` that appends to ``collected`` with the file's name filled in."""
    return lambda kind, line, identity, detail: collected.append(Fault(kind, file, line, identity, detail))
