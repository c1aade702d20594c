"""Measures against a plain implementation, NIST's own files, TREC-COVID's per-query values and known ties."""

from __future__ import annotations

import json
import math
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.evaluate.measures import (
    ALL,
    SPELLINGS,
    not_available,
    per_query,
    positives_only,
    spelling,
    trec_order,
    without_relevant,
)

NAMES = ("nDCG@10", "nDCG@3", "Success@10", "Success@1", "R@5", "RR@2", "RR@10", "AP")


def plain(name: str, ranking: dict[str, float], grades: dict[str, int]) -> float:
    """One measure of one query, straight from its definition."""
    kind, _, cut = name.removeprefix("condensed ").partition("@")
    order = sorted(ranking, key=lambda d: (np.float32(ranking[d]), d), reverse=True)
    if name.startswith("condensed"):
        order = [d for d in order if d in grades]
    order = order[: int(cut) if cut else None]
    gains = [grades.get(d, 0) for d in order]
    total = sum(g > 0 for g in grades.values())
    if kind == "nDCG":
        ideal = sorted(grades.values(), reverse=True)[: int(cut)]
        dcg, best = (sum(g / math.log2(i + 2) for i, g in enumerate(row)) for row in (gains, ideal))
        return dcg / best
    if kind == "Judged":
        return sum(d in grades for d in order) / len(order) if order else 0.0
    if kind == "bpref":
        return plain_bpref(order, grades, total)
    hits = [i + 1 for i, g in enumerate(gains) if g > 0]
    found = {"Success": float(bool(hits)), "R": len(hits) / total, "RR": 1 / hits[0] if hits else 0.0}
    found["P"] = len(hits) / int(cut or 1)
    return found[kind] if kind in found else sum((n + 1) / rank for n, rank in enumerate(hits)) / total


def plain_bpref(order: list[str], grades: dict[str, int], total: int) -> float:
    """For each relevant document found: the share of the judged not relevant ones that do not stand above it."""
    most, above, value = min(total, len(grades) - total), 0, 0.0
    for doc in order:
        if grades.get(doc, 0) > 0:
            value += 1 - min(above, total) / most if above else 1
        elif doc in grades:
            above += 1
    return value / total


ids = st.text("abcD01-_%é", min_size=1, max_size=3)
scores = st.sampled_from([0.0, 0.5, 1.0, 1.0 + 1e-9, 1.5, -2.0]) | st.floats(-5, 5, width=32)
runs = st.dictionaries(ids, st.dictionaries(ids, scores, max_size=14), max_size=4)
judgements = st.dictionaries(ids, st.dictionaries(ids, st.integers(0, 3), max_size=8), max_size=4)


@settings(max_examples=300, deadline=None)
@given(runs, judgements)
def test_like_the_plain_implementation(run: dict, qrels: dict) -> None:
    found = per_query({q: list(r.items()) for q, r in run.items()}, qrels, NAMES)
    counted = sorted(q for q, grades in qrels.items() if any(grades.values()))
    assert sorted(set(qrels) - set(counted)) == without_relevant(qrels, qrels)
    for name in NAMES:
        assert list(found[name]) == counted
        for query in counted:
            assert found[name][query] == pytest.approx(plain(name, run.get(query, {}), qrels[query]), abs=1e-12)


def seeded(seed: int) -> tuple[dict, dict]:
    """A run and judgements of six queries: ties that show in 32 bits only, short and empty lists, grades 0 to 3."""
    generator = np.random.default_rng(seed)
    run, qrels = {}, {}
    for query in "abcdef":
        docs = [f"d{n}" for n in generator.permutation(150)[: generator.choice([0, 1, 3, 12, 120])]]
        scores = generator.integers(0, 8, len(docs)) / 4 + generator.choice([0, 1e-9], len(docs))
        judged = generator.permutation(150)[: generator.choice([1, 2, 6, 40, 130])]
        qrels[query] = {f"d{n}": int(generator.choice([0, 1, 2, 3], p=[0.5, 0.3, 0.1, 0.1])) for n in judged}
        if generator.random() < 0.9:
            run[query] = dict(zip(docs, scores.tolist(), strict=True))
    return run, qrels | {"always": {"d0": 0, "d1": 1}}


@pytest.mark.parametrize("block", range(4))
def test_200_seeded_runs_like_the_plain_implementation(block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        run, qrels = seeded(seed)
        found = per_query({q: list(r.items()) for q, r in run.items()}, qrels, ALL)
        for name in ALL:
            for query, value in found[name].items():
                assert value == pytest.approx(plain(name, run.get(query, {}), qrels[query]), abs=1e-9), (seed, name)


@pytest.mark.parametrize("seed", range(8))
def test_some_queries_alone_have_the_values_of_the_whole(seed: int) -> None:
    run, qrels = seeded(seed)
    rankings = {q: list(r.items()) for q, r in run.items()}
    if seed % 2:  # positives-only, but for one judgement of a query that is not asked for
        qrels = {q: {d: g for d, g in grades.items() if g} for q, grades in qrels.items()}
        qrels["b"]["d0"] = 0
    whole = per_query(rankings, qrels, ALL)
    for only in (["e", "a", "a", "unknown"], {"always"}, qrels.keys() - {"b"}, [], list(qrels)):
        found = per_query(rankings, qrels, ALL, only)
        assert found == {name: {q: v for q, v in whole[name].items() if q in only} for name in ALL}
        assert list(found["AP"]) == sorted(found["AP"])
    positive = {q: {d: g for d, g in grades.items() if g} for q, grades in qrels.items()}
    assert all(math.isnan(value) for value in per_query(rankings, positive, ALL, ["a"])["bpref"].values())


def test_what_a_positives_only_collection_cannot_say_is_not_available() -> None:
    missing = ("Judged@10", "bpref", "condensed nDCG@10")
    assert [name for name in ALL if not_available(name, True)] == list(missing)
    assert not any(not_available(name, False) for name in ALL)
    assert "judged not relevant" in not_available("bpref", True)
    with pytest.raises(ValueError, match="no measure"):
        not_available("bpref@10", True)
    run, qrels = {"q": [("a", 1.0), ("b", 0.5)]}, {"q": {"a": 1}, "r": {"a": 2}}
    assert positives_only(qrels) and not positives_only(qrels | {"s": {"b": 0}})
    found = per_query(run, qrels, ALL)
    assert all(math.isnan(value) == (name in missing) for name in ALL for value in found[name].values())
    found = per_query(run, qrels | {"s": {"b": 0}}, ALL)  # one judgement of 0 anywhere in the collection
    assert found["Judged@10"] == {"q": 0.5, "r": 0.0} and found["bpref"]["q"] == 1.0


def test_judged_is_cut_in_trec_order() -> None:
    run, qrels = {"q": [("a", 1.0), ("b", 1.0)]}, {"q": {"b": 1, "c": 0}}
    assert per_query(run, qrels, ["Judged@1"])["Judged@1"]["q"] == 1.0
    assert per_query(run, {"q": {"a": 1, "c": 0}}, ["Judged@1"])["Judged@1"]["q"] == 0.0


def test_condensed_takes_unjudged_documents_out_before_the_cut() -> None:
    run = {"q": [(f"u{n}", 20.0 - n) for n in range(10)] + [("b", 2.0), ("a", 1.0)]}
    found = per_query(run, {"q": {"a": 1, "b": 0}}, ["nDCG@10", "condensed nDCG@10"])
    assert found["nDCG@10"]["q"] == 0.0 and found["condensed nDCG@10"]["q"] == pytest.approx(1 / math.log2(3))


def test_three_way_tie_is_in_trec_order() -> None:
    run, qrels = {"q": [("a", 1.0), ("b", 1.0), ("c", 1.0)]}, {"q": {"a": 1}}
    assert per_query(run, qrels, ["RR@10"])["RR@10"]["q"] == pytest.approx(1 / 3)
    # What the library does of itself, and why its RR@10 is not used.
    assert next(ir_measures.iter_calc([ir_measures.RR @ 10], qrels, {"q": dict(run["q"])})).value == 1.0
    assert per_query(run, qrels, ["RR@2"])["RR@2"]["q"] == 0.0


def test_scores_that_differ_below_32_bits_are_ties() -> None:
    run = {"q": [("a", 1.0 + 1e-9), ("b", 1.0)]}
    assert per_query(run, {"q": {"b": 1}}, ["Success@1"])["Success@1"]["q"] == 1.0


def test_a_missing_query_counts_and_one_without_relevant_does_not() -> None:
    qrels = {"found": {"d": 2}, "missing": {"d": 1}, "empty": {"d": 1}, "zero": {"d": 0}, "none": {}}
    found = per_query({"found": [("d", 1.0)], "empty": [], "zero": [("d", 1.0)], "unjudged": [("d", 1.0)]}, qrels)
    assert found == {name: {"empty": 0.0, "found": 1.0, "missing": 0.0} for name in ("nDCG@10", "Success@10")}
    assert without_relevant([*qrels, "unjudged"], qrels) == ["none", "unjudged", "zero"]


def test_no_queries_and_no_run() -> None:
    assert per_query({}, {}) == {"nDCG@10": {}, "Success@10": {}}
    assert per_query({}, {"q": {"d": 1}}, ["RR@10"]) == {"RR@10": {"q": 0.0}}


def test_names_and_their_spellings() -> None:
    assert spelling("nDCG@10")[0].mteb == "ndcg_at_10" and spelling("nDCG@10")[1] == 10
    assert spelling("RR@10")[0].mteb == "mrr_at_10" and spelling("R@100")[0].mteb == "recall_at_100"
    assert spelling("P@5")[0].mteb == "precision_at_5" and spelling("bpref")[0].mteb == ""
    assert ALL[0] == "nDCG@10" and len(set(ALL)) == len(ALL) == len([spelling(name) for name in ALL])
    assert spelling("AP")[1] is None and spelling("Success@5")[0].mteb == "hit_rate_at_5"
    for name in SPELLINGS:
        form, _ = spelling(name.replace("k", "7"))
        assert str(ir_measures.parse_measure(form.library)) == form.library
    for wrong in (
        "ndcg@10",
        "nDCG",
        "nDCG@0",
        "AP@10",
        "condensed AP",
        "bpref@5",
        "Judged",
        "nDCG@-1",
        "",
        "nDCG@10.5",
    ):
        with pytest.raises(ValueError, match="no measure"):
            spelling(wrong)


def test_rankings_that_cannot_be_ranked_are_refused() -> None:
    for bad in (math.nan, math.inf, 1e39):
        with pytest.raises(ValueError, match="'d' is not a finite"), np.errstate(over="ignore"):
            trec_order([("d", bad)])
    with pytest.raises(ValueError, match="twice"):
        trec_order([("d", 1.0), ("d", 2.0)])


def read_run(path: Path) -> dict[str, list[tuple[str, float]]]:
    run: dict[str, list[tuple[str, float]]] = {}
    for line in path.read_text().splitlines():
        query, _, doc, _, score, *_ = line.split()
        run.setdefault(query, []).append((doc, float(score)))
    return run


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for line in path.read_text().splitlines():
        query, _, doc, grade = line.split()
        qrels.setdefault(query, {})[doc] = int(grade)
    return qrels


@pytest.mark.realdata
@pytest.mark.parametrize(("run", "expected"), [("results.test", "out.test.aq"), ("results.trunc", "out.test.aqc")])
def test_nist_files(shared: Path, run: str, expected: str) -> None:
    folder = shared / "eval" / "trec_eval"
    theirs = {"nDCG@10": "ndcg_cut_10", "Success@10": "success_10", "AP": "map", "bpref": "bpref", "P@5": "P_5"}
    theirs |= {"R@5": "recall_5", "R@10": "recall_10", "R@100": "recall_100", "RR@1000": "recip_rank"}
    found = per_query(read_run(folder / run), read_qrels(folder / "qrels.test"), list(theirs))
    values = {tuple(line.split()[:2]): line.split()[2] for line in (folder / expected).read_text().splitlines()}
    for name, library in theirs.items():
        assert len(found[name]) == 3
        for query, value in found[name].items():
            assert f"{value:.4f}" == values[library, query]
        assert f"{np.mean(list(found[name].values())):.4f}" == values[library, "all"]


@pytest.mark.realdata
def test_trec_covid_per_query(shared: Path) -> None:
    folder = shared / "eval" / "trec_covid_round1"
    qrels = read_qrels(folder / "qrels-rnd1.txt")
    theirs = {"nDCG@10": "ndcg_cut_10", "R@100": "recall_100", "AP": "map", "RR@1000": "recip_rank"}
    theirs |= {"P@5": "P_5", "P@10": "P_10", "bpref": "bpref"}
    for run, queries in json.loads((folder / "expected_per_query.json").read_text()).items():
        found = per_query(read_run(folder / "runs" / run), qrels, list(theirs))
        assert len(queries) == 30
        for query, expected in queries.items():
            for name, library in theirs.items():
                assert found[name][query] == pytest.approx(expected[library], abs=1e-6)
