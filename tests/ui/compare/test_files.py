"""Files out of the comparison, and runs that visitors bring."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
import zipfile
from html import unescape

import pytest

from core.context import AppContext
from core.settings import Settings
from ui import charts
from ui.compare import state
from ui.compare.files import Files
from ui.compare.report_file import Section, report_file
from ui.compare.state import MOST_RUNS, Brought
from ui.compare.tab import MENUS, VIEWS, WHOLE, Compare

DEMO, MEASURE, TASK = "Demo library", "nDCG@10", "case_study"


@pytest.fixture
def files(tab) -> Files:
    return Files(tab)


@pytest.fixture
def give(event):
    """The event of a chosen file."""
    return lambda data, name="my.run": event({"name": name, "b64": base64.b64encode(data).decode()})


def sent(payload: str) -> tuple[str, bytes]:
    told = json.loads(payload)
    assert "problem" not in told, told
    return told["name"], base64.b64decode(told["base64"])


def test_files_hold_what_is_shown(files, choice, nobody):
    chosen = choice(by="modality", shown=("late", "bm25"))
    name, data = sent(files.standings(chosen, nobody, "csv"))
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert name == "comparison-case_study-nDCG-10-by-modality.csv" and {row["model"] for row in rows} == {
        "late",
        "bm25",
    }
    name, data = sent(files.standings(chosen, nobody, "latex"))
    assert name.endswith(".tex") and data.startswith(b"% data: ") and rb"\toprule" in data
    _, data = sent(files.pairs(chosen, nobody))
    league = files.tab.leagues(DEMO).of(TASK, MEASURE, "modality")
    pairs = sum(len(group.pairs) for group in (league.comparison.macro, *league.comparison.domains))
    assert len(list(csv.DictReader(io.StringIO(data.decode())))) == pairs, "all pairs, whatever is shown"
    name, data = sent(files.per_query(chosen, nobody))
    assert name == "queries-medlite-bm25-case_study-nDCG-10.csv" and data.count(b"\n") > 60
    _, data = sent(files.mteb(chosen, nobody))
    assert len(zipfile.ZipFile(io.BytesIO(data)).namelist()) == 14


def test_what_cannot_be_saved_says_why(files, choice, nobody):
    for payload in (
        files.standings(choice(task=None), nobody, "csv"),
        files.per_query(choice(b="medlite"), nobody),
        files.report(choice(by="colour"), nobody, "query_ms"),
    ):
        assert json.loads(payload)["problem"].endswith(".") and "base64" not in json.loads(payload)


def test_the_report_stands_alone(files, choice, nobody):
    name, data = sent(files.report(choice(), nobody, "query_ms"))
    page = data.decode()
    assert name == "comparison-case_study-nDCG-10.html"
    first, more = files.tab.overview(choice(), nobody), files.tab.details(choice(), nobody, "query_ms")
    assert (
        first[0] in page
        and first[3] in page
        and more[1] in page
        and "data-outcome" not in page
        and "data-query" not in page
    )
    figures = re.findall(r'<script type="application/json" data-figure>(.*?)</script>', page)
    assert figures == [first[2], more[1], more[3], more[5], more[7]]
    head = page[: page.index("<body>")]
    assert "default-src 'none'" in head and "<link" not in page.partition("<script>")[0] and "src=" not in head
    assert charts.code().decode().replace("</script", "<\\/script") in page
    for fact, value in files.tab.leagues(DEMO).of(TASK, MEASURE).conditions.items():
        assert f"<dt>{fact}</dt>" in page and value.split(",")[0] in unescape(page)


def test_the_report_of_one_model_asks_nothing_of_two(files, choice, nobody):
    _, data = sent(files.report(choice(task="query_to_image", b=""), nobody, "query_ms"))
    headings = re.findall("<h2>(.*?)</h2>", data.decode())
    assert not any("better than" in words or "together" in words for words in headings) and len(set(headings)) == 5


def test_the_same_file_twice_is_answered_twice(files, give, nobody):
    first, again = (files.bring(DEMO, TASK, WHOLE, "mine", "", nobody, give(b"x"))[0] for _ in range(2))
    assert first != again and first.partition("<!--")[0] == again.partition("<!--")[0]


def test_nothing_in_a_report_becomes_code(evil):
    page = report_file(evil, "", [Section(evil, [], "")], {evil: evil}).decode()
    outside = page[: page.rindex("<script>", 0, page.rindex("<script>"))]
    assert evil not in outside and "<script>alert" not in outside
    assert unescape(page).count(evil) >= 5


def test_a_run_is_brought_for_this_session_in_public_mode(files, run_of, give, nobody, choice):
    said, brought, name = files.bring(DEMO, TASK, WHOLE, " topmost ", "v2", nobody, give(gzip.compress(run_of(TASK))))
    assert name == "topmost" and "60 queries" in said and "this browser session only" in said
    (run,) = brought.runs
    assert (run.name, run.task) == ("topmost", TASK) and nobody.runs == ()
    tab = files.tab
    _, measure, _, _, a, _, offered, *_ = tab.choose(DEMO, TASK, None, None, (), "topmost", None, (), brought)
    assert offered["models"][-1] == "topmost" and "value" not in a and measure.value == MEASURE
    seen = tab.overview(choice(a="topmost", shown=tuple(offered["models"])), brought)
    assert "topmost has the highest macro nDCG@10, 1.000" in seen[0] and "data-outcome" in seen[4]  # B can be opened
    assert "topmost" not in "".join(tab.overview(choice(shown=tuple(offered["models"])), nobody))
    assert "1.000" in tab.complement(choice(a="topmost"), brought)
    again = (DEMO, TASK, MEASURE, "domain", ["bm25"], "medlite", "bm25", {"models": ["bm25", "late"]}, brought)
    widgets = tab.choose(*again, "topmost")
    assert widgets[3].value == ["bm25", "topmost"] and len(widgets) == MENUS + VIEWS
    assert "value" not in tab.choose(*again)[3], "what nobody asked for is not shown"
    _, data = sent(files.mteb(choice(), brought))
    assert any("topmost" in name for name in zipfile.ZipFile(io.BytesIO(data)).namelist())


def test_a_broken_line_seven_is_named_and_nothing_is_taken(files, run_of, give, nobody, sentence):
    lines = run_of(TASK).decode().split("\n")
    lines[6] = lines[6].replace(" -", " x")
    said, brought, name = files.bring(DEMO, TASK, WHOLE, "mine", "", nobody, give("\n".join(lines).encode()))
    assert "my.run, line 7: the score 'x" in sentence(said) and brought is nobody and name == ""


@pytest.mark.parametrize(
    ("name", "says"), [("", "has no name"), ("bm25", "another name"), ("rrf:a+b", "no colon"), ("x" * 61, "60")]
)
def test_a_name_must_tell_it_from_others(files, run_of, give, nobody, sentence, name, says):
    said, _, taken = files.bring(DEMO, TASK, WHOLE, name, "", nobody, give(run_of(TASK)))
    assert says in sentence(said) and taken == ""


def test_what_is_no_file_of_this_task_is_refused(files, give, event, nobody, sentence, run_of):
    for sent_event in (event(None), event({"name": "x", "b64": "%"}), give(b""), give(b"q Q0 d 1 1 t\n")):
        said, _, taken = files.bring(DEMO, TASK, WHOLE, "mine", "", nobody, sent_event)
        assert sentence(said).endswith(".") and taken == ""
    said, _, _ = files.bring(DEMO, TASK, "nowhere", "mine", "", nobody, give(run_of(TASK)))
    assert "nowhere" in sentence(said)


def test_a_session_holds_few_runs(files, run_of, give, sentence):
    brought = Brought()
    for number in range(MOST_RUNS):
        _, brought, taken = files.bring(DEMO, TASK, WHOLE, f"m{number}", "", brought, give(run_of(TASK)))
        assert taken == f"m{number}"
    said, again, _ = files.bring(DEMO, TASK, WHOLE, "m0", "", brought, give(run_of(TASK)))
    assert len(again.runs) == MOST_RUNS, "one of the same name takes its place"
    said, same, taken = files.bring(DEMO, TASK, WHOLE, "one more", "", brought, give(run_of(TASK)))
    assert f"{MOST_RUNS} runs already" in sentence(said) and taken == "" and same is brought


def test_a_session_holds_few_results(files, run_of, give, sentence, nobody, monkeypatch):
    lines = run_of(TASK).count(b"\n") + 1
    monkeypatch.setattr(state, "MOST_HITS", 2 * lines - 1)
    _, brought, taken = files.bring(DEMO, TASK, WHOLE, "one", "", nobody, give(run_of(TASK)))
    said, same, again = files.bring(DEMO, TASK, WHOLE, "two", "", brought, give(run_of(TASK)))
    assert taken == "one" and again == "" and same is brought and "results at most" in sentence(said)


def test_in_private_mode_it_is_stored_and_listed_for_everybody(tmp_path, run_of, give, nobody, sentence):
    files = Files(Compare(AppContext(Settings((), str(tmp_path), False))))
    said, brought, taken = files.bring(DEMO, TASK, WHOLE, "best", "", nobody, give(run_of(TASK)))
    assert "stored in the workspace" in said and brought is nobody and taken == "best"
    assert "best" in [run.name for run in files.tab.leagues(DEMO).of(TASK, MEASURE).scored]
    desk = files.context.desk(files.context.dataset(DEMO))
    assert "best" in [run.label for run in desk.runs(TASK, "collections")[0]]
    said, _, taken = files.bring(DEMO, TASK, WHOLE, "best", "r2", nobody, give(run_of(TASK)))
    assert taken == "best", "importing the same again is no error"
    before = files.tab.leagues(DEMO).imported(TASK, "best")
    other = b"\n".join(run_of(TASK).split(b"\n")[:-9])
    said, _, taken = files.bring(DEMO, TASK, WHOLE, "best", "", nobody, give(other))
    assert "are stored already; give this run another name" in sentence(said) and taken == ""
    assert files.tab.leagues(DEMO).imported(TASK, "best") == before
    _, _, taken = files.bring(DEMO, TASK, WHOLE, "best too", "", nobody, give(run_of(TASK)))
    assert {"best", "best too"} <= {run.name for run in files.tab.leagues(DEMO).of(TASK, MEASURE).scored}
