"""The callbacks of the Model comparison tab without a browser: what can be chosen, what is shown, what is opened."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from html import unescape
from types import SimpleNamespace

import gradio as gr
import pytest

from core.analyze.league_report import finding
from core.analyze.quality import quality
from core.context import AppContext
from core.evaluate.cost import cost_of
from core.figures.failures import SEPARATOR
from core.settings import Settings
from ui.compare import opening, tables
from ui.compare import tab as module
from ui.compare.opening import Opening
from ui.compare.state import Brought, Choice
from ui.compare.tab import ALONE, DIFFERENT, MENUS, NO_RUNS, NOTHING, VIEWS, WHOLE, Compare, More, Views

DEMO, MEASURE = "Demo library", "nDCG@10"
TASKS = ["visual_context", "summary", "query_to_image", "case_study"]


def skipped(value: object) -> bool:
    return isinstance(value, dict) and value == gr.skip()


def seen(tab: Compare, choice: Choice, brought: Brought) -> SimpleNamespace:
    """Everything that is shown of a choice, by name."""
    first, more = tab.overview(choice, brought), tab.details(choice, brought, "query_ms")
    named = zip((field.name for field in (*fields(Views), *fields(More))), (*first, *more), strict=True)
    return SimpleNamespace(**dict(named))


def values(widget) -> list:
    return [value for _, value in widget.choices]


def chosen(widget, given):
    """What a menu shows: a value that stays is not sent back."""
    return given if isinstance(widget, dict) and "value" not in widget else widget.value


def body(table: str) -> list[list[str]]:
    """The cells of a table's rows, as they are read; spans on lines of their own."""
    rows = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.S)
    cells = [re.findall(r"<(?:th|td)[^>]*>(.*?)</(?:th|td)>", row, re.S) for row in rows]
    return [[unescape(re.sub(r"<[^>]+>", "\n", cell)).strip() for cell in row] for row in cells]


# What can be chosen


def test_the_tab_opens_with_the_best_two_of_the_first_task(tab, nobody):
    *menus, fresh = tab.open_tab(DEMO, None, nobody)
    task, measure, by, shown, a, b, offered, shown_for, where = menus[:MENUS]
    assert values(task) == TASKS and task.value == TASKS[0] and task.choices[0][0] == "Visual context"
    league = tab.leagues(DEMO).of(TASKS[0], MEASURE)
    best = [one.name for one in league.comparison.macro.standings]
    assert (measure.value, by.value, shown.value) == (MEASURE, "domain", league.names)
    assert (a.value, b.value) == (best[0], best[1]) and values(a) == values(b) == league.names == offered["models"]
    assert values(by) == tab.leagues(DEMO).groupings(TASKS[0]) and shown_for == DEMO and fresh is True
    members = tab.context.dataset(DEMO).pool(TASKS[0]).collections
    assert values(where) == [WHOLE, *(member.key for member in members)] and where.value == WHOLE
    chosen = Choice(DEMO, TASKS[0], MEASURE, "domain", tuple(offered["models"]), a.value, b.value)
    assert tuple(menus[MENUS:]) == tab.overview(chosen, nobody)
    *again, fresh = tab.open_tab(DEMO, DEMO, nobody)
    assert all(skipped(value) for value in again) and fresh is False and len(again) == len(menus) == MENUS + VIEWS


def test_what_was_chosen_stays_where_it_exists(tab, nobody):
    def choose(*args):
        return tab.choose(DEMO, *args, nobody)

    _, measure, by, shown, a, b, *_ = choose(
        "summary", "R@10", "modality", ["late", "bm25"], "late", "bm25", {"models": ["late", "bm25", "minilm"]}
    )
    assert all(isinstance(menu, dict) and "value" not in menu for menu in (measure, by, a, b))
    assert (
        shown.value == ["bm25", "late"] and measure["choices"][0] == MEASURE and "Judged@10" not in measure["choices"]
    )
    task, measure, by, shown, a, b, offered, *_ = choose(
        "query_to_image", "nothing", "nothing", ["late"], "late", "bm25", {"models": ["late", "bm25", "minilm"]}
    )
    assert (chosen(task, "query_to_image"), measure.value, by.value) == ("query_to_image", MEASURE, "domain")
    assert (shown.value, a.value, b.value, offered["models"]) == (["medlite"], "medlite", None, ["medlite"])
    # A menu whose choices stay gets none: whoever types in it is not disturbed.
    again = choose("query_to_image", MEASURE, "domain", ["medlite"], "medlite", None, offered)
    assert all(skipped(again[i]) for i in (0, 1, 2, 3, 4, 5, 8))
    # All that was offered was shown: then all are shown again.
    assert len(choose("summary", MEASURE, "domain", ["medlite"], "medlite", None, offered)[3].value) == 7
    by_task = choose("query_to_image", MEASURE, "task", [], "medlite", None, {})
    assert len(by_task[3].value) == 7, "by task every model stands in some task"
    assert choose("nowhere", MEASURE, "domain", [], None, None, {})[0].value == TASKS[0]


def test_without_runs_a_sentence_teaches(tmp_path, toy, nobody):
    tab = Compare(AppContext(Settings((str(toy),), str(tmp_path / "w"), True)))
    *given, fresh = tab.open_tab("toy", None, nobody)
    assert given[:MENUS] == list(NOTHING) and given[7] is None and fresh
    shown = given[MENUS:]
    assert unescape(shown[0]) == f'<div class="m3-empty"><p>{NO_RUNS}</p></div>' and set(shown[1:]) == {""}
    assert tab.complement(Choice("toy", None, None, None, (), "", ""), nobody) == ""


def test_a_data_set_that_cannot_be_read_says_so(tmp_path, nobody, sentence):
    tab = Compare(AppContext(Settings((str(tmp_path / "gone"),), str(tmp_path / "w"), True)))
    given = tab.open_tab("gone", None, nobody)
    assert given[7] is None and "is not a folder" in sentence(given[MENUS])


# What is shown


def test_everything_is_shown_of_every_task_and_grouping(tab, choice, nobody):
    for task in TASKS:
        for by in tab.leagues(DEMO).groupings(task):
            shown = seen(tab, choice(task=task, by=by, a="medlite", b="bm25"), nobody)
            assert 'role="alert"' not in shown.finding, (task, by)
            assert unescape(shown.finding).count(finding(tab.leagues(DEMO).of(task, MEASURE, by))) == 1
            for chart in (shown.bars, shown.heat, shown.cost, shown.published):
                assert json.loads(chart)["layout"]["meta"]["source"].startswith("data: Demo library")


@pytest.mark.parametrize("by", ["domain", "modality", "task"])
def test_the_tables_say_what_the_comparison_says(tab, choice, nobody, by):
    """The same `Comparison` is what ``python -m core compare`` prints."""
    league = tab.leagues(DEMO).of("case_study", MEASURE, by)
    shown = seen(tab, choice(by=by), nobody)
    groups = [*(() if by == "task" else (league.comparison.macro,)), *league.comparison.domains]
    rows = body(shown.pair)
    assert [row[0] for row in rows] == ["Macro" if g.name == "macro" else g.name for g in groups]
    for row, group in zip(rows, groups, strict=True):
        pair = group.pair("medlite", "bm25")
        if pair is None:
            assert row[1] == "N/A" and len(row) == 3
            continue
        d = pair.difference
        assert float(row[1].replace("−", "-")) == round(d.mean, 3)
        assert row[2].replace("−", "-") == ("" if d.low is None else f"{d.low:.3f} … {d.high:.3f}")
        assert row[5].endswith(pair.verdict if pair.test else "not tested")
        assert (row[4] == "") == (pair.p_adjusted is None)
        assert [int(cell.replace(",", "")) for cell in row[7:]] == [
            sum(counts[i] for counts in pair.outcomes.values()) for i in range(3)
        ]
    table = {row[0].split("\n")[0]: row for row in body(shown.standings.partition("</table>")[0])}
    assert list(table) and set(table) == set(choice().shown)
    if by != "task":
        for one in league.comparison.macro.standings:
            row = table[one.name]
            assert float(row[1]) == round(one.estimate.mean, 3)
            assert row[3] == f"{'–'.join(map(str, dict.fromkeys(one.rank)))} of 7"


def test_who_is_shown_changes_no_number(tab, choice, nobody):
    every, few = (seen(tab, choice(shown=names), nobody) for names in (choice().shown, ("late", "bm25")))
    for name in ("finding", "warnings", "pair", "scatter", "largest", "provenance"):
        assert getattr(few, name) == getattr(every, name), name
    rows = {row[0]: row for row in body(every.standings)}
    assert {row[0]: row for row in body(few.standings)} == {name: rows[name] for name in ("late", "bm25")}
    assert len(json.loads(few.bars)["data"]) == 2 < len(json.loads(every.bars)["data"])


def test_two_models_are_needed_and_said(tab, choice, nobody):
    alone = seen(tab, choice(task="query_to_image", b=""), nobody)
    assert ALONE in unescape(alone.pair) and alone.scatter == alone.largest == ""
    assert ALONE in unescape(tab.complement(choice(task="query_to_image", b=""), nobody))
    same = tab.pair(choice(b="medlite"), nobody)
    assert DIFFERENT in same[0] and same[1:] == ("", "")
    assert DIFFERENT in tab.complement(choice(b="medlite"), nobody)
    other = tab.pair(choice(task="query_to_image", by="task", b="bm25"), nobody)
    assert "no stored run" in other[0] and other[1:] == ("", "")
    assert "no run of this task" in unescape(tab.complement(choice(task="query_to_image"), nobody))


def test_what_two_models_solve_is_what_core_says(tab, choice, nobody):
    found = tab.leagues(DEMO).complement("case_study", MEASURE, "medlite", "bm25")
    rows = body(tab.complement(choice(), nobody))
    shares = {row[0]: row[1] for row in rows[:4]}
    assert (
        shares["Both"] == f"{100 * found.both.mean:.1f} %" and shares["Only bm25"] == f"{100 * found.only_b.mean:.1f} %"
    )
    assert [row[1] for row in body(tab.complement(choice(), nobody).partition("</table>")[2])] == [
        f"{e.mean:.3f}" for e in (found.mean_a, found.mean_b, found.best_of_two, found.rrf, found.zsum)
    ]


def test_another_cost_moves_the_marks_only(tab, choice, nobody):
    shown = [tab.cost(choice(), nobody, by) for by in ("query_ms", "document_bytes")]
    charts = [json.loads(chart) for chart, _ in shown]
    for (_, table), by in zip(shown, ("query_ms", "document_bytes"), strict=True):
        league = tab.leagues(DEMO).of("case_study", MEASURE)
        costs = {
            run.name: cost_of(tab.context.dataset(DEMO), tab.context.workspace, "case_study", run.name)
            for run in league.scored
        }
        front = {row.model for row in quality(league, costs, by) if row.front}
        assert {row[0].split("\n")[0] for row in body(table) if "Pareto" in row[0]} == front
        few = tab.cost(choice(shown=("late", "medlite")), nobody, by)[1]
        assert {row[0].split("\n")[0] for row in body(few) if "Pareto" in row[0]} == front & {"late", "medlite"}
    marks = [chart["data"][1] for chart in charts]
    places = [dict(zip(m["customdata"], zip(m["x"], m["y"], strict=True), strict=True)) for m in marks]
    assert places[0].keys() == places[1].keys() == set(choice().shown)
    assert all(places[0][name][1] == places[1][name][1] and places[0][name] != places[1][name] for name in places[0])
    assert tab.cost(choice(task=None), nobody, "query_ms") == ("", "")


def test_published_figures_are_of_one_measure(tab, choice, nobody):
    shown = seen(tab, choice(measure="R@10"), nobody)
    assert shown.published == "" and "choose this measure" in shown.facts
    facts = body(seen(tab, choice(task="visual_context"), nobody).facts)
    bm25 = next(row for row in facts if row[0].startswith("BM25"))
    mean = next(
        one.estimate.mean
        for one in tab.leagues(DEMO).of("visual_context", MEASURE).comparison.macro.standings
        if one.name == "bm25"
    )
    assert bm25[1] == "0.381" and bm25[2].startswith(f"{mean:.3f}")
    assert float(bm25[3].replace("−", "-")) == round(mean - 0.3807, 3)
    assert sum(row[2] == "not run" for row in facts) == 9


def test_what_went_wrong_is_said_once(tab, choice, nobody, monkeypatch):
    shown = tab.overview(choice(by="colour"), nobody)
    more = tab.details(choice(by="colour"), nobody, "")
    assert "not grouped by" in shown[0] and set(shown[1:]) == {""} == set(more[1:]) and "not grouped by" in more[0]
    monkeypatch.setattr(module.tables, "standings", lambda *_: 1 / 0)
    assert "inside the app (ZeroDivisionError" in tab.overview(choice(), nobody)[0]


def test_equal_runs_are_called_equal_and_zero_has_no_sign(tab, choice, nobody):
    shown = seen(tab, choice(task="visual_context", a="minilm-maxp", b="minilm"), nobody)
    for row in body(shown.pair):
        assert (
            row[1] == "0.000" and row[5] == "= the same on every query" and row[6] == "N/A" and row[7] == row[9] == "0"
        )
    assert [tables.signed(value) for value in (-0.0001, 0.0001, 0.01, -0.01, None)] == [
        *("0.000", "0.000", "+0.010", "−0.010", "N/A")
    ]


def test_a_brought_run_is_no_published_model_and_its_training_is_not_known(tab, choice, nobody):
    league = tab.leagues(DEMO).of("visual_context", MEASURE)
    mine = replace(league.scored[0], name="BM25", model_id="bm25", conditions={"imported": True})

    class Held:
        name, data_id, task, scored, rankings = "BM25", league.data_id, "visual_context", {MEASURE: mine}, {}

    shown = seen(tab, choice(task="visual_context", shown=("BM25", "medlite")), Brought((Held,)))
    (row,) = (row for row in body(shown.facts) if row[0].startswith("BM25"))
    assert row[2].endswith("bm25"), "the model that was run, though it is not shown"
    assert "not known of BM25" in shown.provenance


def test_by_task_families_are_said_and_one_model_has_no_rank(tab, choice, nobody):
    by_task, by_domain = (seen(tab, choice(by=by), nobody).standings for by in ("task", "domain"))
    assert "each task is a family of its own" in by_task and "one family for the macro means" in by_domain
    medlite = next(row for row in body(by_task) if row[0] == "medlite")
    assert "rank" not in medlite[1 + TASKS.index("query_to_image")] and "rank" in medlite[1]


# From here to a query


def test_a_cell_of_losses_opens_exactly_these_queries(tab, choice, nobody, event):
    leagues = tab.leagues(DEMO)
    for kind in ("wins", "losses"):
        request, said = Opening(tab).outcome(choice(), nobody, event({"outcome": kind, "within": "Head"}))
        keys = leagues.outcome("case_study", MEASURE, "domain", "Head", "medlite", "bm25", kind)
        assert said == "" and len(keys) > 1 and request.named.keys == set(keys) and request.key is None
        assert request.named.words == f"{len(keys)} {kind} of medlite against bm25 in Head"
        assert (request.run, request.beside) == (("medlite", ("bm25",)) if kind == "losses" else ("bm25", ("medlite",)))
        assert (request.label, request.task, request.scope) == (DEMO, "case_study", "collections")
    request, _ = Opening(tab).outcome(choice(by="task"), nobody, event({"outcome": "wins", "within": "Summary"}))
    assert request.task == "summary" and all(key[0].startswith("summary/") for key in request.named.keys)
    for data in (None, {}, {"outcome": "x", "within": "Head"}, {"outcome": "wins", "within": 1}):
        assert Opening(tab).outcome(choice(), nobody, event(data)) == (None, "")
    assert Opening(tab).outcome(choice(), nobody, event({"outcome": "wins", "within": "nowhere"})) == (None, "")


def test_a_row_opens_its_query_under_the_model_that_does_worse(tab, choice, nobody, event):
    shown = seen(tab, choice(), nobody).largest
    places = re.findall(r'data-collection="([^"]+)" data-query="([^"]+)"', shown)
    runs = {run.name: run.values for run in tab.leagues(DEMO).of("case_study", MEASURE).scored}
    assert len(places) == 10
    for place in places:
        key = tuple(map(unescape, place))
        request, said = Opening(tab).query(choice(), nobody, event({"collection": key[0], "query": key[1]}))
        worse = "bm25" if runs["medlite"][key] > runs["bm25"][key] else "medlite"
        assert said == "" and request.key == key and request.run == worse and request.named is None
    for data in (None, {"collection": "x", "query": "y"}, {"collection": key[0], "query": "y"}, {"collection": 1}):
        assert Opening(tab).query(choice(), nobody, event(data)) == (None, "")


def test_a_mark_opens_its_queries(tab, choice, nobody, event):
    figure = json.loads(seen(tab, choice(), nobody).scatter)
    marks = figure["data"][1]["customdata"]
    runs = {run.name: run.values for run in tab.leagues(DEMO).of("case_study", MEASURE).scored}
    opened = []
    for mark in marks:
        request, _ = Opening(tab).point(choice(), nobody, event({"customdata": mark}))
        keys = [request.key] if request.key else sorted(request.named.keys)
        x, y = map(float, mark.split(SEPARATOR))
        assert all(round(runs["medlite"][k], 3) == y and round(runs["bm25"][k], 3) == x for k in keys)
        opened += keys
    assert sorted(opened) == sorted(runs["bm25"])
    assert Opening(tab).point(choice(), nobody, event({"customdata": "no such"})) == (None, "")


def test_what_only_this_session_has_cannot_be_opened_and_says_so(tab, choice, nobody, event, monkeypatch):
    monkeypatch.setattr(opening, "opens", lambda *_: [])
    monkeypatch.setattr(module, "opens", lambda *_: [])
    request, said = Opening(tab).outcome(choice(), nobody, event({"outcome": "wins", "within": "macro"}))
    assert request is None and "this browser session only" in unescape(said)
    assert "data-outcome" not in seen(tab, choice(), nobody).pair


def test_text_of_models_never_becomes_code(tab, choice, nobody, evil):
    league = tab.leagues(DEMO).of("case_study", MEASURE)
    mine = replace(next(run for run in league.scored if run.name == "late"), name=evil, model_id=evil, revision=evil)
    mine = replace(mine, conditions={"imported": True})

    class Held:
        name, data_id, task, scored, rankings = evil, league.data_id, "case_study", {MEASURE: mine}, {}

    brought = Brought((Held,))
    shown = seen(tab, choice(a=evil, shown=(evil, "bm25")), brought)
    parts = [*vars(shown).values(), tab.complement(choice(a=evil), brought)]
    assert evil in unescape(shown.standings) and evil in json.loads(shown.bars)["data"][1]["offsetgroup"]
    for part in parts:
        assert "<script" not in part and "<img" not in part
        assert part.startswith("{") or ("{{" not in part and "${" not in part and "`" not in part)
