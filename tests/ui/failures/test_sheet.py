"""The sheet as HTML, and its events: nothing from data is code, no picture travels twice, no event is trusted."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import gradio as gr
import pytest

from core.analyze.case import PINNED, Gold
from core.analyze.failures import KINDS
from core.analyze.rejudge import GRADES
from ui.failures.sheet import (
    LONGEST,
    SCRIPT,
    document_of,
    empty,
    judged_of,
    rendered,
    sheet,
)
from ui.text import KINDS as WORDS
from ui.text import REJUDGED

VOID = {"img", "input", "br", "meta"}


class Tree(HTMLParser):
    """Tags with their attributes, the text of the page, and whether every tag is closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, tag: str, kind: str = "") -> list[dict]:
        return [a for t, a in self.tags if t == tag and (not kind or kind in (a.get("class") or "").split())]


def words(html: str) -> str:
    return " ".join(Tree(html).text.split())


def test_text_of_data_stays_text_in_every_place(case, evil):
    html = rendered(case)
    tree = Tree(html)
    for sign in ("<script", "${", "{{", "`", "\\"):
        assert sign not in html
    assert not {tag for tag, _ in tree.tags} & {"script", "style", "iframe", "object", "form", "link", "a", "b"}
    assert not any(name.startswith("on") for _, attrs in tree.tags for name in attrs)
    assert tree.text.count(evil) >= 10
    looks = [a for a in tree.all("button", "m3-look") if a["data-id"] == evil]
    assert looks and {a["data-collection"] for a in looks} == {evil, "query_to_image/Head"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # gr.HTML warns of tags that look like scripts
        assert sheet().postprocess(html) == html


def test_each_picture_stands_once_and_its_other_places_name_it(case, uris):
    html = rendered(case)
    assert [html.count(uri) for uri in uris] == [1, 1, 1, 1]
    images = Tree(html).all("img")
    firsts = {a["data-first"]: a["src"] for a in images if "data-first" in a}
    assert firsts == {"0": uris[0], "1": uris[1], "2": uris[2]}
    copies = [a["data-same"] for a in images if "data-same" in a]
    assert sorted(copies) == ["0", "0", "1"] and all("src" not in a for a in images if "data-same" in a)
    assert all(a["alt"].startswith("Picture") for a in images)
    alts = {a.get("data-first") or a.get("data-same"): a["alt"] for a in images}
    assert alts["2"] == "Picture of document d2, Head · CT, first of 3 pictures"
    assert html.index('data-first="0"') < html.index('data-same="0"')


def test_moves_ranks_and_judgements_are_said_in_words(case):
    text = words(rendered(case))
    assert "Case 3 of 1,234" in text
    assert "▲ 1 from rank 2" in text and "▼ 3 from rank 1" in text and "= same rank" in text
    assert "new, not in the first 20 of the first column" in text
    assert "not in the first 1,000" in text and "1,234" in text and "N/A" in text
    for phrase in ("●● most relevant", "● relevant", "○ judged not relevant", "◌ unjudged", "◌ not listed as relevant"):
        assert phrase in text
    assert "picture 0.500 + words −0.250" in text and "0.000" in text and "−0.000" not in text
    assert "nDCG@10 0.250 · first relevant at rank 12" in text and "none in the first 1,000" in text
    assert "◔ Near miss" in text and "= Tie by half" in text
    assert "fails here" in text and "Moves are counted from medlite." in text


def test_the_first_column_has_no_moves_and_without_it_nobody_has(case):
    tree = Tree(rendered(case))
    assert len(tree.all("span", "m3-move")) == 4
    lost = replace(case.columns[0], reason="trained", lines=(), kinds=())
    html = rendered(replace(case, columns=(lost, *case.columns[1:])))
    assert not Tree(html).all("span", "m3-move") and "Moves are counted" not in html
    assert "medlite: N/A, trained." in words(html)


def test_steps_end_at_the_ends(case):
    def off(at: int, of: int) -> list[str]:
        tree = Tree(rendered(replace(case, at=at, of=of)))
        return [a["aria-disabled"] for a in tree.all("button") if "data-by" in a]

    assert off(0, 3) == ["true", "false"] and off(1, 3) == ["false", "false"] and off(2, 3) == ["false", "true"]
    assert off(0, 1) == ["true", "true"]
    (root,) = Tree(rendered(case)).all("section", "m3-failure")
    assert (root["tabindex"], root["data-at"], root["data-of"]) == ("0", "2", "1234")
    assert all(a["type"] == "button" for a in Tree(rendered(case)).all("button"))


def test_relevant_documents_beyond_the_pinned_fold_and_nothing_is_lost(case):
    many = tuple(Gold(3, (n, 0, None)) for n in range(1, PINNED + 3))
    html = rendered(replace(case, gold=many))
    assert "2 more relevant" in words(html) and len(Tree(html).all("td", "m3-rank-cell")) == 3 * len(many)
    good = [a for a in Tree(html).all("td", "m3-rank-cell") if "good" in a["class"]]
    assert len(good) == len(many)
    few = rendered(replace(case, gold=many, k=2))
    assert len([a for a in Tree(few).all("td", "m3-rank-cell") if "good" in a["class"]]) == 2
    assert "Relevant documents" not in rendered(replace(case, gold=()))
    assert "judged anew (0123456789abcdef)" in words(rendered(replace(case, overlay="0123456789abcdef")))


def test_every_document_can_be_judged_wherever_it_stands(case):
    html = rendered(case)
    selects = Tree(html).all("select")
    assert len(selects) == len(case.gold) + sum(len(c.lines) for c in case.columns)
    assert {a["data-anew"] for a in selects if a["data-id"] == "d0"} == {"0"}
    chosen = re.findall(r'<option value="([^"]*)" selected>', html)
    assert sorted(chosen) == [""] * (len(selects) - 3) + ["0"] * 3
    assert list(REJUDGED) == ["", *GRADES]


def test_every_kind_has_a_glyph_of_its_own_and_words():
    assert list(WORDS) == [kind.name for kind in KINDS]
    glyphs = [glyph for glyph, _ in WORDS.values()]
    assert len(set(glyphs)) == len(glyphs)
    emoji = [*range(0x2600, 0x27C0), *range(0x1F000, 0x20000)]
    assert not {ord(sign) for glyph in glyphs for sign in glyph} & set(emoji)
    assert all(words.lower() == name for name, (_, words) in WORDS.items())


def test_the_component_and_its_script_hold_no_data():
    component = sheet("case")
    assert component.elem_id == "case" and component.value == empty()
    for name in ("goto", "back", "look", "judge", "save"):
        assert f"trigger('{name}'" in SCRIPT and callable(getattr(component, name))
    for way in ("innerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in SCRIPT


@pytest.mark.parametrize("name", ["", 1, None, [], {}, "x" * (LONGEST + 1)])
def test_a_damaged_name_is_refused(name):
    for broken in ({"collection": name, "id": "d"}, {"collection": "c", "id": name}):
        assert document_of(gr.EventData(None, {**broken, "query": False})) is None
    for broken in ({"collection": name, "doc": "d"}, {"collection": "c", "doc": name}):
        assert judged_of(gr.EventData(None, {**broken, "grade": "2"})) is None


def test_what_is_to_be_opened_is_a_document_or_the_query():
    sent = {"collection": "c", "id": "d"}
    assert document_of(gr.EventData(None, sent | {"query": False})) == ("c", "d", False)
    assert document_of(gr.EventData(None, sent | {"query": True})) == ("c", "d", True)
    for broken in (sent, sent | {"query": 1}, sent | {"query": "true"}, {"query": True}, None, [sent], "c"):
        assert document_of(gr.EventData(None, broken)) is None


@pytest.mark.parametrize("grade", ["2", "1", "0", "unsure", ""])
def test_a_judgement_is_one_of_the_menu(grade):
    assert judged_of(gr.EventData(None, {"collection": "c", "doc": "d", "grade": grade})) == (("c", "d"), grade)


@pytest.mark.parametrize("grade", ["3", 2, None, True, ["2"], "Unsure", {}])
def test_another_judgement_is_refused(grade):
    assert judged_of(gr.EventData(None, {"collection": "c", "doc": "d", "grade": grade})) is None
    assert judged_of(gr.EventData(None, None)) is None
