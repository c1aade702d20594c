"""Tables of where runs fail and why: every number of the report, N/A never zero, nothing of the data becomes code."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html import unescape

import pytest

from core.analyze.failures import CAUSE, DEPTH, KINDS, READING
from core.analyze.report import Report, report
from core.analyze.slices import AblationRow, Confusion, KindRow
from core.evaluate.stats import Estimate
from ui.failures import where


@pytest.fixture
def told(hostile) -> Report:
    return report([hostile], "specialty", 10, "nDCG@10")[0]


def harmless(html: str) -> bool:
    return not any(sign in html for sign in ("<script", "${", "{{", "}}", "`", "\\frac"))


def cells(row: str) -> list[str]:
    return [unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]


def body(html: str) -> list[list[str]]:
    return [cells(row) for row in re.findall(r"<tr[^>]*>(.*?)</tr>", html.partition("</thead>")[2])]


def test_the_finding_says_who_answered_and_what_was_left_out(told, evil):
    html = where.finding(replace(told, finding=evil, source=evil, seen_excluded=1234, overlay="ab12"))
    assert harmless(html) and unescape(html).count(evil) == 2
    assert "1,234 queries that the model was trained on are left out." in html and "Judged anew (ab12)." in html
    plain = where.finding(replace(told, source="", seen_excluded=0, overlay=""))
    assert plain.endswith("<p></p></div>")


def test_groups_show_counts_rates_and_intervals_with_the_pooled_one_last(told, evil):
    html = where.groups(told)
    ranked, pooled = body(html)
    assert [group.pooled for group in told.groups] == [False, True]
    one = told.groups[0]
    assert ranked[:6] == [
        evil,
        "2",
        f"{100 * 2 / 12:.1f} %",
        f"{100 * one.rate.low:.1f}–{100 * one.rate.high:.1f} %",
        f"{one.mean.mean:.3f}",
        "12 / 12",
    ]
    assert pooled[0] == "other (2 joined)" and pooled[1:3] == ["4", "100.0 %"]
    titles = re.findall(r'<th scope="row" title="([^"]*)"', html)
    assert [unescape(title) for title in titles] == [", ".join(told.groups[1].members)]
    assert harmless(html) and "Failure: no relevant document in the first 10" in html


def test_tasks_are_named_in_words_and_chosen_by_their_name(told):
    group = replace(told.groups[0], name="Query to image")
    html = where.groups(replace(told, by="task", groups=(group,)))
    assert 'data-task="query_to_image"' in html and "data-group" not in html


def test_a_rate_or_mean_that_is_not_available_is_never_zero(told):
    none = Estimate(math.nan, None, None, 0, 0, "N/A")
    html = where.groups(replace(told, groups=(replace(told.groups[0], rate=none, mean=none),)))
    (row,) = body(html)
    assert row[2] == "N/A" and row[3] == "" and row[4] == "N/A" and "nan" not in html
    assert "Intervals: none" in html
    assert where.percent(None) == where.percent(math.nan) == "N/A" and where.percent(0.0) == "0.0 %"


def test_what_is_marked_says_how_common_it_is_elsewhere(told):
    group = replace(told.groups[0], dominant="near miss", share=0.5, elsewhere=0.25)
    assert body(where.groups(replace(told, groups=(group,))))[0][6].endswith("Near miss 50 %, others 25 %")
    alone = replace(group, elsewhere=math.nan)
    assert body(where.groups(replace(told, groups=(alone,))))[0][6].endswith("Near miss 50 %")
    assert body(where.groups(replace(told, groups=(replace(group, dominant=""),))))[0][6] == "none"


def test_every_kind_stands_once_with_its_shares_or_why_there_are_none(told, evil):
    html = where.kinds(told)
    for kind in KINDS:
        assert unescape(html).count(f"{where.KINDS[kind.name][1]}</span>") == 1, kind.name
    assert [row[0] for row in body(html) if len(row) == 1] == list(where.ROLES.values())
    rows = (
        KindRow("near miss", DEPTH, evil, 1, 0.5, None, ""),
        KindRow("tie", CAUSE, evil, 0, None, None, ""),
        KindRow("picture hurts", CAUSE, evil, 0, None, None, f"N/A: {evil}"),
        KindRow("words hurt", CAUSE, evil, 0, None, None, f"N/A: {evil}"),
        KindRow("both needed", READING, evil, 2, 1.0, 0.0, ""),
    )
    html = where.kinds(replace(told, kinds=rows, failures=3, unexplained=2))
    found = {tuple(row[1:4]): row for row in body(html) if len(row) > 1}
    assert ("1", "50.0 %", "") in found and ("0", "N/A", "N/A") in found and ("2", "100.0 %", "0.0 %") in found
    absent = next(row for row in body(html) if len(row) == 3)
    assert "Picture hurts" in absent[0] and "Words hurt" in absent[0] and absent[1:] == ["N/A", evil]
    assert "2 of 3 failures (66.7 %) have no cause" in html and harmless(html)
    assert "0 of 0 failures have no cause" in where.kinds(replace(told, kinds=rows, failures=0, unexplained=0))


def test_the_ablation_is_means_by_collection_or_the_reason(evil):
    rows = [AblationRow("", 8, 4, 0.5, 0.25, 0.125, 0.0625, {}), AblationRow(evil, 2, 1, 1.0, 0.0, 0.5, 0.75, {})]
    html = where.ablation(rows, "", f"note {evil}")
    assert body(html) == [
        ["All", "0.500", "0.250", "0.125", "0.062", "8 / 4"],
        [evil, "1.000", "0.000", "0.500", "0.750", "2 / 1"],
    ]
    assert harmless(html) and f"<p>note {evil}</p>" in unescape(html)
    assert where.ablation([], "") == "<p>No modality ablation is stored for this run.</p>"
    assert harmless(where.ablation([], evil)) and unescape(where.ablation([], evil)) == f"<p>{evil}</p>"


def test_confusion_counts_by_what_was_asked_and_says_what_is_not_counted(evil):
    html = where.confusion(Confusion("modality", ("CT", evil), ((5, 1000), (0, 2)), 1007, 3), "modality")
    assert body(html) == [["CT", "5", "1,000"], [evil, "0", "2"]] and html.count("m3-same") == 2
    assert "1,007 queries. 3 queries without a value" in html and harmless(html)
    empty = "<p>Queries or documents here name no plane.</p>"
    assert where.confusion(None, "plane") == where.confusion(Confusion("plane", (), (), 0, 9), "plane") == empty


def test_provenance_leaves_out_what_is_not_said(evil):
    html = where.provenance({"data": evil, "answered by": "", "code": "0.1"})
    assert html.count("<dt>") == 2 and "answered by" not in html and harmless(html) and evil in unescape(html)
