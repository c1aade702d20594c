"""The sheet of a case: ranks, moves, judgements and pictures of planted rankings, and of a stored run."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from core.analyze.case import MOST_COLUMNS, NO_ANSWER, PINNED, SEEN, case_sheet
from core.analyze.desk import Desk
from core.analyze.diagnosis import Diagnosis
from core.analyze.failures import NEAR_MISS, UNJUDGED
from core.analyze.rejudge import Annotations, Judged
from core.analyze.shares import Shares
from core.analyze.task_runs import TaskRun
from core.data.dataset import open_dataset
from core.data.names import document
from core.embed.pipeline import Pipeline
from core.evaluate.make import make_run
from core.media.phash import Hashes
from core.models import specs
from core.records import QueryError
from core.retrievers.dense import Dense
from core.retrievers.fair import Fair
from core.retrievers.lexical import Lexical
from core.retrievers.place import Place

HEAD = "query_to_image/Head"
KEY = (HEAD, "q")
LONG = "word " * 60


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


@pytest.fixture
def dataset(tmp_path, collection_writer, workspace):
    """Documents d0 … d39: d0 without picture and with a long text, d1 with a lost picture, the others with one."""
    root = tmp_path / "wide"
    (root / "images").mkdir(parents=True)
    meta = {"domain": "Head", "specialty": "Brain", "modality": "CT", "cluster": "topic one"}
    docs = []
    for i in range(40):
        Image.new("RGB", (8, 8), (6 * i, 9, 9)).save(root / "images" / f"{i}.png")
        doc = {"_id": f"d{i}", "text": "", "image_path": f"images/{i if i != 1 else 'gone'}.png", "meta": meta}
        docs.append(doc if i else {"_id": "d0", "title": "A title", "text": f"first\n{LONG}", "meta": meta})
    queries = [
        {"_id": "q", "caption": "all the words\nof it", "image_path": ["images/2.png", "images/none.png"], "meta": meta}
    ]
    collection_writer(root / HEAD, queries, docs, [("q", "d2", 2), ("q", "d3", 0)])
    return open_dataset(root, workspace)


def planted(dataset, hits, relevant, label="one", seen=(), found=None, overlay="", value=0.25, depth=100) -> Diagnosis:
    """A diagnosis of query q: ``hits`` are (number of the document, grade) by rank, ``relevant`` number -> (grade,
    rank)."""
    run = TaskRun(label, label, f"{label}-id", "r1", "query_to_image", "pool", (), frozenset(seen), "by hand")
    columns = {
        "rows": [number for number, _ in hits],
        "scores": [1 - rank / 100 for rank in range(len(hits))],
        "grades": [grade for _, grade in hits],
        "relevant": list(relevant),
        "relevant_grades": [grade for grade, _ in relevant.values()],
        "relevant_ranks": [rank for _, rank in relevant.values()],
    }
    there = [] if KEY in seen else [0]
    ranks = [rank for _, rank in relevant.values() if rank]
    return Diagnosis(
        dataset=dataset,
        run=run,
        depth=depth,
        overlay=overlay,
        run_ids=(f"{label}-run",),
        queries=tuple(dataset.collections[HEAD].query("q") for _ in there),
        clusters=tuple("cluster:topic one" for _ in there),
        first=np.array([min(ranks, default=0) for _ in there], np.int32),
        values={"nDCG@10": np.array([value for _ in there])},
        found=tuple(found or {} for _ in there),
        not_available={},
        ablation={},
        top=tuple({} for _ in there),
        _table=pa.table({name: [values] for name, values in columns.items()}),
        _rows=np.array(there, np.int64),
    )


def numbered(*numbers: int) -> list[tuple[int, int]]:
    return [(number, UNJUDGED) for number in numbers]


def test_every_line_is_the_hit_of_the_run_and_moves_are_differences_of_ranks(dataset, workspace):
    chance = random.Random(7)
    orders = [chance.sample(range(2, 30), 20) for _ in range(3)]
    runs = [planted(dataset, numbered(*o), {2: (2, o.index(2) + 1)}, f"m{i}") for i, o in enumerate(orders) if 2 in o]
    orders = [o for o in orders if 2 in o]
    case = case_sheet(dataset, workspace, runs, KEY, 4, 9)
    assert len(runs) >= 2 and (case.at, case.of, case.k, case.measure) == (4, 9, 10, "nDCG@10")
    for order, column in zip(orders, case.columns, strict=True):
        assert [case.documents[line.document].id for line in column.lines] == [f"d{n}" for n in order[:10]]
        assert [line.rank for line in column.lines] == list(range(1, 11))
        for line, number in zip(column.lines, order, strict=False):
            before = orders[0].index(number) + 1 if number in orders[0] else None
            assert line.before == before and line.score == pytest.approx(1 - (line.rank - 1) / 100)
        assert column.known == 20
    shown = [(d.collection, d.id) for d in case.documents]
    assert len(shown) == len(set(shown)) == len({2, *(n for o in orders for n in o[:10])})


def test_a_relevant_document_beyond_the_kept_hits_tells_where_it_came_from(dataset, workspace):
    first = planted(dataset, numbered(*range(5, 25)), {2: (2, 77)})
    second = planted(dataset, [(2, 2), *numbered(*range(5, 14))], {2: (2, 1)}, "two")
    case = case_sheet(dataset, workspace, [first, second], KEY, 0, 1)
    assert case.columns[1].lines[0].before == 77


def test_gold_rows_stand_best_first_with_their_ranks_under_every_model(dataset, workspace):
    one = planted(dataset, [(4, 1), *numbered(8)], {2: (2, 0), 3: (2, 55), 4: (1, 1), 5: (1, 0)})
    two = planted(dataset, numbered(9), {2: (2, 60), 3: (2, 0), 4: (1, 0), 5: (1, 0)}, "two")
    three = planted(dataset, [], {}, "three", seen=[KEY])
    case = case_sheet(dataset, workspace, [one, two, three], KEY, 0, 1)
    rows = [(case.documents[g.document].id, g.ranks) for g in case.gold]
    assert rows == [
        ("d3", (55, 0, None)),
        ("d2", (0, 60, None)),
        ("d4", (1, 0, None)),
        ("d5", (0, 0, None)),
    ]
    assert [case.documents[g.document].judgement for g in case.gold] == ["relevant-2"] * 2 + ["relevant-1"] * 2
    assert [(c.first, c.failed, c.reason) for c in case.columns] == [(1, False, ""), (60, True, ""), (0, False, SEEN)]
    assert case.columns[2].value is None and case.columns[2].lines == () and case.columns[2].kinds == ()
    assert case.columns[0].value == 0.25 and case.columns[0].depth == 100 and case.columns[0].source == "by hand"


def test_a_run_without_the_query_is_not_called_seen_and_a_missing_value_is_not_zero(dataset, workspace):
    lacking = planted(dataset, [], {}, seen=[KEY])
    object.__setattr__(lacking.run, "seen", frozenset())
    nan = planted(dataset, numbered(2), {2: (2, 1)}, "nan", value=math.nan)
    case = case_sheet(dataset, workspace, [lacking, nan], KEY, 0, 1)
    assert [c.reason for c in case.columns] == [NO_ANSWER, ""] and case.columns[1].value is None
    assert case.columns[1].lines[0].before is None
    assert case_sheet(dataset, workspace, [nan], KEY, 0, 1, measure="R@7").columns[0].value is None


def test_kinds_have_evidence_and_the_depth_follows_k(dataset, workspace):
    found = {"tie": "a tie", "wrong domain": "elsewhere"}
    run = planted(dataset, numbered(*range(5, 25)), {2: (2, 15)}, found=found)
    (column,) = case_sheet(dataset, workspace, [run], KEY, 0, 1).columns
    assert [(k.name, k.evidence) for k in column.kinds] == [
        (NEAR_MISS, "first relevant document at rank 15"),
        ("wrong domain", "elsewhere"),
        ("tie", "a tie"),
    ]
    assert all(kind.sentence for kind in column.kinds) and column.failed
    (column,) = case_sheet(dataset, workspace, [run], KEY, 0, 1, k=20).columns
    assert [k.name for k in column.kinds] == ["wrong domain", "tie"] and not column.failed


def test_judgements_and_the_latest_word_on_each_document(dataset, workspace):
    hits = [(3, 0), (2, 2), (7, UNJUDGED)]
    run = planted(dataset, hits, {2: (2, 2)})
    said = [("d7", "2", "b", "2026-01-01T00:00:00Z"), ("d7", "unsure", "a", "2026-02-01T00:00:00Z")]
    said += [("d3", "1", "a", "2026-01-01T00:00:00Z")]
    annotations = Annotations(judged=tuple(Judged(*KEY, HEAD, *row) for row in said))
    case = case_sheet(dataset, workspace, [run], KEY, 0, 1, annotations)
    about = {doc.id: (doc.judgement, doc.anew) for doc in case.documents}
    assert about == {"d2": ("relevant-2", ""), "d3": ("not-relevant", "1"), "d7": ("unjudged", "unsure")}


def test_pictures_stand_for_what_is_shown_and_say_why_one_is_missing(dataset, workspace):
    many = dict.fromkeys(range(10, 10 + PINNED + 4), (1, 0))
    case = case_sheet(dataset, workspace, [planted(dataset, numbered(0, 1, 2), many)], KEY, 0, 1)
    by_id = {doc.id: doc for doc in case.documents}
    assert by_id["d0"].picture is None and by_id["d0"].pictures == 0 and by_id["d0"].title == "A title"
    assert by_id["d0"].beginning.startswith("first word word") and by_id["d0"].beginning.endswith("word …")
    assert len(by_id["d0"].beginning) < 210
    assert by_id["d1"].picture.uri is None and "gone.png" in by_id["d1"].picture.problem
    assert by_id["d2"].picture.uri.startswith("data:image/webp;base64,")
    pinned = [case.documents[g.document].picture is not None for g in case.gold]
    assert pinned == [True] * PINNED + [False] * 4
    query = case.query
    assert query.text == "all the words\nof it" and query.cluster == "cluster:topic one" and query.domain == "Head"
    assert query.pictures[0].uri and not query.pictures[1].uri and "none.png" in query.pictures[1].problem
    assert query.facets == ("Brain", "CT") and query.task == "Query to image"


def test_what_cannot_be_one_sheet_is_refused(dataset, workspace):
    run = planted(dataset, numbered(2), {2: (2, 1)})
    with pytest.raises(ValueError, match="1 to 4"):
        case_sheet(dataset, workspace, [], KEY, 0, 1)
    with pytest.raises(ValueError, match="1 to 4"):
        case_sheet(dataset, workspace, [run] * (MOST_COLUMNS + 1), KEY, 0, 1)
    with pytest.raises(ValueError, match="judged differently"):
        anew = planted(dataset, numbered(2), {2: (2, 1)}, overlay="0123456789abcdef")
        case_sheet(dataset, workspace, [run, anew], KEY, 0, 1)
    for key in (("nowhere", "q"), (HEAD, "nothing")):
        with pytest.raises(QueryError, match="not in the data set"):
            case_sheet(dataset, workspace, [run], key, 0, 1)


@pytest.mark.parametrize("member", [None, "visual_context/Head"])
def test_stored_runs_of_both_scopes_with_their_shares(toy, workspace, encoder, monkeypatch, member):
    monkeypatch.setattr(type(encoder), "spec", specs.get("medlite"), raising=False)
    monkeypatch.setattr(specs, "load", lambda name, device=None: encoder)
    dataset = open_dataset(toy, workspace)
    place = Place(dataset, "visual_context", workspace, member)
    make_run(Dense(Fair(dataset, Pipeline(encoder, workspace))), place, workspace, silent)
    make_run(Lexical(), place, workspace, silent)
    desk = Desk(dataset, workspace, Hashes(workspace.path("hashes.sqlite")))
    runs, _ = desk.runs("visual_context")
    diagnoses = [desk.diagnosis(run) for run in runs if run.model in ("medlite", "bm25")]
    assert len(diagnoses) == 2
    key = ("visual_context/Head", diagnoses[0].queries[0].id)
    case = case_sheet(dataset, workspace, diagnoses, key, 0, 1, shares=Shares(dataset, workspace))
    columns = {column.label: column for column in case.columns}
    for run in runs:
        (stored,) = run.runs
        (ranking,) = (r for name, r in stored.run.rankings.items() if document(name, stored.info.place) == key)
        lines = columns[run.label].lines
        ids = [(case.documents[line.document].collection, case.documents[line.document].id) for line in lines]
        assert ids == [document(name, stored.info.place) for name, _ in ranking]
        assert [line.score for line in lines] == [score for _, score in ranking]
    assert all(sum(line.shares) == pytest.approx(line.score, abs=1e-5) for line in columns["medlite"].lines)
    assert columns["medlite"].lines and columns["bm25"].lines == ()  # the words of the query are in no passage
    assert columns["bm25"].first == 0 and columns["bm25"].failed
