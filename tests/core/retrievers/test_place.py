"""Places: every document of a collection, every content of a pool once, judgements joined over copies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from core.data.dataset import DataSet, open_dataset
from core.retrievers.place import Place


@pytest.fixture
def dataset(tmp_path: Path, workspace, collection_writer) -> DataSet:
    """Two domains that share a text and a picture (under other names and ids), and an empty document each."""
    root = tmp_path / "data"
    (root / "images").mkdir(parents=True)
    for name, colour in (("red", "red"), ("copy", "red"), ("blue", "blue")):
        Image.new("RGB", (8, 8), colour).save(root / "images" / f"{name}.png")
    for domain, picture in (("Head", "red"), ("Thorax", "copy")):
        docs = [
            {"_id": "p 1", "text": "", "image_path": f"images/{picture}.png"},
            {"_id": f"t{domain}", "text": "one sentence"},
            {"_id": "empty", "text": ""},
            {"_id": f"own{domain}", "title": "A title", "text": domain},
        ]
        queries = [{"_id": "p 1", "caption": "red"}, {"_id": "none", "caption": "nothing judged"}]
        qrels = [("p 1", f"t{domain}", 1 if domain == "Head" else 2), ("p 1", "p 1", 2), ("p 1", "empty", 0)]
        collection_writer(root / "case_study" / domain, queries, docs, qrels)
    (root / "benchmark.json").write_text(json.dumps({"ignore_identical_ids": True}))
    return open_dataset(root, workspace)


def test_a_collection_is_its_documents(dataset, workspace) -> None:
    place = Place(dataset, "case_study", workspace, "case_study/Thorax")
    assert place.name == "case_study/Thorax" and not place.is_pool and not place.positives_only
    assert place.ids == ["p%201", "tThorax", "empty", "ownThorax"] and place.rows.tolist() == [4, 5, 6, 7]
    assert [doc.full_text for doc in place.docs()] == ["", "one sentence", "", "A title Thorax"]
    assert place.query_ids == ["p%201", "none"]
    assert place.qrels == {"p%201": {"tThorax": 2, "p%201": 2, "empty": 0}, "none": {}}
    assert [place.own(query) for query in place.queries] == ["p%201", None]
    with pytest.raises(KeyError):
        Place(dataset, "case_study", workspace, "case_study/Foot")


def test_equal_contents_of_a_pool_are_one_answer_relevant_if_any_copy_is(dataset, workspace) -> None:
    pool = Place(dataset, "case_study", workspace)
    assert pool.name == "pool-case_study" and pool.is_pool
    head, thorax = "case_study%2FHead", "case_study%2FThorax"
    # The picture and the sentence stand once; empty documents are like no other.
    assert pool.ids == [f"{head}/p%201", f"{head}/tHead", f"{head}/empty", f"{head}/ownHead", f"{thorax}/empty",
                        f"{thorax}/ownThorax"]  # fmt: skip
    assert pool.rows.tolist() == [0, 1, 2, 3, 6, 7]
    assert pool.qrels[f"{thorax}/p%201"] == {f"{head}/tHead": 2, f"{head}/p%201": 2, f"{thorax}/empty": 0}
    assert pool.qrels[f"{head}/p%201"] == {f"{head}/tHead": 1, f"{head}/p%201": 2, f"{head}/empty": 0}
    assert {pool.own(query) for query in pool.queries if query.id == "p 1"} == {f"{head}/p%201"}
    assert pool.has_text


def test_own_ids_count_where_the_data_set_does_not_say_otherwise(dataset, workspace) -> None:
    dataset.benchmark = {}
    place = Place(dataset, "case_study", workspace, "case_study/Head")
    assert [place.own(query) for query in place.queries] == [None, None]


def test_numbers_are_positions(dataset, workspace) -> None:
    for place in (Place(dataset, "case_study", workspace), Place(dataset, "case_study", workspace, "case_study/Head")):
        assert [place.number[name] for name in place.ids] == list(range(len(place.ids)))
        assert len(place.number) == len(place.ids)


def test_judged_anew_replaces_what_is_said_of_an_answer_and_its_copies(dataset, workspace) -> None:
    pool = Place(dataset, "case_study", workspace)
    head, thorax = "case_study/Head", "case_study/Thorax"
    query = next(q for q in pool.queries if (q.collection, q.id) == (thorax, "p 1"))
    picture, sentence = "case_study%2FHead/p%201", "case_study%2FHead/tHead"
    own = {sentence: 2, picture: 2, "case_study%2FThorax/empty": 0}
    assert pool.judged(query) == pool.judged(query, {}) == own
    # Judged in Thorax, judged anew under the name of the copy in Head: one answer.
    assert pool.judged(query, {(head, "tHead"): 0}) == own | {sentence: 0}
    assert pool.judged(query, {(thorax, "tThorax"): 0}) == own | {sentence: 0}
    assert pool.judged(query, {(head, "tHead"): 0, (thorax, "tThorax"): 1}) == own | {sentence: 1}  # of copies the best
    assert pool.judged(query, {(head, "ownHead"): 1}) == own | {"case_study%2FHead/ownHead": 1}
    assert pool.judged(query, {(head, "nothing"): 2, ("case_study/Foot", "p 1"): 2}) == own
    alone = Place(dataset, "case_study", workspace, thorax)
    anew = {(head, "tHead"): 2, (thorax, "ownThorax"): 1, (thorax, "p 1"): 0}
    assert alone.judged(query, anew) == {"tThorax": 2, "p%201": 0, "empty": 0, "ownThorax": 1}
    assert alone.qrels["p%201"] == {"tThorax": 2, "p%201": 2, "empty": 0}  # what is kept is not changed
