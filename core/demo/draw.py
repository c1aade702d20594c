"""Drawing primitives for schematic medical pictures: coverage masks, textures and resampling, with numpy and Pillow.

Coordinates: x to the right, y down, both -1…1 across a square canvas; lengths are in that unit. Blur widths and texture
scales are in pixels of the finished picture (``SIZE`` a side). Masks and images are ``[WORK, WORK]`` float64, masks in
0…1; everything is drawn at twice the finished size (outlines at four times) and averaged down, which smooths the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

SIZE = 256
WORK = 2 * SIZE
FINE = 2 * WORK

_AXIS = (np.arange(WORK) + 0.5) / WORK * 2 - 1
X, Y = np.meshgrid(_AXIS, _AXIS)
_PIXEL = 2 / WORK

Point = tuple[float, float]
Path = tuple[Sequence[Point], float, float]
"""A stroke: the points of its middle line, its width at the start and at the end."""


def coverage(distance: np.ndarray, soft: float = 1.0) -> np.ndarray:
    """The mask of a signed distance (negative inside); ``soft`` is the width of the edge in finished pixels."""
    return np.clip(0.5 - distance / (2 * _PIXEL * soft), 0.0, 1.0)


def ellipse(cx: float, cy: float, rx: float, ry: float, turn: float = 0.0, soft: float = 1.0) -> np.ndarray:
    """The mask of an ellipse with half-axes ``rx``, ``ry``, turned by ``turn`` degrees clockwise."""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    reach = max(rx, ry) + soft * _PIXEL * 4
    rows, columns = _span(cy, reach), _span(cx, reach)
    x, y = X[rows, columns] - cx, Y[rows, columns] - cy
    u, v = (x * c + y * s) / rx, (y * c - x * s) / ry
    k = np.sqrt(u * u + v * v)
    slope = np.maximum(np.sqrt((u / rx) ** 2 + (v / ry) ** 2), 1e-9)
    mask = np.zeros_like(X)
    mask[rows, columns] = coverage(k * (k - 1) / slope, soft)
    return mask


def _span(centre: float, reach: float) -> slice:
    low, high = (np.array([centre - reach, centre + reach]) + 1) / _PIXEL
    return slice(int(np.clip(low, 0, WORK)), int(np.clip(high + 1, 0, WORK)))


def blob(
    rng: np.random.Generator, cx: float, cy: float, radius: float, rough: float = 0.12, stretch: float = 1.0,
    turn: float = 0.0, soft: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """An irregular round mask: a circle with random harmonics of relative size ``rough``, widened by ``stretch``."""
    angle = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    outline = np.full_like(angle, radius)
    for k in range(2, 7):
        wave = rough * 2.4 / k**1.5 * rng.uniform(0.3, 1.0)
        outline += radius * wave * np.cos(k * angle + rng.uniform(0, 2 * np.pi))
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    u, v = outline * np.cos(angle) * stretch, outline * np.sin(angle)
    return region(np.stack([cx + u * c - v * s, cy + u * s + v * c], axis=1), soft, sharp=True)


def curve(points: Sequence[Point], closed: bool = False, steps: int = 10) -> np.ndarray:
    """Points along the Catmull-Rom spline through ``points``: ``[n, 2]``."""
    p = np.asarray(points, dtype=float)
    p = np.vstack([p[-1:], p, p[:2]]) if closed else np.vstack([2 * p[0] - p[1], p, 2 * p[-1] - p[-2]])
    t = (np.arange(steps) / steps)[:, None]
    parts = []
    for a, b, c, d in zip(p[:-3], p[1:-2], p[2:-1], p[3:], strict=True):
        parts.append(0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3))
    if not closed:
        parts.append(p[-2:-1])
    return np.vstack(parts)


def _to_fine(points: np.ndarray) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (points + 1) / 2 * FINE - 0.5]


def _mask(picture: Image.Image, soft: float) -> np.ndarray:
    mask = np.zeros((WORK, WORK))
    box = picture.getbbox()
    if box is None:
        return mask
    margin = int(6 * soft + 2)  # only the part that holds anything is averaged down and softened
    left, top = (max(0, b // 2 - margin) for b in box[:2])
    right, bottom = (min(WORK, b // 2 + 1 + margin) for b in box[2:])
    small = picture.reduce(2, (2 * left, 2 * top, 2 * right, 2 * bottom))
    if soft:
        small = small.filter(ImageFilter.GaussianBlur(2 * soft))
    mask[top:bottom, left:right] = np.asarray(small, dtype=float) / 255
    return mask


def region(points: Sequence[Point], soft: float = 0.0, sharp: bool = False) -> np.ndarray:
    """The mask inside the smooth closed curve through ``points`` (straight edges where ``sharp``)."""
    picture = Image.new("L", (FINE, FINE))
    outline = np.asarray(points, dtype=float) if sharp else curve(points, closed=True)
    ImageDraw.Draw(picture).polygon(_to_fine(outline), fill=255)
    return _mask(picture, soft)


def strokes(paths: Sequence[Path], soft: float = 0.0) -> np.ndarray:
    """One mask of many smooth strokes with round ends; see ``Path``."""
    picture = Image.new("L", (FINE, FINE))
    pen = ImageDraw.Draw(picture)
    for points, start, end in paths:
        line = curve(points, steps=6)
        half = np.linspace(start, end, len(line)) / 2
        along = np.gradient(line, axis=0)
        across = np.stack([-along[:, 1], along[:, 0]], axis=1) / np.maximum(np.hypot(*along.T), 1e-9)[:, None]
        left, right = line + across * half[:, None], line - across * half[:, None]
        for i in range(len(line) - 1):
            pen.polygon(_to_fine(np.stack([left[i], left[i + 1], right[i + 1], right[i]])), fill=255)
        for (x, y), h in zip(_to_fine(line), half * FINE / 2, strict=True):
            pen.ellipse((x - h, y - h, x + h, y + h), fill=255)
    return _mask(picture, soft)


def stroke(points: Sequence[Point], width: float, end: float | None = None, soft: float = 0.0) -> np.ndarray:
    """The mask of one smooth stroke, ``width`` wide, narrowing to ``end``."""
    return strokes([(points, width, width if end is None else end)], soft)


def over(image: np.ndarray, mask: np.ndarray, value: np.ndarray | float, amount: float = 1.0) -> np.ndarray:
    """``image`` with ``value`` painted where ``mask`` is, at the given ``amount`` of cover."""
    return image + mask * amount * (value - image)


@lru_cache(maxsize=64)
def _kernel(sigma: float, step: int) -> np.ndarray:
    at, source = np.arange(WORK) + 0.5, (np.arange(WORK // step) + 0.5) * step
    kernel = np.exp(-(((at[:, None] - source[None, :]) / (2 * sigma)) ** 2) / 2)
    return kernel / kernel.sum(axis=1, keepdims=True)


def blur(image: np.ndarray, sigma: float) -> np.ndarray:
    """``image`` after a Gaussian blur of standard deviation ``sigma`` finished pixels."""
    if sigma < 1.2:  # few taps: cheaper than a product of matrices
        reach = int(np.ceil(6 * sigma))
        taps = np.exp(-((np.arange(-reach, reach + 1) / (2 * sigma)) ** 2) / 2)
        taps /= taps.sum()
        for axis in (0, 1):
            padded = np.pad(image, [(reach, reach) if a == axis else (0, 0) for a in (0, 1)], mode="edge")
            image = sum(
                t * padded[i : i + WORK] if axis == 0 else t * padded[:, i : i + WORK] for i, t in enumerate(taps)
            )
        return image
    step = 4 if sigma >= 1.5 else 2  # what a wide blur keeps survives a coarser grid
    small = image.reshape(WORK // step, step, WORK // step, step).mean(axis=(1, 3))
    kernel = _kernel(sigma, step)
    return kernel @ small @ kernel.T


def grain(rng: np.random.Generator, down: int = 1, across: int = 1) -> np.ndarray:
    """Fine random grain of mean 0 and deviation 1, one value a pixel, smoothed ``down`` and ``across`` times."""
    noise = rng.standard_normal((SIZE, SIZE))
    for axis, times in ((0, down), (1, across)):
        for _ in range(times):
            noise = 0.5 * noise + 0.25 * (np.roll(noise, 1, axis) + np.roll(noise, -1, axis))
    return _twice(noise / noise.std())


def _twice(image: np.ndarray) -> np.ndarray:
    return np.repeat(np.repeat(image, 2, axis=0), 2, axis=1)


def texture(rng: np.random.Generator, scale: float) -> np.ndarray:
    """Smooth random texture of mean 0 and deviation about 1 with grains of ``scale`` pixels, 3 or more."""
    count = int(np.ceil(SIZE / scale)) + 4
    coarse = Image.fromarray(rng.standard_normal((count, count)).astype(np.float32))
    edge = (count - SIZE / scale) / 2
    smooth = coarse.resize((SIZE, SIZE), Image.Resampling.BICUBIC, box=(edge, edge, count - edge, count - edge))
    return _twice(np.asarray(smooth, dtype=float) * 1.24)


def sample(image: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """``image`` read between its pixels (bilinear) at fractional ``rows`` and ``columns``, clamped at its border."""
    height, width = image.shape
    rows, columns = np.clip(rows, 0, height - 1.001), np.clip(columns, 0, width - 1.001)
    r, c = rows.astype(np.int32), columns.astype(np.int32)
    fr, fc = rows - r, columns - c
    at, values = r * width + c, image.ravel()
    top = values[at] * (1 - fc) + values[at + 1] * fc
    return top * (1 - fr) + (values[at + width] * (1 - fc) + values[at + width + 1] * fc) * fr


def shift(image: np.ndarray, dx: np.ndarray | float, dy: np.ndarray | float) -> np.ndarray:
    """``image`` with its content moved by ``dx`` to the right and ``dy`` down (numbers or maps)."""
    return sample(image, (Y - dy + 1) / _PIXEL - 0.5, (X - dx + 1) / _PIXEL - 0.5)


def pose(
    rng: np.random.Generator, image: np.ndarray, turn: float = 3.0, bend: float = 0.012, room: float = 1.0
) -> np.ndarray:
    """``image`` as another patient on another day: a small turn (degrees), stretch, offset and elastic bend.

    ``room`` above 1 leaves a margin around the drawing.
    """
    angle = np.radians(rng.uniform(-turn, turn))
    wide, high = room * rng.uniform(1.0, 1.07, 2)
    x, y = X - rng.uniform(-0.025, 0.025), Y - rng.uniform(-0.025, 0.025)
    c, s = np.cos(angle), np.sin(angle)
    u = (x * c + y * s) * wide + bend * texture(rng, 48)
    v = (y * c - x * s) * high + bend * texture(rng, 48)
    return sample(image, (v + 1) / _PIXEL - 0.5, (u + 1) / _PIXEL - 0.5)


def finished(image: np.ndarray, width: int = SIZE, height: int = SIZE) -> Image.Image:
    """A grey picture of ``width`` × ``height`` pixels cut from the middle of ``image`` (values 0…1)."""
    small = image.reshape(SIZE, 2, SIZE, 2).mean(axis=(1, 3))
    left, top = (SIZE - width) // 2, (SIZE - height) // 2
    cut = small[top : top + height, left : left + width]
    return Image.fromarray(np.round(np.clip(cut, 0, 1) * 255).astype(np.uint8))
