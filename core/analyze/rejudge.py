"""Notes and re-judgements of researchers, and what they make of the qrels. Pure: nothing here reads or writes a file.

A re-judgement never changes the data set. All that count form an `Overlay`, whose hash becomes part of the ids and
labels of what is scored with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from core.store.manifest import short_hash

Key = tuple[str, str]
"""(collection, id) of a query or a document."""

NoteKey = tuple[str, str, str]
"""(collection, query, author)"""

JudgedKey = tuple[str, str, str, str, str]
"""(collection, query, doc_collection, doc, author)"""

Grades = dict[str, dict[str, int]]
"""``qrels[query_id][doc_id] = grade`` of one collection."""

GRADES = ("2", "1", "0", "unsure")
"""Re-judgements: most relevant, relevant, not relevant, and one that leaves the data set's own judgement as it is."""

MOST_TEXT, MOST_AUTHOR, MOST_TAG, MOST_TAGS = 4_000, 80, 40, 12
"""Limits of a note: characters of its text, of an author's name and of a tag; number of tags."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def now() -> str:
    """The present time as notes carry it: ISO 8601 in UTC, whole seconds, ``2026-07-01T12:00:00Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def tags_of(text: str) -> tuple[str, ...]:
    """The tags in a text where commas or semicolons part them."""
    return tuple(tag.strip() for tag in re.split("[,;]", text) if tag.strip())


@dataclass(frozen=True, slots=True)
class Note:
    """What one author says of one query: text, tags, or both. Line ends become LF, equal tags are one.

    Raises ValueError, with a sentence for the page, for what cannot be kept.
    """

    collection: str
    query: str
    text: str
    tags: tuple[str, ...]
    author: str
    time: str

    def __post_init__(self) -> None:
        _check_ids(self.collection, self.query)
        text = _text("The text", self.text, MOST_TEXT).replace("\r\n", "\n").replace("\r", "\n")
        if isinstance(self.tags, str) or len(self.tags) > MOST_TAGS:
            raise ValueError(f"At most {MOST_TAGS} tags fit; leave some out.")
        tags = tuple(dict.fromkeys(_line("A tag", tag, MOST_TAG) for tag in self.tags))
        if any("," in tag or ";" in tag for tag in tags):
            raise ValueError("A tag holds no comma or semicolon; these part one tag from the next.")
        if not text.strip() and not tags:
            raise ValueError("A note needs a text or a tag; remove it to take it back.")
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "tags", tags)
        object.__setattr__(self, "author", _author(self.author))
        _check_time(self.time)

    @property
    def key(self) -> NoteKey:
        """Of each there is one note."""
        return self.collection, self.query, self.author


@dataclass(frozen=True, slots=True)
class Judged:
    """One author's re-judgement of a query-document pair; ``grade`` is one of `GRADES`. ValueError as for `Note`."""

    collection: str
    query: str
    doc_collection: str
    doc: str
    grade: str
    author: str
    time: str

    def __post_init__(self) -> None:
        _check_ids(self.collection, self.query, self.doc_collection, self.doc)
        if self.grade not in GRADES:
            raise ValueError(f"The grade {str(self.grade)[:40]!r} is none of {', '.join(GRADES)}; choose one of these.")
        object.__setattr__(self, "author", _author(self.author))
        _check_time(self.time)

    @property
    def key(self) -> JudgedKey:
        """Of each there is one re-judgement."""
        return self.collection, self.query, self.doc_collection, self.doc, self.author


def _text(what: str, value: str, most: int) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} must be text.")
    if len(value) > most:
        raise ValueError(f"{what} has {len(value):,} characters; at most {most:,} fit, so shorten it.")
    if any(unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\r\t" for c in value):
        raise ValueError(f"{what} holds a control character; remove it.")
    return value


def _line(what: str, value: str, most: int) -> str:
    line = _text(what, value.strip() if isinstance(value, str) else value, most)
    if not line:
        raise ValueError(f"{what} is empty; write something.")
    if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in line):
        raise ValueError(f"{what} holds a control character or a line break; remove it.")
    return line


def _author(value: str) -> str:
    return _line("The author's name", value, MOST_AUTHOR)


def _check_ids(*ids: str) -> None:
    if not all(isinstance(i, str) and not any("\ud800" <= c <= "\udfff" for c in i) for i in ids):
        raise ValueError("The ids of collection, query and document must be text.")


def _check_time(value: str) -> None:
    try:
        if not _TIME.fullmatch(value):
            raise ValueError
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        form = "write it in UTC, as 2026-07-01T12:00:00Z"
        raise ValueError(f"The time {str(value)[:40]!r} is no time with seconds; {form}.") from None


@dataclass(frozen=True)
class Overlay:
    """The re-judgements that count: ``grades[(collection, query)][(collection, doc)]`` is 2, 1 or 0.

    Equal grades are equal overlays. ``hash`` is "" where there are none, else 16 hex digits.
    """

    grades: Mapping[Key, Mapping[Key, int]] = field(default_factory=dict, compare=False, repr=False)
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        rows = sorted([*query, *doc, grade] for query, row in self.grades.items() for doc, grade in row.items())
        object.__setattr__(self, "hash", short_hash(rows) if rows else "")


@dataclass(frozen=True)
class Annotations:
    """All notes and re-judgements of a data set, each kind sorted by key; every change makes a new one."""

    notes: tuple[Note, ...] = ()
    judged: tuple[Judged, ...] = ()

    def __post_init__(self) -> None:
        for name in ("notes", "judged"):
            rows = {row.key: row for row in getattr(self, name)}
            if len(rows) != len(getattr(self, name)):
                raise ValueError(f"Two {name} have the same key.")
            object.__setattr__(self, name, tuple(row for _, row in sorted(rows.items())))

    def __len__(self) -> int:
        return len(self.notes) + len(self.judged)

    def notes_on(self, query: Key) -> tuple[Note, ...]:
        """The notes on a query, by author."""
        return tuple(note for note in self.notes if (note.collection, note.query) == query)

    def judged_on(self, query: Key) -> tuple[Judged, ...]:
        """The re-judgements for a query, by document and author."""
        return tuple(row for row in self.judged if (row.collection, row.query) == query)

    def with_note(self, note: Note) -> Annotations:
        """With this note, in the place of one with the same key."""
        return Annotations((*self.without_note(note.key).notes, note), self.judged)

    def without_note(self, key: NoteKey) -> Annotations:
        """Without the note of this key, if there is one."""
        return Annotations(tuple(note for note in self.notes if note.key != key), self.judged)

    def with_judged(self, judged: Judged) -> Annotations:
        """With this re-judgement, in the place of one with the same key."""
        return Annotations(self.notes, (*self.without_judged(judged.key).judged, judged))

    def without_judged(self, key: JudgedKey) -> Annotations:
        """Without the re-judgement of this key, if there is one."""
        return Annotations(self.notes, tuple(row for row in self.judged if row.key != key))

    def merged(self, other: Annotations) -> tuple[Annotations, int, int]:
        """With those of ``other``; of the same key the later counts, at equal times the own. Also: added, updated."""
        added = updated = 0
        both = []
        for own, theirs in ((self.notes, other.notes), (self.judged, other.judged)):
            rows = {row.key: row for row in own}
            for row in theirs:
                known = rows.get(row.key)
                if known is None or row.time > known.time:
                    rows[row.key] = row
                    added, updated = added + (known is None), updated + (known is not None)
            both.append(tuple(rows.values()))
        return Annotations(*both), added, updated

    def overlay(self) -> Overlay:
        """Of several authors' re-judgements of a pair the latest counts, at equal times that of the last name."""
        latest = {row.key[:4]: row for row in sorted(self.judged, key=lambda row: (row.time, row.author))}
        grades: dict[Key, dict[Key, int]] = {}
        for (collection, query, *doc), row in sorted(latest.items()):
            if row.grade != "unsure":
                grades.setdefault((collection, query), {})[(doc[0], doc[1])] = int(row.grade)
        return Overlay(grades)


def apply(qrels: Mapping[str, Mapping[str, int]], overlay: Overlay, collection: str) -> Grades:
    """The judgements of one collection with its re-judgements; those of other collections' documents cannot count."""
    result = {query: dict(row) for query, row in qrels.items()}
    for (place, query), row in overlay.grades.items():
        own = {doc: grade for (where, doc), grade in row.items() if place == where == collection}
        if own:
            result.setdefault(query, {}).update(own)
    return result
