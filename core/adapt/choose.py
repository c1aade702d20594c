"""The shares of the frozen blocks and the default weight of the picture, chosen on topics the head was not fitted on.

Which documents answer a question is told by the data set's own grouping (same case 2, same topic 1), as in training;
the judgements are not read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.adapt.pairs import case_of, case_of_doc, topic_of_doc
from core.data.collection import Collection as Source
from core.data.dataset import DataSet
from core.data.topics import cluster_of
from core.embed.pipeline import Pipeline, text_key
from core.models.head import Head, normalise
from core.records import Doc

SHARES = (0.0, 0.25, 0.5, 0.75)
"""What α and β are chosen from."""

WEIGHTS = tuple(round(step * 0.05, 2) for step in range(21))
COARSE = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The weights at which shares are compared."""

TOLERANCE = 0.01
OTHERS = 1000
"""Documents of a collection, besides those of the inner topics, that take part in choosing."""

DEPTH = 10
NO_CHOICE = 0.5
"""The weight for a kind of documents that the inner topics have no example of."""

Get = Callable[[str, Sequence[str]], np.ndarray]


@dataclass(frozen=True, slots=True)
class Answer:
    """A document by content keys (sha256): pictures, text ('' if none); its case and topic ('' where not stated)."""

    pictures: tuple[str, ...]
    text: str
    case: str
    topic: str


@dataclass(frozen=True, slots=True)
class InnerTask:
    """Mixed questions (picture key, text key) and documents of the inner topics of one task.

    ``grades`` float [questions, answers]; ``itself`` bool marks the question's own document, which is no answer.
    """

    name: str
    target: str
    questions: tuple[tuple[str, str], ...]
    answers: tuple[Answer, ...]
    grades: np.ndarray
    itself: np.ndarray


@dataclass(frozen=True, slots=True)
class Curve:
    """nDCG@10 over `WEIGHTS` for one kind of documents; ``weight`` is the smallest within 0.01 of the best."""

    target: str
    ndcg: tuple[float, ...]
    questions: int
    documents: int

    @property
    def weight(self) -> float:
        at = np.asarray(self.ndcg)
        return WEIGHTS[int(np.argmax(at >= at.max() - TOLERANCE))]

    @property
    def value(self) -> float:
        """What the shares are chosen by: the mean of words alone, picture alone and the best mixture."""
        return (self.ndcg[0] + self.ndcg[-1] + max(self.ndcg)) / 3


@dataclass(frozen=True, slots=True)
class Choice:
    """α, β, the curves at these shares by kind of documents, and what every pair of shares scored."""

    alpha: float
    beta: float
    curves: tuple[Curve, ...]
    tried: tuple[tuple[float, float, float], ...]

    @property
    def weights(self) -> dict[str, float]:
        """The default weight for documents that have these sides."""
        found = {curve.target: curve.weight for curve in self.curves}
        return {target: found.get(target, NO_CHOICE) for target in ("image", "text", "both")}


@dataclass(frozen=True, slots=True)
class Contents:
    """What must have features: pictures (key → collection, reference), and texts of documents and of questions
    (key → text)."""

    pictures: dict[str, tuple[Source, str]]
    texts: dict[str, str]
    questions: dict[str, str]


def inner_tasks(
    dataset: DataSet, inner: Collection[str], topics: Collection[str], split: str, pipeline: Pipeline
) -> tuple[list[InnerTask], Contents]:
    """The questions of the topics ``inner`` against the documents of ``topics``, task by task.

    ``topics`` are all that training may see: with the inner ones alone the pool would be a tenth of the size, where
    words look better than they are. Of the other topics' documents a seeded sample of `OTHERS` takes part. Tasks
    without an answered question are left out.

    For documents of both sides, which a data set of single-sided documents lacks, texts are joined with those
    pictures of their case that no question of the task shows.
    """
    found, contents = [], Contents({}, {}, {})
    for name in dataset.tasks:
        questions, owners, answers, documents = [], [], [], []
        shown: dict[str, set[str]] = {}
        for collection in dataset.pool(name).collections:
            asked = [q for q in collection.all_queries() if cluster_of(q) in inner]
            asked = [q for q in asked if not split or q.meta.get("split") == split]
            docs = _sample([d for d in collection.docs() if topic_of_doc(d) in topics], inner)
            keys = pipeline.picture_keys(collection, [r for item in (*asked, *docs) for r in item.images])
            for q in asked:
                pictures = [keys[r] for r in q.images if r in keys]
                if pictures and q.text.strip():
                    words = q.text.strip()
                    questions.append((pictures[0], text_key(words)))
                    contents.questions[text_key(words)] = words
                    contents.pictures.update({keys[r]: (collection, r) for r in q.images if r in keys})
                    owners.append((collection.key, q.id, case_of(q), cluster_of(q)))
                    shown.setdefault(case_of(q), set()).update(pictures)
            for d in docs:
                own = tuple(keys[r] for r in d.images if r in keys)
                contents.pictures.update({keys[r]: (collection, r) for r in d.images if r in keys})
                words = text_key(d.full_text) if d.full_text else ""
                if words:
                    contents.texts[words] = d.full_text
                if own or words:
                    answers.append(Answer(own, words, case_of_doc(d), topic_of_doc(d)))
                    documents.append((collection.key, d.id if dataset.ignore_identical_ids else None))
        found.append((name, questions, owners, answers, documents, shown))
    of_case: dict[str, set[str]] = {}
    for _, _, _, answers, _, shown in found:
        for case, pictures in (*shown.items(), *((a.case, a.pictures) for a in answers if a.case)):
            of_case.setdefault(case, set()).update(pictures)
    tasks = []
    for name, questions, owners, answers, documents, shown in found:
        tasks.append(_task(name, questions, owners, answers, documents))
        if all(not a.pictures for a in answers):
            spare = [tuple(sorted(of_case.get(a.case, set()) - shown.get(a.case, set()))) for a in answers]
            joined = [(replace(a, pictures=s), d) for a, d, s in zip(answers, documents, spare, strict=True) if s]
            tasks.append(_task(name, questions, owners, [a for a, _ in joined], [d for _, d in joined]))
    return [task for task in tasks if task is not None], contents


def _sample(docs: list[Doc], inner: Collection[str]) -> list[Doc]:
    """The documents of the inner topics and at most `OTHERS` of the rest, in file order."""
    rest = [at for at, doc in enumerate(docs) if topic_of_doc(doc) not in inner]
    left_out = set(rest) - set(random.Random(0).sample(rest, min(OTHERS, len(rest))))
    return [doc for at, doc in enumerate(docs) if at not in left_out]


def _task(
    name: str, questions: Sequence, owners: Sequence, answers: Sequence[Answer], documents: Sequence
) -> InnerTask | None:
    grades = np.array(
        [[2.0 if a.case == case else float(a.topic == topic) for a in answers] for *_, case, topic in owners]
    )
    itself = np.array([[document == (key, identity) for document in documents] for key, identity, *_ in owners], bool)
    if not grades.size:
        return None
    grades[itself] = 0
    kept = np.flatnonzero(grades.any(axis=1))
    if not len(kept):
        return None
    sides = {side for a in answers for side, has in (("image", a.pictures), ("text", a.text)) if has}
    target = "both" if len(sides) == 2 else sides.pop()
    return InnerTask(name, target, tuple(questions[i] for i in kept), tuple(answers), grades[kept], itself[kept])


def choose(head: Head, tasks: Sequence[InnerTask], get: Get) -> Choice:
    """α, β of greatest mean value over the kinds of documents, then the default weights at these shares.

    Without tasks both shares are `NO_CHOICE`. On a tie the smaller shares win.
    """
    if not tasks:
        return Choice(NO_CHOICE, NO_CHOICE, (), ())
    value = {}
    for alpha in SHARES:
        for beta in SHARES:
            found = curves(replace(head, alpha=alpha, beta=beta), tasks, get, COARSE)
            value[alpha, beta] = float(np.mean([curve.value for curve in found]))
    best = max(value, key=lambda shares: (value[shares], -shares[0], -shares[1]))
    chosen = curves(replace(head, alpha=best[0], beta=best[1]), tasks, get)
    return Choice(*best, tuple(chosen), tuple((*shares, v) for shares, v in value.items()))


def curves(head: Head, tasks: Sequence[InnerTask], get: Get, weights: Sequence[float] = WEIGHTS) -> list[Curve]:
    """nDCG@10 over ``weights`` by kind of documents: mean over queries within a task, then over its tasks.

    Composition ``centred`` with the means of the documents.
    """
    images = _Vectors(head.images, get, "image", {k for t in tasks for a in t.answers for k in a.pictures})
    texts = _Vectors(head.texts, get, "text", {a.text for t in tasks for a in t.answers if a.text})
    found: dict[str, list[tuple[np.ndarray, InnerTask]]] = {}
    for task in tasks:
        documents = _documents(task.answers, images, texts)
        by_image = images.queries([picture for picture, _ in task.questions]) @ documents.T
        by_text = texts.queries([text for _, text in task.questions]) @ documents.T
        blocked = np.where(task.itself, -np.inf, 0).astype(np.float32)
        values = [ndcg(w * by_image + (1 - w) * by_text + blocked, task.grades).mean() for w in weights]
        found.setdefault(task.target, []).append((np.array(values), task))
    result = []
    for target in sorted(found):
        curve = np.mean([values for values, _ in found[target]], axis=0)
        questions = sum(len(task.questions) for _, task in found[target])
        documents = sum(len(task.answers) for _, task in found[target])
        result.append(Curve(target, tuple(float(v) for v in curve), questions, documents))
    return result


class _Vectors:
    """The vectors of one side: those of the documents by key, and their mean, on which everything is centred."""

    def __init__(self, vectors: Callable[[np.ndarray], np.ndarray], get: Get, side: str, keys: Collection[str]) -> None:
        self._vectors, self._get, self._side = vectors, get, side
        ordered = sorted(keys)
        self.row = {key: number for number, key in enumerate(ordered)}
        self.rows = vectors(get(side, ordered)) if ordered else None
        self.mean = np.float32(0) if self.rows is None else self.rows.mean(axis=0)

    def queries(self, keys: Sequence[str]) -> np.ndarray:
        return normalise(self._vectors(self._get(self._side, keys)) - self.mean)


def _documents(answers: Sequence[Answer], images: _Vectors, texts: _Vectors) -> np.ndarray:
    """d̃ of each document: normalise(mean of the normalised centred vectors of the sides it has)."""
    example = images.rows if images.rows is not None else texts.rows
    total = np.zeros((len(answers), example.shape[1]), np.float32)
    for at, answer in enumerate(answers):
        if answer.pictures:
            total[at] = images.rows[[images.row[key] for key in answer.pictures]].mean(axis=0) - images.mean
    total = normalise(total)
    worded = [at for at, answer in enumerate(answers) if answer.text]
    if worded:
        total[worded] += normalise(texts.rows[[texts.row[answers[at].text] for at in worded]] - texts.mean)
    return normalise(total)


def ndcg(scores: np.ndarray, grades: np.ndarray) -> np.ndarray:
    """nDCG@10 ``[n]`` of scores and grades ``[n, documents]``: linear gains, the ideal over all documents."""
    discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    ideal = -np.sort(-grades, axis=1)[:, :DEPTH]
    discounts = discounts[: ideal.shape[1]]
    return (np.take_along_axis(grades, order, 1) @ discounts) / (ideal @ discounts)
