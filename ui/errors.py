"""One way to say what went wrong: known errors in their own words, others by a code that the log repeats."""

from __future__ import annotations

import logging
import secrets
import traceback

from core.analyze.notes import NotesError
from core.context import Preparing
from core.data.layouts import DataError
from core.media.picture import PictureError
from core.models.base import ModelUnavailable
from core.records import QueryError
from core.store.lock import Locked
from core.store.manifest import ManifestError
from ui.cards import escape

log = logging.getLogger("m3retrieve")

KNOWN = (DataError, PictureError, ModelUnavailable, Locked, ManifestError, NotesError, Preparing, QueryError)
"""Errors whose sentence was written for the user."""


def message(text: str) -> str:
    """A sentence as a box of the page, escaped."""
    return f'<div class="m3-message" role="alert"><p>{escape(text)}</p></div>'


def explain(error: Exception) -> str:
    """The box for an error."""
    return message(sentence(error))


def why(error: Exception) -> str:
    """The box for what went wrong with something that a visitor gave or chose: core writes ValueErrors for them."""
    return message(str(error)) if isinstance(error, ValueError) else explain(error)


def sentence(error: Exception) -> str:
    """What to say of an error. Unknown ones are logged by place and code, never with what the user gave."""
    if isinstance(error, KNOWN):
        return str(error)
    code = secrets.token_hex(4)
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-4:]))
    log.error("error %s: %s at %s", code, type(error).__name__, where)
    return (
        f"Something went wrong inside the app ({type(error).__name__}, code {code}). "
        "Try again; if it stays, report the code."
    )
