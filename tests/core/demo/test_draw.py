"""The drawing primitives against plain formulas, and the promise that sides are drawn as radiologists see them."""

from __future__ import annotations

import numpy as np
import pytest

from core.demo import draw
from core.demo.scenes import SCENES, picture


@pytest.mark.parametrize("sigma", [0.6, 1.4, 4.0])
def test_blur_is_a_gaussian_average(sigma: float) -> None:
    image = draw.ellipse(0.1, -0.2, 0.4, 0.25) + 0.2 * draw.X
    rows, columns = np.mgrid[0 : draw.WORK, 0 : draw.WORK]
    blurred = draw.blur(image, sigma)
    for r, c in ((256, 256), (150, 300), (200, 380)):  # far from the border, inside, outside and on the edge
        weight = np.exp(-((rows - r) ** 2 + (columns - c) ** 2) / (2 * (2 * sigma) ** 2))
        assert blurred[r, c] == pytest.approx((weight * image).sum() / weight.sum(), abs=0.01)


def test_sample_reads_between_pixels() -> None:
    image = np.arange(12.0).reshape(3, 4) ** 2
    rows, columns = np.array([[0.25, 1.5]]), np.array([[0.5, 2.75]])
    for got, r, c in zip(draw.sample(image, rows, columns)[0], rows[0], columns[0], strict=True):
        i, j = int(r), int(c)
        top = image[i, j] + (c - j) * (image[i, j + 1] - image[i, j])
        low = image[i + 1, j] + (c - j) * (image[i + 1, j + 1] - image[i + 1, j])
        assert got == pytest.approx(top + (r - i) * (low - top))


def test_shift_moves_right_and_down() -> None:
    moved = draw.shift(draw.ellipse(0, 0, 0.2, 0.2), 0.25, 0.5)
    assert np.average(draw.X, weights=moved) == pytest.approx(0.25, abs=0.01)
    assert np.average(draw.Y, weights=moved) == pytest.approx(0.5, abs=0.01)


def test_masks_cover_the_area_they_should() -> None:
    pixel = (2 / draw.WORK) ** 2
    assert draw.ellipse(0.2, 0.1, 0.5, 0.3, 30).sum() * pixel == pytest.approx(np.pi * 0.15, rel=0.01)
    square = [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]
    assert draw.region(square, sharp=True).sum() * pixel == pytest.approx(1.0, rel=0.01)
    line = draw.stroke([(-0.5, 0.3), (0.5, 0.3)], 0.1)
    assert line.sum() * pixel == pytest.approx(0.1 + np.pi * 0.05**2, rel=0.03)


def test_softening_a_mask_keeps_its_area_and_an_empty_one_empty() -> None:
    points = [(-0.3, -0.2), (0.4, -0.1), (0.1, 0.5)]
    assert draw.region(points, 3.0).sum() == pytest.approx(draw.region(points).sum(), rel=0.01)
    assert draw.region([(3, 3), (4, 3), (4, 4)], 2.0).max() == 0


@pytest.mark.parametrize("scale", [3.0, 9.0, 48.0])
def test_texture_has_mean_zero_and_deviation_about_one(scale: float) -> None:
    fields = np.stack([draw.texture(np.random.default_rng(k), scale) for k in range(12)])
    assert abs(fields.mean()) < 0.2
    assert 0.8 < fields.std() < 1.2


def _lean(scene: str, **parameters: object) -> float:
    """How much brighter the half on the left of the picture is than the half on its right."""
    grey = np.asarray(picture(scene, "a seed", parameters), dtype=float)
    middle = grey.shape[1] // 2
    return grey[:, :middle].mean() - grey[:, middle:].mean()


def test_the_patients_right_is_on_the_left_of_the_picture() -> None:
    air = {s: _lean("chest.frontal", ptx={"side": s, "size": 0.6}) for s in ("left", "right")}
    assert air["right"] < air["left"]  # air is black
    fluid = {s: _lean("chest.frontal", fluid=({"side": s, "height": 0.6},)) for s in ("left", "right")}
    assert fluid["right"] > fluid["left"]  # fluid is white
    bleed = {s: {"side": s, "thick": 0.12, "hu": 74} for s in ("left", "right")}
    assert _lean("head.axial", look="ct", crescents=(bleed["right"],)) > 0  # fresh blood is white
    assert _lean("head.axial", look="ct", crescents=(bleed["left"],)) < 0
    assert _lean("belly.upper") > 0  # the liver fills the patient's right


def test_a_picture_depends_on_its_seed_and_on_nothing_else() -> None:
    first, again = picture("spine.axial", "a", {"side": "left"}), picture("spine.axial", "a", {"side": "left"})
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != picture("spine.axial", "b", {"side": "left"}).tobytes()


def test_an_unknown_scene_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'knee'.*spine\.axial"):
        picture("knee", "a", {})


def test_every_scene_is_used_by_the_content() -> None:
    from core.demo.content import domains

    used = {p.scene for d in domains() for c in d.conditions for case in c.cases for p in case.pictures}
    assert used == set(SCENES)
