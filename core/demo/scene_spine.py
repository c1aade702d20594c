"""Schematic spine: sagittal MR, CT and lateral radiographs, and an axial MR of a lumbar disc.

In sagittal pictures the front of the body is on the left; in the axial one the patient's left is on the right.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from core.demo import looks
from core.demo.draw import X, Y, blob, blur, coverage, ellipse, over, pose, region, stroke, strokes, texture

SIDE = {"left": 1.0, "right": -1.0}

TISSUE = {
    "t1": {"fat": 0.85, "muscle": 0.30, "marrow": 0.56, "cortex": 0.05, "disc": 0.33, "nucleus": 0.36, "csf": 0.13,
           "cord": 0.40, "vessel": 0.06, "lesion": 0.20, "belly": 0.42, "grain": 0.03},
    "t2": {"fat": 0.72, "muscle": 0.20, "marrow": 0.44, "cortex": 0.04, "disc": 0.14, "nucleus": 0.72, "csf": 0.96,
           "cord": 0.40, "vessel": 0.04, "lesion": 0.30, "belly": 0.40, "grain": 0.03},
    "stir": {"fat": 0.09, "muscle": 0.17, "marrow": 0.16, "cortex": 0.03, "disc": 0.12, "nucleus": 0.62, "csf": 0.96,
             "cord": 0.34, "vessel": 0.04, "lesion": 0.80, "belly": 0.26, "grain": 0.025},
    "ct": {"fat": -100, "muscle": 60, "marrow": 260, "cortex": 780, "disc": 90, "nucleus": 80, "csf": 10, "cord": 35,
           "vessel": 50, "lesion": 1000, "belly": 20, "grain": 14},
}  # fmt: skip

REGIONS = {
    "lumbar": (("T12", "L1", "L2", "L3", "L4", "L5", "S1", "S2", "S3"),
               (8, 7, 5, 1, -5, -14, -36, -52, -62), 0.152, 0.098, -0.93),
    "thoracic": (("T6", "T7", "T8", "T9", "T10", "T11", "T12", "L1"),
                 (-13, -10, -6, -2, 2, 6, 9, 9), 0.125, 0.088, -0.98),
    "cervical": (("C2", "C3", "C4", "C5", "C6", "C7", "T1", "T2"),
                 (10, 8, 4, -1, -6, -11, -16, -18), 0.108, 0.079, -0.66),
}  # fmt: skip
"""Levels from the top down, the tilt of each in degrees, half depth, half height, where the first one lies."""


@dataclass
class Body:
    """One vertebral body: its centre, tilt (radians), half depth, half height in front and behind, and its dent."""

    x: float
    y: float
    tilt: float
    a: float
    front: float
    back: float
    dent: float

    def at(self, u: float, v: float) -> tuple[float, float]:
        """The point ``u`` half depths backwards and ``v`` half heights down."""
        h = self.front + (self.back - self.front) * (u + 1) / 2
        c, s = np.cos(self.tilt), np.sin(self.tilt)
        return self.x + u * self.a * c - v * h * s, self.y + u * self.a * s + v * h * c

    def outline(self, grow: float = 1.0) -> list[tuple[float, float]]:
        """The outline; the upper endplate sinks by ``dent``."""
        top = -1 + self.dent
        points = [(-0.97, -1), (-0.6, (top - 1) / 2), (0, top + 0.05), (0.6, (top - 1) / 2), (0.97, -1), (0.93, -0.5),
                  (0.92, 0.5), (0.97, 1), (0.5, 0.95), (0, 0.92), (-0.5, 0.95), (-0.97, 1), (-0.91, 0.5),
                  (-0.91, -0.5)]  # fmt: skip
        return [self.at(u * grow, v * grow) for u, v in points]


def _chain(rng: np.random.Generator, part: str, slips: dict, crush: dict) -> dict[str, Body]:
    """The bodies of one region from the top down. ``slips``: level -> forward slip in depths of a body, carrying all
    above; ``crush``: level -> (front, back, dent) left of the height."""
    names, tilts, a, h, y = REGIONS[part]
    sway, x = rng.uniform(0.8, 1.15), 0.0
    bodies: dict[str, Body] = {}
    for i, name in enumerate(names):
        front, back, dent = crush.get(name, (1.0, 1.0, 0.0))
        size = 0.9 + 0.1 * min(i / 4, 1)
        if name in ("S2", "S3"):
            size *= 0.78
        body = Body(x, y, np.radians(tilts[i] * sway), a * size, h * size * front, h * size * back, dent)
        if bodies:
            last = list(bodies.values())[-1]
            gap = 0.30 * h if name in ("S2", "S3") else 0.62 * h
            step = (last.front + last.back) / 2 + gap / 2
            half = (body.front + body.back) / 2 + gap / 2
            body.x = last.x - np.sin(last.tilt) * step - np.sin(body.tilt) * half
            body.y = last.y + np.cos(last.tilt) * step + np.cos(body.tilt) * half
        x, y = body.x, body.y
        bodies[name] = body
    for level, slip in slips.items():
        for name in names[: names.index(level) + 1]:
            bodies[name].x -= slip * 2 * a * np.cos(bodies[level].tilt)
            bodies[name].y -= slip * 2 * a * np.sin(bodies[level].tilt)
    middle = np.mean([b.x for b in bodies.values() if b.y < 0.8])
    for b in bodies.values():
        b.x += -0.12 - middle
    return bodies


def _disc(upper: Body, lower: Body, bulge: float = 0.0, shrink: float = 1.0) -> list[tuple[float, float]]:
    low, high = (
        [upper.at(u * shrink, 1 / shrink**0.5) for u in (-0.92, 0, 0.92)],
        [lower.at(u * shrink, -1 / shrink**0.5) for u in (0.92, 0, -0.92)],
    )
    back = ((low[2][0] + high[0][0]) / 2 + bulge, (low[2][1] + high[0][1]) / 2)
    front = ((low[0][0] + high[2][0]) / 2 - 0.012, (low[0][1] + high[2][1]) / 2)
    return [*low, back, *high, front]


def _canal(bodies: dict[str, Body], offset: float) -> list[tuple[float, float]]:
    """Points ``offset`` behind the bodies, from above the picture to below the last body."""
    points = [
        (b.at(1.0, 0)[0] + offset * np.cos(b.tilt), b.at(1.0, 0)[1] + offset * np.sin(b.tilt)) for b in bodies.values()
    ]
    first = points[0]
    return [(first[0] + 0.04, first[1] - 0.5), (first[0] + 0.01, first[1] - 0.2), *points]


def sagittal(
    rng: np.random.Generator, look: str, part: str = "lumbar", hernia: tuple[dict, ...] = (),
    worn: tuple[str, ...] = (), slips: dict | None = None, crush: dict | None = None, edema: tuple[str, ...] = (),
    spots: tuple[dict, ...] = (), epidural: dict | None = None, pars: str | None = None,
) -> np.ndarray:  # fmt: skip
    """A sagittal slice, or a lateral radiograph for ``look`` xray.

    ``hernia``: level above the disc, size, drop. ``worn``: levels whose disc below has lost water. ``slips``,
    ``crush``: see ``_chain``. ``edema``: levels with a band under the upper endplate. ``spots``: level, u, v, r (in
    half depths; r above 1 replaces the body). ``epidural``: level and size of a mass in the canal. ``pars``: level
    whose arch stays behind.
    """
    bodies = _chain(rng, part, slips or {}, crush or {})
    if look == "xray":
        return _lateral(rng, bodies, slips or {}, pars)
    t = TISSUE[look]
    g = t["grain"]
    image = np.full_like(X, t["belly"]) + 2.5 * g * texture(rng, 9) + 2 * g * texture(rng, 20)
    front = _canal(bodies, -2.25 * REGIONS[part][2] - 0.07)
    image = over(image, stroke(front, 0.16, 0.10, 1), t["fat"], 0.7)
    if part != "cervical":
        image = over(image, stroke([(x - 0.13, y) for x, y in front[:7]], 0.15, 0.12, 0.8), t["vessel"])
    else:
        image = over(
            image, stroke([(x - 0.16, y) for x, y in front], 0.11, 0.11, 0.8), t["vessel"] if look != "ct" else -900
        )
    back = _canal(bodies, 0.30)
    flesh = region([*back, (0.9, 1.2), (1.2, 1.2), (1.2, -1.2), (back[0][0], -1.5)], 1)
    image = over(image, flesh, t["muscle"] + 2.2 * g * texture(rng, 5))
    skin = [(x + 0.36 + 0.05 * np.sin(2 * y), y) for x, y in back]
    rear = region([*skin, (1.2, 1.3), (1.4, -1.3), (skin[0][0], -1.5)], 1)
    image = over(image, rear, t["fat"] + g * texture(rng, 8))
    image = over(image, coverage(0.78 - X, 1), 0 if look != "ct" else -1000)
    image = _arches(image, t, bodies, pars, slips or {}, part)
    image = _cord(rng, image, t, bodies, part)
    for b in bodies.values():
        image = over(image, region(b.outline(1.08), 0.4), t["cortex"])
        image = over(
            image, region(b.outline(0.94), 0.5), t["marrow"] + (3 if look == "ct" else 1.2) * g * texture(rng, 4)
        )
        vein = stroke([b.at(0.35, 0.0), b.at(0.9, 0.0)], 0.022, 0.04, 0.6)
        image = over(image, vein, t["csf"] if look != "ct" else 120, 0.35)
    names = list(bodies)
    for upper, lower in pairwise(names):
        image = _draw_disc(image, t, bodies[upper], bodies[lower], upper in worn or upper in ("S1", "S2"))
    for name in edema:
        b = bodies[name]
        band = stroke([b.at(-0.9, -0.45), b.at(0, -0.25 + b.dent), b.at(0.9, -0.45)], b.front * 0.9, soft=1.5)
        image = over(image, band * region(b.outline(0.94), 0.5), t["lesion"], 0.9)
        line = stroke([b.at(-0.8, -0.45), b.at(0, -0.35 + b.dent), b.at(0.8, -0.45)], 0.016, soft=0.4)
        image = over(image, line, t["cortex"], 0.8)
    for p in spots:
        b = bodies[p["level"]]
        x, y = b.at(p.get("u", 0.0), p.get("v", 0.0))
        mask = blob(rng, x, y, p["r"] * b.a, 0.2, soft=1.2) * region(b.outline(0.96), 0.5)
        image = over(image, mask, p.get("value", t["lesion"]) + 1.5 * g * texture(rng, 4), 0.95)
    for h in hernia:
        image = _hernia(rng, image, t, bodies, h)
    if epidural:
        b = bodies[epidural["level"]]
        x, y = b.at(1.22, 0.1)
        mass = blob(rng, x, y, epidural["size"], 0.14, 0.62, np.degrees(b.tilt), 0.8)
        image = over(image, mass, t["lesion"] * 1.15 + g * texture(rng, 5))
    image = pose(rng, image, turn=2.5, bend=0.008, room=0.88)
    return looks.ct(rng, image, looks.BONE, 30) if look == "ct" else looks.mr(rng, image, 0.022)


def _arches(
    image: np.ndarray, t: dict[str, float], bodies: dict[str, Body], pars: str | None, slips: dict, part: str
) -> np.ndarray:
    """Spinous processes behind the canal with fat between them."""
    width = {"lumbar": 0.13, "thoracic": 0.085, "cervical": 0.07}[part]
    depth = {"lumbar": 0.30, "thoracic": 0.30, "cervical": 0.24}[part]
    for name, b in bodies.items():
        stay = slips.get(name, 0.0) * 2 * b.a if name == pars else 0.0
        x, y = b.at(1.0, 0.55)
        x, y = x + 0.20 + stay, y + 0.03
        if name in ("S1", "S2", "S3"):
            continue
        drop = 0.10 if part == "lumbar" else 0.16 if part == "thoracic" else 0.10
        line = [(x, y), (x + depth * 0.5, y + drop * 0.6), (x + depth, y + drop)]
        image = over(image, stroke([(x - 0.01, y - 0.10), (x + 0.10, y - 0.08)], 0.09, 0.03, 1), t["fat"], 0.8)
        image = over(image, stroke(line, width, width * 1.15), t["cortex"])
        image = over(image, stroke(line, width * 0.66, width * 0.8, 0.5), t["marrow"])
    return image


def _cord(
    rng: np.random.Generator, image: np.ndarray, t: dict[str, float], bodies: dict[str, Body], part: str
) -> np.ndarray:
    """The dural sac with the cord, or below L1 the roots of the cauda equina."""
    middle = _canal(bodies, 0.10)
    image = over(image, stroke(middle, 0.215, 0.13, 0.6), t["fat"])
    image = over(image, stroke(middle, 0.165, 0.06, 0.5), t["csf"])
    cord = _canal(bodies, 0.115)
    if part != "lumbar":
        return over(image, stroke(cord, 0.085, 0.075, 0.8), t["cord"])
    image = over(image, stroke(cord[:4], 0.095, 0.03, 0.8), t["cord"])
    roots = [([(x + k, y) for x, y in cord[3:9]], 0.010, 0.005) for k in (-0.012, 0.012, 0.034)]
    return over(image, strokes(roots, 0.4), t["cord"], 0.75)


def _draw_disc(image: np.ndarray, t: dict[str, float], upper: Body, lower: Body, dry: bool) -> np.ndarray:
    image = over(image, region(_disc(upper, lower, 0.014), 0.5), t["disc"])
    if dry:
        return image
    a, b = upper.at(-0.1, 1.0), lower.at(-0.1, -1.0)
    gap = np.hypot(a[0] - b[0], a[1] - b[1])
    tilt = np.degrees((upper.tilt + lower.tilt) / 2)
    core = ellipse((a[0] + b[0]) / 2, (a[1] + b[1]) / 2, upper.a * 0.66, max(gap * 0.36, 0.012), tilt, 1.5)
    return over(image, core, t["nucleus"])


def _hernia(
    rng: np.random.Generator, image: np.ndarray, t: dict[str, float], bodies: dict[str, Body], h: dict
) -> np.ndarray:
    """Disc material behind the disc below ``level``: a dark cap pressing on the sac, sinking by ``drop``."""
    names = list(bodies)
    upper, lower = bodies[h["level"]], bodies[names[names.index(h["level"]) + 1]]
    (ax, ay), (bx, by) = upper.at(0.95, 1.0), lower.at(0.95, -1.0)
    x, y, size = (ax + bx) / 2, (ay + by) / 2, h["size"]
    tip = (x + size, y + h.get("drop", 0.0))
    neck = stroke([(x - 0.06, y), (x + size * 0.35, y + 0.2 * h.get("drop", 0.0)), tip], 0.055, size * 1.05, 0.5)
    return over(over(image, np.clip(blur(neck, 1.2) * 1.5, 0, 1), t["cortex"]), neck, t["disc"] * 1.7)


def _lateral(rng: np.random.Generator, bodies: dict[str, Body], slips: dict, pars: str | None) -> np.ndarray:
    """A lateral radiograph of the same chain: body rims, arches, ribs, pelvis."""
    image = 0.34 + 0.10 * np.exp(-(((X - 0.05) / 0.5) ** 2)) + 0.02 * texture(rng, 30) + 0.012 * texture(rng, 9)
    image = image - 0.10 * coverage(Y + 0.78 + 0.3 * X, 8) - 0.20 * coverage(0.62 - X - 0.06 * np.sin(3 * Y), 8)
    for name, b in bodies.items():
        solid = region(b.outline(), 0.5)
        rim = np.clip(solid - region(b.outline(0.90), 0.7), 0, 1)
        sacral = name in ("S1", "S2", "S3")
        image = image + (0.12 if not sacral else 0.09) * solid + 0.15 * rim + 0.02 * solid * texture(rng, 3)
        if sacral:
            continue
        stay = slips.get(name, 0.0) * 2 * b.a if name == pars else 0.0
        (px, py), (x, y) = b.at(0.95, -0.45), b.at(1.0, 0.4)
        root = [(px, py), (px + 0.13 + stay * 0.5, py + 0.02)]
        facet = [(px + 0.13 + stay * 0.5, py - 0.05), (px + 0.15 + stay, py + 0.13), (px + 0.12 + stay, py + 0.22)]
        spine = [(x + 0.16 + stay, y + 0.03), (x + 0.38 + stay, y + 0.11)]
        arch = strokes([(root, 0.09, 0.075), (facet, 0.07, 0.05), (spine, 0.12, 0.13)], 0.6)
        image = image + 0.09 * arch + 0.07 * np.clip(arch - blur(arch, 1.8), 0, 1)
    for k in (0, 0.06):
        crest = [(-0.42 + k, 0.95), (-0.30 + k, 0.66), (0.05 + k, 0.50), (0.40 + k, 0.62)]
        image = image + 0.07 * stroke(crest, 0.04, soft=0.7) + 0.05 * region([*crest, (0.4, 1.2), (-0.42, 1.2)], 2)
        rib = [(0.55, -1.05 + k), (0.1, -0.86 + k), (-0.25, -0.62 + 2 * k)]
        image = image + 0.05 * stroke(rib, 0.05, 0.03, 0.6)
    return looks.xray(rng, pose(rng, image, turn=2.5, bend=0.008, room=0.97), 1.4)


def axial(rng: np.random.Generator, side: str, size: float = 0.13) -> np.ndarray:
    """An axial T2 slice through a lumbar disc with a paracentral extrusion on one ``side``."""
    t = TISSUE["t2"]
    s, g = SIDE[side], t["grain"]
    image = over(np.zeros_like(X), ellipse(0, 0.1, 1.1, 0.92), t["fat"] + g * texture(rng, 8))
    image = over(
        image,
        region([(-0.9, -0.5), (0, -0.72), (0.9, -0.5), (0.95, -1.1), (-0.95, -1.1)], 2),
        t["belly"] + 3 * g * texture(rng, 8),
    )
    for k in (1, -1):
        image = over(image, ellipse(k * 0.55, -0.16, 0.20, 0.27, k * 12, 1), t["muscle"] + 1.6 * g * texture(rng, 4))
        loin = [
            (k * 0.12, 0.40),
            (k * 0.36, 0.26),
            (k * 0.78, 0.36),
            (k * 0.84, 0.66),
            (k * 0.46, 0.82),
            (k * 0.10, 0.78),
        ]
        image = over(image, region(loin, 0.8), t["muscle"] + 3.0 * g * texture(rng, 4))
    image = over(image, ellipse(0.12, -0.56, 0.10, 0.09), t["vessel"])
    image = over(image, ellipse(-0.13, -0.54, 0.11, 0.08), t["vessel"] + 0.05)
    image = over(image, ellipse(0, -0.18, 0.37, 0.29), t["disc"])
    image = over(image, ellipse(0, -0.19, 0.24, 0.17, soft=5), t["nucleus"] * 0.55)
    sac = region([(-0.17, 0.12), (0.17, 0.12), (0.15, 0.26), (0, 0.36), (-0.15, 0.26)], 0.6)
    image = over(image, sac, t["csf"])
    dots = [ellipse(0.13 * np.cos(a) * r, 0.22 + 0.08 * np.sin(a) * r, 0.013, 0.013)
            for a, r in zip(np.arange(11) * 2.4, np.linspace(0.2, 1, 11), strict=True)]  # fmt: skip
    image = over(image, np.max(dots, axis=0), t["cord"], 0.8)
    for k in (1, -1):
        joint = [(k * 0.22, 0.20), (k * 0.33, 0.26), (k * 0.32, 0.40)]
        image = over(image, stroke(joint, 0.14, 0.12), t["cortex"])
        image = over(image, stroke(joint, 0.06, 0.05, 0.5), t["marrow"])
        image = over(image, stroke([(k * 0.27, 0.22), (k * 0.28, 0.36)], 0.014, soft=0.3), t["csf"], 0.7)
        image = over(image, stroke([(k * 0.26, 0.42), (0, 0.52)], 0.09, 0.10), t["cortex"])
        image = over(image, stroke([(k * 0.2, 0.44), (0, 0.52)], 0.03, 0.04, 0.4), t["marrow"])
        image = over(image, ellipse(k * 0.40, 0.10, 0.055, 0.05, soft=1.2), t["cord"])
    image = over(image, stroke([(0, 0.50), (0, 0.74)], 0.09, 0.06), t["cortex"])
    image = over(image, stroke([(0, 0.52), (0, 0.72)], 0.045, 0.03, 0.4), t["marrow"])
    plug = blob(rng, s * 0.12, 0.13, size, 0.12, 1.15, s * 15, 0.6)
    image = over(image, np.clip(blur(plug, 1.2) * 1.4, 0, 1), t["cortex"])
    image = over(image, plug, t["disc"] * 1.8)
    return looks.mr(rng, pose(rng, image, bend=0.012), 0.022)
