"""Schematic axial CT and MR of the pelvis, and frontal radiographs of the abdomen and pelvis.

The patient's left is on the right of the picture.
"""

from __future__ import annotations

import numpy as np

from core.demo import looks
from core.demo.draw import X, Y, blob, blur, coverage, ellipse, over, pose, region, stroke, strokes, texture

SIDE = {"left": 1.0, "right": -1.0}

TISSUE = {
    "ct": {"air": -1000, "fat": -100, "muscle": 55, "cortex": 600, "marrow": 230, "urine": 8, "wall": 45, "gut": 35,
           "organ": 70, "cyst": 12, "stool": -120, "grain": 8},
    "t2": {"air": 0, "fat": 0.70, "muscle": 0.17, "cortex": 0.05, "marrow": 0.50, "urine": 0.97, "wall": 0.22,
           "gut": 0.38, "organ": 0.42, "cyst": 0.95, "stool": 0.28, "grain": 0.03},
}  # fmt: skip


def axial(
    rng: np.random.Generator, look: str, bladder: float = 0.26, contrast: float = 0.0, pouch: dict | None = None,
    cyst: dict | None = None, female: bool = False,
) -> np.ndarray:  # fmt: skip
    """An axial slice at the height of the hip joints.

    ``contrast``: share of the bladder filled with dense urine. ``pouch``: side, r, neck (width), dense. ``cyst``:
    side, r, x, y, optional level (blood).
    """
    t = TISSUE[look]
    g = t["grain"]
    image = over(np.full_like(X, float(t["air"])), ellipse(0, 0, 0.95, 0.66), t["muscle"])
    image = over(image, ellipse(0, 0, 0.935, 0.645), t["fat"] + g * texture(rng, 7))
    for s in (1, -1):
        glute = [
            (s * 0.10, 0.52),
            (s * 0.32, 0.40),
            (s * 0.66, 0.30),
            (s * 0.80, 0.22),
            (s * 0.74, 0.44),
            (s * 0.45, 0.58),
        ]
        image = over(image, region(glute, 0.7), t["muscle"] + 1.6 * g * texture(rng, 4))
        for x, y, a, b in (
            (0.62, -0.30, 0.15, 0.11),
            (0.38, -0.36, 0.10, 0.08),
            (0.80, -0.08, 0.08, 0.16),
            (0.34, 0.05, 0.06, 0.2),
        ):
            image = over(image, ellipse(s * x, y, a, b, s * 12, 2), t["muscle"] + g * texture(rng, 4))
        image = over(image, ellipse(s * 0.42, -0.45, 0.035, 0.035), t["organ"] * (1.6 if look == "ct" else 0.2))
        socket = [(s * 0.46, -0.24), (s * 0.37, -0.10), (s * 0.38, 0.08), (s * 0.50, 0.19)]
        image = over(image, stroke(socket, 0.10, 0.12), t["cortex"])
        image = over(image, stroke(socket, 0.055, 0.07, 0.5), t["marrow"])
        image = over(image, ellipse(s * 0.585, -0.02, 0.155, 0.155), t["cortex"])
        image = over(image, ellipse(s * 0.585, -0.02, 0.135, 0.135, soft=1.5), t["marrow"] + 5 * g * texture(rng, 4))
    image = over(image, region([(-0.10, 0.46), (0.10, 0.46), (0.06, 0.55), (-0.06, 0.55)]), t["cortex"])
    image = over(image, region([(-0.07, 0.475), (0.07, 0.475), (0.04, 0.53), (-0.04, 0.53)], 0.5), t["marrow"])
    image = over(image, blob(rng, 0, 0.33, 0.115, 0.1), t["wall"])
    image = over(image, blob(rng, 0, 0.33, 0.085, 0.2, soft=1), t["stool"] + 3 * g * texture(rng, 5))
    if female:
        womb = ellipse(0.02 if not cyst else -0.05 * SIDE[cyst["side"]], 0.13, 0.20, 0.115, -6)
        image = over(image, womb, t["organ"] + 1.5 * g * texture(rng, 5))
        image = over(image, ellipse(0, 0.13, 0.11, 0.024, -6, 1.5), t["organ"] * 0.5 + t["urine"] * 0.5)
    else:
        for s in (1, -1):
            image = over(image, ellipse(s * 0.11, 0.20, 0.11, 0.035, s * -12), t["organ"] * 0.8)
    cy = -0.14
    image = over(image, ellipse(0, cy, bladder + 0.025, bladder * 0.80 + 0.025), t["wall"])
    image = over(image, ellipse(0, cy, bladder, bladder * 0.80), t["urine"])
    layer = cy + bladder * 0.80 * (1 - 2 * contrast)
    bright = ellipse(0, cy, bladder, bladder * 0.80) * np.clip((Y - layer) * 60, 0, 1)
    image = over(image, bright, 420.0, 1.0 if contrast else 0.0)
    if pouch:
        image = _pouch(rng, image, t, pouch, bladder, cy, contrast)
    if cyst:
        x, y, r = SIDE[cyst["side"]] * cyst["x"], cyst["y"], cyst["r"]
        state = rng.bit_generator.state
        image = over(image, blob(rng, x, y, r + 0.022, 0.05, 1.12), t["wall"])
        rng.bit_generator.state = state
        inside = blob(rng, x, y, r, 0.05, 1.12)
        image = over(image, inside, t["cyst"] + 0.6 * g * texture(rng, 6))
    window = looks.SOFT
    image = pose(rng, image, bend=0.014)
    return looks.ct(rng, image, window, 14) if look == "ct" else looks.mr(rng, image, 0.022)


def _pouch(
    rng: np.random.Generator,
    image: np.ndarray,
    t: dict[str, float],
    pouch: dict,
    bladder: float,
    cy: float,
    contrast: float,
) -> np.ndarray:
    """An outpouching of the bladder joined to it by a neck."""
    s, r = SIDE[pouch["side"]], pouch["r"]
    x, y = s * (bladder * 0.62 + r * 0.55), cy + bladder * 0.62 + r * 0.75
    neck = [(s * bladder * 0.45, cy + bladder * 0.4), (x, y)]
    wall = np.maximum(blob(rng, x, y, r + 0.016, 0.06, 1.1), stroke(neck, pouch["neck"] + 0.03))
    inner = ellipse(x, y, r * 1.08, r * 0.97)
    lumen = np.maximum(inner, stroke(neck, pouch["neck"]))
    free = 1 - ellipse(0, cy, bladder, bladder * 0.80)
    image = over(over(image, wall * free, t["wall"]), lumen * free, t["urine"])
    if contrast:
        depth = y + r * (1 - 2 * pouch.get("dense", contrast))
        image = over(image, lumen * free * np.clip((Y - depth) * 60, 0, 1), 420.0)
    return image


def _skeleton(rng: np.random.Generator, image: np.ndarray, drop: float) -> np.ndarray:
    """Lumbar spine, lowest ribs, sacrum, pelvis and hips as shadows; ``drop`` moves everything down."""
    rim = np.zeros_like(X)
    for i in range(7):
        y = -0.92 + 0.205 * i + drop
        if y > 0.52 + drop:
            break
        box = region(
            [(-0.105, y), (0.105, y), (0.09, y + 0.08), (0.105, y + 0.16), (-0.105, y + 0.16), (-0.09, y + 0.08)], 0.5
        )
        rim = np.maximum(rim, box)
        for s in (1, -1):
            image = image + 0.045 * stroke([(s * 0.08, y + 0.07), (s * 0.22, y + 0.06)], 0.045, 0.025, 0.5)
        image = image + 0.06 * ellipse(0, y + 0.12, 0.022, 0.05)
    image = image + 0.11 * rim + 0.09 * np.clip(rim - blur(rim, 2.5), 0, 1)
    bones = np.zeros_like(X)
    for s in (1, -1):
        wing = [(s * 0.13, 0.46 + drop), (s * 0.30, 0.34 + drop), (s * 0.58, 0.30 + drop), (s * 0.66, 0.50 + drop),
                (s * 0.50, 0.74 + drop), (s * 0.34, 0.80 + drop), (s * 0.24, 0.68 + drop)]  # fmt: skip
        bones = np.maximum(bones, 0.75 * region(wing, 0.6))
        ring = [(s * 0.36, 0.74 + drop), (s * 0.24, 0.90 + drop), (s * 0.04, 0.92 + drop)]
        low = [(s * 0.03, 0.97 + drop), (s * 0.16, 1.08 + drop), (s * 0.32, 1.0 + drop), (s * 0.38, 0.82 + drop)]
        bones = np.maximum(bones, strokes([(ring, 0.10, 0.08), (low, 0.07, 0.10)], 0.5))
        bones = np.maximum(bones, ellipse(s * 0.52, 0.86 + drop, 0.125, 0.125))
        bones = np.maximum(
            bones, 0.9 * stroke([(s * 0.56, 0.86 + drop), (s * 0.70, 0.96 + drop), (s * 0.77, 1.35 + drop)], 0.15, 0.19)
        )
        for k in range(3):
            y = -0.86 + 0.16 * k + drop
            rib = stroke(
                [(s * 0.10, y), (s * 0.42, y + 0.06 + 0.03 * k), (s * (0.74 - 0.1 * k), y + 0.30)], 0.05, 0.035, 0.5
            )
            image = image + 0.045 * rib
    sacrum = region(
        [(-0.16, 0.50 + drop), (0.16, 0.50 + drop), (0.10, 0.74 + drop), (0, 0.84 + drop), (-0.10, 0.74 + drop)], 0.6
    )
    bones = np.maximum(bones, 0.8 * sacrum)
    holes = [ellipse(s * 0.07, y + drop, 0.02, 0.025) for s in (1, -1) for y in (0.57, 0.66)]
    image = image - 0.03 * np.max(holes, axis=0)
    return image + 0.12 * bones + 0.09 * np.clip(bones - blur(bones, 2.5), 0, 1)


def _plain(rng: np.random.Generator, drop: float) -> np.ndarray:
    """The soft tissue of the abdomen on a radiograph, with psoas edges and kidney shadows."""
    body = region([(-0.86, -1.3), (-0.80, -0.4), (-0.78, 0.1), (-0.90, 0.7), (-0.92, 1.4), (0.92, 1.4), (0.90, 0.7),
                   (0.78, 0.1), (0.80, -0.4), (0.86, -1.3)], 3)  # fmt: skip
    image = 0.03 + body * (0.42 + 0.02 * texture(rng, 40) + 0.012 * texture(rng, 9) - 0.06 * X**2)
    for s in (1, -1):
        psoas = [(s * 0.10, -0.6 + drop), (s * 0.20, -0.2 + drop), (s * 0.36, 0.4 + drop), (s * 0.12, 0.4 + drop)]
        image = image + 0.035 * region(psoas, 1.2)
        image = image + 0.035 * ellipse(s * 0.37, -0.42 + drop, 0.12, 0.23, s * -14, 3)
    return image


def abdomen(
    rng: np.random.Generator, loops: dict | None = None, stone: dict | None = None, gas: float = 1.0
) -> np.ndarray:
    """A frontal abdominal radiograph. ``loops``: dilated small bowel: r, rows, erect (flat fluid levels).
    ``stone``: side, x, y, r. ``gas``: how much ordinary bowel gas."""
    drop = rng.uniform(-0.06, 0.02)
    image = _skeleton(rng, _plain(rng, drop), drop)
    image = image + 0.05 * region([(-0.75, -1.2), (0.0, -1.2), (-0.12, -0.72), (-0.5, -0.38), (-0.74, -0.3)], 3)
    for _ in range(int(10 * gas)):
        side = rng.choice([-1, 1])
        x, y = side * rng.uniform(0.42, 0.66), rng.uniform(-0.3, 0.45)
        image = image - rng.uniform(0.03, 0.08) * blob(
            rng, x, y, rng.uniform(0.03, 0.07), 0.3, 1.3, rng.uniform(0, 180), 1.5
        )
    if loops:
        image = _loops(rng, image, loops)
    if stone:
        x, y = SIDE[stone["side"]] * stone["x"], stone["y"]
        image = image + 0.30 * blob(rng, x, y, stone["r"], 0.15, 1.35, rng.uniform(0, 180), 0.4)
    return looks.xray(rng, pose(rng, image, turn=2), 1.25)


def _loops(rng: np.random.Generator, image: np.ndarray, loops: dict) -> np.ndarray:
    """Dilated small bowel lying across the middle like rungs, with folds that cross the whole lumen."""
    r = loops["r"]
    for i in range(loops["rows"]):
        y = -0.42 + 2.15 * r * i
        half = rng.uniform(0.30, 0.46)
        x = rng.uniform(-0.08, 0.08)
        tilt = rng.uniform(-0.05, 0.05)
        line = [(x - half, y + tilt), (x - half * 0.3, y - 0.05), (x + half * 0.4, y + 0.03), (x + half, y - tilt)]
        lumen = stroke(line, 1.85 * r, 1.7 * r, 0.7)
        if loops["erect"]:
            level = y + rng.uniform(-0.02, 0.04)
            lumen = lumen * np.clip((level - Y) * 110, 0, 1)
        wall = np.clip(blur(lumen, 2.0) - lumen, 0, 1)
        phase = X + 0.03 * np.sin(9 * Y) + rng.uniform(0, 0.05)
        folds = np.clip(np.cos(phase * 2 * np.pi / 0.052) * 3 - 1.9, 0, 1) * lumen
        image = image - 0.21 * lumen + 0.075 * folds + 0.05 * wall
    return image


def cystogram(rng: np.random.Generator, fill: float, pouches: tuple[dict, ...]) -> np.ndarray:
    """A frontal radiograph of the pelvis with contrast medium in the bladder and its ``pouches`` (side, r, y)."""
    drop = -0.42
    image = _skeleton(rng, _plain(rng, drop), drop)
    cy = 0.27
    bladder = blob(rng, 0, cy, fill, 0.05, 1.15, soft=0.7)
    rough = coverage(
        np.hypot(X / (fill * 1.17), (Y - cy) / (fill * 1.03)) - 1 + 0.022 * np.cos(17 * np.arctan2(Y - cy, X)), 1.2
    )
    full = bladder * 0.4 + rough * 0.6
    for p in pouches:
        s, r = SIDE[p["side"]], p["r"]
        x, y = s * (fill * 1.15 + r * 1.15), cy + p["y"]
        full = np.maximum(full, 0.9 * blob(rng, x, y, r, 0.08, soft=0.7))
        full = np.maximum(
            full, 0.85 * stroke([(s * fill * 0.9, cy + p["y"] * 0.6), (x, y)], p.get("neck", 0.04), soft=0.6)
        )
    catheter = stroke([(0.0, cy + fill * 0.3), (0.01, 0.7), (0.05, 1.0)], 0.022, soft=0.3)
    return looks.xray(rng, pose(rng, image + 0.36 * full + 0.10 * catheter, turn=2), 1.2)
