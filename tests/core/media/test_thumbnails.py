from __future__ import annotations

import base64
import hashlib
import io
import threading

import numpy as np
import pytest
from PIL import Image

from core.media import thumbnails as module
from core.media.picture import PictureError
from core.media.thumbnails import data_uri, thumbnail


def png(width: int, height: int, mode: str = "RGB", colour=(200, 40, 40)) -> tuple[bytes, str]:
    buffer = io.BytesIO()
    Image.new(mode, (width, height), colour).save(buffer, "PNG")
    return buffer.getvalue(), hashlib.sha256(buffer.getvalue()).hexdigest()


def decoded(webp: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(webp))
    assert (image.format, image.mode) == ("WEBP", "RGB")
    return image


@pytest.mark.parametrize(
    ("size", "longest", "expected"),
    [
        ((1000, 500), 256, (256, 128)),
        ((500, 1000), 256, (128, 256)),
        ((100, 60), 256, (100, 60)),
        ((256, 256), 256, (256, 256)),
        ((10_000, 3), 256, (256, 1)),
        ((300, 200), 64, (64, 43)),
        ((1, 1), 256, (1, 1)),
    ],
)
def test_sizes(size, longest, expected):
    image = decoded(thumbnail(*png(*size), None, longest))
    assert image.size == expected
    assert np.abs(np.asarray(image).astype(int) - (200, 40, 40)).max() <= 8


def test_nothing_is_cropped():
    quarters = np.zeros((400, 800, 3), np.uint8)
    quarters[:200, :400], quarters[:200, 400:], quarters[200:, :400] = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    buffer = io.BytesIO()
    Image.fromarray(quarters).save(buffer, "PNG")
    data = buffer.getvalue()
    small = np.asarray(decoded(thumbnail(data, hashlib.sha256(data).hexdigest(), None))).astype(int)
    expected = quarters[::25, ::25].astype(int)  # inner points of the four quarters
    assert small.shape == (128, 256, 3) and np.abs(small[4::8, 4::8] - expected).mean() < 6


def test_transparency_is_shown_on_white():
    image = decoded(thumbnail(*png(50, 50, "RGBA", (0, 0, 0, 0)), None))
    assert np.asarray(image).min() >= 250


def test_the_cache(tmp_path, monkeypatch):
    data, sha = png(600, 400)
    made = thumbnail(data, sha, tmp_path / "cache")
    path = tmp_path / "cache" / sha[:2] / f"{sha}-256.webp"
    assert path.read_bytes() == made == thumbnail(data, sha, None)
    thumbnail(data, sha, tmp_path / "cache", 64)
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([path.name, f"{sha}-64.webp"])
    monkeypatch.setattr(module, "open_picture", lambda data: pytest.fail("decoded again"))
    assert thumbnail(data, sha, tmp_path / "cache") == made


def test_a_damaged_cache_file_is_made_again(tmp_path):
    data, sha = png(600, 400)
    made = thumbnail(data, sha, tmp_path)
    path = tmp_path / sha[:2] / f"{sha}-256.webp"
    larger = thumbnail(data, sha, None, 600)
    flipped = bytearray(made)
    flipped[12:16] = b"XXXX"
    for damage in (b"", b"junk", made[: len(made) // 2], bytes(flipped), larger, data):
        path.write_bytes(damage)
        assert thumbnail(data, sha, tmp_path) == made and path.read_bytes() == made


def test_a_write_that_fails_leaves_nothing_and_still_gives_the_picture(tmp_path, monkeypatch):
    data, sha = png(300, 300)

    def full(path, target):
        raise OSError("no space left")

    monkeypatch.setattr("pathlib.Path.replace", full)
    made = thumbnail(data, sha, tmp_path)
    assert decoded(made).size == (256, 256)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_many_threads_at_once(tmp_path):
    data, sha = png(900, 900)
    results: list[bytes] = []
    threads = [threading.Thread(target=lambda: results.append(thumbnail(data, sha, tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and len(set(results)) == 1
    assert [p.name for p in (tmp_path / sha[:2]).iterdir()] == [f"{sha}-256.webp"]


def test_bad_arguments(tmp_path):
    data, sha = png(10, 10)
    for odd in ("", "../../x", sha.upper(), sha[:-1], sha + "\n"):
        with pytest.raises(ValueError, match="64 lower-case hex"):
            thumbnail(data, odd, tmp_path)
    with pytest.raises(ValueError, match="at least 1 pixel"):
        thumbnail(data, sha, tmp_path, 0)
    with pytest.raises(PictureError):
        thumbnail(b"no picture", sha, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_data_uri():
    webp = thumbnail(*png(20, 20), None)
    start, body = data_uri(webp).split(",")
    assert start == "data:image/webp;base64" and base64.b64decode(body) == webp
