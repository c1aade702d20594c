"""The one safe way to turn the bytes of a picture file into pixels.

Whatever comes in, :func:`open_picture` gives a :class:`Picture` or raises a :class:`PictureError` that says in one
sentence what is wrong. There is never a placeholder, and nothing of the file's metadata is passed on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import TypeVar

import numpy as np

# Imported by name, so that Pillow never loads its other readers on the way to a refusal.
from PIL import (
    BmpImagePlugin,  # noqa: F401
    GifImagePlugin,  # noqa: F401
    Image,
    JpegImagePlugin,  # noqa: F401
    PngImagePlugin,  # noqa: F401
    PpmImagePlugin,  # noqa: F401
    TiffImagePlugin,  # noqa: F401
    WebPImagePlugin,  # noqa: F401
)

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
"""The formats that are opened, as Pillow names them; everything else is refused."""

KINDS = (
    "missing",
    "outside",
    "too_large",
    "too_many_pixels",
    "too_slow",
    "truncated",
    "not_a_picture",
    "unsupported",
    "encrypted",
)
"""Every kind a :class:`PictureError` can have; ``truncated`` stands for cut short or damaged."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a picture may cost: bytes of its file, pixels its header claims, seconds of decoding.

    Pillow's own ceiling (about 179 million pixels) holds besides, whatever ``max_pixels`` says.
    """

    max_bytes: int = 32 * 1024 * 1024
    max_pixels: int = 50_000_000
    seconds: float = 10.0


DEFAULT_LIMITS = Limits()


class PictureError(Exception):
    """A picture that cannot be had. ``kind`` is one of :data:`KINDS`; ``str()`` is one plain sentence."""

    def __init__(self, kind: str, detail: str) -> None:
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not a kind of picture error")
        super().__init__(detail)
        self.kind = kind
        self.detail = detail

    def __reduce__(self) -> tuple[type[PictureError], tuple[str, str]]:
        return PictureError, (self.kind, self.detail)


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A decoded picture: ``image`` is 8-bit RGB, upright, without metadata; sizes in pixels, after orientation.

    ``notes`` say in plain words what was done to get there ("first of 12 frames").
    """

    image: Image.Image
    width: int
    height: int
    notes: tuple[str, ...] = ()


Found = TypeVar("Found")
Flat = tuple[Image.Image, tuple[str, ...]]
Keep = Callable[[Image.Image, bool], Flat | None]
_PHOTOMETRIC = 262
_ORIENTATION = 274


def open_picture(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Picture:
    """Decode the bytes of a PNG, JPEG, WebP, GIF, BMP, TIFF or PPM file.

    Raises :class:`PictureError` of kind ``too_large``, ``too_many_pixels``, ``too_slow``, ``truncated``,
    ``not_a_picture`` or ``unsupported``, and nothing else. Sizes are checked before anything is decoded.
    """
    return guarded(data, limits, lambda given_up: _decode(data, limits, given_up))


def guarded(data: bytes, limits: Limits, job: Callable[[threading.Event], Found]) -> Found:
    """Run ``job`` on ``data`` within the limits of bytes and seconds, in a thread of its own.

    What this guarantees: the caller gets its answer in time. What it does not: Python cannot end a thread, so a
    decoder that hangs keeps its core and its memory (bounded by the pixel limit) until it returns; the event only
    keeps it from starting its next step. Nor does it survive a crash inside a decoder: that needs a process.
    The thread is a daemon, so that it never holds up the end of the program.
    """
    if len(data) > limits.max_bytes:
        raise PictureError("too_large", f"The file has {len(data):,} bytes; at most {limits.max_bytes:,} are opened.")
    given_up = threading.Event()
    outcome: list[Found | Exception] = []

    def work() -> None:
        try:
            outcome.append(job(given_up))
        except Exception as error:  # handed to the caller below
            outcome.append(error)

    thread = threading.Thread(target=work, name="picture-decoder", daemon=True)
    thread.start()
    thread.join(limits.seconds)
    if not outcome:
        given_up.set()
        raise PictureError("too_slow", f"Decoding took longer than {limits.seconds:g} seconds and was given up.")
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def _decode(data: bytes, limits: Limits, given_up: threading.Event) -> Picture:
    upright, notes = decode(data, limits, given_up)
    clean = Image.new("RGB", upright.size)
    clean.paste(upright)  # pixels only: no info, no EXIF, no file behind it
    return Picture(clean, clean.width, clean.height, notes)


def decode(data: bytes, limits: Limits, given_up: threading.Event, keep: Keep | None = None) -> Flat:
    """The first frame, upright, as 8-bit RGB, and notes. To be called within :func:`guarded`.

    ``keep`` gets the loaded picture and whether 0 means white in it; what it gives takes the place of the RGB pixels.
    """
    source = _open(data, limits)
    width, height = source.size
    if width * height > limits.max_pixels:
        raise PictureError(
            "too_many_pixels", f"The picture claims {width:,} × {height:,} pixels; at most {limits.max_pixels:,} fit."
        )
    name = source.format
    # Pillow raises nearly anything on damaged data (OSError, SyntaxError, struct.error, zlib.error, ValueError ...).
    try:
        notes = _frame_notes(source)
        tags = {t: source.tag_v2.get(t) for t in (_PHOTOMETRIC, _ORIENTATION)} if name == "TIFF" else {}
        source.load()
    except MemoryError:
        raise _no_room(width, height) from None
    except Exception as error:
        raise PictureError("truncated", f"The {name} data are cut short or damaged ({_brief(error)}).") from error
    if given_up.is_set():
        raise PictureError("too_slow", "Decoding was given up.")
    try:
        white_is_zero = tags.get(_PHOTOMETRIC) == 0
        flat, said = (keep and keep(source, white_is_zero)) or _to_rgb(source, data, white_is_zero)
        # Asked after load(), since a PNG may keep its EXIF behind the pixels; a TIFF was turned by load() itself.
        upright, turned = _turn(flat, _orientation(source), already=tags.get(_ORIENTATION))
    except PictureError:
        raise
    except MemoryError:
        raise _no_room(width, height) from None
    except Exception as error:
        raise PictureError(
            "unsupported", f"{name} pictures of the kind {source.mode} cannot be shown ({_brief(error)})."
        ) from error
    return upright, notes + said + turned


def _no_room(width: int, height: int) -> PictureError:
    return PictureError("too_many_pixels", f"The picture of {width:,} × {height:,} pixels does not fit into memory.")


def _open(data: bytes, limits: Limits) -> Image.Image:
    """Read the header only. Says what the bytes are where Pillow says just that it does not know."""
    try:
        return Image.open(BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise PictureError(
            "too_many_pixels", f"The picture claims far more than the {limits.max_pixels:,} pixels that fit."
        ) from None
    except Exception as error:
        if not data:
            raise PictureError("not_a_picture", "The file is empty.") from None
        if other := _other_kind(data):
            raise PictureError(
                "unsupported", f"This is {other}; only PNG, JPEG, WebP, GIF, BMP, TIFF and PPM pictures are opened."
            ) from None
        if known := _starts_like(data):
            raise PictureError(
                "truncated",
                f"The file starts like a {known} picture, but its header is cut short, damaged or of an unknown kind.",
            ) from error
        raise PictureError("not_a_picture", "The file is not a picture of any format known here.") from None


def _starts_like(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WebP"
    signatures = {
        "PNG": b"\x89PNG\r\n\x1a\n",
        "JPEG": b"\xff\xd8\xff",
        "GIF": (b"GIF87a", b"GIF89a"),
        "TIFF": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    }
    return next((name for name, starts in signatures.items() if data.startswith(starts)), "")


def _other_kind(data: bytes) -> str:
    if data[128:132] == b"DICM":
        return "a DICOM file"
    if data[344:348] in (b"n+1\0", b"ni1\0"):
        return "a NIfTI file"
    if data[4:8] == b"ftyp":
        return "a HEIC, AVIF or video file"
    if data[:256].lstrip().lower().startswith((b"<svg", b"<?xml")):
        return "an SVG or XML file"
    signatures = {
        b"%PDF": "a PDF file",
        b"\0\0\0\x0cjP  ": "a JPEG 2000 picture",
        b"\xff\x4f\xff\x51": "a JPEG 2000 picture",
        b"8BPS": "a Photoshop file",
        b"\x1f\x8b": "a gzip file",
        b"PK\x03\x04": "a zip file",
    }
    return next((name for start, name in signatures.items() if data.startswith(start)), "")


def _brief(error: Exception) -> str:
    """The first line of an error, short enough for a sentence."""
    lines = str(error).splitlines()
    return (lines[0] if lines else type(error).__name__)[:120]


def _frame_notes(source: Image.Image) -> tuple[str, ...]:
    count = getattr(source, "n_frames", 1)
    return () if count == 1 else (f"first of {count} {'pages' if source.format == 'TIFF' else 'frames'}",)


def _to_rgb(source: Image.Image, data: bytes, white_is_zero: bool) -> Flat:
    """8-bit RGB pixels of a loaded picture of any mode, and what was done to get them."""
    mode = source.mode
    key = _transparent_key(source, data)
    if mode in ("I", "F") or mode.startswith("I;16"):
        values = np.asarray(source)
        grey, note = _scale(values, mode, white_is_zero)
        if isinstance(key, int) and (see_through := values == key).any():
            grey[see_through] = 255
            return Image.fromarray(grey).convert("RGB"), (note, "transparent areas shown on white")
        return Image.fromarray(grey).convert("RGB"), (note,)
    if mode in ("RGBA", "RGBa", "LA", "PA") or key is not None:
        if key is not None:
            source.info["transparency"] = key
        layer = source.convert("RGBA")
        if layer.getextrema()[3][0] == 255:
            return layer.convert("RGB"), ()
        white = Image.new("RGBA", layer.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, layer).convert("RGB"), ("transparent areas shown on white",)
    if mode == "CMYK":
        # Pillow has already undone Adobe's inverted inks in JPEGs.
        return source.convert("RGB"), ("CMYK inks shown as RGB, without a colour profile",)
    return source.convert("RGB"), ()


def _transparent_key(source: Image.Image, data: bytes) -> int | bytes | tuple[int, ...] | None:
    """The colour that means transparent, on the scale of the decoded samples.

    A PNG names it on the scale of its file (0-15 at 4 bits), while Pillow stretches such grey samples to 8 bits
    and keeps the upper 8 of 16-bit colours.
    """
    key = source.info.get("transparency")
    if key is None or source.format != "PNG" or source.mode not in ("L", "RGB"):
        return key
    depth = data[24]  # of IHDR, which comes first
    parts = key if isinstance(key, tuple) else (key,)
    fitted = tuple(p >> 8 if depth == 16 else min(255, p * 255 // (2**depth - 1)) for p in parts)
    return fitted if isinstance(key, tuple) else fitted[0]


def _scale(values: np.ndarray, mode: str, white_is_zero: bool) -> tuple[np.ndarray, str]:
    """Map a deep grey picture to uint8 by its own range: the 0.5th to the 99.5th percentile become 0 to 255.

    Where these two are equal (a few bright pixels on an even ground), smallest and largest value are used.
    Values that are no numbers become 0. With ``white_is_zero`` (a TIFF's photometric tag) the result is inverted.
    """
    kind = "floating-point" if mode == "F" else "integer" if mode == "I" else "16-bit"
    finite = np.isfinite(values)
    usable = values if finite.all() else values[finite]
    if usable.size == 0:
        raise PictureError("unsupported", "The picture holds no finite value.")
    low, high = (float(v) for v in np.percentile(usable, (0.5, 99.5), method="nearest"))
    if low == high:
        low, high = float(usable.min()), float(usable.max())
    grey = np.empty(values.shape, np.uint8)
    if low == high:
        grey.fill(128)
        note = f"all values are {low:.6g}: shown as mid-grey"
    else:
        for row in range(0, len(values), 256):  # in strips: 64-bit copies of a large picture would not be small
            strip = slice(row, row + 256)
            part = (np.where(finite[strip], values[strip], low).astype(np.float64) - low) / (high - low)
            grey[strip] = np.rint(np.clip(part, 0, 1) * 255)
        if white_is_zero:
            np.subtract(255, grey, out=grey)
        inverted = " and inverted, since 0 means white in it" if white_is_zero else ""
        note = f"{kind} values scaled from {low:.6g}–{high:.6g} to 8 bits{inverted}"
    if usable.size < values.size:
        grey[~finite] = 0
        note += f", {values.size - usable.size:,} values that are no numbers shown as black"
    return grey, note


_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""EXIF orientations and what brings the picture upright."""


def _orientation(source: Image.Image) -> int:
    try:
        return source.getexif().get(_ORIENTATION, 1)
    except Exception:  # a damaged EXIF block says nothing about orientation; the pixels are sound
        return 1


def _turn(image: Image.Image, orientation: int, already: int | None) -> tuple[Image.Image, tuple[str, ...]]:
    """Bring the picture upright; ``already`` is the orientation the decoder itself has dealt with."""
    asked = already if already in _TURNS else orientation
    if asked not in _TURNS:
        return image, ()
    upright = image if already in _TURNS else image.transpose(_TURNS[asked])
    word = "mirrored" if asked in (2, 4) else "rotated and mirrored" if asked in (5, 7) else "rotated"
    return upright, (f"{word} as its EXIF tag asks",)
