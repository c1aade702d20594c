"""HTML of the list of queries, a page at a time, and what its buttons send."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gradio as gr

from core.analyze.diagnosis import Diagnosis
from core.analyze.lists import Wanted
from ui.cards import escape
from ui.failures.where import kind_words
from ui.text import KINDS

PAGE = 50
LONGEST = 120
"""Characters shown of a query's words."""

SCRIPT = Path(__file__).with_name("listing.js").read_text(encoding="utf-8")
NOTHING = "No query passes these filters. Show all groups and kinds, or leave out some words."


@dataclass(frozen=True, slots=True)
class Row:
    """A query in the list: its number there, and its position in the first diagnosis."""

    number: int
    i: int


def listing(elem_id: str) -> gr.HTML:
    """The component. Events: ``open`` (``i``, the number in the list), ``turn`` (``to``, a page), ``all`` (take the
    filter on the first hit back); read the first two by `number_of`."""
    return gr.HTML("", js_on_load=SCRIPT, apply_default_css=False, elem_id=elem_id, elem_classes="m3-flat")


def number_of(event: gr.EventData, name: str, below: int) -> int | None:
    """A whole number 0 … below − 1 in an event of the page, which is not trusted; None for anything else."""
    data = getattr(event, "_data", None)
    value = data.get(name) if isinstance(data, dict) else None
    return value if type(value) is int and 0 <= value < below else None


def rendered(diagnoses: Sequence[Diagnosis], at: Sequence[int], page: int, k: int, measure: str, wanted: Wanted) -> str:
    """One page of the list. ``diagnoses``: the first is the one that is listed, the others stand beside it; ``at``
    are positions in the first, in the order of the list."""
    first = diagnoses[0]
    pages = max(1, -(-len(at) // PAGE))
    page = min(max(page, 0), pages - 1)
    shown = [Row(number, at[number]) for number in range(page * PAGE, min(len(at), (page + 1) * PAGE))]
    what = "failing queries" if wanted.failing else "queries"
    top = ""
    if wanted.found or wanted.named:
        only = f"Only {escape(wanted.named.words)}." if wanted.named else ""
        if wanted.found:
            facet, value = wanted.found
            only = f"Only queries whose first hit is of {escape(facet)} <strong>{escape(value)}</strong>."
        top = f'<p class="m3-only">{only} <button type="button" data-do="all">Show all</button></p>'
    if not at:
        return f'{top}<div class="m3-empty"><p>{NOTHING}</p></div>'
    heads = "".join(
        f'<th scope="col">{escape(d.label)} {escape(measure)}</th><th scope="col">first relevant</th>'
        for d in diagnoses
    )
    body = "".join(_row(diagnoses, row, k, measure) for row in shown)
    pager = "" if pages == 1 else _pager(page, pages)
    return (
        f'{top}<div class="m3-scroll" tabindex="0" role="region" aria-label="{what.capitalize()}">'
        f'<table class="m3-table m3-list"><caption>{shown[0].number + 1:,}–{shown[-1].number + 1:,} of {len(at):,} '
        f"{what} of {escape(first.label)} (of {len(first.queries):,} judged).</caption><thead><tr>"
        f'<th scope="col">Query</th>{heads}<th scope="col" class="m3-left">Kinds</th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>{pager}"
    )


def _pager(page: int, pages: int) -> str:
    def button(to: int, words: str) -> str:
        off = "" if 0 <= to < pages else " disabled"
        return f'<button type="button" data-page="{to}"{off}>{words}</button>'

    return (
        f'<div class="m3-row m3-pager">{button(page - 1, "Previous page")}<span>Page {page + 1:,} of {pages:,}</span>'
        f"{button(page + 1, 'Next page')}</div>"
    )


def _row(diagnoses: Sequence[Diagnosis], row: Row, k: int, measure: str) -> str:
    first = diagnoses[0]
    query = first.queries[row.i]
    words = " ".join(query.text.split())
    short = words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
    facets = " · ".join(
        part for part in (first.domain(row.i), str(query.meta.get("specialty") or ""), query.id) if part
    )
    cells = "".join(_cells(d, d.at((query.collection, query.id)), k, measure) for d in diagnoses)
    held = "".join(kind_words(name) for name in first.kinds(row.i, k) if name in KINDS)
    label = f"Open case {row.number + 1}: query {query.id}"
    return (
        f'<tr><th scope="row"><button type="button" class="m3-opens" data-i="{row.number}" '
        f'aria-label="{escape(label)}">'
        f"{escape(short) or 'no words'}</button><span>{escape(facets)}</span></th>{cells}"
        f'<td class="m3-left m3-held">{held}</td></tr>'
    )


def _cells(diagnosis: Diagnosis, i: int | None, k: int, measure: str) -> str:
    if i is None:
        return '<td colspan="2">N/A</td>'
    value = diagnosis.values[measure][i] if measure in diagnosis.values else math.nan
    first = int(diagnosis.first[i])
    rank = f"{first:,}" if first else f"none in {diagnosis.depth:,}"
    good = ' class="m3-ok"' if 0 < first <= k else ""
    return f"<td>{'N/A' if math.isnan(value) else f'{value:.3f}'}</td><td{good}>{rank}</td>"
