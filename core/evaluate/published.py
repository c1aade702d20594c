"""The benchmark's published results beside ours, with what may explain a difference. Never part of our own tables.

The figures are facts from the authors' README, in ``assets/published`` with their source. They need not reproduce:
each difference comes with the reasons known from the authors' scripts, and the condition under which each applies.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.records import TASKS
from core.settings import REPOSITORY

RESULTS = REPOSITORY / "assets" / "published" / "results.csv"
MEASURE = "nDCG@10"

RENAMED = {"BAAI/BGE-VL-large": "JUNJIE99/MMRet-large", "bm25s": "bm25"}
"""Models that go by another id here: ours, and the one that was published."""


@dataclass(frozen=True, slots=True)
class Published:
    """One published figure: ``ndcg_at_10`` is 0…1, None where the model cannot do the task (N/A)."""

    model: str
    model_id: str
    paradigm: str
    task: str
    ndcg_at_10: float | None
    source: str
    arxiv: str

    @property
    def sees_pictures(self) -> bool:
        return self.paradigm not in ("lexical", "dense text")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why figures may differ, and ``when`` this applies: what to check before the reason is believed."""

    name: str
    text: str
    when: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Our macro mean and a published figure of one task, both 0…1; ``difference`` is ours − published.

    N/A (None) on either side leaves the difference None. ``same_model``: the published model is the one we ran; else
    the two figures are of two models, and ``reasons`` says so first.
    """

    model: str
    task: str
    ours: float | None
    published: Published
    difference: float | None
    same_model: bool
    reasons: tuple[Reason, ...]


OTHER_MODEL = Reason(
    "other model",
    "The two figures are of two models.",
    "Always here: the published model is not the one that was run.",
)
BM25_VARIANT = Reason(
    "BM25 variant",
    "Tokenisation, stemming, k1 and b of the published BM25 are not stated; ours are in its revision.",
    "Always.",
)
OTHER_DATA = Reason(
    "other data",
    "Collections derived from MedPix, or made for the demo, are not the benchmark's.",
    "Unless the data set is the authors' own release, complete and unchanged.",
)
TRAINING_DATA = Reason(
    "training data",
    "Our model was trained on these queries; its figure is no test result.",
    "Where our row is labelled training data.",
)
SEEN_LEFT_OUT = Reason(
    "queries left out",
    "Queries seen in training are not in our mean, so it is over fewer queries.",
    "Where our row counts queries left out as seen in training.",
)
PROXY = Reason(
    "proxy.jpg",
    "The authors' scripts put proxy.jpg in place of a query picture that is missing or broken; here it is counted.",
    "Where the check of the data finds pictures of queries that are missing or cannot be read.",
)
DROPPED = Reason(
    "dropped queries, similar names",
    "One of the authors' scripts drops queries without a picture, and takes pictures of similar file names for them.",
    "Where picture files are not named exactly as queries.jsonl says.",
)
CORPUS_AS_QUERIES = Reason(
    "corpus encoded as queries",
    "The authors encoded documents with the instruction for queries.",
    "MM-Embed only, where we encode documents as documents.",
)
RAW_SUMS = Reason(
    "sums not normalised",
    "The authors added picture and text vectors without normalising them first, so that the longer one outweighs.",
    "MedImageInsight only, for queries or documents with picture and text.",
)
FIRST_PICTURE = Reason(
    "first picture of a batch",
    "One of the authors' UniIR scripts uses only the first picture of each batch.",
    "UniIR's models only (CLIP-SF, BLIP-FF); which of them ran with that script is not published.",
)
LENGTHS = Reason(
    "maximum lengths",
    "Models read texts up to different lengths: 77 tokens for CLIP, else 256, 512 or 4096.",
    "Where the check counts texts that are cut off, and the limits of the two runs differ.",
)


def load(path: Path = RESULTS) -> list[Published]:
    """The published figures, by model and task as in the file; ValueError naming the line that cannot be read."""
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        found = []
        for row in reader:
            try:
                value = None if row["ndcg_at_10"] == "N/A" else float(row["ndcg_at_10"])
                if row["task"] not in TASKS or not (value is None or 0 <= value <= 1):
                    raise ValueError("unknown task, or nDCG@10 not from 0 to 1")
                names = ("model", "model_id", "paradigm", "task", "source", "arxiv")
                found.append(Published(ndcg_at_10=value, **{name: row[name] for name in names}))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path.name}, line {reader.line_num}: {error!r}; restore the file.") from None
    return found


def differences(rows: Iterable[Mapping[str, Any]], published: Iterable[Published] | None = None) -> list[Difference]:
    """Each of our rows of nDCG@10 beside every published figure of its task, the same model first.

    ``rows`` are those of ``evaluate --json``, see `core.evaluate.tables`; rows of other measures, of tasks that
    have no published figure, and of pools, which the benchmark does not search, are passed over.
    """
    facts = list(load() if published is None else published)
    result = []
    for row in rows:
        if row["measure"] == MEASURE and row.get("scope") != "pool":
            beside = [_difference(row, fact) for fact in facts if fact.task == row["task"]]
            result += sorted(beside, key=lambda found: not found.same_model)
    return result


def _difference(row: Mapping[str, Any], fact: Published) -> Difference:
    ours = row["macro"]
    ours = None if ours is None or math.isnan(ours) else float(ours)
    same = RENAMED.get(row["model_id"], row["model_id"]).casefold() == fact.model_id.casefold()
    difference = None if ours is None or fact.ndcg_at_10 is None else ours - fact.ndcg_at_10
    return Difference(row["model"], fact.task, ours, fact, difference, same, _reasons(row, fact, same))


def _reasons(row: Mapping[str, Any], fact: Published, same: bool) -> tuple[Reason, ...]:
    """The checklist for one pair; a reason that cannot apply to the published model is not on it."""
    checklist = (
        (OTHER_MODEL, not same),
        (BM25_VARIANT, same and fact.paradigm == "lexical"),
        (OTHER_DATA, True),
        (TRAINING_DATA, bool(row.get("training_data"))),
        (SEEN_LEFT_OUT, bool(row["seen_excluded"])),
        (PROXY, fact.sees_pictures),
        (DROPPED, fact.sees_pictures),
        (CORPUS_AS_QUERIES, fact.model == "MM-Embed"),
        (RAW_SUMS, fact.model == "MII"),
        (FIRST_PICTURE, fact.model in ("CLIP-SF", "BLIP-FF")),
        (LENGTHS, fact.paradigm != "lexical"),
    )
    return tuple(reason for reason, applies in checklist if applies)
