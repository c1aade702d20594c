"""Contrastive training of the head on frozen features: symmetric InfoNCE with several positives (SupCon).

Positives are all pictures and texts of one case (Khosla et al., Supervised contrastive learning, 2020; Radford et
al., CLIP, 2021). The head starts as the closed-form alignment (ridge regression from pictures onto the principal
axes of the texts) and learns a correction to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.adapt.closed_form import principal_axes, ridge
from core.adapt.pairs import Pair
from core.adapt.success import success, success_among
from core.models.head import Head, Side

if TYPE_CHECKING:
    from torch import Tensor, nn

Progress = Callable[[str, int, int], None]

LEAST_EPOCHS = 5
"""Training never stops earlier, however the inner topics look."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a head is trained. The defaults were chosen on held-out topics of MedPix train cases (the card lists them).

    ``shared``, ``hidden``, ``components``: widths of the shared space, the hidden layer and the frozen picture block,
    whose axes are evened out by ``whitening`` (`core.adapt.closed_form.principal_axes`);
    ``penalty``: ridge penalty of the starting point, as a share of the mean squared feature; ``input_dropout`` of the
    picture's and the text's features, ``dropout`` of the hidden layer; ``within``: weights of the picture–picture and
    text–text terms; ``cases``: cases of a batch; ``temperature`` at the start, learnt from there.
    """

    shared: int = 256
    hidden: int = 256
    components: int = 256
    whitening: float = 0.75
    penalty: float = 1.0
    input_dropout: tuple[float, float] = (0.5, 0.3)
    dropout: float = 0.5
    within: tuple[float, float] = (1.0, 0.5)
    cases: int = 160
    temperature: float = 0.1
    rate: float = 1e-3
    decay: float = 0.05
    epochs: int = 20
    patience: int = 8

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for manifests and cards."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Epoch:
    """Mean Success@10 of the queries of the inner topics after an epoch (0: the starting point).

    ``loss`` is the mean of the epoch's batches.
    """

    number: int
    loss: float
    text_to_image: float
    image_to_image: float

    @property
    def mean(self) -> float:
        """What the best epoch is chosen by."""
        return (self.text_to_image + self.image_to_image) / 2


@dataclass(frozen=True, slots=True)
class Trained:
    """The head of the best epoch (shares α and β still 0), that epoch, and all epochs in order."""

    head: Head
    best: Epoch
    epochs: tuple[Epoch, ...]


class Items:
    """The distinct pictures and texts of some pairs, one row per content and case.

    ``features [n, p]``, ``case``, ``topic`` and ``content`` int [n] codes for each side; ``pair_image`` and
    ``pair_text`` int [pairs] say which rows a pair joins.
    """

    def __init__(self, pairs: Sequence[Pair], get: Callable[[str, Sequence[str]], np.ndarray]) -> None:
        cases = {name: n for n, name in enumerate(sorted({p.case for p in pairs}))}
        topics = {name: n for n, name in enumerate(sorted({p.topic for p in pairs}))}
        self.cases = len(cases)
        self.features, self.case, self.topic, self.content = {}, {}, {}, {}
        of_pair = {}
        for side, name in (("image", "picture"), ("text", "text")):
            rows = {(p.case, getattr(p, name)): p.topic for p in pairs}
            contents = {key: n for n, key in enumerate(sorted({key for _, key in rows}))}
            self.features[side] = get(side, [key for _, key in rows])
            self.case[side] = np.array([cases[case] for case, _ in rows])
            self.topic[side] = np.array([topics[topic] for topic in rows.values()])
            self.content[side] = np.array([contents[key] for _, key in rows])
            place = {row: n for n, row in enumerate(rows)}
            of_pair[side] = np.array([place[p.case, getattr(p, name)] for p in pairs])
        self.pair_image, self.pair_text = of_pair["image"], of_pair["text"]


def train(
    fit: Sequence[Pair],
    inner: Sequence[Pair],
    get: Callable[[str, Sequence[str]], np.ndarray],
    recipe: Recipe,
    seed: int,
    progress: Progress,
) -> Trained:
    """Train a head on the pairs ``fit``; ``inner`` (other topics) only tell which epoch to keep.

    ``get(side, keys)`` gives the towers' features. The same pairs, recipe and seed give the same head on one machine.
    """
    import torch

    items, held = Items(fit, get), Items(inner, get)
    with _deterministic(seed):
        model = _model(items, recipe)
        components = principal_axes(items.features["image"], recipe.components, recipe.whitening)
        scale = torch.nn.Parameter(torch.tensor(-np.log(recipe.temperature), dtype=torch.float32))
        groups = [
            {"params": list(model.parameters()), "weight_decay": recipe.decay},
            {"params": [scale], "weight_decay": 0.0},
        ]
        optimiser = torch.optim.AdamW(groups, lr=recipe.rate)
        batches = max(1, round(items.cases / recipe.cases))
        generator = np.random.default_rng(seed)
        start = _epoch(0, float("nan"), model, components, held)
        epochs, best, kept = [start], start, _head(model, components)
        for number in range(1, recipe.epochs + 1):
            progress("Training the head", number - 1, recipe.epochs)
            losses = []
            for at, chosen in enumerate(np.array_split(generator.permutation(items.cases), batches)):
                step = (number - 1) * batches + at
                factor = min(1.0, (step + 1) / 10) * 0.5 * (1 + np.cos(np.pi * step / (recipe.epochs * batches)))
                for group in optimiser.param_groups:
                    group["lr"] = recipe.rate * factor
                loss = _loss(model, items, chosen, scale.exp().clamp(max=100), recipe)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses.append(loss.item())
            epochs.append(_epoch(number, float(np.mean(losses)), model, components, held))
            if epochs[-1].mean > best.mean or (number >= LEAST_EPOCHS > best.number):
                best, kept = epochs[-1], _head(model, components)
            if number >= max(LEAST_EPOCHS, best.number + recipe.patience):
                break
        progress("Training the head", recipe.epochs, recipe.epochs)
    return Trained(kept, best, tuple(epochs))


def inner_success(head: Head, held: Items) -> tuple[float, float]:
    """Mean Success@10 of text→image (every pair's words) and image→image, by the shared block alone."""
    images, texts = head.image(held.features["image"]), head.text(held.features["text"])
    case = held.case
    to_image = success(texts[held.pair_text], case["text"][held.pair_text], images, case["image"])
    between, _ = success_among(images, case["image"])
    return float(to_image.mean()), float(between.mean()) if len(between) else 0.0


def _epoch(number: int, loss: float, model: nn.ModuleDict, components: np.ndarray, held: Items) -> Epoch:
    return Epoch(number, loss, *inner_success(_head(model, components), held))


def _model(items: Items, recipe: Recipe) -> nn.ModuleDict:
    """Both sides as torch modules, started at the closed form: its linear part, and a correction that is zero.

    Features are centred and scaled to a mean square of 1 for training; `_head` puts the scale into the weights.
    """
    import torch
    from torch import nn

    images, texts = items.features["image"], items.features["text"]
    axes = principal_axes(texts, recipe.shared)
    start = {
        "image": ridge(images[items.pair_image], texts[items.pair_text] @ axes, recipe.penalty),
        "text": axes,
    }
    model = nn.ModuleDict()
    for side, features in (("image", images), ("text", texts)):
        mean = features.mean(0)
        spread = np.float32(np.sqrt(np.mean((features - mean) ** 2)))
        inputs = (features - mean) / spread
        linear = start[side] / np.sqrt(np.mean((inputs @ start[side]) ** 2))
        part = nn.Module()
        part.linear = nn.Parameter(torch.from_numpy(linear.astype(np.float32)))
        part.hidden = nn.Linear(len(mean), recipe.hidden)
        part.out = nn.Linear(recipe.hidden, linear.shape[1], bias=False)
        nn.init.zeros_(part.out.weight)
        part.mean, part.spread, part.inputs = mean, spread, torch.from_numpy(inputs.astype(np.float32))
        model[side] = part
    return model


def _forward(part: nn.Module, rows: Tensor, input_dropout: float, dropout: float) -> Tensor:
    """What `core.models.head.Side` computes, with dropout."""
    from torch.nn.functional import dropout as drop
    from torch.nn.functional import gelu, normalize

    z = drop(part.inputs[rows], input_dropout)
    return normalize(z @ part.linear + part.out(drop(gelu(part.hidden(z), approximate="tanh"), dropout)), dim=-1)


def _head(model: nn.ModuleDict, components: np.ndarray) -> Head:
    """The head as it stands, in plain arrays."""
    sides = {}
    for side, part in model.items():
        linear, hidden, bias, out = (
            t.detach().numpy().astype(np.float32)
            for t in (part.linear, part.hidden.weight, part.hidden.bias, part.out.weight)
        )
        sides[side] = Side(part.mean, linear / part.spread, hidden.T / part.spread, bias.copy(), out.T.copy())
    return Head(sides["image"], sides["text"], components)


def _loss(model: nn.ModuleDict, items: Items, chosen: np.ndarray, scale: Tensor, recipe: Recipe) -> Tensor:
    """Both directions between pictures and texts, and within each side, over all contents of the chosen cases."""
    import torch

    rows, vectors = {}, {}
    for at, side in enumerate(("image", "text")):
        rows[side] = np.flatnonzero(np.isin(items.case[side], chosen))
        places = torch.from_numpy(rows[side])
        vectors[side] = _forward(model[side], places, recipe.input_dropout[at], recipe.dropout)

    def term(one: str, other: str) -> tuple[Tensor, Tensor, Tensor]:
        def equal(codes: dict[str, np.ndarray]) -> np.ndarray:
            return codes[one][rows[one]][:, None] == codes[other][rows[other]][None]

        positive = equal(items.case)
        # another case of the topic is no wrong answer, and a content is no answer to itself
        ignored = equal(items.topic) & ~positive
        if one == other:
            ignored |= equal(items.content)
        scores = vectors[one] @ vectors[other].T * scale
        return scores, torch.from_numpy(positive & ~ignored), torch.from_numpy(ignored)

    scores, positive, ignored = term("image", "text")
    loss = (_contrast(scores, positive, ignored) + _contrast(scores.T, positive.T, ignored.T)) / 2
    for side, weight in zip(("image", "text"), recipe.within, strict=True):
        if weight:
            loss = loss + weight * _contrast(*term(side, side))
    return loss


def _contrast(scores: Tensor, positive: Tensor, ignored: Tensor) -> Tensor:
    """Mean over rows with a positive of −mean log softmax of their positives; ignored columns do not take part."""
    logs = scores.masked_fill(ignored, -1e9).log_softmax(dim=1)
    counts = positive.sum(dim=1)
    rows = counts > 0
    if not rows.any():
        return scores.sum() * 0
    return -(logs.masked_fill(~positive, 0).sum(dim=1)[rows] / counts[rows]).mean()


@contextmanager
def _deterministic(seed: int) -> Iterator[None]:
    """torch's generator set to ``seed`` inside, and as it was afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
