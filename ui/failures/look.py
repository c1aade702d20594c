"""The viewer beside a case: the pictures of a document, or of the query, with the query's picture to compare."""

from __future__ import annotations

from core.data.cases import Cases
from core.data.collection import Collection
from core.data.dataset import DataSet
from core.media.frames import Frame
from core.media.picture import PictureError
from core.records import Query
from core.search.case_view import CasePicture, CaseView, case_of_document, case_of_own_query, frame_at
from core.search.views import FACETS
from ui import viewer
from ui.search.panel import items
from ui.search.state import Opened

LABELS = ("Picture of the document", "Picture of the query")
OWN = ("Picture of the query", "")


def look(
    dataset: DataSet, cases: Cases, query: Query, collection: str, identity: str, own: bool
) -> tuple[str, CaseView | None, Opened]:
    """A viewer's face, the case around what was opened (texts for `ui.search.panel.body`), and what steps need.

    ``own``: the query itself was opened, not a document; then there is nothing beside it, and no case where the data
    set names none. QueryError where there is no such document.
    """
    if not own:
        view = case_of_document(dataset, cases, collection, identity, query.text)
        opened = Opened(dataset.data_id, view.pictures, _first_frame(dataset, query))
        return face_of(dataset, opened, view.start), view, opened
    view = case_of_own_query(dataset, cases, query)
    pictures = view.pictures if view else _own_pictures(dataset.collections[query.collection], query)
    opened = Opened(dataset.data_id, pictures)
    return face_of(dataset, opened, view.start if view else 0), view, opened


def face_of(dataset: DataSet, opened: Opened, at: int, step: bool = False) -> str:
    """The face with picture ``at``; ``step``: it answers a step of the viewer (check it by `ui.viewer.step_of`)."""
    labels = LABELS if opened.query is not None else OWN
    if not opened.pictures:
        return viewer.face([], problem="There is no picture here.", query=opened.query, labels=labels)
    try:
        frame, problem = frame_at(dataset, opened.pictures[at]), ""
    except PictureError as error:
        frame, problem = None, str(error)
    return viewer.face(items(opened.pictures), at, frame, problem, opened.query, labels, step)


def _own_pictures(collection: Collection, query: Query) -> tuple[CasePicture, ...]:
    line = " · ".join((collection.domain, *(str(query.meta[name]) for name in FACETS if query.meta.get(name))))
    return tuple(CasePicture(query.collection, reference, query.id, query.text, line) for reference in query.images)


def _first_frame(dataset: DataSet, query: Query) -> Frame | None:
    """The first picture of the query that can be read."""
    for picture in _own_pictures(dataset.collections[query.collection], query):
        try:
            return frame_at(dataset, picture)
        except PictureError:
            continue
    return None
