"""The first hits of a fresh process, then text and picture searches of a large pool, and the memory all this takes.

    M3R_WORKSPACE=WORKSPACE python tests/bench/first_search.py [DATA]

*First hits*: seconds from the start of a process, imports included, to the hits of its first query, on the demo
library with an empty workspace; three runs, each kind of query in a process of its own. Peer: a process that only
imports torch, timm and transformers. *Searches*, with DATA (encoded before: ``python -m core index DATA``): one more
process searches the demo library with words and with a picture, then DATA's largest pool with words alone and with
pictures alone, queries of the data set drawn by seed. A search encodes, ranks and fetches the hits' documents; the
picture is decoded before. Peer: the encoder alone on the same inputs, in turn with the searches. *Memory*: resident
set of that process (mapped files included) after each step. Peer: the process that only imports.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

if TYPE_CHECKING:
    from core.data.dataset import DataSet
    from core.records import Query
    from core.search.searcher import Asked, Searcher

RUNS, SEARCHES, SEED = 3, 20, 20
NAMES = {"floor": "imports alone", "text": "words", "picture": "picture"}
TARGETS = {"first": 8.0, "text": 100.0, "picture": 250.0, "memory": 1500.0}
"""Seconds, milliseconds, milliseconds, megabytes: printed beside the figures, never asserted."""


def memory() -> dict[str, float]:
    """Resident set of this process now, its part that is no mapped file, and its peak, in MB."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(lines[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "RssAnon", "VmHWM")}


def floor(start: float) -> dict[str, Any]:
    """Import what every first search needs, and nothing else."""
    import timm  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401

    return {"hits": time.monotonic() - start, "memory": memory()}


def asked_of(dataset: DataSet, task: str, kind: str, count: int) -> list[Asked]:
    """Queries of the data set drawn by seed, reduced to their words or to their decoded first picture."""
    from core.media.picture import open_picture
    from core.search.searcher import Asked

    def has(query: Query) -> bool:
        return bool(query.text.strip() if kind == "text" else query.images)

    pool = dataset.pool(task)
    queries = [query for collection in pool.collections for query in collection.all_queries() if has(query)]
    chosen = random.Random(SEED).sample(queries, min(count, len(queries)))
    if kind == "text":
        return [Asked(text=query.text) for query in chosen]
    places = [(dataset.collections[query.collection], query.images[0]) for query in chosen]
    return [Asked(images=[open_picture(collection.picture(name)).image]) for collection, name in places]


def first(start: float, kind: str) -> dict[str, Any]:
    """Search the demo library with the first query of this kind: seconds since the process was started, by step."""
    from core.context import AppContext

    context = AppContext()
    seconds = {"imported": time.monotonic() - start}
    dataset = context.dataset(context.sources[0].label)
    (asked,) = asked_of(dataset, dataset.tasks[0], kind, 1)
    seconds["data set open"] = time.monotonic() - start
    searcher = context.searcher(dataset, dataset.tasks[0], "medlite")
    seconds["pool ready"] = time.monotonic() - start
    result = searcher.search(asked)
    seconds["hits"] = time.monotonic() - start
    if len(result.hits) != 10:
        sys.exit(f"the first {kind} search found {len(result.hits)} hits, not 10")
    return seconds


def milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def encode(searcher: Searcher, asked: Asked) -> None:
    if asked.images:
        searcher.encoder.encode_images(list(asked.images))
    else:
        searcher.encoder.encode_texts([asked.text.strip()])


def compared(searcher: Searcher, queries: list[Asked]) -> dict[str, Any]:
    """Median milliseconds of the searches and of the encoder alone, in turn, after one search that is not counted."""
    searcher.search(queries[0])
    searches, encoder = [], []
    for number, asked in enumerate(queries):
        for step in (0, 1):
            if step == number % 2:
                searches.append(milliseconds(lambda a=asked: searcher.search(a)))
            else:
                encoder.append(milliseconds(lambda a=asked: encode(searcher, a)))
    medians = {"search": statistics.median(searches), "encoder": statistics.median(encoder)}
    return medians | {"slowest": max(searches), "n": len(queries)}


def many() -> dict[str, Any]:
    """The demo library, then the largest pool of the data set that ``M3R_DATA`` names."""
    from core.context import AppContext

    context = AppContext()
    demo = context.dataset(context.sources[0].label)
    for kind in ("text", "picture"):
        context.searcher(demo, demo.tasks[0], "medlite").search(*asked_of(demo, demo.tasks[0], kind, 1))
    result: dict[str, Any] = {"memory": {"the demo library": memory()}}
    dataset = context.dataset(context.sources[1].label)
    task = max(dataset.tasks, key=lambda name: len(dataset.pool(name)))
    searcher = context.searcher(dataset, task, "medlite")
    result["pool"] = f"{dataset.name}, {task}: {len(searcher.pool)} documents"
    result["index"] = "exact" if searcher.recall_at_10 is None else f"HNSW, recall@10 {searcher.recall_at_10:.3f}"
    for kind in ("text", "picture"):
        result[kind] = compared(searcher, asked_of(dataset, task, kind, SEARCHES))
    result["memory"]["both"] = memory()
    return result


def run(step: str, workspace: str | None = None, data: Path | None = None) -> dict[str, Any]:
    """One step in a fresh process."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "M3R_DATA": str(data.absolute()) if data else ""}
    if workspace:
        environment["M3R_WORKSPACE"] = workspace
    command = [sys.executable, __file__, "--step", step, repr(time.monotonic())]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"the step {step} failed with exit code {done.returncode}")
    return json.loads(done.stdout)


def report_first() -> dict[str, float]:
    """Print the first hits; return the memory of the peer."""
    print(
        f"First hits on the demo library, empty workspace, seconds from process start (target ≤ {TARGETS['first']:g})"
    )
    runs = []
    for number in range(RUNS):
        row = {"floor": run("floor")}
        for kind in ("text", "picture"):
            with tempfile.TemporaryDirectory() as workspace:
                row[kind] = run(kind, workspace)
        runs.append(row)
        seconds = ", ".join(f"{name} {row[kind]['hits']:.2f}" for kind, name in NAMES.items())
        print(f"run {number + 1}: {seconds}; load {os.getloadavg()[0]:.1f}", flush=True)
    best = {kind: min((row[kind] for row in runs), key=lambda found: found["hits"]) for kind in NAMES}
    peer = best["floor"]["hits"]
    for kind in ("text", "picture"):
        found = best[kind]
        steps = ", ".join(f"{name} {seconds:.2f}" for name, seconds in found.items())
        print(
            f"best of {RUNS}, {NAMES[kind]}: {found['hits']:.2f} s, {found['hits'] / peer:.2f} × the imports ({steps})"
        )
    return best["floor"]["memory"]


def report_many(data: Path, peer: dict[str, float]) -> None:
    found = run("many", data=data)
    print(f"Searches of {found['pool']}, {found['index']}; load {os.getloadavg()[0]:.1f}")
    for kind in ("text", "picture"):
        row = found[kind]
        print(
            f"{NAMES[kind]}: median {row['search']:.1f} ms (target ≤ {TARGETS[kind]:g}), encoder alone "
            f"{row['encoder']:.1f} ms (ratio {row['search'] / row['encoder']:.2f}), slowest {row['slowest']:.1f} ms, "
            f"n = {row['n']}"
        )
    for name, row in found["memory"].items():
        print(
            f"resident memory after {name}: {row['VmRSS']:.0f} MB, {row['VmRSS'] / peer['VmRSS']:.2f} × the imports "
            f"({row['RssAnon']:.0f} MB are no mapped files), peak {row['VmHWM']:.0f} MB "
            f"(target ≤ {TARGETS['memory']:g})"
        )
    print(f"resident memory of the imports alone: {peer['VmRSS']:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS, metavar=("STEP", "START"))
    arguments = parser.parse_args()
    if arguments.step:
        step, start = arguments.step[0], float(arguments.step[1])
        steps = {"floor": lambda: floor(start), "many": many}
        print(json.dumps(steps[step]() if step in steps else first(start, step)))
        return
    print(f"{os.cpu_count()} CPUs, load {', '.join(f'{load:.1f}' for load in os.getloadavg())}")
    peer = report_first()
    if arguments.data:
        report_many(arguments.data, peer)


if __name__ == "__main__":
    main()
