"""What a league says and gives away: the sentence against the verdicts, files that are read back equal."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zipfile
from dataclasses import replace

import pytest

from core.analyze.compare import BETTER, WORSE, compare
from core.analyze.league import DOMAIN, TASK, Leagues
from core.analyze.league_report import (
    beside_published,
    finding,
    latex,
    mteb_zip,
    outcomes,
    pair_rows,
    pairs_csv,
    standing_rows,
    standings_csv,
)
from core.analyze.scored import Scored
from core.data.dataset import open_dataset
from core.evaluate.published import Published
from core.settings import DEMO

VISUAL, IMAGES, MEASURE = "visual_context", "query_to_image", "nDCG@10"


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Leagues:
    from core.store.workspace import open_workspace

    workspace = open_workspace(str(tmp_path_factory.mktemp("demo")))
    return Leagues(open_dataset(DEMO, workspace), workspace)


def toy(name: str, high: float, low: float, domains: int = 2, **changes) -> Scored:
    """Twelve topics a domain, one query each: ``high`` in the first domain, ``low`` in the others."""
    keys = [(f"summary/D{d}", f"q{n}") for d in range(domains) for n in range(12)]
    values = {key: (high if key[0].endswith("D0") else low) + 0.001 * int(key[1][1:]) for key in keys}
    made = Scored(
        *(name, f"org/{name}", "r1", (name,), "summary", MEASURE, values),
        *({key: f"{key[0]} {key[1]}" for key in keys}, {key: key[0][-2:] for key in keys}, {"imported": True}),
    )
    return replace(made, **changes)


def league_of(demo: Leagues, runs: list[Scored], by: str = DOMAIN):
    """A league with these runs in it, of the toy's own data."""
    any_one = demo.of(VISUAL, MEASURE)
    return replace(any_one, task="summary", by=by, scored=tuple(runs), comparison=compare(runs), left_out=())


def test_the_sentence_says_who_is_first_and_over_whom_that_is_established(demo) -> None:
    # a is .5 ahead of b on every query, .001 or less apart from c in one direction each domain: nothing there
    runs = [toy("a", 0.8, 0.8), toy("b", 0.3, 0.3), toy("c", 0.8, 0.8)]
    said = finding(league_of(demo, runs))
    assert said.startswith("Across the 2 domains of Summary a has the highest macro nDCG@10, 0.805 [")
    assert "(24 queries, 24 clusters): rank 1–2 of 3, better than b, not established against c." in said
    assert said.endswith(" By domain a lead of it is established over some model in D0 and D1.")


def test_the_sentence_where_a_lead_holds_in_one_domain_and_another_is_behind(demo) -> None:
    said = finding(league_of(demo, [toy("a", 0.9, 0.5), toy("b", 0.2, 0.6)]))
    assert "better than all others." in said
    assert said.endswith("established over some model in D0, and it is behind one in D1.")


def test_many_models_are_counted_and_not_named(demo) -> None:
    beaten = [toy(f"low{n}", 0.1, 0.1) for n in range(5)]
    assert "better than 5 others, not established against b." in finding(
        league_of(demo, [toy("a", 0.8, 0.8), toy("b", 0.8, 0.8), *beaten])
    )
    even = [toy(f"x{n}", 0.5, 0.5) for n in range(6)]
    assert "rank 1–6 of 6, but not established better than any other." in finding(league_of(demo, even))


def test_what_cannot_be_said_is_said(demo) -> None:
    alone = finding(league_of(demo, [toy("a", 0.9, 0.5)]))
    assert alone.startswith("Across the 2 domains of Summary only a is ranked, with a macro nDCG@10 of 0.705")
    assert alone.endswith("(24 queries, 24 clusters); no other run is listed.")
    half = toy("b", 0.2, 0.6)
    half = replace(half, values={key: value for key, value in half.values.items() if key[0].endswith("D0")})
    assert "; the other model has no value in some domain." in finding(league_of(demo, [toy("a", 0.9, 0.5), half]))
    other = replace(
        toy("c", 0.5, 0.5), values={k: v for k, v in toy("c", 0.5, 0.5).values.items() if k not in half.values}
    )
    nothing = finding(league_of(demo, [half, other]))
    assert nothing == "Across the 2 domains of Summary no model is ranked: no listed run has a value in every domain."


@pytest.mark.parametrize("by", [DOMAIN, "modality", TASK])
@pytest.mark.parametrize("task", [VISUAL, IMAGES])
def test_the_sentence_agrees_with_the_verdicts_of_the_demo(demo, task, by) -> None:
    league = demo.of(task, MEASURE, by)
    said, macro = finding(league), league.comparison.macro
    ranked = [one for one in macro.standings if one.rank]
    assert f"{ranked[0].estimate.mean:.3f}" in said and ranked[0].name in said
    if len(ranked) > 1:
        beaten = [s.name for s in ranked[1:] if macro.pair(ranked[0].name, s.name).verdict == BETTER]
        assert ("but not established better than any other" in said) == (not beaten)
        assert not any(macro.pair(ranked[0].name, s.name).verdict == WORSE for s in ranked[1:])


@pytest.mark.parametrize("by", [DOMAIN, "modality", TASK])
def test_the_figures_are_read_back_equal(demo, by) -> None:
    league = demo.of(VISUAL, MEASURE, by)
    rows = list(csv.DictReader(io.StringIO(standings_csv(league, league.names))))
    macro = {one.name: one for one in league.comparison.macro.standings}
    assert [row["model"] for row in rows] == [one.name for one in league.comparison.macro.standings]
    for row in rows:
        one = macro[row["model"]]
        assert float(row["macro"]) == one.estimate.mean and float(row["low"]) == one.estimate.low
        assert (row["rank best"], row["rank worst"]) == tuple(map(str, one.rank))
        assert row["by"] == by and row["data"].endswith(league.data_id) and row["code"] and row["date"]
        for group in league.comparison.domains:
            mine = next(s for s in group.standings if s.name == row["model"])
            if math.isnan(mine.estimate.mean):
                assert row[group.name] == row[f"{group.name} n"] == "N/A"
            else:
                assert float(row[group.name]) == mine.estimate.mean and int(row[f"{group.name} n"]) == mine.estimate.n
            if mine.rank and not math.isnan(mine.estimate.mean):
                assert row[f"{group.name} rank"] == "–".join(map(str, dict.fromkeys(mine.rank)))
    few = standing_rows(league, league.names[:2])
    assert len(few) == 2 and all(row in standing_rows(league, league.names) for row in few)


def test_na_is_never_zero_in_files(demo) -> None:
    medlite = demo.of(IMAGES, MEASURE).scored[0]
    gone = next(iter(set(medlite.domains.values())))
    half = {k: v for k, v in medlite.values.items() if medlite.domains[k] != gone}
    league = demo.of(IMAGES, MEASURE, extra=[replace(medlite, name="half", model_id="half", values=half)])
    row = next(r for r in csv.DictReader(io.StringIO(standings_csv(league, ["half"]))))
    assert (row["macro"], row["micro"], row[gone], row["rank best"], row["low"]) == ("N/A",) * 5
    assert f"N/A: no queries in {gone}" == standing_rows(league, ["half"])[0]["reason"]


def test_differences_are_every_pair_whatever_is_shown(demo) -> None:
    league = demo.of(VISUAL, MEASURE, "modality")
    rows = list(csv.DictReader(io.StringIO(pairs_csv(league))))
    groups = (league.comparison.macro, *league.comparison.domains)
    assert len(rows) == sum(len(group.pairs) for group in groups) == len(pair_rows(league))
    known = {(g.name, p.a, p.b): p for g in groups for p in g.pairs}
    for row in rows:
        pair = known[row["group"], row["a"], row["b"]]
        assert float(row["difference"]) == pair.difference.mean and row["data"].endswith(league.data_id)
        if pair.test is None:
            assert row["p (Holm)"] == row["p"] == "N/A" and row["verdict"] == "not tested" and row["test"]
        else:
            assert float(row["p (Holm)"]) == pair.p_adjusted and row["verdict"] == pair.verdict
        assert tuple(int(row[name]) for name in ("wins", "ties", "losses")) == outcomes(pair)
        assert sum(outcomes(pair)) == int(row["n"])
    by_task = demo.of(VISUAL, MEASURE, TASK)
    assert {row["group"] for row in pair_rows(by_task)} <= {group.name for group in by_task.comparison.domains}


def test_latex_begins_with_what_made_it(demo) -> None:
    league = demo.of(VISUAL, MEASURE)
    text = latex(league, ["bm25", "medlite"])
    head, _, body = text.partition("% needs")
    assert all(line.startswith("% ") for line in head.splitlines())
    assert f"% data: {league.dataset_name}, {league.data_id}\n" in head and "% date: " in head
    assert body.count(r"\\") == 3 and "rrf" not in body
    evil = replace(league, conditions={"data": "line\n\\input{/etc/passwd}"})
    assert all(line.startswith("%") for line in latex(evil, ["bm25"]).splitlines()[:2])


def test_mteb_files_have_the_means_of_the_comparison(demo) -> None:
    data = mteb_zip(demo, VISUAL)
    assert data == mteb_zip(demo, VISUAL)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        results = [json.loads(archive.read(name)) for name in archive.namelist() if "model_meta" not in name]
        meta = {json.loads(archive.read(name))["name"] for name in archive.namelist() if "model_meta" in name}
    league = demo.of(VISUAL, MEASURE)
    assert len(results) == len(league.scored) and meta == {run.model_id for run in league.scored}
    means = {
        (group.name, round(one.estimate.mean, 9)) for group in league.comparison.domains for one in group.standings
    }
    found = {(e["hf_subset"], round(e["main_score"], 9)) for r in results for e in r["scores"]["test"]}
    assert found == means and {r["dataset_revision"] for r in results} == {league.data_id}
    own = toy("mine", 0.5, 0.5, task=VISUAL)
    with zipfile.ZipFile(io.BytesIO(mteb_zip(demo, VISUAL, [own]))) as archive:
        (mine,) = (json.loads(archive.read(n)) for n in archive.namelist() if "org__mine" in n and "meta" not in n)
    assert [e["hf_subset"] for e in mine["scores"]["test"]] == ["D0", "D1"] and mine["evaluation_time"] is None


def test_published_figures_stand_beside_the_same_model_first(demo) -> None:
    league = demo.of(VISUAL, MEASURE)
    facts = [
        Published("Other", "org/other", "dense text", VISUAL, 0.9, "s", "1"),
        Published("BM25", "bm25", "lexical", VISUAL, 0.25, "s", "1"),
        Published("None", "bm25", "lexical", "summary", 0.25, "s", "1"),
    ]
    found = beside_published(league, "bm25", facts)
    mean = next(s for s in league.comparison.macro.standings if s.name == "bm25").estimate.mean
    assert [one.published.model for one in found] == ["BM25", "Other"] and found[0].same_model
    assert found[0].difference == mean - 0.25 and not found[1].same_model
    assert "BM25 variant" in {one.name for one in found[0].reasons} - {one.name for one in found[1].reasons}
    assert next(one.name for one in found[1].reasons) == "other model"
    assert beside_published(demo.of(VISUAL, "R@10"), "bm25", facts) == []
    assert all(beside_published(demo.of(task, MEASURE), "medlite") for task in demo.tasks())


def test_all_words_of_the_sentence_are_numbers_of_the_league(demo) -> None:
    for task in demo.tasks():
        said = finding(demo.of(task, MEASURE))
        assert re.search(r"\(\d[\d,]* queries, \d[\d,]* clusters\)", said), said
