from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from core.adapt.pairs import case_record, topic_of_doc, training_pairs
from core.data.dataset import open_dataset
from core.embed.pipeline import Pipeline
from core.records import Doc


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def data(tmp_path, collection_writer):
    """Five queries in two tasks: a repeated pair, a template, a query without case, one of another split."""
    from PIL import Image

    root = tmp_path / "set"
    (root / "images").mkdir(parents=True)
    for name, colour in {"a": "red", "b": "blue", "c": "green"}.items():
        Image.new("RGB", (8, 8), colour).save(root / "images" / f"{name}.png")

    def query(identity, words, picture, split="train", **meta):
        return {
            "_id": identity,
            "caption": words,
            "image_path": f"images/{picture}.png",
            "meta": meta | {"split": split},
        }

    first = [
        query("q1", " a nodule ", "a", case="C1", cluster="nodules"),
        query("q2", "Replace this - DESCRIPTION OF THE IMAGE", "a", case="C1", cluster="nodules"),
        query("q3", "Another\tNodule", "b"),
        query("q4", "held back", "c", split="dev", case="C2"),
    ]
    second = [query("x", "a nodule", "a", case="C1", cluster="nodules"), query("y", "a cough", "a", case=7)]
    corpus = [{"_id": "d", "text": "text", "image_path": "images/c.png", "meta": {}}]
    collection_writer(root / "query_to_image" / "Head", first, corpus, [("q1", "d", 2)])
    collection_writer(root / "case_study" / "Head", second, corpus, [("x", "d", 2)])
    return root


def test_distinct_pairs_of_the_split_over_all_tasks(data, workspace, encoder):
    dataset = open_dataset(data, workspace)
    pairs = training_pairs(dataset, Pipeline(encoder, workspace), "train")
    found = {(p.picture, pairs.texts[p.text], p.case, p.topic) for p in pairs.rows}
    a, b = (sha(data / "images" / f"{name}.png") for name in "ab")
    assert found == {
        (a, "a nodule", "C1", "cluster:nodules"),
        (a, "a cough", "7", "case:7"),
        (b, "Another\tNodule", "query_to_image/Head/q3", "text:another nodule"),
    }
    assert len(pairs.rows) == 3
    assert pairs.templates == 1
    assert pairs.topics == ["case:7", "cluster:nodules", "text:another nodule"]
    collection, reference = pairs.pictures[a]
    assert hashlib.sha256(collection.picture(reference)).hexdigest() == a
    assert len(training_pairs(dataset, Pipeline(encoder, workspace)).rows) == 4


def test_judgements_are_not_read(data, workspace, encoder):
    before = training_pairs(open_dataset(data, workspace), Pipeline(encoder, workspace), "train")
    for path in data.glob("*/*/qrels/test.tsv"):
        path.write_text("query-id\tcorpus-id\tscore\n")
    after = training_pairs(open_dataset(data, workspace), Pipeline(encoder, workspace), "train")
    assert after.rows == before.rows


def test_the_hash_of_a_case_as_the_card_defines_it(data, workspace, encoder):
    pairs = training_pairs(open_dataset(data, workspace), Pipeline(encoder, workspace), "train")
    record = case_record(pairs.rows)
    assert sorted(record) == ["7", "C1", "query_to_image/Head/q3"]
    picture = sha(data / "images" / "a.png")
    rows = [[picture, hashlib.sha256(b"a nodule").hexdigest()]]
    wanted = hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()
    assert record["C1"] == {"sha256": wanted, "pictures": [picture]}


@pytest.mark.parametrize(
    ("meta", "topic"),
    [({"cluster": "x", "case": "y"}, "cluster:x"), ({"cluster": "", "case": 3}, "case:3"), ({}, "")],
)
def test_the_topic_of_a_document(meta, topic):
    assert topic_of_doc(Doc("c", "d", "", "", (), meta)) == topic
