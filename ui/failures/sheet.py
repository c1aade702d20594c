"""The sheet of one failing query: its component, its HTML, and what the browser may ask of it.

The value of the component is what `rendered` makes of a `CaseSheet`. Each picture stands in it once; the script copies
it to the other places of the same document. Wire the events as

    sheet.goto(answer, …, trigger_mode="always_last", show_progress="hidden", queue=False)
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import gradio as gr

from core.analyze.case import PINNED, CaseSheet, Column, Gold, Kind, Line, Picture, SheetDoc, SheetQuery
from core.analyze.task_runs import Key
from ui.cards import escape
from ui.text import JUDGEMENTS, KINDS, REJUDGED

SCRIPT = Path(__file__).with_name("sheet.js").read_text(encoding="utf-8")
NOTHING = "No case is open. Choose a query from the list to see why it fails."
LONGEST = 1000
"""Characters that a name of a collection or document in an event may have."""


def sheet(elem_id: str | None = None) -> gr.HTML:
    """The component. Events: ``goto`` (``i``), ``back``, ``look`` (``collection``, ``id``, ``query``), ``judge``
    (``collection``, ``doc``, ``grade``), ``save``; read them by `ui.failures.listing.number_of`,
    `document_of` and `judged_of`."""
    return gr.HTML(
        empty(), js_on_load=SCRIPT, apply_default_css=False, elem_id=elem_id, elem_classes="m3-flat m3-case-place"
    )


def empty() -> str:
    """What stands in the place of a case before one is opened."""
    return f'<div class="m3-empty"><p>{escape(NOTHING)}</p></div>'


def rendered(case: CaseSheet) -> str:
    """The whole sheet."""
    once = _Once(case)
    title = f"Case {case.at + 1:,} of {case.of:,}"
    return (
        f'<section class="m3-failure" tabindex="0" data-at="{case.at}" data-of="{case.of}" '
        f'aria-label="{title}: query {escape(case.query.id)}" aria-keyshortcuts="ArrowLeft ArrowRight">'
        f'<div class="m3-failure-bar">{_step(-1, "Previous", case.at > 0)}{_step(1, "Next", case.at < case.of - 1)}'
        f'<h2 aria-live="polite">{title}</h2><p>Arrow keys left and right step while this view has the focus.</p>'
        '<button type="button" data-do="back">Back to the list</button>'
        '<button type="button" data-do="save">Save case as file</button></div>'
        f"{_why(case.columns[0])}"
        f'<div class="m3-failure-grid">{_query(case)}<div class="m3-failure-right">{_gold(case, once)}'
        f"{_columns(case, once)}</div></div></section>"
    )


class _Once:
    """Gives each document's picture once, and a place to copy it to afterwards."""

    def __init__(self, case: CaseSheet) -> None:
        self._documents, self._given = case.documents, set()

    def picture(self, index: int) -> str:
        """A button that opens the picture of a document; "" where it has none or it is not shown."""
        doc = self._documents[index]
        if doc.picture is None:
            return ""
        if doc.picture.uri is None:
            return _look(doc.collection, doc.id, f"<span>{escape(doc.picture.problem)}</span>")
        more = f", first of {doc.pictures} pictures" if doc.pictures > 1 else ""
        alt = f'alt="Picture of document {escape(doc.id)}, {escape(facets(doc))}{more}"'
        if index in self._given:
            return _look(doc.collection, doc.id, f'<img data-same="{index}" {alt}>')
        self._given.add(index)
        return _look(doc.collection, doc.id, f'<img data-first="{index}" src="{doc.picture.uri}" {alt}>')


def _look(collection: str, identity: str, inside: str, kind: str = "m3-thumb", query: bool = False) -> str:
    own = " data-query" if query else ""
    return (
        f'<button type="button" class="m3-look {kind}" data-collection="{escape(collection)}" '
        f'data-id="{escape(identity)}"{own}>{inside}</button>'
    )


def _step(by: int, words: str, possible: bool) -> str:
    return f'<button type="button" data-by="{by}" aria-disabled="{str(not possible).lower()}">{words}</button>'


def _why(column: Column) -> str:
    """Why the first model fails here, with the evidence."""
    if column.reason:
        return f'<p class="m3-why"><strong>{escape(column.label)}</strong>: N/A, {escape(column.reason)}.</p>'
    fails = "fails" if column.failed else "does not fail"
    if not column.kinds:
        return (
            f'<p class="m3-why"><strong>{escape(column.label)}</strong> {fails} here; no kind of failure was found.</p>'
        )
    return (
        f'<div class="m3-why"><p><strong>{escape(column.label)}</strong> {fails} here:</p><ul>'
        f"{''.join(map(_evidence, column.kinds))}</ul></div>"
    )


def _evidence(kind: Kind) -> str:
    glyph, words = KINDS[kind.name]
    return (
        f'<li title="{escape(kind.sentence)}"><span class="m3-glyph" aria-hidden="true">{escape(glyph)}</span> '
        f"<strong>{words}</strong> {escape(kind.evidence)}</li>"
    )


def _query(case: CaseSheet) -> str:
    query = case.query
    pictures = "".join(_query_picture(case, at, picture) for at, picture in enumerate(query.pictures, 1))
    text = f'<p class="m3-passage">{escape(query.text)}</p>' if query.text.strip() else "<p>No words.</p>"
    facts = (("Task", query.task), ("Domain", facets(query)), ("Counted with", cluster_words(query.cluster)))
    rows = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return (
        f'<aside class="m3-asked" aria-label="Query"><h3>Query <span>{escape(query.id)}</span></h3>{pictures}{text}'
        f"<dl>{rows}</dl></aside>"
    )


def cluster_words(cluster: str) -> str:
    """What a query is counted together with in statistics."""
    kind, _, name = cluster.partition(":")
    alone = {"text": "queries of the same words", "query": "no other query"}
    return alone.get(kind, f"{kind} {name}")


def _query_picture(case: CaseSheet, at: int, picture: Picture) -> str:
    query = case.query
    if picture.uri is None:
        inside = f"<span>{escape(picture.problem)}</span>"
    else:
        which = f" {at} of {len(query.pictures)}" if len(query.pictures) > 1 else ""
        inside = f'<img src="{picture.uri}" alt="Picture{which} of query {escape(query.id)}, {escape(facets(query))}">'
    return _look(query.collection, query.id, inside, query=True)


def _gold(case: CaseSheet, once: _Once) -> str:
    """The relevant documents with their rank under every model; those beyond `PINNED` folded, without pictures."""
    heads = "".join(f'<th scope="col">{_swatch(c)}{escape(c.label)}</th>' for c in case.columns)
    head = f'<tr><th scope="col">Document</th><th scope="col">Judged</th>{heads}<th scope="col">Judge anew</th></tr>'

    def table(rows: Iterable[Gold], caption: str) -> str:
        body = "".join(_gold_row(case, gold, once) for gold in rows)
        return (
            f'<div class="m3-scroll"><table class="m3-gold"><caption class="m3-unseen">{caption}</caption>'
            f"<thead>{head}</thead><tbody>{body}</tbody></table></div>"
        )

    rest = len(case.gold) - PINNED
    more = (
        f"<details><summary>{rest:,} more relevant</summary>{table(case.gold[PINNED:], 'More relevant documents')}"
        "</details>"
        if rest > 0
        else ""
    )
    anew = f" · judged anew ({escape(case.overlay)})" if case.overlay else ""
    return (
        f'<section class="m3-pinned"><h3>Relevant documents and their ranks <span>{len(case.gold):,}{anew}</span></h3>'
        f"{table(case.gold[:PINNED], 'Relevant documents and their ranks')}{more}</section>"
        if case.gold
        else ""
    )


def _gold_row(case: CaseSheet, gold: Gold, once: _Once) -> str:
    doc = case.documents[gold.document]
    ranks = "".join(
        f'<td class="m3-rank-cell{" good" if rank and rank <= case.k else ""}" data-label="{escape(column.label)}">'
        f"{rank_words(rank, column)}</td>"
        for rank, column in zip(gold.ranks, case.columns, strict=True)
    )
    return (
        f'<tr data-doc="{gold.document}"><th scope="row"><div class="m3-doc">{once.picture(gold.document)}'
        f"<div>{_name(doc)}{words_of(doc)}</div></div></th><td>{mark(doc.judgement)}</td>{ranks}"
        f"<td>{_judge(doc)}</td></tr>"
    )


def rank_words(rank: int | None, column: Column) -> str:
    """A rank under one model in words."""
    if rank is None:
        return "N/A"
    return f"{rank:,}" if rank else f"not in the first {column.depth:,}"


def _columns(case: CaseSheet, once: _Once) -> str:
    rows = max((len(column.lines) for column in case.columns), default=0)
    columns = "".join(_column(case, column, at, once) for at, column in enumerate(case.columns))
    return (
        f'<div class="m3-columns m3-of-{len(case.columns)}" '
        f'style="--columns:{len(case.columns)};--rows:{max(rows, 1)}">'
        f'<svg class="m3-moves" aria-hidden="true"></svg>{columns}</div>'
    )


def _column(case: CaseSheet, column: Column, at: int, once: _Once) -> str:
    label, first = escape(column.label), case.columns[0].label
    lines = "".join(_line(case, column, line, at, once) for line in column.lines)
    kinds = "".join(map(_evidence, column.kinds))
    why = (
        f"<details><summary>{' '.join(_kind_words(kind) for kind in column.kinds)}</summary><ul>{kinds}</ul></details>"
        if kinds and at
        else ""
    )
    model = " · ".join(part for part in (column.model_id, column.revision, column.source) if part)
    moves = f"<p>Moves are counted from {escape(first)}.</p>" if at == 1 and not case.columns[0].reason else ""
    body = f'<ol aria-label="Hits of {label}">{lines}</ol>' if lines else "<p>No document was found.</p>"
    return (
        f'<section class="m3-column" aria-label="{label}"><div class="m3-column-head"><h3>{_swatch(column)}{label}</h3>'
        f"<p>{escape(model)}</p><p><strong>{standing(case, column)}</strong></p>{moves}{why}</div>"
        f"{'' if column.reason else body}</section>"
    )


def standing(case: CaseSheet, column: Column) -> str:
    """How one model did on the query."""
    if column.reason:
        return f"N/A: {escape(column.reason)}"
    value = "N/A" if column.value is None else f"{column.value:.3f}"
    first = f"first relevant at rank {column.first:,}" if column.first else f"none in the first {column.depth:,}"
    return f"{escape(case.measure)} {value} · {first}"


def _kind_words(kind: Kind) -> str:
    glyph, words = KINDS[kind.name]
    return f'<span class="m3-kind">{escape(glyph)} {words}</span>'


def _line(case: CaseSheet, column: Column, line: Line, at: int, once: _Once) -> str:
    doc = case.documents[line.document]
    good = " good" if doc.judgement.startswith("relevant") else ""
    move = f'<span class="m3-move">{move_words(line, column)}</span>' if at and not case.columns[0].reason else ""
    return (
        f'<li class="m3-hit{good}" data-doc="{line.document}"><div class="m3-hit-head">'
        f'<span class="m3-rank">{line.rank}</span>{move}{_score(line)}</div>'
        f'<div class="m3-doc{"" if doc.title or doc.beginning else " m3-tall"}">{once.picture(line.document)}'
        f"<div>{_name(doc)}{words_of(doc)}</div></div>"
        f'<div class="m3-hit-foot">{mark(doc.judgement)}{_judge(doc)}</div></li>'
    )


def move_words(line: Line, column: Column) -> str:
    """How a hit stands against the first column, as HTML: a glyph, and words for who cannot see it."""
    if line.before is None:
        return f'new<span class="m3-unseen">, not in the first {column.known} of the first column</span>'
    by = line.before - line.rank
    if by == 0:
        return '=<span class="m3-unseen"> same rank</span>'
    return f'{"▲" if by > 0 else "▼"} {abs(by):,}<span class="m3-unseen"> from rank {line.before:,}</span>'


def _score(line: Line) -> str:
    if line.shares is None:
        return f'<span class="m3-score">{number(line.score)}</span>'
    picture, words = line.shares
    bars = "".join(
        f'<i class="{name}" style="width:{min(1.0, max(0.0, share)) * 100:.1f}%"></i>'
        for name, share in (("p", picture), ("w", words))
    )
    return (
        f'<span class="m3-score">{number(line.score)}</span><span class="m3-shares"><span class="m3-bar" '
        f'aria-hidden="true">{bars}</span>picture {number(picture)} + words {number(words)}</span>'
    )


def number(value: float) -> str:
    """Three decimals with a real minus sign; never "−0.000"."""
    text = f"{value:.3f}"
    return "0.000" if text == "-0.000" else text.replace("-", "−")


def mark(judgement: str) -> str:
    """A judgement by glyph and words."""
    glyph, words = JUDGEMENTS[judgement]
    good = " good" if judgement.startswith("relevant") else ""
    return f'<span class="m3-judged{good}">{glyph} {words}</span>'


def words_of(doc: SheetDoc) -> str:
    """Title, beginning and facets of a document, as HTML."""
    title = f"<strong>{escape(doc.title)}</strong> " if doc.title else ""
    text = f'<p class="m3-beginning">{title}{escape(doc.beginning)}</p>' if title or doc.beginning else ""
    return f'{text}<p class="m3-facet">{escape(facets(doc))}</p>'


def _name(doc: SheetDoc) -> str:
    """The id; it opens the document where no picture of it does."""
    if doc.picture is not None:
        return f'<span class="m3-id">{escape(doc.id)}</span>'
    return _look(doc.collection, doc.id, escape(doc.id), "m3-id")


def facets(of: SheetQuery | SheetDoc) -> str:
    """Domain and facets, each once."""
    return " · ".join(dict.fromkeys((of.domain, *of.facets)))


def _swatch(column: Column) -> str:
    return f'<i class="m3-swatch" style="background:{escape(column.colour)}"></i>'


def _judge(doc: SheetDoc) -> str:
    options = "".join(
        f'<option value="{value}"{" selected" if value == doc.anew else ""}>{words}</option>'
        for value, words in REJUDGED.items()
    )
    return (
        f'<select class="m3-judge" data-collection="{escape(doc.collection)}" data-id="{escape(doc.id)}" '
        f'data-anew="{escape(doc.anew)}" aria-label="Judge document {escape(doc.id)} anew">{options}</select>'
    )


def document_of(event: gr.EventData) -> tuple[str, str, bool] | None:
    """Collection and id that ``look`` names, and whether it is the query itself; None where it arrived damaged.
    Not trusted: there may be no such document."""
    data = _data(event)
    key = _key(data.get("collection"), data.get("id"))
    own = data.get("query")
    return (*key, own) if key and isinstance(own, bool) else None


def judged_of(event: gr.EventData) -> tuple[Key, str] | None:
    """The document that ``judge`` names and the word on it, a key of `REJUDGED`; None where it arrived damaged."""
    data = _data(event)
    key, grade = _key(data.get("collection"), data.get("doc")), data.get("grade")
    return (key, grade) if key and isinstance(grade, str) and grade in REJUDGED else None


def _data(event: gr.EventData) -> dict:
    data = getattr(event, "_data", None)
    return data if isinstance(data, dict) else {}


def _key(collection: object, identity: object) -> Key | None:
    names = (collection, identity)
    return names if all(isinstance(name, str) and 0 < len(name) <= LONGEST for name in names) else None
