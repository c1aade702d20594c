"""The version names the commit that runs, from whatever kind of checkout, and is plain without one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from core import version
from core.version import VERSION, code_version


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch):
    """A repository with one commit, of which the version is read; `git` runs in it."""
    root = tmp_path / "repo"
    root.mkdir()

    def git(*options: str, at: Path = root) -> str:
        told = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *options],
            cwd=at,
            capture_output=True,
            text=True,
            check=True,
        )
        return told.stdout.strip()

    git("init", "-q", "-b", "feature/main")
    git("commit", "-q", "--allow-empty", "-m", "one")
    monkeypatch.setattr(version, "REPOSITORY", root)
    code_version.cache_clear()
    yield git
    code_version.cache_clear()


def test_a_branch_is_read_loose_and_packed(checkout):
    checkout("commit", "-q", "--allow-empty", "-m", "two")
    commit = checkout("rev-parse", "HEAD")
    assert version._commit() == commit and code_version() == f"{VERSION} ({commit[:12]})"
    checkout("tag", "-a", "v1", "-m", "a tag is peeled in the packed file")
    checkout("branch", "a/refs/heads/feature/main", "HEAD~1")  # ends alike, and stands before it
    checkout("pack-refs", "--all")
    assert not (version.REPOSITORY / ".git" / "refs" / "heads" / "feature" / "main").exists()
    assert version._commit() == commit
    checkout("commit", "-q", "--allow-empty", "-m", "three")  # loose again, and newer than what is packed
    assert version._commit() == checkout("rev-parse", "HEAD") != commit


def test_a_detached_head_is_its_own_commit(checkout):
    commit = checkout("rev-parse", "HEAD")
    checkout("checkout", "-q", "--detach")
    assert version._commit() == commit


@pytest.mark.parametrize("packed", [False, True])
def test_a_worktree_finds_its_branch_in_the_repository_it_belongs_to(checkout, tmp_path, monkeypatch, packed):
    tree = tmp_path / "tree"
    checkout("worktree", "add", "-q", "-b", "side", str(tree))
    checkout("commit", "-q", "--allow-empty", "-m", "on the side", at=tree)
    if packed:
        checkout("pack-refs", "--all")
    monkeypatch.setattr(version, "REPOSITORY", tree)
    assert version._commit() == checkout("rev-parse", "HEAD", at=tree) != checkout("rev-parse", "HEAD")


def test_without_a_readable_checkout_the_version_stands_alone(checkout, tmp_path, monkeypatch):
    git = version.REPOSITORY / ".git"
    (git / "HEAD").write_text("ref: refs/heads/nothing\n")
    assert version._commit() == ""  # no such branch, no packed file
    (git / "HEAD").write_bytes(b"\xff\xfe")
    assert version._commit() == "" and code_version() == VERSION
    monkeypatch.setattr(version, "REPOSITORY", tmp_path / "unpacked")
    assert version._commit() == ""
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked" / ".git").write_text("gitdir: /nowhere\n")
    assert version._commit() == ""


def test_it_is_read_once(checkout, monkeypatch):
    first = code_version()
    monkeypatch.setattr(version, "_commit", lambda: pytest.fail("read again"))
    assert code_version() == first
