"""What happens on the Search tab: read widgets, one call into core, render."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

import gradio as gr
from PIL import Image

from core.context import AppContext
from core.data import health
from core.data.dataset import DataSet
from core.data.layouts import DataError
from core.data.pool import Pool
from core.embed.pipeline import Pace
from core.media.picture import PictureError, open_picture
from core.media.thumbnails import data_uri
from core.models import specs
from core.models.base import ModelUnavailable
from core.records import TASK_LABELS, Query, QueryError
from core.search.searcher import Asked
from core.search.views import shown
from ui import cards, errors
from ui.search import well

MODEL = "medlite"
LISTED_QUERIES = 200
"""Queries of a pool that the picker lists: a seeded sample where there are more."""

EDITED = "The words of the ready query were edited, so its judgements do not mark these hits."

LONGEST = 1024
"""Longest side, in pixels, of a picture that a session holds."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a session holds of its query: decoded pictures, and the data set's own query they came from
    (``data_id``, collection, id), which marks hits only while that data set and task are searched."""

    images: tuple[Image.Image, ...] = ()
    query: tuple[str, str, str] | None = None


class SearchPage:
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
        html = cards.facts(dataset.name, dataset.licence, dataset.data_id, rows, len(dataset.faults), dataset.synthetic)
        first = "query_to_image" if "query_to_image" in dataset.tasks else dataset.tasks[0]
        return html, gr.Dropdown(choices=[(TASK_LABELS[t], t) for t in dataset.tasks], value=first), "", (label, None)

    def choose_task(self, label: str, task: str | None, applied: tuple[str, str | None] | None):
        """Domains, default weight and ready queries of a pool; an earlier choice of them is cleared."""
        if task and applied is not None and tuple(applied) == (label, task):
            return [gr.skip()] * 4
        try:
            pool = self.context.dataset(label).pool(task or "")
            weight = specs.load(MODEL).default_weight(pool.target)
            listed, total = _ready_queries(pool)
        except (DataError, ModelUnavailable):  # said where the data set's facts stand, or by the next search
            nothing = gr.Dropdown(choices=[], value=None)
            return gr.CheckboxGroup(choices=[], value=[]), gr.Slider(), nothing, (label, None)
        domains = [(f"{name} ({n:,})", name) for name, n in pool.values("domain").items()]
        info = f"{len(listed)} of {total:,}, drawn by seed" if total > len(listed) else f"all {total:,}"
        picker = gr.Dropdown(choices=listed, value=None, label=f"Ready queries of this data set ({info})")
        return gr.CheckboxGroup(choices=domains, value=[]), gr.Slider(value=weight), picker, (label, task)

    def choose_query(self, label: str, name: str | None):
        """Fill in words and picture of one of the data set's own queries."""
        if not name:
            return gr.skip(), gr.skip(), gr.skip()
        try:
            dataset = self.context.dataset(label)
            query = _query(dataset, name)
            images = _pictures(dataset, query)
        except (PictureError, QueryError) as error:
            return "", well.face(None, str(error)), Held()
        note = f"picture of query {query.id}" if images else f"query {query.id} has no picture"
        src = _preview(images[0]) if images else None
        return query.text, well.face(src, note, note), Held(images, (dataset.data_id, query.collection, query.id))

    def take_picture(self, event: gr.EventData):
        """Decode a picture that was chosen, dropped or pasted; nothing of its file is kept."""
        try:
            picture = open_picture(well.bytes_of(event))
        except PictureError as error:
            return well.face(None, str(error)), Held(), None
        image = _reduced(picture.image)
        note = "; ".join((f"{picture.width} × {picture.height} pixels", *picture.notes))
        return well.face(_preview(image), note, "Your picture"), Held((image,)), None

    def remove_picture(self):
        """Back to a query of words alone."""
        return well.face(None), Held(), None

    def search(
        self,
        label: str,
        task: str | None,
        domains: Sequence[str],
        words: str,
        weight: float,
        k: int,
        exact: bool,
        held: Held | None,
        progress: gr.Progress | None = None,
    ):
        """Strip and hits. An error takes the hits' place and leaves the page usable."""

        def report(what: str, done: int, total: int) -> None:
            if progress is not None:
                progress((done, total or None), desc=what)

        paced = Pace(report)
        started = time.perf_counter()
        held = held or Held()
        try:
            if not task:
                raise QueryError("Choose a data set and a task first.")
            if not held.images and not (words or "").strip():
                raise QueryError("Give a picture, words, or both.")
            dataset = self.context.dataset(label)
            query, edited = _held_query(dataset, task, held, words or "")
            searcher = self.context.searcher(dataset, task, MODEL, paced)
            trained_on = query is not None and self.context.trained_on(dataset, MODEL, query)
            filters = {"domain": domains or []}
            asked = Asked(words or "", held.images, float(weight), int(k), filters, exact, query, trained_on)
            result = searcher.search(asked, paced)
            if edited:
                result = dataclasses.replace(result, notes=(*result.notes, EDITED))
            name = query.id if query else ""
            seconds = time.perf_counter() - started
            spec = searcher.encoder.spec
            model = f"{spec.name}, {spec.model_id}, {spec.revision}"
            strip = cards.strip(result, dataset.name, model, TASK_LABELS[task], name, seconds)
            views = shown(dataset, result, query, self.context.workspace)
            return strip, cards.hits(views, name, bool(domains))
        except Exception as error:
            return '<div class="m3-strip"></div>', errors.explain(error)

    def check(self, label: str, progress: gr.Progress | None = None) -> str:
        """Open every picture and read every line of the data set."""

        def report(what: str, done: int, total: int) -> None:
            if progress is not None and (done % 20 == 0 or done == total):
                progress((done, total or None), desc=what)

        try:
            return cards.health(health.check(self.context.dataset(label), report).as_dict())
        except Exception as error:
            return errors.explain(error)


def _held_query(dataset: DataSet, task: str, held: Held, words: str) -> tuple[Query | None, bool]:
    """The data set's own query in hand, or None when it belongs to another data set or task, or when its words
    were edited (then the second value is True)."""
    if held.query is None or held.query[0] != dataset.data_id:
        return None, False
    _, collection, identity = held.query
    if collection not in dataset.collections or dataset.collections[collection].task != task:
        return None, False
    query = dataset.collections[collection].query(identity)
    same = words.strip() == query.text.strip()
    return (query if same else None), not same


def _pictures(dataset: DataSet, query: Query) -> tuple[Image.Image, ...]:
    collection = dataset.collections[query.collection]
    return tuple(_reduced(open_picture(collection.picture(r)).image) for r in query.images)


def _ready_queries(pool: Pool) -> tuple[list[tuple[str, str]], int]:
    """(label, name) of at most `LISTED_QUERIES` queries, in the pool's order, and how many there are."""
    places = [(c, at) for c in pool.collections for at in range(len(c.queries))]
    chosen = places
    if len(places) > LISTED_QUERIES:
        numbers = sorted(random.Random(pool.task).sample(range(len(places)), LISTED_QUERIES))
        chosen = [places[n] for n in numbers]
    listed = []
    for collection, at in chosen:
        query = collection.query_at(at)
        words = " ".join(query.text.split())
        words = words if len(words) <= 80 else f"{words[:79]}…"
        listed.append((f"{collection.domain}: {words or 'picture only'} ({query.id})", f"{collection.key}\n{query.id}"))
    return listed, len(places)


def _query(dataset: DataSet, name: str) -> Query:
    key, _, identity = name.partition("\n")
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


def _preview(image: Image.Image) -> str:
    small = image.copy()
    small.thumbnail((480, 480), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    small.save(buffer, "WEBP", quality=85)
    return data_uri(buffer.getvalue())
