"""Cross-fitting: on the data a model was trained on, each query is answered by a head that saw neither its case nor
its topic.

Five heads are trained on four fifths of the topics each. They live in the workspace, each with its own
``encoder_id``, and are made when missing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.adapt.contrastive import Progress, Recipe
from core.adapt.make import CASES, FILES, Material, make_head, material
from core.adapt.pairs import case_of, queries_of
from core.data.dataset import DataSet
from core.data.topics import cluster_of
from core.embed.pipeline import Pipeline
from core.models.medlite import MedliteEncoder
from core.records import Query
from core.store import manifest
from core.store.atomic import atomic_folder, remove_leftovers
from core.store.lock import lock
from core.store.workspace import Workspace

FOLDS = 5
SEED = 20
FORMAT = 1
"""Raise when heads are made differently: stored ones of another format are made again."""


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """Which fold answers what. ``cases``: the fold 0 … folds−1 of each case by name; ``topics``: that of each topic,
    spelled as `core.data.topics.cluster_of` does."""

    data_id: str
    folds: int
    seed: int
    topics: Mapping[str, int]
    cases: Mapping[str, int]

    def fold_of(self, name: str) -> int:
        """The fold of a case or topic; KeyError when the data set's queries name neither."""
        if name in self.cases:
            return self.cases[name]
        return self.topics[name if name in self.topics else f"cluster:{name}"]

    def of_query(self, query: Query) -> int:
        """The fold that answers a query of the data set."""
        return self.topics[cluster_of(query)]

    def request(self, recipe: Recipe, towers: Mapping[str, str]) -> dict[str, Any]:
        """What the fold heads are made from; their manifests hold it."""
        return {
            "format": FORMAT,
            "data_id": self.data_id,
            "folds": self.folds,
            "seed": self.seed,
            "recipe": recipe.as_dict(),
            "towers": dict(towers),
        }


def fold_plan(dataset: DataSet, folds: int = FOLDS, seed: int = SEED) -> FoldPlan:
    """Deal the topics of all queries, sorted and shuffled by ``seed``, into ``folds`` folds.

    Topics that share a case stay together. ValueError for fewer than two folds or more folds than topics.
    """
    root: dict[str, str] = {}

    def find(topic: str) -> str:
        while root[topic] != topic:
            topic = root[topic]
        return topic

    first: dict[str, str] = {}
    for query in queries_of(dataset):
        topic, case = cluster_of(query), case_of(query)
        root.setdefault(topic, topic)
        one, other = sorted((find(first.setdefault(case, topic)), find(topic)))
        root[other] = one
    names = sorted({find(topic) for topic in root})
    if not 2 <= folds <= len(names):
        raise ValueError(f"{folds} folds over {len(names)} topics: give between 2 and as many folds as topics.")
    random.Random(seed).shuffle(names)
    fold = {name: at % folds for at, name in enumerate(names)}
    return FoldPlan(
        dataset.data_id,
        folds,
        seed,
        {topic: fold[find(topic)] for topic in sorted(root)},
        {case: fold[find(topic)] for case, topic in sorted(first.items())},
    )


def fold_encoders(
    dataset: DataSet,
    workspace: Workspace,
    progress: Progress,
    *,
    folds: int = FOLDS,
    seed: int = SEED,
    recipe: Recipe | None = None,
) -> list[MedliteEncoder]:
    """The encoder of each fold, in order; heads that are missing are trained.

    Encoder i saw no topic of fold i, so it answers the queries with ``fold_plan(...).of_query(query) == i``.
    """
    plan, recipe = fold_plan(dataset, folds, seed), recipe or Recipe()
    towers = {side: tower.encoder_id for side, tower in MedliteEncoder().towers.items()}
    request = plan.request(recipe, towers)
    base = workspace.path("heads", dataset.data_id, manifest.short_hash(request))
    given: Material | None = None
    held = workspace.path("locks", f"heads-{dataset.data_id}")
    with lock(held, "training fold heads", wait=float("inf"), say=lambda text: progress(text, 0, 0)):
        remove_leftovers(base)
        for number in range(folds):
            folder = base / f"fold-{number}"
            try:
                manifest.read(folder, {**request, "fold": number}, hashes=True)
                continue
            except manifest.ManifestError:
                given = given or material(dataset, "", workspace, progress)
            hidden = {topic for topic, fold in plan.topics.items() if fold == number}
            with atomic_folder(folder) as temporary:
                make_head(
                    given, temporary, seed + number, _named(progress, number, folds), recipe=recipe, without=hidden
                )
                manifest.write(temporary, {**request, "fold": number}, list(FILES))
    return [MedliteEncoder(head_folder=base / f"fold-{number}") for number in range(folds)]


def _named(progress: Progress, number: int, folds: int) -> Progress:
    return lambda what, done, total: progress(f"Fold {number + 1} of {folds}: {what}", done, total)


def seen(dataset: DataSet, card: Path, workspace: Workspace) -> set[str]:
    """The cases of the data set that a model names as training data; ``card`` is the folder of its model card.

    A case is known again when one of its queries' pictures has the bytes of a picture the card names, whatever the
    case is called here. An encoder without ``training_cases.json`` has seen nothing.
    """
    path = card / CASES
    if not path.is_file():
        return set()
    named = {sha for case in json.loads(path.read_bytes()).values() for sha in case["pictures"]}
    found: set[str] = set()
    by_collection: dict[str, list[Query]] = {}
    for query in queries_of(dataset):
        by_collection.setdefault(query.collection, []).append(query)
    pipeline = Pipeline(MedliteEncoder().towers["image"], workspace)
    for key, queries in by_collection.items():
        keys = pipeline.picture_keys(dataset.collections[key], [r for q in queries for r in q.images])
        found |= {case_of(q) for q in queries if any(keys.get(r) in named for r in q.images)}
    return found
