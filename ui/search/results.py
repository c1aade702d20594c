"""The right side of the Search tab: hits, and the case that a hit opens."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import gradio as gr

from core.context import AppContext
from core.data.dataset import DataSet
from core.data.layouts import DataError
from core.media.picture import PictureError
from core.models import specs
from core.records import TASK_LABELS, Query, QueryError
from core.search import case_view
from core.search.cases import CaseResult, like, search_cases
from core.search.searcher import Asked
from core.search.views import shown
from ui import cards, errors, viewer
from ui.progress import pace_of
from ui.search import chips, panel, well
from ui.search.query import QuerySide, document_of, found_query
from ui.search.state import Held, Opened

EDITED = "The words of the ready query were edited, so its judgements do not mark these hits."
STORED = "An example from the data set, with stored hits: no model was loaded yet. Press Search for your own."


@dataclass(frozen=True, slots=True)
class Form:
    """The widgets of a search, in the order they are wired."""

    label: str
    task: str | None
    model: str
    filters: str
    words: str
    weight: float
    k: int
    by_case: bool
    fold: bool
    exact: bool
    held: Held | None


class Results:
    """The callbacks, bound to the context that all sessions share and never change."""

    def __init__(self, context: AppContext, query_side: QuerySide) -> None:
        self.context, self.query_side = context, query_side

    def clear(
        self, label: str, task: str | None, shown_for: tuple[str, str | None] | None, held: Held | None, words: str
    ):
        """Take away what belongs to the data set or task shown before: hits, and a ready query with its words.

        ``shown_for``: the data set and task of the hits; where it is the one chosen nothing changes. A query that is
        the user's own stays. Words, picture, held, strip, hits, ``shown_for``.
        """
        if shown_for is None or tuple(shown_for) == (label, task):
            return *[gr.skip()] * 5, (label, task)
        query = [gr.skip()] * 3 if _is_own(held, words) else ["", well.face(None), Held()]
        return *query, '<div class="m3-strip"></div>', cards.empty(), (label, task)

    def example(self, label: str, task: str | None, model: str, k: int) -> tuple | None:
        """The first view: a ready query of the data set with its hits from stored vectors; nothing is encoded.

        What `show_example` puts on the page, or None where nothing is stored. This takes a moment, in which the user
        may have begun: so it is shown by a step of its own, which sees the form as it is then.
        """
        try:
            dataset = self.context.dataset(label)
            stored = self.context.stored_example(dataset, task or "", model, int(k))
            if stored is None:
                return None
            query, found = stored
            filled = self.query_side.filled(dataset, query, model)
            names = self.query_side.names(label, task, found_query(dataset, query))
            strip, html = self._rendered(dataset, task or "", model, found, query, query.text, None, False, STORED)
        except Exception as error:
            errors.explain(error)  # the page is whole without an example; the log has unknown errors
            return None
        return (label, task), (*filled, names, strip, html)

    def show_example(self, example: tuple | None, label: str, task: str | None, held: Held | None, words: str | None):
        """Words, picture, held, note on the query, picker, strip, hits; all as they are where there is no example of
        what is chosen now, or where a query stands in the form."""
        if example is None or example[0] != (label, task) or _is_own(held, words):
            return [gr.skip()] * 7
        if held is not None and held.query is not None:
            return [gr.skip()] * 7
        return example[1]

    def search(self, form: Form, progress: gr.Progress | None = None):
        """Strip and hits. An error takes the hits' place and leaves the page usable."""
        held, words = form.held or Held(), form.words or ""
        started = time.perf_counter()
        try:
            if not form.task:
                raise QueryError("Choose a data set and a task first.")
            if not held.images and not words.strip():
                raise QueryError("Give a picture, words, or both.")
            dataset = self.context.dataset(form.label)
            query, edited = _held_query(dataset, form.task, held, words)
            trained_on = query is not None and self.context.trained_on(dataset, form.model, query)
            asked = self._asked(form, Asked(words, held.images, float(form.weight), query=query, trained_on=trained_on))
            found = self._found(dataset, form, asked, progress)
            if edited:
                found = replace(found, result=replace(found.result, notes=(*found.result.notes, EDITED)))
            seconds, filtered = time.perf_counter() - started, any(asked.filters.values())
            return self._rendered(dataset, form.task, form.model, found, query, words, seconds, filtered)
        except Exception as error:
            return '<div class="m3-strip"></div>', errors.explain(error)

    def search_like(self, form: Form, event: gr.EventData, progress: gr.Progress | None = None):
        """Hits like an opened document, which is none of them itself."""
        started = time.perf_counter()
        try:
            dataset, (key, identity) = self.context.dataset(form.label), document_of(event)
            paced = pace_of(progress)
            searcher = self.context.searcher(dataset, form.task or "", form.model, paced)
            asked = self._asked(form, like(searcher, key, identity, paced))
            found = self._found(dataset, form, asked, progress)
            what = f"More like document {identity}. Press Search to come back to your query."
            seconds, filtered = time.perf_counter() - started, any(asked.filters.values())
            return self._rendered(dataset, form.task, form.model, found, None, asked.text, seconds, filtered, what)
        except Exception as error:
            return '<div class="m3-strip"></div>', errors.explain(error)

    def _asked(self, form: Form, asked: Asked) -> Asked:
        return replace(asked, k=int(form.k), filters=chips.chosen_in(form.filters), exact=bool(form.exact))

    def _found(self, dataset: DataSet, form: Form, asked: Asked, progress: gr.Progress | None) -> CaseResult:
        paced = pace_of(progress)
        searcher = self.context.searcher(dataset, form.task or "", form.model, paced)
        cases, hashes = self.context.cases(dataset), self.context.hashes
        return search_cases(searcher, asked, cases, hashes, fold=form.fold, by_case=form.by_case, progress=paced)

    def _rendered(
        self,
        dataset: DataSet,
        task: str,
        model: str,
        found: CaseResult,
        query: Query | None,
        words: str,
        seconds: float | None,
        filtered: bool,
        what: str = "",
    ) -> tuple[str, str]:
        spec, name = specs.get(model), query.id if query else ""
        # Most ids begin with the short name; it is said once then.
        label = spec.model_id if spec.model_id.startswith(spec.name) else f"{spec.name}, {spec.model_id}"
        label = f"{label}, {spec.revision}"
        strip = cards.strip(found, dataset.name, label, TASK_LABELS[task], name, seconds, what)
        return strip, cards.hits(shown(dataset, found, query, words, self.context.workspace), name, filtered)

    def open_hit(self, label: str, words: str, held: Held | None, event: gr.EventData):
        """The panel of a hit: head, viewer, body, and what the session holds of it."""
        try:
            dataset = self.context.dataset(label)
            view = case_view.case_of_document(dataset, self.context.cases(dataset), *document_of(event), words or "")
        except Exception as error:
            return errors.explain(error), viewer.face([]), "", Opened()
        return self._opened(dataset, view, held, own=False)

    def open_own(self, label: str, held: Held | None):
        """The panel of the ready query's own case; nothing where it has none."""
        try:
            dataset = self.context.dataset(label)
            if held is None or held.query is None or held.query[0] != dataset.data_id:
                raise QueryError("Choose a ready query of this data set first.")
            query = dataset.collections[held.query[1]].query(held.query[2])
            view = case_view.case_of_own_query(dataset, self.context.cases(dataset), query)
            if view is None:
                raise QueryError(f"The data set names no case for query {query.id}.")
        except Exception as error:
            return errors.explain(error), viewer.face([]), "", Opened()
        return self._opened(dataset, view, held, own=True)

    def _opened(self, dataset: DataSet, view: case_view.CaseView, held: Held | None, own: bool):
        beside = held.frame if held is not None and not own else None
        opened = Opened(dataset.data_id, view.pictures, beside)
        face = _face(dataset, opened, view.start)
        return panel.head(view, own), face, panel.body(view), opened

    def step(self, label: str, opened: Opened | None, event: gr.EventData):
        """The viewer with another picture of the opened case."""
        opened = opened or Opened()
        items = panel.items(opened.pictures)
        at = viewer.step_of(event, items)
        try:
            dataset = self.context.dataset(label)
        except DataError:  # another data set was chosen meanwhile; its facts say what is wrong with it
            return gr.skip()
        if at is None or dataset.data_id != opened.data_id:
            return gr.skip()
        return _face(dataset, opened, at, step=True)


def _face(dataset: DataSet, opened: Opened, at: int, step: bool = False) -> str:
    items = panel.items(opened.pictures)
    if not items:
        return viewer.face([], problem="This case has no picture.", query=opened.query)
    try:
        frame, problem = case_view.frame_at(dataset, opened.pictures[at]), ""
    except PictureError as error:
        frame, problem = None, str(error)
    return viewer.face(items, at, frame, problem, opened.query, step=step)


def _is_own(held: Held | None, words: str | None) -> bool:
    """Whether the query in the form is the user's own: a picture or words that are no ready query's."""
    held = held or Held()
    return held.query is None and bool(held.images or (words or "").strip())


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
