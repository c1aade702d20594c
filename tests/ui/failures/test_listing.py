"""The list of queries: what each row says, that nothing in it becomes code, that N/A is never zero."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from core.analyze.lists import Wanted
from ui.failures.listing import LONGEST, NOTHING, PAGE, rendered

MEASURE = "nDCG@10"


def rows(html: str) -> list[str]:
    return re.findall(r"<tr><th scope=\"row\">.*?</tr>", html, re.DOTALL)


def texts(row: str) -> list[str]:
    return [unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall("<td[^>]*>(.*?)</td>", row)]


def harmless(html: str) -> bool:
    return not any(sign in html for sign in ("<script", "${", "{{", "}}", "`", "\\frac"))


def test_a_row_says_value_rank_and_kinds_of_every_model(hostile):
    html = rendered([hostile], range(16), 0, 10, MEASURE, Wanted(failing=False))
    found = rows(html)
    assert len(found) == 16 and "1–16 of 16 queries of" in html and "(of 16 judged)" in html
    for at, row in enumerate(found):
        value, first, held = texts(row)
        assert value == f"{hostile.values[MEASURE][at]:.3f}"
        assert first == (str(at + 1) if at < 12 else f"none in {hostile.depth:,}")
        assert ('class="m3-ok"' in row) is (at < 10)
        assert ("Not retrieved" in held) is (at >= 12) and ("Near miss" in held) is (at in (10, 11))
        assert f'data-i="{at}"' in row and hostile.queries[at].id in unescape(row)


def test_ids_words_facets_and_labels_are_text(hostile, evil):
    wanted = Wanted(found=("specialty", evil))
    html = rendered([hostile, hostile], [0, 11, 12], 0, 10, evil, wanted)
    assert harmless(html) and unescape(html).count(evil) > 10
    assert f"first hit is of specialty <strong>{evil}</strong>" in unescape(html)


def test_a_query_without_words_can_still_be_opened_and_long_ones_are_cut(hostile):
    long = replace(hostile.queries[1], text=" x " * 300)
    changed = replace(hostile, queries=(hostile.queries[0], long, *hostile.queries[2:]))
    first, second = rows(rendered([changed], [0, 1], 0, 10, MEASURE, Wanted()))
    assert ">no words</button>" in first
    words = re.search(r">([^<]*)</button>", second)[1]
    assert len(words) == LONGEST and words.endswith("…") and "  " not in words


def test_what_is_not_available_is_never_zero(hostile):
    without = replace(hostile, values={MEASURE: np.where(np.arange(16) == 3, np.nan, hostile.values[MEASURE])})
    few = replace(hostile, queries=hostile.queries[:2], first=hostile.first[:2], values={})
    (row,) = rows(rendered([without, few, hostile], [3], 0, 10, MEASURE, Wanted()))
    assert texts(row)[:3] == ["N/A", "4", "N/A"] and math.isnan(without.values[MEASURE][3])
    assert '<td colspan="2">N/A</td>' in row  # the second model was not asked at all
    (row,) = rows(rendered([few], [1], 0, 10, MEASURE, Wanted()))
    assert texts(row)[0] == "N/A"


@pytest.mark.parametrize(("page", "shown", "off"), [(0, (0, 49), "prev"), (1, (50, 99), ""), (9, (100, 119), "next")])
def test_pages_are_bounded_and_the_pager_says_where_one_is(hostile, page, shown, off):
    at = [n % 16 for n in range(120)]
    html = rendered([hostile], at, page, 10, MEASURE, Wanted())
    numbers = [int(n) for n in re.findall(r'data-i="(\d+)"', html)]
    assert numbers == list(range(shown[0], shown[1] + 1)) and len(numbers) <= PAGE
    here = shown[0] // PAGE
    assert f"Page {here + 1} of 3" in html and "failing queries" in html
    assert (f'data-page="{here - 1}" disabled' in html) is (off == "prev")
    assert (f'data-page="{here + 1}" disabled' in html) is (off == "next")


def test_nothing_to_list_says_what_to_do(hostile):
    assert NOTHING in rendered([hostile], [], 0, 10, MEASURE, Wanted())
    assert 'data-do="all"' in rendered([hostile], [], 3, 10, MEASURE, Wanted(found=("domain", "Head")))
