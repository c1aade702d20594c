"""Cards and strip escape everything, and say every state in words."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records import Hit, SearchResult, Strength
from core.search.cases import CaseResult
from core.search.strength import BANDS, not_calibrated
from core.search.views import Shown
from ui import cards
from ui.text import BAND_WORDS, JUDGEMENTS

EVIL = '"><script>alert(1)</script>${x}{{y}}'
OURS = {"ol", "li", "div", "span", "p", "strong", "i", "button", "mark", "img"}
ATTRIBUTES = {"class", "aria-label", "aria-hidden", "type", "style", "src", "alt", "loading", "role"}
ATTRIBUTES |= {"data-collection", "data-id"}


def view(**changes) -> Shown:
    scores = changes.pop("scores", (0.5, 0.3, 0.2))
    rank = changes.pop("hit_rank", 1)
    name = changes.pop("name", ("t/Head", "d1"))
    hit = Hit(rank, *name, *scores, None, {}, changes.pop("copies", 0))
    blank = Shown(1, hit, "", "", (), False, False, None, 0, "", "Head", (), None, None, 0, 0)
    return Shown(**{field: changes.get(field, getattr(blank, field)) for field in Shown.__slots__})


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def of(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.tags if name == tag]


def found(result: SearchResult) -> CaseResult:
    return CaseResult((), result, 0, 0)


def search(**changes) -> SearchResult:
    base = {"hits": (), "weight": 0.75, "index_kind": "hnsw", "recall_at_10": 0.998, "searched": 1850}
    return SearchResult(**{**base, "model": "medlite", "seconds": 0.1, **changes})


def strip(result: SearchResult, query_name: str = "", seconds: float | None = 0.25, what: str = "") -> str:
    return cards.strip(found(result), "MedPix", "medlite 0", "Query to image", query_name, seconds, what)


@given(st.text())
def test_any_text_stays_text(text):
    parser = Tags(f"<p>{cards.escape(text)}</p>")
    assert [t for t, _ in parser.tags] == ["p"]
    same, given = (t.replace("\r\n", "\n").replace("\r", "\n") for t in (parser.text, text))
    assert same == given or "\x00" in text
    assert not set("<>{}$`\\") & set(cards.escape(text))


@pytest.mark.parametrize("face", [{"picture": "data:,x", "pictures": 2}, {"problem": EVIL}, {}])
def test_a_card_of_hostile_data_has_only_our_tags(face):
    shown = view(
        title=EVIL,
        passage=((EVIL, False), (EVIL, True)),
        domain=EVIL,
        facets=(EVIL,),
        case=EVIL,
        name=(EVIL, EVIL),
        judgement="relevant-1",
        **face,
    )
    html = cards.hits([shown], EVIL)
    parser = Tags(html)
    assert {t for t, _ in parser.tags} <= OURS
    assert {a for _, attributes in parser.tags for a in attributes} <= ATTRIBUTES
    (button,) = parser.of("button")
    assert (button["data-collection"], button["data-id"]) == (EVIL, EVIL)
    assert parser.text.count(EVIL) >= 5 and "${" not in html and "{{" not in html


def test_marked_words_are_marked_and_escaped():
    html = cards.hits([view(passage=(("a ", False), ("<b>red</b>", True), (" & {more}", False)))], "")
    assert "a <mark>&lt;b&gt;red&lt;/b&gt;</mark> &amp; &#123;more&#125;</p>" in html
    assert Tags(html).text.count("a <b>red</b> & {more}") == 1


def test_where_a_passage_was_cut_is_said():
    piece = (("middle", False),)
    assert ">middle</p>" in cards.hits([view(passage=piece)], "")
    assert ">… middle …</p>" in cards.hits([view(passage=piece, before=True, after=True)], "")
    assert "<strong>T</strong> … middle</p>" in cards.hits([view(passage=piece, before=True, title="T")], "")
    assert "m3-passage" not in cards.hits([view()], "")


@pytest.mark.parametrize("judgement", JUDGEMENTS)
def test_every_judgement_has_a_glyph_and_a_word(judgement):
    glyph, words = JUDGEMENTS[judgement]
    html = cards.hits([view(judgement=judgement)], "q1")
    assert f"{glyph} {words}</span>" in html
    assert ("m3-mark good" in html) == judgement.startswith("relevant")
    assert "m3-mark" not in cards.hits([view(judgement=None)], "q1")


def test_a_judgement_of_a_later_hit_of_the_case_says_its_rank():
    later = cards.hits([view(judgement="relevant-2", judged_rank=1204)], "q1")
    assert "●● most relevant at rank 1,204</span>" in later
    own = cards.hits([view(judgement="relevant-2", judged_rank=7, hit_rank=7, rank=3)], "q1")
    assert "●● most relevant</span>" in own


def test_a_card_says_what_else_stands_behind_it():
    html = cards.hits([view(more=1204, near=2, copies=3, case="C7")], "")
    assert (
        "C7 · Head · +1,204 more of this case · 2 look alike, folded · the same content stands in 3 more places<"
        in html
    )
    html = cards.hits([view(near=1, copies=1)], "")
    assert ">Head · 1 looks alike, folded · the same content stands in 1 more place<" in html
    alone = cards.hits([view()], "")
    assert ">Head</div>" in alone


@pytest.mark.parametrize("face", [{"picture": "data:,x"}, {"problem": "Lost."}, {"passage": (("words", False),)}, {}])
def test_every_card_has_one_button_that_names_what_it_opens(face):
    html = cards.hits([view(rank=2, case="C7", facets=("CT",), **face), view(rank=3, **face)], "")
    first, second = Tags(html).of("button")
    assert first["aria-label"] == "Open hit 2: case C7, Head, CT" and "m3-open" in first["class"]
    assert second["aria-label"] == "Open hit 3: document d1, Head"
    assert (first["data-collection"], first["data-id"], first["type"]) == ("t/Head", "d1", "button")


def test_a_picture_has_words_and_a_missing_one_a_reason():
    html = cards.hits([view(picture="data:,x", pictures=3, facets=("CT",))], "")
    (image,) = Tags(html).of("img")
    assert image["src"] == "data:,x" and image["alt"] == "Hit 1: picture d1, Head, CT, first of 3 pictures"
    (image,) = Tags(cards.hits([view(picture="data:,x", pictures=1)], "")).of("img")
    assert image["alt"] == "Hit 1: picture d1, Head"
    assert "The picture cannot be read." in cards.hits([view(problem="The picture cannot be read.")], "")


def test_pictures_stand_in_a_grid_and_passages_in_a_column():
    assert 'class="m3-hits m3-texts"' in cards.hits([view()], "")
    assert 'class="m3-hits m3-pictures"' in cards.hits([view(), view(picture="data:,x")], "")
    assert 'class="m3-hits m3-pictures"' in cards.hits([view(problem="Lost.")], "")


def test_the_list_says_whose_judgements_mark_it():
    (marked,), (plain,) = (Tags(cards.hits([view()], name)).of("ol") for name in ("q1", ""))
    assert marked["aria-label"] == "Hits, marked by the judgements of query q1" and plain["aria-label"] == "Hits"


def test_empty_lists_say_why():
    assert "No document passes" in cards.hits([], "", filtered=True)
    assert "could be encoded" in cards.hits([], "")
    assert "press Search" in cards.empty()


def test_shares_add_up_with_a_real_minus_and_no_negative_bar():
    html = cards.hits([view(scores=(-0.1234, -0.2, 0.0766))], "")
    assert "score −0.123 = picture −0.200 + words 0.077" in html
    assert 'class="p" style="width:0.0%"' in html and 'class="w" style="width:7.7%"' in html
    assert "score 0.000 = picture 0.000 + words 0.000" in cards.hits([view(scores=(-0.0001, -0.0, 0.0))], "")


def test_the_strip_says_index_recall_weight_query_and_notes():
    html = strip(search(notes=("A note <b>.",), best_relevant=1204, relevant=7), "q<1>")
    for words in ("1,850", "HNSW · recall@10 0.998", "picture 0.75 · words 0.25", "A note &lt;b&gt;.", "0.25 s"):
        assert words in html
    assert "of query q&lt;1&gt;; best relevant document at rank 1,204, 7 relevant here" in html
    assert "no relevant document among those searched" in strip(search(), "q1")
    plain = strip(search(recall_at_10=None))
    assert "exact search" in plain and "HNSW" not in plain and "judgements" not in plain


def test_the_strip_says_when_hits_were_stored_and_what_was_asked():
    html = strip(search(), seconds=None, what=EVIL)
    assert "from stored vectors" in html and " s</p>" not in html
    assert Tags(html).text.startswith(EVIL) and "${" not in html
    assert "stored" not in strip(search()) and strip(search()).count("<p") == 1


@pytest.mark.parametrize("band", BANDS)
def test_a_band_stands_in_words_before_its_sentence(band):
    html = strip(search(strength=Strength("of those, 71 % were right (n = 40)", 71.0, 40, band, True, "")))
    assert f"<strong>{BAND_WORDS[band]}</strong> · Of those, 71 % were right (n = 40)</p>" in html
    assert set(BAND_WORDS) == set(BANDS) and len(set(BAND_WORDS.values())) == 3


def test_without_a_band_the_reason_stands_behind_the_sentence():
    html = strip(search(strength=Strength("of those, 7 % (n = 40)", 7.0, 40, None, True, "no band: <filters>")))
    assert 'strength">Of those, 7 % (n = 40) <span class="m3-reason">(no band: &lt;filters&gt;)</span></p>' in html


def test_not_calibrated_says_why_once_and_gives_no_number():
    html = strip(search(strength=not_calibrated("the <model> was trained on it")))
    assert 'strength">Not calibrated: the &lt;model&gt; was trained on it</p>' in html
    assert "%" not in re.search(r'strength">(.*?)</p>', html)[1] and "<strong>" not in html.split("</p>")[0]


def test_everything_in_the_strip_is_escaped():
    result = search(notes=(EVIL,), strength=Strength(EVIL, 1.0, 1, None, True, EVIL))
    html = cards.strip(found(result), EVIL, EVIL, EVIL, EVIL, 0.1, EVIL)
    parser = Tags(html)
    assert {t for t, _ in parser.tags} <= {"div", "p", "strong", "span"} and "${" not in html
    assert parser.text.count(EVIL) == 8
