from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from core.models.towers import square


def gradient(width: int, height: int) -> Image.Image:
    columns = np.linspace(40, 255, width)[None, :].repeat(height, 0)
    return Image.fromarray(columns.astype(np.uint8)).convert("RGB")


@pytest.mark.parametrize("fit", ["stretch", "crop", "pad"])
@pytest.mark.parametrize("size", [(300, 200), (200, 300), (224, 224), (1, 500), (37, 41)])
def test_every_fit_gives_a_square(fit, size):
    assert square(gradient(*size), fit).shape == (224, 224, 3)


def test_stretch_keeps_both_ends():
    row = square(gradient(400, 100), "stretch")[112, :, 0]
    assert row[0] <= 42
    assert row[-1] >= 253


def test_pad_keeps_the_whole_picture_between_equal_black_bars():
    pixels = square(gradient(400, 100), "pad")[:, :, 0]
    filled = np.flatnonzero(pixels.max(axis=1))
    assert (filled[0], filled[-1]) == (84, 139)
    assert pixels[112, 0] <= 42
    assert pixels[112, -1] >= 253


def test_crop_takes_the_centre():
    pixels = square(gradient(400, 200), "crop")[:, :, 0]
    # shorter side to 256: the picture is 512 wide, the middle 224 columns are its 28 … 72 %
    full = np.linspace(40, 255, 512)
    np.testing.assert_allclose(pixels[112], full[144:368], atol=2)


def test_a_square_picture_of_the_right_size_is_left_alone():
    picture = gradient(224, 224)
    for fit in ("stretch", "pad"):
        np.testing.assert_array_equal(square(picture, fit), np.asarray(picture))


def test_refusals():
    with pytest.raises(ValueError, match="mode L"):
        square(Image.new("L", (8, 8)), "pad")
    with pytest.raises(ValueError, match=r"'squash'.*stretch, crop, pad"):
        square(Image.new("RGB", (8, 8)), "squash")
