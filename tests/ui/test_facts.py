"""Facts of a data set: its numbers, and nothing of it that is not escaped."""

from __future__ import annotations

from html.parser import HTMLParser

from core.data import health
from core.data.dataset import open_dataset
from ui import facts

EVIL = '"><script>alert(1)</script>${x}{{y}}'
ROW = {"collection": "t/Head", "queries": 1200, "documents": 34, "judgements": 5, "judgement_type": "graded"}


def tags_and_text(html: str) -> tuple[set[str], str]:
    class Parser(HTMLParser):
        def __init__(self):
            super().__init__()
            self.tags, self.text = set(), ""

        def handle_starttag(self, tag, attrs):
            self.tags.add(tag)

        def handle_data(self, data):
            self.text += data

    parser = Parser()
    parser.feed(html)
    parser.close()
    return parser.tags, parser.text


def test_the_facts_of_a_real_data_set(toy, workspace):
    dataset = open_dataset(toy, workspace)
    rows = [health.counts(c) for c in dataset.collections.values()]
    html = facts.facts(dataset.name, dataset.licence, dataset.data_id, rows, len(dataset.faults), dataset.synthetic)
    _, text = tags_and_text(html)
    assert "Toy · 4 collections · 6 queries · 8 documents · read without faults · licence: CC0-1.0" in text
    assert dataset.data_id in text and html.count("<tr>") == 5 and "query_to_image/Head" in text
    assert "synthetic" not in html


def test_numbers_add_up_and_faults_are_counted():
    html = facts.facts("A", "free", "id", [ROW, ROW], 1, True)
    assert "2,400 queries · 68 documents · 1 fault while reading" in html
    assert "<strong>A</strong> · synthetic, not from patients ·" in html and "<td>1,200</td>" in html
    assert "2 faults while reading" in facts.facts("A", "free", "id", [ROW], 2, False)


def test_hostile_names_stay_text():
    row = {**ROW, "collection": EVIL, "judgement_type": EVIL}
    html = facts.facts(EVIL, EVIL, EVIL, [row], 0, False)
    tags, text = tags_and_text(html)
    assert "script" not in tags and text.count(EVIL) == 5 and "${" not in html and "{{" not in html


def report(faults: int, detail: str = "detail") -> dict:
    fault = {"kind": "bad_line", "file": detail, "line": 3, "id": "x", "detail": detail}
    totals = {
        "pictures": 1204,
        "repeated_captions": {"lines": 31, "distinct": 12},
        "template_texts": {"lines": 44, "distinct": 2},
    }
    return {"totals": totals, "faults": [fault] * faults, "notes": [fault] * 3}


def test_a_check_says_its_numbers_and_the_first_twenty_faults():
    html = facts.health(report(0))
    assert "1,204 distinct pictures opened; 0 faults, 3 notes." in html and "<li>" not in html
    assert "31 query lines have a caption that another query shares (12 captions)" in html
    assert "44 lines are template text that nobody filled in (2 distinct)" in html
    assert facts.health(report(20)).count("<li>") == 20 and "more;" not in facts.health(report(20))
    many = facts.health(report(1234))
    assert many.count("<li>") == 20 and "and 1,214 more;" in many
    assert "bad_line: detail, line 3: detail</li>" in many


def test_a_hostile_fault_stays_text():
    tags, text = tags_and_text(facts.health(report(1, EVIL)))
    assert "script" not in tags and text.count(EVIL) == 2
