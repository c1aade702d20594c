from __future__ import annotations

import math

import numpy as np
import pytest

from core.adapt import choose as module
from core.adapt.choose import WEIGHTS, Answer, Curve, InnerTask, choose, curves, inner_tasks, ndcg
from core.data.dataset import open_dataset
from core.embed.pipeline import Pipeline
from core.models.head import Head, Side, normalise
from core.records import Doc


def plain_ndcg(scores, grades):
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:10]
    gain = sum(grades[i] / math.log2(rank + 2) for rank, i in enumerate(order))
    ideal = sum(g / math.log2(rank + 2) for rank, g in enumerate(sorted(grades, reverse=True)[:10]))
    return gain / ideal


def test_ndcg_against_its_definition():
    rng = np.random.default_rng(0)
    for documents in (4, 10, 30):
        scores, grades = rng.standard_normal((6, documents)).round(1), rng.integers(0, 3, (6, documents)).astype(float)
        grades[:, 0] = 2
        wanted = [plain_ndcg(s, g) for s, g in zip(scores.tolist(), grades.tolist(), strict=True)]
        np.testing.assert_allclose(ndcg(scores, grades), wanted)


def test_the_smallest_weight_within_a_hundredth_of_the_best():
    values = [0.3] * 21
    values[8], values[12], values[15] = 0.55, 0.5905, 0.6
    assert Curve("image", tuple(values), 1, 1).weight == WEIGHTS[12]
    values[8] = 0.5899
    assert Curve("image", tuple(values), 1, 1).weight == WEIGHTS[12]
    values[8] = 0.591
    assert Curve("image", tuple(values), 1, 1).weight == WEIGHTS[8]


@pytest.fixture
def world():
    """Ten cases with a question (picture, text) and two documents each, a head, and features by key.

    The frozen axes carry the case, the head's own map is noise.
    """
    rng = np.random.default_rng(1)
    cause, features = rng.standard_normal((10, 4)), {}
    to_picture, to_text = rng.standard_normal((4, 12)), rng.standard_normal((4, 9))
    for case in range(10):
        for name in ("q", "d"):
            features[f"{name}{case}-picture"] = cause[case] @ to_picture + 0.1 * rng.standard_normal(12)
            features[f"{name}{case}-text"] = cause[case] @ to_text + 0.1 * rng.standard_normal(9)

    def side(carries: np.ndarray) -> Side:
        p = len(carries)
        blind = np.eye(p) - carries @ carries.T  # sees all but the cause
        linear = (blind @ rng.standard_normal((p, 3))).astype(np.float32)
        flat = (np.zeros((p, 2)), np.zeros(2), np.zeros((2, 3)))
        return Side(np.zeros(p, np.float32), linear, *(array.astype(np.float32) for array in flat))

    axes, words = (np.linalg.qr(to.T)[0] for to in (to_picture, to_text))
    head = Head(side(axes), side(words), axes.astype(np.float32))

    def get(_: str, keys) -> np.ndarray:
        return np.stack([features[key] for key in keys]).astype(np.float32)

    questions = tuple((f"q{c}-picture", f"q{c}-text") for c in range(10))
    grades, none = 2 * np.eye(10), np.zeros((10, 10), bool)
    tasks = [
        InnerTask(
            "a", "image", questions, tuple(Answer((f"d{c}-picture",), "", str(c), "t") for c in range(10)), grades, none
        ),
        InnerTask(
            "b", "text", questions, tuple(Answer((), f"d{c}-text", str(c), "t") for c in range(10)), grades, none
        ),
    ]
    return head, tasks, get


def test_shares_go_to_the_blocks_that_find_the_case(world):
    head, tasks, get = world
    found = choose(head, tasks, get)
    assert found.alpha > 0
    assert found.beta > 0
    assert len(found.tried) == 16
    best = max(value for *_, value in found.tried)
    assert [value for a, b, value in found.tried if (a, b) == (found.alpha, found.beta)] == [best]
    assert found.weights["both"] == module.NO_CHOICE
    assert {c.target: c.weight for c in found.curves} == {k: v for k, v in found.weights.items() if k != "both"}


def test_a_curve_against_one_query_at_a_time(world):
    head, tasks, get = world
    task = tasks[0]
    mean = {
        "image": head.images(get("image", [f"d{c}-picture" for c in range(10)])).mean(0),
        "text": head.texts(get("text", [f"d{c}-text" for c in range(10)])).mean(0),
    }
    for at in (0, 9, 20):
        w, values = WEIGHTS[at], []
        for (picture, text), grades in zip(task.questions, task.grades.tolist(), strict=True):
            image = normalise(head.images(get("image", [picture]))[0] - mean["image"])
            words = normalise(head.texts(get("text", [text]))[0] - mean["text"])
            scores = []
            for answer in task.answers:
                document = normalise(head.images(get("image", answer.pictures))[0] - mean["image"])
                scores.append(float(w * image @ document + (1 - w) * words @ document))
            values.append(plain_ndcg(scores, grades))
        assert curves(head, tasks, get)[0].ndcg[at] == pytest.approx(np.mean(values), abs=1e-6)


def test_without_questions_nothing_is_chosen(world):
    found = choose(world[0], [], world[2])
    assert (found.alpha, found.beta, found.weights) == (0.5, 0.5, {"image": 0.5, "text": 0.5, "both": 0.5})


def test_inner_tasks_of_the_toy_data_set(toy, workspace, encoder):
    dataset = open_dataset(toy, workspace)
    pipeline = Pipeline(encoder, workspace)
    found, contents = inner_tasks(dataset, {"cluster:a"}, {"cluster:a"}, "", pipeline)
    tasks = {(t.name, t.target): t for t in found}
    asked = [question for t in found for question in t.questions]
    assert {key for t in found for a in t.answers for key in a.pictures} <= set(contents.pictures)
    assert {picture for picture, _ in asked} <= set(contents.pictures)
    assert {a.text for t in found for a in t.answers if a.text} == set(contents.texts)
    assert {text for _, text in asked} <= set(contents.questions)  # template text too, which no pair of words has
    pictures = tasks["query_to_image", "image"]
    assert len(pictures.questions) == len(pictures.answers) == 2
    assert pictures.itself.tolist() == [[True, False], [False, True]]
    assert pictures.grades.tolist() == [[0, 2], [2, 0]]
    texts = tasks["visual_context", "text"]
    assert (len(texts.questions), len(texts.answers)) == (1, 2)
    # texts joined with the picture of their case that no question of the task shows
    both = tasks["visual_context", "both"]
    assert [len(a.pictures) for a in both.answers] == [1, 1]
    assert both.answers[0].pictures[0] != texts.questions[0][0]
    assert inner_tasks(dataset, {"cluster:a"}, {"cluster:a"}, "train", pipeline)[0] == []
    wide = {t.target: t for t in inner_tasks(dataset, {"cluster:a"}, {"cluster:a", "cluster:b"}, "", pipeline)[0]}
    assert len(wide["image"].questions) == 2
    assert len(wide["image"].answers) == 4


def test_other_topics_are_sampled_and_inner_documents_kept(monkeypatch):
    monkeypatch.setattr(module, "OTHERS", 5)
    docs = [Doc("c", str(n), "", "x", (), {"cluster": "in" if n % 4 == 0 else "out"}) for n in range(40)]
    kept = module._sample(docs, {"cluster:in"})
    assert [doc for doc in kept if doc.meta["cluster"] == "in"] == docs[::4]
    assert len(kept) == 15
    assert kept == sorted(kept, key=lambda doc: int(doc.id)) == module._sample(docs, {"cluster:in"})
