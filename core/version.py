"""Which code this is: a version, and the commit where it runs from a checkout."""

from __future__ import annotations

from functools import lru_cache

from core.settings import REPOSITORY

VERSION = "0.1"


@lru_cache(maxsize=1)
def code_version() -> str:
    """``0.1`` with the first twelve digits of the commit, where there is one to read."""
    commit = _commit()
    return f"{VERSION} ({commit[:12]})" if commit else VERSION


def _commit() -> str:
    """The commit that is checked out; "" without a readable checkout. No program is run."""
    git = REPOSITORY / ".git"
    try:
        if git.is_file():  # a worktree
            git = REPOSITORY / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="ascii").strip()
        if not head.startswith("ref: "):
            return head
        ref = head.removeprefix("ref: ")
        common = git / "commondir"
        base = git / common.read_text(encoding="utf-8").strip() if common.is_file() else git
        loose = base / ref
        if loose.is_file():
            return loose.read_text(encoding="ascii").strip()
        packed = (base / "packed-refs").read_text(encoding="ascii").splitlines()
        return next((line.split(" ")[0] for line in packed if line.endswith(f" {ref}")), "")
    except (OSError, UnicodeDecodeError):
        return ""
