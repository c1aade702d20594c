"""Rows of one collection in a memory-mapped Arrow file, found by position or by id without loading the rest."""

from __future__ import annotations

import bisect
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from core.records import Doc, Query

FACETS = ("specialty", "modality", "case", "cluster", "split")
"""``meta`` fields that have a column of their own, so that filters and counts need not parse JSON."""

SCHEMA = pa.schema(
    [("id", pa.string()), ("title", pa.string()), ("text", pa.string()), ("images", pa.list_(pa.string()))]
    + [(name, pa.string()) for name in FACETS]
    + [("meta", pa.string()), ("line", pa.int64())]
)

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_BATCH_ROWS, _BATCH_BYTES = 4096, 4 * 2**20


def write_table(folder: Path, name: str, rows: Iterable[Query | Doc]) -> int:
    """Stream ``rows`` into ``folder/name.arrow`` with its id lookup beside it; return how many there were.

    Peak memory is one batch (4 MiB of text or 4,096 rows) plus 16 bytes a row.
    """
    hashes: list[np.ndarray] = []
    count = 0
    with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        for batch in _batches(rows):
            columns = [pa.array(batch[field.name], field.type) for field in SCHEMA]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
            hashes.append(np.fromiter(map(_id_hash, batch["id"]), dtype=np.uint64, count=len(batch["id"])))
            count += len(batch["id"])
    keys = np.concatenate(hashes) if hashes else np.zeros(0, np.uint64)
    order = np.argsort(keys, kind="stable")
    np.save(folder / f"{name}.ids.npy", keys[order])
    np.save(folder / f"{name}.rows.npy", order.astype(np.int64))
    return count


def files_of(name: str) -> list[str]:
    """The files that `write_table` makes for ``name``."""
    return [f"{name}.arrow", f"{name}.ids.npy", f"{name}.rows.npy"]


def _batches(rows: Iterable[Query | Doc]) -> Iterator[dict[str, list[Any]]]:
    """Columns of up to `_BATCH_ROWS` rows or `_BATCH_BYTES` characters, whichever comes first."""
    batch: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    size = 0
    for row in rows:
        cells = _cells(row)
        for name, value in cells.items():
            batch[name].append(value)
        size += len(cells["title"]) + len(cells["text"]) + len(cells["meta"]) + sum(map(len, cells["images"]))
        if len(batch["id"]) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield batch
            batch, size = {name: [] for name in SCHEMA.names}, 0
    if batch["id"]:
        yield batch


def _cells(row: Query | Doc) -> dict[str, Any]:
    return {
        "id": row.id,
        "title": getattr(row, "title", ""),
        "text": row.text,
        "images": list(row.images),
        "meta": _COMPACT.encode(row.meta),
        "line": row.line,
    } | {name: _facet(row.meta.get(name)) for name in FACETS}


def _facet(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # case 7 groups like case "7"
    return value if isinstance(value, str) and value else None


def _id_hash(identity: str) -> int:
    # What is asked for may be no valid text; what is stored always is.
    return int.from_bytes(hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


class Table:
    """Read access to what `write_table` wrote. Opening reads only the file's footer."""

    def __init__(self, folder: Path, name: str) -> None:
        self._map = pa.memory_map(str(folder / f"{name}.arrow"))
        self._reader = pa.ipc.open_file(self._map)
        batches = [self._reader.get_batch(i) for i in range(self._reader.num_record_batches)]
        self._table = pa.Table.from_batches(batches, schema=SCHEMA)
        self._batches = batches
        self._starts = np.cumsum([0] + [b.num_rows for b in batches]).tolist()
        self._keys = np.load(folder / f"{name}.ids.npy", mmap_mode="r", allow_pickle=False)
        self._rows = np.load(folder / f"{name}.rows.npy", mmap_mode="r", allow_pickle=False)

    def __len__(self) -> int:
        return self._starts[-1]

    def column(self, name: str) -> pa.ChunkedArray:
        """One column over all rows, without a copy."""
        return self._table.column(name)

    def row(self, position: int) -> dict[str, Any]:
        """The row at ``position`` (0-based) with ``meta`` parsed."""
        if not 0 <= position < len(self):
            raise IndexError(f"row {position} of {len(self)}")
        chunk = bisect.bisect_right(self._starts, position) - 1
        return _parsed(self._batches[chunk].slice(position - self._starts[chunk], 1).to_pylist()[0])

    def rows(self) -> Iterator[dict[str, Any]]:
        """All rows in file order, a batch in memory at a time."""
        for batch in self._batches:
            for start in range(0, batch.num_rows, 256):
                yield from map(_parsed, batch.slice(start, 256).to_pylist())

    def find(self, identity: str) -> int | None:
        """The position of the row with this id, or ``None``."""
        key = np.uint64(_id_hash(identity))
        at = int(np.searchsorted(self._keys, key))
        while at < len(self._keys) and self._keys[at] == key:
            position = int(self._rows[at])
            chunk = bisect.bisect_right(self._starts, position) - 1
            if self._batches[chunk].column(0)[position - self._starts[chunk]].as_py() == identity:
                return position
            at += 1
        return None


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    row["meta"] = json.loads(row["meta"])
    row["images"] = tuple(row["images"])
    return row
