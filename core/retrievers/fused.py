"""Hybrids: two stored runs of one place, fused query by query. Not available where a part is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.data.dataset import silent
from core.embed.pipeline import Progress
from core.models import specs
from core.models.specs import ModelSpec
from core.retrievers.base import Ranked, Recipe, Retriever
from core.retrievers.order import Rankings, trec_order
from core.retrievers.place import Place
from core.search.fuse import FUSIONS, rrf, zsum

GREY = "#6b7280"
"""Colour of hybrids beyond the one that has its own."""


class Fused:
    """``parts`` are the two retrievers, ``ranked`` gives a part's stored ranking of a place.

    Made for a place only where both parts have a run: a hybrid is never the other part alone.
    """

    def __init__(
        self, kind: str, parts: tuple[Retriever, Retriever], ranked: Callable[[Retriever, Place], Ranked]
    ) -> None:
        if kind not in FUSIONS:
            raise ValueError(f"There is no fusion {kind!r}; there are {', '.join(FUSIONS)}.")
        self.kind, self.parts, self._ranked = kind, parts, ranked
        self.spec = _spec(kind, [part.spec for part in parts])
        self.stands_for = ""

    def recipe(self, task: str) -> Recipe:
        """The parts' encoders, weights and fold plans decide, and how they are fused."""
        recipes = [part.recipe(task) for part in self.parts]
        names = [part.spec.name for part in self.parts]
        weights = [f"{name} {r.fusion} {r.weight}" for name, r in zip(names, recipes, strict=True)]
        return Recipe(
            encoder_ids=tuple(name for recipe in recipes for name in recipe.encoder_ids),
            fusion=f"{self.kind} of {' and '.join(weights)}",
            centring=", ".join(recipe.centring for recipe in recipes),
            fold_plan="".join(recipe.fold_plan for recipe in recipes),
        )

    def cannot(self, place: Place) -> str:
        """What its parts cannot do."""
        reasons = [(part.spec.name, part.cannot(place)) for part in self.parts]
        return next((f"N/A without {name}: {reason.removeprefix('N/A: ')}" for name, reason in reasons if reason), "")

    def rank(self, place: Place, depth: int, progress: Progress = silent) -> Ranked:
        """See `core.retrievers.base.Retriever.rank`."""
        progress(f"Fusing the runs of {place.name}", 0, 0)
        found = [self._ranked(part, place) for part in self.parts]
        floors = [ranked.facts.get("floor") for ranked in found]
        rankings: Rankings = {}
        for name in place.query_ids:
            lists = [ranked.rankings.get(name, []) for ranked in found]
            scores = rrf(lists) if self.kind == "rrf" else zsum(lists, floors)
            rankings[name] = trec_order(scores.items())[:depth]
        return Ranked(rankings, {"parts": [part.spec.name for part in self.parts]})


def _spec(kind: str, parts: list[ModelSpec]) -> ModelSpec:
    """A row for the table of models, made of those of the parts."""
    first, second = parts
    return replace(
        first,
        name=f"{kind}:{first.name}+{second.name}",
        model_id=f"{kind} of {first.model_id} and {second.model_id}",
        revision=f"{first.revision}; {second.revision}",
        licence=" and ".join(dict.fromkeys((first.licence, second.licence))),
        parameters=first.parameters + second.parameters,
        paradigm="hybrid",
        sides=tuple(sorted({*first.sides, *second.sides})),
        adapter="",
        requires=tuple(dict.fromkeys((*first.requires, *second.requires))),
        colour=GREY,
        live=False,
    )


def hybrid_of(name: str) -> tuple[str, tuple[str, str]] | None:
    """Fusion and parts of a name such as ``rrf:bm25+medlite``; None for any other name, KeyError for unknown parts."""
    kind, colon, rest = name.partition(":")
    if not colon or kind not in FUSIONS:
        return None
    parts = tuple(rest.split("+"))
    if len(parts) != 2 or parts[0] == parts[1]:
        raise KeyError(f"{name!r}: name two different models, for example rrf:bm25+medlite.")
    for part in parts:
        specs.get(part)
    return kind, parts
