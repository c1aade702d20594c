"""Notes and re-judgements: what can be kept, which of several counts, and what they make of the qrels."""

from __future__ import annotations

import copy
import dataclasses
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analyze.rejudge import GRADES, Annotations, Judged, Note, Overlay, apply, now, tags_of

TIME = "2026-07-01T12:00:00Z"
NOTE = Note("t/A", "q1", "why?", ("odd", "look again"), "Ann", TIME)
JUDGED = Judged("t/A", "q1", "t/A", "d1", "2", "Ann", TIME)


def judged(grade: str, author: str = "Ann", minute: int = 0, **changes: str) -> Judged:
    time = f"2026-07-01T12:{minute:02}:00Z"
    return dataclasses.replace(JUDGED, grade=grade, author=author, time=time, **changes)


def test_what_is_kept_is_tidied() -> None:
    note = Note("t/A", "q1", "a\r\nb\rc\td\n", (" odd ", "odd", "two words"), "  Ann Ü. ", TIME)
    assert (note.text, note.tags, note.author) == ("a\nb\nc\td\n", ("odd", "two words"), "Ann Ü.")
    assert note.key == ("t/A", "q1", "Ann Ü.") and JUDGED.key == ("t/A", "q1", "t/A", "d1", "Ann")
    assert tags_of(" a b, c;;d ,") == ("a b", "c", "d") and tags_of(" ") == ()
    full = Note("t/A", "q1", "x" * 4000, tuple(f"{n:40}".replace(" ", "x") for n in range(12)), "y" * 80, TIME)
    assert len(full.tags) == 12
    assert Note("t/A", "q1", "", ("tag",), "A", TIME).text == ""


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"text": "x" * 4001}, "The text has 4,001 characters; at most 4,000"),
        ({"text": "a\x00b"}, "The text holds a control character"),
        ({"text": "\ud800"}, "The text holds a control character"),
        ({"text": None}, "The text must be text"),
        ({"text": " \n", "tags": ()}, "needs a text or a tag"),
        ({"tags": ("x" * 41,)}, "A tag has 41 characters"),
        ({"tags": tuple(map(str, range(13)))}, "At most 12 tags"),
        ({"tags": "abc"}, "At most 12 tags"),
        ({"tags": ("a,b",)}, "no comma or semicolon"),
        ({"tags": ("a;b",)}, "no comma or semicolon"),
        ({"tags": ("a\nb",)}, "A tag holds a control character or a line break"),
        ({"tags": ("a\u2028b",)}, "A tag holds a control character or a line break"),
        ({"tags": (" ",)}, "A tag is empty"),
        ({"tags": (7,)}, "A tag must be text"),
        ({"author": " \t "}, "The author's name is empty"),
        ({"author": "x" * 81}, "The author's name has 81"),
        ({"author": "a\tb"}, "The author's name holds a control"),
        ({"author": 3}, "The author's name must be text"),
        ({"collection": None}, "The ids of collection"),
        ({"query": "\udfff"}, "The ids of collection"),
    ],
)
def test_notes_that_cannot_be_kept(changes: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        dataclasses.replace(NOTE, **changes)


NO_TIMES = ("", "2026-07-01", "2026-07-01T12:00Z", "2026-07-01T12:00:00", "2026-07-01T12:00:00+02:00", None, 1)
NOT_THERE = ("2026-02-30T12:00:00Z", "2026-07-01T24:61:00Z", "0000-01-01T00:00:00Z")
MISSPELT = ("2026-07-01T12:00:00Z\n", "２026-07-01T12:00:00Z", "2026-07-01 12:00:00Z")


@pytest.mark.parametrize("time", [*NO_TIMES, *NOT_THERE, *MISSPELT])
def test_times_that_are_none(time: object) -> None:
    for row in (NOTE, JUDGED):
        with pytest.raises(ValueError, match=r"The time .* write it in UTC"):
            dataclasses.replace(row, time=time)


@pytest.mark.parametrize("grade", ["3", "", "Unsure", 2, None, ["2"], "x" * 99])
def test_grades_that_are_none(grade: object) -> None:
    with pytest.raises(ValueError, match=r"The grade .{2,42} is none of 2, 1, 0, unsure") as caught:
        dataclasses.replace(JUDGED, grade=grade)
    assert len(str(caught.value)) < 120


def test_now_is_such_a_time() -> None:
    before = datetime.now(UTC).timestamp() - 1
    assert before <= datetime.fromisoformat(now()).timestamp() <= before + 60
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", now()) and dataclasses.replace(NOTE, time=now())


def test_one_of_a_key_and_sorted() -> None:
    empty = Annotations()
    second = dataclasses.replace(NOTE, text="again", time="2026-07-02T12:00:00Z")
    other = dataclasses.replace(NOTE, author="Abe")
    found = empty.with_note(NOTE).with_note(other).with_note(second).with_judged(judged("2"))
    found = found.with_judged(judged("0", "Bea")).with_judged(judged("1")).with_judged(judged("0", doc="d0"))
    assert found.notes == (other, second) and len(found) == 5 and len(empty) == 0
    assert found.judged == (judged("0", doc="d0"), judged("1"), judged("0", "Bea"))
    assert found == Annotations(found.notes[::-1], found.judged[::-1])
    assert found.notes_on(("t/A", "q1")) == found.notes and found.notes_on(("t/B", "q1")) == ()
    assert found.judged_on(("t/A", "q1")) == found.judged and found.judged_on(("t/A", "q2")) == ()
    assert found.without_note(NOTE.key).notes == (other,)
    assert found.without_judged(JUDGED.key).judged == (judged("0", doc="d0"), judged("0", "Bea"))
    assert found.without_judged(("t/A", "q1", "t/A", "no", "Ann")) == found == copy.deepcopy(found)
    with pytest.raises(ValueError, match="same key"):
        Annotations((NOTE, second))


def test_merging_keeps_the_later() -> None:
    own = Annotations((NOTE,), (judged("2", minute=5), judged("1", "Bea", 5), judged("1", "Cid", 5)))
    theirs = Annotations(
        (dataclasses.replace(NOTE, author="Bea"),),
        (judged("0", minute=6), judged("0", "Bea", 4), judged("0", "Cid", 5), judged("0", "Dan", 1)),
    )
    merged, added, updated = own.merged(theirs)
    assert (added, updated) == (2, 1) and len(merged.notes) == 2
    assert [row.grade for row in merged.judged] == ["0", "1", "1", "0"]
    assert merged.merged(theirs) == (merged, 0, 0) and own.merged(Annotations()) == (own, 0, 0)


@pytest.mark.parametrize(
    ("rows", "grade"),
    [
        ([judged("2")], 2),
        ([judged("0")], 0),
        ([judged("unsure")], None),
        ([judged("2", minute=1), judged("0", "Bea", 2)], 0),
        ([judged("2", minute=2), judged("0", "Bea", 1)], 2),
        ([judged("2", minute=2), judged("unsure", "Bea", 3)], None),
        ([judged("2"), judged("0", "Bea"), judged("1", "Abe")], 0),
    ],
)
def test_which_of_several_authors_counts(rows: list[Judged], grade: int | None) -> None:
    for order in (rows, rows[::-1]):
        overlay = Annotations((), tuple(order)).overlay()
        assert overlay.grades == ({} if grade is None else {("t/A", "q1"): {("t/A", "d1"): grade}})
        assert bool(overlay.hash) == (grade is not None)


def test_overlays_are_equal_by_their_grades() -> None:
    rows = (judged("2"), judged("0", doc="d2"), judged("1", query="q0", doc_collection="t/B"))
    overlay = Annotations((NOTE,), rows).overlay()
    later = Annotations((), tuple(dataclasses.replace(r, author="Zoe", time=now()) for r in rows[::-1])).overlay()
    assert re.fullmatch("[0-9a-f]{16}", overlay.hash) and overlay == later and hash(overlay) == hash(later)
    assert copy.deepcopy(overlay) == overlay and copy.deepcopy(overlay).grades == overlay.grades
    others = [Annotations((), (*rows[:2], dataclasses.replace(rows[2], **change))).overlay() for change in CHANGES]
    assert len({overlay, *others, Overlay()}) == len(CHANGES) + 2
    assert Overlay().hash == "" and Overlay() == Annotations((NOTE,)).overlay()


CHANGES = ({"grade": "2"}, {"doc": "d9"}, {"doc_collection": "t/A"}, {"query": "q1"}, {"collection": "t/B"})

names = st.sampled_from(["a", "b", "c"])
places = st.sampled_from(["t/A", "t/B"])
overlays = st.dictionaries(
    st.tuples(places, names), st.dictionaries(st.tuples(places, names), st.integers(0, 2), min_size=1), max_size=4
).map(Overlay)
judgements = st.dictionaries(names, st.dictionaries(names, st.integers(0, 2)))


@given(judgements, overlays)
def test_judgements_of_a_collection_are_its_own_and_what_was_judged_anew(qrels: dict, overlay: Overlay) -> None:
    before = copy.deepcopy(qrels)
    applied = apply(qrels, overlay, "t/A")
    assert qrels == before
    for query in "abc":
        row = overlay.grades.get(("t/A", query), {})
        for doc in "abc":
            own = qrels.get(query, {}).get(doc)
            assert applied.get(query, {}).get(doc) == row.get(("t/A", doc), own)
    assert apply(qrels, Overlay(), "t/A") == qrels
    assert set(applied) >= set(qrels) and all(applied[q] or q in qrels for q in applied)


def test_every_grade_is_said() -> None:
    assert [judged(grade).grade for grade in GRADES] == ["2", "1", "0", "unsure"]
