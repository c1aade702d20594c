"""Pixels for the viewer: 16-bit greys keep their depth, so that a window over them shows what 8 bits would hide."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PIL import Image

from core.media.picture import DEFAULT_LIMITS, Flat, Limits, decode, guarded

LONGEST = 1024
"""Pixels of the longer side of a frame, unless asked otherwise."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture's pixels: ``height × width × channels`` unsigned little-endian values, row by row, interleaved.

    ``channels`` is 1 (grey) or 3 (RGB), ``bits`` is 8 or 16. ``window`` is the default (centre, width) in stored
    values; None shows 0…255 as they are. ``spacing``: mm between rows and between columns, None where unknown.
    """

    width: int
    height: int
    channels: int
    bits: int
    pixels: bytes
    window: tuple[float, float] | None = None
    spacing: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()


def open_frame(data: bytes, limits: Limits = DEFAULT_LIMITS, longest: int = LONGEST) -> Frame:
    """The bytes of a picture file as a frame of at most ``longest`` pixels a side; upright, first page or frame.

    Grey pictures whose decoded values are whole numbers beyond 8 bits and fit into 16 keep them; what is deeper or
    has negative values is scaled to 8 bits as in `core.media.picture`. Raises `PictureError`.
    """
    image, notes = guarded(data, limits, lambda given_up: decode(data, limits, given_up, _keep_deep))
    return _frame(np.asarray(image), notes, longest)


def frame_of(image: Image.Image, longest: int = LONGEST) -> Frame:
    """An RGB picture that is already open, as a frame of 8 bits."""
    return _frame(np.asarray(image.convert("RGB")), (), longest)


def payload(frame: Frame) -> dict[str, Any]:
    """The frame for the browser, JSON-ready: ``data`` is the base64 of the zlib-compressed pixels."""
    return {
        "width": frame.width,
        "height": frame.height,
        "channels": frame.channels,
        "bits": frame.bits,
        "window": frame.window,
        "spacing": frame.spacing,
        "notes": frame.notes,
        "data": base64.b64encode(zlib.compress(frame.pixels)).decode("ascii"),
    }


def _keep_deep(source: Image.Image, white_is_zero: bool) -> Flat | None:
    """16-bit grey as it is stored (inverted where 0 means white), or None: the picture has no such values."""
    if not (source.mode == "I" or source.mode.startswith("I;16")) or "transparency" in source.info:
        return None
    values = np.asarray(source)
    if values.min() < 0 or values.max() > 65535:
        return None
    values = values.astype(np.uint16)
    if white_is_zero:
        return Image.fromarray(65535 - values), ("values inverted, since 0 means white in it",)
    return Image.fromarray(values), ()


def _frame(pixels: np.ndarray, notes: tuple[str, ...], longest: int) -> Frame:
    """``pixels``: [h, w] uint16, or [h, w, 3] uint8."""
    height, width = pixels.shape[:2]
    if pixels.ndim == 3 and (pixels == pixels[..., :1]).all():
        pixels = np.ascontiguousarray(pixels[..., 0])
    if max(height, width) > longest:
        notes = (*notes, f"shown at {longest:,} of {max(height, width):,} pixels")
        pixels = _reduce(pixels, longest)
    deep = pixels.dtype.itemsize == 2
    frame = Frame(
        pixels.shape[1],
        pixels.shape[0],
        3 if pixels.ndim == 3 else 1,
        16 if deep else 8,
        pixels.astype("<u2" if deep else np.uint8).tobytes(),
        notes=notes,
    )
    return replace(frame, window=_window(pixels)) if deep else frame


def _reduce(pixels: np.ndarray, longest: int) -> np.ndarray:
    """Every pixel becomes the mean of the area it stands for: nothing rings, no value appears that was not there."""
    height, width = pixels.shape[:2]
    scale = longest / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    if pixels.dtype == np.uint8:
        return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX))
    # In 32-bit floats, which hold every 16-bit value exactly: Pillow would reduce 16-bit pictures by nearest pixels.
    means = np.asarray(Image.fromarray(pixels.astype(np.float32)).resize(size, Image.Resampling.BOX))
    return np.rint(means).astype(np.uint16)


def _window(values: np.ndarray) -> tuple[float, float]:
    """(centre, width) from the 1st to the 99th percentile of ``values``; at least one value wide."""
    low, high = (float(v) for v in np.percentile(values, (1, 99)))
    return (low + high) / 2, max(high - low, 1.0)
