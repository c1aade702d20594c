"""Small WebP pictures for result cards, made once and kept in a cache folder."""

from __future__ import annotations

import base64
import re
from io import BytesIO
from pathlib import Path

from PIL import Image

from core.media.picture import open_picture
from core.store.atomic import write_bytes


def thumbnail(data: bytes, sha256: str, cache: Path | None, longest: int = 256) -> bytes:
    """A WebP (RGB) of the picture whose longer side is at most ``longest`` pixels; never enlarged, never cropped.

    ``sha256`` is the hex digest of ``data`` and names the file ``cache/<sha[:2]>/<sha>-<longest>.webp``; ``None``
    keeps nothing. A damaged cache file is made again. Raises :class:`~core.media.picture.PictureError` where
    ``data`` is not a picture, ``ValueError`` where ``sha256`` is not a digest.
    """
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise ValueError(f"sha256 must be 64 lower-case hex digits, not {sha256!r}.")
    if longest < 1:
        raise ValueError(f"longest must be at least 1 pixel, not {longest}.")
    path = None if cache is None else cache / sha256[:2] / f"{sha256}-{longest}.webp"
    if path is not None and (kept := _kept(path, longest)) is not None:
        return kept
    image = open_picture(data).image
    scale = min(1.0, longest / max(image.size))
    if scale < 1.0:
        size = tuple(max(1, round(side * scale)) for side in image.size)
        image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    buffer = BytesIO()
    image.save(buffer, "WEBP", quality=82, method=4)
    if path is not None:
        try:
            write_bytes(path, buffer.getvalue())
        except OSError:
            pass  # a full or read-only disk costs time next time, not the picture now
    return buffer.getvalue()


def data_uri(webp: bytes) -> str:
    """The WebP as a ``data:`` address for an ``<img>`` element."""
    return "data:image/webp;base64," + base64.b64encode(webp).decode("ascii")


def _kept(path: Path, longest: int) -> bytes | None:
    """The cached bytes, or ``None`` where there are none or they do not decode to a thumbnail."""
    try:
        kept = path.read_bytes()
        with Image.open(BytesIO(kept), formats=("WEBP",)) as image:
            if max(image.size) > longest:  # before decoding: a damaged header may claim anything
                return None
            image.load()
    except Exception:  # Pillow raises nearly anything on damaged data
        return None
    return kept
