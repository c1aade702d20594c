"""One failing query as a screen or a file shows it: relevant documents, and up to four models' rankings side by side.

Every document stands once in ``documents`` with its picture and words; gold rows and hits name it by its position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.analyze.diagnosis import Diagnosis
from core.analyze.failures import BY_NAME, UNJUDGED
from core.analyze.rejudge import Annotations
from core.analyze.shares import Shares
from core.analyze.task_runs import POOL, Key, colour_of
from core.data.collection import Collection
from core.data.dataset import DataSet
from core.data.topics import cluster_of
from core.media.picture import PictureError
from core.records import TASK_LABELS, Query, QueryError
from core.search.views import FACETS, judgement, small_picture
from core.store.workspace import Workspace

MOST_COLUMNS = 4
PINNED = 6
"""Relevant documents that are shown with their picture; the others in one line each."""

BEGINNING = 200
"""Characters shown of a document's text."""

SEEN = "left out: the model was trained on this query's case or topic"
NO_ANSWER = "this run has no answer to the query"


@dataclass(frozen=True, slots=True)
class Picture:
    """``uri`` is a ``data:`` address of at most 256 px, or None where ``problem`` says why there is none."""

    uri: str | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SheetQuery:
    """The query, whole. ``cluster`` names what it is counted together with, as `core.data.topics.cluster_of`."""

    collection: str
    id: str
    task: str
    domain: str
    facets: tuple[str, ...]
    cluster: str
    text: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class SheetDoc:
    """A document of the case. ``picture`` is the first of ``pictures``, None where it has none or is not shown.

    ``judgement`` is a name of `core.search.views.judgement`, under the re-judgements the runs were judged with;
    ``anew`` is the latest re-judgement for this query, "2", "1", "0", "unsure", or "" for none.
    """

    collection: str
    id: str
    title: str
    beginning: str
    picture: Picture | None
    pictures: int
    domain: str
    facets: tuple[str, ...]
    judgement: str
    anew: str


@dataclass(frozen=True, slots=True)
class Gold:
    """A relevant document. ``ranks``, one a column: its rank, 0 for none within the depth, None where N/A."""

    document: int
    ranks: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A hit. ``shares`` are those of picture and words, None where they cannot be told. ``before`` is the rank of the
    same document in the first column as far as that is known, else None."""

    rank: int
    document: int
    score: float
    shares: tuple[float, float] | None
    before: int | None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of failure that holds, with its evidence; ``sentence`` says what the kind means."""

    name: str
    evidence: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Column:
    """One model's answer. ``value`` is that of the sheet's measure, None where N/A; ``first`` the rank of the first
    relevant document, 0 for none within ``depth``. ``known``: hits by which moves are told. Where ``reason`` is not
    "" the model has no answer, and lines and kinds are empty."""

    label: str
    model_id: str
    revision: str
    colour: str
    source: str
    run_ids: tuple[str, ...]
    depth: int
    reason: str
    value: float | None
    first: int
    failed: bool
    kinds: tuple[Kind, ...]
    lines: tuple[Line, ...]
    known: int


@dataclass(frozen=True, slots=True)
class CaseSheet:
    """``at`` is the 0-based place of the query among the ``of`` listed ones. ``overlay`` is the hash of the
    re-judgements that judged it, "" for the data set's own judgements alone."""

    query: SheetQuery
    at: int
    of: int
    k: int
    measure: str
    overlay: str
    documents: tuple[SheetDoc, ...]
    gold: tuple[Gold, ...]
    columns: tuple[Column, ...]


def case_sheet(
    dataset: DataSet,
    workspace: Workspace,
    diagnoses: Sequence[Diagnosis],
    key: Key,
    at: int,
    of: int,
    annotations: Annotations | None = None,
    hits: int = 10,
    shares: Shares | None = None,
    k: int = 10,
    measure: str = "nDCG@10",
) -> CaseSheet:
    """The sheet of query ``key`` under one to four diagnoses of its task; the first is what moves are counted from.

    ``hits``: lines a column, at most those a diagnosis keeps. ``shares`` are those of this data set. QueryError where
    the data set has no such query; ValueError where the diagnoses are none, too many, or judged differently.
    """
    if not 1 <= len(diagnoses) <= MOST_COLUMNS:
        raise ValueError(f"a case is shown under 1 to {MOST_COLUMNS} runs, not {len(diagnoses)}")
    if len({diagnosis.overlay for diagnosis in diagnoses}) != 1:
        raise ValueError("the runs of a case are judged differently: judge them all anew, or none")
    try:
        collection = dataset.collections[key[0]]
        query = collection.query(key[1])
    except KeyError:
        raise QueryError("This query is not in the data set. Go back to the list.") from None
    answers = [_Answer.of(diagnosis, key) for diagnosis in diagnoses]
    grades = _grades(answers)
    relevant = _pinned(grades, answers)
    shown = dict.fromkeys([*relevant[:PINNED], *(doc for a in answers for doc, _ in a.hits[:hits])])
    place = {doc: i for i, doc in enumerate(dict.fromkeys([*shown, *relevant]))}
    anew = _anew(annotations, key)
    judged = {doc: judgement(grades.get(doc), collection.positives_only) for doc in place}
    documents = [_document(dataset, workspace, doc, judged[doc], anew.get(doc, ""), doc in shown) for doc in place]
    return CaseSheet(
        query=_query(collection, query, workspace),
        at=at,
        of=of,
        k=k,
        measure=measure,
        overlay=diagnoses[0].overlay,
        documents=tuple(documents),
        gold=tuple(Gold(place[doc], tuple(a.rank_of(doc) for a in answers)) for doc in relevant),
        columns=tuple(a.column(answers[0], place, a.shares(shares, query, hits), k, measure) for a in answers),
    )


@dataclass(frozen=True)
class _Answer:
    """What one diagnosis says of the query; ``i`` is None where it is not among its queries."""

    diagnosis: Diagnosis
    i: int | None
    hits: list[tuple[Key, float]]
    grades: dict[Key, int]
    ranks: dict[Key, int]
    reason: str

    @classmethod
    def of(cls, diagnosis: Diagnosis, key: Key) -> _Answer:
        i = diagnosis.at(key)
        if i is None:
            return cls(diagnosis, None, [], {}, {}, SEEN if key in diagnosis.run.seen else NO_ANSWER)
        hits, relevant = diagnosis.hits(i), diagnosis.relevant(i)
        grades = {doc: grade for doc, _, grade in hits} | {doc: grade for doc, grade, _ in relevant}
        ranks = {doc: rank for doc, _, rank in relevant if rank} | {doc: r for r, (doc, *_) in enumerate(hits, 1)}
        return cls(diagnosis, i, [(doc, score) for doc, score, _ in hits], grades, ranks, "")

    def rank_of(self, doc: Key) -> int | None:
        return None if self.i is None else self.ranks.get(doc, 0)

    def shares(self, shares: Shares | None, query: Query, hits: int) -> list[tuple[float, float] | None]:
        """Of each of the first ``hits``: the shares of picture and words, None where they cannot be told."""
        docs = [doc for doc, _ in self.hits[:hits]]
        runs = self.diagnosis.run.runs
        if self.diagnosis.run.scope != POOL:
            runs = tuple(run for run in runs if run.info.place == query.collection)
        found = shares.of(runs[0].info, query, docs) if shares is not None and docs else None
        return [None if pair is None or math.isnan(pair[0]) else pair for pair in found or [None] * len(docs)]

    def column(
        self,
        first: _Answer,
        place: Mapping[Key, int],
        shares: Sequence[tuple[float, float] | None],
        k: int,
        measure: str,
    ) -> Column:
        """``shares`` go with the hits to show."""
        diagnosis, run = self.diagnosis, self.diagnosis.run
        rank, value, kinds = 0, math.nan, {}
        if self.i is not None:
            rank, kinds = int(diagnosis.first[self.i]), diagnosis.kinds(self.i, k)
            value = float(diagnosis.values[measure][self.i]) if measure in diagnosis.values else math.nan
        lines = [
            Line(at, place[doc], score, pair, first.ranks.get(doc))
            for at, ((doc, score), pair) in enumerate(zip(self.hits, shares, strict=False), 1)
        ]
        return Column(
            label=diagnosis.label,
            model_id=run.model_id,
            revision=run.revision,
            colour=colour_of(run),
            source=run.source,
            run_ids=diagnosis.run_ids,
            depth=diagnosis.depth,
            reason=self.reason,
            value=value if math.isfinite(value) else None,
            first=rank,
            failed=self.i is not None and not 0 < rank <= k,
            kinds=tuple(Kind(name, evidence, BY_NAME[name].sentence) for name, evidence in kinds.items()),
            lines=tuple(lines),
            known=len(first.hits),
        )


def _grades(answers: Sequence[_Answer]) -> dict[Key, int]:
    """The grades of the documents of all columns; a document without a judgement is absent."""
    return {doc: grade for a in answers for doc, grade in a.grades.items() if grade != UNJUDGED}


def _pinned(grades: Mapping[Key, int], answers: Sequence[_Answer]) -> list[Key]:
    """The relevant documents: best grade first, then those that any column has nearest to the top, then by key."""

    def order(doc: Key) -> tuple:
        return -grades[doc], min((a.ranks[doc] for a in answers if doc in a.ranks), default=math.inf), doc

    return sorted((doc for doc, grade in grades.items() if grade > 0), key=order)


def _anew(annotations: Annotations | None, query: Key) -> dict[Key, str]:
    """The latest word on each document, whoever said it: the one that counts."""
    rows = annotations.judged_on(query) if annotations is not None else ()
    ordered = sorted(rows, key=lambda row: (row.time, row.author))
    return {(row.doc_collection, row.doc): row.grade for row in ordered}


def _query(collection: Collection, query: Query, workspace: Workspace) -> SheetQuery:
    return SheetQuery(
        collection=query.collection,
        id=query.id,
        task=TASK_LABELS[collection.task],
        domain=collection.domain,
        facets=_facets(query.meta),
        cluster=cluster_of(query),
        text=query.text,
        pictures=tuple(_picture(collection, reference, workspace) for reference in query.images),
    )


def _document(dataset: DataSet, workspace: Workspace, key: Key, judged: str, anew: str, with_picture: bool) -> SheetDoc:
    collection = dataset.collections[key[0]]
    doc = collection.doc(key[1])
    return SheetDoc(
        collection=doc.collection,
        id=doc.id,
        title=doc.title,
        beginning=_beginning(doc.text),
        picture=_picture(collection, doc.images[0], workspace) if doc.images and with_picture else None,
        pictures=len(doc.images),
        domain=collection.domain,
        facets=_facets(doc.meta),
        judgement=judged,
        anew=anew,
    )


def _picture(collection: Collection, reference: str, workspace: Workspace) -> Picture:
    try:
        return Picture(small_picture(collection, reference, workspace))
    except PictureError as error:
        return Picture(None, str(error))


def _facets(meta: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(meta[name]) for name in FACETS if meta.get(name))


def _beginning(text: str) -> str:
    """The first characters of a text on one line, cut between words where one ends near enough."""
    words = " ".join(text.split())
    if len(words) <= BEGINNING:
        return words
    cut = words[:BEGINNING]
    return (cut[: cut.rfind(" ")] if cut.rfind(" ") > BEGINNING // 2 else cut) + " …"
