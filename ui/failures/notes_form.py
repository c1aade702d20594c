"""The form below a case: note and tags of one's own, and what everybody said. It sends what it holds with its query, so
that nothing is ever saved under another case that was opened meanwhile."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from core.analyze.rejudge import MOST_TAG, MOST_TAGS, MOST_TEXT, Annotations
from ui.cards import escape
from ui.text import REJUDGED

SCRIPT = Path(__file__).with_name("notes_form.js").read_text(encoding="utf-8")
LONGEST = 1000
"""Characters that a name of a collection or query in an event may have."""

MOST_LINE = (MOST_TAG + 2) * MOST_TAGS


def notes_form(elem_id: str) -> gr.HTML:
    """The component. Events: ``save`` and ``draft``, read both by `note_of`."""
    return gr.HTML("", js_on_load=SCRIPT, apply_default_css=False, elem_id=elem_id, elem_classes="m3-flat")


def rendered(key: tuple[str, str], text: str, tags: str, annotations: Annotations, said: str = "") -> str:
    """The form of query ``key`` with what stands in it; ``said`` is a line of HTML about what was done last."""
    return (
        f'<section class="m3-notes" data-collection="{escape(key[0])}" data-id="{escape(key[1])}">'
        f"<h3>Note on query {escape(key[1])}</h3>"
        f'<label>Note <textarea rows="3" maxlength="{MOST_TEXT}" data-was="{escape(text)}">{escape(text)}</textarea>'
        "</label>"
        f'<label>Tags, parted by semicolons <input type="text" maxlength="{MOST_LINE}" value="{escape(tags)}" '
        f'data-was="{escape(tags)}"></label>'
        f'<div class="m3-row"><button type="button" data-do="save">Save note</button></div>'
        f'<div class="m3-saved">{said}</div>{_everybody(annotations, key)}</section>'
    )


def _everybody(annotations: Annotations, key: tuple[str, str]) -> str:
    """All notes on a query, and who judged what anew."""
    notes = "".join(
        f"<li><strong>{escape(note.author)}</strong> <time>{escape(note.time)}</time> "
        f"{''.join(f'<span class=m3-tag>{escape(tag)}</span>' for tag in note.tags)}"
        f'<p class="m3-passage">{escape(note.text)}</p></li>'
        for note in annotations.notes_on(key)
    )
    judged = "".join(
        f"<li><strong>{escape(one.author)}</strong> <time>{escape(one.time)}</time> judged {escape(one.doc)} anew: "
        f"{escape(REJUDGED[one.grade])}</li>"
        for one in annotations.judged_on(key)
    )
    return f'<ul class="m3-said">{notes}{judged}</ul>' if notes or judged else ""


def note_of(event: gr.EventData) -> tuple[tuple[str, str], str, str] | None:
    """Query, text and tags in an event, which is not trusted; None where it arrived damaged."""
    data = getattr(event, "_data", None)
    data = data if isinstance(data, dict) else {}
    names = data.get("collection"), data.get("id")
    text, tags = data.get("text"), data.get("tags")
    if not all(isinstance(name, str) and 0 < len(name) <= LONGEST for name in names):
        return None
    if not isinstance(text, str) or not isinstance(tags, str) or len(text) > 2 * MOST_TEXT or len(tags) > 2 * MOST_LINE:
        return None
    if any("\ud800" <= sign <= "\udfff" for part in (*names, text, tags) for sign in part):
        return None  # half a character: nothing could send or store it again
    return names, text, tags
