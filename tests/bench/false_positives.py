"""How often two equally good models are called different, and how often an interval holds the truth.

    python tests/bench/false_positives.py [MEDPIX] [--pairs 4000] [--flips 1999] [--resamples 999] [--seed 20261130]

Pairs of models that are equal by construction, on 54 and on 200 clusters of queries (54 is what a held-out split of
MedPix has). Cluster sizes are drawn from those of MEDPIX/query_to_image (what ``python -m core prepare medpix``
wrote), without it from the same counts, kept below. A score looks like nDCG@10 of one relevant document: 0, 1, or
1/log2(1 + rank); what a topic, a topic under one model, and a query add to it are drawn. Then the two models' scores
are swapped by a coin for every cluster, so that no difference is left, and the tests of this project are asked:

    randomisation   the paired randomisation test by cluster: target 5 % ± 1
    naive           the paired t test over queries as if they were independent: what clusters are for
    t, difference   the cluster-robust t interval of the mean difference holds 0: target 95 % ± 2
    t, mean         the same of one model's mean holds the mean of all possible topics
    B, …            the percentile bootstrap over clusters beside both, on every fourth pair, since it is slow

``mean`` is the mean over queries, ``macro`` that over five domains, each topic in one of them. Fewer flips and
resamples than in the product keep this short: their error is drawn anew for every pair and does not bias a rate.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.special import ndtr, stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.evaluate.stats import (
    cluster_bootstrap,
    cluster_mean,
    cluster_sums,
    macro,
    macro_of,
    macro_weights,
    mean_of,
    sign_flips,
)

MEDPIX = {2: 118, 3: 88, 4: 49, 5: 40, 6: 29, 7: 12, 8: 10, 9: 10, 10: 5, 11: 3, 12: 5, 13: 3, 15: 4}
MEDPIX |= {16: 1, 18: 1, 22: 1, 31: 1, 37: 1}
"""Size of a cluster (queries of one topic of query_to_image): how many of MedPix's 381 topics have it."""

# Standard deviations of what a topic, a topic under one model, and a query under one model add; they sum to 1 squared.
TOPIC, TOPIC_MODEL, QUERY = 0.65, 0.55, 0.525
FOURTH = 4
BOUNDS = (-math.inf, math.inf)
DOMAINS = [f"domain {n}" for n in range(5)]


def sizes_of(folder: Path) -> Counter[int]:
    """The sizes of the clusters of a prepared MedPix."""
    topics: Counter[str] = Counter()
    for file in sorted((folder / "query_to_image").glob("*/queries.jsonl")):
        topics.update(json.loads(line)["meta"]["cluster"] for line in file.read_text(encoding="utf-8").splitlines())
    return Counter(topics.values())


def score(latent: np.ndarray) -> np.ndarray:
    """Standard normal to nDCG@10 of one relevant document: 45 % are 0, 25 % are 1, else rank 2 to 10 evenly."""
    share = ndtr(latent)
    rank = 10 - np.floor(np.clip((share - 0.45) / 0.30, 0, 0.999) * 9)
    return np.where(share < 0.45, 0.0, np.where(share >= 0.75, 1.0, 1 / np.log2(1 + rank)))


TRUTH = 0.25 + 0.30 * float(np.mean(1 / np.log2(1 + np.arange(2, 11))))
"""The mean of `score` over a standard normal."""


def pair(generator: np.random.Generator, cluster: np.ndarray, many: int) -> np.ndarray:
    """[2, n] scores of two models, swapped cluster by cluster at random."""
    topic = TOPIC * generator.standard_normal(many) + TOPIC_MODEL * generator.standard_normal((2, many))
    scores = score(topic[:, cluster] + QUERY * generator.standard_normal((2, len(cluster))))
    swap = generator.random(many) < 0.5
    return np.where(swap[cluster], scores[::-1], scores)


def simulate(many: int, pool: np.ndarray, args: argparse.Namespace) -> dict[str, Counter[str]]:
    """For ``mean`` and ``macro``, how many pairs were rejected by each test or held by each interval."""
    generator = np.random.default_rng([args.seed, many])
    found = {"mean": Counter(), "macro": Counter()}
    for number in range(args.pairs):
        cluster = np.repeat(np.arange(many), generator.choice(pool, many))
        a, b = pair(generator, cluster, many)
        d, n = a - b, len(cluster)
        domains = [DOMAINS[c % 5] for c in cluster]
        for kind, counts in found.items():
            weights = macro_weights(domains, DOMAINS) if kind == "macro" else np.full(n, 1 / n)
            flipped = sign_flips(cluster_sums(d[:, None], cluster, weights), args.flips, number)[0]
            counts["randomisation"] += flipped.p <= 0.05
            # The same weighted mean with every query a cluster of its own: the paired t test.
            spread = math.sqrt(n / (n - 1) * float(np.sum((weights * (d - weights @ d)) ** 2)))
            counts["naive"] += abs(weights @ d) > stdtrit(n - 1, 0.975) * spread
            for x, what, truth in ((d, "difference", 0.0), (a, "mean", TRUTH)):
                if kind == "macro":
                    interval, statistic = macro(x, cluster, domains, DOMAINS, BOUNDS), macro_of(x, domains)
                else:
                    interval, statistic = cluster_mean(x, cluster, BOUNDS), mean_of(x)
                counts[f"t, {what}"] += interval.low <= truth <= interval.high
                if number % FOURTH == 0:
                    drawn = cluster_bootstrap(statistic, cluster, BOUNDS, args.resamples, number)
                    counts[f"B, {what}"] += drawn.low <= truth <= drawn.high
    return found


def percent(column: str, count: int, pairs: int) -> str:
    """A cell of the table."""
    return f"{100 * count / len(range(0, pairs, FOURTH if column.startswith('B') else 1)):13.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("medpix", nargs="?", type=Path)
    for name, default in (("pairs", 4000), ("flips", 1999), ("resamples", 999), ("seed", 20261130)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    sizes = sizes_of(args.medpix) if args.medpix else Counter(MEDPIX)
    pool = np.repeat(list(sizes), list(sizes.values()))
    print(f"{len(pool)} topics of {args.medpix or 'MedPix (counts in this file)'}, {pool.mean():.1f} queries a topic")
    print(f"{args.pairs:,} pairs, {args.flips:,} flips, {args.resamples:,} resamples, seed {args.seed}")
    columns = ("randomisation", "naive", "t, difference", "B, difference", "t, mean", "B, mean")
    print(f"{'clusters':>8} {'figure':>6} " + " ".join(f"{c:>13}" for c in columns) + "   (% of pairs)")
    for many in (54, 200):
        started = time.perf_counter()
        for kind, counts in simulate(many, pool, args).items():
            print(f"{many:>8} {kind:>6} " + " ".join(percent(c, counts[c], args.pairs) for c in columns))
        print(f"{'':>8} {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
