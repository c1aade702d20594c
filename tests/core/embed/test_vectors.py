"""Vectors are stored once by content, whole or not at all."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from core.embed.vectors import VectorStore
from core.store.atomic import remove_leftovers


def keys_of(n: int, start: int = 0) -> list[str]:
    return [hashlib.sha256(str(i).encode()).hexdigest() for i in range(start, start + n)]


def test_what_is_added_is_found_again_by_a_new_store(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)
    keys = keys_of(7)
    store = VectorStore(tmp_path / "text", 5)
    store.add(keys[:3], vectors[:3])
    store.add(keys[3:], vectors[3:])
    again = VectorStore(tmp_path / "text", 5)
    assert len(again) == 7
    order = [6, 0, 3, 3]
    assert np.array_equal(again.get([keys[i] for i in order]), vectors[order])
    assert again.missing([*keys_of(2, start=9), keys[0], keys_of(1, start=9)[0]]) == keys_of(2, start=9)
    with pytest.raises(KeyError):
        again.get(keys_of(1, start=99))


@pytest.mark.parametrize("damage", ["truncate", "no manifest", "other dimension"])
def test_a_damaged_block_is_said_and_only_its_rows_are_missing(tmp_path, damage):
    store = VectorStore(tmp_path, 4)
    store.add(keys_of(2), np.ones((2, 4), np.float32))
    store.add(keys_of(2, start=2), np.ones((2, 4), np.float32))
    block = tmp_path / "block-00000"
    if damage == "truncate":
        (block / "vectors.npy").write_bytes((block / "vectors.npy").read_bytes()[:-3])
    elif damage == "no manifest":
        (block / "manifest.json").unlink()
    if damage == "other dimension":
        again = VectorStore(tmp_path, 3)
        assert len(again) == 0 and len(again.damaged) == 2
        return
    again = VectorStore(tmp_path, 4)
    assert again.missing(keys_of(4)) == keys_of(2)
    assert len(again.damaged) == 1 and "block-00000" in again.damaged[0]
    again.add(keys_of(2), np.zeros((2, 4), np.float32))  # takes a new number, never the damaged one's
    assert (tmp_path / "block-00002").is_dir()


def test_values_that_are_not_numbers_are_refused(tmp_path):
    store = VectorStore(tmp_path, 2)
    with pytest.raises(ValueError):
        store.add(keys_of(1), np.array([[np.nan, 1]], np.float32))
    with pytest.raises(ValueError):
        store.add(keys_of(2), np.ones((1, 2), np.float32))
    assert len(VectorStore(tmp_path, 2)) == 0


def test_leftovers_of_a_killed_job_are_never_read_and_are_deleted(tmp_path):
    store = VectorStore(tmp_path, 2)
    store.add(keys_of(1), np.ones((1, 2), np.float32))
    (tmp_path / ".partial-x").mkdir()
    (tmp_path / ".partial-x" / "keys.npy").write_bytes(b"half")
    assert len(VectorStore(tmp_path, 2)) == 1
    remove_leftovers(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["block-00000"]
