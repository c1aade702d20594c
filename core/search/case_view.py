"""One case as a screen shows it: the opened document or query, all pictures of its case, and its other texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.data.cases import ALONE, NAMED, Cases, case_name
from core.data.collection import Collection
from core.data.dataset import DataSet
from core.media.frames import Frame, open_frame
from core.media.picture import PictureError
from core.records import TASK_LABELS, Doc, Query, QueryError
from core.search.marks import marked
from core.search.views import FACETS, Segments

MOST_TEXTS = 40
"""Other documents of a case that are listed; what is beyond is counted."""


@dataclass(frozen=True, slots=True)
class CasePicture:
    """A picture of a case. ``title`` names the document or query it stands in, ``caption`` is what a query says of
    it alone, ``line`` its domain and facets."""

    collection: str
    reference: str
    title: str
    caption: str
    line: str


@dataclass(frozen=True, slots=True)
class CaseText:
    """A further document of the case that has words; ``place`` is its task and domain."""

    collection: str
    id: str
    place: str
    text: Segments


@dataclass(frozen=True, slots=True)
class CaseView:
    """``name`` is the case's, "" where the data set names none. ``text`` is that of the opened document, whole, with
    the query's words marked. ``start`` is the picture to show first; ``joined`` the number of collections the case
    was joined from. ``more_texts``: further documents that are not listed."""

    name: str
    collection: str
    id: str
    title: str
    place: str
    text: Segments
    facts: tuple[tuple[str, str], ...]
    pictures: tuple[CasePicture, ...]
    start: int
    texts: tuple[CaseText, ...]
    more_texts: int
    joined: int


def case_of_document(dataset: DataSet, cases: Cases, collection: str, identity: str, words: str) -> CaseView:
    """The case around a document; QueryError where there is no such document."""
    try:
        doc = dataset.collections[collection].doc(identity)
        case = cases.of_doc(collection, identity)
    except KeyError:
        raise QueryError("This document is not in the data set. Search again.") from None
    return _view(dataset, cases, case, doc, doc.full_text, words)


def case_of_own_query(dataset: DataSet, cases: Cases, query: Query) -> CaseView | None:
    """The case that a query of the data set belongs to; None where it names none."""
    case = case_name(query.collection, query.id, query.meta)
    return _view(dataset, cases, case, query, query.text, "") if case.startswith(NAMED) else None


def frame_at(dataset: DataSet, picture: CasePicture) -> Frame:
    """The pixels of a picture of a case; raises `PictureError`."""
    return open_frame(dataset.collections[picture.collection].picture(picture.reference))


def _view(dataset: DataSet, cases: Cases, case: str, opened: Doc | Query, text: str, words: str) -> CaseView:
    documents, queries = cases.documents(case), cases.queries(case)
    pictures = _pictures(dataset, cases, case)
    own = _files(dataset.collections[opened.collection], opened.images)
    start = next((at for at, p in enumerate(pictures) if _file(dataset, p) in own), 0)
    texts = [
        CaseText(key, identity, _place(dataset.collections[key]), tuple(marked(doc.full_text, words)))
        for key, identity in documents
        if (key, identity) != (opened.collection, opened.id)
        and (doc := dataset.collections[key].doc(identity)).full_text
    ]
    return CaseView(
        name="" if case.startswith(ALONE) else case.partition(":")[2],
        collection=opened.collection,
        id=opened.id,
        title=getattr(opened, "title", ""),
        place=_place(dataset.collections[opened.collection]),
        text=tuple(marked(text, words)),
        facts=_facts(opened.meta),
        pictures=tuple(pictures),
        start=start,
        texts=tuple(texts[:MOST_TEXTS]),
        more_texts=max(0, len(texts) - MOST_TEXTS),
        joined=len({key for key, _ in (*documents, *queries)}),
    )


def _pictures(dataset: DataSet, cases: Cases, case: str) -> list[CasePicture]:
    """The pictures of a case with what is said of each: the shortest words of a query that shows it alone."""
    said: dict[object, str] = {}
    about: dict[object, Doc | Query] = {}
    for key, identity in cases.documents(case):
        doc = dataset.collections[key].doc(identity)
        for file in _files(dataset.collections[key], doc.images):
            about.setdefault(file, doc)
    for key, identity in cases.queries(case):
        query = dataset.collections[key].query(identity)
        files = _files(dataset.collections[key], query.images)
        for file in files:
            about.setdefault(file, query)
        if len(files) == 1 and query.text.strip():
            (file,) = files
            if file not in said or len(query.text) < len(said[file]):
                said[file] = query.text
    result = []
    for key, reference in cases.pictures(case):
        collection = dataset.collections[key]
        (file,) = _files(collection, [reference])
        owner = about[file]
        facets = [str(owner.meta[name]) for name in FACETS if owner.meta.get(name)]
        line = " · ".join((dataset.collections[owner.collection].domain, *facets))
        result.append(CasePicture(key, reference, owner.id, " ".join(said.get(file, "").split()), line))
    return result


def _files(collection: Collection, references: Any) -> set[object]:
    """What tells pictures apart however they are spelled: the file, or the spelling of one that cannot be found."""
    found: set[object] = set()
    for reference in references:
        try:
            place = collection.pictures.resolve(reference)
            found.add((place.path, place.member))
        except PictureError:
            found.add(reference)
    return found


def _file(dataset: DataSet, picture: CasePicture) -> object:
    (file,) = _files(dataset.collections[picture.collection], [picture.reference])
    return file


def _place(collection: Collection) -> str:
    return f"{TASK_LABELS[collection.task]} · {collection.domain}"


def _facts(meta: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in sorted(meta.items()) if value not in (None, ""))
