"""Every spelling is read, every line that cannot be read is named, and no bytes crash the readers."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.data import rows
from core.records import Doc, Fault, Query

TEXT = st.text(max_size=30) | st.sampled_from(["a\u2028b\u2029c\x85d", "\0", "🩻" * 3, "\r\n", " ", "x" * 5000])
IDS = st.text(min_size=1, max_size=8) | st.sampled_from(["a b", " a", "1", "é", "\u2028", "\0", "🫀"])
META = st.dictionaries(
    st.text(max_size=5) | st.sampled_from(["case", "cluster", "domain"]),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**40), 10**40)
        | st.floats(allow_nan=False, allow_infinity=False)
        | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)
PICTURES = st.lists(st.text(min_size=1, max_size=10), max_size=3)


def _read(reader, content: bytes, *more) -> tuple[list, list[Fault]]:
    faults: list[Fault] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(content)
        return list(reader(path, *more, rows.faults_to(faults, "file"))), faults


def queries_in(content: bytes) -> tuple[list[Query], list[Fault]]:
    return _read(rows.queries_of, content, "c")


def docs_in(content: bytes) -> tuple[list[Doc], list[Fault]]:
    return _read(rows.docs_of, content, "c")


def judgements_in(content: bytes) -> tuple[list[tuple[int, str, str, int]], list[Fault]]:
    return _read(rows.judgements_of, content)


def _line(value, ascii_only: bool = False) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only).encode() + b"\n"


def _where(faults: list[Fault]) -> list[tuple[str, int]]:
    return [(f.kind, f.line) for f in faults]


@pytest.mark.parametrize("identity", ["_id", "id"])
@pytest.mark.parametrize("words", ["caption", "text", "txt", "query"])
@pytest.mark.parametrize("picture", ["image_path", "img_path", "image"])
def test_every_spelling_of_a_query(identity, words, picture):
    one = {identity: "q1", words: "a mass", picture: "images/a.png"}
    many = {identity: 2, words: "", picture: ["images/a.png", "images/b.png"], "meta": {"case": "7"}}
    none = {identity: "q3", words: None, picture: [], "caption": None}
    found, faults = queries_in(_line(one) + _line(many) + _line(none))
    assert faults == []
    assert found == [
        Query("c", "q1", "a mass", ("images/a.png",), {}, 1),
        Query("c", "2", "", ("images/a.png", "images/b.png"), {"case": "7"}, 2),
        Query("c", "q3", "", (), {}, 3),
    ]


def test_every_spelling_of_a_document():
    given_ = [
        {"_id": "d1", "title": "T", "text": "a"},
        {"_id": "d2", "txt": "b", "image": "x.png"},
        {"id": "d3", "caption": "c", "img_path": ["x.png"]},
        {"_id": "d4", "title": None, "text": "", "caption": "d"},
    ]
    found, faults = docs_in(b"".join(map(_line, given_)))
    assert faults == []
    assert found == [
        Doc("c", "d1", "T", "a", (), {}, 1),
        Doc("c", "d2", "", "b", ("x.png",), {}, 2),
        Doc("c", "d3", "", "c", ("x.png",), {}, 3),
        Doc("c", "d4", "", "d", (), {}, 4),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"_id": "a", "text": "cut', "not JSON: Unterminated string"),
        (b'["a"]', "not a JSON object"),
        (b'"a"', "not a JSON object"),
        (b"{}", "no _id"),
        (b'{"_id": ""}', "no _id"),
        (b'{"_id": null}', "no _id"),
        (b'{"_id": true}', "no _id"),
        (b'{"_id": 1.5}', "no _id"),
        (b'{"_id": ["a"]}', "no _id"),
        (b'{"_id": "a", "text": 5}', "text is not a text"),
        (b'{"_id": "a", "title": {}}', "title is not a text"),
        (b'{"_id": "a", "image_path": 5}', "image_path is neither"),
        (b'{"_id": "a", "image_path": {"bytes": "x"}}', "image_path is neither"),
        (b'{"_id": "a", "image_path": ["x.png", null]}', "image_path is neither"),
        (b'{"_id": "a", "image_path": ["x.png", ""]}', "image_path is neither"),
        (b'{"_id": "a", "meta": {"x": NaN}}', "NaN is not a number"),
        (b'{"_id": "a", "meta": {"x": -Infinity}}', "-Infinity is not a number"),
        (b'{"_id": "a", "meta": {"x": 1e999}}', "1e999 is too large"),
        (b'{"_id": "a", "meta": {"x": ' + b"9" * 5000 + b"}}", "too many digits"),
        (b'{"_id": "a", "text": "\\ud800"}', "half of a surrogate pair"),
        (b'{"_id": "\\uDC00"}', "half of a surrogate pair"),
        (b'{"_id": "a", "meta": {"\\udbff": 1}}', "half of a surrogate pair"),
        (b'{"_id": "a", "meta": ' + b"[" * 70 + b"]" * 70 + b"}", "nested more than 64"),
        (b'{"_id": "a", "meta": ' + b'{"a":' * 990 + b"1" + b"}" * 990 + b"}", "nested more than 64"),
        (b"[" * 200_000, "nested more than 64"),
        (b'{"_id": "a", "text": "\xff"}', "not UTF-8 at byte 23"),
        (b'{"_id": "a", "text": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"_id": "a", "text": "a\tb"}', "not JSON: Invalid control character"),
        (b'{"_id": "a", "text": "a\0b"}', "not JSON: Invalid control character"),
    ],
)
def test_a_malformed_line_is_named_with_its_reason_and_the_others_are_read(line, reason):
    content = b'{"_id": "before"}\n' + line + b'\n{"_id": "after"}'
    for found, faults in (queries_in(content), docs_in(content)):
        if "title" not in reason or isinstance(found[0], Doc):
            assert [r.id for r in found] == ["before", "after"] and [r.line for r in found] == [1, 3]
            assert _where(faults) == [("malformed", 2)]
            assert reason in faults[0].detail and "left out" in faults[0].detail and faults[0].file == "file"


def test_meta_that_is_no_object_costs_only_itself():
    found, faults = docs_in(b'{"_id": "a", "text": "b", "meta": [1]}')
    assert found == [Doc("c", "a", "", "b", (), {}, 1)]
    assert _where(faults) == [("malformed", 1)] and faults[0].id == "a" and "passed over" in faults[0].detail


def test_64_levels_and_whole_surrogate_pairs_and_long_numbers_are_read():
    deep = {"x": json.loads("[" * 60 + "]" * 60), "n": 10**4000}
    found, faults = docs_in(_line({"_id": "a", "text": "\U0001f9e0 \\ud800", "meta": deep}, ascii_only=True))
    assert faults == [] and found[0].text == "\U0001f9e0 \\ud800" and found[0].meta == deep


def test_byte_order_mark_crlf_and_blank_lines_are_passed_over_and_named():
    content = b'\xef\xbb\xbf{"_id": "a"}\r\n\r\n   \n{"_id": "b"}\n\r\n{"_id": "c"}\r'
    found, faults = docs_in(content)
    assert [(d.id, d.line) for d in found] == [("a", 1), ("b", 4), ("c", 6)]
    assert _where(faults) == [("bom", 1), ("crlf", 1)] and "3 lines" in faults[1].detail


def test_only_a_line_feed_ends_a_line():
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    found, faults = docs_in(_line({"_id": "a", "text": text}) + _line({"_id": "b"}))
    assert faults == [] and [d.text for d in found] == [text, ""] and found[1].line == 2


def test_a_line_over_the_limit_is_left_out_and_one_at_the_limit_is_read(monkeypatch):
    empty = len(_line({"_id": "a", "text": ""}))
    for limit, fits in ((empty + 1000, True), (empty + 999, False)):
        monkeypatch.setattr(rows, "MAX_LINE", limit)
        content = _line({"_id": "a", "text": "x" * 1000}) + _line({"_id": "b"})
        found, faults = docs_in(content)
        assert [d.id for d in found] == (["a", "b"] if fits else ["b"]) and found[-1].line == 2
        assert _where(faults) == ([] if fits else [("malformed", 1)])
    monkeypatch.setattr(rows, "MAX_LINE", 10)
    assert _where(docs_in(b"x" * 100 + b"\n\n" + b"y" * 35)[1]) == [("malformed", 1), ("malformed", 3)]


def test_a_duplicate_id_keeps_its_first_line():
    content = _line({"_id": "a", "text": "one"}) + _line({"_id": "a", "text": "two"}) + _line({"_id": "1"})
    found, faults = docs_in(content + _line({"_id": 1}))
    assert [(d.id, d.text) for d in found] == [("a", "one"), ("1", "")]
    assert [(f.kind, f.line, f.id) for f in faults] == [("duplicate_id", 2, "a"), ("duplicate_id", 4, "1")]


def test_white_space_in_an_id_is_named_and_kept():
    found, faults = docs_in(b"".join(_line({"_id": i}) for i in ("a b", "ok", " c", "d\u00a0e")))
    assert [d.id for d in found] == ["a b", "ok", " c", "d\u00a0e"]
    assert [(f.kind, f.line, f.id) for f in faults] == [
        ("id_whitespace", 1, "a b"),
        ("id_whitespace", 3, " c"),
        ("id_whitespace", 4, "d\u00a0e"),
    ]


ROWS = st.lists(
    st.fixed_dictionaries({"_id": IDS, "title": TEXT, "text": TEXT, "image_path": PICTURES, "meta": META}), max_size=8
)


@given(ROWS, st.booleans())
@settings(deadline=None)
def test_what_is_written_is_read_and_duplicates_are_named(written, ascii_only):
    content = b"".join(_line(row, ascii_only) for row in written)
    seen: dict[str, int] = {}
    for number, row in enumerate(written, 1):
        seen.setdefault(row["_id"], number)
    kept = [(n, written[n - 1]) for n in seen.values()]
    doubles = [n for n in range(1, len(written) + 1) if n not in seen.values()]
    docs, faults = docs_in(content)
    assert docs == [Doc("c", r["_id"], r["title"], r["text"], tuple(r["image_path"]), r["meta"], n) for n, r in kept]
    assert [f.line for f in faults if f.kind == "duplicate_id"] == doubles
    assert {f.kind for f in faults} <= {"duplicate_id", "id_whitespace"}
    queries, _ = queries_in(content)
    assert queries == [Query("c", r["_id"], r["text"], tuple(r["image_path"]), r["meta"], n) for n, r in kept]


def _non_blank(content: bytes) -> set[int]:
    return {n for n, line in enumerate(content.split(b"\n"), 1) if line.strip()}


def _every_line_is_accounted_for(content: bytes, read: list[int], faults: list[Fault]) -> None:
    left_out = {f.line for f in faults if f.kind not in ("crlf", "id_whitespace") and "passed over" not in f.detail}
    passed_over = {f.line for f in faults if "passed over" in f.detail}
    assert len(set(read)) == len(read) and not set(read) & left_out
    assert set(read) | left_out <= _non_blank(content) <= set(read) | left_out | passed_over


ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)
FIELDS = st.sampled_from(["_id", "id", "text", "caption", "title", "image_path", "image", "meta", "other"])
LINES = st.lists(
    st.binary(max_size=30)
    | st.dictionaries(FIELDS, ANY_VALUE, max_size=5).map(lambda row: json.dumps(row).encode())
    | st.fixed_dictionaries({"_id": st.sampled_from(["a", "b"]), "text": st.text(max_size=4)}).map(
        lambda row: json.dumps(row).encode()
    ),
    max_size=6,
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\n\n"])


@given(LINES, ENDS, st.sampled_from([b"", b"\xef\xbb\xbf"]))
@example([b"\xff\xfea\0b\0"], b"\n", b"")
@settings(deadline=None)
def test_whatever_a_file_holds_every_line_is_read_or_named(lines, end, start):
    content = start + end.join(lines)
    for found, faults in (docs_in(content), queries_in(content)):
        _every_line_is_accounted_for(content, [row.line for row in found], faults)
        for row in found:  # what is read can be written and shown
            json.dumps([row.id, row.text, row.images, row.meta], ensure_ascii=False, allow_nan=False).encode()


GRADES = st.integers(0, 1000)
TSV_IDS = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r"), min_size=1, max_size=8)


@given(
    st.lists(st.tuples(TSV_IDS, TSV_IDS, GRADES), max_size=8),
    st.sampled_from(["", "query-id\tcorpus-id\tscore\n", "query_id\tdoc_id\trelevance\n", "topic\titer\tdocid\trel\n"]),
    st.sampled_from(["{}\t{}\t{}", "{}\t0\t{}\t{}", "{}\t{}\t{}.0", "{}\t{}\t {} "]),
)
@settings(deadline=None)
def test_judgements_that_are_written_are_read(pairs, header, form):
    content = header + "".join(form.format(q, d, g) + "\n" for q, d, g in pairs)
    found, faults = judgements_in(content.encode())
    start = 2 if header else 1
    # A file that begins with these bytes has a byte order mark, whatever was meant.
    if not content.startswith("\ufeff"):
        assert faults == [] and found == [(n, q, d, g) for n, (q, d, g) in enumerate(pairs, start)]


@given(st.lists(st.tuples(st.text("ab-1", min_size=1), st.text("cd:2", min_size=1), GRADES), max_size=5))
@settings(deadline=None)
def test_judgements_with_blanks_between_the_columns_are_read(pairs):
    for form in ("{} 0 {} {}", "{}   {}  {} "):
        content = "".join(form.format(*pair) + "\n" for pair in pairs)
        found, faults = judgements_in(content.encode())
        assert faults == [] and found == [(n, *pair) for n, pair in enumerate(pairs, 1)]


SCORES = [("nan", None), ("inf", None), ("-1", None), ("0.5", None), ("1001", None), ("", None), ("two", None)]
SCORES += [("0", 0), ("1", 1), ("2.0", 2), ("1e1", 10), ("1000", 1000), ("9" * 5000, None)]


@pytest.mark.parametrize(("score", "grade"), SCORES)
@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_score_is_a_whole_number_or_named_on_whatever_line_it_stands(score, grade, line):
    lines = ["q1\td1\t1", "q2\td2\t0", "q3\td3\t2"]
    lines[line - 1] = f"q\td\t{score}"
    found, faults = judgements_in("\n".join(lines).encode())
    if grade is None:
        assert [(f.kind, f.line, f.id) for f in faults] == [("bad_score", line, "q")] and len(found) == 2
        assert "'d'" in faults[0].detail and len(faults[0].detail) < 200
    else:
        assert faults == [] and found[line - 1] == (line, "q", "d", grade) and isinstance(found[line - 1][3], int)


@pytest.mark.parametrize("line", ["q1", "q1\td1", "q1 d1", "a\tb\tc\td\te", "\td1\t1", "q1\t\t1", "q1,d1,1"])
def test_a_line_without_three_columns_is_named(line):
    found, faults = judgements_in(f"q\td\t1\n{line}\n".encode())
    assert len(found) == 1 and _where(faults) == [("malformed", 2)] and "left out" in faults[0].detail


def test_a_header_is_known_after_a_byte_order_mark_and_blank_lines_but_only_once():
    header = "query-id\tcorpus-id\tscore\n"
    found, faults = judgements_in(f"\ufeff\n{header}q\td\t1\n{header}".encode())
    assert found == [(3, "q", "d", 1)] and _where(faults) == [("bom", 1), ("bad_score", 4)]


@given(
    st.lists(
        st.binary(max_size=20)
        | st.lists(st.sampled_from(["q", "d", "1", "2.0", "nan", "", " ", "query-id", "x y"]), max_size=5).map(
            lambda cells: "\t".join(cells).encode()
        ),
        max_size=6,
    ),
    ENDS,
)
@settings(deadline=None)
def test_whatever_a_judgement_file_holds_every_line_is_read_or_named(lines, end):
    content = end.join(lines)
    found, faults = judgements_in(content)
    read = [line for line, *_ in found]
    left_out = {f.line for f in faults if f.kind in ("malformed", "bad_score")}
    named = left_out | {f.line for f in faults if f.kind == "bom"}
    assert not set(read) & left_out and set(read) | left_out <= _non_blank(content)
    # Only a header is neither.
    silent = _non_blank(content) - set(read) - named
    assert len(silent) <= 1
    for line in silent:
        assert content.split(b"\n")[line - 1].lower().startswith((b"query", b"topic", b"q"))
    assert all(isinstance(grade, int) and 0 <= grade <= 1000 for *_, grade in found)
