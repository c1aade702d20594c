"""Near-identical pictures: 64-bit perceptual hashes (DCT, of the library ImageHash) and the bits that differ."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from core.media.thumbnails import thumbnail

NEAR = 6
"""Pictures whose hashes differ by at most this many of the 64 bits look alike.

Not a proof of one origin: among MedPix's 1,850 pictures 284 pairs of one case are this near, and 5 pairs of heads of
different cases, all at 6 bits; at 4 bits it is 164 and none.
"""

BLANK = 4.0
"""Standard deviation of the luminance (0…255) below which the bits of a hash are noise."""

KEPT = 20_000
"""Hashes that `Hashes` keeps in memory."""


def perceptual_hash(image: Image.Image) -> int | None:
    """The 64 bits of ``imagehash.phash`` as one number, most significant bit first; None for a blank picture."""
    import imagehash

    grey = image.convert("L")
    if np.asarray(grey).std() < BLANK:
        return None
    return int.from_bytes(np.packbits(imagehash.phash(grey).hash).tobytes())


def distance(a: int, b: int) -> int:
    """The number of bits in which two hashes differ, 0…64."""
    return (a ^ b).bit_count()


class Hashes:
    """Hashes of pictures by the sha256 of their bytes, the latest `KEPT` in memory. Safe to share between threads.

    Hashed is the thumbnail, which a card needs anyway: on MedPix 3.5 ms a picture that has one already (median,
    reading the file included) and never more than 2 bits from the hash of the full picture. That is below the 5 ms
    from which a store on disk would be worth its rules, and large pictures are decoded no second time.
    """

    def __init__(self, thumbnails: Path | None) -> None:
        """``thumbnails``: the folder of `core.media.thumbnails.thumbnail`, None to keep nothing on disk."""
        self._thumbnails = thumbnails
        self._known: OrderedDict[bytes, int | None] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, data: bytes) -> int | None:
        """The hash of a picture from the bytes of its file, None for a blank one; raises `PictureError`."""
        sha256 = hashlib.sha256(data)
        key = sha256.digest()
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        with Image.open(BytesIO(thumbnail(data, sha256.hexdigest(), self._thumbnails)), formats=("WEBP",)) as image:
            value = perceptual_hash(image)
        with self._lock:
            self._known[key] = value
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return value
