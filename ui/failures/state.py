"""What a session holds in the Failure cases tab: what it looks at, its list, the open case, its drafts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.analyze.lists import Named, Wanted
from core.analyze.rejudge import Overlay
from core.analyze.task_runs import Key

DRAFTS = 50
"""Unsaved notes that a session keeps, the latest ones."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The widgets above the finding. ``label`` is the data set's; ``run`` and ``beside`` are labels of runs."""

    label: str
    task: str
    scope: str
    run: str
    beside: tuple[str, ...]
    by: str
    k: int
    measure: str
    anew: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """The list as it was last shown: the queries in order, the page (0-based), and the case that is open, if any.

    ``overlay``: the re-judgements that the figures on the screen were scored with, None for none.
    """

    data_id: str = ""
    choice: Choice | None = None
    wanted: Wanted = field(default_factory=Wanted)
    keys: tuple[Key, ...] = ()
    page: int = 0
    at: int | None = None
    overlay: Overlay | None = None


@dataclass(frozen=True, slots=True)
class Drafts:
    """Notes that were begun and not saved, by (data_id, collection, query): text and tags."""

    kept: Mapping[tuple[str, str, str], tuple[str, str]] = field(default_factory=dict)

    def put(self, key: tuple[str, str, str], text: str, tags: str) -> Drafts:
        """With this draft, the oldest beyond `DRAFTS` left out."""
        kept = {k: v for k, v in self.kept.items() if k != key} | {key: (text, tags)}
        return Drafts(dict(list(kept.items())[-DRAFTS:]))

    def without(self, key: tuple[str, str, str]) -> Drafts:
        """Without the draft of this key."""
        return Drafts({k: v for k, v in self.kept.items() if k != key})


@dataclass(frozen=True, slots=True)
class Request:
    """What another tab wants to see here: a run, those beside it, queries of one group, those ``named``, or one query
    (``key``). ``contrast``: first those where the first run beside it is most ahead."""

    label: str
    task: str
    scope: str
    run: str
    beside: tuple[str, ...] = ()
    by: str = "domain"
    group: str = ""
    key: Key | None = None
    contrast: bool = False
    measure: str = "nDCG@10"
    named: Named | None = None
