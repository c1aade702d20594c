"""The picture well: choose, drop or paste a picture. Its bytes travel inside one event; nothing is put on disk."""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path

import gradio as gr

from core.media.picture import DEFAULT_LIMITS, PictureError

MAX_BYTES = DEFAULT_LIMITS.max_bytes

TEMPLATE = """<div class="m3-well">
<div class="m3-frame"><p>Drop a picture here, paste one, or choose a file</p></div>
<div class="m3-row"><label><input type="file" accept="image/*,.tif,.tiff" aria-label="Choose a picture">
<span class="m3-pick">Choose</span></label>
<button type="button" class="m3-clear" hidden>Remove picture</button>
<p class="m3-note" role="status"></p></div></div>"""

SCRIPT = Path(__file__).with_name("well.js").read_text()


def well() -> gr.HTML:
    """The component; it sends ``picture`` (``b64``) and ``removed``."""
    return gr.HTML(
        "{}",
        html_template=TEMPLATE,
        js_on_load=SCRIPT,
        apply_default_css=False,
        elem_id="picture-well",
        elem_classes="m3-flat",
        most=MAX_BYTES,
    )


def face(src: str | None, note: str = "", alt: str = "") -> str:
    """What the well shows: a ``data:`` address (or none) and a line below."""
    return json.dumps({"src": src, "note": note, "alt": alt})


def bytes_of(event: gr.EventData) -> bytes:
    """The bytes in a ``picture`` event; raises `PictureError`. The event comes from outside and is not trusted."""
    data = getattr(event, "_data", None)
    text = data.get("b64") if isinstance(data, dict) else None
    if not isinstance(text, str) or not text:
        raise PictureError("not_a_picture", "No picture arrived. Choose the file again.")
    if len(text) > (MAX_BYTES + 2) // 3 * 4:
        raise PictureError("too_large", f"The picture has more than {MAX_BYTES >> 20} MiB.")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise PictureError("not_a_picture", "The picture arrived damaged. Choose the file again.") from None
