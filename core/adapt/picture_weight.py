"""The default weight of the picture in a mixed query, chosen on held-out topics for each kind of target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.adapt.cases import Case
from core.models.head import Head, normalise

GRID = tuple(round(step * 0.05, 2) for step in range(21))
TOLERANCE = 0.01
DEPTH = 10


@dataclass(frozen=True, slots=True)
class Question:
    """A mixed query: a picture (its sha256), words, and the case it comes from."""

    picture: str
    text: str
    case: Case


@dataclass(frozen=True, slots=True)
class Answer:
    """A document: pictures (sha256), text, or both; its case ('' for a paragraph) and the topics it belongs to."""

    pictures: tuple[str, ...]
    text: str
    case: str
    topics: frozenset[str]

    def grade(self, question: Question) -> int:
        """2 for the question's own case, 1 for its topic, 0 otherwise."""
        return 2 if self.case == question.case.id else int(question.case.topic in self.topics)


@dataclass(frozen=True, slots=True)
class Sweep:
    """nDCG@10 over the grid of weights for one kind of target; ``chosen`` is the smallest within 0.01 of the best."""

    target: str
    ndcg: tuple[float, ...]
    chosen: float
    queries: int
    topics: int


def tasks(cases: Sequence[Case]) -> dict[str, list[tuple[list[Question], list[Answer]]]]:
    """The benchmark's tasks on these cases as one pool, by the sides the documents have.

    ``image``: query_to_image. ``text``: case_study, summary and visual_context. ``both``: the questions of case_study
    against cases of two or more pictures, a document being the report and all pictures but the questioned first.
    """
    pictures = [Question(p.sha256, p.caption, c) for c in cases for p in c.pictures if p.caption]
    stories = [Question(c.pictures[0].sha256, c.question, c) for c in cases if c.question]
    paragraphs: dict[str, set[str]] = {}
    for case in cases:
        for paragraph in case.paragraphs:
            paragraphs.setdefault(paragraph, set()).add(case.topic)

    def one(case: Case, shas: tuple[str, ...], text: str) -> Answer:
        return Answer(shas, text, case.id, frozenset({case.topic}))

    return {
        "image": [(pictures, [one(c, (p.sha256,), "") for c in cases for p in c.pictures])],
        "text": [
            (stories, [one(c, (), c.report) for c in cases if c.report]),
            (stories, [one(c, (), c.findings) for c in cases if c.findings]),
            (pictures, [Answer((), text, "", frozenset(topics)) for text, topics in paragraphs.items()]),
        ],
        "both": [
            (stories, [one(c, tuple(p.sha256 for p in c.pictures[1:]), c.report) for c in cases if c.pictures[1:]])
        ],
    }


def document_texts(cases: Sequence[Case]) -> list[str]:
    """The distinct texts that documents of the text tasks have, sorted."""
    return sorted({text for c in cases for text in (c.report, c.findings, *c.paragraphs) if text})


def ndcg(scores: np.ndarray, grades: np.ndarray) -> np.ndarray:
    """nDCG@10 ``[n]`` of scores and grades ``[n, documents]``: linear gains, the ideal over all documents."""
    discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    ideal = -np.sort(-grades, axis=1)[:, :DEPTH]
    discounts = discounts[: ideal.shape[1]]
    return (np.take_along_axis(grades, order, 1) @ discounts) / (ideal @ discounts)


def sweep(
    cases: Sequence[Case],
    fold: np.ndarray,
    heads: Sequence[Head],
    features: Mapping[str, np.ndarray],
    vectors: Mapping[str, np.ndarray],
) -> list[Sweep]:
    """Sweep the grid on each fold's cases with the head that saw none of their topics.

    ``fold`` int [cases]; ``heads[f]`` is the head fitted without fold f; ``features`` of each picture by sha256,
    ``vectors`` of each text. Composition ``centred``: both sides are centred on the mean of the fold's documents.
    A target's nDCG@10 is the mean over queries within a task (queries without a relevant document left out), then
    over its tasks.
    """
    found: dict[tuple[str, int], list[np.ndarray]] = {}
    counted: dict[str, list[Question]] = {}
    for number, head in enumerate(heads):
        held = [case for case, f in zip(cases, fold, strict=True) if f == number]
        encoder = _Centred(head, held, features, vectors)
        for target, parts in tasks(held).items():
            for task, (questions, answers) in enumerate(parts):
                values, kept = _curve(encoder, questions, answers)
                found.setdefault((target, task), []).append(values)
                counted.setdefault(target, []).extend(kept)
    result = []
    for target, kept in counted.items():
        curves = [np.concatenate(parts, axis=1).mean(1) for (name, _), parts in found.items() if name == target]
        curve = np.mean(curves, axis=0)
        chosen = GRID[int(np.argmax(curve >= curve.max() - TOLERANCE))]
        topics = {question.case.topic for question in kept}
        result.append(Sweep(target, tuple(float(v) for v in curve), chosen, len(kept), len(topics)))
    return result


class _Centred:
    """Vectors of one fold under its head, centred on the fold's documents."""

    def __init__(self, head: Head, held: Sequence[Case], features: Mapping, vectors: Mapping) -> None:
        self.head, self.features, self.vectors = head, features, vectors
        self.image_mean = self._images([p.sha256 for c in held for p in c.pictures]).mean(0)
        self.text_mean = self._texts(document_texts(held)).mean(0)

    def _images(self, shas: Sequence[str]) -> np.ndarray:
        return self.head.images(np.stack([self.features[sha] for sha in shas]))

    def _texts(self, texts: Sequence[str]) -> np.ndarray:
        return self.head.texts(np.stack([self.vectors[text] for text in texts]))

    def questions(self, questions: Sequence[Question]) -> tuple[np.ndarray, np.ndarray]:
        images = normalise(self._images([q.picture for q in questions]) - self.image_mean)
        return images, normalise(self._texts([q.text for q in questions]) - self.text_mean)

    def answer(self, answer: Answer) -> np.ndarray:
        sides = []
        if answer.pictures:
            sides.append(normalise(self._images(answer.pictures).mean(0) - self.image_mean))
        if answer.text:
            sides.append(normalise(self._texts([answer.text])[0] - self.text_mean))
        return normalise(np.mean(sides, axis=0))


def _curve(
    encoder: _Centred, questions: Sequence[Question], answers: Sequence[Answer]
) -> tuple[np.ndarray, list[Question]]:
    """nDCG@10 ``[weights, queries]`` and the queries kept: those with a relevant document."""
    grades = np.array([[answer.grade(question) for answer in answers] for question in questions], float)
    itself = np.array([[answer.pictures == (q.picture,) and not answer.text for answer in answers] for q in questions])
    grades[itself] = 0
    rows = np.flatnonzero(grades.any(axis=1))
    kept = [questions[row] for row in rows]
    images, texts = encoder.questions(kept)
    documents = np.stack([encoder.answer(answer) for answer in answers])
    by_image, by_text = images @ documents.T, texts @ documents.T
    blocked = np.where(itself[rows], -np.inf, 0)
    return np.stack([ndcg(w * by_image + (1 - w) * by_text + blocked, grades[rows]) for w in GRID]), kept
