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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.records import Strength
from core.search.compose import ComposedQuery
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
FILE, FORMAT = "strength.json", 2


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
    """The calibration of one mode.

    ``auroc`` is None where no fold has right and wrong best hits. ``weak_answered`` and ``weak_unanswered``: the
    shares of held-out queries called weak, as they are and with their relevant documents taken out of the pool
    (``n_unanswered`` of them); None where they were not measured.
    """

    blocks: tuple[Block, ...]
    n: int
    clusters: int
    auroc: float | None
    weak_answered: float | None = None
    weak_unanswered: float | None = None
    n_unanswered: int = 0

    def block(self, score: float) -> Block:
        """The block of a score; below the first one it is the first."""
        lows = [b.low for b in self.blocks]
        return self.blocks[max(0, int(np.searchsorted(lows, score, side="right")) - 1)]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves of one pool and one encoder by mode. ``default_weight`` is the one that "both" was made at.

    ``source`` says whose scores they are: those of the encoder itself, or of the heads of a fold plan.
    """

    curves: Mapping[str, Curve]
    default_weight: float
    source: str = ""

    def strength(self, score: float, mode: str, weight: float | None = None, filtered: bool = False) -> Strength:
        """What the score of a best hit means. ``weight`` is the one searched with, None the default.

        A filtered search gets no band: the judged queries were searched in the whole pool.
        """
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
        if filtered:
            reason = "no band: the judged queries were searched without filters"
            return Strength(sentence, 100 * share, block.n, None, True, reason)
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


def fit(evidence: Sequence[Evidence], unanswered: Sequence[Evidence] = ()) -> Curve:
    """The curve of one mode, from any order of the evidence; ValueError for a score that is not finite.

    ``unanswered``: the best hits of queries after their relevant documents were taken out. They do not move the
    curve; they only show how many of them it calls weak.
    """
    if not all(np.isfinite(e.score) for e in (*evidence, *unanswered)):
        raise ValueError("a best hit has a score that is not a finite number")
    clusters = sorted({e.cluster for e in evidence})
    folds = _held_out(evidence, unanswered, clusters)
    wins = pairs = 0.0
    for shares, _ in folds:
        area, count = auroc([s for s, relevant in shares if relevant], [s for s, relevant in shares if not relevant])
        wins, pairs = wins + area * count, pairs + count
    answered = [share < BANDS["fair"] for shares, _ in folds for share, _ in shares]
    planted = [share < BANDS["fair"] for _, shares in folds for share in shares]
    return Curve(
        tuple(_blocks(evidence)),
        len(evidence),
        len(clusters),
        wins / pairs if pairs else None,
        float(np.mean(answered)) if answered and planted else None,
        float(np.mean(planted)) if answered and planted else None,
        len(planted),
    )


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


def _held_out(
    evidence: Sequence[Evidence], unanswered: Sequence[Evidence], clusters: Sequence[str]
) -> list[tuple[list[tuple[float, bool]], list[float]]]:
    """By fold of topics: (share, relevant) of its evidence and share of its unanswered queries, each by the curve of
    the other folds."""
    order = list(clusters)
    random.Random(SEED).shuffle(order)
    fold_of = {cluster: at % FOLDS for at, cluster in enumerate(order)}
    result = []
    for fold in range(FOLDS):
        blocks = tuple(_blocks([e for e in evidence if fold_of[e.cluster] != fold]))
        if not blocks:
            continue
        fitted = Curve(blocks, 0, 0, None)

        def share(e: Evidence, fitted: Curve = fitted) -> float:
            block = fitted.block(e.score)
            return block.relevant / block.n

        held = [(share(e), e.relevant) for e in evidence if fold_of[e.cluster] == fold]
        result.append((held, [share(e) for e in unanswered if fold_of.get(e.cluster) == fold]))
    return result


def auroc(right: Sequence[float], wrong: Sequence[float]) -> tuple[float, int]:
    """The share of (right, wrong) pairs in which the right one is higher, ties half, and the number of pairs."""
    below = np.sort(np.asarray(wrong, np.float64))
    higher = np.searchsorted(below, right, side="left").sum() + np.searchsorted(below, right, side="right").sum()
    pairs = len(right) * len(wrong)
    return (float(higher) / 2 / pairs if pairs else 0.0), pairs


def save(path: Path, request: Mapping[str, Any], calibration: Calibration) -> None:
    """Write ``path`` (`FILE` beside the pool's index) whole or not at all."""
    curves = {mode: dataclasses.asdict(curve) for mode, curve in calibration.curves.items()}
    body = {"format": FORMAT, "request": dict(request), "curves": curves}
    body |= {"default_weight": calibration.default_weight, "source": calibration.source}
    write_bytes(path, json.dumps(body, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n")


def open_calibration(path: Path, request: Mapping[str, Any]) -> Calibration:
    """Read what `save` wrote; raise `ManifestError` where it is absent, damaged or made for another request."""
    try:
        body = json.loads(path.read_bytes())
        if body["format"] != FORMAT or canonical(body["request"]) != canonical(dict(request)):
            raise ManifestError(f"{path} was made for another request or by another version.")
        curves = {
            mode: Curve(**{**c, "blocks": tuple(Block(**block) for block in c["blocks"])})
            for mode, c in body["curves"].items()
        }
        return Calibration(curves, body["default_weight"], body["source"])
    except FileNotFoundError:
        raise ManifestError(f"{path} is missing: match strength was not calibrated here yet.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(f"{path} cannot be read ({error!r}); delete it to have it made again.") from None
