from __future__ import annotations

import io
import pickle
import struct
import threading
import time
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from core.media import picture as module
from core.media.picture import DEFAULT_LIMITS, KINDS, Limits, PictureError, open_picture

RNG = np.random.default_rng(8)
COLOURS = RNG.integers(0, 256, (13, 17, 3), dtype=np.uint8)
GREYS = RNG.integers(0, 256, (13, 17), dtype=np.uint8)


def encoded(image: Image.Image, form: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def refusal(data: bytes, limits: Limits = DEFAULT_LIMITS) -> PictureError:
    with pytest.raises(PictureError) as caught:
        open_picture(data, limits)
    error = caught.value
    assert error.kind in KINDS and str(error) == error.detail
    assert error.detail[0].isupper() and error.detail.endswith(".") and "\n" not in error.detail
    return error


def claims(width: int, height: int, colour: int) -> bytes:
    """A PNG whose header claims a size, with next to nothing behind it."""
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0")), (b"IEND", b"")]
    body = (struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "PPM", "WEBP"])
def test_truncated(form):
    noise = Image.fromarray(RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8))
    data = encoded(noise, form)
    for keep in (0.95, 0.5):
        assert refusal(data[: int(len(data) * keep)]).kind == "truncated"


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "TIFF"])
def test_a_header_alone_is_truncated(form):
    data = encoded(Image.fromarray(COLOURS), form)
    assert refusal(data[:14]).kind == "truncated"


def test_no_picture_and_other_formats():
    assert refusal(b"").kind == "not_a_picture"
    assert refusal(b"A plain sentence, quite long enough to be looked at.").kind == "not_a_picture"
    others = {
        "DICOM": b"\0" * 128 + b"DICM" + b"\0" * 100,
        "NIfTI": b"\x5c\x01\0\0" + b"\0" * 340 + b"n+1\0" + b"\0" * 100,
        "PDF": b"%PDF-1.7 ...",
        "SVG": b"<?xml version='1.0'?><svg/>",
        "HEIC": b"\0\0\0\x18ftypheic" + b"\0" * 40,
        "JPEG 2000": b"\0\0\0\x0cjP  \r\n\x87\n" + b"\0" * 40,
        "gzip": b"\x1f\x8b\x08" + b"\0" * 40,
    }
    others_in_disguise = {"DICOM": b"II*\0\x08\0\0\0" + b"\0" * 120 + b"DICM" + b"\0" * 100}  # with a TIFF's preamble
    for name, data in [*others.items(), *others_in_disguise.items()]:
        error = refusal(data)
        assert error.kind == "unsupported" and name in error.detail
    for form in ("ICO", "PCX", "TGA", "SGI"):  # Pillow could, but they are not on the list
        assert refusal(encoded(Image.fromarray(COLOURS), form)).kind in ("not_a_picture", "unsupported")


def test_too_large_is_refused_unread():
    error = refusal(b"\0" * 101, Limits(max_bytes=100))
    assert error.kind == "too_large" and "101" in error.detail


def test_bombs_are_refused_by_their_header():
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x08\x02\x4c\x01\0;"
    bombs = [
        claims(60_000, 60_000, 2),
        claims(8_000, 8_000, 0),
        b"P6 60000 60000 255\n" + b"\0" * 50,
        b"GIF89a" + struct.pack("<HHBBB", 60_000, 60_000, 0, 0, 0) + frame,
        b"BM" + struct.pack("<IIIIiiHHIIiiII", 54, 0, 54, 40, 60_000, 60_000, 1, 24, 0, 0, 0, 0, 0, 0),
    ]
    started = time.monotonic()
    for data in bombs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert refusal(data).kind == "too_many_pixels"
    assert time.monotonic() - started < 5
    fits = encoded(Image.new("L", (20, 10)), "PNG")
    assert open_picture(fits, Limits(max_pixels=200)).width == 20
    assert refusal(fits, Limits(max_pixels=199)).kind == "too_many_pixels"


def test_the_time_limit_answers_in_time(monkeypatch):
    told = threading.Event()

    def slow(data, limits, given_up):
        if given_up.wait(20):
            told.set()
        raise PictureError("too_slow", "Decoding was given up.")

    monkeypatch.setattr(module, "_decode", slow)
    started = time.monotonic()
    assert refusal(b"anything", Limits(seconds=0.1)).kind == "too_slow"
    assert time.monotonic() - started < 5 and told.wait(5)


def test_a_decoder_that_was_given_up_stops_at_its_next_step(monkeypatch):
    entered, release, finished = threading.Event(), threading.Event(), []

    def stuck(source):
        entered.set()
        release.wait(20)
        return ()

    monkeypatch.setattr(module, "_frame_notes", stuck)
    monkeypatch.setattr(module, "_to_rgb", lambda *a, **k: finished.append(1))
    assert refusal(encoded(Image.fromarray(COLOURS), "PNG"), Limits(seconds=0.2)).kind == "too_slow"
    assert entered.is_set()
    release.set()
    for thread in threading.enumerate():
        if thread.name == "picture-decoder":
            thread.join(5)
    assert finished == []


def test_many_threads_at_once():
    data = [encoded(Image.fromarray(np.full((40, 40, 3), n, np.uint8)), "PNG") for n in range(16)]
    seen: dict[int, bool] = {}

    def work(n):
        seen[n] = all((np.asarray(open_picture(data[n]).image) == n).all() for _ in range(10))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == dict.fromkeys(range(16), True)


def test_errors_travel_between_processes_and_kinds_are_checked():
    error = pickle.loads(pickle.dumps(PictureError("missing", "It is not there.")))  # noqa: S301
    assert (error.kind, str(error)) == ("missing", "It is not there.")
    with pytest.raises(ValueError, match="not a kind"):
        PictureError("odd", "x")


BASES = [
    encoded(Image.fromarray(COLOURS), "PNG"),
    encoded(Image.fromarray(COLOURS), "JPEG"),
    encoded(Image.fromarray(COLOURS), "JPEG", progressive=True, exif=b"Exif\0\0II*\0\x08\0\0\0\0\0"),
    encoded(Image.fromarray(COLOURS), "WEBP"),
    encoded(Image.fromarray(COLOURS), "BMP"),
    encoded(Image.fromarray(COLOURS), "PPM"),
    encoded(Image.fromarray(COLOURS), "GIF", save_all=True, append_images=[Image.new("RGB", (17, 13))]),
    encoded(Image.fromarray(COLOURS), "TIFF", save_all=True, append_images=[Image.new("RGB", (17, 13))]),
    encoded(Image.fromarray(COLOURS), "TIFF", compression="tiff_lzw"),
    encoded(Image.fromarray(GREYS.astype(np.uint16)), "PNG"),
    encoded(Image.fromarray(GREYS.astype(np.float32)), "TIFF"),
    encoded(Image.fromarray(GREYS).convert("P"), "PNG", transparency=bytes(range(200))),
    encoded(Image.fromarray(COLOURS), "PNG", save_all=True, append_images=[Image.new("RGB", (17, 13))]),
]


@st.composite
def damaged(draw) -> bytes:
    data = bytearray(draw(st.sampled_from(BASES)))
    for at, value in draw(st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=8)):
        data[at] = value
    if draw(st.booleans()):
        data = data[: draw(st.integers(0, len(data)))]
    if draw(st.booleans()):
        at = draw(st.integers(0, len(data)))
        data[at:at] = draw(st.binary(max_size=20))
    return bytes(data)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=400, deadline=None)
@given(st.one_of(st.binary(max_size=200), damaged(), damaged()))
def test_any_bytes_give_a_picture_or_a_picture_error(data):
    try:
        picture = open_picture(data, Limits(max_pixels=1_000_000))
    except PictureError as error:
        assert error.kind in KINDS and error.detail
    else:
        assert picture.image.mode == "RGB" and picture.image.size == (picture.width, picture.height)
