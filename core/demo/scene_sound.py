"""Schematic ultrasound: gallbladder, liver, appendix, kidney, bladder and ovary inside a curved sector."""

from __future__ import annotations

import numpy as np

from core.demo.draw import X, Y, blob, blur, coverage, ellipse, over, pose, region, stroke, strokes, texture
from core.demo.looks import Sector

NOTHING = np.zeros_like(X)


def _tissue(rng: np.random.Generator, level: float = 0.40) -> np.ndarray:
    return level + 0.035 * texture(rng, 5) + 0.03 * texture(rng, 22)


def _view(
    rng: np.random.Generator, echo: np.ndarray, stones: np.ndarray = NOTHING, fluid: np.ndarray = NOTHING
) -> np.ndarray:
    half = rng.uniform(27.5, 30.5)
    return Sector(half, bottom=rng.uniform(2.02, 2.14)).view(rng, echo, stones, fluid)


def _wall_layers(rng: np.random.Generator, echo: np.ndarray) -> np.ndarray:
    """Skin, fat and muscle under the probe."""
    echo = over(echo, coverage(Y + 0.86 + 0.02 * texture(rng, 40), 2), 0.52)
    line = np.exp(-(((Y + 0.80 + 0.05 * X**2 + 0.01 * texture(rng, 40)) / 0.02) ** 2))
    return echo + 0.25 * line


def _liver(rng: np.random.Generator) -> np.ndarray:
    """Liver with portal and hepatic veins, the diaphragm bright below it."""
    echo = _wall_layers(rng, _tissue(rng, 0.43))
    veins = [([(-0.9, -0.15), (-0.5, -0.22), (-0.15, -0.18)], 0.05, 0.075),
             ([(-0.7, 0.35), (-0.45, 0.1), (-0.38, -0.12)], 0.04, 0.05),
             ([(0.15, -0.62), (0.3, -0.45), (0.52, -0.36)], 0.035, 0.05)]  # fmt: skip
    moves = rng.uniform(-0.09, 0.09, (3, 2))
    veins = [([(x + dx, y + dy) for x, y in p], a, b) for (p, a, b), (dx, dy) in zip(veins, moves, strict=True)]
    tube = strokes(veins, 0.5)
    echo = echo + 0.25 * np.clip(blur(tube, 1.6) - 0.4 * tube, 0, 1)
    echo = pose(rng, over(echo, tube, 0.04), turn=9, bend=0.03)
    arc = np.exp(-(((np.hypot(X + 0.05, Y + 0.75) - 1.42 + 0.015 * texture(rng, 40)) / 0.018) ** 2))
    return over(echo, coverage(1.44 - np.hypot(X + 0.05, Y + 0.75), 3), 0.22) + 0.45 * arc


def _grown(mask: np.ndarray, by: float) -> np.ndarray:
    """``mask`` grown by about ``by`` finished pixels."""
    return np.clip((blur(mask, by) - 0.12) * 9, 0, 1)


def gallbladder(
    rng: np.random.Generator,
    stones: tuple[tuple[float, float], ...],
    wall: float = 0.022,
    big: float = 1.0,
    turn: float = 0.0,
) -> np.ndarray:
    """A gallbladder with ``stones``: (place along the dependent wall, 0 neck … 1 fundus; radius) each."""
    echo = _liver(rng)
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))

    def place(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(0.08 + big * (x * c - y * s), 0.02 + big * (x * s + y * c)) for x, y in points]

    pear = place(
        [
            (-0.42, 0.08),
            (-0.28, -0.04),
            (0.02, -0.20),
            (0.32, -0.22),
            (0.48, -0.04),
            (0.36, 0.14),
            (0.06, 0.17),
            (-0.24, 0.14),
        ]
    )
    lumen = region(pear, 0.5)
    echo = over(echo, _grown(lumen, 75 * wall), 0.66)
    if wall > 0.04:  # swollen: a dark layer between two bright ones
        echo = over(over(echo, _grown(lumen, 52 * wall), 0.20), _grown(lumen, 1.6), 0.66)
    echo = over(echo, lumen, 0.02)
    rocks = np.zeros_like(X)
    for at, r in stones:
        ((x, y),) = place([(-0.38 + 0.74 * at, 0.13 - 0.16 * at**2.5 + (0.035 if 0.1 < at < 0.8 else 0.0) - r / big)])
        body = blob(rng, x, y, r, 0.08, 1.15)
        echo = over(echo, body, 0.95 - 0.45 * np.clip((Y - y) / r, 0, 1))
        rocks = np.maximum(rocks, body)
    return _view(rng, echo, rocks, lumen * (1 - rocks))


def liver(rng: np.random.Generator, spots: tuple[dict, ...]) -> np.ndarray:
    """Liver lesions: x, y, r each, with a dark halo and a grey middle (``level``)."""
    echo = _liver(rng)
    for p in spots:
        state = rng.bit_generator.state
        echo = over(echo, blob(rng, p["x"], p["y"], p["r"], 0.10, 1.1, soft=1.2), 0.13)
        rng.bit_generator.state = state
        core = blob(rng, p["x"], p["y"], p["r"] * 0.70, 0.10, 1.1, soft=1.5)
        echo = over(echo, core, p.get("level", 0.44) + 0.05 * texture(rng, 4))
    return _view(rng, echo)


def appendix(rng: np.random.Generator, r: float = 0.12, stone: bool = False, fluid: float = 0.0) -> np.ndarray:
    """A thick, blind-ending tube in long section with its layers, bright fat around, bowel gas at one side."""
    echo = _wall_layers(rng, _tissue(rng, 0.30))
    echo = over(echo, coverage(Y + 0.52 + 0.03 * texture(rng, 30), 2) * coverage(-0.78 - Y, 2), 0.22)
    line = [(0.62, -0.16), (0.36, -0.02), (0.06, 0.05), (-0.30, -0.03)]
    echo = over(echo, np.clip(stroke(line, 5.2 * r, 4.6 * r, 7), 0, 1), 0.56, 0.85)
    for width, level in ((2.0, 0.15), (1.5, 0.55), (1.05, 0.16), (0.5, 0.04)):
        echo = over(echo, stroke(line, width * r * 1.1, width * r, 0.5), level)
    gas = np.exp(-((np.hypot((X - 0.78) / 0.22, (Y + 0.30) / 0.10) - 1) ** 2) / 0.05) * (Y < -0.25)
    echo = over(echo, gas, 0.85)
    pool = blob(rng, -0.42, 0.30, 0.10 * fluid + 1e-3, 0.3, 1.8, soft=1) if fluid else NOTHING
    echo = over(echo, pool, 0.03)
    rock = ellipse(0.16, 0.03, 0.05, 0.036) if stone else np.zeros_like(X)
    echo = over(echo, rock, 0.95)
    muscle = region([(-0.9, 0.42), (-0.2, 0.46), (0.5, 0.36), (0.9, 0.44), (0.7, 0.9), (-0.7, 0.9)], 2)
    echo = over(echo, muscle, 0.24 + 0.06 * np.sin(60 * (Y + 0.15 * X)))
    return _view(rng, echo, rock, pool)


def kidney(
    rng: np.random.Generator,
    hydro: float = 0.0,
    stone: dict | None = None,
    mass: dict | None = None,
    turn: float = -8.0,
) -> np.ndarray:
    """A kidney in long section. ``hydro`` 0…1 widens the calyces; ``stone``: x, y, r; ``mass``: these and level."""
    echo = _wall_layers(rng, _tissue(rng, 0.42))
    echo = over(echo, ellipse(0, 0.10, 0.66, 0.40, turn, 2), 0.58)
    cortex = ellipse(0, 0.10, 0.61, 0.355, turn)
    echo = over(echo, cortex, 0.30 + 0.03 * texture(rng, 5))
    for a in np.radians(np.arange(10, 360, 36)):
        echo = over(echo, ellipse(0.40 * np.cos(a), 0.10 + 0.225 * np.sin(a), 0.075, 0.065, soft=3) * cortex, 0.20)
    echo = over(echo, ellipse(0, 0.11, 0.34, 0.135, turn, 4), 0.66 + 0.05 * texture(rng, 4))
    fluid = np.zeros_like(X)
    if hydro:
        h = 0.55 + 0.45 * hydro
        parts = [ellipse(0.0, 0.16, 0.23 * h, 0.135 * h, turn, 1.2)]
        for x, y in ((-0.32, 0.06), (-0.18, -0.06), (0.04, -0.09), (0.22, -0.05), (0.33, 0.10), (-0.26, 0.20)):
            parts.append(ellipse(x, y + 0.02, 0.095 * h, 0.075 * h, rng.uniform(0, 90), 1.2))
            parts.append(stroke([(x, y + 0.02), (x * 0.4, 0.13)], 0.06 * h, 0.09 * h, 0.5))
        fluid = np.max(parts, axis=0) * cortex
        echo = over(echo, fluid, 0.03)
    if mass:
        body = blob(rng, mass["x"], mass["y"], mass["r"], 0.1, soft=1.2)
        echo = over(echo, np.clip(blur(body, 2.5) * 1.6, 0, 1), 0.52)
        echo = over(echo, body, 0.18)
        core = blob(rng, mass["x"], mass["y"], mass["r"] * 0.86, 0.1, soft=1.2)
        echo = over(echo, core, mass["level"] + 0.07 * texture(rng, 6))
    rock = np.zeros_like(X)
    if stone:
        rock = blob(rng, stone["x"], stone["y"], stone["r"], 0.1, 1.3)
        echo = over(echo, rock, 0.97 - 0.3 * np.clip((Y - stone["y"]) / stone["r"], 0, 1))
    return _view(rng, echo, rock, fluid * (1 - rock))


def pelvis(
    rng: np.random.Generator,
    bladder: float = 1.0,
    pouch: dict | None = None,
    cyst: dict | None = None,
    womb: bool = False,
) -> np.ndarray:
    """A full bladder in cross-section. ``pouch``: x, y, r, neck. ``cyst``: x, y, r, lace (strands of fibrin)."""
    echo = pose(rng, _wall_layers(rng, _tissue(rng, 0.42)), bend=0.02)
    b = bladder
    outline = [
        (-0.44 * b, -0.34),
        (-0.2 * b, -0.48),
        (0.22 * b, -0.48),
        (0.46 * b, -0.33),
        (0.36 * b, -0.04),
        (0, 0.06 * b),
        (-0.36 * b, -0.04),
    ]
    fluid = region(outline, 0.5)
    echo = over(echo, np.clip(blur(fluid, 2.4) * 2.4, 0, 1), 0.56)
    if womb:
        echo = over(echo, ellipse(-0.02, 0.26, 0.34, 0.185, 4, 2), 0.33 + 0.03 * texture(rng, 5))
        echo = over(echo, ellipse(-0.02, 0.26, 0.20, 0.024, 4, 2), 0.62)
    if pouch:
        body = blob(rng, pouch["x"], pouch["y"], pouch["r"], 0.06, 1.12, soft=0.5)
        link = stroke([(pouch["x"] * 0.55, -0.14), (pouch["x"], pouch["y"])], pouch["neck"], soft=0.5)
        echo = over(echo, np.clip(blur(body, 1.6) * 2.2, 0, 1), 0.58)
        fluid = np.maximum(np.maximum(fluid, body), link)
    lace = np.zeros_like(X)
    if cyst:
        state = rng.bit_generator.state
        shell = blob(rng, cyst["x"], cyst["y"], cyst["r"] + 0.03, 0.05, 1.15, soft=1)
        rng.bit_generator.state = state
        body = blob(rng, cyst["x"], cyst["y"], cyst["r"], 0.05, 1.15, soft=0.8)
        echo = over(echo, shell, 0.50)
        if cyst.get("lace"):
            net = np.exp(-((texture(rng, 9) / 0.22) ** 2)) + 0.7 * np.exp(-((texture(rng, 6) / 0.16) ** 2))
            lace = body * np.clip(net, 0, 1)
        fluid = np.maximum(fluid, body)
    echo = over(echo, fluid, 0.03 + 0.36 * lace)
    return _view(rng, echo, NOTHING, fluid * (1 - 0.6 * lace))
