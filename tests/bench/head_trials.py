"""Compare settings of the head's training on inner topics of the MedPix ``train`` cases; writes the card's trials.

    python tests/bench/head_trials.py MEDPIX [--out assets/models/medlite/trials.json]

MEDPIX is what ``python -m core prepare medpix`` wrote; ``dev`` cases are never read. Each setting changes one thing of
`core.adapt.contrastive.Recipe` and is trained on four draws of inner topics; the figures are Success@10 on these,
at the epoch that training keeps. The frozen picture block learns nothing from cases, so its settings are compared on
all ``train`` questions with a picture among the pictures of the ``train`` topics: nDCG@10, picture alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.adapt.choose import curves, inner_tasks
from core.adapt.closed_form import principal_axes
from core.adapt.contrastive import Recipe, train
from core.adapt.make import material, split_topics
from core.data.dataset import open_dataset, silent
from core.settings import Settings
from core.store.workspace import open_workspace

DRAWS = (1, 2, 3, 4)
BASE = Recipe()
SETTINGS = {
    "as shipped": BASE,
    "hidden 512": replace(BASE, hidden=512),
    "hidden 128": replace(BASE, hidden=128),
    "shared space 384": replace(BASE, shared=384),
    "dropout 0.3, of features 0.2 and 0.1": replace(BASE, dropout=0.3, input_dropout=(0.2, 0.1)),
    "only between pictures and words": replace(BASE, within=(0.0, 0.0)),
    "temperature from 0.05": replace(BASE, temperature=0.05),
    "rate 0.0003": replace(BASE, rate=3e-4),
}
FROZEN = ((1280, 0.0), (256, 0.0), (256, 0.25), (256, 0.5), (256, 0.75), (256, 1.0), (128, 0.75))
"""Axes and whitening; 1280 axes without whitening are the tower's features as they are."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("medpix", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()

    workspace = open_workspace(Settings.from_environment().workspace)
    given = material(open_dataset(arguments.medpix, workspace), "train", workspace, silent)
    tasks, _ = inner_tasks(
        given.dataset, given.pairs.topics, given.pairs.topics, "train", given.features.pipelines["image"]
    )
    tasks = [task for task in tasks if task.target == "image"]
    found = train(given.pairs.rows, given.pairs.rows, given.features.get, replace(BASE, epochs=0), 0, silent)
    pictures = given.features.get("image", sorted(given.pairs.pictures))
    frozen = []
    for components, whitening in FROZEN:
        axes = principal_axes(pictures, components, whitening)
        head = replace(found.head, components=axes, alpha=1.0, beta=1.0)
        ndcg = curves(head, tasks, given.features.get, (1.0,))[0].ndcg[0]
        frozen.append({"components": components, "whitening": whitening, "ndcg": ndcg})
        print(*frozen[-1].values(), flush=True)
    rows = []
    for name, recipe in SETTINGS.items():
        best, start = [], []
        for draw in DRAWS:
            fitted, inner = split_topics(given.pairs.topics, draw)
            found = train(given.pairs.of(fitted), given.pairs.of(inner), given.features.get, recipe, draw, silent)
            best.append((found.best.text_to_image, found.best.image_to_image))
            start.append((found.epochs[0].text_to_image, found.epochs[0].image_to_image))
        if not rows:
            rows.append(row("closed form, no training", start))
        rows.append(row(name, best))
        print(*rows[-1].values(), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps({"head": rows, "frozen": frozen}, indent=1) + "\n", encoding="utf-8")


def row(name: str, figures: list[tuple[float, float]]) -> dict:
    to_image, between = (float(value) for value in np.mean(figures, axis=0))
    mean = (to_image + between) / 2
    return {"name": name, "draws": len(DRAWS), "text_to_image": to_image, "image_to_image": between, "mean": mean}


if __name__ == "__main__":
    main()
