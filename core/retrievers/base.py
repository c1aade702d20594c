"""What every retriever is: it ranks a place for all its queries, and names everything that decides the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from core.embed.pipeline import Progress
from core.index.exact import best
from core.models.specs import ModelSpec
from core.retrievers.order import Rankings, trec_order
from core.retrievers.place import Place


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides a ranking, beside the data: the fields of `core.evaluate.run.RunInfo` of the same names."""

    encoder_ids: tuple[str, ...]
    fusion: str = "none"
    weight: float | None = None
    centring: str = "none"
    variant: str = "full"
    fold_plan: str = ""


@dataclass(frozen=True, slots=True)
class Ranked:
    """``rankings`` has every query of the place; ``facts`` count what was cut, unreadable or could not be asked."""

    rankings: Rankings
    facts: Mapping[str, Any] = field(default_factory=dict)


class Retriever(Protocol):
    """One model on one data set. ``stands_for``: the encoder whose figures these are, "" where it has none."""

    spec: ModelSpec
    stands_for: str

    def recipe(self, task: str) -> Recipe: ...

    def cannot(self, place: Place) -> str:
        """Why there is nothing to rank here: "" or the reason for N/A."""
        ...

    def rank(self, place: Place, depth: int, progress: Progress) -> Ranked:
        """At most ``depth`` answers a query in trec_eval's order; the query itself is never one."""
        ...


NO_TEXT = "N/A: it reads words, and no document here has any"


def ordered(place: Place, at: int, answers: Sequence[int] | np.ndarray, scores: np.ndarray, depth: int) -> list:
    """The ranking of query number ``at``: the best of ``answers`` (positions in ``place.ids``) by their ``scores``."""
    own = place.own(place.queries[at])
    found = best(scores, depth + (own is not None))
    pairs = ((place.ids[answers[i]], float(scores[i])) for i in found)
    return trec_order((name, score) for name, score in pairs if name != own)[:depth]
