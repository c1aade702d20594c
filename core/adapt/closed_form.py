"""Closed-form alignment: ridge regression from picture features to text vectors, its penalty chosen over topics."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.models.head import Head

DEPTH = 10

_ByCase = dict[Hashable, list[float]]


@dataclass(frozen=True, slots=True)
class Score:
    """Held-out retrieval at one penalty: Success@10 by cases (0…1) and the number of cases behind each mean."""

    penalty: float
    text_to_image: float
    text_cases: int
    image_to_image: float
    image_cases: int

    @property
    def mean(self) -> float:
        """What the penalty is chosen by."""
        return (self.text_to_image + self.image_to_image) / 2


@dataclass(frozen=True, slots=True)
class ClosedFormHead:
    """A fitted head, its chosen ``penalty`` (λ), the table it was chosen from, and how the folds were drawn."""

    head: Head
    penalty: float
    table: tuple[Score, ...]
    folds: int
    repeats: int
    seed: int


def assign_folds(groups: Sequence[Hashable], folds: int, seed: int) -> np.ndarray:
    """The fold ``0 … folds-1`` of each row, ``int [n]``: groups stay whole; sorted, shuffled by ``seed``, dealt out."""
    distinct = sorted(set(groups))
    if not 2 <= folds <= len(distinct):
        raise ValueError(f"{folds} folds over {len(distinct)} groups: give between 2 and as many folds as groups.")
    order = np.random.default_rng(seed).permutation(len(distinct))
    fold_of = {distinct[place]: number % folds for number, place in enumerate(order)}
    return np.array([fold_of[group] for group in groups])


def held_out(groups: Sequence[Hashable], folds: int, repeats: int, seed: int) -> Iterator[np.ndarray]:
    """The rows held out, ``bool [n]``, for each fold of each repeat; repeat r draws its folds with ``seed + r``."""
    for repeat in range(repeats):
        fold = assign_folds(groups, folds, seed + repeat)
        for number in range(folds):
            yield fold == number


def ridge_path(features: np.ndarray, targets: np.ndarray, penalties: Sequence[float]) -> list[Head]:
    """W = (XᵀX + λI)⁻¹XᵀY on centred X [n, p] and Y [n, q] for each λ, from one eigendecomposition in float64."""
    x, y = features.astype(np.float64), targets.astype(np.float64)
    x_mean, y_mean = x.mean(0), y.mean(0)
    x, y = x - x_mean, y - y_mean
    values, vectors = np.linalg.eigh(x.T @ x)
    projected = vectors.T @ (x.T @ y)
    values = np.maximum(values, 0)[:, None]
    single = np.float32
    return [
        Head((vectors @ (projected / (values + p))).astype(single), x_mean.astype(single), y_mean.astype(single))
        for p in penalties
    ]


def case_success(queries: np.ndarray, documents: np.ndarray, cases: np.ndarray, own: bool) -> dict[Hashable, float]:
    """Success@10 of each case: the share of its queries with a document of the case among the first ten.

    Row i of ``queries`` and of ``documents`` [n, d] belongs to ``cases[i]``. With ``own`` False a query's own row is no
    answer, and a case with one row has no query. Equal scores rank in row order.
    """
    scores = queries @ documents.T
    if not own:
        np.fill_diagonal(scores, -np.inf)
    top = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    same = cases[top] == cases[:, None]
    if not own:
        same &= top != np.arange(len(cases))[:, None]
    hits = same.any(axis=1)
    kept = {c: cases == c for c in dict.fromkeys(cases.tolist())}
    return {c: float(hits[rows].mean()) for c, rows in kept.items() if own or rows.sum() > 1}


def fit(
    features: np.ndarray,
    targets: np.ndarray,
    groups: Sequence[Hashable],
    penalties: Sequence[float],
    *,
    cases: Sequence[Hashable] | None = None,
    folds: int = 5,
    repeats: int = 5,
    seed: int = 0,
) -> ClosedFormHead:
    """Fit a head to pairs: ``features [n, p]`` of pictures, ``targets [n, q]`` vectors of their captions.

    The penalty with the best mean of text→image and image→image Success@10 wins (the larger one on a tie): in each
    fold the held-out captions and pictures search the held-out pictures with a head that saw none of their groups
    (topics); a picture of the same case (default: of the same group) is a hit; queries are averaged by case, then
    cases over all folds. One draw of folds moves the result more than neighbouring penalties differ, hence
    ``repeats`` draws, averaged by case. The head returned is fitted to all pairs.
    """
    if not len(features) == len(targets) == len(groups):
        raise ValueError(f"{len(features)} features, {len(targets)} targets, {len(groups)} groups: give one per pair.")
    names = {case: number for number, case in enumerate(dict.fromkeys(cases if cases is not None else groups))}
    codes = np.array([names[case] for case in (cases if cases is not None else groups)])
    found: list[tuple[_ByCase, _ByCase]] = [({}, {}) for _ in penalties]
    for held in held_out(groups, folds, repeats, seed):
        heads = ridge_path(features[~held], targets[~held], penalties)
        for head, (by_text, by_image) in zip(heads, found, strict=True):
            images, texts = head.images(features[held]), head.texts(targets[held])
            collect(by_text, case_success(texts, images, codes[held], own=True))
            collect(by_image, case_success(images, images, codes[held], own=False))
    table = tuple(
        Score(float(p), mean_of_cases(by_text), len(by_text), mean_of_cases(by_image), len(by_image))
        for p, (by_text, by_image) in zip(penalties, found, strict=True)
    )
    best = max(table, key=lambda score: (score.mean, score.penalty))
    return ClosedFormHead(ridge_path(features, targets, [best.penalty])[0], best.penalty, table, folds, repeats, seed)


def collect(by_case: _ByCase, values: dict[Hashable, float]) -> None:
    """Add one fold's values to those of the repeats before."""
    for case, value in values.items():
        by_case.setdefault(case, []).append(value)


def mean_of_cases(by_case: _ByCase) -> float:
    """The mean over cases of each case's mean over repeats; 0 where there is no case."""
    return float(np.mean([np.mean(values) for values in by_case.values()])) if by_case else 0.0
