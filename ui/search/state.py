"""What a session holds: its query and the case it has open. Nothing of a file's name or place, nothing on disk."""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image

from core.media.frames import Frame
from core.search.case_view import CasePicture

LONGEST = 1024
"""Longest side, in pixels, of a picture that a session holds."""

MOST_PICTURES = 20
"""Pictures of one query that a session holds: at `LONGEST` they take less than 64 MB."""


@dataclass(frozen=True, slots=True)
class Held:
    """The query: decoded pictures, the first one at full depth for the viewer, and the data set's own query they came
    from (``data_id``, collection, id), which marks hits only while that data set and task are searched."""

    images: tuple[Image.Image, ...] = ()
    frame: Frame | None = None
    query: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The case in the panel: the data set it is of (``data_id``), its pictures, and the query's picture beside them."""

    data_id: str = ""
    pictures: tuple[CasePicture, ...] = ()
    query: Frame | None = None
