"""MTEB's files, in and out, and vectors made elsewhere.

In: the predictions that mteb saves, ``{subset: {split: {query: {document: score}}}}``, or the inner part alone; and
``.npy`` vectors with a file of ids. Out: result files in mteb's layout, ``results/<org__model>/<revision>/<Task>.json``
with ``model_meta.json`` beside them. Field names were read in mteb 2.26 (``TaskResult``, ``ResultCache``).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from core.data.collection import Collection
from core.data.layouts import printable
from core.evaluate.imported import FileRefused, Imported, KnownIds, Scores, matched
from core.evaluate.io_trec import text_lines
from core.evaluate.measures import spelling, trec_order
from core.evaluate.run import Rankings, trec_name
from core.index.exact import ExactIndex, best
from core.store.atomic import write_bytes
from core.store.manifest import sha256_file, short_hash

MAX_JSON = 256 * 2**20
"""Bytes of a file of predictions: about 5 million scores, which JSON needs whole in memory (about 2 GB)."""

MAX_VECTORS = 2 * 2**30
"""Bytes of a file of vectors, as 32-bit floats: half a million of 1,024 numbers. Ranking needs about three times it."""

MAIN = "nDCG@10"
"""The benchmark's score, mteb's ``main_score`` of retrieval tasks."""

BLOCK_SCORES = 32_000_000
"""Scores held at once (128 MB)."""

_MODEL = "mteb_model_meta"
_LARGEST = float(np.finfo(np.float32).max)


def read_predictions(path: Path, subset: str | None = None, split: str | None = None) -> Scores:
    """Read a file of predictions, ids as they stand there; raises `FileRefused`.

    ``subset`` and ``split`` are needed where the file has more than one.
    """
    name = printable(path.name)
    value, tag = _json(path, name), ""
    if isinstance(value, dict) and isinstance(value.get(_MODEL), dict):
        tag = str(value[_MODEL].get("model_name") or "")
        value = {key: part for key, part in value.items() if key != _MODEL}
    part: Any = value
    if not _flat(part):
        for what, wanted in (("subset", subset), ("split", split)):
            part = _chosen(part, what, wanted, name)
    if not isinstance(part, dict):
        raise FileRefused(
            f"{name}: no predictions here; mteb writes {{subset: {{split: {{query: {{document: score}}}}}}}}."
        )
    lines = 0
    for query, row in part.items():
        if not isinstance(row, dict):
            raise FileRefused(f"{name}, query {query!r}: {str(row)[:40]!r} where {{document: score}} should stand.")
        for doc, score in row.items():
            number = isinstance(score, int | float) and not isinstance(score, bool)
            if not number or abs(score) > _LARGEST:
                what = "is no finite number; mend or remove it"
                raise FileRefused(f"{name}, query {query!r}: the score {str(score)[:40]!r} of {doc!r} {what}.")
        lines += len(row)
    if not lines:
        raise FileRefused(f"{name} holds no scores; save the predictions again.")
    return Scores(name, part, lines, tag, sha256_file(path)[:16])


def _json(path: Path, name: str) -> Any:
    def no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise FileRefused(f"{name}: {twice!r} stands twice in one object; keep one of them.")
        return result

    def no_number(constant: str) -> None:
        raise FileRefused(f"{name}: {constant} is no score; mend or remove it.")

    try:
        if path.stat().st_size > MAX_JSON:
            raise FileRefused(f"{name}: more than {MAX_JSON >> 20} MiB; write it as a TREC run, or in parts.")
        return json.loads(path.read_bytes(), object_pairs_hook=no_twice, parse_constant=no_number)
    except json.JSONDecodeError as error:
        raise FileRefused(f"{name}, line {error.lineno}: not JSON ({error.msg}); save it again.") from None
    except UnicodeDecodeError:
        raise FileRefused(f"{name}: not UTF-8, so no JSON; save it again.") from None
    except RecursionError:
        raise FileRefused(f"{name}: nested too deep for predictions; check what was saved.") from None
    except OSError as error:
        raise FileRefused(f"{name} cannot be read: {error.strerror}.") from None
    except FileRefused:
        raise
    except ValueError:  # Python's limit for the digits of whole numbers
        raise FileRefused(f"{name}: a number with too many digits; mend or remove it.") from None


def _flat(value: Any) -> bool:
    """Whether this is ``{query: {document: score}}``: somewhere two levels down stands no object."""
    rows = [row for row in value.values() if isinstance(row, dict)] if isinstance(value, dict) else []
    return any(not isinstance(cell, dict) for row in rows for cell in row.values())


def _chosen(value: Any, what: str, wanted: str | None, name: str) -> Any:
    if not isinstance(value, dict) or not value:
        raise FileRefused(
            f"{name}: no {what} in it; mteb writes {{subset: {{split: {{query: {{document: score}}}}}}}}."
        )
    names = ", ".join(map(repr, value))
    if wanted is None and len(value) > 1:
        raise FileRefused(f"{name} has more than one {what} ({names}); choose one.")
    if wanted is not None and wanted not in value:
        raise FileRefused(f"{name} has no {what} {wanted!r}; it has {names}.")
    return next(iter(value.values())) if wanted is None else value[wanted]


def import_predictions(
    path: Path,
    collection: Collection,
    ignore_identical_ids: bool = False,
    subset: str | None = None,
    split: str | None = None,
) -> Imported:
    """Read predictions for a collection, as `core.evaluate.imported.matched` says; raises `FileRefused`."""
    return matched(read_predictions(path, subset, split), collection, ignore_identical_ids)


def result_files(
    dataset: str,
    data_id: str,
    task: str,
    model_id: str,
    revision: str,
    scores: Mapping[str, Mapping[str, float | None]],
    evaluation_time: float | None = None,
    split: str = "test",
    languages: Sequence[str] = ("eng-Latn",),
) -> dict[str, bytes]:
    """The result of one task in mteb's layout: files by path, the result first; empty where nothing is known.

    ``scores``: ``{domain: {measure: 0…1}}``, one subset a domain, so that mteb's mean over subsets is our macro mean.
    What is N/A (None or NaN), and what mteb has no name for, is left out; a domain without the main score is left
    out whole, and without any there is no file. ``evaluation_time`` is in seconds. ``mteb_version`` is null, because
    mteb made nothing here and reads whatever stands there as a version number; ``made_by`` says who did.
    ValueError for an unknown measure.
    """
    entries = []
    for domain, values in scores.items():
        known = {name: value for name, value in values.items() if value is not None and not math.isnan(value)}
        if MAIN in known:
            named = {field: value for name, value in known.items() if (field := spelling(name)[0].mteb)}
            about = {"hf_subset": domain, "languages": list(languages), "main_score": known[MAIN]}
            entries.append(about | named)
    if not entries:
        return {}
    made_by = f"M3Retrieve Explorer, not mteb (measures: ir-measures {version('ir-measures')})"
    task_name = _camel(dataset) + _camel(task)
    place = f"results/{_part(model_id.replace('/', '__'))}/{_part(revision or 'no_revision_available')}"
    result = {
        "dataset_revision": data_id,
        "task_name": task_name,
        "mteb_version": None,
        "made_by": made_by,
        "scores": {split: entries},
        "evaluation_time": evaluation_time,
        "kg_co2_emissions": None,
    }
    about = {"name": model_id, "revision": revision, "made_by": made_by}
    return {f"{place}/{task_name}.json": _bytes(result), f"{place}/model_meta.json": _bytes(about)}


def write_results(
    folder: Path,
    dataset: str,
    data_id: str,
    task: str,
    model_id: str,
    revision: str,
    scores: Mapping[str, Mapping[str, float | None]],
    evaluation_time: float | None = None,
) -> Path | None:
    """Write `result_files` below ``folder`` and give the file of the result, None where there is none."""
    files = result_files(dataset, data_id, task, model_id, revision, scores, evaluation_time)
    for path, data in files.items():
        write_bytes(folder / path, data)
    return folder / next(iter(files)) if files else None


def _bytes(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _camel(words: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split("[^A-Za-z0-9]+", words))[:80]


def _part(name: str) -> str:
    """``name`` as one part of a path, spelled as mteb does where it can be."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[:120] or "_"


def read_vectors(vectors: Path, ids: Path) -> tuple[list[str], np.ndarray]:
    """Read ids, one a line, and their vectors, float32 [n, d]; raises `FileRefused`.

    ``vectors`` is a ``.npy`` of floats [n, d], a row an id, finite and none of them zero.
    """
    name, ids_name = printable(vectors.name), printable(ids.name)
    names: dict[str, int] = {}
    for number, line in text_lines(ids):
        if not line.strip():
            raise FileRefused(f"{ids_name}, line {number}: no id; write one id a line, in the order of the vectors.")
        if line in names:
            raise FileRefused(f"{ids_name}, line {number}: {line!r} stands on line {names[line]} already; keep one.")
        names[line] = number
    try:
        stored = np.lib.format.open_memmap(vectors, mode="r")  # never unpickles
    except Exception as error:  # numpy's reader of headers lets pass whatever its parts raise, TokenError for one
        raise FileRefused(f"{name} is no .npy of numbers ({str(error)[:120]}); save it with numpy.save.") from None
    shape = " × ".join(map(str, stored.shape))
    if stored.ndim != 2 or 0 in stored.shape or stored.dtype.kind != "f":
        raise FileRefused(f"{name}: shape [{shape}] of {stored.dtype}; needs floats, a row a vector.")
    if stored.size * 4 > MAX_VECTORS:
        raise FileRefused(f"{name}: shape [{shape}] is more than {MAX_VECTORS >> 30} GiB; import collections apart.")
    if len(stored) != len(names):
        raise FileRefused(f"{name}: shape [{shape}], but {ids_name} has {len(names)} ids; needs a row an id.")
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(stored, np.float32)
    for what, rows in (("NaN or infinity", ~np.isfinite(array).all(axis=1)), ("only zeros", ~array.any(axis=1))):
        if rows.any():
            row = int(rows.argmax())
            where = f"row {row + 1} of {len(array)} (id {list(names)[row]!r})"
            raise FileRefused(f"{name}: shape [{shape}], {where} holds {what}; encode it again or leave it out.")
    return list(names), array


def rank_vectors(
    doc_ids: Sequence[str],
    docs: np.ndarray,
    query_ids: Sequence[str],
    queries: np.ndarray,
    depth: int,
    ignore_identical_ids: bool = False,
) -> Rankings:
    """The ``depth`` documents of highest cosine for each query, TREC ids, in trec_eval's order.

    ``docs`` is float32 [n, d] and ``queries`` float32 [q, d], without zero rows. Equal vectors tie to the last bit.
    ``ignore_identical_ids``: a document with the query's id is left out. ValueError where shapes do not fit.
    """
    if docs.shape != (len(doc_ids), *queries.shape[1:]) or queries.shape[:1] != (len(query_ids),):
        what = f"{len(doc_ids)} ids of documents with shape {docs.shape}, {len(query_ids)} of queries"
        raise ValueError(f"{what} with shape {queries.shape}: needs a row an id, and one width")
    # Equal vectors are scored once, so that their scores tie to the last bit.
    rows, row_of_doc = np.unique(_unit(docs), axis=0, return_inverse=True)
    row_of_doc, index, sides = row_of_doc.reshape(-1), ExactIndex(rows), _unit(queries)
    rankings: Rankings = {}
    at_once = max(1, min(64, BLOCK_SCORES // max(1, len(rows))))
    for first in range(0, len(query_ids), at_once):
        block = index.scores(np.ascontiguousarray(sides[first : first + at_once].T))
        for at, query in enumerate(query_ids[first : first + at_once]):
            scores = block[:, at][row_of_doc]
            found = [(doc_ids[i], float(scores[i])) for i in best(scores, depth + ignore_identical_ids)]
            kept = ((trec_name(d), s) for d, s in found if not (ignore_identical_ids and d == query))
            rankings[trec_name(query)] = trec_order(kept)[:depth]
    return rankings


def _unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1, float32; scaled first, so that no square of a finite number overflows or vanishes."""
    scaled = rows / np.abs(rows).max(axis=1, keepdims=True)
    return scaled / np.linalg.norm(scaled, axis=1, keepdims=True)


def import_vectors(
    docs: tuple[Path, Path],
    queries: tuple[Path, Path],
    collection: Collection,
    depth: int,
    ignore_identical_ids: bool = False,
) -> Imported:
    """Rank a collection by vectors made elsewhere: (``.npy``, ids) of documents and of queries.

    Vectors of ids that the collection lacks are left out before ranking. Raises `FileRefused`.
    """
    parts = []
    for paths, table in ((docs, collection.corpus), (queries, collection.queries)):
        ids, array = read_vectors(*paths)
        known = KnownIds(table)
        rows = [row for row, spelling_ in enumerate(ids) if known(spelling_) is not None]
        names = [known(ids[row]) for row in rows]
        if not rows or len(set(names)) != len(names):
            theirs = ", ".join(map(repr, table.column("id")[:3].to_pylist()))
            what = "one id in two spellings" if rows else f"no id of {collection.key}, which has {theirs}"
            raise FileRefused(f"{printable(paths[1].name)} holds {what}; write the ids of that collection.")
        parts.append((names, array[rows], known.unknown))
    (doc_ids, doc_rows, unknown_docs), (query_ids, query_rows, unknown_queries) = parts
    if doc_rows.shape[1] != query_rows.shape[1]:
        widths = f"{doc_rows.shape[1]} numbers a vector, {printable(queries[0].name)} {query_rows.shape[1]}"
        raise FileRefused(f"{printable(docs[0].name)} has {widths}; encode both with one model.")
    rankings = rank_vectors(doc_ids, doc_rows, query_ids, query_rows, depth, ignore_identical_ids)
    files = [sha256_file(path) for path in (*docs, *queries)]
    absent = len(collection.queries) - len(query_ids)
    lines = len(doc_ids) + len(query_ids)
    return Imported(
        dict(sorted(rankings.items())), unknown_queries, unknown_docs, absent, 0, lines, "", short_hash(files)
    )
