"""Means with their uncertainty. The unit is the cluster: queries of one case or topic are not independent.

A mean is Σ w_q·x_q with weights that sum to 1. Its variance is the cluster-robust sandwich CR1 of that weighted mean
(Liang and Zeger 1986, with the small-sample factor): G/(G−1) · Σ over clusters of (Σ w_q·(x_q − mean))², the quantile
that of t with G − 1 degrees of freedom, G the number of clusters. Whatever is no mean has a percentile bootstrap over
clusters. Two runs are compared by a randomisation test that swaps them a cluster at a time.

Nothing here depends on the order of queries, up to rounding.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
UNIT = (0.0, 1.0)
"""The range of every measure; a paired difference has (−1, 1)."""
SEED = 20261130
RESAMPLES = 2000
FLIPS = 100_000
EXACT = 16
"""Up to so many clusters with a difference, all 2^clusters flips are enumerated."""
FEWEST = 10
"""Groups of fewer clusters are pooled, and never ranked."""
OTHER = "other"

_BLOCK = 5000  # flips at a time: at most 5000 · clusters numbers in memory
_ROUNDING = 1e-12

Statistic = Callable[[np.ndarray], np.ndarray]
"""How often each query was drawn, [b, n], to the statistic of each of the b samples, [b]; NaN where it has none."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its 95 % interval over ``n`` queries in ``clusters`` clusters.

    ``low`` and ``high`` are None where there is no interval, ``mean`` is NaN where there is no mean; ``method`` then
    says why, and else how the interval was made. ``se`` is the cluster-robust standard error, None where there is none.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    clusters: int
    method: str
    se: float | None = None


@dataclass(frozen=True, slots=True)
class Randomised:
    """The two-sided p value of a paired randomisation test, and how it was made."""

    p: float
    method: str


def cluster_mean(values: Sequence[float], clusters: Sequence[Hashable], bounds: tuple[float, float] = UNIT) -> Estimate:
    """The mean of ``values`` with a cluster-robust t interval, clipped to ``bounds``.

    ``clusters`` names the cluster of each value. ValueError if the lengths differ or a value is not finite.
    """
    if len(values) == 0:
        return Estimate(math.nan, None, None, 0, 0, "N/A: no queries")
    return _estimate(values, clusters, np.full(len(values), 1 / len(values)), bounds)


def macro(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    domains: Sequence[str],
    all_domains: Sequence[str],
    bounds: tuple[float, float] = UNIT,
) -> Estimate:
    """The mean over ``all_domains`` of each domain's mean, with a cluster-robust t interval clipped to ``bounds``.

    A value weighs 1/(D·n_domain), and a cluster contributes the sum over its queries in whichever domain, so a topic
    in two domains is one cluster. Not available unless every domain has a query. Where the domains' own means lie
    far apart the interval is wider than needed; with deviations from those means it would be too narrow for few
    topics a domain (91 % coverage at 54 topics in 5 domains). ValueError as in `cluster_mean`, or for a domain that
    is not in ``all_domains``.
    """
    weights = macro_weights(domains, all_domains)
    present = set(domains)
    absent = [domain for domain in all_domains if domain not in present]
    if absent or not all_domains:
        why = f"N/A: no queries in {', '.join(absent)}" if absent else "N/A: no domains"
        return Estimate(math.nan, None, None, len(values), len(set(clusters)), why)
    return _estimate(values, clusters, weights, bounds)


def macro_weights(domains: Sequence[str], all_domains: Sequence[str]) -> np.ndarray:
    """[n]: 1/(D·n_domain) for each query; they sum to 1 where every domain has one. ValueError as in `macro`."""
    unknown = sorted(set(domains) - set(all_domains))
    if unknown:
        raise ValueError(f"domain {unknown[0]!r} is not one of {', '.join(all_domains)}")
    counts = Counter(domains)
    return np.array([1 / (len(all_domains) * counts[domain]) for domain in domains])


def _estimate(
    values: Sequence[float], clusters: Sequence[Hashable], weights: np.ndarray, bounds: tuple[float, float]
) -> Estimate:
    from scipy.special import stdtrit  # the quantile of t; scipy.stats takes a second to import

    x = np.asarray(values, np.float64)
    if not len(x) == len(clusters) == len(weights):
        raise ValueError(f"{len(x)} values, {len(clusters)} clusters and {len(weights)} weights do not fit together")
    if not np.isfinite(x).all():
        raise ValueError("a value is not a finite number; leave out what is not available")
    cluster, many = _numbered(clusters)
    n, mean = len(x), float(weights @ x)
    if many < 2:
        return Estimate(mean, None, None, n, many, "no interval: fewer than 2 clusters")
    deviations = np.bincount(cluster, weights * (x - mean), many)
    se = math.sqrt(many / (many - 1) * float(deviations @ deviations))
    half = float(stdtrit(many - 1, (1 + LEVEL) / 2)) * se
    low, high = max(bounds[0], mean - half), min(bounds[1], mean + half)
    return Estimate(mean, low, high, n, many, f"cluster-robust t (CR1, df = {many - 1}), 95 %", se)


def _numbered(clusters: Sequence[Hashable]) -> tuple[np.ndarray, int]:
    """[n] number of each query's cluster, in the order of their names, and how many there are."""
    number = {name: i for i, name in enumerate(sorted(set(clusters), key=repr))}
    return np.array([number[name] for name in clusters], np.intp), len(number)


def mean_of(values: Sequence[float]) -> Statistic:
    """The mean of ``values`` [n], for `cluster_bootstrap`: a rate where they are 0 and 1, or a paired difference."""
    x = np.asarray(values, np.float64)
    return lambda drawn: drawn @ x / drawn.sum(axis=1)


def macro_of(values: Sequence[float], domains: Sequence[str]) -> Statistic:
    """The mean over domains of each domain's mean, for `cluster_bootstrap`; NaN where a sample lacks a domain."""
    x, names = np.asarray(values, np.float64), np.asarray(domains)
    member = np.stack([names == domain for domain in sorted(set(domains))], axis=1).astype(np.float64)  # [n, D]

    def statistic(drawn: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return (drawn @ (member * x[:, None]) / (drawn @ member)).mean(axis=1)

    return statistic


def cluster_bootstrap(
    statistic: Statistic,
    clusters: Sequence[Hashable],
    bounds: tuple[float, float] = UNIT,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Any statistic of the queries with a percentile interval; whole clusters are drawn with replacement.

    Samples in which it is NaN are left out and counted in ``method``. For means `cluster_mean` covers better.
    """
    cluster, many = _numbered(clusters)
    value = float(statistic(np.ones((1, len(cluster))))[0]) if len(cluster) else math.nan
    if many < 2 or not math.isfinite(value):
        why = "no interval: fewer than 2 clusters" if math.isfinite(value) else "N/A: the statistic has no value"
        return Estimate(value, None, None, len(cluster), many, why)
    generator, found = np.random.default_rng(seed), []
    for start in range(0, resamples, _BLOCK // 10):
        size = min(_BLOCK // 10, resamples - start)
        drawn = generator.integers(0, many, (size, many)) + many * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * many).reshape(size, many)
        found.append(statistic(times[:, cluster].astype(np.float64)))
    kept = np.concatenate(found)
    kept = kept[np.isfinite(kept)]
    method = f"percentile bootstrap over clusters, B = {resamples:,}, seed {seed}, 95 %"
    if len(kept) < resamples:
        method += f"; {resamples - len(kept):,} samples without a value left out"
    if not len(kept):
        return Estimate(value, None, None, len(cluster), many, f"no interval: {method}")
    low, high = np.quantile(kept, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, max(bounds[0], float(low)), min(bounds[1], float(high)), len(cluster), many, method)


def paired_randomisation(
    differences: Sequence[float],
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
    flips: int = FLIPS,
    seed: int = SEED,
) -> Randomised:
    """Whether two runs of the same queries differ, by flipping the sign of Σ w_q·d_q of whole clusters.

    ``weights`` are equal where none are given; those of `macro_weights` test the macro mean, in which a topic in two
    domains is one cluster. Two-sided. ValueError where lengths differ or a value is not finite.
    """
    sums = cluster_sums(np.asarray(differences, np.float64)[:, None], clusters, weights)
    return sign_flips(sums, flips, seed)[0]


def cluster_sums(
    differences: np.ndarray, clusters: Sequence[Hashable], weights: Sequence[float] | None = None
) -> np.ndarray:
    """[G, pairs]: Σ w_q·d_q over the queries of each cluster, of ``differences`` [n, pairs]; 0 where they cancel."""
    x = np.asarray(differences, np.float64)
    w = np.full(len(x), 1 / max(len(x), 1)) if weights is None else np.asarray(weights, np.float64)
    if not len(x) == len(clusters) == len(w):
        raise ValueError(f"{len(x)} differences, {len(clusters)} clusters and {len(w)} weights do not fit together")
    if not np.isfinite(x).all():
        raise ValueError("a difference is not a finite number; leave out what is not available")
    cluster, many = _numbered(clusters)
    sums, sizes = np.zeros((2, many, x.shape[1]))
    # What is left of scores that are equal but for rounding would else be a difference in one direction.
    terms = w[:, None] * np.where(np.abs(x) <= _ROUNDING, 0, x)
    np.add.at(sums, cluster, terms)
    np.add.at(sizes, cluster, np.abs(terms))
    return np.where(np.abs(sums) <= _ROUNDING * sizes, 0, sums)


def sign_flips(sums: np.ndarray, flips: int = FLIPS, seed: int = SEED) -> list[Randomised]:
    """The randomisation test of each column of ``sums`` [G, pairs], as `cluster_sums` gives them.

    With up to `EXACT` clusters that differ p is the share of all flips with a sum as far from 0 as the one seen;
    with more it is (1 + how many of the sampled flips are)/(1 + flips), the flips the same for every column.
    """
    # A flip's sign makes that of the sum irrelevant; sorted, the same sums in any order give the same p.
    size = np.sort(np.abs(sums), axis=0)
    least = np.abs(sums.sum(axis=0)) - 1e-10 * size.sum(axis=0)  # as far, but for rounding
    exact = np.count_nonzero(size, axis=0) <= EXACT
    found = np.array([_enumerated(column[column > 0], bound) for column, bound in zip(size.T, least, strict=True)])
    if not exact.all():
        generator, hits = np.random.default_rng(seed), np.zeros((~exact).sum())
        for start in range(0, flips, _BLOCK):
            packed = generator.integers(0, 256, (min(_BLOCK, flips - start), -(-len(size) // 8)), np.uint8)
            signs = np.unpackbits(packed, axis=1, count=len(size))
            hits += np.count_nonzero(_as_far(signs, size[:, ~exact], least[~exact]), axis=0)
        found[~exact] = (1 + hits) / (1 + flips)
    sampled = f"randomisation over clusters, {flips:,} flips, seed {seed}"
    counts = np.count_nonzero(size, axis=0)
    return [
        Randomised(float(p), f"randomisation over clusters, all {2 ** int(k):,} flips" if whole else sampled)
        for p, whole, k in zip(found, exact, counts, strict=True)
    ]


def _as_far(signs: np.ndarray, terms: np.ndarray, least: np.ndarray) -> np.ndarray:
    """bool [flips, pairs]: whether Σ ±terms is at least ``least`` from 0; ``signs`` [flips, G] has 1 for + and 0 for −.

    Sums of 32-bit floats, twice as fast, decide all that lies further from ``least`` than their rounding can reach;
    the others are summed anew.
    """
    single = terms.astype(np.float32)
    beyond = np.abs(2 * (signs.astype(np.float32) @ single) - single.sum(axis=0)) - least.astype(np.float32)
    reach = 4 * (len(terms) + 4) * np.finfo(np.float32).eps * np.abs(terms).sum(axis=0)
    result = beyond >= 0
    rows = np.flatnonzero((np.abs(beyond) <= reach).any(axis=1))
    result[rows] = np.abs((2.0 * signs[rows] - 1) @ terms) >= least
    return result


def _enumerated(terms: np.ndarray, least: float) -> float:
    """The share of all signs of ``terms`` whose sum is at least ``least`` from 0; NaN for more than `EXACT`."""
    if len(terms) > EXACT:
        return math.nan
    totals = np.zeros(1)
    for term in terms:
        totals = np.concatenate([totals + term, totals - term])
    return float(np.mean(np.abs(totals) >= least))


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p value adjusted for being one of this family (Holm 1979): it holds whatever the dependence."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, reached = [0.0] * len(p_values), 0.0
    for place, i in enumerate(order):
        reached = max(reached, min(1.0, (len(order) - place) * p_values[i]))
        adjusted[i] = reached
    return adjusted


def smallest_detectable(difference: Estimate, power: float = 0.8) -> float:
    """The mean difference that one test at α = 0.05 finds with ``power``: (t_{1−α/2,G−1} + t_{power,G−1})·SE.

    SE is the cluster-robust one of the paired differences, before any adjustment; NaN where there is none.
    """
    from scipy.special import stdtrit

    if difference.se is None:
        return math.nan
    df = difference.clusters - 1
    return float(stdtrit(df, (1 + LEVEL) / 2) + stdtrit(df, power)) * difference.se


def rank_intervals(better: np.ndarray) -> list[tuple[int, int]]:
    """(best, worst) rank of each of n runs: 1 + how many are better … n − how many are worse.

    ``better`` [n, n] bool: whether the run of the row is significantly better than that of the column.
    """
    better = np.asarray(better, bool)
    return [(1 + int(better[:, i].sum()), len(better) - int(better[i].sum())) for i in range(len(better))]


def pooled_groups(groups: Sequence[str], clusters: Sequence[Hashable], fewest: int = FEWEST) -> list[str]:
    """The group of each query, those of fewer than ``fewest`` clusters joined as `OTHER`, which is never ranked."""
    members: dict[str, set[Hashable]] = {}
    for group, cluster in zip(groups, clusters, strict=True):
        members.setdefault(group, set()).add(cluster)
    return [group if len(members[group]) >= fewest else OTHER for group in groups]
