"""HTML of what is known of a data set: its counts, and what a full check found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ui.cards import escape


def facts(name: str, licence: str, data_id: str, rows: Sequence[dict[str, Any]], faults: int, synthetic: bool) -> str:
    """Counts, licence and health of a data set, with one table row a collection."""
    queries, documents = (sum(r[k] for r in rows) for k in ("queries", "documents"))
    health = f"{faults} fault{'s' if faults != 1 else ''} while reading" if faults else "read without faults"
    made = " · synthetic, not from patients" if synthetic else ""
    head = (
        f"<strong>{escape(name)}</strong>{made} · {len(rows)} collections · {queries:,} queries · "
        f"{documents:,} documents · {health} · licence: {escape(licence)}"
    )
    columns = ("collection", "queries", "documents", "judgements", "judgement_type")
    cells = ([f"{r[c]:,}" if isinstance(r[c], int) else r[c] for c in columns] for r in rows)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells)
    heads = "".join(
        f'<th scope="col">{h}</th>' for h in ("Collection", "Queries", "Documents", "Judgements", "Kind of judgements")
    )
    table = (
        f'<div class="m3-scroll" tabindex="0" role="region" aria-label="Collections"><table>'
        f"<caption>data_id {escape(data_id)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
    return f'<div class="m3-facts">{head}<details><summary>Collections</summary>{table}</details></div>'


def health(report: dict[str, Any]) -> str:
    """What a full check found, by kind, with the first places of each fault."""
    totals = report["totals"]
    repeated, template = totals["repeated_captions"], totals["template_texts"]
    lines = [
        f"{totals['pictures']:,} distinct pictures opened; {len(report['faults']):,} faults, "
        f"{len(report['notes']):,} notes.",
        f"{repeated['lines']:,} query lines have a caption that another query shares "
        f"({repeated['distinct']:,} captions); {template['lines']:,} lines are template text that nobody filled in "
        f"({template['distinct']:,} distinct).",
    ]
    items = "".join(
        f"<li>{escape(f['kind'])}: {escape(f['file'])}, line {f['line']}: {escape(f['detail'])}</li>"
        for f in report["faults"][:20]
    )
    more = len(report["faults"]) - 20
    tail = f"<p>and {more:,} more; <code>python -m core check</code> lists all.</p>" if more > 0 else ""
    body = "".join(f"<p>{line}</p>" for line in lines)
    return f'<div class="m3-facts">{body}{f"<ul>{items}</ul>" if items else ""}{tail}</div>'
