"""The address of what the page shows, in the part behind ``#``, which no server sees: ``#tab=failures``.

The browser keeps it. Any part sets keys of its own by a document event, and learns of Back, Forward and links by
another:

    document.dispatchEvent(new CustomEvent('m3-route', {detail: {case: 'x'}}))    null takes a key away
    document.addEventListener('m3-nav', e => e.detail)                            all keys, also what was opened first

Whoever turns to another tab from Python says so in the same way, ``{tab: 'failures'}``; a click on a tab does it by
itself. A tab that is mounted later reads what stands behind ``#`` itself. Keys stay with the tab they were set in:
choosing a tab again brings its own back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gradio as gr

SCRIPT = Path(__file__).with_name("router.js").read_text(encoding="utf-8")
MOST, LONGEST = 20, 1000
"""Keys of an address, and characters of a key or a value."""


def router(tabs: Sequence[str]) -> gr.HTML:
    """The component, outside of the tabs; ``tabs`` are their ids, the first one is shown without an address. It sends
    ``nav`` with all keys (see `keys_of`) when the address was opened or walked to."""
    return gr.HTML(
        None,
        html_template="<i></i>",
        js_on_load=SCRIPT,
        visible="hidden",
        elem_id="router",
        tabs=list(tabs),
    )


def keys_of(event: gr.EventData) -> dict[str, str]:
    """The keys that came with an event. It comes from outside: what is no short text is left out."""
    data = getattr(event, "_data", None)
    if not isinstance(data, dict):
        return {}
    texts = {k: v for k, v in data.items() if isinstance(k, str) and isinstance(v, str)}
    return {k: v for k, v in list(texts.items())[:MOST] if len(k) <= LONGEST and len(v) <= LONGEST}
