"""The queries on which two models differ most: the twin of the scatter, whose rows open a query."""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from core.analyze.scored import Key, Scored
from core.analyze.two import largest
from core.data.dataset import DataSet
from ui.cards import escape
from ui.compare.tables import signed, table, three

MOST = 5
"""Queries on either side."""

LONGEST = 90
"""Characters shown of a query's words."""


def rendered(dataset: DataSet, a: Scored, b: Scored, links: bool) -> str:
    """Two tables: where A is most ahead, and where B is. ``links``: the rows open the query."""
    ahead, behind = largest(a, b, MOST)
    sides = ((a.name, ahead), (b.name, behind))
    return f'<div class="m3-two">{"".join(_side(dataset, a, b, name, keys, links) for name, keys in sides)}</div>'


def _side(dataset: DataSet, a: Scored, b: Scored, name: str, keys: Sequence[Key], links: bool) -> str:
    caption = f"Where {escape(name)} is most ahead"
    if not keys:
        return f"<div><p>{caption}: nowhere.</p></div>"
    body = "".join(_row(dataset, a, b, key, links) for key in keys)
    about = f"{caption}, by {escape(a.measure)}. A is {escape(a.name)}, B {escape(b.name)}."
    return table(f"Where {name} is most ahead", about, ["Query", "A", "B", "A − B"], body, "m3-list")


def _row(dataset: DataSet, a: Scored, b: Scored, key: Key, links: bool) -> str:
    query = dataset.collections[key[0]].query(key[1])
    words = " ".join(query.text.split()) or "no words"
    short = escape(words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…")
    named = short
    if links:
        named = (
            f'<button type="button" class="m3-opens" data-collection="{escape(key[0])}" data-query="{escape(key[1])}" '
            f'aria-label="Open query {escape(key[1])}">{short}</button>'
        )
    facets = " · ".join(part for part in (a.domains[key], str(query.meta.get("specialty") or ""), key[1]) if part)
    one, two = a.values[key], b.values[key]
    return (
        f'<tr><th scope="row">{named}<span>{escape(facets)}</span></th><td>{three(one)}</td><td>{three(two)}</td>'
        f"<td>{signed(one - two)}</td></tr>"
    )


def key_of(event: gr.EventData, dataset: DataSet) -> list[Key]:
    """The query that a row stands for; empty for anything else, because an event is not trusted."""
    data = getattr(event, "_data", None)
    names = (data.get("collection"), data.get("query")) if isinstance(data, dict) else (None, None)
    if not all(isinstance(name, str) for name in names) or names[0] not in dataset.collections:
        return []
    try:
        dataset.collections[names[0]].query(names[1])
    except KeyError:
        return []
    return [names]
