"""Cluster intervals against a plain sandwich estimator, the ordinary t interval and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from core.data.topics import cluster_of
from core.evaluate.stats import (
    OTHER,
    Estimate,
    cluster_bootstrap,
    cluster_mean,
    cluster_sums,
    holm,
    macro,
    macro_of,
    macro_weights,
    mean_of,
    paired_randomisation,
    pooled_groups,
    rank_intervals,
    sign_flips,
    smallest_detectable,
)
from core.records import Query

WIDE = (-math.inf, math.inf)


def sandwich(values, clusters, weights) -> tuple[float, float, float]:
    """Weighted least squares on a constant with the CR1 covariance, written out with its matrices."""
    y, w = np.array(values, float), np.diag(np.array(weights, float))
    x = np.ones((len(y), 1))
    n, k = x.shape
    inverse = np.linalg.inv(x.T @ w @ x)
    beta = inverse @ x.T @ w @ y
    meat = np.zeros((k, k))
    groups = sorted(set(clusters))
    for g in groups:
        rows = [i for i, c in enumerate(clusters) if c == g]
        score = x[rows].T @ w[np.ix_(rows, rows)] @ (y[rows] - x[rows] @ beta)
        meat += np.outer(score, score)
    factor = len(groups) / (len(groups) - 1) * (n - 1) / (n - k)
    half = stats.t.ppf(0.975, len(groups) - 1) * math.sqrt((factor * inverse @ meat @ inverse)[0, 0])
    return float(beta[0]), float(beta[0] - half), float(beta[0] + half)


rows = st.lists(st.tuples(st.floats(0, 1), st.sampled_from("abcdefg"), st.sampled_from(["Head", "Thorax"])), min_size=3)


@settings(max_examples=150, deadline=None)
@given(rows)
def test_like_the_plain_sandwich(data) -> None:
    values, clusters, domains = zip(*data, strict=True)
    mean = cluster_mean(values, clusters, WIDE)
    assert mean.mean == pytest.approx(np.mean(values)) and mean.n == len(data)
    assert mean.clusters == len(set(clusters))
    if len(set(clusters)) < 2:
        assert mean.low is None and "fewer than 2 clusters" in mean.method
    else:
        assert (mean.mean, mean.low, mean.high) == pytest.approx(sandwich(values, clusters, [1] * len(data)), abs=1e-9)
        both = macro(values, clusters, domains, sorted(set(domains)), WIDE)
        weights = [1 / domains.count(d) for d in domains]
        assert (both.mean, both.low, both.high) == pytest.approx(sandwich(values, clusters, weights), abs=1e-9)
        assert both.mean == pytest.approx(
            np.mean([np.mean([v for v, _, d in data if d == name]) for name in set(domains)])
        )


def test_equal_to_the_ordinary_t_interval_when_clusters_are_queries() -> None:
    values = np.random.default_rng(1).random(20)
    found = cluster_mean(values, range(20), WIDE)
    low, high = stats.t.interval(0.95, 19, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert found.method == "cluster-robust t (CR1, df = 19), 95 %"


def test_clipped_to_the_range_of_the_measure() -> None:
    found = cluster_mean([0.0, 1.0, 1.0], "abc")
    assert (found.low, found.high) == (0.0, 1.0)
    found = cluster_mean([-1.0, 1.0, -1.0], "abc", (-1.0, 1.0))
    assert (found.low, found.high) == (-1.0, 1.0)


def test_copies_of_a_query_within_its_cluster_add_no_certainty() -> None:
    generator = np.random.default_rng(2)
    values, clusters = generator.random(30), list(range(30))
    once = cluster_mean(values, clusters)
    thrice = cluster_mean(np.tile(values, 3), clusters * 3)
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high), abs=1e-12)
    assert (thrice.n, thrice.clusters) == (90, 30)


def test_what_has_no_mean_or_interval_says_why() -> None:
    nothing = cluster_mean([], [])
    assert math.isnan(nothing.mean) and nothing.low is None and nothing.method == "N/A: no queries"
    one = cluster_mean([0.2, 0.4], ["a", "a"])
    assert one.mean == pytest.approx(0.3) and one.low is None and one.high is None
    missing = macro([0.5, 1.0], ["a", "b"], ["Head", "Head"], ["Head", "Thorax"])
    assert math.isnan(missing.mean) and missing.method == "N/A: no queries in Thorax" and missing.n == 2
    assert macro([], [], [], []).method == "N/A: no domains"
    with pytest.raises(ValueError, match="not a finite"):
        cluster_mean([math.nan, 1.0], ["a", "b"])
    with pytest.raises(ValueError, match="do not fit"):
        cluster_mean([1.0], ["a", "b"])
    with pytest.raises(ValueError, match="'Leg' is not one of"):
        macro([1.0], ["a"], ["Leg"], ["Head"])


def test_macro_weighs_domains_alike_and_a_topic_in_two_is_one_cluster() -> None:
    values, domains = [1.0, 0.0, 0.0, 0.0, 0.6], ["Head"] * 4 + ["Thorax"]
    found = macro(values, ["a", "b", "c", "d", "a"], domains, ["Head", "Thorax"])
    assert found.mean == pytest.approx((0.25 + 0.6) / 2) and found.clusters == 4
    assert found.method == "cluster-robust t (CR1, df = 3), 95 %"


def test_clusters_of_queries() -> None:
    def name(text="", collection="t/Head", identity="q", **meta):
        return cluster_of(Query(collection, identity, text, (), meta))

    assert name(cluster="colitis", case="c1") == "cluster:colitis"
    assert name(cluster="", case="c1") == name("words", case="c1") == "case:c1"
    assert name(cluster="x") != name(case="x")
    assert name(case=0) == "case:0"
    same = [name("Ｃｏｌｉｔｉｓ  of\tthe colon"), name(" colitis of THE colon\n", "t/Thorax", "other")]
    assert same[0] == same[1] == "text:colitis of the colon"
    assert name("STRASSE") == name("straße")
    assert name("  ") == "query:t/Head/q" != name(" ", "t/Thorax")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=8))
def test_the_cluster_of_a_folded_text_is_its_own(text: str) -> None:
    folded = cluster_of(Query("c", "i", text))
    if folded.startswith("text:"):
        assert cluster_of(Query("c", "i", folded.removeprefix("text:"))) == folded


def simulate(repeats: int, one: bool) -> tuple[float, float]:
    """Share of intervals that hold the true mean: cluster-robust, and as if queries were independent."""
    generator = np.random.default_rng(20261130)
    held = naive = 0
    for _ in range(repeats):
        sizes = generator.geometric(0.35, 54)
        cluster = np.repeat(np.arange(54), sizes)
        # Beta-distributed topics, each with its queries close to it; the true mean is 0.4.
        topic = generator.beta(1.0, 1.5, 54)
        values = np.clip(topic[cluster] + 0.05 * generator.standard_normal(len(cluster)), -1, 2)
        if one:
            found = cluster_mean(values, cluster, WIDE)
        else:
            domain = [str(d) for d in cluster % 5]
            found = macro(values, cluster, domain, ["0", "1", "2", "3", "4"], WIDE)
        alone = cluster_mean(values, range(len(values)), WIDE)
        held += found.low <= 0.4 <= found.high
        naive += alone.low <= 0.4 <= alone.high
    return held / repeats, naive / repeats


@pytest.mark.parametrize("one", [True, False])
def test_coverage(one: bool) -> None:
    """Band fixed beforehand: 0.92 to 0.97 of 1,500 simulated means (standard error 0.006), 54 clusters."""
    held, naive = simulate(1500, one)
    assert 0.92 <= held <= 0.97
    if one:
        assert naive < 0.85  # what the clusters are for


def by_hand(differences, clusters, weights) -> float:
    """Every flip of every cluster, with itertools."""
    names = sorted(set(clusters))
    sums = [sum(w * d for w, d, c in zip(weights, differences, clusters, strict=True) if c == n) for n in names]
    totals = [
        abs(sum(sign * s for sign, s in zip(f, sums, strict=True)))
        for f in itertools.product([1, -1], repeat=len(sums))
    ]
    return sum(total >= abs(sum(sums)) - 1e-10 for total in totals) / len(totals)


def test_randomisation_of_three_clusters_by_hand() -> None:
    # Sums 0.3, 0.2 and −0.1 by cluster, together 0.4. Flips give ±0.6, ±0.4, ±0.2 and twice 0: four of eight reach it.
    found = paired_randomisation([0.1, 0.2, 0.2, -0.1], ["a", "a", "b", "c"])
    assert found.p == pytest.approx(4 / 8) and found.method == "randomisation over clusters, all 8 flips"
    assert paired_randomisation([0.1] * 5, "abcde").p == pytest.approx(2 / 32)
    assert paired_randomisation([0.1] * 5, "aaaaa").p == 1.0


quarters = st.integers(-4, 4).map(lambda n: n / 4)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(quarters, st.sampled_from("abcdefg"), st.sampled_from(["Head", "Thorax"])), min_size=1))
def test_exact_randomisation_like_itertools(data) -> None:
    differences, clusters, domains = zip(*data, strict=True)
    even = [1 / len(data)] * len(data)
    assert paired_randomisation(differences, clusters).p == pytest.approx(by_hand(differences, clusters, even))
    weights = macro_weights(domains, sorted(set(domains)))
    found = paired_randomisation(differences, clusters, weights)
    assert found.p == pytest.approx(by_hand(differences, clusters, [1 / domains.count(d) for d in domains]))
    assert paired_randomisation([-d for d in differences], clusters, weights) == found  # two-sided
    assert paired_randomisation(differences[::-1], clusters[::-1], weights[::-1]).p == pytest.approx(found.p)


def test_sampled_randomisation_is_near_the_exact_one() -> None:
    generator = np.random.default_rng(3)
    sums = generator.standard_normal((17, 5)) + 0.5
    exact = []
    for column in sums.T:
        totals = np.array([0.0])
        for term in column:
            totals = np.concatenate([totals + term, totals - term])
        exact.append(np.mean(np.abs(totals) >= abs(column.sum()) - 1e-9))
    found = sign_flips(sums)
    assert all("100,000 flips" in one.method for one in found)
    # Five standard errors of a share of 100,000 flips.
    for one, p in zip(found, exact, strict=True):
        assert abs(one.p - p) < 5 * math.sqrt(p * (1 - p) / 100_000) + 1e-5
    assert sign_flips(sums[::-1]) == sign_flips(sums) == found  # seeded, in any order of clusters
    alone = [sign_flips(sums[:, [i]])[0].p for i in range(5)]
    assert alone == [one.p for one in found]  # what else is tested changes nothing
    assert sign_flips(np.full((40, 1), 0.1), flips=999)[0].p == 1 / 1000  # (1 + 0)/(1 + flips)


def test_equal_runs_have_p_1_however_many_clusters() -> None:
    for many in (1, 5, 16, 17, 60):
        assert paired_randomisation([0.0] * many, range(many), flips=999).p == 1.0
        shifted = [(0.1 + 0.7) - (0.3 + 0.5)] * many  # equal but for rounding, always to one side
        assert shifted[0] != 0 and paired_randomisation(shifted, range(many), flips=999).p == 1.0
    assert sign_flips(np.zeros((30, 2)), 99)[0].p == 1.0


def test_a_topic_in_two_domains_is_one_cluster() -> None:
    weights = macro_weights(["Head", "Head", "Thorax"], ["Head", "Thorax"])
    assert weights.tolist() == [0.25, 0.25, 0.5]
    sums = cluster_sums(np.array([[0.4], [0.2], [0.6]]), ["x", "y", "x"], weights)
    assert sums[:, 0] == pytest.approx([0.25 * 0.4 + 0.5 * 0.6, 0.25 * 0.2])
    assert cluster_sums(np.array([[0.1], [0.2], [-0.3]]), "xxx")[0, 0] == 0.0  # not what rounding leaves of it
    with pytest.raises(ValueError, match="do not fit"):
        paired_randomisation([0.1], ["a", "b"])
    with pytest.raises(ValueError, match="not a finite"):
        paired_randomisation([math.nan], ["a"])


def test_holm_by_hand() -> None:
    # 0.01·4, 0.015·3 = 0.045, then 0.02·2 = 0.04 is lifted to 0.045, and 0.9·1.
    assert holm([0.02, 0.01, 0.9, 0.015]) == pytest.approx([0.045, 0.04, 0.9, 0.045])
    assert holm([0.6, 0.7]) == [1.0, 1.0] and holm([]) == [] and holm([0.03]) == [0.03]
    assert holm([0.01, 0.01, 0.01]) == pytest.approx([0.03] * 3)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=7))
def test_holm_rejects_like_its_step_down_definition(values) -> None:
    adjusted, rejected = holm(values), set()
    for place, i in enumerate(sorted(range(len(values)), key=lambda i: values[i])):
        if values[i] * (len(values) - place) > 0.05:
            break
        rejected.add(i)
    assert {i for i, p in enumerate(adjusted) if p <= 0.05} == rejected
    assert all(a >= p for a, p in zip(adjusted, values, strict=True))


def test_rank_intervals_by_hand() -> None:
    better = np.zeros((4, 4), bool)
    assert rank_intervals(better) == [(1, 4)] * 4
    better[0, 2] = better[0, 3] = better[1, 3] = True
    assert rank_intervals(better) == [(1, 2), (1, 3), (2, 4), (3, 4)]
    assert rank_intervals(np.triu(np.ones((3, 3), bool), 1)) == [(1, 1), (2, 2), (3, 3)]


def test_small_groups_are_pooled_by_clusters_not_queries() -> None:
    groups = ["A"] * 3 + ["B"] * 3 + ["C"]
    assert pooled_groups(groups, [1, 2, 3, 4, 4, 4, 5], fewest=3) == ["A"] * 3 + [OTHER] * 4
    assert pooled_groups(["A"] * 10, range(10)) == ["A"] * 10 and pooled_groups(["A"] * 9, range(9)) == [OTHER] * 9
    with pytest.raises(ValueError):
        pooled_groups(["A"], [])


def test_smallest_detectable_difference() -> None:
    values = np.random.default_rng(5).normal(0, 0.2, 30)
    found = smallest_detectable(cluster_mean(values, range(30), WIDE))
    assert found == pytest.approx((stats.t.ppf(0.975, 29) + stats.t.ppf(0.8, 29)) * stats.sem(values))
    assert math.isnan(smallest_detectable(cluster_mean([0.1], ["a"])))
    # What it promises: a difference of that size is found by 80 % of tests (band ± 5, 600 of them).
    generator, hits = np.random.default_rng(6), 0
    size = (stats.t.ppf(0.975, 29) + stats.t.ppf(0.8, 29)) * 0.2 / math.sqrt(30)
    for sample in generator.normal(size, 0.2, (600, 30)):
        hits += cluster_mean(sample, range(30), WIDE).low > 0
    assert 0.75 <= hits / 600 <= 0.85


def test_bootstrap_like_a_plain_loop() -> None:
    generator = np.random.default_rng(7)
    clusters = [f"c{n}" for n in generator.integers(0, 12, 60)]
    values, domains = generator.random(60), ["Head" if n % 3 else "Thorax" for n in range(60)]
    rows = {c: [i for i, name in enumerate(clusters) if name == c] for c in sorted(set(clusters))}
    means, macros, plain = [], [], np.random.default_rng(8)
    for _ in range(4000):
        drawn = [i for c in plain.choice(sorted(rows), len(rows)) for i in rows[str(c)]]
        means.append(values[drawn].mean())
        each = [[values[i] for i in drawn if domains[i] == d] for d in ("Head", "Thorax")]
        macros.append(np.mean([np.mean(x) for x in each]))
    for statistic, expected in ((mean_of(values), means), (macro_of(values, domains), macros)):
        found = cluster_bootstrap(statistic, clusters, WIDE, resamples=4000)
        assert (found.low, found.high) == pytest.approx(np.quantile(expected, [0.025, 0.975]), abs=0.01)
        assert found.method == "percentile bootstrap over clusters, B = 4,000, seed 20261130, 95 %"
        assert found == cluster_bootstrap(statistic, clusters, WIDE, resamples=4000)  # seeded
    assert found.mean == pytest.approx(macro(values, clusters, domains, ["Head", "Thorax"]).mean)
    turned = cluster_bootstrap(macro_of(values[::-1], domains[::-1]), clusters[::-1], WIDE, resamples=4000)
    assert (turned.low, turned.high) == pytest.approx((found.low, found.high))  # in any order of queries


def test_bootstrap_without_an_interval_or_with_samples_left_out_says_so() -> None:
    assert cluster_bootstrap(mean_of([]), []).method == "N/A: the statistic has no value"
    one = cluster_bootstrap(mean_of([1.0, 0.0]), ["a", "a"])
    assert one == Estimate(0.5, None, None, 2, 1, "no interval: fewer than 2 clusters")
    rare = cluster_bootstrap(macro_of([0.2, 0.4, 1.0], ["Head", "Head", "Thorax"]), "abc", resamples=1000)
    left = int(rare.method.split("95 %; ")[1].split(" ")[0])
    # A sample of three lacks the only topic of Thorax with (2/3)³, and has nothing but it with (1/3)³.
    assert 280 < left < 390 and rare.low is not None and 0.6 <= rare.low <= rare.high <= 0.7
    assert cluster_bootstrap(mean_of([0.0] * 9 + [1.0]), range(10)).low == 0.0


@pytest.mark.parametrize("grid", [0, 7, 3])
def test_sampled_flips_are_counted_as_64_bit_sums_count_them(grid) -> None:
    """The same signs summed one pair at a time, also where many sums are as far as the one seen."""
    generator = np.random.default_rng(5)
    sums = generator.integers(-3, 4, (43, 4)) / grid if grid else generator.standard_normal((43, 4))
    flips, size = 2000, np.sort(np.abs(sums), axis=0)
    packed = np.random.default_rng(9).integers(0, 256, (flips, 6), np.uint8)
    signs = 2.0 * np.unpackbits(packed, axis=1, count=43) - 1
    for at, found in enumerate(sign_flips(sums, flips, 9)):
        least = abs(sums[:, at].sum()) - 1e-10 * size[:, at].sum()
        hits = sum(abs(math.fsum(row * size[:, at])) >= least for row in signs)
        assert found.p == (1 + hits) / (1 + flips)
