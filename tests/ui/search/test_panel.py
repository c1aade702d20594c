"""The panel around the viewer: what it says and offers, and that nothing of a data set becomes part of the page."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from core.records import Query
from core.search.case_view import CasePicture, CaseText, CaseView
from ui.search import panel

EVIL = '"><script>alert(1)</script>${x}{{y}}'
VIEW = CaseView(
    name="C1",
    collection="summary/Head",
    id="p1",
    title="",
    place="Summary · Head",
    text=(("A ", False), ("lesion", True)),
    facts=(("case", "C1"), ("modality", "CT")),
    pictures=(),
    start=0,
    texts=(),
    more_texts=0,
    joined=1,
)


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

    def buttons(self) -> list[dict]:
        return [attributes for tag, attributes in self.tags if tag == "button"]


def hostile() -> CaseView:
    text = CaseText(EVIL, EVIL, EVIL, ((EVIL, True),))
    changes = dict.fromkeys(("name", "collection", "id", "title", "place"), EVIL)
    return replace(VIEW, **changes, text=((EVIL, False),), facts=((EVIL, EVIL),), texts=(text,))


def test_the_head_names_the_case_and_offers_what_can_be_done():
    tags = Tags(panel.head(VIEW, own=False))
    assert "Case C1" in tags.text and "Summary · Head · document p1" in tags.text
    close, before, after, like, use = tags.buttons()
    assert "data-close" in close and (before["data-hit"], after["data-hit"]) == ("-1", "1")
    assert (like["data-act"], use["data-act"]) == ("like", "use")
    for button in (like, use):
        assert (button["data-collection"], button["data-id"]) == ("summary/Head", "p1")
    assert ("h2", {"tabindex": "-1"}) in tags.tags  # takes the focus when the panel opens


def test_the_own_case_of_a_query_is_no_hit_to_step_from_or_to_ask_with():
    tags = Tags(panel.head(VIEW, own=True))
    assert "The query's own case: Case C1" in tags.text
    assert [set(button) - {"type"} for button in tags.buttons()] == [{"data-close"}]


def test_a_document_without_a_case_is_named_itself_and_joining_is_said():
    assert "Document p1" in Tags(panel.head(replace(VIEW, name=""), own=False)).text
    assert "collections" not in panel.head(VIEW, own=False)
    assert "from 4 collections of the data set" in panel.head(replace(VIEW, joined=4), own=False)


def test_the_body_has_the_whole_text_marked_and_the_metadata():
    html = panel.body(VIEW)
    assert '<p class="m3-passage">A <mark>lesion</mark></p>' in html and "Other texts" not in html
    assert '<th scope="row">modality</th><td>CT</td>' in html
    bare = panel.body(replace(VIEW, text=(), facts=(), title="Only a title"))
    assert "<strong>Only a title</strong>" in bare and "Metadata" not in bare and "m3-passage" not in bare
    # A text begins with its title already.
    assert "<strong>" not in panel.body(replace(VIEW, title="A"))


def test_other_texts_of_the_case_are_folded_and_those_left_out_counted():
    text = CaseText("summary/Head", "p2", "Summary · Head", (("More", False),))
    html = panel.body(replace(VIEW, texts=(text, text), more_texts=1204))
    assert html.count("<details><summary>Summary · Head · p2</summary>") == 2
    assert "and 1,204 more documents of this case." in html
    assert "more documents" not in panel.body(replace(VIEW, texts=(text,)))


def test_hostile_names_stay_text_everywhere():
    query = Query("t", EVIL, EVIL)
    parts = [panel.head(hostile(), own) for own in (False, True)]
    parts += [panel.body(hostile()), panel.about(query, EVIL, {}, True, True)]
    for html in parts:
        tags = Tags(html)
        assert "script" not in [t for t, _ in tags.tags] and "${" not in html and "{{" not in html
        assert tags.text.count(EVIL) >= 2
    for button in Tags(parts[0]).buttons()[3:]:
        assert (button["data-collection"], button["data-id"]) == (EVIL, EVIL)


def test_pictures_become_items_of_the_viewer():
    pictures = [CasePicture("a", "images/1.png", "d1", "Caption", "Head · CT")]
    (item,) = panel.items(pictures)
    assert (item.id, item.title, item.caption, item.line) == ("images/1.png", "d1", "Caption", "Head · CT")


def test_judgements_of_a_ready_query_are_counted_by_kind():
    query = Query("query_to_image/Head", "q1", "words")
    grades = {f"d{i}": grade for i, grade in enumerate([2, 2, 1, 0, 0, 0])}
    html = panel.about(query, "Head", grades, False, False)
    assert "Query q1 · Head · judged: 2 ●● most relevant, 1 ● relevant, 3 ○ judged not relevant</p>" in html
    assert "judged: nothing</p>" in panel.about(query, "Head", {}, False, False)
    assert "judged: 1 ● relevant</p>" in panel.about(query, "Head", {"d": 1}, False, False)


def test_training_data_and_the_own_case_are_said_only_where_they_are():
    query = Query("query_to_image/Head", "q1", "words")
    plain = panel.about(query, "Head", {}, False, False)
    assert "trained" not in plain and "<button" not in plain
    assert "The model was trained on this case." in panel.about(query, "Head", {}, True, False)
    assert 'class="m3-own"' in panel.about(query, "Head", {}, False, True)
