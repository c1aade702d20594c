"""The case around a document or query: joined over collections, whole texts, every picture once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.data.cases import Cases
from core.data.dataset import open_dataset
from core.media.frames import frame_of
from core.media.picture import PictureError
from core.records import QueryError
from core.search.case_view import MOST_TEXTS, case_of_document, case_of_own_query, frame_at
from core.search.cases import as_query
from core.search.searcher import MAX_WORDS

IMAGES, TEXTS, STUDIES = "query_to_image/Head", "visual_context/Head", "case_study/Thorax"


@pytest.fixture
def dataset(tmp_path: Path, collection_writer, workspace):
    """Case C1 in four collections, in one of them with a query only: two pictures, one of them spelled in two ways, a
    missing picture, a picture that only a query has, and texts. C2 is another case, "lone" none."""
    root = tmp_path / "set"
    (root / "images").mkdir(parents=True)
    for name, colour in {"a": "red", "b": "blue", "only": "green", "z": "grey"}.items():
        Image.new("RGB", (8, 6), colour).save(root / "images" / f"{name}.png")
    meta = {"case": "C1", "modality": "CT", "plane": "Axial"}
    docs = [
        {"_id": "a", "text": "", "image_path": "images/a.png", "meta": meta},
        {"_id": "b", "text": "", "image_path": "images/b.png", "meta": meta | {"modality": "MR"}},
        {"_id": "gone", "text": "", "image_path": "images/gone.png", "meta": meta},
        {"_id": "z", "text": "", "image_path": "images/z.png", "meta": {"case": "C2"}},
        {"_id": "lone", "text": "Alone.", "meta": {"empty": "", "zero": 0}},
    ]
    queries = [
        {"_id": "qa", "caption": "A long caption of the first picture", "image_path": "images/a.png", "meta": meta},
        {"_id": "qb", "caption": "both pictures", "image_path": ["images/a.png", "images/b.png"], "meta": meta},
        {"_id": "qo", "caption": "only in\n a query", "image_path": "images/only.png", "meta": meta},
        {"_id": "qn", "caption": "no case", "image_path": "images/z.png"},
        {"_id": "qt", "caption": "odd case", "meta": {"case": True}},
    ]
    collection_writer(root / "query_to_image" / "Head", queries, docs, [])
    short = [{"_id": "qa", "caption": "short caption", "image_path": "./images/a.png", "meta": meta}]
    passage = {"_id": "p1", "title": "Title", "text": "A lesion of the skull.", "meta": meta}
    collection_writer(root / "visual_context" / "Head", short, [passage], [])
    study = {"_id": "s1", "text": "The study: lesions.", "image_path": "./images/b.png", "meta": meta}
    collection_writer(root / "case_study" / "Thorax", [], [study], [])
    asked = [{"_id": "qs", "caption": "of the case", "meta": meta}]
    collection_writer(root / "summary" / "Head", asked, [{"_id": "other", "text": "Of another case."}], [])
    (root / "benchmark.json").write_text(json.dumps({"name": "Set"}))
    return open_dataset(root, workspace)


@pytest.fixture
def cases(dataset) -> Cases:
    return Cases(dataset)


def text(pieces) -> str:
    return "".join(piece for piece, _ in pieces)


def test_pictures_of_a_case_are_joined_over_collections_each_once(dataset, cases):
    view = case_of_document(dataset, cases, IMAGES, "a", "")
    names = [Path(p.reference).name for p in view.pictures]
    assert sorted(names) == ["a.png", "b.png", "gone.png", "only.png"]
    assert view.name == "C1" and view.joined == 4


def test_a_picture_has_the_shortest_words_of_a_query_that_shows_it_alone(dataset, cases):
    view = case_of_document(dataset, cases, IMAGES, "a", "")
    captions = {Path(p.reference).name: p.caption for p in view.pictures}
    assert captions == {"a.png": "short caption", "b.png": "", "gone.png": "", "only.png": "only in a query"}


def test_a_picture_is_named_by_the_first_document_that_has_it_else_by_its_query(dataset, cases):
    view = case_of_document(dataset, cases, STUDIES, "s1", "")
    by_name = {Path(p.reference).name: p for p in view.pictures}
    # b.png stands in the study and in the document "b"; cases list collections in the data set's order.
    first = next(i for k, i in cases.documents("case:C1") if i in ("b", "s1"))
    assert by_name["b.png"].title == first
    assert (by_name["a.png"].title, by_name["a.png"].line) == ("a", "Head · CT · Axial")
    assert by_name["only.png"].title == "qo"


@pytest.mark.parametrize(
    ("key", "identity", "name"),
    [(IMAGES, "a", "a.png"), (IMAGES, "b", "b.png"), (IMAGES, "gone", "gone.png"), (STUDIES, "s1", "b.png")],
)
def test_the_case_opens_at_the_picture_of_the_document(dataset, cases, key, identity, name):
    view = case_of_document(dataset, cases, key, identity, "")
    assert Path(view.pictures[view.start].reference).name == name
    assert (view.collection, view.id) == (key, identity)


def test_a_document_without_a_picture_opens_at_the_first(dataset, cases):
    assert case_of_document(dataset, cases, TEXTS, "p1", "").start == 0


def test_a_missing_picture_is_listed_and_explained(dataset, cases):
    view = case_of_document(dataset, cases, IMAGES, "gone", "")
    with pytest.raises(PictureError, match=r"gone\.png"):
        frame_at(dataset, view.pictures[view.start])


def test_the_frames_are_those_of_the_files(dataset, cases):
    for picture in case_of_document(dataset, cases, STUDIES, "s1", "").pictures:
        path = dataset.root / "images" / Path(picture.reference).name
        if path.exists():
            assert frame_at(dataset, picture).pixels == frame_of(Image.open(path)).pixels


def test_texts_are_whole_marked_and_without_the_opened_document(dataset, cases):
    view = case_of_document(dataset, cases, TEXTS, "p1", "lesions")
    assert view.title == "Title" and text(view.text) == "Title A lesion of the skull."
    assert [piece for piece, mark in view.text if mark] == ["lesion"]
    (other,) = view.texts
    assert (other.collection, other.id, other.place) == (STUDIES, "s1", "Case study · Thorax")
    assert ("lesions", True) in other.text and text(other.text) == "The study: lesions."
    assert view.place == "Visual context · Head" and view.more_texts == 0
    assert {t.id for t in case_of_document(dataset, cases, IMAGES, "a", "").texts} == {"p1", "s1"}


def test_metadata_is_sorted_and_what_is_empty_is_left_out(dataset, cases):
    assert dict(case_of_document(dataset, cases, IMAGES, "lone", "").facts)["zero"] == "0"
    assert "empty" not in dict(case_of_document(dataset, cases, IMAGES, "lone", "").facts)
    names = [name for name, _ in case_of_document(dataset, cases, IMAGES, "a", "").facts]
    assert names == sorted(names) and {"case", "modality", "plane"} <= set(names)


def test_a_document_without_a_case_stands_alone(dataset, cases):
    view = case_of_document(dataset, cases, IMAGES, "lone", "alone")
    assert (view.name, view.pictures, view.start, view.texts, view.joined) == ("", (), 0, (), 1)
    assert text(view.text) == "Alone."
    other = case_of_document(dataset, cases, IMAGES, "z", "")
    assert [Path(p.reference).name for p in other.pictures] == ["z.png"] and other.name == "C2"


def test_texts_beyond_the_list_are_counted(tmp_path, collection_writer, workspace):
    docs = [{"_id": f"d{n:03}", "text": f"text {n}", "meta": {"case": "big"}} for n in range(MOST_TEXTS + 4)]
    docs.append({"_id": "blank", "text": "", "meta": {"case": "big"}})
    collection_writer(tmp_path / "big/summary/Head", [], docs, [])
    dataset = open_dataset(tmp_path / "big", workspace)
    view = case_of_document(dataset, Cases(dataset), "summary/Head", "d001", "")
    assert len(view.texts) == MOST_TEXTS and view.more_texts == 3 and view.texts[0].id == "d000"
    (few, more) = (view.texts[-1].id, view.texts[1].id)
    assert few == f"d{MOST_TEXTS:03}" and more == "d002"  # the opened one is not among them


def test_the_own_case_of_a_query(dataset, cases):
    view = case_of_own_query(dataset, cases, dataset.collections[IMAGES].query("qo"))
    assert view.name == "C1" and Path(view.pictures[view.start].reference).name == "only.png"
    assert (view.id, view.title, text(view.text)) == ("qo", "", "only in\n a query")
    assert {t.id for t in view.texts} == {"p1", "s1"} and view.joined == 4


@pytest.mark.parametrize("name", ["qn", "qt"])
def test_a_query_without_a_case_has_no_own_case(dataset, cases, name):
    assert case_of_own_query(dataset, cases, dataset.collections[IMAGES].query(name)) is None


@pytest.mark.parametrize(("key", "identity"), [(IMAGES, "nothing"), ("nowhere", "a"), (IMAGES, "\ud800"), ("", "")])
def test_a_document_that_is_not_there_is_said(dataset, cases, key, identity):
    for ask in (lambda: case_of_document(dataset, cases, key, identity, ""), lambda: as_query(dataset, key, identity)):
        with pytest.raises(QueryError, match=r"not in the data set\. Search again"):
            ask()


def test_a_document_as_a_query_has_its_words_and_all_its_pictures(dataset):
    words, images = as_query(dataset, STUDIES, "s1")
    assert words == "The study: lesions."
    assert [np.asarray(i).tolist() for i in images] == [np.asarray(Image.open(dataset.root / "images/b.png")).tolist()]
    assert as_query(dataset, TEXTS, "p1") == ("Title A lesion of the skull.", [])
    with pytest.raises(PictureError, match=r"gone\.png"):
        as_query(dataset, IMAGES, "gone")


def test_words_of_a_document_are_cut_to_what_a_query_may_have(tmp_path, collection_writer, workspace):
    collection_writer(tmp_path / "long/summary/Head", [], [{"_id": "a", "text": "word " * 9000}], [])
    words, _ = as_query(open_dataset(tmp_path / "long", workspace), "summary/Head", "a")
    assert len(words) == MAX_WORDS
