"""The list of queries under one run: which of them, and in which order."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from core.analyze.diagnosis import Diagnosis
from core.analyze.failures import BY_NAME, DEPTH, depth_of
from core.analyze.slices import value_of
from core.analyze.task_runs import Key

ALL_FAIL, ONLY_THIS = "all fail", "only this one fails"
WORST, CONTRAST = "worst", "contrast"


@dataclass(frozen=True, slots=True)
class Named:
    """Queries that were chosen elsewhere, and in words which ones they are."""

    words: str
    keys: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which queries to list. ``group``: (facet, value), or a facet and the ``members`` that were pooled; ``found``:
    (facet, value) of the first hit; ``named``: only these; ``kinds``: all of them must hold; ``agreement``: "", "all
    fail" or "only this one fails"; ``text``: words that must all be in the query's text, id or facets. ``order``:
    worst first, or by contrast with the other model (where that does best and this one worst first)."""

    failing: bool = True
    group: tuple[str, str] | None = None
    found: tuple[str, str] | None = None
    kinds: tuple[str, ...] = ()
    agreement: str = ""
    text: str = ""
    order: str = WORST
    members: tuple[str, ...] = field(default=())
    named: Named | None = None


def chosen(
    diagnosis: Diagnosis, k: int, measure: str, wanted: Wanted, others: Sequence[Diagnosis] = (), contrast: int = 0
) -> list[int]:
    """The positions of the wanted queries, worst first: by the measure, then by how deep the first relevant document
    is, then by name. ``others`` are the diagnoses of other runs, of which ``others[contrast]`` is the one to contrast
    with; queries that it lacks stand last then."""
    failed = diagnosis.failed(k)
    keys = [(query.collection, query.id) for query in diagnosis.queries]
    keep = np.ones(len(keys), bool)
    if wanted.failing:
        keep &= failed
    if wanted.group is not None:
        by, value = wanted.group
        values = set(wanted.members) or {value}
        keep &= np.array([value_of(diagnosis, i, by) in values for i in range(len(keys))], bool)
    if wanted.found is not None:
        facet, value = wanted.found
        keep &= np.array([top.get(facet) == value for top in diagnosis.top], bool)
    if wanted.named is not None:
        keep &= np.array([key in wanted.named.keys for key in keys], bool)
    for kind in wanted.kinds:
        if BY_NAME[kind].role == DEPTH:
            keep &= np.array([depth_of(int(first), k) == kind for first in diagnosis.first], bool)
        else:
            keep &= np.array([kind in found for found in diagnosis.found], bool)
    if wanted.agreement:
        keep &= _agree(keys, failed, wanted.agreement, others, k)
    for word in folded(wanted.text).split():
        keep &= np.array([word in text for text in texts(diagnosis)], bool)
    at = np.flatnonzero(keep)
    values = diagnosis.measured(measure)
    deep = np.where(diagnosis.first == 0, np.iinfo(np.int32).max, diagnosis.first)
    if wanted.order == CONTRAST and others:
        gaps = gap(diagnosis, others[contrast], measure)
        return sorted(at.tolist(), key=lambda i: (math.isnan(gaps[i]), _last(gaps[i]), -deep[i], keys[i]))
    return sorted(at.tolist(), key=lambda i: (_last(values[i]), -deep[i], keys[i]))


def _last(value: float) -> float:
    return math.inf if math.isnan(value) else float(value)


def gap(diagnosis: Diagnosis, other: Diagnosis, measure: str) -> np.ndarray:
    """float64 [n]: this run's measure less the other's; NaN where the other lacks the query or the measure."""
    there = other.measured(measure)
    at = [other.at((query.collection, query.id)) for query in diagnosis.queries]
    theirs = np.array([np.nan if i is None else there[i] for i in at], np.float64)
    return diagnosis.measured(measure) - theirs


def _agree(keys: Sequence[Key], failed: np.ndarray, agreement: str, others: Sequence[Diagnosis], k: int) -> np.ndarray:
    """Whether every run that has a query fails on it, or this run alone does; where no other has it, neither."""
    result = np.zeros(len(keys), bool)
    theirs = [(other, other.failed(k)) for other in others]
    for i, key in enumerate(keys):
        found = [bool(flags[at]) for other, flags in theirs if (at := other.at(key)) is not None]
        result[i] = bool(failed[i]) and bool(found) and (all(found) if agreement == ALL_FAIL else not any(found))
    return result


def folded(text: str) -> str:
    """Text as it is searched: NFKC, case folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def texts(diagnosis: Diagnosis) -> list[str]:
    """What can be searched of each query: its words, id, collection and facets, folded; made once a diagnosis."""
    if "texts" not in diagnosis.memo:
        skip = {"case", "cluster", "split"}
        diagnosis.memo["texts"] = [
            folded(" ".join([q.id, q.collection, q.text, *(str(v) for name, v in q.meta.items() if name not in skip)]))
            for q in diagnosis.queries
        ]
    return diagnosis.memo["texts"]
