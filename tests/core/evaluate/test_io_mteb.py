"""MTEB's files and vectors made elsewhere: equal to what they hold, N/A left out, every flaw named."""

from __future__ import annotations

import io
import json
import math
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data.table import Table, write_table
from core.evaluate import io_mteb
from core.evaluate.imported import FileRefused, run_of_import
from core.evaluate.io_mteb import (
    import_predictions,
    import_vectors,
    rank_vectors,
    read_predictions,
    read_vectors,
    write_results,
)
from core.evaluate.measures import SPELLINGS, trec_order
from core.evaluate.run import trec_name
from core.records import Doc, Query


def collection_of(folder: Path, queries: list[str], docs: list[str]) -> SimpleNamespace:
    """The tables of a collection with these ids."""
    write_table(folder, "queries", (Query("summary/Head", i, "words") for i in queries))
    write_table(folder, "corpus", (Doc("summary/Head", i, "", "words") for i in docs))
    tables = {name: Table(folder, name) for name in ("queries", "corpus")}
    return SimpleNamespace(key="summary/Head", task="summary", **tables)


INNER = {"q1": {"a b": 0.5, "x": 2}, "q2": {"x": -1.25e-3}}
META = {"model_name": "org/their-model", "revision": "abc"}


def saved(path: Path, value: object) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_predictions_as_mteb_saves_them_and_flat(tmp_path: Path) -> None:
    nested = saved(tmp_path / "p.json", {"mteb_model_meta": META, "default": {"test": INNER}})
    found = read_predictions(nested)
    assert found.scores == INNER and found.lines == 3 and found.tag == "org/their-model"
    flat = read_predictions(saved(tmp_path / "flat.json", INNER))
    assert flat.scores == INNER and flat.tag == "" and flat.file_hash != found.file_hash
    with_meta = saved(tmp_path / "p.json", {"mteb_model_meta": META, **INNER})
    assert read_predictions(with_meta).scores == INNER
    collection = collection_of(tmp_path, ["q1", "q2", "q3"], ["a b", "x"])
    imported = import_predictions(nested, collection)
    assert imported.rankings == {"q1": [("x", 2.0), ("a%20b", 0.5)], "q2": trec_order([("x", -1.25e-3)])}
    assert run_of_import(imported, collection, "m", "org/m", "r").info.depth == 2
    own = collection_of(tmp_path, ["x", "q1"], ["x", "y"])
    with_own = saved(tmp_path / "own.json", {"x": {"x": 1, "y": 0.5}})
    assert import_predictions(with_own, own, ignore_identical_ids=True).rankings == {"x": [("y", 0.5)]}


def test_subsets_and_splits_are_chosen(tmp_path: Path) -> None:
    other = {"q1": {"x": 1.0}}
    path = saved(tmp_path / "p.json", {"Head": {"test": INNER}, "Thorax": {"test": other, "dev": INNER}})
    assert read_predictions(path, subset="Head").scores == INNER
    assert read_predictions(path, subset="Thorax", split="test").scores == other
    for arguments, message in (
        ({}, r"more than one subset \('Head', 'Thorax'\); choose one"),
        ({"subset": "Thorax"}, r"more than one split \('test', 'dev'\)"),
        ({"subset": "Spine"}, "has no subset 'Spine'; it has 'Head', 'Thorax'"),
        ({"subset": "Head", "split": "dev"}, "has no split 'dev'; it has 'test'"),
    ):
        with pytest.raises(FileRefused, match=rf"^p.json.*{message}"):
            read_predictions(path, **arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: not JSON"),
        ('{"q": {"d": 1},\n]', "line 2: not JSON"),
        ("[" * 100_000, "nested too deep|not JSON"),
        ("[]", "no subset in it"),
        ("{}", "no subset in it"),
        ('{"default": {"test": {}}}', "holds no scores"),
        ('{"q": {"d": NaN}}', "NaN is no score"),
        ('{"q": {"d": -Infinity}}', "-Infinity is no score"),
        ('{"q": {"d": 1e999}}', "query 'q': the score 'inf' of 'd' is no finite number"),
        ('{"q": {"d": 1e39}}', "no finite number"),
        ('{"q": {"d": true}}', "the score 'True'"),
        ('{"q": {"d": "1"}}', "the score '1'"),
        ('{"q": {"d": ' + "9" * 5000 + "}}", "too many digits"),
        ('{"q": {"d": 1}, "p": 3}', r"query 'p': '3' where \{document: score\}"),
        ('{"q": {"d": 1, "d": 2}}', "'d' stands twice"),
        ('{"q": {"d": 1}, "q": {"d": 2}}', "'q' stands twice"),
        ('{"default": {"test": {"q": [1]}}}', "query 'q'"),
    ],
)
def test_bad_predictions_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileRefused, match=rf"^p\.json.*({message})"):
        read_predictions(saved(tmp_path / "p.json", text))


def test_binary_large_and_absent_predictions(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "p.json").write_bytes(b"\xff\xfe\x00\x01\x02")
    with pytest.raises(FileRefused, match=r"^p\.json"):
        read_predictions(tmp_path / "p.json")
    with pytest.raises(FileRefused, match=r"none\.json cannot be read"):
        read_predictions(tmp_path / "none.json")
    monkeypatch.setattr(io_mteb, "MAX_JSON", 20)
    with pytest.raises(FileRefused, match=r"more than .* MiB"):
        read_predictions(saved(tmp_path / "p.json", INNER))


SCORES = {
    "Head": {"nDCG@10": 0.512345678, "R@100": 0.9, "RR@10": math.nan, "AP": None, "Success@1": 0.0},
    "Spine and Muscles": {"nDCG@10": 1.0},
    "Thorax": {"nDCG@10": None, "R@10": 0.5},
    "Abdomen": {"nDCG@10": math.nan},
}


def test_results_in_mtebs_layout(tmp_path: Path) -> None:
    path = write_results(tmp_path, "MedPix 2.0", "0123abcd", "query_to_image", "org/the model", "v1", SCORES, 12.5)
    assert path == tmp_path / "results" / "org__the_model" / "v1" / "MedPix20QueryToImage.json"
    found = json.loads(path.read_text())
    assert found["scores"] == {
        "test": [
            {
                "hf_subset": "Head",
                "languages": ["eng-Latn"],
                "main_score": 0.512345678,
                "ndcg_at_10": 0.512345678,
                "recall_at_100": 0.9,
                "hit_rate_at_1": 0.0,
            },
            {"hf_subset": "Spine and Muscles", "languages": ["eng-Latn"], "main_score": 1.0, "ndcg_at_10": 1.0},
        ]
    }
    assert found["task_name"] == path.stem and found["dataset_revision"] == "0123abcd"
    assert found["evaluation_time"] == 12.5 and found["mteb_version"] is None and "not mteb" in found["made_by"]
    meta = json.loads((path.parent / "model_meta.json").read_text())
    assert meta["name"] == "org/the model" and meta["revision"] == "v1" and "not mteb" in meta["made_by"]


def test_nothing_available_gives_no_file(tmp_path: Path) -> None:
    nothing = {domain: SCORES[domain] for domain in ("Thorax", "Abdomen")}
    assert write_results(tmp_path, "d", "i", "summary", "m", "r", nothing) is None and not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="no measure 'ndcg'"):
        write_results(tmp_path, "d", "i", "summary", "m", "r", {"Head": {"nDCG@10": 1.0, "ndcg": 1.0}})


def test_every_measure_has_mtebs_name_or_is_left_out(tmp_path: Path) -> None:
    names = [name.replace("@k", "@10") for name in SPELLINGS]
    path = write_results(tmp_path, "d", "i", "summary", "m", "r", {"Head": dict.fromkeys(names, 0.25)})
    entry = json.loads(path.read_text())["scores"]["test"][0]
    expected = {form.mteb.format(k=10) for form in SPELLINGS.values() if form.mteb}
    assert set(entry) == expected | {"hf_subset", "languages", "main_score"} and {"ndcg_at_10", "mrr_at_10"} <= expected


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "..", "", "a\nb\0", "é" * 500])
def test_names_stay_inside_the_folder(tmp_path: Path, name: str) -> None:
    path = write_results(tmp_path / "out", name, "i", "summary", name, name, {"Head": {"nDCG@10": 1.0}})
    assert path.resolve().parents[3] == (tmp_path / "out").resolve() and path.name.endswith("Summary.json")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def vectors(folder: Path, name: str, ids: list[str], rows: np.ndarray) -> tuple[Path, Path]:
    np.save(folder / f"{name}.npy", rows)
    (folder / f"{name}.txt").write_text("".join(f"{i}\n" for i in ids))
    return folder / f"{name}.npy", folder / f"{name}.txt"


def cosines(doc_ids, docs, query, depth, own=None) -> list[tuple[str, float]]:
    """One query, one document at a time, in 64 bits."""
    pairs = [(d, float(v @ query) / math.sqrt(float(v @ v) * float(query @ query))) for d, v in zip(doc_ids, docs)]  # noqa: B905
    ordered = sorted(pairs, key=lambda pair: (round(pair[1], 6), trec_name(pair[0])), reverse=True)
    return [(trec_name(d), s) for d, s in ordered if d != own][:depth]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("at_once", [1, 32_000_000])
def test_ranked_like_one_at_a_time(monkeypatch, own: bool, at_once: int) -> None:
    monkeypatch.setattr(io_mteb, "BLOCK_SCORES", at_once)
    random = np.random.default_rng(3)
    docs = random.standard_normal((30, 8)).astype(np.float32)
    docs[7], docs[20], docs[3] = docs[2], docs[2] * 4, docs[3] * 1e30  # ties, and lengths that overflow in 32 bits
    docs[4] *= 1e-30
    doc_ids = [f"d {n}" for n in range(30)]
    queries = np.concatenate([docs[[2, 5]], random.standard_normal((3, 8)).astype(np.float32)])
    query_ids = ["d 2", "d 5", "q%", "r", "s"]
    for depth in (1, 3, 30, 99):
        found = rank_vectors(doc_ids, docs, query_ids, queries, depth, own)
        assert list(found) == [trec_name(q) for q in query_ids]
        for query, row in zip(query_ids, queries.astype(np.float64), strict=True):
            expected = cosines(doc_ids, docs.astype(np.float64), row, depth, query if own else None)
            ranking = found[trec_name(query)]
            assert [d for d, _ in ranking] == [d for d, _ in expected]
            assert [s for _, s in ranking] == pytest.approx([s for _, s in expected], abs=1e-6)
            assert list(ranking) == trec_order(ranking)


def test_equal_vectors_tie_to_the_last_bit() -> None:
    random = np.random.default_rng(0)
    docs = random.standard_normal((1003, 257)).astype(np.float32)
    docs[::5] = docs[0]  # a plain matrix product gives these different scores, by where they stand
    found = rank_vectors([str(n) for n in range(1003)], docs, ["q", "r", "s"], docs[1:4] + docs[:1], 1003)
    for ranking in found.values():
        assert len({score for doc, score in ranking if int(doc) % 5 == 0}) == 1


def test_vectors_for_a_collection(tmp_path: Path) -> None:
    collection = collection_of(tmp_path, ["q 1", "q2", "q3"], ["a b", "x", "y"])
    docs = vectors(tmp_path, "docs", ["a%20b", "elsewhere", "x"], np.array([[1, 0], [1, 1], [0, 2]], np.float64))
    queries = vectors(tmp_path, "queries", ["q2", "q 1"], np.array([[3, 1], [0, 1]], np.float16))
    found = import_vectors(docs, queries, collection, 5)
    assert [d for d, _ in found.rankings["q2"]] == ["a%20b", "x"] and list(found.rankings) == ["q%201", "q2"]
    assert found.rankings["q%201"] == [("x", 1.0), ("a%20b", 0.0)]
    assert found.unknown_documents.first == ("elsewhere",) and found.absent_queries == 1 and found.lines == 4
    run = run_of_import(found, collection, "m", "org/m", "r")
    other = vectors(tmp_path, "docs", ["a%20b", "elsewhere", "x"], np.array([[1, 0], [1, 1], [0, 3]], np.float64))
    assert run_of_import(import_vectors(other, queries, collection, 5), collection, "m", "", "").info != run.info
    wide = vectors(tmp_path, "wide", ["x"], np.ones((1, 3)))
    with pytest.raises(FileRefused, match=r"wide.npy has 3 numbers a vector, queries.npy 2"):
        import_vectors(wide, queries, collection, 5)
    for ids, message in ((["zz"], "holds no id of summary/Head, which has 'a b'"), (["a b", "a%20b"], "two spellings")):
        with pytest.raises(FileRefused, match=rf"^twice.txt .*{message}"):
            import_vectors(vectors(tmp_path, "twice", ids, np.ones((len(ids), 2))), queries, collection, 5)


GOOD = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("rows", "ids", "message"),
    [
        (GOOD, ["a", "b"], r"v\.npy: shape \[3 × 4\], but v\.txt has 2 ids"),
        (GOOD, ["a", "b", "a"], r"v\.txt, line 3: 'a' stands on line 1 already"),
        (GOOD, ["a", "", "c"], r"v\.txt, line 2: no id"),
        (GOOD * [[1], [1], [0]], ["a", "b", "c"], r"v\.npy: shape \[3 × 4\], row 3 of 3 \(id 'c'\) holds only zeros"),
        (GOOD * [[1], [np.nan], [1]], ["a", "b", "c"], r"row 2 of 3 \(id 'b'\) holds NaN or infinity"),
        (GOOD * [[1e300], [1], [1]], ["a", "b", "c"], r"row 1 of 3 \(id 'a'\) holds NaN or infinity"),
        (GOOD.ravel(), ["a", "b", "c"], r"shape \[12\] of float32; needs floats, a row a vector"),
        (GOOD.astype(np.int64), ["a", "b", "c"], "of int64; needs floats"),
        (np.ones((0, 4)), [], r"shape \[0 × 4\]"),
    ],
)
def test_bad_vectors_are_named(tmp_path: Path, rows: np.ndarray, ids: list[str], message: str) -> None:
    with pytest.raises(FileRefused, match=message):
        read_vectors(*vectors(tmp_path, "v", ids, rows))


class _Trap:
    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def test_no_pickle_no_archive_no_half_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, ids = vectors(tmp_path, "v", ["a", "b", "c"], GOOD)
    archive = io.BytesIO()
    np.savez(archive, a=GOOD)
    pickled = io.BytesIO()
    np.save(pickled, np.array([[_Trap()]] * 3, object), allow_pickle=True)
    for content in (path.read_bytes()[:-1], archive.getvalue(), pickled.getvalue(), b"", b"text"):
        path.write_bytes(content)
        with pytest.raises(FileRefused, match=r"^v\.npy is no \.npy of numbers"):
            read_vectors(path, ids)
    assert not (tmp_path / "unpickled").exists()
    path.unlink()
    with pytest.raises(FileRefused, match=r"^v\.npy"):
        read_vectors(path, ids)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_damaged_header_gives_vectors_or_one_message(tmp_path_factory, data) -> None:
    path, ids = vectors(tmp_path_factory.mktemp("v"), "v", ["a", "b", "c"], GOOD)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 127))] = data.draw(st.sampled_from(b"\0\xff0123456789-,()'{}<>fiObV[ \n"))
    path.write_bytes(bytes(content))
    try:
        assert read_vectors(path, ids)[1].shape[0] == 3
    except FileRefused as error:
        assert str(error).startswith("v.npy")


def test_size_of_vectors(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(io_mteb, "MAX_VECTORS", 3 * 4 * 4)
    read_vectors(*vectors(tmp_path, "v", ["a", "b", "c"], GOOD))
    with pytest.raises(FileRefused, match=r"shape \[3 × 5\] is more than"):
        read_vectors(*vectors(tmp_path, "v", ["a", "b", "c"], np.ones((3, 5), np.float16)))


def test_shapes_that_do_not_fit() -> None:
    for docs, queries in ((GOOD[:2], GOOD), (GOOD, GOOD[:2]), (GOOD, GOOD[:, :3])):
        with pytest.raises(ValueError, match="needs a row an id"):
            rank_vectors(["a", "b", "c"], docs, ["a", "b", "c"], queries, 3)
