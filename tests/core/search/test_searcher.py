"""Search against a plain brute-force implementation of the formula in its docstring."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.data.dataset import open_dataset
from core.embed.pipeline import Pipeline
from core.records import QueryError
from core.search.searcher import Asked, Searcher


@pytest.fixture
def rich(tmp_path: Path, collection_writer) -> Path:
    """140 documents with text, pictures or both in two domains; equal contents and a document that cannot be read."""
    generator = np.random.default_rng(3)
    words = ["lung", "heart", "liver", "bone", "mass", "lesion", "left", "right", "acute", "chronic", "normal"]
    root = tmp_path / "rich"
    (root / "images").mkdir(parents=True)
    for domain, start in (("Head", 0), ("Thorax", 70)):
        docs, queries, qrels = [], [], []
        for i in range(start, start + 70):
            colour = tuple(int(c) for c in generator.integers(0, 256, 3))
            name = f"images/{i}.png"
            Image.new("RGB", (8, 8), colour).save(root / name)
            text = " ".join(generator.choice(words, 4)) if i % 3 else ""
            doc = {"_id": f"d{i}", "text": text, "meta": {"modality": "CT" if i % 2 else "MR"}}
            if i % 3 != 1:
                doc["image_path"] = name if i % 5 else [name, f"images/{start}.png"]
            docs.append(doc)
            queries.append({"_id": f"d{i}", "caption": " ".join(generator.choice(words, 3)), "image_path": name})
            qrels += [
                (f"d{i}", f"d{start + (i + 1 - start) % 70}", 2),
                (f"d{i}", f"d{start + (i + 2 - start) % 70}", 0),
            ]
        docs.append({"_id": "same", "text": "the same words everywhere"})
        docs.append({"_id": "broken", "text": "", "image_path": "images/broken.png"})
        collection_writer(root / domain, queries, docs, [*qrels, (f"d{start}", "same", 1)])
    (root / "images" / "broken.png").write_bytes(b"not a picture")
    (root / "benchmark.json").write_text(json.dumps({"ignore_identical_ids": True}))
    return root


@pytest.fixture
def searcher(rich, workspace, encoder) -> Searcher:
    return Searcher(open_dataset(rich, workspace), "retrieval", Pipeline(encoder, workspace))


def unit(v):
    v = np.asarray(v, np.float64)
    n = np.linalg.norm(v)
    return v / n if n else v


def brute_force(searcher: Searcher, encoder, text, image, weight, keep=lambda doc: True, without=()):
    """Ranked [(score, image share, text share, [keys])] straight from the formula, without any store or index."""
    dataset, picture = searcher.dataset, lambda c, r: Image.open(dataset.root / r).convert("RGB")
    means = {side: searcher._centre(side, lambda *_: None).mean.astype(np.float64) for side in ("image", "text")}

    def centred(side, v):
        return unit(np.asarray(v, np.float64) - means[side])

    qi = centred("image", encoder.encode_images([image])["single"][0]) if image is not None else None
    qt = centred("text", encoder.encode_texts([text])["single"][0]) if text else None
    w = 0.0 if qi is None else 1.0 if qt is None else weight
    groups = {}
    for collection in dataset.collections.values():
        for doc in collection.docs():
            sides, content = [], [doc.full_text]
            if doc.full_text:
                sides.append(centred("text", encoder.encode_texts([doc.full_text])["single"][0]))
            images = [r for r in doc.images if "broken" not in r]
            if images:
                content += [(dataset.root / r).read_bytes() for r in images]
                mean = np.mean([encoder.encode_images([picture(collection, r)])["single"][0] for r in images], axis=0)
                sides.append(centred("image", mean))
            if not sides or (doc.collection, doc.id) in without:
                continue
            entry = groups.setdefault(tuple(content), (unit(np.mean(sides, axis=0)), []))
            entry[1].append((doc, keep(doc)))
    ranked = []
    for d, members in groups.values():
        shares = (w * qi @ d if qi is not None else 0.0, (1 - w) * qt @ d if qt is not None else 0.0)
        kept = [m.collection + "/" + m.id for m, k in members if k]
        if kept:
            ranked.append((sum(shares), *shares, kept, [f"{m.collection}/{m.id}" for m, _ in members]))
    return sorted(ranked, key=lambda r: -r[0])


QUERIES = [
    ("left lung mass", None, 0.5, {}),
    ("", (200, 30, 30), 0.5, {}),
    ("acute fracture", (10, 200, 90), 0.35, {}),
    ("chronic lesion", (90, 90, 90), 0.8, {"domain": ["Thorax"]}),
    ("bone", (0, 0, 250), 0.5, {"domain": ["Head"], "modality": ["CT"]}),
]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("text", "colour", "weight", "filters"), QUERIES)
def test_hits_scores_and_shares_are_those_of_the_formula(searcher, encoder, text, colour, weight, filters, exact):
    image = Image.new("RGB", (8, 8), colour) if colour else None
    result = searcher.search(Asked(text, [image] if image else [], weight, 12, filters, exact))

    def keep(doc):
        domain = searcher.dataset.collections[doc.collection].domain
        fits = domain in filters.get("domain", [domain])
        return fits and doc.meta.get("modality") in filters.get("modality", [doc.meta.get("modality")])

    truth = brute_force(searcher, encoder, text, image, weight, keep)
    assert len(result.hits) == 12
    for hit, (score, image_share, text_share, kept, members) in zip(result.hits, truth, strict=False):
        assert hit.score == pytest.approx(score, abs=1e-5)
        assert (hit.image_share, hit.text_share) == pytest.approx((image_share, text_share), abs=1e-5)
        assert np.float32(hit.image_share) + np.float32(hit.text_share) == np.float32(hit.score)
        assert f"{hit.collection}/{hit.doc_id}" in kept
        assert hit.copies == len(members) - 1
    assert [h.rank for h in result.hits] == list(range(1, 13))
    assert result.index_kind == ("hnsw" if not exact and not filters else "exact")


def test_equal_content_in_two_collections_is_one_hit(searcher):
    result = searcher.search(Asked("the same words everywhere", k=3))
    first = result.hits[0]
    assert first.doc_id == "same" and first.copies == 1
    assert sum(h.doc_id == "same" for h in result.hits) == 1
    inside = searcher.search(Asked("the same words everywhere", k=3, filters={"domain": ["Thorax"]}))
    assert inside.hits[0].collection == "retrieval/Thorax"
    query = searcher.dataset.collections["retrieval/Head"].query("d0")
    judged = searcher.search(Asked("the same words everywhere", k=3, filters={"domain": ["Thorax"]}, query=query))
    assert judged.hits[0].relevance == 1  # relevant because its copy in Head is


def test_the_query_itself_is_no_hit_and_judgements_mark_the_others(searcher):
    collection = searcher.dataset.collections["retrieval/Head"]
    query = collection.query("d9")
    image = Image.open(searcher.dataset.root / query.images[0]).convert("RGB")
    result = searcher.search(Asked(query.text, [image], 1.0, 142, query=query))
    names = {(h.collection, h.doc_id): h.relevance for h in result.hits}
    assert (query.collection, "d9") not in names
    assert names["retrieval/Head", "d10"] == 2
    assert names["retrieval/Head", "d11"] == 0
    assert all(v is None for k, v in names.items() if k[0] == "retrieval/Thorax")


def test_fewer_hits_only_when_fewer_documents_pass(searcher):
    head = searcher.pool.collection("retrieval/Head")
    passing = [d for d in head.docs() if d.meta.get("modality") == "CT"]
    result = searcher.search(Asked("lung", k=500, filters={"domain": ["Head"], "modality": ["CT"]}))
    assert {h.doc_id for h in result.hits} <= {d.id for d in passing}
    contents = {(d.full_text, d.images) for d in passing}
    assert {(d.full_text, d.images) for d in (head.doc(h.doc_id) for h in result.hits)} == contents
    assert result.searched == len(passing)


def test_a_copy_of_the_query_under_its_own_id_is_no_hit_either(tmp_path, collection_writer, workspace, encoder):
    root = tmp_path / "twins"
    for domain in ("Head", "Thorax"):
        docs = [{"_id": i, "text": f"words {i}"} for i in ("a", "b")]
        collection_writer(root / domain, [{"_id": "a", "caption": "words a"}], docs, [("a", "b", 2)])
    (root / "benchmark.json").write_text(json.dumps({"ignore_identical_ids": True}))
    searcher = Searcher(open_dataset(root, workspace), "retrieval", Pipeline(encoder, workspace))
    query = searcher.dataset.collections["retrieval/Head"].query("a")
    hits = searcher.search(Asked(query.text, query=query)).hits
    assert [(h.doc_id, h.relevance, h.copies) for h in hits] == [("b", 2, 1)]


def test_documents_without_a_usable_side_are_counted_and_never_found(searcher):
    assert searcher.index.facts["left_out"] == 2
    assert any("broken.png" in detail for detail in searcher.index.facts["unreadable"].values())
    hits = searcher.search(Asked("lung", k=500)).hits
    assert "broken" not in {h.doc_id for h in hits}
    assert searcher.search(Asked("lung")).searched == len(searcher.pool) - 2


def test_a_second_opening_encodes_nothing_and_measures_nothing_again(searcher, workspace, encoder, rich):
    before = encoder.encoded
    again = Searcher(open_dataset(rich, workspace), "retrieval", Pipeline(encoder, workspace))
    assert encoder.encoded == before
    assert again.recall_at_10 == searcher.recall_at_10 and again.recall_queries == 100
    assert 0.9 <= again.recall_at_10 <= 1.0


def test_long_words_are_cut_and_said(searcher):
    result = searcher.search(Asked("word " * 40, k=1))
    assert any("longer than toy reads" in note for note in result.notes)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked("   "), "picture, words, or both"),
        (Asked("x" * 10_001), "at most 10,000"),
        (Asked("half \ud800 pair"), "surrogate"),
        (Asked("lung", k=0), "between 1 and"),
        (Asked("lung", k=10**6), "between 1 and"),
        (Asked("lung", weight=2.0), "between 0"),
        (Asked("lung", filters={"domain": ["Foot"]}), "there are: Head, Thorax"),
        (Asked("lung", filters={"side": ["left"]}), "no filter 'side'"),
    ],
)
def test_what_cannot_be_searched_is_said(searcher, asked, words):
    with pytest.raises(QueryError, match=words):
        searcher.search(asked)


def test_stored_queries_compose_like_typed_ones(searcher, encoder):
    query = searcher.dataset.collections["retrieval/Thorax"].query("d75")
    image = Image.open(searcher.dataset.root / query.images[0]).convert("RGB")
    typed, _ = searcher.compose(Asked(query.text, [image]))
    stored = searcher.stored_queries([query], None)[0]
    assert np.allclose(typed.mixed, stored.mixed, atol=1e-6)
