"""Vectors are stored once by content, whole or not at all."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from core.embed.vectors import VectorStore, write_rows
from core.store.atomic import remove_leftovers

NO = np.zeros(2, bool)


def keys_of(n: int, start: int = 0) -> list[str]:
    return [hashlib.sha256(str(i).encode()).hexdigest() for i in range(start, start + n)]


def test_what_is_added_is_found_again_by_a_new_store(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)
    keys = keys_of(7)
    store = VectorStore(tmp_path / "text", 5)
    cut = np.array([0, 1, 0, 0, 1, 1, 0], bool)
    store.add(keys[:3], vectors[:3], cut[:3])
    store.add(keys[3:], vectors[3:], cut[3:])
    again = VectorStore(tmp_path / "text", 5)
    assert len(again) == 7
    order = [6, 0, 3, 3]
    assert np.array_equal(again.get([keys[i] for i in order]), vectors[order])
    assert np.array_equal(again.truncated([keys[i] for i in order]), cut[order])
    assert again.missing([*keys_of(2, start=9), keys[0], keys_of(1, start=9)[0]]) == keys_of(2, start=9)
    with pytest.raises(KeyError):
        again.get(keys_of(1, start=99))
    assert again.get([]).shape == (0, 5) and VectorStore(tmp_path / "none", 5).missing(keys) == keys


@pytest.mark.parametrize("damage", ["truncate", "no manifest", "other dimension", "other format"])
def test_a_damaged_block_is_said_and_only_its_rows_are_missing(tmp_path, damage):
    store = VectorStore(tmp_path, 4)
    store.add(keys_of(2), np.ones((2, 4), np.float32), NO)
    store.add(keys_of(2, start=2), np.ones((2, 4), np.float32), NO)
    block = tmp_path / "block-00000"
    if damage == "truncate":
        (block / "vectors.npy").write_bytes((block / "vectors.npy").read_bytes()[:-3])
    elif damage == "no manifest":
        (block / "manifest.json").unlink()
    elif damage == "other format":
        (block / "manifest.json").write_text(
            (block / "manifest.json").read_text().replace('"format": 2', '"format": 1')
        )
    if damage == "other dimension":
        again = VectorStore(tmp_path, 3)
        assert len(again) == 0 and len(again.damaged) == 2
        return
    again = VectorStore(tmp_path, 4)
    assert again.missing(keys_of(4)) == keys_of(2)
    assert list(again.damaged) == [block] and "block-00000" in again.damaged[block]
    again.add(keys_of(2), np.zeros((2, 4), np.float32), NO)  # takes a new number, never the damaged one's
    assert (tmp_path / "block-00002").is_dir()
    (reason,) = again.discard_damaged()
    assert "block-00000" in reason and not block.exists() and not VectorStore(tmp_path, 4).damaged


def test_values_that_are_not_numbers_are_refused(tmp_path):
    store = VectorStore(tmp_path, 2)
    with pytest.raises(ValueError):
        store.add(keys_of(1), np.array([[np.nan, 1]], np.float32), NO[:1])
    with pytest.raises(ValueError):
        store.add(keys_of(2), np.ones((1, 2), np.float32), NO[:1])
    assert len(VectorStore(tmp_path, 2)) == 0


def test_leftovers_of_a_killed_job_are_never_read_and_are_deleted(tmp_path):
    store = VectorStore(tmp_path, 2)
    store.add(keys_of(1), np.ones((1, 2), np.float32), NO[:1])
    (tmp_path / ".partial-x").mkdir()
    (tmp_path / ".partial-x" / "keys.npy").write_bytes(b"half")
    assert len(VectorStore(tmp_path, 2)) == 1
    remove_leftovers(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["block-00000"]


def test_keys_are_compared_to_their_last_byte(tmp_path):
    keys = ["00" * 32, "00" * 31 + "01", "ab" * 31 + "00", "ab" * 31 + "01", "ff" * 32]
    store = VectorStore(tmp_path, 1)
    for at in (3, 0, 4):
        store.add([keys[at]], np.full((1, 1), at, np.float32), NO[:1])
    assert store.has(keys).tolist() == [True, False, False, True, True]
    assert store.get([keys[4], keys[0], keys[3]])[:, 0].tolist() == [4, 0, 3]
    with pytest.raises(ValueError):
        store.has(["abc"])


def test_rows_written_in_chunks_are_the_array(tmp_path):
    rows = np.random.default_rng(0).standard_normal((1000, 3)).astype(np.float32)
    for n in (0, 1, 999, 1000):
        chunks = (rows[:n][start : start + 7] for start in range(0, n, 7))
        assert write_rows(tmp_path / "rows.npy", chunks, 3) == n
        assert np.array_equal(np.load(tmp_path / "rows.npy"), rows[:n])
        np.save(tmp_path / "saved.npy", rows[:n])
        assert (tmp_path / "saved.npy").stat().st_size == (tmp_path / "rows.npy").stat().st_size
