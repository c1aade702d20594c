"""Rows come back as they were written, by position, by id and in order."""

from __future__ import annotations

import string
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data import table
from core.data.table import FACETS, Table, files_of, write_table
from core.records import Doc, Query

TEXT = st.text(max_size=20) | st.sampled_from(["\0", "a\u2028b", "🩻", "x" * 3000])
META = st.dictionaries(
    st.sampled_from([*FACETS, "domain", "", "é"]),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.lists(TEXT, max_size=2),
    max_size=4,
)
DOCS = st.lists(
    st.builds(
        Doc,
        collection=st.just("c"),
        id=st.text(min_size=1, max_size=6),
        title=TEXT,
        text=TEXT,
        images=st.lists(TEXT, max_size=3).map(tuple),
        meta=META,
        line=st.integers(1, 2**40),
    ),
    max_size=12,
    unique_by=lambda doc: doc.id,
)


def written(folder: Path, rows: list, name: str = "corpus") -> Table:
    assert write_table(folder, name, iter(rows)) == len(rows)
    assert sorted(p.name for p in folder.iterdir()) == sorted(files_of(name))
    return Table(folder, name)


def as_doc(row: dict) -> Doc:
    return Doc("c", row["id"], row["title"], row["text"], row["images"], row["meta"], row["line"])


@given(DOCS, st.lists(st.text(st.characters(), max_size=6), max_size=5), st.integers(1, 5), st.booleans())
@settings(deadline=None)
def test_what_is_written_is_read_and_found(docs, others, batch_rows, colliding):
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(table, "_BATCH_ROWS", batch_rows)
        patch.setattr(table, "_BATCH_BYTES", 3500)
        if colliding:  # equal hashes must not make equal ids
            patch.setattr(table, "_id_hash", lambda identity: len(identity) % 2)
        read = written(Path(folder), docs)
        assert len(read) == len(docs)
        assert [as_doc(row) for row in read.rows()] == docs
        assert [as_doc(read.row(at)) for at in range(len(docs))] == docs
        assert [read.find(doc.id) for doc in docs] == list(range(len(docs)))
        places = {doc.id: at for at, doc in enumerate(docs)}
        for identity in ["", "\ud800", *others]:  # also what is no valid text
            assert read.find(identity) == places.get(identity)
        assert read.column("id").to_pylist() == [doc.id for doc in docs]


@pytest.mark.parametrize(
    ("value", "facet"),
    [
        ("a", "a"),
        ("", None),
        (None, None),
        (7, "7"),
        (-(10**30), str(-(10**30))),
        (True, None),
        (1.5, None),
        (["a"], None),
    ],
)
def test_facets_have_columns_of_text(tmp_path, value, facet):
    read = written(tmp_path, [Query("c", "q", "words", (), {"case": value, "plane": "axial"}, 1)], "queries")
    assert read.column("case").to_pylist() == [facet] and read.row(0)["meta"]["case"] == value
    assert read.row(0)["title"] == "" and read.column("split").to_pylist() == [None]


def test_an_empty_table(tmp_path):
    read = written(tmp_path, [])
    assert len(read) == 0 and list(read.rows()) == [] and read.find("a") is None
    assert read.column("text").to_pylist() == []
    with pytest.raises(IndexError):
        read.row(0)


@pytest.mark.parametrize("position", [-1, 3, 10**9])
def test_a_position_that_is_not_there(tmp_path, position):
    read = written(tmp_path, [Doc("c", i, "", i) for i in "abc"])
    with pytest.raises(IndexError, match="of 3"):
        read.row(position)


def test_many_rows_in_many_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "_BATCH_BYTES", 2000)
    docs = [Doc("c", f"{n}-{c}", "", c * (n % 90), (), {}, n) for n in range(150) for c in string.ascii_lowercase]
    read = written(tmp_path, docs)
    assert len(read._batches) > 50
    assert [as_doc(row) for row in read.rows()] == docs
    assert all(read.find(doc.id) == at for at, doc in enumerate(docs))
    assert read.find("150-a") is None and read.find("") is None


def test_long_texts_titles_metas_and_lists_of_pictures_all_fill_a_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "_BATCH_BYTES", 1000)
    long = "x" * 900
    docs = [Doc("c", "1", long, ""), Doc("c", "2", "", long), Doc("c", "3", "", "", (long,)), Doc("c", "4", "", "")]
    docs += [Doc("c", "5", "", "", (), {"a": long}), Doc("c", "6", "", "")]
    assert [b.num_rows for b in written(tmp_path, docs)._batches] == [2, 3, 1]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    docs = [Doc("c", str(n), "t", "x" * n, ("a.png",), {"case": str(n), "b": None}, n) for n in range(50)]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, docs)
    for file in files_of("corpus"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
