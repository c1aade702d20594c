from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from core.adapt import contrastive
from core.adapt.contrastive import Epoch, Items, Recipe, train
from core.adapt.pairs import Pair

SMALL = Recipe(shared=6, hidden=12, components=5, cases=12, epochs=8, patience=3)


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


@pytest.fixture(scope="module")
def world():
    """40 cases of three pairs in which pictures and texts share a hidden cause, and a function that gives features."""
    rng = np.random.default_rng(0)
    cause = rng.standard_normal((40, 6))
    to = {"image": rng.standard_normal((6, 20)), "text": rng.standard_normal((6, 14))}
    features, pairs = {"image": {}, "text": {}}, []
    for case in range(40):
        for number in range(3):
            for side in to:
                noise = 4 * rng.standard_normal(to[side].shape[1])
                features[side][f"{side}-{case}-{number}"] = (cause[case] @ to[side] + noise).astype(np.float32)
            pairs.append(Pair(f"image-{case}-{number}", f"text-{case}-{number}", f"case{case}", f"topic{case // 2}"))

    def get(side: str, keys) -> np.ndarray:
        return np.stack([features[side][key] for key in keys])

    return pairs, get


def arrays(head):
    return [getattr(side, name) for side in (head.image, head.text) for name in ("mean", "linear", "hidden", "out")]


def test_the_same_seed_gives_the_same_head_and_another_one_another(world):
    pairs, get = world
    runs = [train(pairs[:90], pairs[90:], get, SMALL, seed, silent) for seed in (1, 1, 2)]
    assert all(np.array_equal(a, b) for a, b in zip(arrays(runs[0].head), arrays(runs[1].head), strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(arrays(runs[0].head), arrays(runs[2].head), strict=True))
    assert runs[0].epochs[1:] == runs[1].epochs[1:]


def test_training_leaves_torchs_generator_alone(world):
    pairs, get = world
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    train(pairs[:90], pairs[90:], get, SMALL, 1, silent)
    assert torch.equal(torch.rand(3), wanted)


def test_training_lowers_the_loss_and_keeps_the_best_epoch(world):
    pairs, get = world
    recipe = replace(SMALL, cases=100, dropout=0.0, input_dropout=(0.0, 0.0), rate=3e-3)
    found = train(pairs[:90], pairs[90:], get, recipe, 3, silent)
    losses = [epoch.loss for epoch in found.epochs[1:]]
    assert losses == sorted(losses, reverse=True)
    later = [epoch for epoch in found.epochs if epoch.number >= contrastive.LEAST_EPOCHS]
    assert found.best in later
    assert found.best.mean == max(epoch.mean for epoch in later)
    held = Items(pairs[90:], get)
    assert contrastive.inner_success(found.head, held) == (found.best.text_to_image, found.best.image_to_image)


def test_it_never_stops_before_five_epochs_and_then_after_its_patience(world, monkeypatch):
    pairs, get = world
    falling = (Epoch(n, 0.0, 1 - n / 100, 1 - n / 100) for n in range(100))
    monkeypatch.setattr(contrastive, "_epoch", lambda *args: next(falling))
    found = train(pairs[:90], pairs[90:], get, SMALL, 3, silent)
    assert len(found.epochs) - 1 == 5 + SMALL.patience
    assert found.best.number == 5


def test_the_trained_module_and_the_plain_head_compute_the_same(world):
    pairs, get = world
    items = Items(pairs, get)
    torch.manual_seed(0)
    model = contrastive._model(items, SMALL)
    for part in model.values():
        torch.nn.init.normal_(part.out.weight)
    head = contrastive._head(model, np.zeros((20, 5), np.float32))
    for side in ("image", "text"):
        wanted = contrastive._forward(model[side], torch.arange(len(items.case[side])), 0.0, 0.0).detach().numpy()
        np.testing.assert_allclose(getattr(head, side)(items.features[side]), wanted, atol=2e-6)


def test_the_loss_against_loops(world):
    """Oracle: the definition written out for every anchor, positive and candidate."""
    pairs, get = world
    few = [*pairs[:12], Pair("image-0-0", "text-1-0", "case1", "topic0")]  # a picture that two cases share
    items = Items(few, get)
    torch.manual_seed(0)
    recipe = Recipe(shared=6, hidden=12, components=5, input_dropout=(0.0, 0.0), dropout=0.0, within=(0.5, 0.25))
    model = contrastive._model(items, recipe)
    head = contrastive._head(model, np.zeros((20, 5), np.float32))
    rows = {side: getattr(head, side)(items.features[side]).astype(float) for side in ("image", "text")}

    def plain(one: str, other: str) -> float:
        losses = []
        for i, anchor in enumerate(rows[one]):
            positive, candidates = [], []
            for j, candidate in enumerate(rows[other]):
                same_case = items.case[one][i] == items.case[other][j]
                if one == other and items.content[one][i] == items.content[other][j]:
                    continue
                if not same_case and items.topic[one][i] == items.topic[other][j]:
                    continue
                candidates.append(9.0 * anchor @ candidate)
                if same_case:
                    positive.append(candidates[-1])
            if positive:
                losses.append(np.log(np.sum(np.exp(candidates))) - np.mean(positive))
        return float(np.mean(losses))

    wanted = (plain("image", "text") + plain("text", "image")) / 2
    wanted += 0.5 * plain("image", "image") + 0.25 * plain("text", "text")
    found = contrastive._loss(model, items, np.arange(items.cases), torch.tensor(9.0), recipe)
    assert found.item() == pytest.approx(wanted, rel=1e-5)


def test_items_are_distinct_contents_of_each_case(world):
    pairs, get = world
    twice = [pairs[0], pairs[0], Pair(pairs[0].picture, pairs[1].text, pairs[0].case, pairs[0].topic)]
    items = Items([*twice, pairs[3]], get)
    assert (len(items.case["image"]), len(items.case["text"])) == (2, 3)
    assert items.pair_image.tolist() == [0, 0, 0, 1]
    assert items.pair_text.tolist() == [0, 0, 1, 2]
    np.testing.assert_array_equal(items.features["image"][1], get("image", [pairs[3].picture])[0])
