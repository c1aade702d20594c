"""The only reader of ``M3R_*`` variables (and of ``SPACE_ID``, which a Hugging Face Space sets)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
DEMO = REPOSITORY / "assets" / "demo"
MODELS = REPOSITORY / "assets" / "models"
STORE = REPOSITORY / "assets" / "store"
"""What the repository ships ready-made for the demo: the layout of a workspace, read after it, never written."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment asks for. ``data``: data set folders besides the demo, in the order given."""

    data: tuple[str, ...]
    workspace: str | None
    public: bool

    @classmethod
    def from_environment(cls, environ: os._Environ | dict[str, str] = os.environ) -> Settings:
        entries = tuple(e.strip() for e in environ.get("M3R_DATA", "").split(";") if e.strip())
        flag = environ.get("M3R_PUBLIC", "").strip().lower()
        if flag not in ("", "0", "1", "true", "false", "yes", "no"):
            raise ValueError(f"M3R_PUBLIC is {flag!r}; use 1 for public mode or 0 for private mode.")
        public = flag in ("1", "true", "yes") or (flag == "" and bool(environ.get("SPACE_ID")))
        return cls(data=entries, workspace=environ.get("M3R_WORKSPACE") or None, public=public)
