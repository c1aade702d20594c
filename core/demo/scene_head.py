"""Schematic slices of the head: axial CT and MR, coronal MR. The patient's left is on the right of the picture."""

from __future__ import annotations

import numpy as np

from core.demo import looks
from core.demo.draw import X, Y, blob, blur, ellipse, over, pose, region, shift, stroke, strokes, texture

TISSUE = {
    "ct": {"air": -1000, "scalp": 10, "skull": 1100, "csf": 6, "grey": 40, "white": 29, "falx": 62, "edema": 15,
           "core": 12, "rim": 82, "mass": 78, "vessel": 80},
    "t1c": {"air": 0, "scalp": 0.72, "skull": 0.07, "csf": 0.13, "grey": 0.42, "white": 0.54, "falx": 0.66,
            "edema": 0.30, "core": 0.12, "rim": 0.98, "mass": 0.9, "vessel": 0.95},
    "t2": {"air": 0, "scalp": 0.50, "skull": 0.05, "csf": 0.92, "grey": 0.52, "white": 0.33, "falx": 0.25,
           "edema": 0.78, "core": 0.88, "rim": 0.14, "mass": 0.6, "vessel": 0.05},
}  # fmt: skip
"""Signal of each tissue: Hounsfield units for CT, 0…1 for the MR weightings."""

SIDE = {"left": 1.0, "right": -1.0, "middle": 0.0}


def _brain(rng: np.random.Generator, t: dict[str, float], rho: np.ndarray, effaced: float) -> np.ndarray:
    """Brain with a folded cortex inside ``rho`` < 1; ``effaced`` 0…1 closes the sulci."""
    folds = texture(rng, 15) + 0.35 * texture(rng, 7)
    inward = 1 - rho
    line = np.exp(-((folds / 0.16) ** 2)) * np.exp(-np.clip(inward, 0, 1) / 0.13)
    cortex = np.exp(-((folds / 0.55) ** 2)) * np.exp(-np.clip(inward - 0.04, 0, 1) / 0.16)
    cortex = np.clip(np.maximum(cortex * 1.3, np.clip(1 - inward / 0.055, 0, 1)), 0, 1)
    image = over(np.full_like(X, t["white"]), cortex, t["grey"])
    image = over(image, np.clip(line * 1.9, 0, 1), t["csf"], 1 - effaced)
    return image + 0.03 * (t["white"] - t["csf"]) * texture(rng, 9)


def _ventricles(size: float, third: float) -> np.ndarray:
    """The lateral ventricles (frontal horns, bodies, atria) and the third ventricle, ``size`` 1 being normal."""
    w = 0.62 * size
    mask = ellipse(0, 0.04, 0.012 + 0.022 * third, 0.11)
    for s in (1, -1):
        front = [(0.03, -0.16), (0.04 + 0.05 * w, -0.33 - 0.04 * w), (0.13 + 0.07 * w, -0.43 - 0.05 * w),
                 (0.15 + 0.11 * w, -0.35 - 0.02 * w), (0.07 + 0.10 * w, -0.22), (0.05 + 0.05 * w, -0.12)]  # fmt: skip
        back = [(0.14, 0.20), (0.18 + 0.03 * w, 0.17 - 0.03 * w), (0.24 + 0.09 * w, 0.30), (0.27 + 0.09 * w, 0.46),
                (0.24 + 0.04 * w, 0.58 + 0.05 * w), (0.19, 0.50), (0.16, 0.34)]  # fmt: skip
        mask = np.maximum(mask, region([(s * x, y) for x, y in front]))
        mask = np.maximum(mask, region([(s * x, y) for x, y in back]))
        if size > 1.5:
            mask = np.maximum(mask, stroke([(s * 0.10, -0.2), (s * 0.17, 0), (s * 0.22, 0.3)], 0.11 * w, 0.2 * w))
    return mask


def _lesion(
    rng: np.random.Generator, image: np.ndarray, t: dict[str, float], inner: np.ndarray, lesion: dict
) -> np.ndarray:
    """``image`` with a ring (abscess) or a solid mass on the dura (meningioma)."""
    x, y, r = SIDE[lesion["side"]] * lesion["x"], lesion["y"], lesion["r"]
    halo = blob(rng, x * 0.88, y * 0.92, r * lesion.get("edema", 1.9), 0.34, soft=4.5) * inner
    image = over(image, halo, t["edema"], 0.85)
    if lesion["kind"] == "ring":
        parts = [(x, y, r)] + ([(x * 0.6, y + 1.1 * r, 0.66 * r)] if lesion.get("daughter") else [])
        for px, py, pr in parts:
            state = rng.bit_generator.state
            image = over(image, blob(rng, px, py, pr, 0.10, 1.12, soft=0.6), t["rim"])
            rng.bit_generator.state = state  # the same outline, smaller: a rim of even width
            core = blob(rng, px, py, pr - lesion.get("wall", 0.032), 0.10, 1.12, soft=0.6)
            image = over(image, core, t["core"] + 0.05 * abs(t["grey"] - t["core"]) * texture(rng, 7))
        return image
    body = blob(rng, x, y, r, 0.07, lesion.get("stretch", 1.0), lesion.get("turn", 0.0), soft=0.6)
    cleft = blob(rng, x, y, r * 1.07, 0.07, lesion.get("stretch", 1.0), lesion.get("turn", 0.0), soft=0.6)
    image = over(image, cleft * inner, t["csf"], 0.6)
    image = over(image, body * inner, t["mass"] + 0.035 * abs(t["mass"] - t["grey"]) * texture(rng, 5))
    if lesion.get("calcified"):
        image = over(image, blob(rng, x, y, r * 0.3, 0.4), 320.0)
    return image


def axial(
    rng: np.random.Generator, look: str, high: bool = False, vent: float = 1.0, third: float = 1.0,
    effaced: float = 0.1, push: float = 0.0, halo: float = 0.0, lesion: dict | None = None,
    crescents: tuple[dict, ...] = (), noise: float | None = None,
) -> np.ndarray:  # fmt: skip
    """An axial slice at the level of the ventricles, or near the vertex where ``high``.

    ``look``: ct, t1c or t2. ``push``: midline shift to the patient's left (negative: right). ``halo``: oedema around
    the ventricles. ``crescents``: subdural collections (side, thick, hu, optional hu_low below).
    """
    t = TISSUE[look]
    rx, ry = rng.uniform(0.65, 0.69), rng.uniform(0.82, 0.85)
    if high:
        rx, ry = rx * 0.92, ry * 0.90
    wide = np.where(Y > 0, 1.0, 1 - 0.07 * np.clip(-Y, 0, 1))  # a little narrower in front
    rho = np.hypot(X / (rx * wide), Y / ry)
    image = _brain(rng, t, rho, effaced)
    if not high:
        for s in (1, -1):
            for cx, cy, a, b, turn in ((0.17, -0.26, 0.05, 0.09, 20), (0.27, -0.06, 0.075, 0.16, -18),
                                       (0.12, 0.10, 0.085, 0.12, 15)):  # fmt: skip
                image = over(image, ellipse(s * cx, cy, a, b, s * turn, soft=4), t["grey"], 0.9)
            cleft = [(s * 0.72, -0.14), (s * 0.54, -0.12), (s * 0.44, -0.02), (s * 0.45, 0.12)]
            image = over(image, stroke(cleft, 0.045, 0.02, soft=0.8), t["csf"], 0.9 * (1 - 0.7 * effaced))
        ventricles = _ventricles(vent, third)
        if halo:
            image = over(image, np.clip(blur(ventricles, 9) * 1.6, 0, 1), t["edema"], halo)
        image = over(image, ventricles, t["csf"])
        if look == "ct":
            dots = strokes([([(s * 0.235, 0.34), (s * 0.25, 0.40)], 0.035, 0.02) for s in (1, -1)])
            image = over(image, dots, 140.0)
    fissure = np.exp(-((X / 0.016) ** 2)) * (1.0 if high else np.clip((np.abs(Y + 0.02) - 0.44) * 12, 0, 1))
    image = over(image, fissure, t["csf"], 0.8)
    image = over(image, coverage_line(0.006) * np.clip((np.abs(Y) - (0.0 if high else 0.5)) * 9, 0, 1), t["falx"])
    if push:
        image = shift(image, push * np.exp(-((X / 0.55) ** 2) - (((Y + 0.05) / 0.6) ** 2)), 0)
    edge = np.clip((1 - rho) * 60, 0, 1)
    image = over(np.full_like(X, t["csf"]), edge, image)
    inner = np.clip((1.022 - rho) * 60, 0, 1)
    if lesion:
        image = _lesion(rng, image, t, inner, lesion)
        if lesion["kind"] == "dural":
            spot = np.hypot(X - SIDE[lesion["side"]] * lesion["x"] * 1.12, Y - lesion["y"] * 1.12)
            tail = np.clip((rho - 0.965) * 60, 0, 1) * inner * np.clip((lesion["r"] * 1.9 - spot) * 9, 0, 1)
            image = over(image, tail, t["mass"])
    for c in crescents:
        image = _crescent(rng, image, inner, rx, ry, c)
    image = _wall(rng, t, image, rho, inner)
    image = pose(rng, image, turn=5, room=1.0)
    return _finish(rng, look, image, noise)


def coverage_line(half: float) -> np.ndarray:
    """A vertical line in the middle of the picture, ``half`` wide to each side."""
    return np.clip((half * 1.6 - np.abs(X)) * 200, 0, 1)


def _crescent(
    rng: np.random.Generator, image: np.ndarray, inner: np.ndarray, rx: float, ry: float, c: dict
) -> np.ndarray:
    """``image`` with a subdural collection, concave towards the brain."""
    s, thick = SIDE[c["side"]], c["thick"]
    hole = ellipse(-s * thick, c.get("y", 0.0), rx * 1.0, ry * c.get("tall", 0.99), soft=1.5)
    mask = inner * (1 - hole) * np.clip(s * X * 12, 0, 1)
    level = np.clip((Y - 0.15 + 0.05 * texture(rng, 20)) * 5 + 0.5, 0, 1)
    value = c["hu"] + (c.get("hu_low", c["hu"]) - c["hu"]) * level
    return over(image, mask, value + 3.5 * texture(rng, 6))


def _wall(rng: np.random.Generator, t: dict[str, float], image: np.ndarray, rho: np.ndarray, inner: np.ndarray):
    """Skull with its marrow space, scalp with fat, air outside."""
    thick = 0.075 + 0.015 * np.clip(-Y, 0, 1) + 0.006 * texture(rng, 40)
    out = rho - 1.02
    bone = t["skull"] + (0.10 * np.exp(-((out / thick - 0.5) ** 2) / 0.04) if t["air"] == 0 else 0)
    image = over(bone + 0 * X, inner, image)
    image = over(image, np.clip((out - thick) * 60, 0, 1), t["scalp"] * (1 + 0.12 * texture(rng, 12)))
    return over(image, np.clip((out - thick - 0.055) * 60, 0, 1), t["air"])


def _finish(rng: np.random.Generator, look: str, image: np.ndarray, noise: float | None) -> np.ndarray:
    if look == "ct":
        return looks.ct(rng, image, looks.BRAIN, noise or 4.0)
    return looks.mr(rng, image, noise or 0.025)


def coronal(rng: np.random.Generator, look: str, lesion: dict | None = None, vent: float = 1.0) -> np.ndarray:
    """A coronal MR slice through the third ventricle and the temporal lobes."""
    t = TISSUE[look]
    rho = np.hypot(X / 0.69, (Y + 0.06) / np.where(Y < -0.06, 0.78, 0.66))
    image = _brain(rng, t, rho, 0.15)
    for s in (1, -1):
        horn = [
            (s * 0.02, -0.20),
            (s * (0.10 + 0.08 * vent), -0.30),
            (s * (0.14 + 0.06 * vent), -0.23),
            (s * 0.05, -0.13),
        ]
        image = over(image, region(horn), t["csf"])
        image = over(image, ellipse(s * 0.13, -0.02, 0.09, 0.11, soft=4), t["grey"])
        image = over(image, ellipse(s * 0.29, -0.02, 0.07, 0.13, s * 12, soft=4), t["grey"])
        cleft = [(s * 0.72, 0.08), (s * 0.56, 0.05), (s * 0.47, -0.08)]
        image = over(image, stroke(cleft, 0.05, 0.025, soft=0.8), t["csf"], 0.9)
        gap = [
            (s * 0.13, 0.24),
            (s * 0.20, 0.20),
            (s * 0.22, 0.34),
            (s * 0.26, 0.52),
            (s * 0.14, 0.60),
            (s * 0.12, 0.42),
        ]
        image = over(image, region(gap, 1.5), t["csf"])
    image = over(image, ellipse(0, -0.02, 0.018, 0.09), t["csf"])
    image = over(
        image,
        region([(-0.13, 0.16), (0.13, 0.16), (0.15, 0.40), (0.09, 0.72), (-0.09, 0.72), (-0.15, 0.40)]),
        t["white"],
    )
    image = over(image, np.exp(-((X / 0.016) ** 2)) * np.clip((-0.36 - Y) * 12, 0, 1), t["csf"], 0.8)
    image = over(image, coverage_line(0.006) * np.clip((-0.34 - Y) * 12, 0, 1), t["falx"])
    edge = np.clip((1 - rho) * 60, 0, 1)
    image = over(np.full_like(X, t["csf"]), edge, image)
    inner = np.clip((1.022 - rho) * 60, 0, 1)
    if lesion:
        image = _lesion(rng, image, t, inner, lesion)
    image = _wall(rng, t, image, rho, inner)
    neck = region([(-0.40, 0.50), (0.40, 0.50), (0.44, 1.2), (-0.44, 1.2)], 3) * np.clip((rho - 1.09) * 30, 0, 1)
    image = over(image, neck, 0.34 + 0.06 * texture(rng, 5))
    return _finish(rng, look, pose(rng, image, room=1.0), None)
