"""Cards as a screen shows them: the document behind each best hit, its picture, its marked words, its judgement."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from core.data.dataset import open_dataset
from core.media.picture import PictureError
from core.records import Hit, SearchResult
from core.search.cases import CaseCard, CaseResult
from core.search.marks import PASSAGE
from core.search.views import judgement, shown, small_picture

KEY = "retrieval/Head"


@pytest.fixture
def dataset(tmp_path: Path, collection_writer, workspace):
    """Judged in Head (with a 0) and in Thorax (relevant ones only)."""
    root = tmp_path / "set"
    (root / "images").mkdir(parents=True)
    Image.new("RGB", (600, 300), "red").save(root / "images" / "a.png")
    (root / "images" / "bad.png").write_bytes(b"not a picture")
    meta = {"specialty": "Neuro", "modality": "CT", "plane": "Axial", "case": "C1", "note": "not shown"}
    docs = [
        {"_id": "a", "title": "T", "text": "A mass.", "image_path": ["images/a.png", "images/bad.png"], "meta": meta},
        {"_id": "bad", "text": "Damaged.", "image_path": "images/bad.png"},
        {"_id": "gone", "text": "Lost.", "image_path": "images/gone.png", "meta": {"modality": "MR"}},
        {"_id": "long", "text": "Nothing here. " * 60 + "A mass in the left lung. " + "Nothing here. " * 60},
    ]
    queries = [{"_id": "q", "caption": "a mass"}]
    collection_writer(root / "Head", queries, docs, [("q", "a", 2), ("q", "bad", 0)])
    collection_writer(root / "Thorax", queries, docs[:1], [("q", "a", 1)])
    (root / "benchmark.json").write_text(json.dumps({"name": "Set"}))
    return open_dataset(root, workspace)


def one(identity: str, key: str = KEY, case: str = "case:C1", **changes) -> CaseResult:
    """A result of one card."""
    hit = Hit(3, key, identity, 0.5, 0.3, 0.2, None, {}, 4)
    values = {"documents": 1, "best_grade": None, "best_grade_rank": None, "others": (), "near": (), **changes}
    card = CaseCard(1, case, hit, **values)
    return CaseResult((card,), SearchResult((hit,), 0.5, "exact", None, 4, "toy", 0.0), 0, 1)


def test_a_card_shows_its_document(dataset, workspace):
    result = one("a")
    (card,) = shown(dataset, result, None, "the mass", workspace)
    assert (card.rank, card.hit, card.case, card.title) == (1, result.cards[0].best, "C1", "T")
    assert card.passage == (("A ", False), ("mass", True), (".", False)) and not card.before and not card.after
    assert card.domain == "Head" and card.facets == ("Neuro", "CT", "Axial")
    assert card.pictures == 2 and card.problem == "" and (card.more, card.near) == (0, 0)
    assert card.judgement is None and card.judged_rank is None
    image = Image.open(BytesIO(base64.b64decode(card.picture.removeprefix("data:image/webp;base64,"))))
    assert image.size == (256, 128)


def test_what_else_stands_behind_a_card_is_counted(dataset, workspace):
    near = one("bad").cards[0]
    (card,) = shown(dataset, one("a", documents=5, near=(near, near)), None, "", workspace)
    assert (card.more, card.near) == (4, 2)


@pytest.mark.parametrize(
    ("case", "name"), [("case:C1", "C1"), ("case:a:b", "a:b"), ("doc:retrieval%2FHead/a", ""), ("case:doc:x", "doc:x")]
)
def test_a_document_without_a_case_has_no_case_name(dataset, workspace, case, name):
    (card,) = shown(dataset, one("a", case=case), None, "", workspace)
    assert card.case == name


@pytest.mark.parametrize("identity", ["bad", "gone"])
def test_a_picture_that_cannot_be_had_is_explained_in_its_place(dataset, workspace, identity):
    (card,) = shown(dataset, one(identity), None, "", workspace)
    collection = dataset.collections[KEY]
    with pytest.raises(PictureError) as error:
        small_picture(collection, f"images/{identity}.png", workspace)
    assert card.picture is None and card.problem == str(error.value) != "" and card.pictures == 1


def test_a_long_passage_is_cut_around_the_words(dataset, workspace):
    (card,) = shown(dataset, one("long"), None, "lung mass", workspace)
    text = "".join(piece for piece, _ in card.passage)
    assert len(text) <= PASSAGE and card.before and card.after
    assert [piece for piece, mark in card.passage if mark] == ["mass", "lung"]
    assert (card.picture, card.problem, card.pictures) == (None, "", 0)


@pytest.mark.parametrize(
    ("grade", "rank", "head", "thorax"),
    [
        (2, 7, "relevant-2", "relevant-2"),
        (1, 3, "relevant-1", "relevant-1"),
        (0, 3, "not-relevant", "not-relevant"),
        (None, None, "unjudged", "not-listed"),
    ],
)
def test_the_judgement_is_the_best_of_the_case_with_its_rank(dataset, workspace, grade, rank, head, thorax):
    for key, name in ((KEY, head), ("retrieval/Thorax", thorax)):
        query = dataset.collections[key].query("q")
        result = one("a", best_grade=grade, best_grade_rank=rank)
        (card,) = shown(dataset, result, query, "", workspace)
        # It is the query's collection that says what absence means, not the document's.
        assert (card.judgement, card.judged_rank) == (name, rank)
        (card,) = shown(dataset, result, None, "", workspace)
        assert card.judgement is None


def test_grades_beyond_two_are_most_relevant_and_negative_ones_are_not():
    assert [judgement(g, False) for g in (3, 2, 1, 0, -1)] == [
        *["relevant-2"] * 2,
        "relevant-1",
        *["not-relevant"] * 2,
    ]
    assert judgement(None, True) == "not-listed" and judgement(None, False) == "unjudged"
