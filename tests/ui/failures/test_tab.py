"""The callbacks of the Failure cases tab without a browser: what can be chosen, what is shown, what is listed."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape

import gradio as gr
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analyze import lists, slices
from core.analyze.failures import BY_NAME, DEPTH, KINDS
from core.analyze.lists import ALL_FAIL, CONTRAST, ONLY_THIS, Wanted
from core.context import AppContext
from core.evaluate.measures import ALL
from core.settings import Settings
from core.version import code_version
from ui.failures import listing
from ui.failures.files import Files
from ui.failures.state import Choice, Drafts, Listed, Request
from ui.failures.tab import NO_RUNS, Failures
from ui.search.state import Opened

DEMO = "Demo library"
TASKS = ["visual_context", "summary", "query_to_image", "case_study"]
SKIP = gr.skip()


def skipped(value: object) -> bool:
    return isinstance(value, dict) and value == SKIP


def values(widget) -> list:
    return [value for _, value in widget.choices]


@pytest.fixture
def diagnosis(tab, choice):
    """The diagnosis behind a choice, by the desk."""

    def get(run: str = "bm25", task: str = "summary", scope: str = "pool"):
        desk = tab.context.desk(tab.context.dataset(DEMO))
        return desk.diagnosis(next(one for one in desk.runs(task, scope)[0] if one.label == run))

    return get


# What can be chosen


def test_the_tab_opens_with_the_tasks_runs_and_groups_of_the_data_set(tab):
    task, run, beside, by, scope, measure, group, kind, shown_for, fresh = tab.open_tab(DEMO, None)
    assert values(task) == TASKS and task.value == TASKS[0] and task.choices[0][0] == "Visual context"
    assert run.value == "medlite" and {"bm25", "medlite", "rrf:bm25+medlite"} <= set(values(run))
    assert values(beside) == [name for name in values(run) if name != "medlite"] and beside.value == []
    assert "specialty" in values(by) and by.value in values(by)
    assert values(scope) == ["pool", "collections"] and scope.value == "pool" and scope.visible
    assert measure.value == "nDCG@10" and set(values(measure)) <= set(ALL)
    assert values(group) == [""] and values(kind) == ["", *(kind.name for kind in KINDS)]
    assert shown_for == DEMO and fresh is True


def test_what_is_shown_stays_and_another_data_set_is_news(tab, tmp_path, toy):
    *widgets, fresh = tab.open_tab(DEMO, DEMO)
    assert all(skipped(value) for value in widgets) and len(widgets) == 9 and fresh is False
    other = Failures(AppContext(Settings((str(toy),), str(tmp_path / "w"), True)))
    shown = other.open_tab("toy", DEMO)
    assert not any(skipped(value) for value in shown) and shown[0].choices == [] and shown[0].value is None


def test_without_runs_a_sentence_teaches_and_they_are_looked_for_again(tmp_path, toy):
    tab = Failures(AppContext(Settings((str(toy),), str(tmp_path / "w"), True)))
    *_, shown_for, fresh = tab.open_tab("toy", None)
    assert shown_for is None and fresh
    shown = tab.overview(Choice("toy", None, None, None, (), None, 10, None, False), None)
    assert unescape(shown[0]) == f'<div class="m3-empty"><p>{NO_RUNS}</p></div>' and shown[10] is None
    assert all(value == "" or skipped(value) for value in shown[1:10])
    nothing = tab.list_queries(Choice("toy", None, None, None, (), None, 10, None, False), Wanted(), None)
    assert nothing == ("", Listed())
    for task in ("query_to_image", "nowhere"):  # without runs, or not there: as an event may name it
        assert all(not getattr(widget, "choices", None) for widget in tab.choose_task("toy", task, None, None, None))


def test_a_data_set_that_cannot_be_read_says_so_in_the_place_of_the_finding(tmp_path, sentence):
    tab = Failures(AppContext(Settings((str(tmp_path / "gone"),), str(tmp_path / "w"), True)))
    *_, shown_for, _ = tab.open_tab("gone", None)
    shown = tab.overview(Choice("gone", None, None, None, (), None, 10, None, False), None)
    assert shown_for is None and "is not a folder" in sentence(shown[0])


def test_a_task_brings_its_runs_and_keeps_what_exists_there_too(tab):
    run, beside, by, scope, *_ = tab.choose_task(DEMO, "summary", "collections", "bm25", "plane")
    assert run.value == "bm25" and scope.value == "collections" and by.value == "plane" and "bm25" not in values(beside)
    run, _, by, scope, *_ = tab.choose_task(DEMO, "query_to_image", "elsewhere", "bm25", "nothing")
    assert values(run) == ["medlite"] and run.value == "medlite" and scope.value == "pool" and by.value in values(by)


def test_another_model_leaves_those_beside_it(tab):
    beside = tab.choose_run(DEMO, "summary", "pool", "bm25", ["bm25", "late", "gone"])
    assert beside.value == ["late"] and "bm25" not in values(beside) and "medlite" in values(beside)
    assert skipped(tab.choose_run(DEMO, None, "pool", None, None))


# Where and why


def test_the_overview_says_where_and_why(tab, choice, diagnosis):
    finding, rates, groups, kinds, ablation, heat, confusion, group, order, made, overlay = tab.overview(choice(), None)
    report = slices.where([diagnosis()], "modality", 10, "nDCG@10")
    assert "bm25 fails on" in finding and f"of {report[0].name} queries" in finding
    drawn = json.loads(rates)
    assert drawn["data"][0]["customdata"] == [one.name for one in report]
    assert drawn["data"][0]["x"] == [pytest.approx(100 * one.failures / one.n) for one in report]
    assert "Failure rate of bm25, Summary" in drawn["layout"]["title"]["text"]
    assert groups.count("data-group=") == len(report) and all(f">{one.failures:,}</td>" in groups for one in report)
    assert kinds.count("data-kind=") + kinds.count('class="m3-kind"') >= len(KINDS)
    assert "no modality ablation" in ablation.lower() or "reads one side" in ablation
    found = slices.confusion(diagnosis(), "modality")
    assert (json.loads(heat) if heat else None) is None and not found.n and "name no modality" in confusion
    assert values(group) == ["", *(one.name for one in report)] and group.value == ""
    assert values(order) == ["worst"] and overlay is None
    run_ids = diagnosis().run_ids
    data_id = tab.context.dataset(DEMO).data_id
    for fact in (data_id, *run_ids, code_version(), "bm25s", "ir-measures"):
        assert unescape(fact) in unescape(made), fact


def test_first_hits_are_counted_by_the_facet_of_the_groups_or_else_by_domain(tab, choice, diagnosis):
    for by, facet in (("specialty", "specialty"), ("plane", "domain")):
        heat, confusion = tab.overview(choice(by=by), None)[5:7]
        found = slices.confusion(diagnosis(), facet)
        assert json.loads(heat)["data"][0]["text"] == [[str(n) if n else "" for n in row] for row in found.counts]
        assert f"Rows: {facet} of the query" in confusion and f"{found.n:,} queries" in confusion


def test_grouped_by_task_all_tasks_of_the_run_are_shown_and_no_group_can_be_listed(tab, choice):
    shown = tab.overview(choice(by="task"), None)
    assert shown[2].count("data-task=") == 3 and "data-group" not in shown[2]  # bm25 has no run on pictures
    assert "Failure rate of bm25, all tasks" in json.loads(shown[1])["layout"]["title"]["text"]
    assert values(shown[7]) == [""] and shown[5] == ""


def test_the_modality_ablation_is_shown_where_it_is_stored(tab, choice, diagnosis):
    ablation = tab.overview(choice(run="medlite"), None)[4]
    rows = slices.ablation(diagnosis("medlite"))
    assert ablation.count("<tr>") == 1 + len(rows) and f"{rows[0].full:.3f}" in ablation


def test_with_models_beside_it_the_contrast_can_be_chosen(tab, choice):
    assert values(tab.overview(choice(beside=("medlite",)), None)[8]) == ["worst", "contrast"]


def test_a_run_that_is_gone_is_one_sentence(tab, choice, sentence, event):
    gone = choice(run="gone")
    assert "not stored any more" in sentence(tab.overview(gone, None)[0])
    html, listed = tab.list_queries(gone, Wanted(), None)
    assert "not stored any more" in sentence(html) and listed == Listed()
    _, listed = tab.list_queries(choice(), Wanted(failing=False), None)
    stale = replace(listed, choice=gone)
    assert "not stored any more" in sentence(tab.turn_page(stale, event({"to": 1}))[0])
    assert "not stored any more" in sentence(tab.open_case(stale, Drafts(), "", None, event({"i": 0}), "i")[0])
    for value in (Files(tab).save_list(stale, "csv"), Files(tab).save_case(replace(stale, at=0), None)):
        assert "not stored any more" in json.loads(value)["problem"]


# Which


def keys_of(diagnosis, at) -> list:
    return [(diagnosis.queries[i].collection, diagnosis.queries[i].id) for i in at]


def listed_by(tab, choice, **wanted) -> list:
    html, listed = tab.list_queries(choice, Wanted(**wanted), None)
    assert html.count('class="m3-opens"') == min(len(listed.keys), listing.PAGE)
    return list(listed.keys)


def test_the_worst_failures_come_first(tab, choice, diagnosis):
    main = diagnosis()
    keys = listed_by(tab, choice())
    assert set(keys) == set(keys_of(main, np.flatnonzero(main.failed(10)))) and len(keys) == len(set(keys)) > 5
    value = [main.values["nDCG@10"][main.at(key)] for key in keys]
    assert value == sorted(value)
    assert len(listed_by(tab, choice(), failing=False)) == len(main.queries)
    assert len(listed_by(tab, choice(k=1))) == main.failed(1).sum() > len(keys)


def test_each_filter_leaves_what_it_says(tab, choice, diagnosis):
    main, chosen = diagnosis(), choice()
    everything = listed_by(tab, chosen)
    groups = slices.where([main], "modality", 10, "nDCG@10")
    assert [group.pooled for group in groups] == [False, True]
    for group in groups:
        names = group.members if group.pooled else (group.name,)
        kept = [key for key in everything if main.queries[main.at(key)].meta["modality"] in names]
        assert listed_by(tab, chosen, group=("modality", group.name)) == kept and len(kept) == group.failures
    for kind in ("near miss", "wrong domain", "wrong specialty"):
        kept = [key for key in everything if kind in main.kinds(main.at(key), 10)]
        assert listed_by(tab, chosen, kinds=(kind,)) == kept and kept, kind
        assert BY_NAME[kind].role != DEPTH or len(kept) < len(everything)
    kept = [key for key in everything if main.top[main.at(key)]["domain"] == "Head"]
    assert listed_by(tab, chosen, found=("domain", "Head")) == kept and kept
    html, _ = tab.list_queries(chosen, Wanted(found=("domain", "Head")), None)
    assert 'data-do="all"' in html and "<strong>Head</strong>" in html
    identity = everything[3][1]
    assert everything[3] in listed_by(tab, chosen, text=f"  {identity.upper()} ")
    html, listed = tab.list_queries(chosen, Wanted(text="zebra"), None)
    assert listing.NOTHING in html and listed.keys == ()


def test_models_agree_or_differ(tab, choice, diagnosis):
    main, medlite = diagnosis(), diagnosis("medlite")
    runs = [one.label for one in tab.context.desk(tab.context.dataset(DEMO)).runs("summary", "pool")[0]]
    others = [diagnosis(name) for name in runs if name != "bm25"]
    everything = listed_by(tab, choice())

    def fails(key) -> list[bool]:
        return [bool(one.failed(10)[one.at(key)]) for one in others]

    assert listed_by(tab, choice(), agreement=ALL_FAIL) == [key for key in everything if all(fails(key))]
    alone = [key for key in everything if not any(fails(key))]
    assert listed_by(tab, choice(beside=("medlite",)), agreement=ONLY_THIS) == alone and alone
    gaps = dict(zip(keys_of(main, range(len(main.queries))), lists.gap(main, medlite, "nDCG@10"), strict=True))
    # The first of those beside it is held against it, whichever runs are looked at for agreement.
    for agreement in ("", ONLY_THIS):
        keys = listed_by(tab, choice(beside=("medlite", "late")), order=CONTRAST, agreement=agreement)
        assert [gaps[key] for key in keys] == sorted(gaps[key] for key in keys) and keys


def test_pages_turn_and_damaged_or_stale_events_turn_nothing(tab, choice, event):
    html, listed = tab.list_queries(choice(), Wanted(failing=False), None)
    assert "1–50 of 60" in html and listed.page == 0
    html, turned = tab.turn_page(listed, event({"to": 1}))
    assert "51–60 of 60" in html and html.count("m3-opens") == 10 and turned == replace(listed, page=1)
    for data in ({"to": 2}, {"to": -1}, {"to": True}, {"to": "1"}, {"to": 1.0}, {}, None, [], "to"):
        assert all(skipped(value) for value in tab.turn_page(listed, event(data))), data
    assert all(skipped(value) for value in tab.turn_page(Listed(), event({"to": 0})))


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["i", "to", "x"]), inner, max_size=3),
    max_leaves=5,
)


@given(anything, st.integers(0, 60))
def test_a_number_is_taken_only_where_it_is_a_place_of_the_list(data, below):
    number = listing.number_of(gr.EventData(None, data), "i", below)
    good = isinstance(data, dict) and type(data.get("i")) is int and 0 <= data["i"] < below
    assert number == (data["i"] if good else None)


# One case


def test_a_row_opens_its_case_with_the_viewer_closed(tab, choice, opened, event):
    (html, listed, form, face, words, state), _ = opened(tab, 2, choice(beside=("medlite",)))
    key = listed.keys[2]
    assert listed.at == 2 and f"query {key[1]}" in html and 'data-at="2"' in html
    assert f"Case 3 of {len(listed.keys)}" in html and html.count('class="m3-column"') == 2
    assert f'data-id="{key[1]}"' in form and f"Note on query {key[1]}" in form
    assert json.loads(face)["items"] == [] and words == "" and state == Opened()
    again = tab.open_case(listed, Drafts(), "", None, event({"i": 3}), "i")
    assert again[1] == replace(listed, at=3) and listed.keys[3][1] in again[0]


@pytest.mark.parametrize("data", [{"i": 10_000}, {"i": -1}, {"i": True}, {"i": "0"}, {"i": None}, {}, None, [0]])
def test_damaged_and_stale_events_open_nothing(tab, opened, event, data):
    _, listed = opened(tab)
    assert all(skipped(value) for value in tab.open_case(listed, Drafts(), "", None, event(data), "i"))
    assert all(skipped(value) for value in tab.open_case(Listed(), Drafts(), "", None, event({"i": 0}), "i"))


def test_documents_and_the_query_open_in_the_viewer_and_steps_stay_in_the_case(tab, choice, opened, event):
    _, listed = opened(tab, 0, choice(task="query_to_image", run="medlite"))
    key = listed.keys[0]
    face, words, state = tab.look(listed, event({"collection": key[0], "id": key[1], "query": True}))
    shown = json.loads(face)
    assert shown["frame"] and shown["compare"] is None and state.data_id == listed.data_id
    document = tab.context.dataset(DEMO).collections[key[0]].corpus.column("id")[0].as_py()
    face, words, state = tab.look(listed, event({"collection": key[0], "id": document, "query": False}))
    shown = json.loads(face)
    assert shown["frame"] and shown["compare"] and words
    at = len(shown["items"]) - 1
    stepped = json.loads(tab.step(listed, state, event({"at": at, "id": shown["items"][at]["id"]})))
    assert stepped["at"] == at and stepped["step"]
    for data in ({"at": 99, "id": shown["items"][0]["id"]}, {"at": 0, "id": "other"}, {"at": "0"}, {}, None):
        assert skipped(tab.step(listed, state, event(data)))
    assert skipped(tab.step(replace(listed, data_id="other"), state, event({"at": 0, "id": shown["items"][0]["id"]})))
    assert skipped(tab.step(listed, None, event({"at": 0, "id": "x"})))


def test_what_cannot_be_opened_says_so(tab, opened, event, sentence):
    _, listed = opened(tab)
    face, words, state = tab.look(listed, event({"collection": "nowhere", "id": "x", "query": False}))
    assert json.loads(face)["problem"] and "not in the data set" in sentence(words) and state == Opened()
    for data in (
        {"collection": 1, "id": "x", "query": False},
        {"collection": "a", "id": "b", "query": "yes"},
        {},
        None,
    ):
        assert all(skipped(value) for value in tab.look(listed, event(data)))
    for closed in (Listed(), replace(listed, at=None)):
        good = event({"collection": "nowhere", "id": "x", "query": False})
        assert all(skipped(value) for value in tab.look(closed, good))


# From another tab


def test_another_tab_chooses_run_and_group_and_opens_a_query(tab, choice):
    _, all_listed = tab.list_queries(choice(), Wanted(failing=False), None)
    key = all_listed.keys[7]
    request = Request(DEMO, "summary", "pool", "bm25", ("medlite",), "modality", "CT", key, contrast=True)
    task, run, beside, by, scope, measure, shown_for = tab.apply(DEMO, request)
    assert (task.value, run.value, beside.value, by.value, scope.value) == (
        "summary", "bm25", ["medlite"], "modality", "pool"
    )  # fmt: skip
    assert measure.value == "nDCG@10" and shown_for == DEMO
    assert tab.filters_of(request) == (False, "CT", "", "", "", CONTRAST, None)
    assert tab.filters_of(replace(request, beside=()))[5] == lists.WORST
    shown = tab.open_asked(request, all_listed, Drafts(), "", None)
    assert shown[1] == replace(all_listed, at=7) and f"query {key[1]}" in shown[0]
    for other in (None, replace(request, key=None), replace(request, key=("a", "b"))):
        *case, asked = tab.open_asked(other, all_listed, Drafts(), "", None)
        assert all(skipped(value) for value in case) and asked == ("" if other is None else "list")
    assert all(skipped(value) for value in (*tab.apply("toy", request), *tab.apply(DEMO, None), *tab.filters_of(None)))
