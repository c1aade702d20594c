"""The league: equal to the comparison of the listed runs and to plain loops, whatever it is grouped by."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from core.analyze.compare import compare
from core.analyze.league import DOMAIN, TASK, Leagues, league, reading
from core.analyze.listed import listed
from core.analyze.scored import Scored
from core.data.dataset import open_dataset
from core.evaluate.evaluate import OFFLINE
from core.evaluate.stats import FEWEST, OTHER, holm, paired_randomisation
from core.models import specs
from core.records import TASK_LABELS
from core.settings import DEMO, REPOSITORY

MODELS = REPOSITORY / "assets" / "models"
VISUAL, MEASURE = "visual_context", "nDCG@10"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    from core.store.workspace import open_workspace

    workspace = open_workspace(str(tmp_path_factory.mktemp("demo")))
    return Leagues(open_dataset(DEMO, workspace), workspace)


def toy(name: str, values: list[float], groups: list[str]) -> Scored:
    keys = [("t/Head", f"q{n}") for n in range(len(values))]
    same = {key: f"topic {n}" for n, key in enumerate(keys)}
    return Scored(
        *(name, name, "1", (name,), "t", MEASURE, dict(zip(keys, values, strict=True)), same),
        *(dict.fromkeys(keys, "Head"), {"imported": True}),
    )


def hand() -> tuple[list[Scored], dict]:
    """CT: ten topics, a is better in each. MR: ten, better in nine. US: three, XA: two."""
    groups = ["CT"] * 10 + ["MR"] * 10 + ["US"] * 3 + ["XA"] * 2
    differences = [0.5] * 10 + [0.5] * 9 + [-0.5] + [0.5] * 5
    a = toy("a", [0.5 + d / 2 for d in differences], groups)
    b = toy("b", [0.5 - d / 2 for d in differences], groups)
    return [a, b], dict(zip(a.values, groups, strict=True))


def test_a_toy_worked_out_by_hand() -> None:
    runs, groups = hand()
    found = compare(runs, groups)
    ct, mr, other = found.domains
    assert [g.name for g in found.domains] == ["CT", "MR", "other"]
    # All of 2^10 flips: 2 are as far as ten of ten, 2 + 2·10 as far as nine of ten. Holm: the smaller one times two.
    assert (ct.pairs[0].test.p, mr.pairs[0].test.p) == (2 / 1024, 22 / 1024)
    assert (ct.pairs[0].p_adjusted, mr.pairs[0].p_adjusted) == (4 / 1024, 22 / 1024)
    assert [g.pairs[0].verdict for g in found.domains] == ["better", "better", "not established"]
    assert (ct.pairs[0].difference.mean, mr.pairs[0].difference.mean) == pytest.approx((0.5, 0.4))
    assert mr.pairs[0].outcomes == {"MR": (9, 0, 1)} and other.pairs[0].outcomes == {"other": (5, 0, 0)}
    assert [s.rank for s in mr.standings] == [(1, 1), (2, 2)]
    assert other.members == ("US", "XA") and (other.pairs[0].test, other.pairs[0].p_adjusted) == (None, None)
    assert [s.rank for s in other.standings] == [None, None] and "fewer than 10 clusters each" in other.reason
    assert other.standings[0].estimate.mean == pytest.approx(0.75) and other.standings[0].estimate.clusters == 5
    assert found.macro == compare(runs).macro  # the macro mean is over domains, whatever the groups are
    assert found.as_dict()["domains"][2]["members"] == ["US", "XA"] and "members" not in found.as_dict()["macro"]


def test_what_is_joined_is_not_ranked_even_when_it_is_large() -> None:
    runs, groups = hand()
    scattered = {key: f"{name}{n % 5}" for n, (key, name) in enumerate(groups.items())}
    (only,) = compare(runs, scattered).domains
    assert only.name == OTHER and only.standings[0].estimate.clusters == 25
    assert only.pairs[0].test is None and only.standings[0].rank is None


def test_a_large_group_called_other_is_not_mixed_with_the_small_ones() -> None:
    runs, groups = hand()
    found = compare(runs, {key: OTHER if name == "CT" else name for key, name in groups.items()}).domains
    assert [(g.name, len(g.members), g.standings[0].rank) for g in found] == [
        ("MR", 0, (1, 1)),
        ("other", 0, (1, 1)),
        ("other, joined", 2, None),
    ]


def test_a_model_without_a_domain_is_na_in_the_groups_that_reach_into_it() -> None:
    runs, groups = hand()
    keys = list(runs[0].values)
    domains = {key: "Head" if n % 2 else "Thorax" for n, key in enumerate(keys)}
    full = [replace(run, domains=domains) for run in runs]
    only = replace(full[0], name="c", values={k: v for k, v in full[0].values.items() if domains[k] == "Head"})
    lost = replace(full[0], name="d", values=full[0].values | {keys[0]: math.nan})
    found = compare([*full, only, lost], groups)
    reasons = [{s.name: s.reason for s in g.standings if math.isnan(s.estimate.mean)} for g in found.domains]
    assert reasons[0]["c"] == "N/A: 5 of 10 queries in CT are in no run"
    assert reasons[0]["d"] == "N/A: 1 of 10 queries in CT have no value" and list(reasons[1]) == ["c"]
    thorax = {key: domains[key] for key in keys}
    assert {s.name: s.reason for s in compare([*full, only], thorax).domains[1].standings}["c"] == (
        "N/A: no queries in Thorax"
    )
    with pytest.raises(ValueError, match="query 'q0' of t/Head has no group"):
        compare(full, dict.fromkeys(keys[1:], "CT"))


@pytest.mark.parametrize("by", [DOMAIN, "specialty", "modality", "collection"])
def test_every_grouping_is_its_loops(demo, by) -> None:
    found = demo.of(VISUAL, MEASURE, by)
    queries = {(q.collection, q.id): q for c in demo.dataset.pool(VISUAL).collections for q in c.all_queries()}
    value_of = {
        DOMAIN: lambda q: demo.dataset.collections[q.collection].domain,
        "collection": lambda q: q.collection,
    }.get(by, lambda q: q.meta[by])
    clusters, members = defaultdict(set), defaultdict(list)
    first = found.scored[0]
    for key in sorted(first.values):
        clusters[value_of(queries[key])].add(first.clusters[key])
        members[value_of(queries[key])].append(key)
    small = sorted(name for name, topics in clusters.items() if len(topics) < FEWEST)
    expected = {name: members[name] for name in sorted(members) if by == DOMAIN or name not in small}
    if by != DOMAIN and small:
        expected[OTHER] = sorted(key for name in small for key in members[name])
    groups = {g.name: g for g in found.comparison.domains}
    assert list(groups) == list(expected)
    raw, tested = [], []
    for name, keys in expected.items():
        group = groups[name]
        few = name == OTHER or len(clusters[name]) < FEWEST
        assert set(group.members) == (set(small) if name == OTHER else set()) and bool(group.reason) == few
        for standing in group.standings:
            run = next(run for run in found.scored if run.name == standing.name)
            assert standing.estimate.mean == pytest.approx(np.mean([run.values[key] for key in keys]))
            assert standing.estimate.n == len(keys) and (standing.rank is None) == few
        for a, b in combinations(sorted(found.scored, key=lambda run: run.name), 2):
            pair = group.pair(a.name, b.name)
            if few:
                assert pair.test is None and pair.verdict == "not established"
                continue
            test = paired_randomisation(
                [a.values[key] - b.values[key] for key in keys], [a.clusters[key] for key in keys]
            )
            assert pair.test == test
            raw.append(test.p)
            tested.append(pair)
    assert [pair.p_adjusted for pair in tested] == holm(raw)


def test_by_domain_it_is_the_comparison_of_the_listed_runs(demo) -> None:
    scored, _ = listed(demo.dataset, demo.workspace, VISUAL, MEASURE)
    for by in demo.groupings(VISUAL)[:-1]:
        found = demo.of(VISUAL, MEASURE, by)
        assert found.comparison.macro == compare(scored).macro
        assert [run.name for run in found.scored] == list(OFFLINE) and found.by == by
    assert demo.of(VISUAL, MEASURE).comparison == compare(scored)
    assert league(demo.dataset, demo.workspace, VISUAL, MEASURE) == demo.of(VISUAL, MEASURE)
    assert demo.of(VISUAL, MEASURE) is demo.of(VISUAL, MEASURE)


def test_ticking_changes_no_number(demo) -> None:
    whole = demo.of(VISUAL, MEASURE, "modality").comparison
    everything = whole.as_dict()
    for a, b in combinations(OFFLINE, 2):
        shown = whole.as_dict({a, b})
        for part, full in zip(
            [shown["macro"], *shown["domains"]], [everything["macro"], *everything["domains"]], strict=True
        ):
            assert part["pairs"] == [p for p in full["pairs"] if {p["a"], p["b"]} == {a, b}]
            assert part["standings"] == [s for s in full["standings"] if s["name"] in (a, b)]


def test_a_sessions_own_record_takes_part_there_and_nowhere_else(demo) -> None:
    before = demo.of(VISUAL, MEASURE)
    mine = replace(before.scored[0], name="mine", model_id="mine", conditions={"imported": True})
    found = demo.of(VISUAL, MEASURE, "domain", (mine, replace(mine, task="summary"), replace(mine, measure="AP")))
    assert [run.name for run in found.scored] == [*OFFLINE, "mine"]
    pair = found.comparison.macro.pair("mine", "bm25")
    assert pair.test.p == 1.0 and len(found.comparison.macro.pairs) == 28
    # The same p as before, adjusted over more pairs.
    raw, wider = (c.macro.pair("bm25", "late") for c in (before.comparison, found.comparison))
    assert raw.test == wider.test and wider.p_adjusted > raw.p_adjusted
    assert demo.of(VISUAL, MEASURE) is before
    other = replace(mine, values=dict.fromkeys(mine.values, 0.0))
    assert demo.of(VISUAL, MEASURE, extra=(other,)).scored[-1].values == other.values
    with pytest.raises(ValueError, match="two runs have one name"):
        demo.of(VISUAL, MEASURE, extra=(replace(mine, name="bm25"),))


def test_finer_groups_are_those_that_are_not_all_joined(demo) -> None:
    for by in (DOMAIN, TASK):
        assert demo.finer(VISUAL, MEASURE, by).by == DOMAIN, "specialties and modalities of the demo are joined"
    assert demo.finer(VISUAL, MEASURE, "plane") is demo.of(VISUAL, MEASURE, "plane")


def test_what_can_be_chosen(demo) -> None:
    assert demo.tasks() == list(demo.dataset.tasks)
    assert demo.groupings(VISUAL)[:3] == [DOMAIN, "specialty", "modality"] and demo.groupings(VISUAL)[-1] == TASK
    assert demo.measures(VISUAL)[0] == MEASURE and "Judged@10" in demo.measures(VISUAL)
    with pytest.raises(ValueError, match="not grouped by 'colour'; group by domain, specialty"):
        demo.of(VISUAL, MEASURE, "colour")


def test_by_task_every_task_is_its_own_family(demo) -> None:
    found = demo.of(VISUAL, MEASURE, TASK)
    groups = found.comparison.domains
    assert [group.name for group in groups] == [TASK_LABELS[task] for task in demo.tasks()]
    assert found.names == list(OFFLINE) and found.comparison.macro == demo.of(VISUAL, MEASURE).comparison.macro
    for task, group in zip(demo.tasks(), groups, strict=True):
        macro = demo.of(task, MEASURE).comparison.macro
        assert group.pairs == macro.pairs and group.reason == macro.reason
        assert {one.name for one in group.standings} == set(OFFLINE)
        for one in group.standings:
            mine = next((s for s in macro.standings if s.name == one.name), None)
            if mine is None:
                assert math.isnan(one.estimate.mean) and one.reason == "N/A: no stored run" and one.rank is None
            else:
                assert one == mine
    na = Counter(g.name for g in groups for one in g.standings if math.isnan(one.estimate.mean))
    assert na == {TASK_LABELS["query_to_image"]: 6}  # only medlite sees pictures


@pytest.mark.parametrize("by", [DOMAIN, "specialty", "modality", TASK])
def test_the_queries_of_an_outcome_are_as_many_as_it_counts(demo, by) -> None:
    found = demo.of(VISUAL, MEASURE, by)
    for group in (found.comparison.macro, *found.comparison.domains):
        pair = group.pair("bm25", "medlite")
        if pair is None:
            continue
        for at, kind in enumerate(("wins", "ties", "losses")):
            keys = demo.outcome(VISUAL, MEASURE, by, group.name, "bm25", "medlite", kind)
            assert len(keys) == len(set(keys)) == sum(counts[at] for counts in pair.outcomes.values()), group.name
        runs = {run.name: run.values for run in found.scored}
        wins = demo.outcome(VISUAL, MEASURE, DOMAIN, "macro", "bm25", "medlite", "wins")
        assert all(runs["bm25"][key] > runs["medlite"][key] for key in wins)
        assert demo.outcome(VISUAL, MEASURE, by, group.name, "medlite", "bm25", "losses") == demo.outcome(
            VISUAL, MEASURE, by, group.name, "bm25", "medlite", "wins"
        )
    for group, a in (("no such group", "bm25"), ("macro", "no such model")):
        assert demo.outcome(VISUAL, MEASURE, DOMAIN, group, a, "medlite", "wins") == []


def test_what_the_domains_are_and_what_made_the_figures_is_said(demo, small) -> None:
    found = demo.of(VISUAL, MEASURE)
    assert found.reading.startswith("Domains are body regions here, not the benchmark's five sources: Abdomen, Head")
    assert found.dataset_name in found.conditions["data"] and found.data_id in found.conditions["data"]
    assert (
        found.conditions["scope"].startswith("each collection") and "ir-measures" in found.conditions["measured with"]
    )
    assert found.conditions["precision"] == "float32" and not found.comparison.warnings
    config = json.loads((MODELS / "medlite" / "config.json").read_text())
    assert config["precision"].split()[0] == specs.get("medlite").precision  # what its encoder_id is made of
    own = replace(found.scored[0], name="mine", model_id="mine", conditions={"imported": True})
    mixed = demo.of(VISUAL, MEASURE, extra=(own,))
    assert "mine not stated" in mixed.conditions["precision"] and "bm25 float32" in mixed.conditions["precision"]
    assert any("differ in precision" in warning for warning in mixed.comparison.warnings)
    assert found.conditions["fold plan"] == "none" and found.conditions["seen in training"].startswith("0 queries")
    dataset = small.open()
    assert reading(dataset, "case_study").endswith("that the data set names, as in the benchmark: Head, Thorax.")
    with pytest.raises(ValueError, match="no stored run of case_study with nDCG@10"):
        league(dataset, small.workspace, "case_study", MEASURE)


def test_a_run_that_is_stored_meanwhile_is_noticed(small) -> None:
    dataset = small.open()
    leagues = Leagues(dataset, small.workspace)
    assert leagues.tasks() == []
    small.store(dataset, "bm25", "collections")
    assert leagues.tasks() == ["case_study"] and len(leagues.of("case_study", MEASURE).scored) == 1
    small.store(dataset, "minilm", "collections")
    small.store(dataset, "late", "collections", index_kind="hnsw")
    found = leagues.of("case_study", MEASURE)
    assert [run.name for run in found.scored] == ["bm25", "minilm"]
    assert len(found.left_out) == 1 and found.left_out[0].endswith("index hnsw.")
    small.store(dataset, "medlite", "pool")  # another scope: no collection has a run of it
    assert [run.name for run in leagues.of("case_study", MEASURE).scored] == ["bm25", "minilm"]
