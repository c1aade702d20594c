"""Tables and lists against plain loops over drawn diagnoses, and the kinds of real ones counted by hand."""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.analyze.diagnosis import Diagnosis
from core.analyze.failures import BY_NAME, CAUSE, DEPTH, KINDS, depth_of
from core.analyze.lists import ALL_FAIL, CONTRAST, ONLY_THIS, Wanted, chosen, folded, gap
from core.analyze.slices import (
    NOT_STATED,
    ablation,
    confusion,
    facets,
    groups_of,
    kinds,
    unexplained,
    value_of,
    where,
)
from core.analyze.task_runs import TaskRun
from core.evaluate.stats import OTHER, cluster_bootstrap, cluster_mean, mean_of
from core.records import TASK_LABELS, Query

TASK, K, MEASURE = "case_study", 10, "nDCG@10"
HELD = [kind.name for kind in KINDS if kind.role != DEPTH]
# How many clusters of each, so that some are pooled and one of the pooled is called "other" itself.
SPECIALTIES = {"Neurology": 30, "Surgery": 12, "other": 11, "Cardiology": 9, "Oncology": 2, None: 1}


@pytest.fixture(scope="module")
def dataset(new_study):
    study = new_study()
    for domain in ("Head", "Thorax"):
        study.doc("d", f"words of {domain}", domain=domain)
        study.query("q", "words", domain=domain)
    return study.open()


def drawn(dataset, seed: int = 0, n: int = 300, label: str = "a", **changes: Any) -> Diagnosis:
    """A diagnosis with everything drawn: 65 clusters of six specialties in two domains."""
    draw = random.Random(seed)
    of_cluster = [name for name, many in SPECIALTIES.items() for _ in range(many)]
    queries = []
    for at in range(n):
        cluster = draw.randrange(len(of_cluster))
        collection = f"{TASK}/{'Head' if cluster % 2 else 'Thorax'}"
        meta = {"specialty": of_cluster[cluster], "modality": draw.choice(["CT", "MR", ""]), "cluster": f"c{cluster}"}
        words = draw.choice(["A Café on the left", "STRASSE and lung", "naïve reading", "lung  mass"])
        queries.append(Query(collection, f"q{at:05}", words, (), {k: v for k, v in meta.items() if v is not None}))
    queries.sort(key=lambda q: (q.collection, q.id))
    first = np.array([draw.choice([0, 1, 2, 5, 10, 11, 30, 50, 51, 400]) for _ in queries], np.int32)
    found = tuple({name: f"{name}!" for name in draw.sample(HELD, draw.randrange(4))} for _ in queries)
    tops = [
        {
            "domain": draw.choice(["Head", "Thorax", ""]),
            "specialty": draw.choice(["Neurology", "Gout", ""]),
            "modality": "",
        }
        for _ in queries
    ]
    values = {MEASURE: np.array([draw.choice([0, 0.25, 0.5, 1]) for _ in queries]), "AP": np.full(n, np.nan)}
    return Diagnosis(
        **{
            "dataset": dataset,
            "run": TaskRun(label, "bm25", "bm25s", "1", TASK, "pool", ()),
            "depth": 1000,
            "overlay": "",
            "run_ids": (label,),
            "queries": tuple(queries),
            "clusters": tuple(str(q.meta["cluster"]) for q in queries),
            "first": first,
            "values": values,
            "found": found,
            "not_available": {},
            "ablation": {},
            "top": tuple(tops),
            "_table": pa.table({}),
            "_rows": np.arange(n),
        }
        | changes
    )


def held(diagnosis: Diagnosis, i: int, k: int = K) -> set[str]:
    """The kinds of a query, depth and all."""
    depth = depth_of(int(diagnosis.first[i]), k)
    return set(diagnosis.found[i]) | ({depth} if depth else set())


def failing(diagnosis: Diagnosis, i: int, k: int = K) -> bool:
    return not 0 < diagnosis.first[i] <= k


@pytest.mark.parametrize("by", ["specialty", "domain", "collection", "task", "modality", "nothing of the kind"])
@pytest.mark.parametrize("seed", [1, 2])
def test_where_against_plain_loops(dataset, by, seed) -> None:
    diagnoses = [drawn(dataset, seed), drawn(dataset, seed + 10, 120)]
    queries = [(d, i) for d in diagnoses for i in range(len(d.queries))]
    by_value: dict[str, list] = {}
    for d, i in queries:
        query = d.queries[i]
        value = {
            "domain": query.collection.partition("/")[2],
            "collection": query.collection,
            "task": TASK_LABELS[TASK],
        }.get(by, query.meta.get(by) or NOT_STATED)
        assert value_of(d, i, by) == value
        by_value.setdefault(value, []).append((d, i))
    groups, rest = {}, []
    for name, members in by_value.items():
        if len({d.clusters[i] for d, i in members}) < 10:
            rest += members
        else:
            groups[name, False] = members
    if rest:
        taken = any(name == OTHER for name, _ in groups)  # the joined ones then need another name
        groups[f"{OTHER} (joined)" if taken else OTHER, True] = [(d, i) for d, i in queries if (d, i) in rest]
    found = where(diagnoses, by, K, MEASURE)
    assert {(g.name, g.pooled) for g in found} == set(groups)
    if by == "specialty":
        assert ("other", False) in groups and found[-1].members == ("Cardiology", "Oncology", NOT_STATED)
    for group in found:
        members = groups[group.name, group.pooled]
        clusters = [d.clusters[i] for d, i in members]
        bad = [q for q in members if failing(*q)]
        good = [q for q in members if not failing(*q)]
        assert (group.n, group.failures, group.clusters) == (len(members), len(bad), len(set(clusters)))
        assert group.rate == cluster_bootstrap(mean_of([float(failing(*q)) for q in members]), clusters)
        assert group.rate.mean == pytest.approx(len(bad) / len(members))
        assert group.mean == cluster_mean([float(d.values[MEASURE][i]) for d, i in members], clusters)
        assert group.members == (tuple(sorted({value_of(d, i, by) for d, i in members})) if group.pooled else ())
        excess = {}
        for name in (kind.name for kind in KINDS if kind.role == CAUSE):
            share, elsewhere = (sum(name in held(*q) for q in part) / len(part) for part in (bad, good))
            if share > elsewhere:
                excess[name] = (share - elsewhere, share, elsewhere)
        best = max(excess, key=lambda name: excess[name][0])
        assert excess[group.dominant][0] == pytest.approx(excess[best][0])
        assert (group.share, group.elsewhere) == pytest.approx(excess[group.dominant][1:])
    ranked = [group for group in found if not group.pooled]
    assert all(group.pooled for group in found[len(ranked) :]) and len(found) - len(ranked) <= 1
    assert [g.rate.low for g in ranked] == sorted((g.rate.low for g in ranked), reverse=True)


def test_where_nothing_can_be_said(dataset) -> None:
    assert where([], "domain", K, MEASURE) == []
    some = drawn(dataset)
    values = some.values[MEASURE].copy()
    values[np.flatnonzero([q.collection.endswith("Head") for q in some.queries])[0]] = np.nan
    for found in (where([some], "domain", K, "AP"), where([some], "domain", K, "Judged@10")):
        assert all(math.isnan(g.mean.mean) and g.mean.low is None and g.mean.method.startswith("N/A") for g in found)
        assert all(g.rate.low is not None and g.mean.n == g.n for g in found)
    one = {g.name: g.mean.mean for g in where([replace(some, values={MEASURE: values})], "domain", K, MEASURE)}
    assert math.isnan(one["Head"]) and not math.isnan(one["Thorax"])
    easy = where([replace(some, first=np.ones_like(some.first))], "domain", K, MEASURE)
    assert all((g.failures, g.dominant, g.rate.mean) == (0, "", 0) and math.isnan(g.share) for g in easy)
    hard = where([replace(some, first=np.zeros_like(some.first))], "domain", K, MEASURE)
    assert all(BY_NAME[g.dominant].role == CAUSE and math.isnan(g.elsewhere) for g in hard)
    plain = replace(some, found=tuple({} for _ in some.queries))
    for g in where([plain], "domain", K, MEASURE):
        at = [i for i in range(len(plain.queries)) if value_of(plain, i, "domain") == g.name and failing(plain, i)]
        depths = [depth_of(int(plain.first[i]), K) for i in at]
        assert depths.count(g.dominant) == max(map(depths.count, depths))
        assert (g.share, g.elsewhere) == pytest.approx((depths.count(g.dominant) / len(depths), 0))


def test_what_is_common_everywhere_is_not_the_reason(dataset) -> None:
    """A cause of all queries says less than one of a third of the failures."""
    some = drawn(dataset)
    found = tuple(
        {"hub document": "x"} | ({"tie": "y"} if failing(some, i) and i % 3 == 0 else {})
        for i in range(len(some.queries))
    )
    groups = where([replace(some, found=found)], "domain", K, MEASURE)
    assert {g.dominant for g in groups} == {"tie"} and all(g.elsewhere == 0 for g in groups)


def test_groups_below_ten_clusters_are_never_ranked(dataset) -> None:
    some = drawn(dataset)
    few = replace(some, clusters=tuple(f"c{at % 9}" for at in range(len(some.queries))))
    (only,) = where([few], "specialty", K, MEASURE)
    assert only.pooled and only.name == OTHER and set(only.members) == {*SPECIALTIES} - {None} | {NOT_STATED}


def test_kinds_and_unexplained_against_counting(dataset) -> None:
    diagnoses = [drawn(dataset, 5), drawn(dataset, 6, 90)]
    lacking = {"tie": "N/A: one", "words decide": "N/A: two"}
    diagnoses[1] = replace(diagnoses[1], not_available=lacking)
    diagnoses[1] = replace(
        diagnoses[1],
        found=tuple({n: e for n, e in found.items() if n not in lacking} for found in diagnoses[1].found),
    )
    for k in (1, 10, 50):
        rows = kinds(diagnoses, k)
        assert [row.name for row in rows] == [kind.name for kind in KINDS]
        for row in rows:
            told = [d for d in diagnoses if row.name not in d.not_available]
            bad = [(d, i) for d in told for i in range(len(d.queries)) if failing(d, i, k)]
            good = [(d, i) for d in told for i in range(len(d.queries)) if not failing(d, i, k)]
            assert row.failures == sum(row.name in held(*q, k) for q in bad) and row.reason == ""
            assert row.share == pytest.approx(row.failures / len(bad))
            if row.role == DEPTH:
                assert row.others is None and not any(row.name in held(*q, k) for q in good)
            else:
                assert row.others == pytest.approx(sum(row.name in held(*q, k) for q in good) / len(good))
        assert sum(row.share for row in rows if row.role == DEPTH) == pytest.approx(1)
        causes = {kind.name for kind in KINDS if kind.role == CAUSE}
        bad = [(d, i) for d in diagnoses for i in range(len(d.queries)) if failing(d, i, k)]
        assert unexplained(diagnoses, k) == (sum(not causes & held(*q, k) for q in bad), len(bad))
    by_name = {row.name: row for row in kinds(diagnoses[1:], K)}
    assert (by_name["tie"].reason, by_name["tie"].share, by_name["tie"].others) == ("N/A: one", None, None)
    easy = replace(diagnoses[0], first=np.ones_like(diagnoses[0].first))
    assert all(row.share is None and row.failures == 0 for row in kinds([easy], K)) and unexplained([easy], K) == (0, 0)
    assert all(row.others is None for row in kinds([replace(easy, first=0 * easy.first)], K))
    assert unexplained([], K) == (0, 0)


def test_the_ablation_by_collection(dataset) -> None:
    some, draw = drawn(dataset, 7), np.random.default_rng(7)
    n = len(some.queries)
    values = {name: draw.random(n) for name in ("full", "picture", "words", "swapped")}
    for at, name in enumerate(values):
        values[name][at * 3 :: 40] = np.nan
    some = replace(some, ablation=values)
    rows = ablation(some)
    assert [row.collection for row in rows] == ["", f"{TASK}/Head", f"{TASK}/Thorax"]
    for row in rows:
        at = [
            i
            for i, query in enumerate(some.queries)
            if row.collection in ("", query.collection) and not any(math.isnan(v[i]) for v in values.values())
        ]
        assert row.n == len(at) and row.clusters == len({some.clusters[i] for i in at})
        for name, column in values.items():
            assert getattr(row, name) == pytest.approx(sum(column[i] for i in at) / len(at))
        pair = [kind.name for kind in KINDS if kind.needs == "ablation"]
        assert row.labels == {name: sum(name in some.found[i] for i in at) for name in pair}
    head = np.array([query.collection.endswith("Head") for query in some.queries])
    only = replace(some, ablation=values | {"words": np.where(head, np.nan, values["words"])})
    assert [row.collection for row in ablation(only)] == ["", f"{TASK}/Thorax"]
    assert ablation(drawn(dataset)) == []


@pytest.mark.parametrize("facet", ["domain", "specialty", "modality"])
def test_confusion_against_counting(dataset, facet) -> None:
    some = drawn(dataset, 8)
    found = confusion(some, facet)
    pairs = []
    for query, top in zip(some.queries, some.top, strict=True):
        asked = query.collection.partition("/")[2] if facet == "domain" else query.meta.get(facet)
        if asked and top[facet]:
            pairs.append((asked, top[facet]))
    assert found.n == len(pairs) == sum(map(sum, found.counts)) and found.n + found.without == len(some.queries)
    assert set(found.names) == {name for pair in pairs for name in pair}
    for asked, row in zip(found.names, found.counts, strict=True):
        assert row == tuple(pairs.count((asked, name)) for name in found.names)
    totals = [sum(row) for row in found.counts]
    assert totals == sorted(totals, reverse=True)
    if facet == "specialty":
        assert "Gout" in found.names and totals[found.names.index("Gout")] == 0  # found, and never asked for


WANTED = [
    Wanted(),
    Wanted(failing=False),
    Wanted(group=("specialty", "Neurology")),
    Wanted(group=("specialty", OTHER), members=("Cardiology", "Oncology", NOT_STATED)),
    Wanted(group=("domain", "Head"), failing=False),
    Wanted(group=("modality", NOT_STATED)),
    Wanted(found=("specialty", "Gout")),
    Wanted(found=("domain", "Head"), group=("domain", "Thorax"), failing=False),
    Wanted(kinds=("tie",)),
    Wanted(kinds=("near miss",), failing=False),
    Wanted(kinds=("not retrieved", "hub document")),
    Wanted(agreement=ALL_FAIL),
    Wanted(agreement=ONLY_THIS),
    Wanted(agreement=ONLY_THIS, failing=False),
    Wanted(text="CAFÉ left"),
    Wanted(text="cafe\u0301"),
    Wanted(text="stra\u00dfe"),
    Wanted(text=" MASS   surgery "),
    Wanted(text="q00007"),
    Wanted(text="nowhere"),
    Wanted(order=CONTRAST),
    Wanted(order=CONTRAST, failing=False, group=("domain", "Thorax"), kinds=("tie",), agreement=ONLY_THIS, text="lung"),
]


def plainly(diagnosis: Diagnosis, wanted: Wanted, others: list[Diagnosis], contrast: int) -> list[int]:
    """By a loop over the queries, one condition after the other."""
    rows = []
    for i, query in enumerate(diagnosis.queries):
        bad = failing(diagnosis, i)
        if wanted.failing and not bad:
            continue
        if wanted.group:
            by, value = wanted.group
            if value_of(diagnosis, i, by) not in (wanted.members or (value,)):
                continue
        if wanted.found and diagnosis.top[i][wanted.found[0]] != wanted.found[1]:
            continue
        if not set(wanted.kinds) <= held(diagnosis, i):
            continue
        theirs = []
        for other in others:
            for j, theirs_query in enumerate(other.queries):
                if (theirs_query.collection, theirs_query.id) == (query.collection, query.id):
                    theirs.append((other, j))
        fails = [failing(*one) for one in theirs]
        if wanted.agreement == ALL_FAIL and not (bad and fails and all(fails)):
            continue
        if wanted.agreement == ONLY_THIS and not (bad and fails and not any(fails)):
            continue
        facets_ = [str(query.meta.get(name, "")) for name in ("specialty", "modality")]
        text = " ".join([query.id, query.collection, query.text, *facets_]).casefold()
        spelled = wanted.text.replace("e\u0301", "é").casefold().split()
        if not all(word in text for word in spelled):
            continue
        value = diagnosis.values[MEASURE][i]
        first = diagnosis.first[i] or 10**9
        if wanted.order == CONTRAST:
            pair = [j for other, j in theirs if other is others[contrast]]
            value = value - others[contrast].values[MEASURE][pair[0]] if pair else math.inf
        rows.append((value, -first, query.collection, query.id, i))
    return [row[-1] for row in sorted(rows)]


@pytest.mark.parametrize("wanted", WANTED, ids=str)
def test_chosen_against_a_loop(dataset, wanted) -> None:
    mine, *others = [drawn(dataset, 9, 200, label) for label in "abc"]
    draw = random.Random(3)
    moved = []
    for other in others:  # runs of the same queries that fail elsewhere, and each lacks some
        kept = sorted(draw.sample(range(200), 150))
        first = np.array([draw.choice([0, 1, 4, 60]) for _ in kept], np.int32)
        values = {MEASURE: np.array([draw.choice([0, 0.5, 1]) for _ in kept])}
        queries = tuple(other.queries[i] for i in kept)
        moved.append(replace(other, queries=queries, first=first, values=values))
    for contrast in (0, 1):
        assert chosen(mine, K, MEASURE, wanted, moved, contrast) == plainly(mine, wanted, moved, contrast)
    if wanted.agreement:
        assert chosen(mine, K, MEASURE, wanted, []) == []  # nobody to agree with


def test_some_filter_lets_something_through(dataset) -> None:
    mine = drawn(dataset, 9, 200)
    for wanted in WANTED:
        if not wanted.agreement and wanted.text != "nowhere":
            assert chosen(mine, K, MEASURE, replace(wanted, failing=False), [mine]), wanted


def test_what_is_n_a_stands_last(dataset) -> None:
    some = drawn(dataset, 4, 40)
    values = some.values[MEASURE].copy()
    values[::2] = np.nan
    found = chosen(replace(some, values={MEASURE: values}), K, MEASURE, Wanted(failing=False))
    assert len(found) == 40 and not np.isnan(values[found[:20]]).any() and np.isnan(values[found[20:]]).all()
    assert len(chosen(some, K, "Judged@10", Wanted(failing=False))) == 40
    other = replace(some, values={})
    assert np.isnan(gap(some, other, MEASURE)).all()
    assert chosen(some, K, MEASURE, Wanted(order=CONTRAST), [other]) == sorted(
        np.flatnonzero(some.failed(K)).tolist(), key=lambda i: (-(some.first[i] or 10**9), i)
    )
    assert gap(some, some, MEASURE).tolist() == [0] * 40


@pytest.mark.parametrize(
    ("typed", "kept"), [("Ａ  Café\n", "a café"), ("cafe\u0301", "café"), ("Straße", "strasse"), ("", "")]
)
def test_words_are_searched_folded(typed, kept) -> None:
    assert folded(typed) == kept


def test_facets_are_those_that_part_the_queries(new_study) -> None:
    study = new_study()
    for at in range(4):
        domain = ("Head", "Thorax")[at % 2]
        meta = {"specialty": "Neurology", "case": f"C{at}", "age": str(at // 2), "modality": None if at else "CT"}
        study.query(f"q{at}", "words", domain=domain, **meta)
        study.judge(f"q{at}", "d", 2, domain)
    for domain in ("Head", "Thorax"):
        study.doc("d", f"words of {domain}", domain=domain)
        study.rank("q0", ["d"], domain=domain)
    dataset = study.open()
    groups = groups_of(dataset, TASK, [TASK])
    assert list(groups) == ["domain", "modality", "collection", "age"]
    assert groups["domain"]["Head"] == {"cluster:q0", "cluster:q2"}
    assert groups["modality"] == {"CT": {"cluster:q0"}, NOT_STATED: {f"cluster:q{at}" for at in (1, 2, 3)}}
    study.store(dataset)
    desk = study.desk(dataset)
    diagnosis = desk.diagnosis(desk.runs(TASK)[0][0])
    assert facets([diagnosis]) == list(groups) == desk.groups(TASK) and desk.usual_by(TASK) == "domain"


def test_thousands_of_queries(dataset) -> None:
    """Printed, not asserted: a list of 5,000 queries after typing and after changing a filter."""
    many, other = drawn(dataset, 1, 5000), drawn(dataset, 2, 5000, "b")
    for what, wanted in (("text", Wanted(text="lung")), ("all", WANTED[-1]), ("text again", Wanted(text="café"))):
        started = time.perf_counter()
        found = chosen(many, K, MEASURE, wanted, [other])
        print(f"5,000 queries, {what}: {len(found)} in {1000 * (time.perf_counter() - started):.0f} ms")
        assert 0 < len(found) < 5000
    started = time.perf_counter()
    assert len(where([many], "specialty", K, MEASURE)) == 4
    print(f"where: {1000 * (time.perf_counter() - started):.0f} ms")
