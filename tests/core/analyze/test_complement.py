"""What two models solve together: against loops, and their fusions against the stored hybrids, to the last bit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analyze.complement import Both, complement
from core.analyze.league import Leagues
from core.analyze.scored import Scored
from core.data.dataset import open_dataset
from core.data.names import document
from core.evaluate.measures import per_query
from core.evaluate.stats import cluster_bootstrap, macro, mean_of
from core.retrievers.base import Ranked
from core.retrievers.order import trec_order
from core.retrievers.place import Place
from core.search.fuse import rrf, zsum
from core.settings import DEMO

TASK, MEASURE = "case_study", "nDCG@10"

ranking = st.dictionaries(
    st.sampled_from([f"d{n}" for n in range(12)] + ["D", "é"]), st.sampled_from([-2.5, 0.0, 0.1, 1 / 3, 2.0, 7.25])
)


@given(ranking, ranking, st.sampled_from([None, 0.0]), st.integers(1, 20))
def test_fusion_is_that_of_search_to_the_last_bit(a, b, floor, k) -> None:
    lists = [trec_order(a.items()), trec_order(b.items())]
    both = Both([Ranked({"q": lists[0]}, {"floor": floor}), Ranked({"q": lists[1]}, {})])
    assert both.fused("rrf", "q", k) == trec_order(rrf(lists).items())[:k]
    assert both.fused("zsum", "q", k) == trec_order(zsum(lists, [floor, None]).items())[:k]
    assert [both.first(side, "q", k) for side in (0, 1)] == [one[:k] for one in lists]
    assert both.fused("rrf", "absent", k) == [] == both.fused("zsum", "absent", k)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    from core.store.workspace import open_workspace

    workspace = open_workspace(str(tmp_path_factory.mktemp("demo")))
    return Leagues(open_dataset(DEMO, workspace), workspace)


@pytest.mark.parametrize(
    ("hybrid", "a", "b"), [("rrf:bm25+medlite", "bm25", "medlite"), ("zsum:bm25+minilm", "bm25", "minilm")]
)
def test_the_stored_hybrid_is_met_query_by_query(demo, hybrid, a, b) -> None:
    kind = hybrid.partition(":")[0]
    for task in ("visual_context", "summary", "case_study"):
        scored = {run.name: run for run in demo.of(task, MEASURE).scored}
        stored = {name: demo.stored(scored[name]) for name in (hybrid, a, b)}
        for place in stored[hybrid]:
            both, expected = Both([stored[a][place], stored[b][place]]), stored[hybrid][place]
            made = {query: both.fused(kind, query, 1000) for query in expected.run.rankings}
            assert made == expected.run.rankings
            qrels = Place(demo.dataset, task, demo.workspace, place).qrels
            first = {query: both.fused(kind, query, 10) for query in made}
            assert per_query(first, qrels, [MEASURE])[MEASURE] == expected.measures[MEASURE]
        found = demo.complement(task, MEASURE, a, b)
        standing = next(s for s in demo.of(task, MEASURE).comparison.macro.standings if s.name == hybrid)
        assert getattr(found, kind) == standing.estimate
        assert demo.complement(task, MEASURE, a, b) is found


def test_every_figure_is_its_loop(demo) -> None:
    scored = {run.name: run for run in demo.of("visual_context", MEASURE).scored}
    solved = {run.name: run.values for run in demo.of("visual_context", "Success@10").scored}
    a, b = scored["bm25"], scored["late"]
    found = demo.complement("visual_context", MEASURE, "bm25", "late")
    keys = sorted(a.values)
    clusters, domains = [a.clusters[key] for key in keys], [a.domains[key] for key in keys]
    expected = {"both": (1, 1), "only_a": (1, 0), "only_b": (0, 1), "neither": (0, 0)}
    for name, pattern in expected.items():
        flags = [float((solved["bm25"][key], solved["late"][key]) == pattern) for key in keys]
        assert getattr(found, name) == cluster_bootstrap(mean_of(flags), clusters)
    assert sum(getattr(found, name).mean for name in expected) == pytest.approx(1)
    names = sorted(set(domains))
    best = [max(a.values[key], b.values[key]) for key in keys]
    assert found.best_of_two == macro(best, clusters, domains, names)
    assert found.mean_a == macro([a.values[key] for key in keys], clusters, domains, names)
    assert found.best_of_two.mean >= max(found.mean_a.mean, found.mean_b.mean)
    assert (found.n, found.clusters) == (len(keys), len(set(clusters)))


def test_nothing_is_stored_and_the_family_stays(demo) -> None:
    before = demo.of("summary", MEASURE)
    demo.complement("summary", MEASURE, "minilm", "late")
    assert demo.of("summary", MEASURE) is before and not demo.workspace.path("runs").exists()
    with pytest.raises(KeyError, match="nobody"):
        demo.complement("summary", MEASURE, "minilm", "nobody")


def two(small, theirs: dict, places: int = 2) -> tuple[Scored, Scored, dict]:
    """bm25 solves all but query 5 of each domain; ``theirs`` as it is told, on so many collections."""
    dataset = small.open()
    small.store(dataset, "bm25", "collections")
    made = small.store(
        dataset,
        "theirs",
        "collections",
        rankings=theirs,
        **{"fusion": "imported", "weight": None, "index_kind": "imported"},
    )
    for one in made[places:]:
        (one.folder / "manifest.json").unlink()
    leagues = Leagues(dataset, small.workspace)
    a, b = leagues.of(TASK, MEASURE).scored
    return a, b, {run.name: leagues.stored(run) for run in (a, b)}


FEW = {("Head", "q5"): [(("Head", "d5"), 1.0)], ("Head", "q0"): [(("Head", "d0"), 1.0)]}


def test_shares_counted_by_hand(small) -> None:
    a, b, rankings = two(small, FEW)
    found = complement(small.open(), small.workspace, a, b, rankings)
    shares = (found.both, found.only_a, found.only_b, found.neither)
    assert [one.mean for one in shares] == pytest.approx([1 / 12, 9 / 12, 1 / 12, 1 / 12])
    assert (found.n, found.clusters) == (12, 6) and found.mean_b.mean == pytest.approx((2 / 6 + 0) / 2)
    assert found.rrf.mean > 0 and len(found.notes) == 1


def test_where_one_lacks_a_domain_what_needs_both_is_na(small) -> None:
    a, b, rankings = two(small, FEW, places=1)
    found = complement(small.open(), small.workspace, a, b, rankings)
    assert [one.mean for one in (found.both, found.only_a, found.only_b, found.neither)] == pytest.approx(
        [1 / 6, 4 / 6, 1 / 6, 0]
    )
    assert found.n == 6 and not math.isnan(found.mean_a.mean)
    for lost in (found.mean_b, found.best_of_two, found.rrf, found.zsum):
        assert math.isnan(lost.mean) and lost.method == "N/A: no queries in Thorax"
    assert "do not both have Thorax" in found.notes[1]


def test_without_a_shared_query_nothing_is_fused(small) -> None:
    a, b, rankings = two(small, FEW)
    b = Scored(b.name, b.model_id, b.revision, b.run_ids, b.task, b.measure, {}, {}, {}, b.conditions)
    found = complement(small.open(), small.workspace, a, b, rankings)
    assert found.rrf is None is found.zsum and found.n == 0 and math.isnan(found.both.mean)
    with pytest.raises(ValueError, match="bm25 is of case_study, nDCG@10"):
        other = Scored(b.name, b.model_id, b.revision, b.run_ids, b.task, "AP", {}, {}, {}, b.conditions)
        complement(small.open(), small.workspace, a, other, rankings)


def test_rankings_held_in_memory_are_as_good_as_stored_ones(small) -> None:
    a, b, rankings = two(small, FEW)
    held = {place: Ranked(run.run.rankings, run.facts) for place, run in rankings["theirs"].items()}
    dataset = small.open()
    assert complement(dataset, small.workspace, a, b, rankings | {"theirs": held}) == complement(
        dataset, small.workspace, a, b, rankings
    )
    place = Place(dataset, TASK, small.workspace, f"{TASK}/Head")
    assert document(place.query_ids[0], place.name) in a.values
