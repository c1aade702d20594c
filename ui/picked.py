"""A file that a visitor chooses: its bytes travel inside one event, and nothing is put on disk or into the log."""

from __future__ import annotations

import base64
import binascii
import secrets
from pathlib import Path

import gradio as gr

from ui.cards import escape

MAX_BYTES = 32 << 20
LONGEST = 200
"""Characters of a file's name that a message repeats."""

SCRIPT = Path(__file__).with_name("picked.js").read_text(encoding="utf-8")


def picked(elem_id: str, words: str, accept: str, most: int = MAX_BYTES) -> gr.HTML:
    """The component: a button ``words`` for files of the kinds ``accept``, of at most ``most`` bytes. It sends
    ``file``; read it by `bytes_of`. Its value is a line below the button."""
    template = (
        f'<div class="m3-picked"><label><input type="file" accept="{escape(accept)}">'
        f'<span class="m3-pick">{escape(words)}</span></label><div class="m3-line" role="status"></div></div>'
    )
    return gr.HTML(
        "",
        html_template=template,
        js_on_load=SCRIPT,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes="m3-flat",
        most=most,
    )


def told(html: str) -> str:
    """The line below the button as news, also where it is word for word the last one."""
    return f"{html}<!-- {secrets.token_hex(4)} -->"


def bytes_of(event: gr.EventData, most: int = MAX_BYTES) -> tuple[bytes, str]:
    """The bytes and the name in a ``file`` event, which is not trusted. ValueError says what is wrong with it."""
    data = getattr(event, "_data", None)
    text = data.get("b64") if isinstance(data, dict) else None
    name = data.get("name") if isinstance(data, dict) else None
    if not isinstance(text, str) or not isinstance(name, str):
        raise ValueError("No file arrived. Choose it again.")
    if len(text) > (most + 2) // 3 * 4:
        raise ValueError(f"The file has more than {most / (1 << 20):g} MiB; choose a smaller one.")
    try:
        return base64.b64decode(text, validate=True), name[:LONGEST]
    except (binascii.Error, ValueError):
        raise ValueError("The file arrived damaged. Choose it again.") from None
