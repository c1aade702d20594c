from __future__ import annotations

import base64
import io
import json
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from core.media.frames import Frame, frame_of, open_frame, payload
from core.media.picture import Limits, PictureError, open_picture

RNG = np.random.default_rng(3)
DEEP = RNG.integers(120, 4051, (30, 41)).astype(np.uint16)
COLOURS = RNG.integers(0, 256, (13, 17, 3), dtype=np.uint8)


def encoded(image: Image.Image, form: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def values(frame: Frame) -> np.ndarray:
    """The pixels as numpy reads them from the bytes; sizes are checked by the reshape."""
    flat = np.frombuffer(frame.pixels, {8: np.uint8, 16: "<u2"}[frame.bits])
    shape = (frame.height, frame.width, frame.channels)
    return flat.reshape(shape if frame.channels == 3 else shape[:2])


def white_is_zero(tiff: bytes) -> bytes:
    """The same little-endian TIFF with its photometric tag (262) set from 1 to 0."""
    data = bytearray(tiff)
    start = struct.unpack("<I", data[4:8])[0]
    entries = range(start + 2, start + 2 + 12 * struct.unpack("<H", data[start : start + 2])[0], 12)
    (tag,) = (at for at in entries if data[at : at + 2] == struct.pack("<H", 262))
    assert data[tag + 8] == 1
    data[tag + 8] = 0
    return bytes(data)


@pytest.mark.parametrize("form", ["PNG", "TIFF", "big-endian TIFF", "PGM"])
def test_all_16_bits_are_kept(form):
    ramp = np.arange(65536).reshape(256, 256).astype(np.uint16)
    data = {
        "PNG": lambda: encoded(Image.fromarray(ramp), "PNG"),
        "TIFF": lambda: encoded(Image.fromarray(ramp), "TIFF"),
        "big-endian TIFF": lambda: encoded(Image.frombytes("I;16B", (256, 256), ramp.astype(">u2").tobytes()), "TIFF"),
        "PGM": lambda: b"P5 256 256 65535\n" + ramp.astype(">u2").tobytes(),
    }[form]()
    frame = open_frame(data)
    assert (frame.width, frame.height, frame.channels, frame.bits, frame.notes) == (256, 256, 1, 16, ())
    assert (values(frame) == ramp).all()
    assert frame.pixels[2 * 300 : 2 * 300 + 2] == struct.pack("<H", 300)


def test_the_default_window_spans_the_1st_to_the_99th_percentile():
    ordered = sorted(int(v) for v in DEEP.ravel())

    def percentile(p: float) -> float:
        at = p / 100 * (len(ordered) - 1)
        below = int(at)
        return ordered[below] + (at - below) * (ordered[below + 1] - ordered[below])

    centre, width = open_frame(encoded(Image.fromarray(DEEP), "PNG")).window
    assert centre == pytest.approx((percentile(1) + percentile(99)) / 2)
    assert width == pytest.approx(percentile(99) - percentile(1))
    even = open_frame(encoded(Image.fromarray(np.full((4, 4), 700, np.uint16)), "PNG"))
    assert even.window == (700, 1)


def test_white_is_zero():
    frame = open_frame(white_is_zero(encoded(Image.fromarray(DEEP), "TIFF")))
    assert (values(frame) == 65535 - DEEP.astype(int)).all()
    assert frame.notes == ("values inverted, since 0 means white in it",)
    grey = DEEP.astype(np.uint8)
    frame = open_frame(white_is_zero(encoded(Image.fromarray(grey), "TIFF")))
    assert (values(frame) == 255 - grey.astype(int)).all()


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
@pytest.mark.parametrize(
    ("orientation", "upright"),
    [(2, np.fliplr), (3, lambda s: np.rot90(s, 2)), (5, np.transpose), (6, lambda s: np.rot90(s, -1)), (8, np.rot90)],
)
def test_deep_pictures_stand_upright(orientation, upright, form):
    exif = Image.Exif()
    exif[0x0112] = orientation
    frame = open_frame(encoded(Image.fromarray(DEEP), form, exif=exif))
    assert frame.bits == 16 and (values(frame) == upright(DEEP)).all()
    assert len(frame.notes) == 1 and "EXIF" in frame.notes[0]


@pytest.mark.parametrize("form", ["PNG", "WEBP", "BMP", "TIFF"])
def test_colours_are_the_decoded_picture(form):
    data = encoded(Image.fromarray(COLOURS), form, **({"lossless": True} if form == "WEBP" else {}))
    frame = open_frame(data)
    assert (frame.channels, frame.bits, frame.window) == (3, 8, None)
    assert (values(frame) == COLOURS).all()


def test_true_greys_have_one_channel():
    grey = COLOURS[..., 0]
    for image in (Image.fromarray(grey), Image.fromarray(grey).convert("RGB")):
        frame = open_frame(encoded(image, "PNG"))
        assert (frame.channels, frame.bits) == (1, 8) and (values(frame) == grey).all()
    tinted = np.repeat(grey[..., None], 3, axis=2)
    tinted[5, 5, 2] ^= 1
    assert open_frame(encoded(Image.fromarray(tinted), "PNG")).channels == 3


def test_what_16_bits_cannot_hold_is_shown_as_everywhere_else():
    for pixels in (DEEP.astype(np.int32) - 1000, DEEP.astype(np.int32) * 100, DEEP.astype(np.float32) / 7):
        data = encoded(Image.fromarray(pixels), "TIFF")
        frame, picture = open_frame(data), open_picture(data)
        assert (frame.channels, frame.bits, frame.notes) == (1, 8, picture.notes)
        assert (values(frame) == np.asarray(picture.image)[..., 0]).all()
    keyed = encoded(Image.fromarray(DEEP), "PNG", transparency=int(DEEP[0, 0]))
    assert open_frame(keyed).notes == open_picture(keyed).notes and open_frame(keyed).bits == 8


def test_reduction_is_the_mean_of_areas_and_keeps_the_depth():
    deep = RNG.integers(0, 65536, (60, 90)).astype(np.uint16)
    means = [[deep[3 * r : 3 * r + 3, 3 * c : 3 * c + 3].astype(float).mean() for c in range(30)] for r in range(20)]
    frame = open_frame(encoded(Image.fromarray(deep), "PNG"), longest=30)
    assert (frame.width, frame.height, frame.bits) == (30, 20, 16)
    assert frame.notes == ("shown at 30 of 90 pixels",)
    assert np.abs(values(frame) - np.array(means)).max() <= 0.51
    colours = RNG.integers(0, 256, (90, 60, 3), dtype=np.uint8)
    frame = frame_of(Image.fromarray(colours), longest=30)
    means = colours.reshape(30, 3, 20, 3, 3).astype(float).mean(axis=(1, 3))
    assert (frame.width, frame.height) == (20, 30) and np.abs(values(frame) - means).max() <= 1
    wide = open_frame(encoded(Image.new("L", (2500, 3)), "PNG"))
    assert (wide.width, wide.height, wide.notes) == (1024, 1, ("shown at 1,024 of 2,500 pixels",))
    assert open_frame(encoded(Image.new("L", (1024, 3)), "PNG")).notes == ()


def test_neighbouring_values_survive_a_reduction():
    halves = np.full((64, 64), 1000, np.uint16)
    halves[:, 32:] = 1001
    assert (values(open_frame(encoded(Image.fromarray(halves), "PNG"), longest=16))[0] == [1000] * 8 + [1001] * 8).all()


def test_frames_of_open_pictures():
    frame = frame_of(Image.fromarray(COLOURS))
    assert (values(frame) == COLOURS).all() and (frame.width, frame.height) == (17, 13)
    assert frame_of(Image.new("RGB", (4, 3), (9, 9, 9))) == Frame(4, 3, 1, 8, bytes([9] * 12))


def test_refusals():
    whole = encoded(Image.fromarray(DEEP), "PNG")
    for data, limits, kind in (
        (whole[:-400], Limits(), "truncated"),
        (b"A plain sentence.", Limits(), "not_a_picture"),
        (whole, Limits(max_bytes=10), "too_large"),
        (whole, Limits(max_pixels=30 * 41 - 1), "too_many_pixels"),
    ):
        with pytest.raises(PictureError) as caught:
            open_frame(data, limits)
        assert caught.value.kind == kind


@pytest.mark.parametrize("image", [Image.fromarray(DEEP), Image.fromarray(COLOURS), Image.new("L", (5, 4), 7)])
def test_a_payload_gives_the_pixels_back(image):
    frame = open_frame(encoded(image, "PNG"))
    sent = json.loads(json.dumps(payload(frame)))
    pixels = zlib.decompress(base64.b64decode(sent["data"], validate=True))
    back = np.frombuffer(pixels, "<u2" if sent["bits"] == 16 else np.uint8)
    assert (back.reshape(np.asarray(image).shape) == np.asarray(image)).all()
    window = list(frame.window) if frame.window else None
    rest = {k: v for k, v in sent.items() if k != "data"}
    assert rest == {
        "width": frame.width, "height": frame.height, "channels": frame.channels, "bits": frame.bits,
        "window": window, "spacing": None, "notes": [],
    }  # fmt: skip
