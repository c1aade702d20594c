"""Stored runs: what is written is read, equal input gives equal bytes, and what does not fit is refused."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data.names import trec_id
from core.evaluate.measures import trec_order
from core.evaluate.run import Run, RunInfo, document, open_run, save, stored_runs, trec_name
from core.store.manifest import ManifestError

INFO = RunInfo("medlite", "medlite (two towers)", "r1", ("e1",), "summary", "summary/Reproductive and Urinary System",
               "centred", 0.65, "sample", "exact", 1000)  # fmt: skip
RANKINGS = {
    trec_name("q 2"): trec_order([("b", 0.1), ("a", 0.1), (trec_name("with space/ü%"), -3.25)]),
    "q1": trec_order([("a", 1 / 3), ("c", float(np.nextafter(np.float32(1 / 3), np.float32(1))))]),
    "q3": [],
}
MEASURES = {"nDCG@10": {"q1": 1 / 3, "q%202": 1.0, "q3": 0.0}, "Success@10": {"q%202": 1.0, "q1": 1.0, "q3": 0.0}}


def test_write_read_equal(tmp_path: Path) -> None:
    folder = save(tmp_path, "d1", Run(INFO, RANKINGS), MEASURES, {"seconds": 1.5}, {"left_out": 3})
    assert folder == tmp_path / "runs" / "d1" / INFO.folder
    assert {p.name for p in folder.iterdir()} == {"run.trec.gz", "measures.parquet", "manifest.json", "timing.json"}
    stored = open_run(folder)
    assert stored.run == Run(INFO, RANKINGS) and list(stored.run.rankings) == sorted(RANKINGS)
    assert stored.measures == MEASURES and stored.timing == {"seconds": 1.5}
    assert stored.facts["left_out"] == 3 and stored.facts["queries"] == 3 and "ir-measures" in stored.facts["tools"]
    (folder / "timing.json").unlink()
    assert stored.timing == {}
    lines = gzip.decompress((folder / "run.trec.gz").read_bytes()).decode().splitlines()
    assert lines[0] == "q%202 Q0 b 1 0.100000001 medlite" and len(lines) == 5


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    turned = Run(INFO, dict(reversed(RANKINGS.items())))
    first = save(tmp_path / "a", "d1", Run(INFO, RANKINGS), MEASURES, {"seconds": 1})
    second = save(tmp_path / "b", "d1", turned, {n: dict(reversed(v.items())) for n, v in MEASURES.items()}, {})
    for name in ("run.trec.gz", "measures.parquet", "manifest.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert (first / "run.trec.gz").read_bytes()[3:8] == bytes(5)  # neither a name nor a time
    again = save(tmp_path / "a", "d1", Run(INFO, RANKINGS), MEASURES, {})
    assert again == first and (again / "run.trec.gz").read_bytes() == (second / "run.trec.gz").read_bytes()


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5), st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=12
    )
)
def test_scores_come_back_as_the_same_32_bit_floats(tmp_path_factory, scores: dict) -> None:
    ranking = trec_order((trec_name(d), s) for d, s in scores.items())
    folder = save(tmp_path_factory.mktemp("run"), "d", Run(INFO, {"q": ranking}), {}, {})
    found = open_run(folder).run.rankings["q"]
    assert found == ranking and [np.float32(s) for _, s in found] == [np.float32(s) for _, s in ranking]
    assert {document(d, INFO.place)[1] for d, _ in found} == set(scores)


@given(st.text(max_size=6), st.text(max_size=6))
def test_ids_are_decoded(collection: str, identity: str) -> None:
    assert document(trec_id(collection, identity), "pool-x") == (collection, identity)
    assert document(trec_name(identity), collection) == (collection, identity)


def test_the_id_covers_what_tells_runs_apart() -> None:
    other = {"encoder_ids": ("e2",), "fusion": "rrf", "weight": 0.5, "centring": "none", "index_kind": "hnsw"}
    other |= {"depth": 10, "variant": "text", "fold_plan": "f", "overlay": "o", "split": "dev"}
    changed = [dataclasses.replace(INFO, **{name: value}) for name, value in other.items()]
    assert len({INFO.run_id, *(i.run_id for i in changed)}) == len(other) + 1
    assert dataclasses.replace(INFO, weight=1).run_id == dataclasses.replace(INFO, weight=1.0).run_id
    assert dataclasses.replace(INFO, weight=None).run_id != INFO.run_id
    assert dataclasses.replace(INFO, place="summary/Head").folder.split("/")[1] == INFO.run_id
    with pytest.raises(ValueError, match="names no encoder"):
        dataclasses.replace(INFO, encoder_ids=())


def test_folders_of_places_are_safe_and_distinct() -> None:
    places = ["summary/Head", "summary-Head", "summary/head", "../../x", "t/" + "ä" * 300, "pool-summary"]
    folders = [dataclasses.replace(INFO, place=p).folder for p in places]
    assert len({f.lower() for f in folders}) == len(places)
    assert all(f.count("/") == 1 and len(f) < 90 and f[0].isalnum() and f.isascii() for f in folders)


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        ({"q": [("a", 0.0), ("b", 1.0)]}, "order"),
        ({"q": [("a", 1.0), ("b", 1.0)]}, "order"),
        ({"q": [("a", 0.1)]}, "order"),
        ({"q": [("a", 1.0), ("a", 0.5)]}, "twice"),
        ({"q x": []}, "'q x' is no TREC id"),
        ({"q": [("ü", 1.0)]}, "'ü' is no TREC id"),
    ],
)
def test_what_cannot_be_read_again_is_not_written(tmp_path: Path, rankings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        save(tmp_path, "d", Run(INFO, rankings), {}, {})
    with pytest.raises(ValueError, match="same queries"):
        save(tmp_path, "d", Run(INFO, {}), {"nDCG@10": {"a": 0.0}, "AP": {"b": 0.0}}, {})
    with pytest.raises(ValueError, match="longer than 1"):
        save(tmp_path, "d", Run(dataclasses.replace(INFO, depth=1), {"q": [("a", 1.0), ("b", 0.5)]}), {}, {})
    assert not (tmp_path / "runs").exists()


def test_damage_is_refused_with_the_reason(tmp_path: Path) -> None:
    def stored(name: str) -> Path:
        return save(tmp_path / name, "d1", Run(INFO, RANKINGS), MEASURES, {})

    folder = stored("content")
    content = bytearray((folder / "run.trec.gz").read_bytes())
    content[-1] ^= 1
    (folder / "run.trec.gz").write_bytes(content)
    with pytest.raises(ManifestError, match=r"run\.trec\.gz does not have the content"):
        _ = open_run(folder).run
    assert open_run(folder).measures == MEASURES

    folder = stored("cut")
    (folder / "measures.parquet").write_bytes(b"")
    with pytest.raises(ManifestError, match="another size"):
        open_run(folder)

    for change in ({"run": {"model": "x"}}, {"format": 0}, {"run_id": "0" * 16}, {"data_id": "d2"}):
        folder = stored("-".join(change))
        body = json.loads((folder / "manifest.json").read_text())
        body["request"] |= change
        (folder / "manifest.json").write_text(json.dumps(body))
        with pytest.raises(ManifestError):
            open_run(folder)
    with pytest.raises(ManifestError, match="missing"):
        open_run(tmp_path / "nowhere")


def test_two_roots_the_workspace_first(tmp_path: Path) -> None:
    workspace, shipped = tmp_path / "workspace", tmp_path / "store"
    other = dataclasses.replace(INFO, model="bm25", encoder_ids=("bm25-id",))
    save(workspace, "d1", Run(INFO, RANKINGS), MEASURES, {"from": "workspace"})
    save(shipped, "d1", Run(INFO, RANKINGS), MEASURES, {"from": "store"})
    save(shipped, "d1", Run(other, RANKINGS), MEASURES, {"from": "store"})
    save(shipped, "d2", Run(INFO, RANKINGS), MEASURES, {})
    broken = save(shipped, "d1", Run(dataclasses.replace(INFO, depth=5), {}), {}, {})
    (broken / "measures.parquet").unlink()
    (workspace / "runs" / "d1" / INFO.folder).parent.joinpath(".partial-1").mkdir()
    found, refused = stored_runs([workspace, shipped], "d1")
    assert [(r.info.model, r.timing["from"]) for r in found] == [("bm25", "store"), ("medlite", "workspace")]
    assert len(refused) == 1 and "measures.parquet" in refused[0]
    assert stored_runs([tmp_path / "none"], "d1") == ([], [])


def rows(stored) -> list[tuple[str, str, float]]:
    """The columns of a run as rows."""
    table = stored.columns()
    return list(zip(*(table.column(name).to_pylist() for name in ("query", "doc", "score")), strict=True))


def told(stored) -> list[tuple[str, str, float]]:
    """The same from its rankings."""
    return [(query, doc, score) for query, ranking in stored.run.rankings.items() for doc, score in ranking]


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=4).map(trec_name).filter(bool),
        st.dictionaries(
            st.text(min_size=1, max_size=4).map(trec_name), st.floats(width=32, allow_nan=False, allow_infinity=False)
        ),
        max_size=5,
    )
)
def test_columns_are_the_rankings(tmp_path_factory, scores: dict) -> None:
    rankings = {query: trec_order(found.items()) for query, found in scores.items()}
    stored = open_run(save(tmp_path_factory.mktemp("run"), "d", Run(INFO, rankings), {}, {}))
    assert rows(stored) == told(stored)
    assert (
        stored.columns().schema.names == ["query", "doc", "score"] and stored.columns().column("score").type == "float"
    )


def test_columns_of_ids_that_look_like_something_else(tmp_path: Path) -> None:
    ids = ["007", "1e5", "NA", "null", "nan", "true", '"', '"a', "'", "#x", "\\", "a,b", "-", "2020-01-01", "inf"]
    rankings = {query: trec_order((doc, float(at)) for at, doc in enumerate(ids)) for query in ids}
    stored = open_run(save(tmp_path, "d", Run(INFO, rankings), {}, {}))
    assert rows(stored) == told(stored) and len(rows(stored)) == len(ids) ** 2


def test_columns_of_a_run_of_several_blocks(tmp_path: Path) -> None:
    """Longer than the megabyte that the reader takes at once; new ids keep coming."""
    rankings = {f"q{q:04}": trec_order((f"d{q * 37 + at:09}", 100 - at / 7) for at in range(100)) for q in range(600)}
    stored = open_run(save(tmp_path, "d", Run(INFO, rankings), {}, {}))
    assert rows(stored) == told(stored) and stored.columns().column("doc").num_chunks > 1
    assert len(stored.columns().combine_chunks().column("doc").chunk(0).dictionary) == len(
        {doc for _, doc, _ in told(stored)}
    )


def test_columns_without_a_hit_and_of_a_damaged_file(tmp_path: Path) -> None:
    empty = open_run(save(tmp_path / "a", "d", Run(INFO, {"q": []}), {}, {}))
    assert rows(empty) == [] and empty.columns().schema.names == ["query", "doc", "score"]
    stored = open_run(save(tmp_path / "b", "d", Run(INFO, RANKINGS), MEASURES, {}))
    content = bytearray((stored.path / "run.trec.gz").read_bytes())
    content[-1] ^= 1
    (stored.path / "run.trec.gz").write_bytes(content)
    with pytest.raises(ManifestError, match=r"run\.trec\.gz does not have the content"):
        stored.columns()
