"""A case as a file: it stands alone, runs nothing, and says where it comes from."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from core.analyze.rejudge import Annotations, Judged, Note
from ui.failures.case_file import PICTURES, case_file
from ui.text import WARNING


class Page(HTMLParser):
    """Tags with their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(html)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data + " "


def said(case, evil: str) -> Annotations:
    time, key = "2026-07-01T12:00:00Z", (case.query.collection, case.query.id)
    other = Note(case.query.collection, "another", "of another query", (), "B", time)
    mine = Note(*key, f"look again {evil}", ("<b>tag</b>",), "A. Reader", time)
    return Annotations((mine, other), (Judged(*key, "query_to_image/Head", "d1", "unsure", evil, time),))


def test_the_file_is_whole_without_script_or_address(case, evil):
    data = case_file(case, {"Data": f"Clinic {evil}"}, said(case, evil))
    html = data.decode("utf-8")
    page = Page(html)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "a", "iframe", "object", "form", "svg", "base"}
    policy = [a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]
    assert all(a["src"].startswith("data:image/webp;base64,") for t, a in page.tags if t == "img")
    assert not any(name.startswith("on") or name == "href" for _, attrs in page.tags for name in attrs)
    (style,) = re.findall("<style>(.*?)</style>", html, re.S)
    assert "url(" not in style and "@import" not in style and "@media print" in style
    assert "http" not in html.replace("http-equiv", "")
    assert page.text.count(evil) >= 10


def test_it_holds_query_ranks_hits_words_and_origin(case, evil, uris):
    origin = {"Data": "Clinic, data_id 0123", "Runs": "one-run, two-run", "Code": "1.0", "Overlay": "none"}
    page = Page(case_file(case, origin, said(case, evil)).decode())
    for name, value in origin.items():
        assert f"{name} {value}" in page.text
    assert WARNING in page.text and PICTURES in page.text
    for phrase in (
        *("words ", "not in the first 1,000", "▲ 1", "▼ 3", "●● most relevant", "○ judged not relevant"),
        *(
            "score 0.750 = picture 0.500 + words −0.250",
            "◔ Near miss",
            "medlite-run",
            "look again",
            "<b>tag</b> · A. Reader, 2026",
        ),
        *("unsure", "2026-07-01T12:00:00Z", "The figures do not count them.", "nDCG@10 0.250"),
    ):
        assert phrase in page.text, phrase
    assert "of another query" not in page.text
    images = [a["src"] for t, a in page.tags if t == "img"]
    assert set(images) == set(uris) and all(a["alt"] for t, a in page.tags if t == "img")
    rows = page.text.index("Hits"), page.text.index("Where this comes from")
    assert rows[0] < rows[1]


def test_empty_parts_are_left_out_and_the_overlay_is_said(case, evil):
    bare = case_file(replace(case, gold=()), {"Data": "Clinic"}, Annotations()).decode()
    assert "<h2>Notes" not in bare and "<h2>Re-judgements" not in bare
    assert "No model of this case" in bare
    counted = case_file(replace(case, overlay="0123456789abcdef"), {}, said(case, evil)).decode()
    assert "These re-judgements count in the figures above." in counted


def test_text_that_is_no_unicode_does_not_stop_it(case):
    broken = replace(case, query=replace(case.query, text="half \ud83d here"))
    assert b"half ? here" in case_file(broken, {}, Annotations())
