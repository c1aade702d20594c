"""Rows of a pool: every document of every collection once, in order, filtered as a plain loop would."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from core.data.dataset import open_dataset
from core.data.layouts import DataError
from tests.conftest import write_collection

VALUES = {"specialty": ["Neurology", "Cardiology", None], "modality": ["CT", "MR", None]}


@pytest.fixture
def pool(tmp_path, workspace):
    """Three collections of which two share a domain and one is empty; all use the same ids."""
    for name, n in (("Head", 6), ("Neck", 9), ("none", 0)):
        rows = [
            {
                "_id": f"d{i}",
                "text": f"{name} {i}",
                "meta": {f: v[i % 3 if f == "modality" else i // 3] for f, v in VALUES.items()},
            }
            for i in range(n)
        ]
        write_collection(tmp_path / "data" / "summary" / name, [{"_id": "q", "caption": "x"}], rows, [])
    write_collection(tmp_path / "data" / "case_study" / "Head", [], [{"_id": "d0", "text": "another task"}], [])
    entries = [{"path": "summary/Neck", "task": "summary", "domain": "Head"}]
    (tmp_path / "data" / "benchmark.json").write_text(json.dumps({"collections": entries}))
    return open_dataset(tmp_path / "data", workspace).pool("summary")


def test_rows_places_and_documents(pool):
    listed = [(c.key, i) for c in pool.collections for i in range(len(c.corpus))]
    assert len(pool) == len(listed) == 15 and pool.task == "summary"
    assert [(c.key, at) for c, at in map(pool.place, range(len(pool)))] == listed
    assert [(d.collection, d.id) for d in pool.docs()] == [(key, f"d{i}") for key, i in listed]
    assert [pool.doc(row) for row in range(len(pool))] == list(pool.docs())
    assert pool.doc(np.int64(3)) == pool.doc(3)
    assert pool.domains == ("Head", "none")


@pytest.mark.parametrize("row", [-1, 15])
def test_a_row_that_is_not_there(pool, row):
    with pytest.raises(IndexError, match="of 15"):
        pool.place(row)


def test_equal_ids_in_two_collections_stay_apart(pool):
    rows = [pool.row_of(c.key, "d2") for c in pool.collections]
    assert rows == [2, 8, None]
    assert [pool.doc(r).text for r in rows[:2]] == ["Head 2", "Neck 2"]
    for row, doc in enumerate(pool.docs()):
        assert pool.row_of(doc.collection, doc.id) == row
    assert pool.row_of("summary/Head", "d6") is None and pool.row_of("case_study/Head", "d0") is None
    assert pool.collection("summary/Neck").doc("d2").text == "Neck 2"
    with pytest.raises(KeyError):
        pool.collection("case_study/Head")


def _value(pool, doc, facet):
    return pool.collection(doc.collection).domain if facet == "domain" else doc.meta.get(facet)


def test_values_are_counted(pool):
    for facet in ("domain", "specialty", "modality"):
        counted: dict[str, int] = {} if facet != "domain" else {"none": 0}
        for doc in pool.docs():
            if (value := _value(pool, doc, facet)) is not None:
                counted[value] = counted.get(value, 0) + 1
        assert pool.values(facet) == counted
        if facet != "domain":
            assert list(pool.values(facet)) == sorted(counted)


def test_filters_pass_what_a_plain_loop_passes(pool):
    choices = {
        "domain": [[], ["Head"], ["none"], ["Head", "none"]],
        "specialty": [[], ["Neurology"], ["Neurology", "Cardiology"]],
        "modality": [[], ["MR"], ("CT", "MR")],
    }
    for combination in itertools.product(*choices.values()):
        filters = dict(zip(choices, combination, strict=True))
        mask = pool.mask(filters)
        expected = [all(not w or _value(pool, d, f) in w for f, w in filters.items()) for d in pool.docs()]
        if not any(combination):
            assert mask is None
        else:
            assert mask.dtype == bool and mask.shape == (15,) and mask.tolist() == expected


def test_an_unknown_filter_or_value_says_what_there_is(pool):
    with pytest.raises(ValueError, match="no filter 'plane'; there are domain, specialty, modality"):
        pool.mask({"plane": ["axial"]})
    with pytest.raises(ValueError, match="No modality 'XR' in summary; there are: CT, MR"):
        pool.mask({"domain": ["Head"], "modality": ["CT", "XR"]})
    with pytest.raises(ValueError, match="No domain 'Neck' in summary; there are: Head, none"):
        pool.mask({"domain": ["Neck"]})
    assert pool.mask({}) is None and pool.mask({"plane": []}) is None


def test_a_pool_without_documents(tmp_path, workspace):
    write_collection(tmp_path / "data" / "Head", [], [], [])
    pool = open_dataset(tmp_path / "data", workspace).pool("retrieval")
    assert len(pool) == 0 and list(pool.docs()) == [] and pool.values("modality") == {}
    assert pool.mask({"domain": ["Head"]}).shape == (0,)
    with pytest.raises(ValueError, match="there are: none"):
        pool.mask({"modality": ["CT"]})


def test_a_task_without_collection_says_what_there_is(toy, workspace):
    with pytest.raises(DataError, match="Toy has no task 'summary'; it has visual_context, query_to_image"):
        open_dataset(toy, workspace).pool("summary")
