from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.adapt.cases import Case, Picture
from core.adapt.picture_weight import GRID, ndcg, sweep, tasks
from core.models.head import Head

SIZE = 6


def plain_ndcg(scores, grades):
    """nDCG@10, linear gains, in plain Python."""
    ranked = [g for _, _, g in sorted((-s, i, g) for i, (s, g) in enumerate(zip(scores, grades, strict=True)))]
    gain = [g / np.log2(rank + 2) for rank, g in enumerate(ranked[:10])]
    ideal = [g / np.log2(rank + 2) for rank, g in enumerate(sorted(grades, reverse=True)[:10])]
    return sum(gain) / sum(ideal)


def test_ndcg_against_a_plain_loop():
    rng = np.random.default_rng(0)
    for documents in (4, 10, 40):
        scores = rng.normal(size=(20, documents)).round(1)
        grades = rng.integers(0, 3, (20, documents)).astype(float)
        grades[:, 0] = 1
        wanted = [plain_ndcg(s.tolist(), g.tolist()) for s, g in zip(scores, grades, strict=True)]
        np.testing.assert_allclose(ndcg(scores, grades), wanted)


def case(number: int) -> Case:
    pictures = tuple(Picture(Path(f"{number}-{i}.png"), f"sha{number}-{i}", f"caption {number}") for i in range(3))
    topic = f"topic {number // 2}"
    paragraph = f"A paragraph about {topic}, long enough."
    return Case(
        str(number), topic, pictures, f"question {number}", f"findings {number}", f"report {number}", (paragraph,)
    )


@pytest.fixture
def library():
    """Forty cases, two a topic, with an identity head: how much pictures and words say is given by their noise."""
    cases = [case(number) for number in range(40)]
    fold = np.array([number // 2 % 2 for number in range(40)])
    head = Head(np.eye(SIZE, dtype=np.float32), np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32))

    def vectors(picture_noise: float, text_noise: float):
        rng = np.random.default_rng(7)
        centres = rng.normal(size=(40, SIZE)).astype(np.float32)
        features, texts = {}, {}
        for number, one in enumerate(cases):
            for p in one.pictures:
                features[p.sha256] = centres[number] + picture_noise * rng.normal(size=SIZE).astype(np.float32)
            for text in (one.question, one.report, one.findings, one.pictures[0].caption, *one.paragraphs):
                texts[text] = centres[number] + text_noise * rng.normal(size=SIZE).astype(np.float32)
        return features, texts

    return cases, fold, [head, head], vectors


def test_the_side_that_knows_decides(library):
    cases, fold, heads, vectors = library
    for picture_noise, text_noise, low, high in ((0.1, 50.0, 0.5, 1.0), (50.0, 0.1, 0.0, 0.35)):
        for found in sweep(cases, fold, heads, *vectors(picture_noise, text_noise)):
            if found.target == "both":
                assert low <= found.chosen <= high


def test_the_smallest_weight_within_the_tolerance_is_chosen(library):
    cases, fold, heads, vectors = library
    for found in sweep(cases, fold, heads, *vectors(1.0, 1.0)):
        best = max(found.ndcg)
        wanted = next(w for w, value in zip(GRID, found.ndcg, strict=True) if value >= best - 0.01)
        assert found.chosen == wanted
        assert found.topics == 20


def test_the_curve_for_pictures_against_a_plain_loop(library):
    """Oracle: centred composition and nDCG@10 written out one query at a time."""
    cases, fold, heads, vectors = library
    features, texts = vectors(1.0, 1.0)
    found = {s.target: s for s in sweep(cases, fold, heads, features, texts)}["image"]

    def unit(vector):
        return vector / np.linalg.norm(vector)

    for place in (0, 7, 20):
        values = []
        for number in (0, 1):
            held = [c for c, f in zip(cases, fold, strict=True) if f == number]
            pictures = [(c, p) for c in held for p in c.pictures]
            image_mean = np.mean([unit(features[p.sha256]) for _, p in pictures], axis=0)
            said = {t for c in held for t in (c.report, c.findings, *c.paragraphs)}
            text_mean = np.mean([unit(texts[t]) for t in said], axis=0)
            for c, p in pictures:
                query_image = unit(unit(features[p.sha256]) - image_mean)
                query_text = unit(unit(texts[p.caption]) - text_mean)
                scores, grades = [], []
                for other, q in pictures:
                    if q is p:
                        continue
                    document = unit(unit(features[q.sha256]) - image_mean)
                    scores.append(GRID[place] * (query_image @ document) + (1 - GRID[place]) * (query_text @ document))
                    grades.append(2 if other.id == c.id else int(other.topic == c.topic))
                values.append(plain_ndcg(scores, grades))
        assert found.ndcg[place] == pytest.approx(np.mean(values), abs=1e-4)
        assert found.queries == len(cases) * 3


def test_tasks_never_offer_the_questioned_picture_with_the_report():
    cases = [case(number) for number in range(4)]
    ((questions, answers),) = tasks(cases)["both"]
    for question in questions:
        assert all(question.picture not in answer.pictures for answer in answers)
        assert sorted(answer.grade(question) for answer in answers) == [0, 0, 1, 2]
    assert [len(answers) for _, answers in tasks(cases)["text"]] == [4, 4, 2]
