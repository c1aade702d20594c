"""How each model looks in every figure: colour, pattern and mark, so that hue never tells two apart alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.figures import style
from core.models.specs import SPECS

SIXTH = "#7B61A8"
"""The colour of the first model that the registry does not know."""

MOST = 6
"""Models with a colour of their own."""

PATTERNS = ("", "/", "x", "-", ".", "\\", "|", "+")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon", "triangle-down", "bowtie")


@dataclass(frozen=True, slots=True)
class Face:
    """``colour`` of the fill, ``pattern`` of its area (`marker.pattern.shape`), ``symbol`` of a mark."""

    colour: str
    pattern: str
    symbol: str

    def area(self) -> dict[str, Any]:
        """``marker`` of a bar."""
        hatch = {"shape": self.pattern, "fillmode": "overlay", "fgcolor": style.INK, "size": 7, "solidity": 0.15}
        return {"color": self.colour, "line": style.OUTLINE, "pattern": hatch}

    def mark(self, size: int, hollow: bool = False) -> dict[str, Any]:
        """``marker`` of a point."""
        fill = style.PAPER if hollow else self.colour
        line = {"color": style.INK, "width": 2 if hollow else 1}
        return {"symbol": self.symbol, "color": fill, "size": size, "line": line, "opacity": 1}


def faces(names: Sequence[str]) -> dict[str, Face]:
    """The face of every name. A registered model has one of its own whatever else is there; of the others the first
    has a colour, and the rest are grey and differ by pattern and mark."""
    known = list(SPECS)
    found, others = {}, 0
    coloured = sum(name in SPECS for name in names)
    for name in names:
        if name in SPECS:
            at, colour = known.index(name), SPECS[name].colour
        else:
            at = len(known) + others
            colour = SIXTH if not others and coloured < MOST else style.OTHERS
            others += 1
        found[name] = Face(colour, PATTERNS[at % len(PATTERNS)], SYMBOLS[at % len(SYMBOLS)])
    return found
