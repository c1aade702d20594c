"""Success@10 of the head's own vectors on the held-out cases of MedPix, mean of five seeds fixed beforehand.

    python tests/bench/dev_pool.py MEDPIX

MEDPIX is what ``python -m core prepare medpix`` wrote. Five heads are trained on the ``train`` queries (seeds 20 … 24,
early stopping on inner topics of ``train``); the pictures of the ``dev`` cases are the pool. text→image: the caption of
each picture asks, a hit is a picture of the same case among the first ten, its own included. image→image: the picture
itself is left out, cases with two or more pictures. Plain cosine of the shared block, mean over queries with
cluster-robust t intervals by case. Named peers: random vectors and the frozen picture tower.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.adapt.contrastive import Recipe, train
from core.adapt.make import material, split_topics
from core.adapt.pairs import case_of, case_of_doc, queries_of
from core.adapt.success import success, success_among
from core.data.dataset import open_dataset, silent
from core.data.health import is_template
from core.embed.pipeline import text_key
from core.evaluate.stats import cluster_mean
from core.models.head import as_stored, normalise
from core.settings import Settings
from core.store.workspace import open_workspace

SEEDS = (20, 21, 22, 23, 24)
CAPTIONED = ("query_to_image", "visual_context")
CHANCE_DRAWS = 200


def pool_of(dataset, features) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(picture key, case) of every picture of the dev cases, and (caption key, case) of every captioned picture."""
    pipeline = features.pipelines["image"]
    cases = {case_of(query) for query in queries_of(dataset, "dev")}
    pictures, found, captions = set(), {}, {}
    for collection in dataset.pool("query_to_image").collections:
        docs = [doc for doc in collection.docs() if case_of_doc(doc) in cases]
        keys = pipeline.picture_keys(collection, [r for doc in docs for r in doc.images])
        found |= {keys[r]: (collection, r) for doc in docs for r in doc.images}
        pictures |= {(keys[r], case_of_doc(doc)) for doc in docs for r in doc.images}
    texts = set()
    for query in queries_of(dataset, "dev"):
        words = query.text.strip()
        if dataset.collections[query.collection].task in CAPTIONED and not is_template(words):
            captions[query.images[0], case_of(query)] = text_key(words)
            texts.add(words)
    features.encode(found, sorted(texts), silent)
    asked = [(key, case) for (_, case), key in sorted(captions.items())]
    return sorted(pictures, key=lambda p: (p[1], p[0])), asked


def report(name: str, hits: np.ndarray, cases: np.ndarray) -> None:
    estimate = cluster_mean(hits.tolist(), cases.tolist())
    print(
        f"  {name:12} {estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]  "
        f"n = {estimate.n} queries of {estimate.clusters} cases"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("medpix", type=Path)
    arguments = parser.parse_args()

    workspace = open_workspace(Settings.from_environment().workspace)
    dataset = open_dataset(arguments.medpix, workspace)
    given = material(dataset, "train", workspace, silent)
    get = given.features.get
    pictures, captions = pool_of(dataset, given.features)
    picture_case = np.array([case for _, case in pictures])
    text_case = np.array([case for _, case in captions])
    x, y = get("image", [key for key, _ in pictures]), get("text", [key for key, _ in captions])
    print(f"pool: {len(pictures)} pictures of {len(set(picture_case))} dev cases, {len(captions)} captions")

    rng = np.random.default_rng(0)
    draws = []
    for _ in range(CHANCE_DRAWS):
        images, texts = (normalise(rng.standard_normal((n, 64))) for n in (len(x), len(y)))
        between, _ = success_among(images, picture_case)
        draws.append((success(texts, text_case, images, picture_case).mean(), between.mean()))
    print("chance: text→image {:.3f}, image→image {:.3f}".format(*np.mean(draws, axis=0)))

    to_image, between = [], []
    for seed in SEEDS:
        started = time.perf_counter()
        fitted, inner = split_topics(given.pairs.topics, seed)
        trained = train(given.pairs.of(fitted), given.pairs.of(inner), get, Recipe(), seed, silent)
        head = as_stored(trained.head)
        images = head.image(x)
        hits, rows = success_among(images, picture_case)
        to_image.append(success(head.text(y), text_case, images, picture_case))
        between.append(hits)
        print(
            f"seed {seed}: epoch {trained.best.number}, inner topics {trained.best.text_to_image:.3f} / "
            f"{trained.best.image_to_image:.3f}, dev text→image {to_image[-1].mean():.3f}, "
            f"image→image {hits.mean():.3f}, {time.perf_counter() - started:.0f} s"
        )
    print("mean of the seeds:")
    report("text→image", np.mean(to_image, axis=0), text_case)
    report("image→image", np.mean(between, axis=0), picture_case[rows])
    print("frozen picture tower, centred on the training pictures:")
    hits, rows = success_among(normalise(x - head.image.mean), picture_case)
    report("image→image", hits, picture_case[rows])


if __name__ == "__main__":
    main()
