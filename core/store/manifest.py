"""A manifest beside stored files says what they are, what they were made from, and their hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.store.atomic import write_bytes

NAME = "manifest.json"


class ManifestError(Exception):
    """Stored files do not match their manifest or the request; the message names the file and the reason."""


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file, read in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def canonical(value: Any) -> bytes:
    """JSON bytes that are equal for equal values: sorted keys, no spaces. Raises ValueError for NaN and infinities."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")  # names of files need not be valid text


def short_hash(value: Any) -> str:
    """First 16 hex digits of the sha256 of ``canonical(value)``: the ids of the store."""
    return hashlib.sha256(canonical(value)).hexdigest()[:16]


def write(folder: Path, request: Mapping[str, Any], files: list[str], facts: Mapping[str, Any] | None = None) -> None:
    """Write ``folder/manifest.json``: the request, each file's size and sha256, and further facts."""
    entries = {f: {"size": (folder / f).stat().st_size, "sha256": sha256_file(folder / f)} for f in sorted(files)}
    body = {"request": dict(request), "files": entries, "facts": dict(facts or {})}
    write_bytes(folder / NAME, json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n")


def read(folder: Path, request: Mapping[str, Any] | None = None, hashes: bool = False) -> dict[str, Any]:
    """Return the manifest of ``folder``; raise `ManifestError` where it is absent, damaged or of another request.

    Sizes are always checked, contents only with ``hashes``.
    """
    path = folder / NAME
    try:
        body = json.loads(path.read_bytes())
        entries = {str(name): (entry["size"], entry["sha256"]) for name, entry in body["files"].items()}
        made_for = {key: canonical(value) for key, value in body["request"].items()}
    except FileNotFoundError:
        raise ManifestError(f"{path} is missing: nothing complete is stored here.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ManifestError(f"{path} cannot be read ({error!r}); delete the folder to have it made again.") from None
    if request is not None:
        asked = {key: canonical(value) for key, value in request.items()}
        different = sorted(k for k in {*made_for, *asked} if made_for.get(k) != asked.get(k))
        if different:
            raise ManifestError(f"{folder} was made for another request: {', '.join(different)} differ.")
    for name, (size, sha256) in entries.items():
        file = folder / name
        if not file.is_file() or file.stat().st_size != size:
            raise ManifestError(f"{file} is missing or has another size than its manifest says.")
        if hashes and sha256_file(file) != sha256:
            raise ManifestError(f"{file} does not have the content its manifest names.")
    return body
