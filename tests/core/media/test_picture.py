from __future__ import annotations

import io
import json
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core.media.picture import DEFAULT_LIMITS, KINDS, Limits, Picture, PictureError, open_picture

REAL = Path(__file__).resolve().parents[4] / "shared" / "data"
RNG = np.random.default_rng(7)
COLOURS = RNG.integers(0, 256, (13, 17, 3), dtype=np.uint8)
GREYS = RNG.integers(0, 256, (13, 17), dtype=np.uint8)


def encoded(image: Image.Image, form: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def opened(data: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[np.ndarray, Picture]:
    picture = open_picture(data, limits)
    pixels = np.asarray(picture.image)
    assert type(picture.image) is Image.Image and picture.image.mode == "RGB"
    assert (picture.height, picture.width) == pixels.shape[:2]
    assert picture.image.info == {} and len(picture.image.getexif()) == 0
    return pixels.astype(int), picture


def refusal(data: bytes, limits: Limits = DEFAULT_LIMITS) -> PictureError:
    with pytest.raises(PictureError) as caught:
        open_picture(data, limits)
    error = caught.value
    assert error.kind in KINDS and str(error) == error.detail
    assert error.detail[0].isupper() and error.detail.endswith(".") and "\n" not in error.detail
    return error


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def raw_png(width: int, height: int, depth: int, colour: int, rows: list[bytes], *between: bytes) -> bytes:
    """A PNG written by hand, for what Pillow does not write."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(between) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def scaled(values: np.ndarray) -> np.ndarray:
    """The plain oracle: observed values nearest to the 0.5th and 99.5th percentile become 0 and 255."""
    flat = sorted(float(v) for v in values.ravel() if np.isfinite(v))
    low = flat[round(0.005 * (len(flat) - 1))]
    high = flat[round(0.995 * (len(flat) - 1))]
    out = [[round(255 * min(1.0, max(0.0, (float(v) - low) / (high - low)))) for v in row] for row in values]
    return np.array(out)


def on_white(colour: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    share = alpha.astype(float)[..., None] / 255
    return colour * share + 255 * (1 - share)


def grey3(values: np.ndarray) -> np.ndarray:
    return np.repeat(np.asarray(values, int)[..., None], 3, axis=2)


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM", "WEBP"])
def test_lossless_rgb_is_kept(form):
    options = {"lossless": True} if form == "WEBP" else {}
    pixels, picture = opened(encoded(Image.fromarray(COLOURS), form, **options))
    assert (pixels == COLOURS).all() and picture.notes == ()


def test_jpeg_and_gif():
    smooth = np.dstack([np.tile(np.arange(64) * 4, (64, 1))] * 3).astype(np.uint8)
    pixels, _ = opened(encoded(Image.fromarray(smooth), "JPEG", quality=95))
    assert np.abs(pixels - smooth).max() <= 4
    few = COLOURS // 128 * 255
    palette = Image.fromarray(few).quantize(8)
    pixels, _ = opened(encoded(palette, "GIF"))
    assert (pixels == np.asarray(palette.convert("RGB"))).all()


@pytest.mark.parametrize("form", ["PNG", "TIFF", "PPM", "BMP", "JPEG"])
def test_grey_and_one_bit(form):
    flat = np.full((9, 11), 77, np.uint8)
    assert np.abs(opened(encoded(Image.fromarray(flat), form))[0] - 77).max() <= 1
    if form != "JPEG":
        assert (opened(encoded(Image.fromarray(GREYS), form))[0] == grey3(GREYS)).all()
        bits = GREYS > 127
        assert (opened(encoded(Image.fromarray(bits), form))[0] == grey3(bits * 255)).all()


def test_palette():
    image = Image.fromarray(GREYS % 4).convert("P")
    image.putpalette([10, 20, 30, 200, 0, 0, 0, 200, 0, 0, 0, 200])
    table = np.array([[10, 20, 30], [200, 0, 0], [0, 200, 0], [0, 0, 200]])
    assert (opened(encoded(image, "PNG"))[0] == table[GREYS % 4]).all()
    pixels, picture = opened(encoded(image, "PNG", transparency=bytes([255, 0, 128, 255])))
    assert np.abs(pixels - on_white(table[GREYS % 4], np.array([255, 0, 128, 255])[GREYS % 4])).max() <= 1
    assert picture.notes == ("transparent areas shown on white",)
    pixels, _ = opened(encoded(image, "GIF", transparency=1))
    assert (pixels == np.where((GREYS % 4 == 1)[..., None], 255, table[GREYS % 4])).all()


@pytest.mark.parametrize("form", ["PNG", "WEBP", "TIFF"])
def test_alpha_is_shown_on_white(form):
    alpha = RNG.integers(0, 256, GREYS.shape, dtype=np.uint8)
    options = {"lossless": True, "exact": True} if form == "WEBP" else {}
    pixels, picture = opened(encoded(Image.fromarray(np.dstack([COLOURS, alpha])), form, **options))
    assert np.abs(pixels - on_white(COLOURS, alpha)).max() <= 1
    assert picture.notes == ("transparent areas shown on white",)
    if form != "WEBP":
        pixels, _ = opened(encoded(Image.fromarray(np.dstack([GREYS, alpha])), form))
        assert np.abs(pixels - on_white(grey3(GREYS), alpha)).max() <= 1


def test_full_alpha_needs_no_note():
    full = np.dstack([COLOURS, np.full(GREYS.shape, 255, np.uint8)])
    pixels, picture = opened(encoded(Image.fromarray(full), "PNG"))
    assert (pixels == COLOURS).all() and picture.notes == ()


def test_palette_with_alpha():
    alpha = RNG.integers(0, 256, GREYS.shape, dtype=np.uint8)
    image = Image.merge("LA", (Image.fromarray(GREYS % 2), Image.new("L", (17, 13)))).convert("PA")
    image.putpalette([10, 20, 30, 200, 0, 0])
    image.putalpha(Image.fromarray(alpha))
    data = encoded(image, "TIFF")
    assert Image.open(io.BytesIO(data)).mode == "PA"
    table = np.array([[10, 20, 30], [200, 0, 0]])
    assert np.abs(opened(data)[0] - on_white(table[GREYS % 2], alpha)).max() <= 1


def test_transparent_keys():
    keyed = COLOURS.copy()
    keyed[2:5, 3:9] = (1, 2, 3)
    pixels, picture = opened(encoded(Image.fromarray(keyed), "PNG", transparency=(1, 2, 3)))
    assert (pixels == np.where((keyed == (1, 2, 3)).all(axis=2)[..., None], 255, keyed)).all()
    assert "transparent areas shown on white" in picture.notes
    keyed_grey = int(GREYS[3, 3]) == GREYS
    pixels, _ = opened(encoded(Image.fromarray(GREYS), "PNG", transparency=int(GREYS[3, 3])))
    assert (pixels == grey3(np.where(keyed_grey, 255, GREYS))).all()


def test_transparent_key_below_and_above_8_bits():
    four = raw_png(4, 1, 4, 0, [bytes([0x0A, 0x5F])], chunk(b"tRNS", struct.pack(">H", 5)))
    assert opened(four)[0][0, :, 0].tolist() == [0, 170, 255, 255]  # 0, 10, the key 5, 15
    one = raw_png(8, 1, 1, 0, [bytes([0b10100000])], chunk(b"tRNS", struct.pack(">H", 0)))
    assert opened(one)[0].min() == 255  # black is the key
    deep = np.arange(0, 6000, 100, dtype=">u2").reshape(6, 10)
    data = raw_png(10, 6, 16, 0, [row.tobytes() for row in deep], chunk(b"tRNS", struct.pack(">H", 300)))
    pixels, picture = opened(data)
    assert (pixels == grey3(np.where(deep == 300, 255, scaled(deep)))).all()
    assert picture.notes[1:] == ("transparent areas shown on white",)


def test_16_bit_grey():
    values = RNG.integers(120, 4051, (40, 50)).astype(np.uint16)
    expected = grey3(scaled(values))
    for data in (
        encoded(Image.fromarray(values), "PNG"),
        encoded(Image.fromarray(values), "TIFF"),
        encoded(Image.frombytes("I;16B", (50, 40), values.astype(">u2").tobytes()), "TIFF"),
    ):
        pixels, picture = opened(data)
        assert (pixels == expected).all()
        low, high = sorted(values.ravel())[10], sorted(values.ravel())[-11]
        assert picture.notes == (f"16-bit values scaled from {low}–{high} to 8 bits",)
    big_endian = encoded(Image.frombytes("I;16B", (50, 40), values.astype(">u2").tobytes()), "TIFF")
    assert Image.open(io.BytesIO(big_endian)).mode == "I;16B"


def test_16_bit_pgm():
    values = RNG.integers(0, 65536, (20, 30)).astype(">u2")
    pixels, picture = opened(b"P5 30 20 65535\n" + values.tobytes())
    assert (pixels == grey3(scaled(values))).all() and picture.notes[0].startswith("integer values scaled from ")


def test_32_bit_and_float():
    for dtype, word in ((np.int32, "integer"), (np.float32, "floating-point")):
        values = (RNG.standard_normal((30, 20)) * 1e5).astype(dtype)
        pixels, picture = opened(encoded(Image.fromarray(values), "TIFF"))
        assert (pixels == grey3(scaled(values))).all() and picture.notes[0].startswith(f"{word} values scaled from ")
    far = np.array([[-(2**31) + 1, 0, 2**31 - 1]], np.int32)
    assert opened(encoded(Image.fromarray(far), "TIFF"))[0][0, :, 0].tolist() == [0, 128, 255]
    wide = np.array([[-3e38, 0, 3e38]], np.float32)
    assert opened(encoded(Image.fromarray(wide), "TIFF"))[0][0, :, 0].tolist() == [0, 128, 255]


def test_values_that_are_no_numbers():
    values = np.linspace(0, 1, 600, dtype=np.float32).reshape(30, 20)
    values[0, :3] = np.nan, np.inf, -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pixels, picture = opened(encoded(Image.fromarray(values), "TIFF"))
    expected = scaled(np.where(np.isfinite(values), values, values[5, 5]))
    assert (pixels[1:] == grey3(expected)[1:]).mean() > 0.99 and (pixels[0, :3] == 0).all()
    assert "3 values that are no numbers shown as black" in picture.notes[0]
    assert refusal(encoded(Image.fromarray(np.full((2, 2), np.nan, np.float32)), "TIFF")).kind == "unsupported"


def test_constant_and_almost_constant():
    pixels, picture = opened(encoded(Image.fromarray(np.full((5, 5), 512, np.uint16)), "PNG"))
    assert (pixels == 128).all() and picture.notes == ("all values are 512: shown as mid-grey",)
    spot = np.full((50, 50), 100, np.uint16)
    spot[7, 9] = 3000
    pixels, _ = opened(encoded(Image.fromarray(spot), "PNG"))
    assert pixels[7, 9, 0] == 255 and pixels.sum() == 3 * 255


@pytest.mark.parametrize("bits", [8, 16])
def test_tiff_in_which_white_is_zero(bits):
    values = np.arange(600).reshape(20, 30).astype(np.uint16) * 100 if bits == 16 else GREYS
    data = bytearray(encoded(Image.fromarray(values), "TIFF"))
    start = struct.unpack("<I", data[4:8])[0]
    entries = range(start + 2, start + 2 + 12 * struct.unpack("<H", data[start : start + 2])[0], 12)
    (photometric,) = (at for at in entries if data[at : at + 2] == struct.pack("<H", 262))
    assert data[photometric + 8] == 1
    data[photometric + 8] = 0
    expected = 255 - scaled(values) if bits == 16 else 255 - GREYS.astype(int)
    assert (opened(bytes(data))[0] == grey3(expected)).all()


def test_cmyk():
    # Red is magenta and yellow ink; paper is no ink; black is the fourth ink.
    inks = np.zeros((8, 24, 4), np.uint8)
    inks[:, :8] = (0, 255, 255, 0)
    inks[:, 16:] = (0, 0, 0, 255)
    expected = np.zeros((8, 24, 3), int)
    expected[:, :8] = (255, 0, 0)
    expected[:, 8:16] = 255
    image = Image.frombytes("CMYK", (24, 8), inks.tobytes())
    adobe = encoded(image, "JPEG", quality=100, subsampling=0)
    assert b"Adobe" in adobe and Image.open(io.BytesIO(adobe)).mode == "CMYK"
    for data in (adobe, encoded(image, "TIFF")):
        pixels, picture = opened(data)
        assert np.abs(pixels - expected).max() <= 3
        assert picture.notes == ("CMYK inks shown as RGB, without a colour profile",)


UPRIGHT = {
    1: lambda s: s,
    2: np.fliplr,
    3: lambda s: np.rot90(s, 2),
    4: np.flipud,
    5: lambda s: s.transpose(1, 0, 2),
    6: lambda s: np.rot90(s, -1),
    7: lambda s: np.rot90(s, 2).transpose(1, 0, 2),
    8: np.rot90,
}


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010F] = "Maker"
    image = Image.fromarray(COLOURS)
    for data in (
        encoded(image, "PNG", exif=exif),
        encoded(image, "WEBP", exif=exif, lossless=True),
        encoded(image, "TIFF", exif=exif),
        encoded(image, "TIFF", exif=exif, compression="tiff_lzw"),
    ):
        pixels, picture = opened(data)
        assert (pixels == UPRIGHT[orientation](COLOURS)).all()
        assert any("EXIF" in note for note in picture.notes) == (orientation != 1)
    plain, _ = opened(encoded(image, "JPEG"))
    turned, picture = opened(encoded(image, "JPEG", exif=exif))
    assert (turned == UPRIGHT[orientation](plain)).all()
    if orientation == 6:
        assert picture.notes == ("rotated as its EXIF tag asks",)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_orientation_of_deep_grey_and_damaged_exif():
    values = RNG.integers(0, 4000, (20, 30)).astype(np.uint16)
    exif = Image.Exif()
    exif[0x0112] = 6
    pixels, picture = opened(encoded(Image.fromarray(values), "PNG", exif=exif))
    assert (pixels == np.rot90(grey3(scaled(values)), -1)).all() and len(picture.notes) == 2
    odd = encoded(Image.fromarray(COLOURS), "PNG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff broken")
    assert (opened(odd)[0] == COLOURS).all()
    exif[0x0112] = 99
    assert (opened(encoded(Image.fromarray(COLOURS), "PNG", exif=exif))[0] == COLOURS).all()


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "TIFF"])
def test_first_of_several_frames(form):
    frames = [Image.new("RGB", (12, 10), colour) for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255))]
    options = {"lossless": True} if form == "WEBP" else {}
    pixels, picture = opened(encoded(frames[0], form, save_all=True, append_images=frames[1:], **options))
    assert (pixels == (255, 0, 0)).all()
    assert picture.notes == (f"first of 3 {'pages' if form == 'TIFF' else 'frames'}",)


def test_first_frame_of_a_multi_picture_jpeg():
    frames = [Image.new("RGB", (16, 16), colour) for colour in ((255, 0, 0), (0, 255, 0))]
    pixels, picture = opened(encoded(frames[0], "MPO", save_all=True, append_images=frames[1:]))
    assert np.abs(pixels - (255, 0, 0)).max() <= 3 and picture.notes == ("first of 2 frames",)


def test_metadata_does_not_pass():
    exif = Image.Exif()
    exif[0x010E] = "Name of a patient"
    data = encoded(Image.fromarray(COLOURS), "JPEG", exif=exif, comment=b"Name of a patient", dpi=(72, 72))
    assert data.count(b"Name of a patient") == 2
    _, picture = opened(data)
    for form in ("PNG", "JPEG", "TIFF", "WEBP"):
        assert b"patient" not in encoded(picture.image, form)


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["biomedparse_demo", "ecg_images"])
def test_real_pictures_open(name):
    if not (REAL / name).is_dir():
        pytest.skip(f"../shared/data/{name} is not here")
    lines = (REAL / name / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    files = sorted(p for p in (REAL / name / "images").rglob("*") if p.is_file())
    assert len(files) >= len({json.loads(line)["image"] for line in lines if line.strip()}) > 0
    for path in files:
        picture = open_picture(path.read_bytes())
        assert picture.width > 0 and np.asarray(picture.image).std() > 0, path
