"""Holes in judgements against a slow look at every document, and twins of relevant documents by words and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.data.collection import Collection
from core.data.dataset import open_dataset
from core.evaluate.holes import POSITIVES_ONLY, Looks, PossibleFalseNegative, holes, same_words
from core.evaluate.run import Rankings, stored_runs, trec_name
from core.media.phash import Hashes
from core.settings import DEMO, REPOSITORY


def picture(path: Path, seed: int, noise: int = 0) -> None:
    random = np.random.default_rng(seed)
    pixels = np.kron(random.integers(0, 200, (8, 8)), np.ones((16, 16), int))
    pixels += np.random.default_rng(99).integers(0, noise + 1, pixels.shape)
    Image.fromarray(pixels.astype(np.uint8)).save(path)


@pytest.fixture
def collection(tmp_path: Path, workspace, collection_writer) -> Collection:
    root = tmp_path / "data"
    (root / "images").mkdir(parents=True)
    for name, seed, noise in (("p1", 1, 0), ("p1 again", 1, 30), ("p2", 2, 0), ("p3", 3, 0)):
        picture(root / "images" / f"{name}.png", seed, noise)
    Image.new("L", (64, 64), 90).save(root / "images" / "blank.png")
    (root / "images" / "broken.png").write_bytes(b"no picture")
    docs = [{"_id": n, "text": "", "image_path": f"images/{n}.png"} for n in ("p1", "p1 again", "p2", "p3", "broken")]
    docs += [{"_id": n, "text": "", "image_path": "images/blank.png"} for n in ("blank 1", "blank 2")]
    docs += [{"_id": "t1", "title": "The ﬁssure", "text": "is  wide."}, {"_id": "t2", "text": "THE FISSURE is wide."}]
    docs += [{"_id": "t3", "text": "The fissure is narrow."}]
    queries = [{"_id": "q", "caption": "words"}, {"_id": "r", "caption": "other"}, {"_id": "u", "caption": "unjudged"}]
    queries += [{"_id": "p2", "caption": "One caption"}, {"_id": "p3", "caption": "one  CAPTION"}]
    judged = [("q", "t1", 1), ("q", "p1", 2), ("q", "p2", 1), ("q", "blank 1", 2), ("r", "t3", 2), ("r", "t1", 0)]
    collection_writer(root / "Head", queries, docs, judged)
    (root / "benchmark.json").write_text(json.dumps({"ignore_identical_ids": True}))
    return next(iter(open_dataset(root, workspace).collections.values()))


def ranking(*ids: str) -> list[tuple[str, float]]:
    return [(trec_name(i), float(len(ids) - n)) for n, i in enumerate(ids)]


def test_unjudged_and_twins(collection: Collection) -> None:
    rankings: Rankings = {
        "q": ranking("p1 again", "t2", "p1", "blank 2", "p3", "broken", "t3"),
        "r": ranking("t2", "t1"),
        "u": ranking("t1"),
    }
    found = holes(rankings, collection, Hashes(None), ignore_identical_ids=True)
    assert found.unjudged == {
        "q": [(1, "p1 again"), (2, "t2"), (4, "blank 2"), (5, "p3"), (6, "broken"), (7, "t3")],
        "r": [(1, "t2")],
    }
    assert not found.reason and found.unreadable == 1
    first, *others = found.possible
    assert (first.query, first.document, first.rank, first.relevant) == ("q", "p1 again", 1, "p1")
    assert first.why.startswith("pictures look alike (") and first.collection == collection.key
    # Neither blank pictures nor a twin of a document judged not relevant; t1 is one for q, not for r.
    assert others == [
        PossibleFalseNegative(collection.key, "q", "t2", 2, "t1", "the same text"),
        PossibleFalseNegative(collection.key, "q", "p3", 5, "p2", "the same caption"),
    ]
    assert [p.document for p in holes(rankings, collection, Hashes(None)).possible] == ["p1 again", "t2"]
    assert holes(rankings, collection, Hashes(None), k=1).unjudged == {"q": [(1, "p1 again")], "r": [(1, "t2")]}


def test_positives_only_says_why(toy: Path, workspace) -> None:
    dataset = open_dataset(toy, workspace)
    collection = dataset.collections["query_to_image/Head"]
    found = holes({"a1": ranking("a2", "a1")}, collection, Hashes(None), ignore_identical_ids=True)
    assert found.unjudged is None and found.reason == POSITIVES_ONLY and "only relevant" in found.reason


def test_words() -> None:
    assert same_words(" The ﬁrst\u00a0\n Straße ") == same_words("the FIRST STRASSE") == "the first strasse"
    assert same_words("a b") != same_words("ab") and same_words("\n") == ""


def counted(rankings: Rankings, collection: Collection) -> int:
    """How many of the first ten nobody judged, from the file of judgements alone."""
    lines = (collection.layout.folder / "qrels" / "test.tsv").read_text().splitlines()[1:]
    judged = {tuple(map(trec_name, line.split("\t")[:2])) for line in lines}
    queries = {query for query, _ in judged}
    return sum((q, d) not in judged for q, row in rankings.items() if q in queries for d, _ in row[:10])


def test_the_demo(workspace) -> None:
    dataset = open_dataset(DEMO, workspace)
    runs, refused = stored_runs([REPOSITORY / "assets" / "store"], dataset.data_id)
    assert runs and not refused
    hashes, checked = Hashes(None), 0
    for stored in runs:
        if stored.info.place in dataset.collections:
            collection = dataset.collections[stored.info.place]
            found = holes(stored.run.rankings, collection, hashes, 10, dataset.ignore_identical_ids)
            if not collection.positives_only:
                checked += 1
                assert sum(map(len, found.unjudged.values())) == counted(stored.run.rankings, collection)
            for possible in found.possible:
                assert possible.document not in collection.qrels[possible.query]
                assert collection.qrels[possible.query][possible.relevant] > 0
    assert checked


def test_looks_across_collections(tmp_path: Path, workspace, collection_writer) -> None:
    """The same id is another document elsewhere; each is looked at once."""
    root = tmp_path / "pair"
    (root / "images").mkdir(parents=True)
    for name, seed, noise in (("p", 1, 0), ("again", 1, 30), ("other", 2, 0)):
        picture(root / "images" / f"{name}.png", seed, noise)
    (root / "images" / "broken.png").write_bytes(b"no picture")

    def doc(name: str, text: str = "", image: str = "") -> dict:
        return {"_id": name, "text": text} | ({"image_path": f"images/{image}.png"} if image else {})

    caption = [{"_id": "seen", "caption": "A Mass"}]
    head = [doc("x", "one text"), doc("seen", image="p"), doc("worn", image="broken"), doc("none")]
    thorax = [
        doc("x", "ONE  text"),
        doc("seen", image="other"),
        doc("like", image="again"),
        doc("y", "two"),
        doc("none"),
    ]
    collection_writer(root / "Head", caption, head, [])
    collection_writer(root / "Thorax", [{"_id": "seen", "caption": "a mass"}], thorax, [])
    collections = open_dataset(root, workspace).collections
    looks = Looks(collections, Hashes(None), True)
    h, t = (lambda name, key=key: (key, name) for key in ("retrieval/Head", "retrieval/Thorax"))
    assert looks.alike(h("x"), t("x")) == looks.alike(t("x"), h("x")) == "the same text"
    assert looks.alike(h("seen"), t("seen")) == "the same caption"
    assert looks.alike(h("seen"), t("like")).startswith("pictures look alike (")
    assert looks.alike(h("x"), t("y")) == looks.alike(h("none"), t("none")) == looks.alike(h("worn"), t("like")) == ""
    assert looks.unreadable == {("retrieval/Head", "images/broken.png")}
    assert Looks(collections, Hashes(None), False).alike(h("seen"), t("seen")) == ""  # ids say nothing there
    for key in list(collections):
        collections[key].doc = lambda name: pytest.fail("looked at twice")
    assert looks.alike(t("seen"), h("seen")) == "the same caption"
