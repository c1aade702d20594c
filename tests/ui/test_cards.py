"""Cards escape everything, and say every state in words."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records import Hit, SearchResult
from core.search.views import Shown
from ui import cards
from ui.text import JUDGEMENTS


def view(**changes) -> Shown:
    hit = Hit(1, "t/Head", "d1", 0.5, 0.3, 0.2, None, {}, changes.pop("copies", 0))
    base = {"title": "", "text": "", "picture": None, "pictures": 0, "problem": "", "domain": "Head", "facets": ()}
    return Shown(**{"hit": hit, **base, "judgement": None, **changes})


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@given(st.text())
def test_any_text_stays_text(text):
    parser = Tags()
    parser.feed(f"<p>{cards.escape(text)}</p>")
    parser.close()
    assert [t for t, _ in parser.tags] == ["p"]
    assert parser.text.replace("\r", "\n") == text.replace("\r\n", "\n").replace("\r", "\n") or "\x00" in text
    assert not set("<>{}$`\\") & set(cards.escape(text))


def test_a_card_of_hostile_data_has_only_our_tags():
    evil = '"><script>alert(1)</script>${x}{{y}}'
    shown = view(title=evil, text=evil * 40, domain=evil, facets=(evil,), problem=evil)
    parser = Tags()
    parser.feed(cards.hits([shown], evil))
    allowed = {"ol", "li", "div", "span", "p", "strong", "details", "summary", "i"}
    assert {t for t, _ in parser.tags} <= allowed
    assert "${" not in cards.hits([shown], evil) and "{{" not in cards.hits([shown], evil)


@pytest.mark.parametrize("judgement", JUDGEMENTS)
def test_every_judgement_has_a_glyph_and_a_word(judgement):
    glyph, words = JUDGEMENTS[judgement]
    html = cards.hits([view(judgement=judgement, text="x")], "q1")
    assert f"{glyph} {words}" in html


def test_long_passages_fold_and_short_ones_do_not():
    assert "Whole text" in cards.hits([view(text="word " * 200)], "")
    assert "Whole text" not in cards.hits([view(text="word " * 20)], "")


def test_copies_problems_and_empty_lists_are_said():
    assert "1 more place<" in cards.hits([view(text="x", copies=1)], "")
    assert "cannot be read" in cards.hits([view(problem="The picture cannot be read.")], "")
    assert "No document passes" in cards.hits([], "", filtered=True)
    assert "could be encoded" in cards.hits([], "")


def test_the_strip_says_index_recall_weight_and_query():
    result = SearchResult((), 0.75, "hnsw", 0.998, 1850, "medlite", 0.1, ("A note <b>.",))
    html = cards.strip(result, "MedPix", "medlite 0", "Query to image", "q<1>", 0.25)
    for words in ("1,850", "HNSW · recall@10 0.998", "picture 0.75 · words 0.25", "q&lt;1&gt;", "A note &lt;b&gt;."):
        assert words in html
    exact = SearchResult((), 0.0, "exact", None, 3, "medlite", 0.1)
    assert "exact search" in cards.strip(exact, "d", "m", "t", "", 0.1)
