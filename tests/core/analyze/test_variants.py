"""The modality ablation on data where words alone, or pictures alone, decide, and where its runs are found again."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from core.__main__ import app
from core.analyze.listed import listed, stored_scores
from core.analyze.variants import ABLATION_DEPTH, VARIANTS, make_ablation, stored_ablation, why_not
from core.data.dataset import open_dataset
from core.data.names import document
from core.data.topics import cluster_of
from core.embed.pipeline import Pipeline
from core.evaluate.make import DEPTH, make_run
from core.evaluate.run import open_run
from core.models import specs
from core.records import Query
from core.retrievers.ablated import Ablated, swapped
from core.retrievers.base import ordered
from core.retrievers.dense import Dense
from core.retrievers.fair import Answerer, Fair
from core.retrievers.fused import Fused
from core.retrievers.lexical import Lexical
from core.retrievers.place import Place
from core.search.compose import compose
from core.search.searcher import Searcher
from core.settings import DEMO

ORGANS = ("lung", "heart", "liver", "bone", "brain", "spleen", "kidney", "colon")
COLOURS = ((250, 0, 0), (0, 250, 0), (0, 0, 250), (250, 250, 0), (0, 250, 250), (250, 0, 250), (9, 9, 9), (99, 200, 50))


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


@pytest.fixture(autouse=True)
def _spec(encoder, monkeypatch) -> None:
    monkeypatch.setattr(type(encoder), "spec", specs.get("medlite"), raising=False)


@pytest.fixture
def planted(tmp_path, collection_writer):
    """Writes 16 queries of 8 clusters with words and picture each, and one of each side alone, in two domains.

    With ``decides="text"`` documents are the words of one query and its twin, with "image" they are their picture;
    the other side of the queries says nothing. ``backwards`` writes every file in reverse.
    """

    def write(decides: str, backwards: bool = False) -> Path:
        root = tmp_path / f"{decides}-{backwards}"
        (root / "images").mkdir(parents=True)
        for domain, at in (("Head", 0), ("Thorax", 4)):
            queries, docs, qrels = [], [], []
            for organ, colour in list(zip(ORGANS, COLOURS, strict=True))[at : at + 4]:
                for twin in ("a", "b"):
                    name = f"images/{organ}-{twin}.png"
                    shade = colour if decides == "image" else tuple(np.random.default_rng(at).integers(0, 9, 3))
                    Image.new("RGB", (8, 8), tuple(int(c) for c in shade)).save(root / name)
                    words = f"an {organ} {organ}" if decides == "text" else "a picture"
                    meta = {"cluster": organ}
                    queries.append({"_id": f"{organ}-{twin}", "caption": words, "image_path": name, "meta": meta})
                text = {"_id": organ, "text": f"the {organ} {organ}"}
                shown = {"_id": organ, "text": "", "image_path": f"images/{organ}-a.png"}
                docs.append(text if decides == "text" else shown)
                qrels += [(f"{organ}-{twin}", organ, 2) for twin in "ab"]
            queries.append({"_id": "no words", "caption": "", "image_path": name, "meta": {"cluster": "x"}})
            queries.append({"_id": "no picture", "caption": words, "meta": {"cluster": "y"}})
            qrels += [("no words", organ, 1), ("no picture", organ, 1)]
            step = -1 if backwards else 1
            collection_writer(root / domain, queries[::step], docs[::step], qrels[::step])
        (root / "benchmark.json").write_text(json.dumps({"ignore_identical_ids": False}))
        return root

    return write


def opened(root: Path, workspace, encoder) -> tuple[Dense, Place]:
    dataset = open_dataset(root, workspace)
    return Dense(Fair(dataset, Pipeline(encoder, workspace))), Place(dataset, "retrieval", workspace)


def two_sided(run, measure: str = "nDCG@10") -> float:
    return float(np.mean([v for q, v in run.measures[measure].items() if "no%20" not in q]))


@pytest.mark.parametrize("decides", ["text", "image"])
def test_the_side_that_decides_is_seen(planted, workspace, encoder, decides) -> None:
    dense, place = opened(planted(decides), workspace, encoder)
    full = open_run(make_run(dense, place, workspace, silent).folder)
    assert isinstance(stored_ablation(workspace.roots, place.dataset.data_id, full.info), str)
    made = make_ablation(dense, place, workspace, silent)
    assert [m.info.variant for m in made] == list(VARIANTS) and all(m.fresh for m in made)
    found = stored_ablation(workspace.roots, place.dataset.data_id, full.info)
    assert {name: len(runs) for name, runs in found.items()} == {"picture": 1, "words": 1, "swapped": 5}
    means = {name: np.mean([two_sided(run) for run in runs]) for name, runs in found.items()}
    whole, other = two_sided(full), {"text": "picture", "image": "words"}[decides]
    assert whole > 0.8 and means[other] < whole - 0.2
    assert means["words" if decides == "text" else "picture"] > whole - 0.05
    if decides == "text":
        assert means["swapped"] == pytest.approx(whole, abs=0.05)
    else:
        assert means["swapped"] < whole - 0.2
    for runs in found.values():
        for run in runs:
            assert set(run.run.rankings) == set(full.run.rankings)
            empty = {name for name, ranking in run.run.rankings.items() if not ranking}
            assert empty == {name for name in full.run.rankings if "/no%20" in name} and len(empty) == 4
            assert run.facts["without_hits"] == sorted(empty) and run.facts["both_sides"] == 16
    assert [run.facts["seed"] for run in found["swapped"]] == [0, 1, 2, 3, 4]
    weights = [run.info.weight for runs in found.values() for run in runs]
    assert weights == [1.0, 0.0] + [encoder.default_weight(decides)] * 5
    assert full.info.depth == DEPTH and {m.info.depth for m in made} == {ABLATION_DEPTH}


def test_a_variant_is_the_query_composed_by_hand(planted, workspace, encoder) -> None:
    dense, place = opened(planted("text"), workspace, encoder)
    ((searcher, queries),) = dense._answerers("retrieval")
    composed = searcher.stored_queries(queries, None)
    swap = swapped(queries, composed, np.random.default_rng(3))
    both = [one if "no%20" not in name else None for name, one in zip(place.query_ids, composed, strict=True)]
    asked = {
        "picture": [one and compose(one.image, None, 1) for one in both],
        "words": [one and compose(None, one.text, 0) for one in both],
        "swapped-3": swap,
    }
    vectors = np.asarray(searcher.index.exact.vectors)
    rows = searcher.index.vector_of_group[searcher.index.group_of_row[place.rows]]
    for variant, compositions in asked.items():
        found = Ablated(dense, variant).rank(place, 3, silent).rankings
        for at, one in enumerate(compositions):
            expected = ordered(place, at, range(len(rows)), vectors[rows] @ one.mixed, 3) if one else []
            mine = found[place.query_ids[at]]
            assert dict(mine) == pytest.approx(dict(expected), abs=1e-5), (variant, at)


def drawn(n: int) -> tuple[list[Query], list]:
    """``n`` queries of n/2 clusters; every fifth has no picture, every seventh no words. Vectors name their query."""
    queries = [Query(f"c{at % 3}", f"q{at:03}", f"text {at}", (), {"cluster": f"k{at // 2}"}) for at in range(n)]
    composed = []
    for at in range(n):
        image = None if at % 5 == 0 else np.full(4, at, np.float32)
        text = None if at % 7 == 0 else np.full(4, -at, np.float32)
        composed.append(None if image is None and text is None else compose(image, text, 0.4))
    return queries, composed


def test_swapped_pictures_are_of_another_cluster_and_no_order_matters() -> None:
    queries, composed = drawn(60)
    found = swapped(queries, composed, np.random.default_rng(0))
    givers = {}
    for at, (query, one) in enumerate(zip(queries, found, strict=True)):
        if at % 5 == 0 or at % 7 == 0:
            assert one is None
            continue
        giver = int(one.image[0])
        assert giver % 5 and cluster_of(queries[giver]) != cluster_of(query)
        assert one.text[0] == -at and one.weight == 0.4
        givers[query.id] = giver
    assert len(givers) == 41 and len(set(givers.values())) > 20
    assert any(giver % 7 == 0 for giver in givers.values())  # whoever gives a picture need not have words
    order = np.random.default_rng(9).permutation(60)
    moved = swapped([queries[i] for i in order], [composed[i] for i in order], np.random.default_rng(0))
    assert {queries[i].id: int(one.image[0]) for i, one in zip(order, moved, strict=True) if one} == givers
    others = swapped(queries, composed, np.random.default_rng(1))
    assert {q.id: int(one.image[0]) for q, one in zip(queries, others, strict=True) if one} != givers
    alone = [dataclasses.replace(q, meta={"cluster": "all"}) for q in queries]
    assert swapped(alone, composed, np.random.default_rng(0)) == [None] * 60  # nobody to swap with


def test_file_order_does_not_matter(planted, workspace, encoder) -> None:
    runs = []
    for backwards in (False, True):
        dense, place = opened(planted("text", backwards), workspace, encoder)
        runs.append([Ablated(dense, variant).rank(place, 9, silent).rankings for variant in VARIANTS])
    assert runs[0] == runs[1]


def test_pictures_are_swapped_among_the_queries_of_one_answerer(planted, workspace, encoder) -> None:
    """Heads of folds: each is asked with pictures of its own queries, which it did not see."""
    dataset = open_dataset(planted("text"), workspace)
    pipelines = []
    for number in range(2):
        head = type(encoder)()
        head.encoder_id = f"head-{number}"
        pipelines.append(Pipeline(head, workspace))

    class TwoHeads:
        def __init__(self) -> None:
            self.dataset, self.pipeline, self.pipelines = dataset, pipelines[0], pipelines
            self.fold_plan, self.source = "two", "two heads"

        def answerers(self, task, progress, with_graph):
            queries = [q for c in dataset.pool(task).collections for q in c.all_queries()]
            for number, pipeline in enumerate(pipelines):
                mine = tuple(q for q in queries if len(q.meta["cluster"]) % 2 == number)
                yield Answerer(Searcher(dataset, task, pipeline, progress, with_graph), mine)

    dense, place = Dense(TwoHeads()), Place(dataset, "retrieval", workspace)
    asked = []
    real = dense.rank_asked
    dense.rank_asked = lambda place, depth, ask, progress: real(
        place, depth, lambda s, q: asked.append((s, q, ask(s, q))) or asked[-1][2], progress
    )
    Ablated(dense, "swapped-1").rank(place, 9, silent)
    generator = np.random.default_rng(1)  # one for both
    assert len(asked) == 2 and asked[0][0].encoder.encoder_id != asked[1][0].encoder.encoder_id
    for searcher, queries, found in asked:
        composed = searcher.stored_queries(queries, None)
        pictures = {one.image.tobytes() for one in composed if one is not None and one.image is not None}
        expected = swapped(queries, composed, generator)
        assert [one and one.mixed.tobytes() for one in found] == [one and one.mixed.tobytes() for one in expected]
        assert all(one.image.tobytes() in pictures for one in found if one)


def test_what_is_stored_is_not_made_again(planted, workspace, encoder) -> None:
    dense, place = opened(planted("image"), workspace, encoder)
    first = make_ablation(dense, place, workspace, silent)
    before = {m.folder: (m.folder / "run.trec.gz").read_bytes() for m in first}
    shutil.rmtree(first[2].folder)
    (first[0].folder / "measures.parquet").write_bytes(b"damaged")
    full = make_run(dense, place, workspace, silent)
    missing = stored_ablation(workspace.roots, place.dataset.data_id, full.info)
    assert isinstance(missing, str) and "python -m core evaluate DATA --model medlite --ablation makes them" in missing
    again = make_ablation(dense, place, workspace, silent)
    assert [m.fresh for m in again] == [True, False, True, *[False] * 4]
    assert {m.folder: (m.folder / "run.trec.gz").read_bytes() for m in again} == before
    for change in ({"fold_plan": "p"}, {"split": "dev"}, {"overlay": "o"}, {"encoder_ids": ("e",)}, {"place": "p"}):
        other = dataclasses.replace(full.info, **change)
        assert isinstance(stored_ablation(workspace.roots, place.dataset.data_id, other), str)
    for change in ({"depth": 10}, {"index_kind": "hnsw"}):  # those of one encoder and place belong to each of its runs
        other = dataclasses.replace(full.info, **change)
        assert isinstance(stored_ablation(workspace.roots, place.dataset.data_id, other), dict)


def test_a_graph_makes_no_difference_to_the_ablation(planted, workspace, encoder) -> None:
    dense, place = opened(planted("text"), workspace, encoder)
    made = make_ablation(Dense(dense.fair, "hnsw"), place, workspace, silent)
    assert {m.info.index_kind for m in made} == {"exact"}
    assert not any(m.fresh for m in make_ablation(dense, place, workspace, silent))


def test_one_sided_models_hybrids_and_imports_have_none(planted, workspace, encoder) -> None:
    dense, place = opened(planted("text"), workspace, encoder)
    hybrid = Fused("rrf", (Lexical(), dense), lambda part, place: part.rank(place, 9))
    for retriever, words in ((Lexical(), "bm25 reads one side"), (hybrid, "medlite is a hybrid")):
        assert words in why_not(retriever) and why_not(retriever).startswith("N/A: ")
        with pytest.raises(ValueError, match=words):
            make_ablation(retriever, place, workspace, silent)
    assert why_not(dense) == "" and not list(workspace.path("runs").glob("*/*/*"))
    info = make_run(dense, place, workspace, silent).info
    bm25 = make_run(Lexical(), place, workspace, silent).info
    theirs = dataclasses.replace(info, model="theirs", fusion="imported")
    for other, words in (
        (bm25, "one side"),
        (theirs, "imported"),
        (dataclasses.replace(info, model="rrf:a+b"), "hybrid"),
    ):
        assert words in stored_ablation(workspace.roots, "d", other)


def test_tables_and_comparisons_pass_over_variants(toy, workspace, encoder) -> None:
    """In a task with one collection the variants lie where the full runs lie."""
    shutil.rmtree(toy / "query_to_image" / "Thorax")
    dataset = open_dataset(toy, workspace)
    dense, place = Dense(Fair(dataset, Pipeline(encoder, workspace))), None
    place = Place(dataset, "query_to_image", workspace, dataset.pool("query_to_image").collections[0].key)
    make_run(dense, place, workspace, silent)
    before = stored_scores(dataset, workspace, "query_to_image", "nDCG@10")
    made = make_ablation(dense, place, workspace, silent)
    assert {m.folder.parent for m in made} == {workspace.path("runs", dataset.data_id, made[0].info.folder).parent}
    assert stored_scores(dataset, workspace, "query_to_image", "nDCG@10") == before and len(before[0]) == 1
    (only,) = listed(dataset, workspace, "query_to_image", "nDCG@10")[0]
    assert only == before[0][0] and all(document(q, place.name) in only.values for q in place.query_ids)


def test_the_command_makes_them_once_and_says_why_it_cannot() -> None:
    options = ["evaluate", str(DEMO), "--task", "summary", "--model", "medlite", "--model", "bm25"]
    plain = CliRunner().invoke(app, options)
    first = CliRunner().invoke(app, [*options, "--ablation"])
    assert first.exit_code == 0 and first.stdout == plain.stdout
    assert "No ablation: N/A: bm25 reads one side of a query" in first.stderr
    assert "medlite, summary: " in first.stderr and "No ablation" not in plain.stderr
    again = CliRunner().invoke(app, [*options, "--ablation", "--json"])
    assert "medlite, summary: 0 runs of the ablation made, 7 were there." in again.stderr and json.loads(again.stdout)
