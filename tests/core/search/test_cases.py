"""Cards of cases against plain loops over the whole exact ranking."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from core.data.cases import Cases
from core.data.dataset import open_dataset
from core.embed.pipeline import Pipeline
from core.media.phash import Hashes, perceptual_hash
from core.media.picture import PictureError
from core.records import QueryError
from core.search import cases as module
from core.search.cases import like, search_cases
from core.search.searcher import MAX_WORDS, Asked, Searcher

WORDS = ["lung", "heart", "liver", "bone", "mass", "lesion", "left", "right", "acute", "chronic", "normal"]


def textured(generator) -> Image.Image:
    coarse = generator.integers(0, 256, (5, 5, 3), np.uint8)
    return Image.fromarray(coarse).resize((40, 40), Image.Resampling.BICUBIC)


@pytest.fixture
def library(tmp_path, collection_writer) -> Path:
    """Two domains of 60 documents: cases of one to many documents that reach over both, documents without a case,
    equal contents, pictures that look the same, a blank, a broken and a missing one."""
    generator = np.random.default_rng(11)
    root = tmp_path / "library"
    (root / "images").mkdir(parents=True)
    motifs = [textured(generator) for _ in range(8)]
    for i in range(60):
        # Every third picture is one of a few motifs, a little brighter: other bytes, the same look.
        image = motifs[i % 8].point(lambda v, i=i: min(255, v + i % 5)) if i % 3 == 0 else textured(generator)
        image.save(root / "images" / f"{i}.png")
    Image.new("RGB", (40, 40), (9, 9, 9)).save(root / "images" / "blank0.png")
    Image.new("RGB", (40, 40), (9, 9, 9)).save(root / "images" / "blank1.png", compress_level=0)
    (root / "images" / "broken.png").write_bytes(b"not a picture")
    for domain in ("Head", "Thorax"):
        docs, queries, qrels = [], [], []
        for i in range(60):
            case = min(int(generator.integers(0, 15)), 9) if i % 4 else None
            meta = {"modality": "CT" if i % 2 else "MR"} | ({"case": case} if case is not None else {})
            text = " ".join(generator.choice(WORDS, 2)) if i % 2 else ""
            doc = {"_id": f"d{i}", "text": text, "meta": meta}
            if i % 5 or not text:
                doc["image_path"] = f"images/{i}.png"
            docs.append(doc)
            queries.append({"_id": f"d{i}", "caption": " ".join(generator.choice(WORDS, 3)), "meta": meta})
            judged = generator.choice(60, 6, replace=False)
            qrels += [(f"d{i}", f"d{j}", int(generator.integers(0, 3))) for j in judged]
        for name in ("blank0", "blank1", "broken", "missing"):
            docs.append(
                {"_id": name, "text": f"words too {name}", "image_path": f"images/{name}.png", "meta": {"case": name}}
            )
        collection_writer(root / domain, queries, docs, qrels)
    (root / "benchmark.json").write_text(json.dumps({"ignore_identical_ids": True}))
    return root


@pytest.fixture
def searcher(library, workspace, encoder) -> Searcher:
    return Searcher(open_dataset(library, workspace), "retrieval", Pipeline(encoder, workspace))


def look_of(searcher, hit):
    """The hash of the full picture: toy pictures are smaller than a thumbnail, so WebP alone stands between them."""
    collection = searcher.dataset.collections[hit.collection]
    images = collection.doc(hit.doc_id).images
    try:
        return Hashes(None).of(collection.picture(images[0])) if images else None
    except PictureError:
        return None


def plain_cards(searcher, asked, retrieved, fold=True, by_case=True, without=()):
    """[(documents of the card in order, [documents of each near card])] by loops over the whole ranking."""
    ranking = searcher.find(searcher.compose(asked)[0], replace(asked, k=1000, exact=True, without=frozenset())).hits
    gone = {(d.full_text, d.images) for d in (searcher.dataset.collections[c].doc(i) for c, i in without)}
    hits = []
    for hit in ranking:
        doc = searcher.dataset.collections[hit.collection].doc(hit.doc_id)
        if (doc.full_text, doc.images) not in gone:
            hits.append((hit, str(doc.meta["case"]) if by_case and "case" in doc.meta else (doc.collection, doc.id)))
    cards, looks = [], []
    for at, (hit, group) in enumerate(hits[:retrieved]):
        if group in [g for _, g in hits[:at]]:
            continue
        if len(cards) == asked.k:
            break
        members = [h.doc_id for h, g in hits[:retrieved] if g == group]
        total = sum(g == group for _, g in hits)
        look = look_of(searcher, hit) if fold else None
        same = [
            c for c, other in zip(cards, looks, strict=True) if None not in (look, other) and bits(look, other) <= 6
        ]
        if same:
            same[0][2].append(members)
        else:
            cards.append((members, total, []))
            looks.append(look)
    return cards


def bits(a: int, b: int) -> int:
    return bin(a ^ b).count("1")


def as_plain(result):
    return [
        (
            [h.doc_id for h in (c.best, *c.others)],
            c.documents,
            [[h.doc_id for h in (n.best, *n.others)] for n in c.near],
        )
        for c in result.cards
    ]


asked_for = st.builds(
    Asked,
    text=st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
    images=st.sampled_from([(), (textured(np.random.default_rng(3)),)]),
    weight=st.sampled_from([None, 0.2, 0.8]),
    k=st.integers(1, 60),
    filters=st.sampled_from([{}, {"domain": ["Head"]}, {"modality": ["MR"]}, {"domain": ["Head"], "modality": ["CT"]}]),
    exact=st.just(True),
).filter(lambda a: a.text or a.images)
some_documents = st.sets(st.tuples(st.sampled_from(["retrieval/Head", "x"]), st.sampled_from(["d1", "d3", "zz"])))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked_for, st.booleans(), st.booleans(), some_documents, st.sampled_from([None, "d3", "d8"]))
def test_cards_are_those_of_plain_loops(searcher, asked, fold, by_case, without, query):
    own = searcher.dataset.collections["retrieval/Head"].query(query) if query else None
    asked = replace(asked, query=own, without=frozenset(without))
    cases, hashes = Cases(searcher.dataset), Hashes(None)
    result = search_cases(searcher, asked, cases, hashes, fold=fold, by_case=by_case)
    there = [key for key in without if key in {("retrieval/Head", "d1"), ("retrieval/Head", "d3")}]
    truth = plain_cards(searcher, asked, result.retrieved, fold, by_case, there)
    assert as_plain(result) == truth
    assert [c.rank for c in result.cards] == list(range(1, len(truth) + 1))
    assert result.folded == sum(len(near) for *_, near in truth)
    # Fewer cards than asked for only where the whole ranking gives no more.
    assert truth == [] or len(truth) == len(plain_cards(searcher, asked, 1000, fold, by_case, there))
    assert [h.rank for h in result.result.hits] == list(range(1, result.retrieved + 1))
    again = search_cases(searcher, asked, cases, hashes, fold=fold, by_case=by_case)
    assert again.cards == result.cards
    everything = [*result.cards, *(near for card in result.cards for near in card.near)]
    for card in everything:
        hits = (card.best, *card.others)
        judged = [h.relevance for h in hits if h.relevance is not None]
        assert card.best_grade == max(judged, default=None)
        first = [h.rank for h in hits if h.relevance is not None and h.relevance == card.best_grade]
        assert card.best_grade_rank == (first[0] if first else None)
        assert {cases.of_doc(h.collection, h.doc_id) for h in hits} == {card.case}
        assert card.documents >= len(hits)
    assert all(near.rank == card.rank for card in result.cards for near in card.near)


def test_pictures_that_look_the_same_take_one_card(searcher):
    asked = Asked("", [Image.open(searcher.dataset.root / "images" / "0.png")], k=30, exact=True)
    cases, hashes = Cases(searcher.dataset), Hashes(None)
    folded = search_cases(searcher, asked, cases, hashes, by_case=False)
    assert folded.folded > 3 and len(folded.cards) == 30
    for card in folded.cards:
        assert all(bits(look_of(searcher, card.best), look_of(searcher, near.best)) <= 6 for near in card.near)
    flat = search_cases(searcher, asked, cases, hashes, by_case=False, fold=False)
    assert [c.best for c in flat.cards] == list(searcher.search(asked).hits)
    assert flat.folded == 0 and flat.retrieved == 30 and all(not c.others for c in flat.cards)


def test_blank_and_unreadable_pictures_are_never_folded(searcher):
    asked = Asked("words too", k=40, exact=True)
    result = search_cases(searcher, asked, Cases(searcher.dataset), Hashes(None))
    assert {"case:blank0", "case:blank1", "case:broken", "case:missing"} <= {c.case for c in result.cards}


def large_case(root: Path, writer, documents: int, others: int) -> Path:
    """A case whose documents fill the top, and others in cases of their own that share no word with the query."""
    docs = [{"_id": f"big{i}", "text": f"lung mass lung mass {i}", "meta": {"case": "big"}} for i in range(documents)]
    docs += [{"_id": f"small{i}", "text": f"bone {i}", "meta": {"case": f"s{i}"}} for i in range(others)]
    writer(root / "Head", [{"_id": "q", "caption": "lung mass"}], docs, [("q", "big0", 1), ("q", "big3", 2)])
    return root


@pytest.mark.parametrize("exact", [True, False])
def test_as_many_cards_as_asked_for_though_one_case_fills_the_top(
    tmp_path, collection_writer, workspace, encoder, exact
):
    root = large_case(tmp_path / "large", collection_writer, 80, 12)
    searcher = Searcher(open_dataset(root, workspace), "retrieval", Pipeline(encoder, workspace))
    composed, found = [], []
    compose, find = searcher.compose, searcher.find
    searcher.compose = lambda *a: composed.append(a) or compose(*a)
    searcher.find = lambda query, asked: found.append(asked.k) or find(query, asked)
    query = searcher.dataset.collections["retrieval/Head"].query("q")
    result = search_cases(
        searcher, Asked("lung mass", k=10, query=query, exact=exact), Cases(searcher.dataset), Hashes(None)
    )
    assert len(result.cards) == 10 and len(composed) == 1
    assert found == sorted(set(found)) and len(found) > 1
    first = result.cards[0]
    assert first.case == "case:big" and first.documents == 80
    assert len(first.others) == 79 or not exact
    ranks = {h.doc_id: h.rank for h in (first.best, *first.others)}
    assert first.best_grade == 2 and first.best_grade_rank == ranks["big3"]
    assert result.result.notes == ()


def test_where_the_deepest_search_ends_is_said(tmp_path, collection_writer, workspace, encoder, monkeypatch):
    monkeypatch.setattr(module, "MAX_K", 40)
    root = large_case(tmp_path / "large", collection_writer, 80, 12)
    searcher = Searcher(open_dataset(root, workspace), "retrieval", Pipeline(encoder, workspace))
    result = search_cases(searcher, Asked("lung mass", k=10, exact=True), Cases(searcher.dataset), Hashes(None))
    assert len(result.cards) == 1 and result.retrieved == 40
    assert any("first 40 documents" in note for note in result.result.notes)
    few = search_cases(searcher, Asked("lung mass", k=1, exact=True), Cases(searcher.dataset), Hashes(None))
    assert few.result.notes == ()


@pytest.mark.parametrize("k", [0, -1, 1001])
def test_what_cannot_be_searched_is_said_before_anything_is_encoded(searcher, encoder, k):
    cases, before = Cases(searcher.dataset), encoder.encoded
    with pytest.raises(QueryError, match="between 1 and"):
        search_cases(searcher, Asked("lung", k=k), cases, Hashes(None))
    with pytest.raises(QueryError, match="there are: Head, Thorax"):
        search_cases(searcher, Asked("lung", filters={"domain": ["Foot"]}), cases, Hashes(None))
    with pytest.raises(QueryError, match="picture, words, or both"):
        search_cases(searcher, Asked(" "), cases, Hashes(None))
    assert encoder.encoded == before


def test_more_like_a_document_without_that_document(searcher):
    key = ("retrieval/Head", "d7")
    doc = searcher.dataset.collections[key[0]].doc(key[1])
    steps = []
    asked = replace(like(searcher, *key, lambda *step: steps.append(step)), exact=True)
    assert asked.without == {key}
    assert asked.text == doc.full_text and asked.query is None and len(steps) == len(doc.images) == 1
    assert np.array_equal(np.asarray(asked.images[0]), np.asarray(Image.open(searcher.dataset.root / doc.images[0])))
    cases, hashes = Cases(searcher.dataset), Hashes(None)
    own = search_cases(searcher, replace(asked, without=frozenset()), cases, hashes, by_case=False, fold=False)
    contents = [
        (d.full_text, d.images)
        for d in (searcher.dataset.collections[c.best.collection].doc(c.best.doc_id) for c in own.cards)
    ]
    assert (doc.full_text, doc.images) in contents[:1]
    others = search_cases(searcher, asked, cases, hashes, by_case=False, fold=False)
    assert [c.best.doc_id for c in others.cards][:9] == [c.best.doc_id for c in own.cards][1:]
    assert others.cards[0].best.rank == 1 and len(others.cards) == 10
    assert not others.result.strength.calibrated and "document of the pool" in others.result.strength.reason


def test_what_more_like_this_cannot_do(searcher, tmp_path, collection_writer, workspace, encoder):
    for key in (("retrieval/Head", "zz"), ("retrieval/Foot", "d1"), ("retrieval/Head", "\ud800")):
        with pytest.raises(QueryError, match="not in the pool"):
            like(searcher, *key)
    with pytest.raises(PictureError):
        like(searcher, "retrieval/Head", "broken")
    collection_writer(tmp_path / "long" / "Head", [], [{"_id": "a", "text": "word " * 9000}], [])
    long = Searcher(open_dataset(tmp_path / "long", workspace), "retrieval", Pipeline(encoder, workspace))
    asked = like(long, "retrieval/Head", "a")
    assert len(asked.text) == MAX_WORDS
    nothing = search_cases(long, asked, Cases(long.dataset), Hashes(None))
    assert nothing.cards == () and nothing.result.strength is None


def test_hashes_of_equal_looks_are_near_and_the_library_has_them():
    """The premise of the oracle: motifs fold, random textures do not."""
    generator = np.random.default_rng(11)
    motif = textured(generator)
    others = [textured(generator) for _ in range(10)]
    brighter = motif.point(lambda v: min(255, v + 4))
    assert bits(perceptual_hash(motif), perceptual_hash(brighter)) <= 6
    assert all(bits(perceptual_hash(motif), perceptual_hash(other)) > 6 for other in others)
