"""Shared by the tests of failure analysis: a small data set written line by line, and stored runs ranked by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from core.analyze.desk import Desk
from core.data.dataset import DataSet, open_dataset
from core.evaluate.make import ABLATION_DEPTH, DEPTH, Made, make_run
from core.media.phash import Hashes
from core.models import specs
from core.retrievers.ablated import VARIANTS, weight_of
from core.retrievers.base import Ranked, Recipe
from core.retrievers.order import trec_order
from core.retrievers.place import Place
from core.store.workspace import Workspace, open_workspace

TASK = "case_study"
META = {"specialty": "Neurology", "modality": "CT"}

Key = tuple[str, str]
Ranking = Sequence[tuple[Key, float]]
"""Documents as (domain, id) with their scores, by rank."""


class Told:
    """A retriever that ranks as it is told: ``rankings[domain, query]``, other queries have no hit.

    It is stored by the project's own `make_run`, under the name of any model.
    """

    stands_for = ""

    def __init__(
        self,
        model: str,
        rankings: Mapping[Key, Ranking],
        variant: str = "full",
        facts: dict | None = None,
        **recipe: Any,
    ) -> None:
        self.spec = replace(specs.get("medlite"), name=model, **({} if model in specs.SPECS else {"model_id": model}))
        if model in specs.SPECS:
            self.spec = specs.get(model)
        self.rankings, self.facts = rankings, facts or {}
        two_sided = "image" in self.spec.sides
        made = {"encoder_ids": (f"{model} encoder",), "fusion": "centred" if two_sided else "none", "weight": 0.6}
        made |= {"variant": variant} | recipe
        self._recipe = Recipe(**(made | {"weight": weight_of(variant, made["weight"])}))

    def recipe(self, task: str) -> Recipe:
        return self._recipe

    def cannot(self, place: Place) -> str:
        return ""

    def rank(self, place: Place, depth: int, progress: Callable) -> Ranked:
        found = {}
        for query, name in zip(place.queries, place.query_ids, strict=True):
            pairs: dict[str, float] = {}
            for (domain, identity), score in self.rankings.get((query.collection.partition("/")[2], query.id), ()):
                if place.is_pool or place.name == f"{TASK}/{domain}":
                    row = place.pool.row_of(f"{TASK}/{domain}", identity)
                    pairs.setdefault(place.ids[place.answer_of_row[row]], score)
            found[name] = trec_order(pairs.items())[:depth]
        return Ranked(found, self.facts)


@dataclass
class Study:
    """A data set of one task in the making; `open` writes it, `store` ranks and stores a run of it.

    ``ranked[variant][domain, query]`` are the rankings of the variants of one model.
    """

    root: Path
    workspace: Workspace
    ignore_identical_ids: bool = True
    queries: dict[str, list[dict]] = field(default_factory=dict)
    docs: dict[str, list[dict]] = field(default_factory=dict)
    qrels: dict[str, list[tuple]] = field(default_factory=dict)
    ranked: dict[str, dict[Key, Ranking]] = field(default_factory=dict)

    def picture(self, name: str, pixels: np.ndarray | bytes) -> str:
        path = self.root / "images" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(pixels, bytes):
            path.write_bytes(pixels)
        else:
            Image.fromarray(pixels.astype(np.uint8)).save(path)
        return f"images/{name}.png"

    def query(self, name: str, text: str, picture: str | list | None = None, domain: str = "Head", **meta: Any) -> None:
        row = {"_id": name, "caption": text, "meta": _present(META | {"cluster": name} | meta)}
        self.queries.setdefault(domain, []).append(row | ({"image_path": picture} if picture else {}))

    def doc(self, name: str, text: str, picture: str | None = None, domain: str = "Head", **meta: Any) -> None:
        row = {"_id": name, "text": text, "meta": _present(META | meta)}
        self.docs.setdefault(domain, []).append(row | ({"image_path": picture} if picture else {}))

    def judge(self, query: str, doc: str, grade: int, domain: str = "Head") -> None:
        self.qrels.setdefault(domain, []).append((query, doc, grade))

    def rank(
        self,
        query: str,
        docs: Sequence[str | Key],
        variant: str = "full",
        domain: str = "Head",
        scores: Sequence[float] = (),
    ) -> None:
        keys = [(domain, doc) if isinstance(doc, str) else doc for doc in docs]
        made = list(scores) or [float(1000 - at) for at in range(len(keys))]
        self.ranked.setdefault(variant, {})[domain, query] = list(zip(keys, made, strict=True))

    def open(self, shuffled: int | None = None, qrels: str = "test") -> DataSet:
        """Write every file, with its lines in an order of this seed, and open the data set."""
        order = random.Random(shuffled)
        for domain in sorted({*self.queries, *self.docs}):
            parts = [list(rows.get(domain, ())) for rows in (self.queries, self.docs, self.qrels)]
            if shuffled is not None:
                for rows in parts:
                    order.shuffle(rows)
            folder = self.root / TASK / domain
            (folder / "qrels").mkdir(parents=True, exist_ok=True)
            for name, rows in zip(("queries", "corpus"), parts, strict=False):
                (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in parts[2])]
            (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
        about = {"name": "Study", "ignore_identical_ids": self.ignore_identical_ids}
        (self.root / "benchmark.json").write_text(json.dumps(about))
        return open_dataset(self.root, self.workspace, qrels)

    def places(self, dataset: DataSet, scope: str = "pool") -> list[Place]:
        members = [None] if scope == "pool" else [c.key for c in dataset.pool(TASK).collections]
        return [Place(dataset, TASK, self.workspace, member) for member in members]

    def store(
        self,
        dataset: DataSet,
        model: str = "medlite",
        scope: str = "pool",
        ablation: bool = False,
        depth: int = DEPTH,
        rankings: Mapping[Key, Ranking] | None = None,
        index_kind: str = "exact",
        **recipe: Any,
    ) -> list[Made]:
        """The stored runs of the full ranking, and with ``ablation`` those of its variants."""
        made = []
        for place in self.places(dataset, scope):
            told = Told(model, self.ranked["full"] if rankings is None else rankings, **recipe)
            made.append(make_run(told, place, self.workspace, depth=depth, index_kind=index_kind))
            for variant in VARIANTS if ablation else ():
                told = Told(model, self.ranked.get(variant, {}), variant, **recipe)
                made.append(make_run(told, place, self.workspace, depth=ABLATION_DEPTH))
        return made

    def desk(self, dataset: DataSet) -> Desk:
        """The desk over the stored runs, as the page opens it."""
        return Desk(dataset, self.workspace, Hashes(self.workspace.path("thumbnails")))


def _present(meta: dict) -> dict:
    return {name: value for name, value in meta.items() if value is not None}


def textured(seed: int, noise: int = 0) -> np.ndarray:
    """A picture with a look of its own; with a little noise it is another file that looks the same."""
    pixels = np.kron(np.random.default_rng(seed).integers(0, 200, (8, 8)), np.ones((16, 16), int))
    return pixels + np.random.default_rng(99).integers(0, noise + 1, pixels.shape)


@pytest.fixture(scope="session")
def picture_of() -> Callable[..., np.ndarray]:
    """`textured`."""
    return textured


@pytest.fixture(scope="session")
def new_study(tmp_path_factory) -> Callable[..., Study]:
    """Makes an empty `Study` with a folder and a workspace of its own."""

    def make(**settings: Any) -> Study:
        base = tmp_path_factory.mktemp("study")
        return Study(base / "data", open_workspace(str(base / "workspace")), **settings)

    return make


@pytest.fixture
def small(new_study, picture_of) -> Study:
    """Two domains of six queries and twelve documents each; the relevant document of query n stands at rank n + 1,
    and documents of the other domain at every second rank. Query 5 is of words only and finds nothing. Queries 0 and 1,
    2 and 3, 4 and 5 are of one cluster."""
    study = new_study()
    for domain, other in (("Head", "Thorax"), ("Thorax", "Head")):
        specialty = {"Head": "Neurology", "Thorax": "Cardiology"}[domain]
        for at in range(12):
            study.doc(f"d{at}", f"passage {at} of {domain}", domain=domain, specialty=specialty)
        for at in range(6):
            meta = {"specialty": specialty, "cluster": f"{domain} {at // 2}", "case": f"{domain} {at}"}
            picture = None if at == 5 else study.picture(f"{domain} {at}", picture_of(at + 100 * len(domain)))
            study.query(f"q{at}", f"What is number {at}?", picture, domain, **meta)
            study.judge(f"q{at}", f"d{at}", 2, domain)
            study.judge(f"q{at}", "d11", 0, domain)
            mixed = [(d, f"d{i}") for i in range(6, 11) for d in (domain, other)]
            hits = [*mixed[:at], (domain, f"d{at}"), *mixed[at:]] if at < 5 else mixed
            study.rank(f"q{at}", hits, domain=domain)
            for variant in VARIANTS:
                study.rank(f"q{at}", hits if at < 5 else [], variant, domain)
    return study
