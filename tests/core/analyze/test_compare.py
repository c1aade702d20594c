"""The comparison of runs against its parts worked out one by one, and what must not matter to it."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.analyze.compare import compare, family, from_stored, unlisted
from core.analyze.scored import Key, Scored
from core.evaluate.run import Run, RunInfo, open_run, save
from core.evaluate.stats import cluster_mean, macro, paired_randomisation

LISTED = {
    **{"data_id": "d1", "variant": "full", "index_kind": "exact", "overlay": "", "split": "", "fold_plan": ""},
    **{"default_weighting": True, "trained_on": False, "revised": 1, "depth": 1000, "precision": "float32"},
}
# 12 topics of two queries in Head, 11 of one in Thorax; topic 0 is in both.
QUERIES = [("t/Head", f"h{n}", f"topic {n // 2}", "Head") for n in range(24)]
QUERIES += [("t/Thorax", f"x{n}", f"topic {n + 12 if n else 0}", "Thorax") for n in range(11)]
CLUSTERS: dict[Key, str] = {(c, q): topic for c, q, topic, _ in QUERIES}
DOMAINS: dict[Key, str] = {(c, q): domain for c, q, _, domain in QUERIES}


def run(name: str, values: Mapping[Key, float], revision: str = "1", **conditions) -> Scored:
    return Scored(
        *(name, f"org/{name}", revision, (f"run-{name}",), "t", "nDCG@10"),
        *(dict(values), CLUSTERS, DOMAINS, LISTED | conditions),
    )


def drawn(seed: int, lift: float = 0.0) -> dict[Key, float]:
    base = np.random.default_rng(100).random(len(CLUSTERS)) * 0.4
    noise = np.random.default_rng(seed).random(len(CLUSTERS)) * 0.1
    return dict(zip(CLUSTERS, (base + noise + lift).tolist(), strict=True))


@pytest.fixture
def three() -> list[Scored]:
    """``best`` is far ahead of two that are alike."""
    return [run("alike", drawn(1)), run("best", drawn(2, 0.3)), run("same", drawn(3))]


def test_macro_family_is_its_parts_one_by_one(three) -> None:
    found = compare(three)
    assert (found.task, found.measure, found.macro.name, found.warnings) == ("t", "nDCG@10", "macro", ())
    domains = list(DOMAINS.values())
    pairs = {(p.a, p.b): p for p in found.macro.pairs}
    assert list(pairs) == [("alike", "best"), ("alike", "same"), ("best", "same")]
    raw = {}
    for a, b in itertools.combinations(three, 2):
        d = [a.values[k] - b.values[k] for k in CLUSTERS]
        n = {name: domains.count(name) for name in domains}
        test = paired_randomisation(d, list(CLUSTERS.values()), [1 / (2 * n[name]) for name in domains])
        pair = pairs[a.name, b.name]
        raw[a.name, b.name] = test.p
        assert pair.test.p == test.p and pair.test.method == test.method
        expected = macro(d, list(CLUSTERS.values()), domains, ["Head", "Thorax"], (-1, 1))
        assert pair.difference.mean == pytest.approx(expected.mean)
        assert (pair.difference.low, pair.difference.high) == pytest.approx((expected.low, expected.high))
        assert (pair.difference.n, pair.difference.clusters) == (35, 22) and pair.detectable > 0
        for domain in ("Head", "Thorax"):
            mine = [x for x, name in zip(d, domains, strict=True) if name == domain]
            assert pair.outcomes[domain] == (sum(x > 0 for x in mine), 0, sum(x < 0 for x in mine))
    ordered = sorted(raw, key=raw.get)
    reached = 0.0
    for place, key in enumerate(ordered):
        reached = max(reached, min(1.0, raw[key] * (3 - place)))
        assert pairs[key].p_adjusted == pytest.approx(reached)
    assert [p.verdict for p in found.macro.pairs] == ["worse", "not established", "better"]
    assert found.macro.standings[0].name == "best" and found.macro.standings[0].rank == (1, 1)
    assert {s.rank for s in found.macro.standings[1:]} == {(2, 3)}


def test_domains_are_one_family_of_their_own(three) -> None:
    found = compare(three)
    assert [g.name for g in found.domains] == ["Head", "Thorax"]
    tested = [p for g in found.domains for p in g.pairs]
    assert len(tested) == 6
    least = min(tested, key=lambda p: p.test.p)
    assert least.p_adjusted == pytest.approx(6 * least.test.p)  # over pairs and domains together
    head = found.domains[0]
    mine = [k for k in CLUSTERS if DOMAINS[k] == "Head"]
    expected = cluster_mean([three[1].values[k] for k in mine], [CLUSTERS[k] for k in mine])
    assert head.standings[0].estimate.mean == pytest.approx(expected.mean)
    assert (head.standings[0].estimate.n, head.standings[0].estimate.clusters) == (24, 12)
    # 11 topics of Thorax: exact, two flips of 2,048 are as far, times six pairs.
    assert found.domains[1].pair("best", "same").test.p == 2 / 2**11
    assert found.domains[1].pair("best", "same").verdict == "better"


def test_a_pair_reads_both_ways(three) -> None:
    group = compare(three).macro
    there, back = group.pair("best", "alike"), group.pair("alike", "best")
    assert (there.a, there.b, there.verdict, back.verdict) == ("best", "alike", "better", "worse")
    assert there.difference.mean == -back.difference.mean > 0
    assert (there.difference.low, there.difference.high) == (-back.difference.high, -back.difference.low)
    assert there.outcomes["Head"] == back.outcomes["Head"][::-1] and there.reversed() == back
    assert group.pair("best", "nobody") is None


def close(a, b) -> bool:
    """Equal but for rounding."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == pytest.approx(b, abs=1e-9) if isinstance(a, float) and isinstance(b, float) else a == b


@settings(max_examples=6, deadline=None)
@given(
    st.permutations(range(4)), st.randoms(use_true_random=False), st.lists(st.floats(0, 0.3), min_size=4, max_size=4)
)
def test_order_of_runs_and_queries_and_a_shift_do_not_matter(order, random, lifts) -> None:
    runs = [run(f"m{n}", drawn(n, lift)) for n, lift in enumerate(lifts)]
    found = compare(runs).as_dict()
    keys = list(CLUSTERS)
    random.shuffle(keys)
    turned = [dataclasses.replace(runs[n], values={k: runs[n].values[k] for k in keys}) for n in order]
    assert compare(turned).as_dict() == found
    shifted = compare([run(r.name, {k: v + 0.15 for k, v in r.values.items()}) for r in runs]).as_dict()
    for one, other in zip([found["macro"], *found["domains"]], [shifted["macro"], *shifted["domains"]], strict=True):
        assert close(one["pairs"], other["pairs"])
        assert [(s["name"], s["rank"]) for s in one["standings"]] == [
            (s["name"], s["rank"]) for s in other["standings"]
        ]


def test_what_is_shown_changes_no_number(three) -> None:
    found = compare(three)
    whole, part = found.as_dict(), found.as_dict(shown={"best", "same"})
    assert json.loads(json.dumps(whole, allow_nan=False)) == whole
    assert [p for p in whole["macro"]["pairs"] if {p["a"], p["b"]} == {"best", "same"}] == part["macro"]["pairs"]
    assert [s["name"] for s in part["domains"][0]["standings"]] == ["best", "same"]
    assert part["macro"]["standings"][0]["rank"] == [1, 1] and part["macro"]["standings"][1]["rank"] == [2, 3]
    fewer = compare([r for r in three if r.name != "alike"])  # what ticking must not do: another family
    assert fewer.macro.pairs[0].p_adjusted != found.macro.pair("best", "same").p_adjusted


def test_equal_runs_are_never_told_apart() -> None:
    values = drawn(1)
    pair = compare([run("a", values), run("b", {k: v + 1e-15 for k, v in values.items()})]).macro.pairs[0]
    assert (pair.test.p, pair.p_adjusted, pair.verdict) == (1.0, 1.0, "not established")
    assert pair.outcomes == {"Head": (0, 24, 0), "Thorax": (0, 11, 0)}


def test_a_model_that_cannot_do_a_domain_is_na_and_last(three) -> None:
    thorax = {k for k in CLUSTERS if DOMAINS[k] == "Thorax"}
    high = {k: 1.0 for k in CLUSTERS if k not in thorax}
    nan = high | dict.fromkeys(thorax, math.nan)
    found = compare(
        [*three, run("a absent", high), run("a nan", nan), run("nothing", dict.fromkeys(CLUSTERS, math.nan))]
    )
    assert [s.name for s in found.macro.standings][3:] == ["a absent", "a nan", "nothing"]
    assert [s.rank for s in found.macro.standings] == [(1, 1), (2, 3), (2, 3), None, None, None]
    assert [s.reason for s in found.macro.standings[3:]] == [
        "N/A: no queries in Thorax",
        "N/A: 11 of 11 queries in Thorax have no value",
        "N/A: 24 of 24 queries in Head have no value",
    ]
    assert len(found.macro.pairs) == 3 and found.macro.pairs == compare(three).macro.pairs
    head, chest = found.domains
    assert {head.standings[0].name, head.standings[1].name} == {"a absent", "a nan"}
    assert head.standings[-1].rank is None and math.isnan(head.standings[-1].estimate.mean)
    assert head.pair("a absent", "a nan").test.p == 1.0 and chest.pair("a absent", "best") is None
    assert found.as_dict()["macro"]["standings"][-1]["estimate"]["mean"] is None
    one = dataclasses.replace(three[0], name="gap", values=three[0].values | {("t/Head", "h3"): math.nan})
    assert compare([*three, one]).macro.standings[-1].reason == "N/A: 1 of 24 queries in Head have no value"


def test_paired_means_the_same_queries(three) -> None:
    fewer = dataclasses.replace(three[0], values={k: v for k, v in three[0].values.items() if k[1] not in ("h1", "h7")})
    with pytest.raises(ValueError, match="alike and best do not have the same queries in Head: 2 of 24 differ"):
        compare([fewer, *three[1:]])
    other = dataclasses.replace(three[0], clusters=CLUSTERS | {("t/Head", "h1"): "another"})
    with pytest.raises(ValueError, match="disagree about the cluster of query 'h1' of t/Head"):
        compare([other, *three[1:]])
    with pytest.raises(ValueError, match="one measure, not of 2"):
        compare([three[0], dataclasses.replace(three[1], measure="AP")])
    with pytest.raises(ValueError, match="one name"):
        compare([three[0], three[0]])
    with pytest.raises(ValueError, match="one task, not of 0"):
        compare([])
    with pytest.raises(ValueError, match="'lost' of t/Head in the runs of m has no cluster"):
        run("m", {("t/Head", "lost"): 1.0})


def test_a_domain_of_few_clusters_has_means_only() -> None:
    keys = [k for k in CLUSTERS if DOMAINS[k] == "Head" or k[1] in ("x1", "x2")]
    found = compare([run(n, {k: drawn(i, i / 3)[k] for k in keys}) for i, n in enumerate("ab")])
    head, chest = found.domains
    assert head.standings[0].rank == (1, 1) and head.reason == ""
    assert chest.reason == "2 clusters: fewer than 10 are neither ranked nor tested"
    assert [s.rank for s in chest.standings] == [None, None] and chest.standings[0].reason == chest.reason
    pair = chest.pairs[0]
    assert (pair.test, pair.p_adjusted, pair.verdict) == (None, None, "not established")
    assert pair.difference.mean == pytest.approx(-1 / 3, abs=0.11) and pair.outcomes == {"Thorax": (0, 0, 2)}
    assert head.pairs[0].p_adjusted == head.pairs[0].test.p  # a family of one


def test_one_run_alone() -> None:
    found = compare([run("only", drawn(1))])
    assert found.macro.pairs == () and found.macro.standings[0].rank == (1, 1)


def test_warnings_name_what_differs(three) -> None:
    a, b, c = three
    b = dataclasses.replace(b, conditions=LISTED | {"depth": 100, "fold_plan": "p1"})
    c = dataclasses.replace(
        c, model_id=a.model_id, revision="2", conditions=LISTED | {"data_id": "d2", "fold_plan": "p2"}
    )
    del (conditions := dict(a.conditions))["precision"]
    found = compare([dataclasses.replace(a, conditions=conditions), b, c]).warnings
    assert found == (
        "The runs differ in version of the data: alike d1, best d1, same d2.",
        "The runs differ in precision: alike not stated, best float32, same float32.",
        "The runs differ in depth of the rankings: alike 1000, best 100, same 1000.",
        "The cross-fitted runs follow 2 plans of folds.",
        "Several revisions of org/alike are compared: 1, 2.",
    )


def test_only_listed_runs_are_in_the_family() -> None:
    good = run("good", drawn(1))
    changes = {
        "variant text-only": {"variant": "text-only"},
        "index hnsw": {"index_kind": "hnsw"},
        "fusion or weight is not the default": {"default_weighting": False},
        "judged anew": {"overlay": "notes"},
        "only the queries of split dev": {"split": "dev"},
        "trained on this data and not cross-fitted": {"trained_on": True},
    }
    for reason, change in changes.items():
        other = run("other", drawn(2), **change)
        assert unlisted(other) == reason and family([other, good]) == [good]
    assert unlisted(run("other", drawn(2), trained_on=True, fold_plan="p")) == ""
    bare = dataclasses.replace(good, conditions={"imported": True})
    assert unlisted(bare) == "" and family([bare]) == [bare]
    with pytest.raises(ValueError, match="good does not state 'variant'"):
        family([dataclasses.replace(good, conditions={})])


def test_one_run_a_model_of_the_newest_revision() -> None:
    old, new = run("m", drawn(1), "a", revised=1), run("m", drawn(2), "b", revised=2)
    shallow = dataclasses.replace(new, conditions=LISTED | {"revised": 2, "depth": 10}, run_ids=("zz",))
    other, elsewhere = run("k", drawn(3)), run("m", drawn(1), data_id="d0")
    ap = dataclasses.replace(old, measure="AP")
    for order in itertools.permutations([old, new, shallow, other]):
        assert family(order) == [other, new]
    assert {id(r) for r in family([new, elsewhere, ap])} == {id(new), id(elsewhere), id(ap)}


def info(place: str, **change) -> RunInfo:
    made = {"fusion": "centred", "weight": 0.5, "centring": "c", "index_kind": "exact", "depth": 10} | change
    return RunInfo("m", "org/m", "r1", ("e1",), "t", place, **made)


def test_from_stored_runs(tmp_path) -> None:
    stored = []
    for place, values in (("t/Head", {"h1": 0.5, "h%2F2": 1.0}), ("t/Thorax", {"h1": 0.25})):
        rankings = {query: [("d", 1.0)] for query in values}
        stored.append(open_run(save(tmp_path, "d1", Run(info(place), rankings), {"nDCG@10": values}, {})))
    keys = {("t/Head", "h1"): "A", ("t/Head", "h/2"): "B", ("t/Thorax", "h1"): "A"}
    domains = {key: key[0] for key in keys}
    given = {"default_weighting": True, "trained_on": False, "revised": 1, "precision": "float32"}
    found = from_stored(stored, "nDCG@10", keys, domains, given)
    assert found.values == {("t/Head", "h1"): 0.5, ("t/Head", "h/2"): 1.0, ("t/Thorax", "h1"): 0.25}
    assert (found.name, found.model_id, found.revision, found.task) == ("m", "org/m", "r1", "t")
    assert found.run_ids == (stored[0].info.run_id,) and found.conditions["depth"] == 10
    assert found.conditions["data_id"] == "d1" and unlisted(found) == "" and compare([found]).macro.standings
    deeper = open_run(save(tmp_path, "d1", Run(info("t/Head", depth=20), {}), {"nDCG@10": {}}, {}))
    for wrong in ([stored[0], deeper], []):
        with pytest.raises(ValueError, match="settings in one record"):
            from_stored(wrong, "nDCG@10", keys, domains, given)
    with pytest.raises(KeyError, match="AP"):
        from_stored(stored, "AP", keys, domains, given)
