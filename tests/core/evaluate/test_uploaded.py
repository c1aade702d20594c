"""Runs that are brought: every query to its collection, documents within it, the rest counted, bad files refused."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.data.dataset import open_dataset
from core.data.layouts import DataError
from core.data.names import trec_id, trec_name
from core.data.table import Table, write_table
from core.evaluate import uploaded
from core.evaluate.imported import FileRefused, outside_name
from core.evaluate.io_trec import import_run
from core.evaluate.measures import ALL
from core.evaluate.run import open_run, stored_runs
from core.evaluate.uploaded import LONGEST, checked_name, read_upload, store_upload
from core.models import specs
from core.records import Doc, Query

HEAD, SPINE, NECK = "summary/Head", "summary/Spine and Muscles", "summary/Neck"
IN_HEAD, IN_SPINE, IN_NECK = "summary%2FHead", "summary%2FSpine%20and%20Muscles", "summary%2FNeck"


@pytest.fixture(scope="module")
def brought(tmp_path_factory) -> SimpleNamespace:
    """Three collections of a task with ids of every kind; "both" is a query and a document of two, Neck lists only
    relevant documents. Another task has a collection of the same ids as Head."""
    from core.store.workspace import open_workspace

    base = tmp_path_factory.mktemp("brought")
    content = {
        "summary/Head": (["both", "q 2", "50%", "a/b"], ["both", "d 1", "x/y", "100%", "a%20b"], (2, 0)),
        "summary/Spine and Muscles": (["both", "s1"], ["both", "s d"], (1, 0)),
        "summary/Neck": (["n1"], ["n1", "n2", "n3"], (2, 2)),
        "case_study/Head": (["both", "other task"], ["both", "d 1"], (2, 0)),
    }
    for path, (queries, docs, grades) in content.items():
        folder = base / "data" / path
        (folder / "qrels").mkdir(parents=True)
        for name, ids in (("queries", queries), ("corpus", docs)):
            rows = ({"_id": i, "text": f"{name} {i}", "meta": {"cluster": i}} for i in ids)
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        pairs = ((q, docs[at], grade) for q in queries for at, grade in enumerate(grades))
        lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, pair)) for pair in pairs)]
        (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    (base / "data" / "benchmark.json").write_text(json.dumps({"name": "Brought", "ignore_identical_ids": True}))
    workspace = open_workspace(str(base / "workspace"))
    return SimpleNamespace(dataset=open_dataset(base / "data", workspace), workspace=workspace)


def run_of(*lines: str) -> bytes:
    """A run with these queries and documents, the first the best."""
    return "".join(f"{line.replace(' ', ' Q0 ')} {n} {9 - n} t\n" for n, line in enumerate(lines, 1)).encode()


def read(brought, data: bytes, collection: str | None = None, task: str = "summary", name: str = "run.txt"):
    return read_upload(data, name, brought.dataset, task, "theirs", "v1", collection)


def found(upload) -> dict[str, dict[str, list[str]]]:
    """The documents of each query of each collection, as they stand in the rankings."""
    return {k: {q: [d for d, _ in row] for q, row in i.rankings.items()} for k, i in upload.imported.items()}


def test_every_query_goes_to_its_collection_plain_or_with_the_collection_in_front(brought) -> None:
    data = run_of(
        *(f"{IN_HEAD}/both d%201", f"{IN_HEAD}/both {IN_HEAD}/x%2Fy", f"{IN_HEAD}/both 100%"),
        *(f"{IN_SPINE}/both both", f"{IN_SPINE}/both s%20d"),
        *("q%202 both", f"50% {IN_HEAD}/a%2520b", "a/b x/y", f"{IN_NECK}/n1 n2", f"{IN_NECK}/n1 {IN_NECK}/n3"),
    )
    upload = read(brought, data)
    assert found(upload) == {
        HEAD: {
            "both": ["d%201", "x%2Fy", "100%25"],
            "q%202": ["both"],
            "50%25": ["a%2520b"],
            "a%2Fb": ["x%2Fy"],
        },
        NECK: {"n1": ["n2", "n3"]},
        SPINE: {"both": ["s%20d"]},  # the document "both" is the query itself
    }
    assert (upload.name, upload.revision, upload.task, upload.lines) == ("theirs", "v1", "summary", 10)
    assert [one.lines for one in upload.imported.values()] == [6, 2, 2]
    assert upload.notes == (
        f"{SPINE}: 1 queries of the collection are not in the file and score 0.",
        f"{SPINE}: 1 results are the query itself and are left out.",
    )
    assert read(brought, gzip.compress(data)).imported[HEAD].rankings == upload.imported[HEAD].rankings
    assert {one.file_hash for one in upload.imported.values()} == {upload.file_hash}


def test_a_plain_query_of_several_collections_is_refused_with_the_spellings_that_tell(brought) -> None:
    data = run_of("s1 both", "both both", "both s%20d")
    with pytest.raises(FileRefused) as refused:
        read(brought, data)
    assert str(refused.value) == (
        f"run.txt: query 'both' is in {HEAD} and {SPINE}; write it as {IN_HEAD}/both or {IN_SPINE}/both, its documents "
        "alike or as they are, or choose one collection."
    )
    for key in (HEAD, SPINE):  # both ways out lead out
        spelled = data.replace(b"both Q0", f"{trec_name(key)}/both Q0".encode())
        assert list(read(brought, spelled).imported) == ([HEAD, SPINE] if key == HEAD else [SPINE])
    assert found(read(brought, data, SPINE)) == {SPINE: {"s1": ["both"], "both": ["s%20d"]}}


def test_documents_of_other_collections_are_unknown_and_counted(brought) -> None:
    lines = (f"{IN_HEAD}/q%202 {IN_SPINE}/both", "q%202 s%20d", f"q%202 {IN_HEAD}/both", f"q%202 {IN_NECK}/n1")
    upload = read(brought, run_of(*(line.replace("q%202", f"{IN_HEAD}/q%202", line[0] == "q") for line in lines)))
    assert found(upload) == {HEAD: {"q%202": ["both"]}}
    assert upload.imported[HEAD].unknown_documents.count == 3
    assert upload.notes == (
        f"{HEAD}: 3 documents of the file are not in the collection and are left out, which moves those below them "
        f"up: '{IN_SPINE}/both', 's%20d', '{IN_NECK}/n1'.",
        f"{HEAD}: 3 queries of the collection are not in the file and score 0.",
        f"The file has no query of {NECK}, so Neck is N/A.",
        f"The file has no query of {SPINE}, so Spine and Muscles is N/A.",
    )


def test_unknown_queries_are_counted_and_named(brought) -> None:
    strange = [f"strange{n} both" for n in range(6)]
    upload = read(brought, run_of("other%20task both", f"case_study%2FHead/both {IN_HEAD}/both", *strange, "s1 both"))
    assert found(upload) == {SPINE: {"s1": ["both"]}}
    assert upload.notes[0] == (
        "8 queries of the file are not in summary: 'other%20task', 'case_study%2FHead/both', 'strange0', 'strange1', "
        "'strange2', …."
    )
    alone = read(brought, run_of(f"{IN_HEAD}/both both", "s1 both"), SPINE)
    assert found(alone) == {SPINE: {"s1": ["both"]}}
    assert alone.notes[0] == f"1 queries of the file are not in {SPINE}: '{IN_HEAD}/both'."
    assert not any("N/A" in note for note in alone.notes)


def test_a_file_of_other_data_is_refused(brought) -> None:
    for lines, collection, message in (
        (["zz both"], None, "no query id of it is in summary. The file has 'zz'; summary/Head has 'both', 'q 2', "),
        (["s1 both"], HEAD, "no query id of it is in summary/Head. The file has 's1'; the collection has 'both', "),
        (["s1 zz", "n1 zz"], None, "no document id of it is in summary. The file has 'zz'; summary/Neck has 'n1', "),
        (["s1 zz"], SPINE, f"no document id of it is in {SPINE}. The file has 'zz'; the collection has 'both', 's d'"),
    ):
        with pytest.raises(FileRefused) as refused:
            read(brought, run_of(*lines), collection)
        assert str(refused.value).startswith(f"run.txt: {message}") and "that the file was made for" in str(
            refused.value
        )
    upload = read(brought, run_of("s1 both", "n1 zz"))  # one collection without a known document is not the whole file
    assert found(upload) == {NECK: {"n1": []}, SPINE: {"s1": ["both"]}}
    assert f"{NECK}: 1 documents of the file are not in the collection" in upload.notes[0]
    assert found(read(brought, run_of("n1 n1"))) == {NECK: {"n1": []}}  # its own document is known, and no answer


def test_two_spellings_of_one_id_are_refused(brought) -> None:
    for lines, message in (
        (["n1 n2", f"{IN_NECK}/n1 n3"], "query 'n1' is there in two spellings; keep one"),
        (["n1 n2", f"n1 {IN_NECK}/n2"], "a document of query 'n1' is there in two spellings; keep one"),
        (["q%202 x/y", "q%202 x%2Fy"], "a document of query 'q%202' is there in two spellings; keep one"),
    ):
        with pytest.raises(FileRefused, match=f"^run.txt: {message}"):
            read(brought, run_of(*lines))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"s1 Q0 both 7 many t\n", r"line 7: the score 'many' \(column 5\) is no finite number"),
        (b"s1 Q0 both 7\n", "line 7: 4 columns where a run has six"),
        (b"s1 Q0 d1 7 1 t\n", "line 7: document 'd1' stands twice for query 's1'"),
        (b"s1 Q0 \0 7 1 t\n", "line 7: holds a NUL byte"),
        (b"s1 Q0 \xe9 7 1 t\n", "line 7: not UTF-8 at byte 7"),
        (b"s1 Q0 " + b"x" * 17_000 + b" 7 1 t\n", "line 7: longer than 16,384 bytes"),
    ],
    ids=["score", "columns", "twice", "NUL", "bytes", "long"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_broken_line_is_named_with_the_file(brought, bad: bytes, message: str, packed: bool) -> None:
    data = b"".join(b"s1 Q0 d%d %d 1 t\n" % (n, n) for n in range(1, 7)) + bad + b"s1 Q0 both 8 1 t\n"
    with pytest.raises(FileRefused, match=f"^run.txt, {message}"):
        read(brought, gzip.compress(data) if packed else data)


def test_empty_and_cut_files_are_refused(brought) -> None:
    for data in (b"", b"# nothing\n\n", gzip.compress(b"")):
        with pytest.raises(FileRefused, match=r"^run.txt holds no results"):
            read(brought, data)
    noise = random.Random(1).randbytes(3000).hex()
    with pytest.raises(FileRefused, match=r"^run.txt cannot be read after line"):
        read(brought, gzip.compress(b"s1 Q0 both 1 1 t\n# " + noise.encode() + b"\n")[:-900])


def test_an_upload_is_bounded_when_unpacked(brought, monkeypatch) -> None:
    with pytest.raises(FileRefused, match=r"^run.txt, line \d+: more than 64 MiB or 1,000,000 lines"):
        read(brought, gzip.compress((b"#" * 9999 + b"\n") * 7_000))  # 70 MB from 70 kB
    data = run_of("s1 both", "n1 n2", "n1 n3")
    for name, least in (("MAX_BYTES", len(data)), ("MAX_LINES", 3)):
        with monkeypatch.context() as tight:
            tight.setattr(uploaded, name, least)
            assert read(brought, data).lines == 3
            tight.setattr(uploaded, name, least - 1)
            with pytest.raises(FileRefused, match=r"^run.txt, line 3: more than"):
                read(brought, data)


def test_names_of_files_tasks_collections_and_revisions_are_checked(brought) -> None:
    good = run_of("s1 both")
    for name, shown in (("a\n\ud800\0b.run", "a???b.run"), ("", "the file"), ("\u202egpj.run", "?gpj.run")):
        with pytest.raises(FileRefused) as refused:
            read(brought, b"", name=name)
        assert str(refused.value).startswith(f"{shown} holds no results")
    with pytest.raises(FileRefused, match=f"^There is no collection 'summary/x' of summary; there are: {HEAD}, {NECK}"):
        read(brought, good, "summary/x")
    with pytest.raises(FileRefused, match="no collection 'case_study/Head' of summary"):
        read(brought, good, "case_study/Head")
    with pytest.raises(DataError, match="no task 'nowhere'"):
        read(brought, b"not even a run", task="nowhere")
    for revision, kept in (("", "not stated"), ("  v 2 ", "v 2"), ("x" * LONGEST, "x" * LONGEST)):
        assert read_upload(good, "a", brought.dataset, "summary", "theirs", revision).revision == kept
    for revision in ("x" * (LONGEST + 1), "a\nb"):
        with pytest.raises(FileRefused, match="The revision has at most 60 printable characters"):
            read_upload(good, "a", brought.dataset, "summary", "theirs", revision)


def test_names_of_models() -> None:
    for name, kept in (("mine", "mine"), ("  My  model ", "My model"), ("é" * LONGEST, "é" * LONGEST)):
        assert checked_name(name, {"other"}) == kept
    for name, message in (
        ("", "The model has no name"),
        ("   ", "The model has no name"),
        ("x" * (LONGEST + 1), "at most 60 printable characters"),
        ("a\nb", "at most 60 printable characters"),
        ("a\tb", "at most 60 printable characters"),
        ("a\x00b", "at most 60 printable characters"),
        ("a\u202eb", "at most 60 printable characters"),
        ("rrf:a+b", "The name of a model has no colon"),
        (" bm25", "'bm25' is the name of a model that makes its own runs"),
        ("other", "called 'other' already"),
        ("other ", "called 'other' already"),
    ):
        with pytest.raises(FileRefused, match=message) as refused:
            checked_name(name, {"other"})
        assert str(refused.value).count("\n") == 0 and isinstance(refused.value, ValueError)
    for name in specs.SPECS:
        with pytest.raises(FileRefused, match="makes its own runs"):
            checked_name(name, ())


def test_bytes_are_read_as_the_file_of_them_is(brought, tmp_path: Path) -> None:
    data = run_of("both d%201", "both zz", "zz both", "q%202 both", "50% x/y")
    path = tmp_path / "run.txt"
    for content in (data, gzip.compress(data)):
        path.write_bytes(content)
        member = brought.dataset.collections[HEAD]
        expected = import_run(path, member, brought.dataset.ignore_identical_ids)
        upload = read(brought, content, HEAD)
        one = upload.imported[HEAD]
        assert (one.rankings, one.unknown_documents, one.absent_queries, one.tag, one.file_hash) == (
            *(expected.rankings, expected.unknown_documents, expected.absent_queries, expected.tag, expected.file_hash),
        )
        assert upload.lines == expected.lines == 5 and len(upload.notes) == len(expected.notes()) == 3


def test_an_upload_is_stored_a_run_a_collection(brought) -> None:
    data = run_of(f"{IN_HEAD}/both d%201", f"{IN_HEAD}/both both", "s1 both", "n1 n3", "n1 n2")
    upload = read(brought, data)
    made = store_upload(upload, brought.dataset, brought.workspace)
    assert [one.info.place for one in made] == list(upload.imported) == [HEAD, NECK, SPINE]
    for one in made:
        stored = open_run(one.folder)
        assert stored.run.rankings == upload.imported[one.info.place].rankings
        assert (stored.info.model, stored.info.model_id, stored.info.revision) == ("theirs", "theirs", "v1")
        assert stored.info.encoder_ids[0] == upload.file_hash and stored.info.index_kind == "imported"
        zeros = {"Judged@10", "bpref", "condensed nDCG@10"} if one.info.place == NECK else set()  # positives only
        assert set(stored.measures) == set(ALL) - zeros
        assert stored.facts["notes"] == upload.imported[one.info.place].notes()
    head, neck, _ = (open_run(one.folder).measures for one in made)
    assert head["Success@10"] == {"both": 0.0, "q%202": 0.0, "50%25": 0.0, "a%2Fb": 0.0}
    # The relevant documents of n1 are n1 itself, which is no answer, and n2 at rank 2.
    assert neck["RR@10"] == {"n1": 0.5}
    (again, *_) = store_upload(upload, brought.dataset, brought.workspace, "org/theirs")
    assert open_run(again.folder).info.model_id == "org/theirs" and again.folder != made[0].folder, (
        "two names, two runs"
    )
    assert store_upload(upload, brought.dataset, brought.workspace)[0].folder == made[0].folder


def test_nothing_is_stored_of_a_file_that_fails_late(brought, tmp_path: Path) -> None:
    from core.store.workspace import open_workspace

    workspace = open_workspace(str(tmp_path / "fresh"))
    with pytest.raises(FileRefused):
        store_upload(read(brought, run_of("n1 n2", "both both")), brought.dataset, workspace)
    assert stored_runs([workspace.root], brought.dataset.data_id) == ([], [])


IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), min_size=1, max_size=3) | st.sampled_from(
    ["a", "a b", "a%20b", "a%2520b", "50%", "x/y", "summary%2FHead/a", "#1", "\ufeffa"]
)
TABLE = st.lists(IDS, min_size=1, max_size=4, unique=True)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_pools_write_is_what_is_read(tmp_path_factory, data) -> None:
    """Any ids, spelled with the collection in front or as files for others have them: the same rankings come back."""
    folder, members, expected, lines = tmp_path_factory.mktemp("any"), [], {}, []
    for key in (HEAD, SPINE):
        place = folder / trec_name(key)
        place.mkdir()
        queries, docs = data.draw(TABLE), data.draw(TABLE)
        write_table(place, "queries", (Query(key, i, "words") for i in queries))
        write_table(place, "corpus", (Doc(key, i, "", "words") for i in docs))
        tables = {name: Table(place, name) for name in ("queries", "corpus")}
        members.append(SimpleNamespace(key=key, task="summary", domain=key, **tables))
        expected[key] = {}
        for query in queries:
            chosen = data.draw(st.lists(st.sampled_from(docs), min_size=1, unique=True))
            for rank, doc in enumerate(chosen, 1):
                front = data.draw(st.booleans()) or doc.startswith("summary%2FHead/")
                spelled = trec_id(key, doc) if front else outside_name(doc)
                lines.append(f"{trec_id(key, query)}\tQ0\t{spelled}\t1\t{-rank}\tt")
            expected[key][trec_name(query)] = [trec_name(doc) for doc in chosen]
    dataset = SimpleNamespace(pool=lambda task: SimpleNamespace(collections=members), ignore_identical_ids=False)
    data.draw(st.randoms()).shuffle(lines)
    upload = read_upload("\n".join(lines).encode(), "a.run", dataset, "summary", "theirs")
    assert found(upload) == expected and upload.notes == ()


def test_a_data_set_is_what_the_tests_say_it_is(brought) -> None:
    dataset = brought.dataset
    assert [one.key for one in dataset.pool("summary").collections] == [HEAD, NECK, SPINE]
    assert [one.positives_only for one in dataset.pool("summary").collections] == [False, True, False]
    assert {fault.kind for fault in dataset.faults} == {"id_whitespace"}
