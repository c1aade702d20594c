"""TREC files: what is written is read, every bad line is named, hostile files are refused, known files are read."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data.dataset import open_dataset
from core.data.table import Table, write_table
from core.evaluate import io_trec
from core.evaluate.imported import FileRefused, outside_name, run_of_import
from core.evaluate.io_trec import (
    Given,
    finite,
    import_qrels,
    import_run,
    read_qrels,
    read_run,
    text_lines,
    write_qrels,
    write_run,
)
from core.evaluate.measures import per_query, trec_order
from core.evaluate.rank import qrels_of
from core.evaluate.run import Run, RunInfo, open_run, save, trec_name
from core.records import Doc, Query

INFO = RunInfo("my model", "m", "r", ("e",), "summary", "summary/Head", "none", None, "none", "exact", 100)
ODD = ["a b", "a%20b", "a%2520b", "50%", "PMC/12:3", "../../etc/passwd", "ü\u2028x", "#1", "\ufeffq", "d\t1", "x", "X"]


def collection_of(folder: Path, queries: list[str], docs: list[str]) -> SimpleNamespace:
    """The tables of a collection with these ids."""
    write_table(folder, "queries", (Query("summary/Head", i, "words") for i in queries))
    write_table(folder, "corpus", (Doc("summary/Head", i, "", "words") for i in docs))
    tables = {name: Table(folder, name) for name in ("queries", "corpus")}
    return SimpleNamespace(key="summary/Head", task="summary", **tables)


@pytest.fixture
def odd(tmp_path: Path) -> SimpleNamespace:
    return collection_of(tmp_path, ["q 1", "q2", "q3"], ODD)


def written(tmp_path: Path, content: str | bytes, name: str = "their.run") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4) | st.sampled_from(ODD)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(ids, st.dictionaries(ids, floats, min_size=1, max_size=4), min_size=1, max_size=3), st.booleans()
)
def test_run_write_read_equal(tmp_path_factory, scores: dict, packed: bool) -> None:
    folder = tmp_path_factory.mktemp("run")
    collection = collection_of(folder, list(scores), sorted({d for row in scores.values() for d in row}))
    rankings = {trec_name(q): trec_order((trec_name(d), s) for d, s in row.items()) for q, row in scores.items()}
    path = folder / ("out.run.gz" if packed else "out.run")
    write_run(path, Run(INFO, rankings))
    found = import_run(path, collection)
    assert found.rankings == rankings and found.lines == sum(map(len, scores.values()))
    assert not found.notes() and found.tag == "my%20model"
    # The store's own spelling, every id percent-encoded, is understood too.
    lines = [f"{q} Q0 {d} 0 {s:.9g} t\n" for q, ranking in rankings.items() for d, s in ranking]
    assert import_run(written(folder, "".join(lines)), collection).rankings == rankings


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(ids, st.dictionaries(ids, st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=3))
def test_qrels_write_read_equal(tmp_path_factory, qrels: dict) -> None:
    folder = tmp_path_factory.mktemp("qrels")
    collection = collection_of(folder, list(qrels), sorted({d for row in qrels.values() for d in row}))
    write_qrels(folder / "q.txt", qrels)
    found = import_qrels(folder / "q.txt", collection)
    assert found.qrels == qrels and found.unknown_documents.count == found.unknown_queries.count == 0


def test_equal_runs_are_equal_bytes(tmp_path: Path) -> None:
    rankings = {"q2": [("b", 0.5)], "q1": [("a%20b", 1.0), ("c", 1.0 / 3)], "q3": []}
    for name, order in (("a.gz", rankings), ("b.gz", dict(reversed(rankings.items())))):
        write_run(tmp_path / name, Run(INFO, order))
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    text = gzip.decompress((tmp_path / "a.gz").read_bytes()).decode()
    assert text.splitlines()[:2] == ["q1 Q0 a%20b 1 1 my%20model", "q1 Q0 c 2 0.333333333 my%20model"]
    pool = dataclasses.replace(INFO, place="pool-summary")
    write_run(tmp_path / "pool", Run(pool, {"x%2FHead/q": [("x%2FHead/a%20b", 1.0)]}))
    assert (tmp_path / "pool").read_text().startswith("x%2FHead/q Q0 x%2FHead/a%20b 1 1 ")


def test_spelling_outside() -> None:
    assert [outside_name(i) for i in ("PMC/12:3", "é", "a b", "50%", "#1")] == [
        *("PMC/12:3", "é", "a%20b", "50%25", "%231")
    ]


def test_ids_raw_and_encoded_in_one_file(odd, tmp_path: Path) -> None:
    lines = ["q%201 Q0 PMC/12:3 1 3 t", "q%201 Q0 a%20b 2 2 t", "q2 Q0 50% 1 1 t", "q2 Q0 PMC%2f12%3A3 1 2 t"]
    lines += ["q 1\tQ0\tx\t9\t1\tt with blanks"]  # between tabs an id may hold blanks
    with pytest.raises(FileRefused, match=r"query 'q 1' is there in two spellings"):
        import_run(written(tmp_path, "\n".join(lines)), odd)
    found = import_run(written(tmp_path, "\n".join(lines[:4])), odd)
    assert found.rankings == {
        "q%201": [("PMC%2F12%3A3", 3.0), ("a%20b", 2.0)],
        "q2": [("PMC%2F12%3A3", 2.0), ("50%25", 1.0)],
    }
    assert found.absent_queries == 1
    both = "q2 Q0 50% 1 1 t\nq2 Q0 50%25 1 2 t\n"
    with pytest.raises(FileRefused, match=r"document of query 'q2' is there in two spellings"):
        import_run(written(tmp_path, both), odd)


def test_a_collection_in_front_of_ids_is_understood_where_it_is_the_own(odd, tmp_path: Path) -> None:
    own, other = "summary%2FHead", "summary%2FThorax"
    lines = [f"{own}/q%201 Q0 {own}/PMC%2F12%3A3 1 3 t", f"{own}/q%201 Q0 x 1 2 t", f"q2 Q0 {own}/a%2520b 1 1 t"]
    lines += [f"{own}/q%201 Q0 {other}/x 1 1 t", f"{other}/q3 Q0 x 1 1 t", "summary%2fHead/q3 Q0 summary/Head/x 1 1 t"]
    found = import_run(written(tmp_path, "\n".join(lines)), odd)
    assert found.rankings == {"q%201": [("PMC%2F12%3A3", 3.0), ("x", 2.0)], "q2": [("a%2520b", 1.0)], "q3": []}
    assert found.unknown_documents.first == (f"{other}/x", "summary/Head/x")
    assert found.unknown_queries.first == (f"{other}/q3",)
    twice = f"q2 Q0 x 1 1 t\nq2 Q0 {own}/x 1 2 t\n"
    with pytest.raises(FileRefused, match=r"document of query 'q2' is there in two spellings"):
        import_run(written(tmp_path, twice), odd)
    with pytest.raises(FileRefused, match=r"query 'q2' is there in two spellings"):
        import_run(written(tmp_path, f"q2 Q0 x 1 1 t\n{own}/q2 Q0 X 1 2 t\n"), odd)
    judged = import_qrels(written(tmp_path, f"{own}/q2 0 {own}/x 2\n{other}/q2 0 {other}/x 1\n", "q.txt"), odd)
    assert judged.qrels == {"q2": {"x": 2}} and judged.unknown_queries.first == (f"{other}/q2",)


def test_an_id_that_begins_like_the_collection_is_itself_unless_it_is_known_without(tmp_path: Path) -> None:
    collection = collection_of(tmp_path, ["q"], ["summary%2FHead/x", "y", "summary%2FHead/y"])
    lines = [f"q Q0 summary%2FHead/{d} 1 1 t" for d in ("x", "y", "summary%252FHead%2Fy")]
    found = import_run(written(tmp_path, "\n".join(lines)), collection)
    assert {doc for doc, _ in found.rankings["q"]} == {"summary%252FHead%2Fx", "y", "summary%252FHead%2Fy"}


def test_the_rank_column_never_counts_and_ties_go_by_id(odd, tmp_path: Path) -> None:
    text = "q2 Q0 x 1 0.5 t\nq2 Q0 X 2 5e-1 t\nq2 Q0 50% 3 .75 t\n\n# comment\n"
    found = import_run(written(tmp_path, text), odd)
    assert found.rankings == {"q2": [("50%25", 0.75), ("x", 0.5), ("X", 0.5)]} and found.lines == 3


def test_unknown_ids_are_counted_and_named(odd, tmp_path: Path) -> None:
    lines = [f"q2 Q0 other{n} 1 {n} t" for n in range(7)] + ["q2 Q0 x 1 -1 t", "elsewhere Q0 x 1 1 t"]
    found = import_run(written(tmp_path, "\n".join(lines)), odd)
    assert found.rankings == {"q2": [("x", -1.0)]} and found.lines == 9
    assert (found.unknown_documents.count, found.unknown_queries.count, found.absent_queries) == (7, 1, 2)
    assert found.unknown_documents.first == tuple(f"other{n}" for n in range(5))
    assert found.notes() == [
        "1 queries of the file are not in the collection: 'elsewhere'.",
        "7 documents of the file are not in the collection and are left out, which moves those below them up: "
        "'other0', 'other1', 'other2', 'other3', 'other4', ….",
        "2 queries of the collection are not in the file and score 0.",
    ]


@pytest.mark.parametrize(("line", "what"), [("zz Q0 x 1 1 t", "query"), ("q2 Q0 zz 1 1 t", "document")])
def test_all_unknown_is_refused(odd, tmp_path: Path, line: str, what: str) -> None:
    with pytest.raises(FileRefused, match=rf"no {what} id of it is in summary/Head. The file has 'zz'; .*Choose"):
        import_run(written(tmp_path, line), odd)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q2 Q0 x 1 0.5", "5 columns where a run has six"),
        ("q2 Q0 an id 1 0.5 t", "7 columns where a run has six.*percent-encode"),
        ("q2 Q0 an id 1 0.5", r"the rank 'id' \(column 4\)"),
        ("q2 Q0 x 1 nan t", r"the score 'nan' \(column 5\) is no finite number"),
        ("q2 Q0 x 1 inf t", "no finite number"),
        ("q2 Q0 x 1 1e39 t", "no finite number"),  # beyond 32-bit floats
        ("q2 Q0 x 1 1_0 t", "no finite number"),
        ("q2 Q0 x 1 ١ t", "no finite number"),
        ("q2 Q0 x 1 0x1 t", "no finite number"),
        ("q2\tQ0\t\t1\t0.5\tt", "an empty id"),
        ("q2 Q0 50% 7 0.5 t", "document '50%' stands twice for query 'q2'"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path, f"q2 Q0 50% 1 0.5 t\n\n# comment\n{line}\n")
    with pytest.raises(FileRefused, match=f"^their.run, line 4: .*{message}"):
        read_run(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q2 x", "2 columns"),
        ("q2 0 an id 1", "5 columns"),
        ("q2 0 x -0.5", "grade '-0.5' is no whole number"),
        ("q2 0 x 1.5", "no whole number"),
        ("q2 0 x 1001", "no whole number"),
        ("query-id\tcorpus-id\tscore", "grade 'score' is no whole number"),  # a header stands on the first line only
        ("\tx\t1", "an empty id"),
        ("q1 0 x 2", "document 'x' has two grades for query 'q1'"),
    ],
)
def test_bad_judgements_are_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(FileRefused, match=f"^q.txt, line 2: .*{message}"):
        read_qrels(written(tmp_path, f"q1 0 x 1\n{line}\n", "q.txt"))


def test_judgements_in_all_spellings(tmp_path: Path) -> None:
    expected = {"q 1": {"d 1": 2, "d2": 0}}
    for text in (
        "q 1\t0\td 1\t2\nq 1\t0\td2\t0\n",
        "query-id\tcorpus-id\tscore\nq 1\td 1\t2.0\nq 1\td2\t0\n",
        "\ufeffq 1\td 1\t2\r\nq 1\td2\t0\r\n\r\n",
        "# who, when\nq 1\td 1\t2\nq 1\td2\t0\nq 1\td2\t0\nq 1\td3\t-1",  # negative: not judged
    ):
        assert read_qrels(written(tmp_path, text)) == expected
        assert read_qrels(written(tmp_path, gzip.compress(text.encode()), "no-suffix")) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no results"),
        (b"# only a comment\n\n", "holds no results"),
        (b"q Q0 d\0 1 1 t\n", "line 1: holds a NUL byte"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "line 1: not UTF-8 at byte 1"),
        (b"q Q0 d 1 1 t\n" + b"x" * 20_000, "line 2: longer than 16,384 bytes"),
        (gzip.compress(b"q Q0 d 1 1 t\n" + b"x" * 50_000_000), "line 2: longer than"),
        (gzip.compress(b"".join(b"q Q0 d%d 1 1 t\n" % n for n in range(99)))[:-9], "cannot be read after line"),
        (b"\x1f\x8b not gzip", "cannot be read after line 0"),
    ],
    ids=["empty", "comment", "NUL", "binary", "long line", "gzip bomb", "cut gzip", "no gzip"],
)
def test_hostile_files(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(FileRefused, match=f"^their.run.*{message}") as said:
        read_run(written(tmp_path, content))
    with pytest.raises(FileRefused) as given_bytes:
        read_run(Given("their.run", content))
    assert str(given_bytes.value) == str(said.value)


@pytest.mark.parametrize("packed", [False, True])
def test_bytes_read_like_a_file_of_them(tmp_path: Path, packed: bool) -> None:
    content = "\ufeffq 1\tQ0\té\t1\t.5\tt\r\n# comment\n\nq2 Q0 d 1 2e-3 other\n".encode()
    content = gzip.compress(content) if packed else content
    found = read_run(Given("their.run", content))
    assert found == read_run(written(tmp_path, content))
    assert found.scores == {"q 1": {"é": 0.5}, "q2": {"d": 0.002}} and (found.lines, found.tag) == (2, "t")
    assert found.file_hash == hashlib.sha256(content).hexdigest()[:16]
    assert list(text_lines(Given("a", content))) == list(text_lines(tmp_path / "their.run"))
    assert "q2" not in repr(Given("a", content))


def test_the_limits_of_bytes_are_their_own() -> None:
    lines = [b"q Q0 d%d 1 1 t\n" % n for n in range(4)]
    three, four = b"".join(lines[:3]), b"".join(lines)
    for most in ({"most_lines": 3}, {"most_bytes": len(three)}):
        assert read_run(Given("a.run", three, **most)).lines == 3
        for content in (four, gzip.compress(four), three + b"#" * 9):  # counted unpacked, and comments count
            with pytest.raises(FileRefused, match=r"^a.run, line 4: more than .* lines; split"):
                read_run(Given("a.run", content, **most))
    with pytest.raises(FileRefused, match="more than 2 MiB or 7 lines"):
        read_run(Given("a.run", b"#\n" * 8, 2 << 20, 7))
    bomb = gzip.compress(b"# nothing\n" * 2_000_000)  # 20 MB from 50 kB
    with pytest.raises(FileRefused, match="line 104858: more than 1 MiB"):
        read_run(Given("a.run", bomb, 1 << 20))


@settings(max_examples=300, deadline=None)
@given(st.floats() | st.integers(-(10**39), 10**39) | st.sampled_from([3.4028235677973366e38, 3.4028235677973362e38]))
def test_finite_is_finite_as_a_32_bit_float(value: float) -> None:
    for number in (value, -value):
        with np.errstate(over="ignore"):
            expected = float(number) if np.isfinite(np.float32(number)) else None
        assert finite(repr(number)) == expected


@pytest.mark.parametrize("limit", ["MAX_LINES", "MAX_BYTES"])
def test_limits(tmp_path: Path, monkeypatch, limit: str) -> None:
    lines = [f"q Q0 d{n} 1 1 t\n" for n in range(4)]
    monkeypatch.setattr(io_trec, limit, 3 if limit == "MAX_LINES" else sum(map(len, lines[:3])))
    assert read_run(written(tmp_path, "".join(lines[:3]))).lines == 3
    with pytest.raises(FileRefused, match=r"line 4: more than .* lines; split"):
        read_run(written(tmp_path, gzip.compress("".join(lines).encode())))  # counted after decompression


def test_no_such_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileRefused, match=f"{path.name} cannot be read"):
            list(text_lines(path))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80) | st.text("q0 \t\n#%é.1e", max_size=60).map(str.encode))
def test_any_bytes_give_results_or_one_message(tmp_path_factory, content: bytes) -> None:
    path = written(tmp_path_factory.mktemp("any"), content)
    told = []
    for read, file in ((read_run, path), (read_run, Given("their.run", content)), (read_qrels, path)):
        try:
            told.append(read(file))
            assert told[-1]
        except FileRefused as error:
            assert str(error).startswith("their.run") and "\n" not in str(error)
            told.append(str(error))
    assert told[0] == told[1]


def test_an_imported_run_is_stored_and_measured(toy: Path, workspace, tmp_path: Path) -> None:
    dataset = open_dataset(toy, workspace)
    collection = dataset.collections["query_to_image/Head"]
    path = written(tmp_path, "a1 Q0 a1 1 9 t\na1 Q0 a2 2 3 t\na2 Q0 a2 1 9 t\n")
    found = import_run(path, collection, dataset.ignore_identical_ids)
    assert found.rankings == {"a1": [("a2", 3.0)], "a2": []} and found.own_documents == 2
    assert "2 results are the query itself" in found.notes()[-1]
    assert import_run(path, collection).rankings["a1"] == [("a1", 9.0), ("a2", 3.0)]
    run = run_of_import(found, collection, "theirs", "org/theirs", "v1")
    assert run.info.place == collection.key and run.info.task == "query_to_image" and run.info.fusion == "imported"
    assert len(run.info.encoder_ids[0]) == 16 and run.info.depth == 1
    measures = per_query(run.rankings, qrels_of(collection, list(collection.all_queries())))
    assert measures["Success@10"] == {"a1": 1.0, "a2": 0.0}
    assert open_run(save(workspace.root, dataset.data_id, run, measures, {})).run == run
    other = import_run(written(tmp_path, "a1 Q0 a2 2 4 t\n"), collection)
    assert run_of_import(other, collection, "theirs", "org/theirs", "v1").info.run_id != run.info.run_id


@pytest.mark.realdata
def test_nist_files(shared: Path) -> None:
    folder = shared / "eval" / "trec_eval"
    full, cut = read_run(folder / "results.test"), read_run(folder / "results.trunc")
    assert sorted(full.scores) == ["301", "302", "303"] and full.lines == 1500 and full.tag == "STANDARD"
    assert cut.tag == "STANDARD more junk at" and cut.lines == 584  # blanks after a tab belong to the cell
    run, judged = read_run(folder / "results.comment.test").scores, read_qrels(folder / "qrels.comment.test")
    both = [query for query in run if query in judged]
    assert (len(both), sum(len(run[query]) for query in both)) == (31, 3100)  # num_q and num_ret of out.comment.test
    qrels = read_qrels(folder / "qrels.test")
    commented = read_qrels(folder / "qrels.test.with-comments")  # a # within an id, as NIST has one, is no comment
    assert sum("#" in d for row in commented.values() for d in row) == 1
    assert {q: {d.replace("#", ""): g for d, g in row.items()} for q, row in commented.items()} == qrels
    for several in ("qrels.123", "qrels.comments.123"):  # several assessors who differ, and -1 for not judged
        with pytest.raises(FileRefused, match="has two grades for query '301'"):
            read_qrels(folder / several)
    lines = (folder / "qrels.test").read_text().split("\n")
    assert sum(map(len, qrels.values())) == len(lines) - 1
    found = per_query({q: list(row.items()) for q, row in full.scores.items()}, qrels, ["nDCG@10"])["nDCG@10"]
    values = {tuple(line.split()[:2]): line.split()[2] for line in (folder / "out.test.aq").read_text().splitlines()}
    assert {q: f"{v:.4f}" for q, v in found.items()} == {q: values["ndcg_cut_10", q] for q in found}
    with pytest.raises(FileRefused, match=r"prefs.rank20, line 1: 5 columns"):
        read_run(folder / "prefs.rank20")


@pytest.mark.realdata
def test_trec_covid_runs(shared: Path) -> None:
    folder = shared / "eval" / "trec_covid_round1"
    qrels = read_qrels(folder / "qrels-rnd1.txt")
    for name, queries in json.loads((folder / "expected_per_query.json").read_text()).items():
        run = read_run(folder / "runs" / name)
        found = per_query({q: list(row.items()) for q, row in run.scores.items()}, qrels, ["nDCG@10"])["nDCG@10"]
        assert found == pytest.approx({q: row["ndcg_cut_10"] for q, row in queries.items()}, abs=1e-6)


@pytest.mark.realdata
def test_other_real_files(shared: Path) -> None:
    ranx, others = shared / "eval" / "ranx", shared / "eval"
    assert read_run(ranx / "run.trec").scores == json.loads((ranx / "run.json").read_text())
    assert read_run(ranx / "run.trec.gz").scores == read_run(ranx / "run.trec").scores
    assert read_qrels(ranx / "qrels.trec") == json.loads((ranx / "qrels.json").read_text())
    assert read_qrels(ranx / "qrels.trec.gz") == read_qrels(ranx / "qrels.trec")
    for name in ("run.lz4", "run.parquet", "run.json"):
        with pytest.raises(FileRefused, match=f"^{name}"):
            read_run(ranx / name)
    assert read_run(others / "ir_measures" / "cwl.run").lines == 30
    for path in sorted((others / "qrels").iterdir()) + sorted(others.glob("*_beir/qrels/test.tsv")):
        cells = [line.split() for line in path.read_text().splitlines()]
        expected = {(c[0], c[-2]): float(c[-1]) for c in cells if c[-1] != "score"}
        assert {(q, d): g for q, row in read_qrels(path).items() for d, g in row.items()} == expected
    assert np.float32(read_run(others / "ir_measures" / "compat.run").scores["31_1"]["MARCO_2925879"]) == 1000
