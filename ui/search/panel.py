"""HTML of the panel that a hit opens: above and below the viewer, and the note on a ready query."""

from __future__ import annotations

from collections.abc import Sequence

from core.records import JUDGED, Query
from core.search.case_view import CasePicture, CaseView
from ui.cards import escape, segments
from ui.text import JUDGEMENTS
from ui.viewer import Item


def head(view: CaseView, own: bool) -> str:
    """Heading and actions. ``own``: this is the case of the ready query itself, which is no hit."""
    what = f"Case {view.name}" if view.name else f"Document {view.id}"
    joined = (
        f"All pictures and texts with this case number, from {view.joined} collections of the data set."
        if view.joined > 1
        else ""
    )
    title = "The query's own case: " if own else ""
    steps = (
        '<button type="button" data-hit="-1">Previous hit</button><button type="button" data-hit="1">Next hit</button>'
    )
    name = f'data-collection="{escape(view.collection)}" data-id="{escape(view.id)}"'
    acts = (
        f'<button type="button" data-act="like" {name}>Find more like this</button>'
        f'<button type="button" data-act="use" {name}>Use as query</button>'
    )
    return (
        f'<div class="m3-case-head"><div class="m3-row"><button type="button" data-close>Close</button>'
        f'{"" if own else steps}</div><h2 tabindex="-1">{title}{escape(what)}</h2>'
        f"<p>{escape(view.place)} · document {escape(view.id)}</p>{f'<p>{joined}</p>' if joined else ''}"
        f'{"" if own else f"""<div class="m3-row">{acts}</div>"""}</div>'
    )


def body(view: CaseView) -> str:
    """Whole text, further texts of the case, metadata."""
    title = f"<strong>{escape(view.title)}</strong> " if view.title else ""
    text = f'<p class="m3-passage">{segments(view.text)}</p>' if view.text else ""
    others = "".join(
        f"<details><summary>{escape(t.place)} · {escape(t.id)}</summary>"
        f'<p class="m3-passage">{segments(t.text)}</p></details>'
        for t in view.texts
    )
    more = f"<p>and {view.more_texts:,} more documents of this case.</p>" if view.more_texts else ""
    texts = f"<h3>Other texts of this case</h3>{others}{more}" if others else ""
    rows = "".join(f'<tr><th scope="row">{escape(n)}</th><td>{escape(v)}</td></tr>' for n, v in view.facts)
    facts = f'<h3>Metadata</h3><table class="m3-meta"><tbody>{rows}</tbody></table>' if rows else ""
    return f'<div class="m3-case-body">{title if not text else ""}{text}{texts}{facts}</div>'


def items(pictures: Sequence[CasePicture]) -> list[Item]:
    """A case's pictures for the viewer."""
    return [Item(p.reference, p.title, p.caption, p.line) for p in pictures]


def about(query: Query, domain: str, grades: dict[str, int], trained_on: bool, has_case: bool) -> str:
    """What is known of a ready query, and the button for its own case, which stays folded until asked for."""
    counts = [(f"relevant-{g}" if g else "not-relevant", sum(v == g for v in grades.values())) for g in JUDGED]
    judged = ", ".join(f"{n:,} {JUDGEMENTS[name][0]} {JUDGEMENTS[name][1]}" for name, n in counts if n)
    seen = (
        "<p><strong>The model was trained on this case.</strong> How well it does here says nothing about new "
        "pictures.</p>"
        if trained_on
        else ""
    )
    button = '<button type="button" class="m3-own">Show the query\'s own case</button>' if has_case else ""
    return (
        f'<div class="m3-about-query"><p>Query {escape(query.id)} · {escape(domain)} · judged: '
        f"{escape(judged or 'nothing')}</p>{seen}{button}</div>"
    )
