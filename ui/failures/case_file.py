"""One case as a file: HTML that stands alone, without script, that opens offline and prints in black and white."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from core.analyze.case import CaseSheet, Column, Gold, Line, Picture, SheetDoc
from core.analyze.rejudge import Annotations
from ui.cards import escape
from ui.failures.sheet import cluster_words, facets, mark, move_words, number, rank_words, standing, words_of
from ui.text import KINDS, REJUDGED, TITLE, WARNING

PICTURES = "This file contains pictures and texts of the data set; its licence holds for them."

_STYLE = """body{font:15px/1.45 system-ui,sans-serif;color:#111;background:#fff;max-width:1200px;margin:24px auto;
 padding:0 16px}
h1{font-size:22px} h2{font-size:17px;margin:24px 0 8px} p{margin:4px 0;max-width:75ch;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums} tr{break-inside:avoid}
th,td{border:1px solid #999;padding:6px 8px;text-align:left;vertical-align:top;overflow-wrap:anywhere;font-weight:400}
thead th{font-weight:600} .fixed{table-layout:fixed} .rank{width:40px}
img{display:block;max-width:256px;max-height:256px;width:auto;height:auto;background:#0b0d10}
td img,tbody th img{max-width:100%;max-height:140px} .passage{white-space:pre-line}
.models th:first-child{width:24%} .models td:nth-child(3){width:46%}
.m3-unseen{display:none} .good{font-weight:700} .m3-beginning,.m3-facet,small{font-size:13px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px} dt{color:#444} dd{margin:0;overflow-wrap:anywhere}
@media print{body{margin:0;max-width:none;font-size:11px} a{color:inherit}}"""


def case_file(case: CaseSheet, provenance: Mapping[str, str], annotations: Annotations) -> bytes:
    """The file as UTF-8. ``provenance`` says what made the case, name by name, in the order given: data, revisions,
    run ids, version of the code, metric tool, date, overlay. ``annotations`` are those of the data set."""
    query = case.query
    title = f"{TITLE}: query {query.id}"
    pictures = "".join(_picture(picture, f"Picture of query {query.id}") for picture in query.pictures)
    text = f'<p class="passage">{escape(query.text)}</p>' if query.text.strip() else "<p>No words.</p>"
    about = {
        "Query": f"{query.id} in {query.collection}",
        "Task": query.task,
        "Domain": facets(query),
        "Counted with": cluster_words(query.cluster),
    }
    body = (
        f"<h1>{escape(title)}</h1><p><strong>{escape(WARNING)}</strong> {PICTURES}</p>"
        f"<h2>Query</h2>{pictures}{text}{_facts(about)}"
        f"<h2>Relevant documents and their ranks</h2>{_gold(case)}<h2>Models</h2>{_models(case)}"
        f"<h2>Hits</h2>{_hits(case)}{_said(case, annotations)}<h2>Where this comes from</h2>{_facts(provenance)}"
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )
    return page.encode("utf-8", "replace")


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return f"<dl>{rows}</dl>"


def _picture(picture: Picture | None, alt: str) -> str:
    if picture is None:
        return ""
    if picture.uri is None:
        return f"<p>{escape(picture.problem)}</p>"
    return f'<img src="{picture.uri}" alt="{escape(alt)}">'


def _document(doc: SheetDoc) -> str:
    picture = _picture(doc.picture, f"Picture of document {doc.id}")
    return f"{picture}<small>{escape(doc.id)} in {escape(doc.collection)}</small>{words_of(doc)}"


def _gold(case: CaseSheet) -> str:
    if not case.gold:
        return "<p>No model of this case has the query among its judged ones.</p>"
    heads = "".join(f'<th scope="col">{escape(column.label)}</th>' for column in case.columns)

    def row(gold: Gold) -> str:
        doc = case.documents[gold.document]
        cells = zip(gold.ranks, case.columns, strict=True)
        ranks = "".join(f"<td>{rank_words(rank, column)}</td>" for rank, column in cells)
        return f'<tr><th scope="row">{_document(doc)}</th><td>{mark(doc.judgement)}</td>{ranks}</tr>'

    return (
        f'<table><thead><tr><th scope="col">Document</th><th scope="col">Judged</th>{heads}</tr></thead>'
        f"<tbody>{''.join(map(row, case.gold))}</tbody></table>"
    )


def _models(case: CaseSheet) -> str:
    def row(column: Column) -> str:
        kinds = "".join(
            f"<p>{escape(KINDS[kind.name][0])} <strong>{escape(KINDS[kind.name][1])}</strong>: {escape(kind.evidence)} "
            f"<small>({escape(kind.sentence)})</small></p>"
            for kind in column.kinds
        )
        made = " · ".join(part for part in (column.model_id, column.revision, column.source) if part)
        return (
            f'<tr><th scope="row"><strong>{escape(column.label)}</strong><br><small>{escape(made)}</small></th>'
            f"<td>{standing(case, column)}</td><td>{kinds or 'none'}</td>"
            f"<td><small>{escape(', '.join(column.run_ids))}</small></td></tr>"
        )

    return (
        '<table class="models"><thead><tr><th scope="col">Model</th><th scope="col">Result</th>'
        '<th scope="col">Kinds of failure</th><th scope="col">Run</th></tr></thead>'
        f"<tbody>{''.join(map(row, case.columns))}</tbody></table>"
    )


def _hits(case: CaseSheet) -> str:
    """Ranks down, models across; moves are counted from the first model."""
    heads = "".join(f'<th scope="col">{escape(column.label)}</th>' for column in case.columns)
    rows = "".join(
        f'<tr><th scope="row">{rank}</th>'
        + "".join(
            _hit(case, column, line, at) for at, (column, line) in enumerate(zip(case.columns, across, strict=True))
        )
        + "</tr>"
        for rank, across in enumerate(zip_longest(*(column.lines for column in case.columns)), 1)
    )
    return (
        f'<table class="fixed"><thead><tr><th scope="col" class="rank">Rank</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _hit(case: CaseSheet, column: Column, line: Line | None, at: int) -> str:
    if line is None:
        return "<td></td>"
    doc = case.documents[line.document]
    move = f"{move_words(line, column)} · " if at and not case.columns[0].reason else ""
    shares = f" = picture {number(line.shares[0])} + words {number(line.shares[1])}" if line.shares else ""
    return f"<td>{_document(doc)}<p>{mark(doc.judgement)}</p><p>{move}score {number(line.score)}{shares}</p></td>"


def _said(case: CaseSheet, annotations: Annotations) -> str:
    """Notes and re-judgements with author and time."""
    key = (case.query.collection, case.query.id)
    notes = "".join(
        f'<p class="passage">{escape(note.text)}</p><p><small>{escape(", ".join(note.tags))}'
        f"{' · ' if note.tags else ''}{escape(note.author)}, {escape(note.time)}</small></p>"
        for note in annotations.notes_on(key)
    )
    anew = "".join(
        f"<tr><td>{escape(row.doc)} in {escape(row.doc_collection)}</td><td>{escape(REJUDGED[row.grade])}</td>"
        f"<td>{escape(row.author)}</td><td>{escape(row.time)}</td></tr>"
        for row in annotations.judged_on(key)
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Document", "Judged anew", "By", "Time"))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{anew}</tbody></table>" if anew else ""
    counted = "These re-judgements count in the figures above." if case.overlay else "The figures do not count them."
    return (f"<h2>Notes</h2>{notes}" if notes else "") + (
        f"<h2>Re-judgements</h2><p>{counted}</p>{table}" if table else ""
    )
