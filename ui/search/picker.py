"""The query picker: search a data set's own queries and choose one, by mouse, touch or keyboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gradio as gr

from core.data.find import Found, FoundQuery, pieces
from core.records import QueryError

PAGE = 20
"""Queries that a look fetches."""

MOST = 400
"""Queries that the list grows to; more words narrow it further."""

MOST_WORDS, LONGEST = 200, 2000
"""Characters that a search, and a name of a collection or query, may have."""

SHOWN = 160
"""Characters of a query's text in its row."""

TEMPLATE = """<div class="m3-picker"><label class="m3-label">Queries of this data set</label>
<div class="m3-field"><input type="text" role="combobox" autocomplete="off" spellcheck="false" aria-expanded="false"
 aria-autocomplete="list"><button type="button" class="m3-random">Random query</button>
<div class="m3-pop" hidden><p class="m3-few m3-total" role="status"></p>
<ul class="m3-found" role="listbox" aria-label="Queries found" tabindex="-1"></ul>
<button type="button" class="m3-plain m3-more">Show more</button></div></div></div>"""

SCRIPT = Path(__file__).with_name("picker.js").read_text()


def picker(elem_id: str = "queries") -> gr.HTML:
    """The component. It sends ``look`` (words and start: read by `look_of`, answered with `answer`), ``choose``
    (read by `choice_of`) and ``random`` (answered with `face`). Wire ``look`` with ``trigger_mode="always_last"``, so
    that no search is dropped while another one runs."""
    return gr.HTML(
        "{}",
        html_template=TEMPLATE,
        js_on_load=SCRIPT,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["m3-flat", "m3-over"],
        longest=MOST_WORDS,
        most=MOST,
        page=PAGE,
    )


def face(found: Found, chosen: FoundQuery | None = None) -> str:
    """The picker at rest on the first queries of a pool (all of them match: no words), its list closed. ``chosen``
    is the query that the field names; without one the field is empty."""
    return _json({"kind": "face", "chosen": chosen.text or chosen.id if chosen else "", **_list(found, "", 0)})


def answer(found: Found, words: str, start: int) -> str:
    """The answer to a look: the open list shows it unless other words were typed meanwhile."""
    return _json({"kind": "answer", **_list(found, words, start)})


def look_of(event: gr.EventData) -> tuple[str, int]:
    """Words and start (0-based) of a ``look`` event; raises `QueryError`. The event is not trusted."""
    data = _data(event)
    words, start = data.get("words"), data.get("start")
    if not isinstance(words, str) or len(words) > MOST_WORDS:
        raise QueryError(f"Search the queries with at most {MOST_WORDS} characters.")
    if type(start) is not int or not 0 <= start < MOST:
        raise QueryError("This part of the list cannot be shown. Type more words to narrow it.")
    return words, start


def choice_of(event: gr.EventData) -> tuple[str, str]:
    """Collection key and id of a ``choose`` event; raises `QueryError`. Not trusted: the query may not exist."""
    data = _data(event)
    names = data.get("collection"), data.get("id")
    if not all(isinstance(name, str) and 0 < len(name) <= LONGEST for name in names):
        raise QueryError("The chosen query arrived damaged. Choose it again.")
    return names


def _data(event: gr.EventData) -> dict[str, Any]:
    data = getattr(event, "_data", None)
    return data if isinstance(data, dict) else {}


def _list(found: Found, words: str, start: int) -> dict[str, Any]:
    rows = [_row(row, words) for row in found.rows]
    return {"of": found.of, "total": found.total, "words": words, "start": start, "rows": rows}


def _row(row: FoundQuery, words: str) -> dict[str, Any]:
    about = [pieces(name, words) for name in (row.domain, row.specialty, row.id) if name]
    count = "words only" if not row.pictures else "picture" if row.pictures == 1 else f"{row.pictures} pictures"
    facts = [count] if row.has_judgements else [count, "no judgements"]
    text = pieces(row.text, words, SHOWN)
    return {"collection": row.collection, "id": row.id, "text": text, "about": about, "facts": facts}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value).replace("<", "\\u003c")
