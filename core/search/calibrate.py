"""Match strength: how often a best hit that scored like this one was relevant, on judged queries never trained on.

Isotonic regression (pool adjacent violators) of "the best hit is relevant" on its score gives blocks of scores with
one share each; blocks of fewer than 30 queries are joined to a neighbour, so every percentage shown has its n. A band
(strong, fair, weak) is only given where the curve tells right from wrong best hits on held-out topics: topics are
dealt into 5 folds by seed, the curve of four folds gives each query of the fifth its percentage, and the AUROC is the
share of pairs of a right and a wrong best hit of the same fold in which the right one has the higher percentage, ties
counting half. Pairs never cross folds, because their percentages would come from different curves.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.data.dataset import silent
from core.embed.pipeline import Progress
from core.evaluate.stats import cluster_of
from core.index.pool_index import LEFT_OUT
from core.records import Query
from core.search.compose import ComposedQuery
from core.search.searcher import Searcher, trec_id
from core.store.atomic import write_bytes
from core.store.manifest import ManifestError, canonical

MODES = ("picture", "words", "both")
FEWEST = 30
"""Judged queries that a block, and a curve, needs at least."""

ENOUGH_AUROC = 0.75
MOST_MOVED = 0.2
"""A weight moved further than this from the default makes scores that were never calibrated."""

BANDS = {"strong": 0.7, "fair": 0.3, "weak": 0.0}
"""The smallest share of relevant best hits of each band."""

WEAK_MEANS = "probably no good match"
FOLDS, SEED = 5, 20261130
FILE, FORMAT = "strength.json", 1
_BLOCK_SCORES = 32_000_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """The best hit of one judged query: its score, whether it is relevant, and the query's cluster."""

    score: float
    relevant: bool
    cluster: str


@dataclass(frozen=True, slots=True)
class Block:
    """Best hits with scores from ``low`` up to the next block: ``relevant`` of ``n`` were relevant."""

    low: float
    n: int
    relevant: int


@dataclass(frozen=True, slots=True)
class Curve:
    """The calibration of one mode. ``auroc`` is None where no fold has right and wrong best hits."""

    blocks: tuple[Block, ...]
    n: int
    clusters: int
    auroc: float | None

    def block(self, score: float) -> Block:
        """The block of a score; below the first one it is the first."""
        lows = [b.low for b in self.blocks]
        return self.blocks[max(0, int(np.searchsorted(lows, score, side="right")) - 1)]


@dataclass(frozen=True, slots=True)
class Strength:
    """What to say of a best hit. Not calibrated: ``reason`` says why, and there is neither percentage nor n.

    ``percent`` is 0…100 unrounded. ``band`` is a key of `BANDS`, or None where ``reason`` says why.
    """

    sentence: str
    percent: float | None
    n: int
    band: str | None
    calibrated: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves of one pool and one encoder by mode. ``default_weight`` is the one that "both" was made at."""

    curves: Mapping[str, Curve]
    default_weight: float

    def strength(self, score: float, mode: str, weight: float | None = None) -> Strength:
        """What the score of a best hit means. ``weight`` is the one searched with, None the default."""
        moved = 0.0 if mode != "both" or weight is None else abs(weight - self.default_weight)
        curve = self.curves.get(mode)
        n = 0 if curve is None else curve.n
        if n < FEWEST:
            return not_calibrated(f"{n} judged queries of this kind that were not trained on; {FEWEST} are needed")
        if moved > MOST_MOVED + 1e-9:
            return not_calibrated(
                f"the weight of the picture is {weight:.2f}; match strength was measured at {self.default_weight:.2f}"
            )
        block = curve.block(score)
        share = block.relevant / block.n
        sentence = (
            f"of judged queries whose best hit scored like this, {100 * share:.0f} % had a relevant best hit "
            f"(n = {block.n})"
        )
        if curve.auroc is None or curve.auroc < ENOUGH_AUROC:
            found = "could not be measured" if curve.auroc is None else f"is {curve.auroc:.2f}"
            reason = f"no band: the AUROC of right against wrong best hits {found}; {ENOUGH_AUROC} is needed"
            return Strength(sentence, 100 * share, block.n, None, True, reason)
        band = next(name for name, least in BANDS.items() if share >= least)
        return Strength(sentence, 100 * share, block.n, band, True, "")


def not_calibrated(reason: str) -> Strength:
    """No strength, and why."""
    return Strength(f"not calibrated: {reason}", None, 0, None, False, reason)


def mode_of(query: ComposedQuery) -> str:
    """The mode of a search by the sides that its query has."""
    if query.image is None:
        return "words"
    return "picture" if query.text is None else "both"


def fit(evidence: Sequence[Evidence]) -> Curve:
    """The curve of one mode, from any order of the evidence; ValueError for a score that is not finite."""
    if not all(np.isfinite(e.score) for e in evidence):
        raise ValueError("a best hit has a score that is not a finite number")
    clusters = sorted({e.cluster for e in evidence})
    return Curve(tuple(_blocks(evidence)), len(evidence), len(clusters), _held_out_auroc(evidence, clusters))


def _blocks(evidence: Sequence[Evidence]) -> list[Block]:
    """Isotonic blocks by score, ascending, with rising shares, each of `FEWEST` queries or the only one."""
    from scipy.optimize import isotonic_regression

    if not evidence:
        return []
    # Equal scores cannot be told apart, so they enter as one point.
    scores, point = np.unique([e.score for e in evidence], return_inverse=True)
    n = np.bincount(point)
    relevant = np.bincount(point, [e.relevant for e in evidence]).astype(int)
    starts = isotonic_regression(relevant / n, weights=n).blocks[:-1]
    counts = zip(starts, np.add.reduceat(n, starts), np.add.reduceat(relevant, starts), strict=True)
    blocks = [Block(float(scores[start]), int(a), int(b)) for start, a, b in counts]
    while len(blocks) > 1 and min(b.n for b in blocks) < FEWEST:
        at = min(range(len(blocks)), key=lambda i: blocks[i].n)
        share = blocks[at].relevant / blocks[at].n
        beside = [i for i in (at - 1, at + 1) if 0 <= i < len(blocks)]
        other = min(beside, key=lambda i: abs(blocks[i].relevant / blocks[i].n - share))
        first, second = sorted((at, other))
        a, b = blocks[first], blocks[second]
        blocks[first : second + 1] = [Block(a.low, a.n + b.n, a.relevant + b.relevant)]
    return blocks


def _held_out_auroc(evidence: Sequence[Evidence], clusters: Sequence[str]) -> float | None:
    order = list(clusters)
    random.Random(SEED).shuffle(order)
    fold_of = {cluster: at % FOLDS for at, cluster in enumerate(order)}
    wins = pairs = 0.0
    for fold in range(FOLDS):
        held = [e for e in evidence if fold_of[e.cluster] == fold]
        fitted = Curve(tuple(_blocks([e for e in evidence if fold_of[e.cluster] != fold])), 0, 0, None)
        if not fitted.blocks:
            continue
        shares = [(b.relevant / b.n, e.relevant) for e, b in ((e, fitted.block(e.score)) for e in held)]
        area, count = auroc([s for s, relevant in shares if relevant], [s for s, relevant in shares if not relevant])
        wins, pairs = wins + area * count, pairs + count
    return wins / pairs if pairs else None


def auroc(right: Sequence[float], wrong: Sequence[float]) -> tuple[float, int]:
    """The share of (right, wrong) pairs in which the right one is higher, ties half, and the number of pairs."""
    below = np.sort(np.asarray(wrong, np.float64))
    higher = np.searchsorted(below, right, side="left").sum() + np.searchsorted(below, right, side="right").sum()
    pairs = len(right) * len(wrong)
    return (float(higher) / 2 / pairs if pairs else 0.0), pairs


def judged_top_scores(
    searcher: Searcher, queries: Sequence[Query], mode: str, answered: bool = True, progress: Progress = silent
) -> list[Evidence]:
    """The best hit in the pool of each query that has the sides of ``mode`` and a relevant document, in order.

    Exact, from stored vectors; the query's own id is left out as in a search, and a best hit is relevant if any of
    its copies is. What is not judged counts as not relevant. With ``answered=False`` the relevant documents and
    their copies are taken out of the pool first: the best hit of a question that the pool cannot answer.
    """
    index, pool = searcher.index, searcher.pool
    members = _Members(searcher)
    weight = {"picture": 1.0, "words": 0.0, "both": None}[mode]
    usable = []
    for query in queries:
        grades = pool.collection(query.collection).qrels.get(query.id, {})
        rows = {pool.row_of(query.collection, doc) for doc, grade in grades.items() if grade > 0}
        own = pool.row_of(query.collection, query.id) if searcher.dataset.ignore_identical_ids else None
        if rows - {None, own}:
            usable.append((query, rows - {None, own}, {own} - {None}))
    composed = searcher.stored_queries([query for query, _, _ in usable], weight, progress)
    asked = [(*use, c) for use, c in zip(usable, composed, strict=True) if c is not None and _has_sides(c, mode)]
    at_once = max(1, min(64, _BLOCK_SCORES // (2 * max(1, len(index.exact.vectors)))))
    result = []
    for first in range(0, len(asked), at_once):
        progress("Measuring match strength", first, len(asked))
        block = asked[first : first + at_once]
        shares = index.exact.scores(np.concatenate([c.sides for *_, c in block], axis=1))
        for at, (query, relevant, own, _) in enumerate(block):
            gone = own if answered else own | members.copies(relevant)
            scores = shares[:, 2 * at] + shares[:, 2 * at + 1]
            scores[members.vectors_without(gone)] = -np.inf
            if (top := scores.max()) > -np.inf:
                hit = members.first_hit(np.flatnonzero(scores == top), gone)
                result.append(Evidence(float(top), bool(hit & relevant), cluster_of(query)))
    return result


def _has_sides(query: ComposedQuery, mode: str) -> bool:
    return (mode == "words" or query.image is not None) and (mode == "picture" or query.text is not None)


class _Members:
    """Which rows share a vector and which a content, as a search groups its hits."""

    def __init__(self, searcher: Searcher) -> None:
        index = searcher.index
        self.pool, self.group = searcher.pool, index.group_of_row
        self.vector = np.where(self.group == LEFT_OUT, LEFT_OUT, index.vector_of_group[self.group])
        self.sizes = np.bincount(self.vector[self.vector != LEFT_OUT], minlength=len(index.exact.vectors))

    def copies(self, rows: set[int]) -> set[int]:
        """All searchable rows of the contents of ``rows``."""
        groups = [g for g in self.group[list(rows)] if g != LEFT_OUT]
        return set(np.flatnonzero(np.isin(self.group, groups)).tolist())

    def vectors_without(self, gone: set[int]) -> np.ndarray:
        """The vectors of which no row is left when ``gone`` are taken out."""
        vectors = self.vector[list(gone)] if gone else np.zeros(0, int)
        names, counts = np.unique(vectors[vectors != LEFT_OUT], return_counts=True)
        return names[counts == self.sizes[names]]

    def first_hit(self, vectors: np.ndarray, gone: set[int]) -> set[int]:
        """The rows of the content that a search shows first among equally scored ``vectors``."""
        groups: dict[int, list[int]] = {}
        for row in np.flatnonzero(np.isin(self.vector, vectors)).tolist():
            if row not in gone:
                groups.setdefault(int(self.group[row]), []).append(row)
        return set(max(groups.values(), key=lambda rows: self._name(rows[0])))

    def _name(self, row: int) -> str:
        doc = self.pool.doc(row)
        return trec_id(doc.collection, doc.id)


def calibrate(
    searcher: Searcher,
    queries_by_mode: Mapping[str, Sequence[Query]],
    unseen: Callable[[Query], bool],
    progress: Progress = silent,
) -> Calibration:
    """Curves from the queries of each mode for which ``unseen`` is true: never trained on."""
    curves = {
        mode: fit(judged_top_scores(searcher, [q for q in queries if unseen(q)], mode, progress=progress))
        for mode, queries in queries_by_mode.items()
    }
    return Calibration(curves, searcher.default_weight)


def request_of(searcher: Searcher) -> dict[str, Any]:
    """What a stored calibration is made for: no other data, judgements, pool, encoder or default weight.

    Where the evidence comes from other encoders (fold heads), the caller adds their plan.
    """
    return {
        "data_id": searcher.dataset.data_id,
        "qrels": searcher.dataset.qrels_name,
        "task": searcher.task,
        "encoder_id": searcher.encoder.encoder_id,
        "default_weight": searcher.default_weight,
    }


def save(path: Path, request: Mapping[str, Any], calibration: Calibration) -> None:
    """Write ``path`` (`FILE` beside the pool's index) whole or not at all."""
    curves = {mode: dataclasses.asdict(curve) for mode, curve in calibration.curves.items()}
    body = {"format": FORMAT, "request": dict(request), "curves": curves, "default_weight": calibration.default_weight}
    write_bytes(path, json.dumps(body, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n")


def open_calibration(path: Path, request: Mapping[str, Any]) -> Calibration:
    """Read what `save` wrote; raise `ManifestError` where it is absent, damaged or made for another request."""
    try:
        body = json.loads(path.read_bytes())
        if body["format"] != FORMAT or canonical(body["request"]) != canonical(dict(request)):
            raise ManifestError(f"{path} was made for another request or by another version.")
        curves = {
            mode: Curve(tuple(Block(**block) for block in c["blocks"]), c["n"], c["clusters"], c["auroc"])
            for mode, c in body["curves"].items()
        }
        return Calibration(curves, body["default_weight"])
    except FileNotFoundError:
        raise ManifestError(f"{path} is missing: match strength was not calibrated here yet.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(f"{path} cannot be read ({error!r}); delete it to have it made again.") from None
