"""Make one head: pairs and topics in; ``head.safetensors``, ``config.json`` and the evidence out."""

from __future__ import annotations

import json
import random
from collections.abc import Collection as Names
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from core.adapt.choose import SHARES, WEIGHTS, InnerTask, choose, curves, inner_tasks
from core.adapt.contrastive import Items, Progress, Recipe, inner_success, train
from core.adapt.features import Features
from core.adapt.pairs import Pair, Pairs, case_record, queries_of, training_pairs
from core.data.dataset import DataSet
from core.models.frozen import TOWER
from core.models.head import Head, as_stored, write_head
from core.models.medlite import CONFIG, HEAD, MedliteEncoder
from core.store.atomic import write_bytes
from core.store.manifest import sha256_file
from core.store.workspace import Workspace

INNER = 0.1
"""Share of the training topics that the head is not fitted on."""

FEWEST_TOPICS = 20
CASES = "training_cases.json"
EVIDENCE = "build.json"
FILES = (HEAD, CONFIG, CASES, EVIDENCE)


class AdaptError(Exception):
    """A head cannot be trained on this; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Material:
    """A data set opened for training: its pairs of one split and the towers' features."""

    dataset: DataSet
    split: str
    pairs: Pairs
    features: Features
    unreadable: dict[str, str]


def material(dataset: DataSet, split: str, workspace: Workspace, progress: Progress) -> Material:
    """Read the pairs of a split ('' : all queries) and run the towers on what they have not seen.

    AdaptError when the split has no query or its queries form too few topics.
    """
    features = Features(MedliteEncoder(), workspace)
    found = training_pairs(dataset, features.pipelines["image"], split)
    if not found.rows:
        there = sorted({str(q.meta.get("split")) for q in queries_of(dataset) if q.meta.get("split")})
        raise AdaptError(
            f"No query of {dataset.name} with meta.split {split!r} has a picture and words; "
            + (f"its splits are {', '.join(there)}." if there else "its queries name no split; leave --split out.")
        )
    unreadable = features.encode(dict(found.pictures), found.texts.values(), progress)
    readable = tuple(pair for pair in found.rows if features.has("image", pair.picture))
    found = replace(found, rows=readable)
    if len(found.topics) < FEWEST_TOPICS:
        raise AdaptError(
            f"The pairs of {dataset.name} form {len(found.topics)} topics (meta.cluster, else meta.case, else equal "
            f"words); at least {FEWEST_TOPICS} are needed to train and to check a head."
        )
    return Material(dataset, split, found, features, unreadable)


def split_topics(topics: Names[str], seed: int) -> tuple[set[str], set[str]]:
    """(fitted, inner): a tenth of the topics, sorted and drawn by ``seed``, is kept apart."""
    ordered = sorted(topics)
    inner = set(random.Random(seed).sample(ordered, max(1, round(INNER * len(ordered)))))
    return set(ordered) - inner, inner


def make_head(
    given: Material, out: Path, seed: int, progress: Progress, recipe: Recipe | None = None, without: Names[str] = ()
) -> dict[str, Any]:
    """Train a head, choose its shares and weights, and write the files of `FILES` into ``out``.

    ``without``: topics the head must not see, neither fitted nor as inner topics; pairs whose picture also stands in
    one of them are left out as well. Returns the evidence (the content of ``build.json``).
    """
    recipe = recipe or Recipe()
    hidden = {pair.picture for pair in given.pairs.of(set(without))}
    rows = tuple(p for p in given.pairs.rows if p.topic not in without and p.picture not in hidden)
    fitted, inner = split_topics({pair.topic for pair in rows}, seed)
    fit, held = (tuple(p for p in rows if p.topic in part) for part in (fitted, inner))
    get = given.features.get
    trained = train(fit, held, get, recipe, seed, progress)
    head = as_stored(trained.head)
    pipeline = given.features.pipelines["image"]
    tasks, contents = inner_tasks(given.dataset, inner, {*fitted, *inner}, given.split, pipeline)
    given.features.encode(contents.pictures, (*contents.texts.values(), *contents.questions.values()), progress)
    tasks = [task for task in tasks if _encoded(task, given.features)]
    progress("Choosing shares and weights", 0, 0)
    choice = choose(head, tasks, get)
    head = replace(head, alpha=choice.alpha, beta=choice.beta)
    pictures = sorted({pair.picture for pair in rows})
    texts = sorted(contents.texts) or sorted({pair.text for pair in rows})
    means = {"image": head.images(get("image", pictures)).mean(0), "text": head.texts(get("text", texts)).mean(0)}
    write_head(out / HEAD, head, means)
    base = given.features.base.config
    kept = ("preprocessing", "pooling", "prompt", "max_tokens", "precision")
    config = {
        "files": {TOWER: base["files"][TOWER], HEAD: sha256_file(out / HEAD)},
        "dimension": head.dimension,
        "blocks": {"alpha": head.alpha, "beta": head.beta},
        **{key: base[key] for key in kept},
        "default_weight": choice.weights,
    }
    _write(out / CONFIG, config)
    _write(out / CASES, case_record(rows))
    evidence = {
        "data": {"name": given.dataset.name, "licence": given.dataset.licence, "split": given.split},
        "seed": seed,
        "recipe": recipe.as_dict(),
        "counts": _counts(given, rows, fit, held, len(texts)),
        "files": config["files"],
        "dimension": head.dimension,
        "parameters": sum(a.size for s in (head.image, head.text) for a in (s.linear, s.hidden, s.hidden_bias, s.out))
        + head.components.size,
        "epochs": [asdict(epoch) | {"loss": None if epoch.number == 0 else epoch.loss} for epoch in trained.epochs],
        "best_epoch": trained.best.number,
        "fitted_success": _fitted_success(head, fit, held, get, seed),
        "blocks": config["blocks"],
        "default_weight": choice.weights,
        "weights_tried": list(WEIGHTS),
        "shares_tried": [list(row) for row in choice.tried],
        "share_grid": list(SHARES),
        "curves": [asdict(c) | {"weight": c.weight} for c in choice.curves],
        "frozen_curves": [asdict(c) for c in curves(replace(head, alpha=1.0, beta=1.0), tasks, get)] if tasks else [],
    }
    _write(out / EVIDENCE, evidence)
    return evidence


def _encoded(task: InnerTask, features: Features) -> bool:
    pictures = [p for p, _ in task.questions] + [key for a in task.answers for key in a.pictures]
    return all(features.has("image", key) for key in pictures)


def _counts(given: Material, rows: tuple, fit: tuple, held: tuple, mean_texts: int) -> dict[str, int]:
    return {
        "cases": len({p.case for p in rows}),
        "topics": len({p.topic for p in rows}),
        "pairs": len(rows),
        "pictures": len({p.picture for p in rows}),
        "texts": len({p.text for p in rows}),
        "fitted_topics": len({p.topic for p in fit}),
        "inner_topics": len({p.topic for p in held}),
        "inner_pairs": len(held),
        "inner_cases": len({p.case for p in held}),
        "templates": given.pairs.templates,
        "unreadable": len(given.unreadable),
        "mean_texts": mean_texts,
    }


def _fitted_success(head: Head, fit: tuple[Pair, ...], held: tuple[Pair, ...], get: Any, seed: int) -> dict[str, float]:
    """Success@10 on as many fitted topics as there are inner ones: how much the head remembers."""
    topics = sorted({p.topic for p in fit})
    some = set(random.Random(seed).sample(topics, min(len(topics), len({p.topic for p in held}))))
    to_image, between = inner_success(head, Items([p for p in fit if p.topic in some], get))
    return {"text_to_image": to_image, "image_to_image": between}


def _write(path: Path, value: Any) -> None:
    write_bytes(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())
