"""The table of scenes: a name in the content, the function that draws it, the size of its picture in pixels."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from PIL import Image

from core.demo import scene_belly, scene_chest, scene_head, scene_pelvis, scene_sound, scene_spine
from core.demo.draw import finished

SCENES = {
    "belly.upper": (scene_belly.upper, 256, 192),
    "belly.middle": (scene_belly.middle, 256, 192),
    "belly.lower": (scene_belly.lower, 256, 192),
    "chest.frontal": (scene_chest.frontal, 256, 256),
    "chest.axial": (scene_chest.axial, 256, 192),
    "head.axial": (scene_head.axial, 208, 256),
    "head.coronal": (scene_head.coronal, 208, 256),
    "pelvis.axial": (scene_pelvis.axial, 256, 192),
    "pelvis.abdomen": (scene_pelvis.abdomen, 224, 256),
    "pelvis.cystogram": (scene_pelvis.cystogram, 224, 256),
    "sound.gallbladder": (scene_sound.gallbladder, 256, 240),
    "sound.liver": (scene_sound.liver, 256, 240),
    "sound.appendix": (scene_sound.appendix, 256, 240),
    "sound.kidney": (scene_sound.kidney, 256, 240),
    "sound.pelvis": (scene_sound.pelvis, 256, 240),
    "spine.sagittal": (scene_spine.sagittal, 192, 256),
    "spine.axial": (scene_spine.axial, 256, 224),
}


def picture(scene: str, seed: str, parameters: dict[str, Any]) -> Image.Image:
    """The grey picture of ``scene``; the same ``seed`` (an id) and parameters give the same pixels.

    The longest side has 256 pixels. Raises ``ValueError`` for a scene that the table lacks.
    """
    if scene not in SCENES:
        raise ValueError(f"No scene is called {scene!r}; use one of {', '.join(SCENES)}.")
    draw, width, height = SCENES[scene]
    return finished(draw(np.random.default_rng(zlib.crc32(seed.encode())), **parameters), width, height)
