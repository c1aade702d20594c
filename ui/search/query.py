"""The left side of the Search tab: data set, task, filters, ready queries and the picture of the query."""

from __future__ import annotations

import random
from io import BytesIO

import gradio as gr
from PIL import Image

from core.context import AppContext
from core.data import health
from core.data.cases import case_name
from core.data.dataset import DataSet
from core.data.find import Found, FoundQuery, find_queries, random_query
from core.data.layouts import DataError
from core.data.pool import FILTERS
from core.media.frames import frame_of, open_frame
from core.media.picture import PictureError, open_picture
from core.media.thumbnails import data_uri
from core.models import specs
from core.models.base import ModelUnavailable
from core.records import TASK_LABELS, Query, QueryError
from core.search.cases import as_query
from ui import errors, facts
from ui.search import chips, panel, picker, well
from ui.search.state import LONGEST, MOST_PICTURES, Held

FIRST_TASK = "query_to_image"
MODEL = "medlite"


class QuerySide:
    """The callbacks, bound to the context that all sessions share and never change."""

    def __init__(self, context: AppContext) -> None:
        self.context = context

    def choose_data(self, label: str, applied: tuple[str, str | None] | None):
        """Facts of the data set, and its tasks. The task's own widgets follow by `choose_task`.

        ``applied``: the data set and task that the page shows. A dropdown also sends when it merely loses the focus;
        then nothing may change.
        """
        if applied is not None and applied[0] == label:
            return [gr.skip()] * 4
        try:
            dataset = self.context.dataset(label)
        except Exception as error:
            return errors.explain(error), gr.Dropdown(choices=[], value=None), "", (label, None)
        rows = [health.counts(c) for c in dataset.collections.values()]
        html = facts.facts(dataset.name, dataset.licence, dataset.data_id, rows, len(dataset.faults), dataset.synthetic)
        first = FIRST_TASK if FIRST_TASK in dataset.tasks else dataset.tasks[0]
        return html, gr.Dropdown(choices=[(TASK_LABELS[t], t) for t in dataset.tasks], value=first), "", (label, None)

    def choose_task(self, label: str, task: str | None, model: str, applied: tuple[str, str | None] | None):
        """Filters, default weight and ready queries of a pool; an earlier choice of them is cleared."""
        if task and applied is not None and tuple(applied) == (label, task):
            return [gr.skip()] * 5
        try:
            pool = self.context.dataset(label).pool(task or "")
            weight = specs.load(model).default_weight(pool.target)
            found = find_queries(pool, "", 0, picker.PAGE, self.context.query_texts)
        except (DataError, ModelUnavailable, KeyError):  # said where the facts stand, or by the next search
            return chips.face({}), gr.Slider(), picker.face(Found(0, 0, ())), "", (label, None)
        filters = chips.face({name: pool.values(name) for name in FILTERS})
        return filters, gr.Slider(value=weight), picker.face(found), "", (label, task)

    def model_state(self, model: str):
        """What the chosen model lacks here, in words, and a Search button that cannot be pressed then."""
        try:
            wants = self.context.pipeline(model).encoder.requires()
        except (ModelUnavailable, QueryError) as error:
            wants = [str(error)]
        if not wants:
            return "", gr.Button(interactive=True)
        sentence = f"{model} cannot search here. {' '.join(wants)} Hits that are stored are still shown."
        return errors.message(sentence), gr.Button(interactive=False)

    def look(self, label: str, task: str | None, event: gr.EventData):
        """Queries that hold the words typed into the picker."""
        try:
            words, start = picker.look_of(event)
            pool = self.context.dataset(label).pool(task or "")
            return picker.answer(find_queries(pool, words, start, picker.PAGE, self.context.query_texts), words, start)
        except (QueryError, DataError):
            return self.names(label, task)

    def choose_query(self, label: str, task: str | None, model: str, event: gr.EventData):
        """Fill in words and picture of the ready query that was chosen."""
        try:
            dataset = self.context.dataset(label)
            return self.filled(dataset, _query(dataset, *picker.choice_of(event)), model)
        except (PictureError, QueryError, DataError, ModelUnavailable) as error:
            return "", well.face(None, str(error)), Held(), ""

    def random_query(self, label: str, task: str | None, model: str):
        """Like `choose_query`, for any query of the pool; the picker names it."""
        try:
            dataset = self.context.dataset(label)
            pool = dataset.pool(task or "")
            chosen = random_query(pool, random.SystemRandom())
            found = find_queries(pool, "", 0, picker.PAGE, self.context.query_texts)
            if chosen is None:
                return picker.face(found), *[gr.skip()] * 4
            filled = self.filled(dataset, _query(dataset, chosen.collection, chosen.id), model)
            return picker.face(found, chosen), *filled
        except (PictureError, QueryError, DataError, ModelUnavailable) as error:
            return gr.skip(), "", well.face(None, str(error)), Held(), ""

    def filled(self, dataset: DataSet, query: Query, model: str):
        """Words, picture, what is held, and what is known of the query."""
        collection = dataset.collections[query.collection]
        if len(query.images) > MOST_PICTURES:
            raise QueryError(f"Query {query.id} has {len(query.images)} pictures; at most {MOST_PICTURES} are read.")
        pictures = [collection.picture(reference) for reference in query.images]
        images = tuple(_reduced(open_picture(data).image) for data in pictures)
        frame = open_frame(pictures[0]) if pictures else None
        note = f"picture of query {query.id}" if images else f"query {query.id} has no picture"
        if len(images) > 1:
            note = f"first of {len(images)} pictures of query {query.id}"
        src = preview(images[0]) if images else None
        about = panel.about(
            query,
            collection.domain,
            collection.qrels.get(query.id, {}),
            self.context.trained_on(dataset, model, query),
            case_name(query.collection, query.id, query.meta).startswith("case:"),
        )
        held = Held(images, frame, (dataset.data_id, query.collection, query.id))
        return query.text, well.face(src, note, note), held, about

    def take_picture(self, label: str, task: str | None, words: str, held: Held | None, event: gr.EventData):
        """Decode a picture that was chosen, dropped or pasted; nothing of its file is kept.

        The words of a ready query go with its picture; words that were typed or edited stay.
        """
        words = "" if self._is_ready(label, held, words) else gr.skip()
        try:
            data = well.bytes_of(event)
            picture, frame = open_picture(data), open_frame(data)
        except PictureError as error:
            return words, well.face(None, str(error)), Held(), self.names(label, task), ""
        image = _reduced(picture.image)
        note = "; ".join((f"{picture.width} × {picture.height} pixels", *picture.notes))
        face, mine = well.face(preview(image), note, "Your picture"), Held((image,), frame)
        return words, face, mine, self.names(label, task), ""

    def _is_ready(self, label: str, held: Held | None, words: str) -> bool:
        """Whether the words in the form are those of the ready query in hand, as they stand in the data set."""
        if held is None or held.query is None:
            return False
        try:
            query = _query(self.context.dataset(label), held.query[1], held.query[2])
        except (QueryError, DataError):
            return False
        return (words or "").strip() == query.text.strip()

    def remove_picture(self, label: str, task: str | None):
        """Back to a query of words alone."""
        return well.face(None), Held(), self.names(label, task), ""

    def use_document(self, label: str, task: str | None, event: gr.EventData):
        """Make an opened document the query: its words and pictures, to be changed and searched."""
        try:
            dataset = self.context.dataset(label)
            text, images = as_query(dataset, *document_of(event))
        except (PictureError, QueryError, DataError) as error:
            return gr.skip(), well.face(None, str(error)), Held(), self.names(label, task), ""
        images = tuple(_reduced(image) for image in images[:MOST_PICTURES])
        note = "picture of the document you opened" if images else "the document you opened has no picture"
        face = well.face(preview(images[0]) if images else None, note, note)
        held = Held(images, frame_of(images[0]) if images else None)
        return text, face, held, self.names(label, task), ""

    def check(self, label: str, progress: gr.Progress | None = None) -> str:
        """Open every picture and read every line of the data set."""

        def report(what: str, done: int, total: int) -> None:
            if progress is not None and (done % 20 == 0 or done == total):
                progress((done, total or None), desc=what)

        try:
            return facts.health(health.check(self.context.dataset(label), report).as_dict())
        except Exception as error:
            return errors.explain(error)

    def names(self, label: str, task: str | None, chosen: FoundQuery | None = None) -> str:
        """The picker at rest on the first queries of a pool, naming ``chosen``."""
        try:
            pool = self.context.dataset(label).pool(task or "")
            return picker.face(find_queries(pool, "", 0, picker.PAGE, self.context.query_texts), chosen)
        except DataError:
            return picker.face(Found(0, 0, ()))


def found_query(dataset: DataSet, query: Query) -> FoundQuery:
    """A query of the data set as the picker names it."""
    collection = dataset.collections[query.collection]
    text, specialty = " ".join(query.text.split()), str(query.meta.get("specialty") or "")
    judged = bool(collection.qrels.get(query.id))
    return FoundQuery(query.collection, query.id, collection.domain, specialty, text, len(query.images), judged)


def document_of(event: gr.EventData) -> tuple[str, str]:
    """Collection key and id in an event of the page; raises QueryError. Not trusted: there may be no such document."""
    data = getattr(event, "_data", None)
    names = (data.get("collection"), data.get("id")) if isinstance(data, dict) else (None, None)
    if not all(isinstance(name, str) and 0 < len(name) <= picker.LONGEST for name in names):
        raise QueryError("The document's name arrived damaged. Search again.")
    return names


def _query(dataset: DataSet, key: str, identity: str) -> Query:
    try:
        return dataset.collections[key].query(identity)
    except KeyError:
        raise QueryError("This query is not in the data set. Choose another one.") from None


def _reduced(image: Image.Image) -> Image.Image:
    if max(image.size) <= LONGEST:
        return image
    small = image.copy()
    small.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    return small


def preview(image: Image.Image) -> str:
    """A small ``data:`` address of a picture for the well."""
    small = image.copy()
    small.thumbnail((480, 480), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    small.save(buffer, "WEBP", quality=85)
    return data_uri(buffer.getvalue())
