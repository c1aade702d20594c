"""A run: what a retriever returned for each query, with everything that made it, stored by that.

In rankings and files, ids are TREC ids, which hold no white space: the percent-encoded document or query id in a
collection's run, ``<collection>/<id>``, both parts percent-encoded, in a pool's. `document` decodes them.
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from core.data.names import document, trec_name
from core.retrievers.order import Rankings, trec_order
from core.store import manifest
from core.store.atomic import atomic_folder, write_bytes
from core.store.manifest import ManifestError, short_hash

__all__ = ["Run", "RunInfo", "StoredRun", "document", "open_run", "save", "stored_runs", "trec_name"]

FORMAT = 1
"""Raise when stored runs are written differently."""

_TREC_ID = re.compile("[!-~]+")
_RUN, _MEASURES, TIMING = "run.trec.gz", "measures.parquet", "timing.json"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What made a run.

    ``place`` is a collection's key or ``pool-<task>``. ``encoder_ids`` names every encoder that took part, at least
    one; ``weight`` is that of the picture, None where nothing is weighed. ``depth`` is the longest ranking.
    ``fold_plan``, ``overlay`` (of re-judgements) and ``split`` are "" where there is none.
    """

    model: str
    model_id: str
    revision: str
    encoder_ids: tuple[str, ...]
    task: str
    place: str
    fusion: str
    weight: float | None
    centring: str
    index_kind: str
    depth: int
    variant: str = "full"
    fold_plan: str = ""
    overlay: str = ""
    split: str = ""

    def __post_init__(self) -> None:
        if not self.encoder_ids:
            raise ValueError(f"the run of {self.model} names no encoder, so nothing would tell it from others")
        object.__setattr__(self, "encoder_ids", tuple(self.encoder_ids))
        if self.weight is not None:
            object.__setattr__(self, "weight", float(self.weight))  # 1 and 1.0 are one weight and one id

    @property
    def run_id(self) -> str:
        """16 hex digits over what makes one run of a place differ from another."""
        names = ("encoder_ids", "fusion", "weight", "centring", "index_kind", "depth", "variant", "fold_plan")
        return short_hash({name: getattr(self, name) for name in (*names, "overlay", "split")})

    @property
    def folder(self) -> str:
        """Where the run lies below ``runs/<data_id>``: a readable name of its place, then its id."""
        readable = re.sub(r"[^A-Za-z0-9]+", "-", self.place).strip("-")[:60]
        return f"{readable}-{short_hash(self.place)[:8]}/{self.run_id}"


@dataclass(frozen=True, slots=True)
class Run:
    """``rankings`` may lack queries that found nothing; they score 0 where they are judged."""

    info: RunInfo
    rankings: Rankings


@dataclass(frozen=True)
class StoredRun:
    """A run on disk. Its rankings and measures are read when asked for, and checked against its manifest then.

    ``facts`` are those given to `save`, with the number of queries and the versions of the tools.
    """

    path: Path
    data_id: str
    info: RunInfo
    facts: Mapping[str, Any]
    _hashes: Mapping[str, str] = field(repr=False)

    @cached_property
    def run(self) -> Run:
        """The rankings; raises `ManifestError` when the file is not the one that was stored."""
        text = gzip.decompress(self._checked(_RUN)).decode("ascii")
        rankings: Rankings = {query: [] for query in self.facts["without_hits"]}
        for line in text.splitlines():
            query, _, doc, _, score, _ = line.split(" ")
            rankings.setdefault(query, []).append((doc, float(np.float32(score))))
        return Run(self.info, dict(sorted(rankings.items())))

    def columns(self) -> pa.Table:
        """The rankings as columns ``query``, ``doc`` (dictionaries of strings) and ``score`` (float32), a hit a row.

        Queries are sorted and the hits of each in trec_eval's order, as in `run`; queries without hits have no row.
        A fraction of the time and memory of `run`. Raises `ManifestError` like it.
        """
        names = ["query", "q0", "doc", "rank", "score", "tag"]
        words = pa.dictionary(pa.int32(), pa.string())
        text = gzip.decompress(self._checked(_RUN))
        if not text:
            empty = pa.schema([("query", words), ("doc", words), ("score", pa.float32())])
            return empty.empty_table()
        return csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=csv.ConvertOptions(
                include_columns=["query", "doc", "score"],
                column_types={"query": words, "doc": words, "score": pa.float32()},
                strings_can_be_null=False,
            ),
        ).unify_dictionaries()

    @cached_property
    def measures(self) -> dict[str, dict[str, float]]:
        """``{name: {query: value}}`` as stored; raises `ManifestError` like `run`."""
        table = pq.read_table(io.BytesIO(self._checked(_MEASURES)))
        queries = table.column("query").to_pylist()
        names = [name for name in table.column_names if name != "query"]
        return {name: dict(zip(queries, table.column(name).to_pylist(), strict=True)) for name in names}

    @property
    def timing(self) -> dict[str, Any]:
        """What was measured while the run was made; {} where that was not kept. No part of the run's identity."""
        try:
            return json.loads((self.path / TIMING).read_bytes())
        except FileNotFoundError:
            return {}

    def _checked(self, name: str) -> bytes:
        if manifest.sha256_file(self.path / name) != self._hashes[name]:
            raise ManifestError(f"{self.path / name} does not have the content its manifest names.")
        return (self.path / name).read_bytes()


def save(
    workspace_root: Path,
    data_id: str,
    run: Run,
    per_query: Mapping[str, Mapping[str, float]],
    timing: Mapping[str, Any],
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Store a run with its measures and give its folder; an older run of the same id is replaced.

    Equal input gives equal bytes, but for ``timing``. ``facts`` are further entries of the manifest: seeds, numbers
    of queries left out. Raises ValueError for rankings that are not in trec_eval's order with 32-bit scores and TREC
    ids, and for measures whose queries differ.
    """
    info = run.info
    folder = Path(workspace_root) / "runs" / data_id / info.folder
    for query, ranking in run.rankings.items():
        bad = next((name for name in (query, *(doc for doc, _ in ranking)) if not _TREC_ID.fullmatch(name)), None)
        if bad is not None:
            raise ValueError(f"{bad!r} is no TREC id: percent-encode it with trec_name")
        if list(ranking) != trec_order(ranking) or len(ranking) > info.depth:
            raise ValueError(f"the ranking of {query!r} is not in trec_eval's order, or longer than {info.depth}")
    queries = sorted(next(iter(per_query.values()), {}))
    if any(sorted(values) != queries for values in per_query.values()):
        raise ValueError("the measures of a run must be of the same queries")
    columns = {"query": pa.array(queries, pa.string())}
    columns |= {name: pa.array([values[q] for q in queries], pa.float64()) for name, values in per_query.items()}
    about = {
        **(facts or {}),
        "queries": len(run.rankings),
        "without_hits": sorted(query for query, ranking in run.rankings.items() if not ranking),
        "tools": {name: version(name) for name in ("ir-measures", "pytrec-eval-terrier", "numpy")},
    }
    with atomic_folder(folder) as temporary:
        with (
            (temporary / _RUN).open("wb") as raw,
            # Neither time nor name of the file: equal runs are equal files.
            gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as stream,
        ):
            for line in _lines(run):
                stream.write(line)
        pq.write_table(pa.table(columns), temporary / _MEASURES, compression="zstd")
        request = {"format": FORMAT, "data_id": data_id, "run_id": info.run_id, "run": dataclasses.asdict(info)}
        manifest.write(temporary, request, [_RUN, _MEASURES], about)
        write_bytes(temporary / TIMING, json.dumps(dict(timing), indent=1, sort_keys=True).encode() + b"\n")
    return folder


def _lines(run: Run) -> Iterator[bytes]:
    tag = trec_name(run.info.model)
    for query in sorted(run.rankings):
        for rank, (doc, score) in enumerate(run.rankings[query], 1):
            # Nine digits name every 32-bit float, so equal scores stay equal and others stay apart.
            yield f"{query} Q0 {doc} {rank} {score:.9g} {tag}\n".encode("ascii")


def open_run(folder: Path) -> StoredRun:
    """Open a stored run; raise `ManifestError` with the reason where it is damaged or not what its folder says."""
    folder = Path(folder)
    body = manifest.read(folder)
    try:
        request, facts = body["request"], body["facts"]
        if request["format"] != FORMAT:
            raise ManifestError(f"{folder} has format {request['format']}; this version reads {FORMAT}.")
        info = RunInfo(**request["run"])
        stored = StoredRun(
            folder, request["data_id"], info, facts, {name: e["sha256"] for name, e in body["files"].items()}
        )
        expected = Path(request["data_id"]) / info.folder
        missing = {_RUN, _MEASURES} - set(body["files"])
    except (KeyError, TypeError, ValueError) as error:
        raise ManifestError(f"{folder / manifest.NAME} does not describe a run ({error!r}).") from None
    if missing or request["run_id"] != info.run_id or folder.absolute().parts[-3:] != expected.parts:
        raise ManifestError(f"{folder} does not hold the run that its manifest describes.")
    return stored


def stored_runs(roots: Sequence[Path], data_id: str) -> tuple[list[StoredRun], list[str]]:
    """The runs of a data set below ``roots``, by place, model and id, and the reasons why others were refused.

    Of two runs with one place and id the one of the earlier root counts.
    """
    found: dict[str, StoredRun] = {}
    refused = []
    for root in roots:
        for path in sorted((Path(root) / "runs" / data_id).glob("[!.]*/[!.]*")):
            try:
                stored = open_run(path)
            except ManifestError as error:
                refused.append(str(error))
                continue
            found.setdefault(stored.info.folder, stored)
    return sorted(found.values(), key=lambda r: (r.info.place, r.info.model, r.info.run_id)), refused
