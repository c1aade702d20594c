"""The modality ablation: a two-sided encoder asked with a part of each query, or with the pictures of another one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from core.data.dataset import silent
from core.data.topics import cluster_of
from core.embed.pipeline import Progress
from core.models import specs
from core.records import Query
from core.retrievers.base import Ranked, Recipe, Retriever
from core.retrievers.dense import Dense
from core.retrievers.place import Place
from core.search.compose import ComposedQuery, compose
from core.search.searcher import Searcher

SWAPS = 5
"""Runs with swapped pictures, a seed each; what is said of swapping is the mean over them."""

PICTURE, WORDS, SWAPPED = "picture", "words", "swapped"
VARIANTS = (PICTURE, WORDS, *(f"{SWAPPED}-{seed}" for seed in range(SWAPS)))

Composed = list[ComposedQuery | None]


class Ablated:
    """One variant of an encoder: a `Retriever` of its own.

    ``picture`` and ``words`` ask with one side of each query. ``swapped-<seed>`` asks with the words and, at the
    default weight, the pictures of another query of another cluster, drawn from those that the same answerer answers,
    so that a fold head saw neither. A query that lacks a side, or has no other to swap with, has an empty ranking.
    ``known`` keeps composed queries, so that the variants of one encoder and place share them.
    """

    def __init__(self, dense: Dense, variant: str, known: dict[tuple[str, str], Composed] | None = None) -> None:
        self.dense = dense if dense.index_kind == "exact" else Dense(dense.fair)
        self.variant = variant
        self.spec, self.stands_for = dense.spec, dense.stands_for
        self._known = {} if known is None else known

    def recipe(self, task: str) -> Recipe:
        """That of the encoder, with the weight that the variant leaves."""
        recipe = self.dense.recipe(task)
        return dataclasses.replace(recipe, variant=self.variant, weight=weight_of(self.variant, recipe.weight))

    def cannot(self, place: Place) -> str:
        """As the encoder."""
        return self.dense.cannot(place)

    def rank(self, place: Place, depth: int, progress: Progress = silent) -> Ranked:
        """See `core.retrievers.base.Retriever.rank`; exact. ``both_sides`` of the facts counts two-sided queries."""
        seed = self.variant.partition("-")[2]
        generator = np.random.default_rng(int(seed)) if seed else None  # one for all answerers
        two_sided = 0

        def ask(searcher: Searcher, queries: Sequence[Query]) -> Composed:
            nonlocal two_sided
            key = (place.name, searcher.encoder.encoder_id)
            if key not in self._known:
                self._known[key] = searcher.stored_queries(queries, None, progress)
            composed = self._known[key]
            two_sided += sum(map(_has_both, composed))
            if generator is None:
                return [_one_side(one, self.variant) for one in composed]
            return swapped(queries, composed, generator)

        ranked = self.dense.rank_asked(place, depth, ask, progress)
        facts = {**ranked.facts, "both_sides": two_sided}
        if seed:
            facts["seed"] = int(seed)
        else:
            facts["weights"] = [weight_of(self.variant, None)] * len(facts["weights"])
        return Ranked(ranked.rankings, facts)


def swapped(
    queries: Sequence[Query], composed: Sequence[ComposedQuery | None], generator: np.random.Generator
) -> Composed:
    """Each query with the pictures of another one of another cluster; None where it lacks a side or there is none.

    Queries draw in the order of (collection, id), from those with a picture in the same order.
    """
    order = sorted(range(len(queries)), key=lambda at: (queries[at].collection, queries[at].id))
    givers = [at for at in order if composed[at] is not None and composed[at].image is not None]
    clusters = np.array([cluster_of(queries[at]) for at in givers], object)
    result: Composed = [None] * len(queries)
    for at in order:
        one = composed[at]
        if not _has_both(one):
            continue
        others = np.flatnonzero(clusters != cluster_of(queries[at]))
        if len(others):
            other = composed[givers[others[generator.integers(len(others))]]]
            result[at] = compose(other.image, one.text, one.weight)
    return result


def weight_of(variant: str, default: float | None) -> float | None:
    """The weight of the picture under a variant."""
    return {PICTURE: 1.0, WORDS: 0.0}.get(variant, default)


def why_not(retriever: Retriever) -> str:
    """Why there is no ablation of a retriever: "" for an encoder of pictures and words."""
    return why_not_named(retriever.spec.name, "centred" if isinstance(retriever, Dense) else "")


def why_not_named(model: str, fusion: str) -> str:
    """The same of what a stored run says."""
    if ":" in model:
        return f"N/A: {model} is a hybrid; its parts are ablated on their own"
    if fusion == "imported":
        return f"N/A: the runs of {model} were imported, and it cannot be asked again here"
    spec = specs.SPECS.get(model)
    if fusion != "centred" or (spec is not None and len(spec.sides) < 2):
        return f"N/A: {model} reads one side of a query, so there is nothing to leave out or to swap"
    return ""


def _has_both(one: ComposedQuery | None) -> bool:
    return one is not None and one.image is not None and one.text is not None


def _one_side(one: ComposedQuery | None, variant: str) -> ComposedQuery | None:
    if not _has_both(one):
        return None
    return compose(one.image, None, 1.0) if variant == PICTURE else compose(None, one.text, 0.0)
