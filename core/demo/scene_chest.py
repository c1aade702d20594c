"""Schematic frontal chest radiographs and axial chest CT. The patient's left is on the right of the picture."""

from __future__ import annotations

import numpy as np

from core.demo import looks
from core.demo.draw import X, Y, blob, blur, coverage, ellipse, over, pose, region, shift, stroke, strokes, texture

SIDE = {"left": 1.0, "right": -1.0}

LUNG = [(0.10, -0.52), (0.20, -0.72), (0.36, -0.74), (0.51, -0.52), (0.62, -0.15), (0.68, 0.22), (0.70, 0.47),
        (0.60, 0.40), (0.42, 0.30), (0.24, 0.34), (0.12, 0.42), (0.09, 0.15), (0.08, -0.2)]  # fmt: skip
"""The outline of one lung on the frontal view (mirrored for the right one)."""


def _side(points: list[tuple[float, float]], s: float, dx: float = 0.0) -> list[tuple[float, float]]:
    return [(s * x + dx, y) for x, y in points]


def _vessels(rng: np.random.Generator, s: float) -> list:
    """Branching vessels from one hilum: stroke paths, thick at the hilum."""
    paths = []
    for angle in np.radians([-78, -50, -22, 8, 32, 55, 76]):
        x, y, width = s * 0.13, 0.0, 0.034
        turn = angle + rng.uniform(-0.12, 0.12)
        reach = 0.62 if angle < 0.9 else 0.5
        points = [(x, y)]
        for _ in range(4):
            x, y = x + s * np.cos(turn) * reach / 4, y + np.sin(turn) * reach / 4
            turn += rng.uniform(-0.25, 0.25)
            points.append((x, y))
            for fork in (-0.6, 0.55):
                ex = x + s * np.cos(turn + fork) * 0.17
                ey = y + np.sin(turn + fork) * 0.17
                paths.append(([(x, y), ((x + ex) / 2, (y + ey) / 2 + 0.008), (ex, ey)], width * 0.5, 0.004))
        paths.append((points, width, 0.006))
    return paths


def _ribs(rng: np.random.Generator, s: float) -> tuple[list, list]:
    """Posterior and anterior ribs of one side as stroke paths."""
    back, front = [], []
    slope = rng.uniform(0.9, 1.1)
    for i in range(9):
        y, w = -0.70 + 0.145 * i, 0.30 + 0.42 * (1 - (1 - i / 8) ** 2.2)
        drop = (0.05 + 0.02 * i) * slope
        back.append(([(s * 0.05, y), (s * w * 0.45, y - 0.055), (s * w * 0.85, y + drop), (s * w, y + drop + 0.13)],
                     0.050, 0.040))  # fmt: skip
        if i < 6:
            front.append(([(s * w * 1.02, y + 0.20), (s * w * 0.82, y + 0.36), (s * w * 0.5, y + 0.40)], 0.045, 0.035))
    return back, front


def frontal(
    rng: np.random.Generator, ptx: dict | None = None, solid: dict | None = None, fluid: tuple[dict, ...] = (),
    nodule: dict | None = None, push: float = 0.0, heart: float = 1.0, female: bool = False, exposure: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """A frontal chest radiograph.

    ``ptx``: side, size (share of the hemithorax), where (apex or all). ``solid``: side, lobe (upper, middle, lower).
    ``fluid``: side and height each. ``nodule``: side, x, y, r, spiky, hu. ``push``: shift of the mediastinum to the
    patient's left (negative: right).
    """
    body = region([(-0.98, -0.62), (-0.6, -0.88), (-0.24, -1.0), (0.24, -1.0), (0.6, -0.88), (0.98, -0.62),
                   (0.88, 0.1), (0.86, 1.2), (-0.86, 1.2), (-0.88, 0.1)], 2)  # fmt: skip
    image = 0.04 + body * (0.55 + 0.05 * Y + 0.02 * texture(rng, 30))
    lungs = {s: region(_side(LUNG, s), 1.2) for s in (1.0, -1.0)}
    both = np.maximum(lungs[1.0], lungs[-1.0])
    image = over(image, both, 0.20 + 0.07 * np.abs(X) + 0.05 * Y + 0.012 * texture(rng, 10))
    centre = push * np.exp(-((X / 0.5) ** 2))
    middle = region([(-0.12, -1.0), (0.12, -1.0), (0.13, -0.55), (0.17, -0.38), (0.13, -0.2), (0.2, 0), (0.33, 0.2),
                     (0.40, 0.36), (0.30, 0.52), (-0.1, 0.55), (-0.22, 0.38), (-0.2, 0.12), (-0.13, -0.1),
                     (-0.14, -0.5)], 1.5)  # fmt: skip
    middle = shift(middle, centre + (heart - 1) * 0.3 * X * (Y > 0), 0)
    image = over(image, middle, 0.64 + 0.12 * np.clip(1 - np.abs(X) / 0.3, 0, 1), 0.95)
    trees = [p for s in (1.0, -1.0) for p in _vessels(rng, s)]
    vessels = strokes(trees, 0.6) * both
    if ptx:
        image, vessels = _pneumothorax(rng, image, vessels, lungs[SIDE[ptx["side"]]], ptx)
    image = image + 0.11 * vessels * (1 - middle)
    hila = np.maximum(blob(rng, 0.17, -0.03, 0.07, 0.2, soft=3), blob(rng, -0.17, 0.02, 0.08, 0.2, soft=3))
    image = image + 0.10 * shift(hila, push * 0.8, 0)
    if solid:
        image = _consolidation(rng, image, lungs[SIDE[solid["side"]]], trees, solid)
    for f in fluid:
        image = _effusion(rng, image, f)
    if nodule:
        image = _nodule(rng, image, nodule)
    image = _bones(
        rng, image, body, shift(stroke([(0, -1.0), (0.01, -0.6), (0.0, -0.26)], 0.085, 0.075, 1), push * 0.9, 0)
    )
    if female:
        for s in (1, -1):
            image = image + 0.045 * ellipse(s * 0.42, 0.22, 0.34, 0.36, soft=8)
    return looks.xray(rng, pose(rng, image, turn=2), 1.12 * exposure)


def _bones(rng: np.random.Generator, image: np.ndarray, body: np.ndarray, windpipe: np.ndarray) -> np.ndarray:
    """Spine, ribs, clavicles and shoulder blades on top, the windpipe dark in the middle."""
    for s in (1.0, -1.0):
        back, front = _ribs(rng, s)
        mask = strokes(back, 0.4)
        image = image + 0.055 * mask + 0.055 * np.clip(mask - blur(mask, 1.8), 0, 1)
        image = image + 0.03 * strokes(front, 0.6)
        clavicle = stroke([(s * 0.08, -0.62), (s * 0.3, -0.68), (s * 0.55, -0.78), (s * 0.78, -0.80)], 0.055, 0.06)
        image = image + 0.09 * clavicle + 0.06 * np.clip(clavicle - blur(clavicle, 2), 0, 1)
        blade = region(
            [(s * 0.62, -0.70), (s * 0.88, -0.62), (s * 0.78, -0.2), (s * 0.68, 0.02), (s * 0.62, -0.3)], 1.5
        )
        image = image + 0.05 * blade + 0.03 * ellipse(s * 0.92, -0.62, 0.12, 0.13, soft=2)
    discs = 0.5 + 0.5 * np.cos((Y + 0.05) * 2 * np.pi / 0.155)
    image = image + 0.06 * coverage(np.abs(X) - 0.065, 2) * (0.6 + 0.5 * discs) * body
    return image - 0.20 * windpipe


def _pneumothorax(
    rng: np.random.Generator, image: np.ndarray, vessels: np.ndarray, lung: np.ndarray, ptx: dict
) -> tuple[np.ndarray, np.ndarray]:
    """Air outside a retracted lung: dark and without vessels, a thin white pleural line around what is left."""
    s, size = SIDE[ptx["side"]], ptx["size"]
    if ptx.get("where", "all") == "apex":
        dx, dy = -s * 0.10 * size, 0.55 * size
        inside = np.maximum(shift(lung, dx, dy), np.clip((Y + 0.12) * 5, 0, 1)) * lung
        inside = np.maximum(inside, lung * np.clip((0.22 - s * X) * 20, 0, 1) * np.clip((Y + 0.45) * 20, 0, 1))
    else:
        keep = 1 - size
        x = [(s * (0.06 + 0.62 * keep * a), 0.02 + b) for a, b in
             ((0.1, -0.66 * keep - 0.08), (0.5, -0.58 * keep - 0.05), (0.85, -0.22), (1.0, 0.1 * keep + 0.02),
              (0.88, 0.36 * keep), (0.5, 0.5 * keep), (0.1, 0.42 * keep))]  # fmt: skip
        inside = region([*x, (s * 0.05, 0.1), (s * 0.05, -0.1)], 0.8) * lung
    air = lung * (1 - inside)
    collapsed = 0.16 * size**1.2 + 0.02 * texture(rng, 8)
    image = over(image, air, 0.115 + 0.03 * np.abs(X) + 0.03 * Y)
    image = image + inside * collapsed
    line = np.clip(blur(air, 0.9) * blur(inside, 0.9) * 4, 0, 1)
    return image + 0.16 * line**1.5, vessels * (1 - air)


def _consolidation(
    rng: np.random.Generator, image: np.ndarray, lung: np.ndarray, trees: list, solid: dict
) -> np.ndarray:
    """A lobe full of exudate: patchy white with dark air bronchograms and a straight fissure."""
    s, lobe = SIDE[solid["side"]], solid["lobe"]
    patchy = 0.05 * texture(rng, 22) + 0.02 * texture(rng, 8)
    depth = np.abs(X)
    if lobe == "upper":
        area = lung * np.clip((-0.06 + 0.02 * depth + patchy * 0.25 - Y) * 40, 0, 1)
    elif lobe == "middle":
        area = lung * np.clip((Y - 0.02) * 40, 0, 1) * np.clip((0.60 + patchy - depth) * 6, 0, 1)
    else:
        area = lung * np.clip((Y - 0.04 + 0.25 * (depth - 0.4) + patchy) * 6, 0, 1)
    area = blur(area, 1.0) * np.clip(0.80 + 2.2 * patchy, 0.3, 1)
    branches = [(p, a * 0.55, b) for p, a, b in trees if p[0][0] * s > 0 and a > 0.01]
    air = strokes(branches, 0.6) * area
    image = over(image, area, 0.60, solid.get("amount", 0.85))
    return image - 0.14 * air


def _effusion(rng: np.random.Generator, image: np.ndarray, fluid: dict) -> np.ndarray:
    """Free fluid at the base with a meniscus that climbs along the chest wall."""
    s, height = SIDE[fluid["side"]], fluid["height"]
    x = np.clip(s * X, 0, 0.75)
    level = 0.50 - height - 0.42 * np.clip((x - 0.42) / 0.28, 0, 1.2) ** 2.4 * (0.45 + height)
    level = level - 0.05 * np.clip(1 - x / 0.25, 0, 1)
    mask = np.clip((Y - level) * 26 + 0.5 + 0.2 * texture(rng, 14), 0, 1) * np.clip(s * X * 30, 0, 1)
    wall = region(
        _side([(0.0, -0.8), (0.3, -0.8), (0.56, -0.5), (0.67, -0.15), (0.73, 0.22), (0.75, 0.6), (0, 0.8)], s), 1
    )
    return over(image, blur(mask, 1.2) * wall, 0.62 + 0.05 * Y, 0.94)


def _nodule(rng: np.random.Generator, image: np.ndarray, nodule: dict) -> np.ndarray:
    """A round opacity, with spicules where ``spiky``."""
    x, y, r = SIDE[nodule["side"]] * nodule["x"], nodule["y"], nodule["r"]
    mask = blob(rng, x, y, r, nodule.get("rough", 0.12), soft=0.8)
    if nodule.get("spiky"):
        angles = np.arange(9) * 0.7 + rng.uniform(0, 0.5, 9)
        rays = [([(x, y), (x + r * 1.9 * np.cos(a), y + r * 1.9 * np.sin(a))], r * 0.3, 0.004) for a in angles]
        mask = np.maximum(mask, 0.6 * strokes([(list(p), a, b) for p, a, b in rays], 0.5))
    return image + mask * nodule.get("white", 0.26)


def axial(
    rng: np.random.Generator, window: str = "lung", ptx: dict | None = None, solid: dict | None = None,
    fluid: tuple[dict, ...] = (), nodule: dict | None = None,
) -> np.ndarray:  # fmt: skip
    """An axial chest CT slice below the carina; findings as in ``frontal`` (nodule in slice coordinates)."""
    body = ellipse(0, 0.02, 0.93, 0.66)
    image = over(np.full_like(X, -1000.0), body, -95 + 8 * texture(rng, 8))
    image = over(image, ellipse(0, 0.03, 0.84, 0.58, soft=1.5), 50 + 6 * texture(rng, 5))
    for s in (1, -1):
        image = over(
            image, region([(s * 0.1, 0.42), (s * 0.5, 0.36), (s * 0.66, 0.48), (s * 0.4, 0.60), (s * 0.1, 0.60)]), 58
        )
    image = over(image, ellipse(0, 0.02, 0.76, 0.50), -90)
    image = over(image, region([(-0.15, -0.42), (0.15, -0.42), (0.32, -0.1), (0.34, 0.12), (0.17, 0.34), (-0.17, 0.34),
                                (-0.24, 0.1), (-0.2, -0.15)], 1), 45)  # fmt: skip
    lungs = {}
    for s in (1.0, -1.0):
        inner = 0.20 if s > 0 else 0.17
        outline = [(0.06, -0.43), (0.3, -0.44), (0.56, -0.32), (0.72, -0.05), (0.70, 0.22), (0.52, 0.43), (0.28, 0.48),
                   (0.13, 0.40), (0.15, 0.24), (inner + 0.02, 0.1),
                   (inner + 0.10 * (s > 0), -0.08), (0.18, -0.25)]  # fmt: skip
        lungs[s] = region(_side(outline, s))
        image = over(image, lungs[s], -860 + 70 * Y + 22 * texture(rng, 6))
    for x, y, r, hu in ((0.05, -0.12, 0.20, 110), (-0.11, -0.26, 0.085, 160), (0.16, 0.27, 0.075, 170),
                        (-0.13, -0.06, 0.05, 150), (0.05, 0.20, 0.035, 40)):  # fmt: skip
        image = over(image, ellipse(x, y, r, r * 0.92), hu)
    trees = [p for s in (1.0, -1.0) for p in _branches(rng, s)]
    both = np.maximum(lungs[1.0], lungs[-1.0])
    spots = np.clip((texture(rng, 3.0) - 2.5) * 4, 0, 1)  # vessels cut across
    vessels = np.maximum(strokes(trees, 0.3), 0.8 * spots) * both
    for s in (1, -1):
        image = over(image, ellipse(s * 0.17, 0.08, 0.045, 0.04), 60)
        image = over(image, ellipse(s * 0.17, 0.08, 0.034, 0.03), -950)
    if ptx:
        s = SIDE[ptx["side"]]
        lung = region(_side([(0.10, -0.12), (0.24, -0.20), (0.42, -0.08), (0.52, 0.14), (0.46, 0.36), (0.28, 0.46),
                             (0.13, 0.38), (0.18, 0.1)], s)) * lungs[s]  # fmt: skip
        air = lungs[s] * (1 - lung)
        image, vessels = over(image, air, -1000), vessels * (1 - air)
        image = over(image, lung, -700 + 40 * texture(rng, 6))
        image = over(image, np.clip(blur(air, 0.6) * blur(lung, 0.6) * 4, 0, 1) ** 2, -350)
    image = over(image, vessels, 0, 0.8)
    if solid:
        s = SIDE[solid["side"]]
        patchy = texture(rng, 14)
        area = lungs[s] * np.clip((Y - 0.06 + 0.03 * patchy + 0.15 * (np.abs(X) - 0.4)) * 9, 0, 1)
        image = over(image, area, 25 + 15 * texture(rng, 5), 0.97)
        image = over(image, strokes([(p, a * 0.7, b) for p, a, b in trees if p[0][0] * s > 0], 0.3) * area, -880, 0.9)
    for f in fluid:
        s, h = SIDE[f["side"]], f["height"]
        rim = _side([(0.10, 0.40 - 0.1 * h), (0.26, 0.44 - 0.42 * h), (0.46, 0.40 - 0.5 * h), (0.62, 0.16 - 0.4 * h),
                     (0.70, 0.08 - 0.5 * h), (0.80, 0.0), (0.7, 0.5), (0.3, 0.62), (0.08, 0.5)], s)  # fmt: skip
        mask = region(rim) * lungs[s]
        ledge = np.clip(region([(x * 0.94, y - 0.075) for x, y in rim]) * lungs[s] - mask, 0, 1)
        image = over(over(image, ledge, 65), mask, 8.0)
    if nodule:
        x, y, r = SIDE[nodule["side"]] * nodule["x"], nodule["y"], nodule["r"]
        state = _nodule(rng, np.zeros_like(X), {**nodule, "white": 1.0})
        image = over(image, np.clip(state, 0, 1), 40)
        if nodule.get("calcified"):
            image = over(image, ellipse(x, y, r * 0.45, r * 0.45), 420)
    image = _cage(rng, image)
    centre = looks.LUNG if window == "lung" else looks.SOFT
    return looks.ct(rng, pose(rng, image), centre, 38 if window == "lung" else 13)


def _branches(rng: np.random.Generator, s: float) -> list:
    paths = []
    for angle in np.radians([-70, -40, -12, 18, 45, 72]):
        x, y, turn = s * 0.17, 0.06, angle
        points = [(x, y)]
        for _ in range(3):
            x, y = x + s * np.cos(turn) * 0.15, y + np.sin(turn) * 0.13
            turn += rng.uniform(-0.3, 0.3)
            points.append((x, y))
            fork = turn + rng.choice([-0.7, 0.7])
            paths.append(([(x, y), (x + s * np.cos(fork) * 0.11, y + np.sin(fork) * 0.11)], 0.013, 0.003))
        paths.append((points, 0.028, 0.006))
    return paths


def _cage(rng: np.random.Generator, image: np.ndarray) -> np.ndarray:
    """Vertebra, ribs and breastbone."""
    bone = np.maximum(ellipse(0, 0.40, 0.125, 0.105), region([(-0.05, 0.5), (0.05, 0.5), (0.02, 0.66), (-0.02, 0.66)]))
    for s in (1, -1):
        bone = np.maximum(bone, stroke([(s * 0.08, 0.52), (s * 0.22, 0.50)], 0.06, 0.05))
    image = over(image, bone, 280 + 60 * texture(rng, 3))
    image = over(image, ellipse(0, 0.505, 0.05, 0.038), 30)
    ribs = [ellipse(0.80 * np.cos(a), 0.03 + 0.545 * np.sin(a), 0.105, 0.030,
                    np.degrees(a) + 90 - 14 * np.sign(np.cos(a)))
            for a in np.radians([-62, -38, -12, 14, 40, 63, 117, 140, 166, 192, 218, 242])]  # fmt: skip
    mask = np.max(ribs, axis=0)
    image = over(image, mask, 620)
    image = over(image, np.clip(blur(mask, 0.8) - 0.55, 0, 1) * 2, 250)
    return over(image, ellipse(0, -0.54, 0.13, 0.04), 330)
