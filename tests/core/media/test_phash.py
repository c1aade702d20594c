"""Perceptual hashes: against the definition, and what counts as the same picture."""

from __future__ import annotations

import hashlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from core.media import phash
from core.media.phash import NEAR, Hashes, distance, perceptual_hash
from core.media.picture import PictureError


def textured(seed: int, size: int = 200) -> Image.Image:
    """A smooth random picture."""
    coarse = np.random.default_rng(seed).integers(0, 256, (7, 7), np.uint8)
    return Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC).convert("RGB")


def png(image: Image.Image) -> bytes:
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def plain_hash(image: Image.Image) -> int:
    """32 × 32 grey, DCT-II by its sum, the 8 × 8 lowest frequencies against their median, row by row."""
    pixels = np.asarray(image.convert("L").resize((32, 32), Image.Resampling.LANCZOS), np.float64)
    n = np.arange(32)
    basis = np.cos(np.pi * n[:, None] * (2 * n + 1) / 64)
    low = (basis @ pixels @ basis.T)[:8, :8]
    bits = "".join("1" if value > np.median(low) else "0" for value in low.ravel())
    return int(bits, 2)


@pytest.mark.parametrize("seed", range(5))
def test_the_hash_is_that_of_its_definition(seed):
    assert perceptual_hash(textured(seed)) == plain_hash(textured(seed))


@pytest.mark.parametrize(("a", "b", "bits"), [(0, 0, 0), (0b1011, 0b0010, 2), (0, 2**64 - 1, 64), (2**63, 1, 2)])
def test_distance_counts_bits(a, b, bits):
    assert distance(a, b) == distance(b, a) == bits


def test_the_same_picture_otherwise_is_near_and_others_are_not():
    original = textured(1)
    first = perceptual_hash(original)
    small = original.resize((90, 90), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    original.save(buffer, "JPEG", quality=40)
    bright = original.point(lambda v: min(255, v + 12))
    for other in (small, Image.open(buffer), bright, original.convert("L")):
        assert distance(first, perceptual_hash(other)) <= NEAR
    assert all(distance(first, perceptual_hash(textured(seed))) > NEAR for seed in range(2, 12))


@pytest.mark.parametrize("shade", [0, 17, 255])
def test_a_blank_picture_has_no_hash(shade):
    noise = np.random.default_rng(0).integers(-3, 4, (64, 64)) + shade
    assert perceptual_hash(Image.fromarray(noise.clip(0, 255).astype(np.uint8))) is None
    assert perceptual_hash(Image.new("RGB", (1, 1), (shade, shade, shade))) is None


def test_hashes_are_remembered_by_content_and_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(phash, "KEPT", 2)
    hashed = []
    monkeypatch.setattr(phash, "perceptual_hash", lambda image: hashed.append(1) or perceptual_hash(image))
    hashes, files = Hashes(tmp_path), [png(textured(seed)) for seed in range(3)]
    values = [hashes.of(data) for data in files]
    assert [hashes.of(data) for data in files[1:]] == values[1:] and len(hashed) == 3
    assert hashes.of(files[0]) == values[0] and len(hashed) == 4  # the oldest was forgotten
    assert (tmp_path / hashlib.sha256(files[0]).hexdigest()[:2]).is_dir()


def test_a_blank_file_is_remembered_too(monkeypatch):
    hashes, data = Hashes(None), png(Image.new("RGB", (9, 9)))
    assert hashes.of(data) is None
    monkeypatch.setattr(phash, "thumbnail", None)
    assert hashes.of(data) is None


def test_hashes_of_thumbnails_are_those_of_the_picture_but_for_a_few_bits():
    for seed in range(4):
        image = textured(seed, 700)
        assert distance(Hashes(None).of(png(image)), perceptual_hash(image)) <= 2


def test_what_is_no_picture_is_refused():
    with pytest.raises(PictureError):
        Hashes(None).of(b"not a picture")
