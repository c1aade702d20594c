"""Files for the visitor without a file on the server: bytes travel in a value, and the browser saves them."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Callable
from pathlib import Path

import gradio as gr

from ui import errors

MAX_BYTES = 32 << 20
LONGEST = 100
"""Characters of a file's name."""

SCRIPT = Path(__file__).with_name("download.js").read_text(encoding="utf-8")


def download(elem_id: str = "download") -> gr.HTML:
    """The component; its value is a `payload`. It takes no room unless it has to say why nothing was saved."""
    return gr.HTML(
        "",
        html_template='<p class="m3-problem" role="alert"></p>',
        js_on_load=SCRIPT,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes="m3-flat m3-download",
    )


def payload(name: str, mime: str, data: bytes) -> str:
    """What makes the browser save ``data`` as a file of this name; beyond `MAX_BYTES` it says why it does not.

    Raises ValueError where ``mime`` is no media type.
    """
    if not re.fullmatch(r"[a-z]+/[a-z0-9.+-]+", mime):
        raise ValueError(f"{mime!r} is no media type.")
    if len(data) > MAX_BYTES:
        size, most = len(data) / (1 << 20), MAX_BYTES >> 20
        problem = f"{safe_name(name)} would have {size:.1f} MiB; at most {most} MiB are sent. Choose fewer rows."
        return refusal(problem)
    sent = {"name": safe_name(name), "type": mime, "base64": base64.b64encode(data).decode("ascii")}
    return json.dumps({**sent, "nonce": secrets.token_hex(8)})


def refusal(problem: str) -> str:
    """A value that saves nothing and says why."""
    return json.dumps({"problem": problem, "nonce": secrets.token_hex(8)})


def sent(make: Callable[[], tuple[str, str, bytes]]) -> str:
    """The `payload` of what ``make`` gives, (name, media type, bytes), or the `refusal` that says why there is none."""
    try:
        return payload(*make())
    except Exception as error:
        return refusal(str(error) if isinstance(error, ValueError) else errors.sentence(error))


def safe_name(name: str) -> str:
    """A file name of ASCII letters, digits, dots, dashes and underscores, neither hidden nor a path."""
    short = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")
    stem, dot, ending = short.rpartition(".")
    if not dot:
        return short[:LONGEST] or "download"
    return f"{stem[: LONGEST - 1 - len(ending)]}.{ending}" if len(ending) <= 10 else short[:LONGEST]
