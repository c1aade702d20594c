"""Schematic axial CT and MR of the belly and pelvis. The patient's left is on the right of the picture."""

from __future__ import annotations

import numpy as np

from core.demo import looks
from core.demo.draw import X, Y, blob, ellipse, over, pose, region, stroke, strokes, texture

SIDE = {"left": 1.0, "right": -1.0}


def _trunk(rng: np.random.Generator, fat: float, bony: str) -> np.ndarray:
    """Skin, fat, muscle wall, spine and psoas in Hounsfield units; ``bony``: spine, iliac."""
    image = over(np.full_like(X, -1000.0), ellipse(0, 0, 0.95, 0.70), 20)
    image = over(image, ellipse(0, 0, 0.935, 0.685), -105 + 9 * texture(rng, 7))
    wall = 0.90 - 0.16 * fat
    image = over(image, ellipse(0, 0.02, wall, wall * 0.70, soft=1.5), 55 + 8 * texture(rng, 4))
    for s in (1, -1):
        back = [(s * 0.06, 0.36), (s * 0.30, 0.34), (s * 0.42, 0.46), (s * 0.28, 0.60), (s * 0.06, 0.58)]
        image = over(image, region(back, 0.8), 52 + 16 * texture(rng, 4))
    image = over(image, ellipse(0, -0.03, wall - 0.06, wall * 0.70 - 0.09, soft=1.5), -100 + 10 * texture(rng, 6))
    if bony == "iliac":
        for s in (1, -1):
            wing = [(s * 0.62, -0.12), (s * 0.70, 0.05), (s * 0.55, 0.26), (s * 0.30, 0.42)]
            image = over(
                image, stroke([(x * 0.93, y - 0.03) for x, y in wing], 0.16, 0.10, 0.8), 55 + 8 * texture(rng, 4)
            )
            image = over(image, stroke(wing, 0.07, 0.09), 520)
            image = over(image, stroke(wing, 0.03, 0.05, 0.6), 220)
    for s in (1, -1):
        image = over(
            image, ellipse(s * 0.21, 0.22, 0.095, 0.12 if bony == "spine" else 0.11, s * 20), 58 + 8 * texture(rng, 4)
        )
    body = region([(-0.14, 0.24), (-0.09, 0.13), (0.09, 0.13), (0.14, 0.24), (0.09, 0.34), (-0.09, 0.34)])
    image = over(image, body, 420)
    image = over(image, ellipse(0, 0.235, 0.112, 0.085, soft=1.5), 190 + 55 * texture(rng, 3))
    arch = strokes([([(s * 0.10, 0.34), (s * 0.13, 0.42), (0, 0.50)], 0.05, 0.05) for s in (1, -1)]
                   + [([(s * 0.11, 0.38), (s * 0.27, 0.36)], 0.05, 0.03) for s in (1, -1)]
                   + [([(0, 0.48), (0, 0.60)], 0.05, 0.03)])  # fmt: skip
    image = over(image, arch, 380)
    return over(image, ellipse(0, 0.39, 0.058, 0.048), 25)


def _vessel_pair(image: np.ndarray, blood: float) -> np.ndarray:
    image = over(image, ellipse(0.05, 0.055, 0.058, 0.056), 45 + blood)
    return over(image, ellipse(-0.10, 0.07, 0.068, 0.050, -10), 45 + blood * 0.75)


def _gut(
    rng: np.random.Generator, image: np.ndarray, spots: list, wall: float, inside: tuple[float, ...]
) -> np.ndarray:
    """Loops of bowel: ``spots`` of (x, y, radius); contents drawn from ``inside`` (Hounsfield units)."""
    for x, y, r in spots:
        stretch, turn = rng.uniform(1.0, 1.5), rng.uniform(0, 180)
        state = rng.bit_generator.state
        image = over(image, blob(rng, x, y, r, 0.16, stretch, turn, 0.4), wall)
        rng.bit_generator.state = state
        image = over(image, blob(rng, x, y, r * 0.66, 0.16, stretch, turn, 0.6), rng.choice(inside))
    return image


def _kidney(rng: np.random.Generator, image: np.ndarray, s: float, hu: float, y: float = 0.16) -> np.ndarray:
    turn = s * -25
    image = over(image, ellipse(s * 0.45, y, 0.155, 0.20, turn), hu + 6 * texture(rng, 5))
    sinus = [(s * 0.28, y - 0.05), (s * 0.38, y - 0.07), (s * 0.45, y), (s * 0.40, y + 0.08), (s * 0.30, y + 0.04)]
    return over(image, region(sinus, 0.8), -80)


def upper(
    rng: np.random.Generator, fat: float = 0.3, blood: float = 110.0, lesions: tuple[dict, ...] = (),
    stones: int = 0, stone_hu: float = 260.0,
) -> np.ndarray:  # fmt: skip
    """An axial CT slice through liver, spleen and gallbladder.

    ``lesions``: x, y, r each, in the liver; rim (HU) and core (HU) optional. ``stones``: number in the gallbladder.
    """
    image = _trunk(rng, fat, "spine")
    image = _kidney(rng, image, 1, 40 + blood, 0.22)
    image = _kidney(rng, image, -1, 40 + blood, 0.26)
    spleen = [(0.46, 0.06), (0.60, -0.06), (0.74, 0.0), (0.72, 0.18), (0.58, 0.33), (0.52, 0.22)]
    image = over(image, region(spleen, 0.5), 50 + 0.62 * blood + 5 * texture(rng, 5))
    stomach = [(0.06, -0.30), (0.30, -0.44), (0.58, -0.34), (0.64, -0.14), (0.44, -0.06), (0.22, -0.14)]
    image = over(image, region(stomach, 0.5), 75)
    cavity = region([(x * 0.93 + 0.025, y * 0.88 - 0.03) for x, y in stomach], 0.5)
    image = over(image, cavity, 18 + 12 * texture(rng, 5))
    image = over(image, cavity * np.clip((-0.27 - Y) * 90, 0, 1), -950)
    liver = [(-0.77, -0.02), (-0.68, -0.30), (-0.40, -0.46), (-0.05, -0.47), (0.18, -0.38), (0.08, -0.24),
             (-0.10, -0.16), (-0.20, -0.02), (-0.22, 0.12), (-0.36, 0.16), (-0.46, 0.34),
             (-0.62, 0.36), (-0.75, 0.18)]  # fmt: skip
    mask = region(liver, 0.5)
    image = over(image, mask, 52 + 0.5 * blood + 5 * texture(rng, 5))
    ways = [([(-0.20, -0.02), (-0.36, -0.08), (-0.52, -0.02), (-0.64, 0.06)], 0.055, 0.015),
            ([(-0.34, -0.08), (-0.40, -0.22), (-0.50, -0.32)], 0.04, 0.012),
            ([(-0.24, -0.05), (-0.16, -0.28)], 0.04, 0.01),
            ([(-0.46, 0.02), (-0.54, 0.18)], 0.03, 0.01), ([(-0.50, -0.10), (-0.66, -0.14)], 0.03, 0.01)]  # fmt: skip
    image = over(image, strokes(ways, 0.4) * mask, 52 + 0.85 * blood)
    for spot in lesions:
        image = _metastasis(rng, image, mask, spot, 52 + 0.5 * blood)
    pear = ellipse(-0.24, -0.10, 0.085, 0.13, 25)
    image = over(image, ellipse(-0.24, -0.10, 0.098, 0.143, 25), 70 + 0.2 * blood)
    image = over(image, pear, 8)
    for i in range(stones):
        x, y = -0.29 + 0.045 * (i % 4) + rng.uniform(-0.01, 0.01), 0.0 - 0.035 * (i // 4) - 0.012 * (i % 4)
        mask_s = ellipse(x, y, 0.026, 0.024) * pear
        image = over(over(image, mask_s, stone_hu), ellipse(x, y, 0.012, 0.011) * pear, stone_hu * 0.45)
    image = over(
        image, stroke([(0.06, -0.04), (0.2, -0.02), (0.36, 0.02), (0.48, 0.06)], 0.10, 0.07, 0.5), 45 + 0.5 * blood
    )
    image = _vessel_pair(image, blood * 1.15)
    return looks.ct(rng, pose(rng, image, bend=0.016), looks.SOFT, 15)


def _metastasis(rng: np.random.Generator, image: np.ndarray, liver: np.ndarray, spot: dict, hu: float) -> np.ndarray:
    x, y, r = spot["x"], spot["y"], spot["r"]
    state = rng.bit_generator.state
    image = over(image, blob(rng, x, y, r * 1.08, 0.12, 1.1, 20, 0.8) * liver, spot.get("rim", hu - 18))
    rng.bit_generator.state = state
    image = over(
        image, blob(rng, x, y, r * 0.86, 0.12, 1.1, 20, 1.2) * liver, spot.get("mid", hu - 48) + 5 * texture(rng, 4)
    )
    return over(image, blob(rng, x, y, r * 0.42, 0.25, 1.1, 20, 1.2) * liver, spot.get("core", hu - 62))


def middle(
    rng: np.random.Generator, fat: float = 0.3, blood: float = 110.0, mass: dict | None = None,
    hydro: dict | None = None,
) -> np.ndarray:  # fmt: skip
    """An axial CT slice through the kidneys. ``mass``: side, x, y, r, kind (solid or necrotic). ``hydro``: side, size,
    stone (radius)."""
    image = _trunk(rng, fat, "spine")
    liver = [
        (-0.77, -0.02),
        (-0.70, -0.26),
        (-0.55, -0.30),
        (-0.50, -0.10),
        (-0.58, 0.08),
        (-0.68, 0.20),
        (-0.76, 0.14),
    ]
    image = over(image, region(liver, 0.5), 55 + 0.45 * blood + 5 * texture(rng, 5))
    spots = [(-0.30, -0.30, 0.10), (-0.08, -0.36, 0.085), (0.12, -0.30, 0.085), (0.34, -0.32, 0.09),
             (0.52, -0.20, 0.085), (0.24, -0.14, 0.07), (-0.16, -0.16, 0.075),
             (0.02, -0.15, 0.065)]  # fmt: skip
    drunk = 160.0 if blood else 35.0  # contrast medium to drink only where it is also given into a vein
    image = _gut(rng, image, spots, 60 + 0.3 * blood, (15.0, 25.0, drunk))
    image = _gut(rng, image, [(0.66, 0.02, 0.075), (-0.46, -0.18, 0.08)], 55, (-700.0, -400.0))
    for s in (1, -1):
        image = _kidney(rng, image, s, 38 + blood * 1.05, 0.16)
    if hydro:
        image = _hydronephrosis(rng, image, SIDE[hydro["side"]], hydro)
    if mass:
        image = _tumour(rng, image, SIDE[mass["side"]], mass, blood)
    image = _vessel_pair(image, blood * 1.1)
    window = looks.SOFT if blood else (25, 190)  # without contrast medium a narrower window tells water from kidney
    return looks.ct(rng, pose(rng, image, bend=0.016), window, 13 if blood else 9)


def _hydronephrosis(rng: np.random.Generator, image: np.ndarray, s: float, hydro: dict) -> np.ndarray:
    """A wide pelvis and calyces in water density, stranding of the fat, a stone at the outlet."""
    size = hydro["size"]
    hair = [([(s * (0.45 + 0.2 * np.cos(a)), 0.16 + 0.2 * np.sin(a)),
              (s * (0.47 + 0.3 * np.cos(a + 0.2)), 0.16 + 0.27 * np.sin(a + 0.2))],
             0.014, 0.006) for a in np.arange(6) * 0.75 + rng.uniform(0, 0.4)]  # fmt: skip
    image = over(image, strokes(hair, 0.6), 10, 0.7)
    pelvis = [(s * 0.20, 0.10), (s * 0.30, 0.16 - 0.09 * size), (s * 0.44, 0.16 - 0.10 * size),
              (s * 0.46, 0.16 + 0.10 * size), (s * 0.30, 0.18 + 0.06 * size)]  # fmt: skip
    image = over(image, region(pelvis, 0.5), 2)
    for a in (-1.1, 0.0, 1.0):
        image = over(
            image, ellipse(s * (0.42 + 0.09 * np.cos(a)), 0.16 + 0.12 * np.sin(a), 0.048 * size, 0.042 * size), 2
        )
    image = over(image, stroke([(s * 0.22, 0.10), (s * 0.17, 0.12)], 0.07 * size, 0.05), 2)
    return over(image, blob(rng, s * 0.20, 0.105, hydro["stone"], 0.15, 1.2), 900)


def _tumour(rng: np.random.Generator, image: np.ndarray, s: float, mass: dict, blood: float) -> np.ndarray:
    x, y, r = s * mass["x"], mass["y"], mass["r"]
    state = rng.bit_generator.state
    image = over(image, blob(rng, x, y, r * 1.06, 0.08, soft=0.6), 30 + blood)
    rng.bit_generator.state = state
    image = over(
        image, blob(rng, x, y, r * 0.98, 0.08, soft=0.6), 32 + 0.55 * blood + (12 + 0.08 * blood) * texture(rng, 7)
    )
    if mass["kind"] == "necrotic":
        image = over(image, blob(rng, x, y, r * 0.55, 0.35, soft=2), 18 + 6 * texture(rng, 5))
        veins = [([(x + r * np.cos(a), y + r * np.sin(a)),
                   (x + 1.3 * r * np.cos(a + 0.2), y + 1.3 * r * np.sin(a + 0.2))], 0.022, 0.01)
                 for a in rng.uniform(0, 6.28, 5)]  # fmt: skip
        image = over(image, strokes(veins, 0.4), 40 + 0.8 * blood, 0.8)
    return image


def lower(
    rng: np.random.Generator, fat: float = 0.3, blood: float = 90.0, appendix: dict | None = None,
    dilated: dict | None = None,
) -> np.ndarray:  # fmt: skip
    """An axial CT slice between kidneys and pelvis. ``appendix``: r (outer radius), stone, kind (tube, ring, abscess).
    ``dilated``: loops of small bowel full of fluid: r, air (share of each loop)."""
    image = _trunk(rng, fat, "iliac")
    if dilated:
        spots = [
            (-0.38, -0.24),
            (-0.10, -0.30),
            (0.18, -0.30),
            (0.44, -0.20),
            (-0.22, -0.04),
            (0.30, -0.02),
            (0.05, -0.08),
        ]
        for x, y in spots:
            r = dilated["r"] * rng.uniform(0.88, 1.1)
            stretch, turn = rng.uniform(1.0, 1.25), rng.uniform(-30, 30)
            x, y = x + rng.uniform(-0.02, 0.02), y + rng.uniform(-0.02, 0.02)
            image = over(image, ellipse(x, y, r * stretch, r, turn), 50 + 0.6 * blood)
            lumen = ellipse(x, y, r * stretch - 0.016, r - 0.016, turn)
            folds = np.clip(np.cos((X * np.cos(turn) + Y * np.sin(turn) - x) * 2 * np.pi / 0.055) * 5 - 4.2, 0, 1)
            rim = np.clip(lumen - ellipse(x, y, r * stretch * 0.70, r * 0.70, turn, soft=3), 0, 1)
            image = over(over(image, lumen, 14 + 5 * texture(rng, 5)), rim * folds, 50 + 0.5 * blood, 0.7)
            image = over(image, lumen * np.clip((y - r + 2 * r * dilated["air"] - Y) * 120, 0, 1), -900)
        image = _gut(rng, image, [(-0.56, 0.06, 0.06), (0.60, 0.06, 0.05), (0.10, 0.10, 0.04)], 60, (20.0, 40.0))
    else:
        spots = [(-0.18, -0.26, 0.085), (0.02, -0.33, 0.08), (0.20, -0.24, 0.085), (0.38, -0.30, 0.08),
                 (0.06, -0.15, 0.07), (0.30, -0.10, 0.075), (0.46, -0.12, 0.07)]  # fmt: skip
        image = _gut(rng, image, spots, 55 + 0.35 * blood, (15.0, 25.0, 190.0))
        image = _gut(rng, image, [(-0.50, -0.16, 0.115)], 58, (-350.0,))
        image = _gut(rng, image, [(0.60, 0.06, 0.065)], 58, (-600.0,))
    if appendix:
        image = _appendix(rng, image, appendix, blood)
    image = _vessel_pair(image, blood)
    return looks.ct(rng, pose(rng, image, bend=0.016), looks.SOFT, 15)


def _appendix(rng: np.random.Generator, image: np.ndarray, a: dict, blood: float) -> np.ndarray:
    """A thick, enhancing appendix behind the caecum with stranded fat; ``abscess``: a rim with fluid and gas."""
    x, y, r = -0.40, 0.05, a["r"]
    haze = blob(rng, x, y, r * 2.6, 0.3, 1.2, soft=4)
    image = over(image, haze * (0.55 + 0.25 * texture(rng, 6)).clip(0, 0.9) * (image < -60), -15)
    if a["kind"] == "abscess":
        state = rng.bit_generator.state
        image = over(image, blob(rng, x - 0.02, y, r * 1.9, 0.2, 1.2, -20, 0.5), 50 + 0.75 * blood)
        rng.bit_generator.state = state
        pool = blob(rng, x - 0.02, y, r * 1.9 - 0.032, 0.2, 1.2, -20, 0.8)
        image = over(image, pool, 16 + 4 * texture(rng, 5))
        return over(
            over(image, pool * np.clip((y - r * 0.9 - Y) * 80, 0, 1), -850),
            ellipse(x + 0.02, y + 0.04, 0.028, 0.024),
            420,
        )
    if a["kind"] == "tube":
        line = [(x - 0.08, y - 0.10), (x - 0.03, y + 0.02), (x + 0.06, y + 0.06), (x + 0.16, y - 0.01)]
        image = over(image, stroke(line, 2 * r, 2 * r, 0.4), 52 + 0.75 * blood)
        image = over(image, stroke(line, r * 1.05, r * 1.05, 0.4), 14)
    else:
        image = over(image, ellipse(x, y, r * 1.1, r, 15), 52 + 0.75 * blood)
        image = over(image, ellipse(x, y, r * 0.62, r * 0.55, 15), 14)
    return over(image, ellipse(x + a["stone"], y + 0.02, 0.026, 0.022), 480) if "stone" in a else image
