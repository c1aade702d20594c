"""The embedded demo library: invented cases and schematic pictures, so that the app shows something without any data.

Everything is synthetic. ``content/`` holds the texts and what each picture shows, ``scene_*`` draw it, ``write`` lays
it out on disk like any other data set.
"""

from __future__ import annotations

from core.demo.write import generate

__all__ = ["generate"]
