"""What a modality makes of a drawing: CT windows, MR signal, radiographic exposure, the ultrasound sector.

Every function takes and returns ``[WORK, WORK]`` float64; the result is grey, 0…1, ready for ``draw.finished``.
"""

from __future__ import annotations

import numpy as np

from core.demo.draw import SIZE, WORK, X, Y, blur, grain, sample, texture

BRAIN, SOFT, LUNG, BONE = (38, 90), (45, 380), (-550, 1500), (300, 1150)
"""CT windows: centre and width in Hounsfield units."""


def ct(rng: np.random.Generator, hounsfield: np.ndarray, window: tuple[float, float], noise: float) -> np.ndarray:
    """A CT slice: ``hounsfield`` units seen through a window, with reconstruction noise of ``noise`` units."""
    mottle = 0.7 * grain(rng) + 0.4 * texture(rng, 3.0)
    centre, width = window
    return np.clip((blur(hounsfield, 0.55) + noise * mottle - centre) / width + 0.5, 0, 1)


def mr(rng: np.random.Generator, signal: np.ndarray, noise: float = 0.03) -> np.ndarray:
    """An MR slice: ``signal`` 0…1 under an uneven coil field, with Rician noise of ``noise``."""
    field = 1 + 0.05 * texture(rng, 110)
    real, imaginary = noise * grain(rng), noise * grain(rng)
    return np.clip(np.hypot(blur(signal, 0.6) * field + real, imaginary), 0, 1)


def xray(rng: np.random.Generator, shadow: np.ndarray, contrast: float = 1.0, noise: float = 0.014) -> np.ndarray:
    """A radiograph: ``shadow`` is the brightness of summed attenuation, 0…1; corners fall off a little."""
    seen = 0.5 + (blur(shadow, 0.6) - 0.5) * contrast
    mottle = noise * (grain(rng) + 0.5 * texture(rng, 3.0))
    return np.clip((seen + mottle) * (1 - 0.12 * np.clip(np.hypot(X, Y) - 0.6, 0, 1) ** 1.5), 0, 1)


class Sector:
    """The field of view of a curved ultrasound probe above the picture, ``half`` degrees to each side."""

    def __init__(self, half: float = 29.0, top: float = 0.32, bottom: float = 2.1) -> None:
        self.apex, self.top, self.bottom = -1.27, top, bottom
        self.half = np.radians(half)
        self.radius = np.hypot(X, Y - self.apex)
        self.angle = np.arctan2(X, Y - self.apex)
        self._row = (self.radius - top) / (bottom - top) * (SIZE - 1)
        self._column = (self.angle / self.half + 1) / 2 * (SIZE - 1)
        r = np.linspace(top, bottom, SIZE)[:, None]
        a = np.linspace(-self.half, self.half, SIZE)[None, :]
        self._rows = (r * np.cos(a) + self.apex + 1) / 2 * WORK - 0.5
        self._columns = (r * np.sin(a) + 1) / 2 * WORK - 0.5

    def behind(self, mask: np.ndarray) -> np.ndarray:
        """How much of ``mask`` lies between the probe and each pixel: the summed length along its ray."""
        passed = np.cumsum(sample(mask, self._rows, self._columns), axis=0) * (self.bottom - self.top) / SIZE
        return sample(passed, self._row, self._column)

    def view(self, rng: np.random.Generator, echo: np.ndarray, stones: np.ndarray, fluid: np.ndarray) -> np.ndarray:
        """An ultrasound picture of ``echo`` (0 black … 1 bright): speckle, shadows behind ``stones``, gain behind
        ``fluid``, all inside the sector."""
        speckle = np.hypot(grain(rng, 1, 5), grain(rng, 1, 5))[::2, ::2] / 1.25
        spots = np.clip(np.log(np.maximum(sample(speckle, self._row, self._column), 0.08)), -1.6, 1.0)
        depth = (self.radius - self.top) / (self.bottom - self.top)
        lit = (
            echo
            + 0.24 * np.minimum(self.behind(fluid), 0.7) * (1 - fluid)
            - 0.10 * depth**2
            + 0.10 * np.exp(-depth * 25)
        )
        lit = lit * (1 - 0.88 * np.clip(self.behind(stones * (1 - fluid)) / 0.03, 0, 1) * (1 - stones))
        grey = lit + 0.17 * spots * np.clip(lit * 1.6, 0.08, 0.8)
        edge = np.clip((self.half - np.abs(self.angle)) * self.radius * 120, 0, 1)
        edge = edge * np.clip((self.radius - self.top) * 90, 0, 1) * np.clip((self.bottom - self.radius) * 90, 0, 1)
        return np.clip(blur(np.clip(grey, 0.015, 1), 0.55), 0, 1) * edge
