"""The records every room passes on: plain, frozen, without behaviour beyond their own consistency.

Ids repeat across collections, so the key of a query or document is always ``(collection, id)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TASKS = ("visual_context", "summary", "query_to_image", "case_study", "retrieval")
"""The benchmark's four tasks, and ``retrieval`` for a folder that names none."""

TASK_LABELS = {
    "visual_context": "Visual context",
    "summary": "Summary",
    "query_to_image": "Query to image",
    "case_study": "Case study",
    "retrieval": "Retrieval",
}


JUDGED = (2, 1, 0)
"""The grades of judgements: most relevant, relevant, judged not relevant."""


class QueryError(ValueError):
    """What was asked cannot be searched; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One finding about a data set: a *fault* needs mending, a *note* is worth knowing.

    ``file`` is relative to the data set's folder, ``line`` is 1-based (0: the file as a whole).
    """

    kind: str
    file: str
    line: int
    id: str
    detail: str

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "file": self.file, "line": self.line, "id": self.id, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Query:
    """A query: words, pictures (paths as the data set spells them), or both."""

    collection: str
    id: str
    text: str
    images: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, slots=True)
class Doc:
    """A document: title and passage, pictures, or both."""

    collection: str
    id: str
    title: str
    text: str
    images: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0

    @property
    def full_text(self) -> str:
        """What a text encoder reads: title + ' ' + text, stripped."""
        return f"{self.title} {self.text}".strip()


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved document.

    ``score = image_share + text_share`` exactly as summed in 32-bit floats. ``relevance`` is the grade for the
    query (2 most relevant, 1 relevant, 0 judged not relevant) or ``None``: not judged, or not a query of the data
    set. ``copies``: how many further documents of the pool have equal content; they are this same hit.
    """

    rank: int
    collection: str
    doc_id: str
    score: float
    image_share: float
    text_share: float
    relevance: int | None
    meta: Mapping[str, Any]
    copies: int = 0


@dataclass(frozen=True, slots=True)
class Strength:
    """What to say of a best hit. Not calibrated: ``reason`` says why, and there is neither percentage nor n.

    ``percent`` is 0…100 unrounded. ``band`` is ``strong``, ``fair`` or ``weak``, or None where ``reason`` says why.
    """

    sentence: str
    percent: float | None
    n: int
    band: str | None
    calibrated: bool
    reason: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits with everything needed to say how they came about. ``seconds`` is the wall time of this search.

    ``strength`` is None without hits. ``relevant``: how many permitted contents the data set judges relevant to its
    own query, and ``best_relevant`` the rank of the best of them among all permitted contents, however far down;
    None where there is none or the query is not the data set's.
    """

    hits: tuple[Hit, ...]
    weight: float
    index_kind: str
    recall_at_10: float | None
    searched: int
    model: str
    seconds: float
    notes: tuple[str, ...] = ()
    strength: Strength | None = None
    relevant: int = 0
    best_relevant: int | None = None
