"""``python -m core index`` killed by SIGKILL at three random moments and restarted, against an undisturbed run.

    python tests/bench/kill_index.py MEDPIX [--collections query_to_image/Head summary/Thorax] [--seed 3]

MEDPIX is what ``python -m core prepare medpix`` wrote; the collections named are copied to a temporary folder. Prints
whether vectors and indexes are the same bytes, and that a further run encodes nothing and writes no vector again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KILLS = 3


def copy(source: Path, collections: list[str], target: Path) -> None:
    """The collections with the pictures that they name."""
    target.mkdir()
    shutil.copy(source / "benchmark.json", target)
    for collection in collections:
        shutil.copytree(source / collection, target / collection)
        for name in ("corpus.jsonl", "queries.jsonl"):
            for line in (target / collection / name).read_text(encoding="utf-8").splitlines():
                references = json.loads(line).get("image_path") or []
                for reference in [references] if isinstance(references, str) else references:
                    (target / reference).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source / reference, target / reference)


def index(data: Path, workspace: Path, moment: tuple[int, float] | None = None) -> tuple[float, list[dict] | None]:
    """Seconds that one run took and its rows; None for the rows when it was killed.

    ``moment`` = (n, s): it is killed s seconds after it has stored n blocks, counted from when it starts to encode.
    """
    command = [sys.executable, "-m", "core", "index", str(data), "--json"]
    environment = {**os.environ, "M3R_WORKSPACE": str(workspace)}
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    seconds = None
    if moment is not None:
        blocks, seconds = moment
        before, encoding, fresh = parts(workspace), False, set()
        while process.poll() is None and not (encoding and len(fresh) >= blocks):
            time.sleep(0.02)
            locks = (workspace / "locks").glob("vectors-*")
            encoding = encoding or any(f"process {process.pid}," in lock.read_text() for lock in locks)
            fresh |= parts(workspace) - before
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return time.perf_counter() - started, None
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {process.returncode}")
    return time.perf_counter() - started, json.loads(out)


def parts(workspace: Path) -> set[str]:
    """The stored blocks of jobs that are not finished."""
    folder = workspace / "vectors"
    return {p.parent.relative_to(folder).as_posix() for p in folder.glob("*/*/job-*/part-*/manifest.json")}


def content(workspace: Path, top: str) -> dict[str, tuple[bytes, int]]:
    """Bytes and modification time of every file below ``top``."""
    base = workspace / top
    files = sorted(p for p in base.rglob("*") if p.is_file())
    return {p.relative_to(base).as_posix(): (p.read_bytes(), p.stat().st_mtime_ns) for p in files}


def same(a: dict, b: dict) -> str:
    different = [name for name in sorted({*a, *b}) if a.get(name, (None,))[0] != b.get(name, (None,))[0]]
    return f"identical, {len(a)} files" if not different else f"DIFFERENT in {', '.join(different)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("medpix", type=Path)
    parser.add_argument("--collections", nargs="+", default=["query_to_image/Head", "summary/Thorax"])
    parser.add_argument("--seed", type=int, default=3)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        data, calm, stormy = place / "data", place / "calm", place / "stormy"
        copy(arguments.medpix, arguments.collections, data)
        whole, rows = index(data, calm)
        documents = {row["task"]: row["documents"] for row in rows or []}
        print(f"undisturbed: {whole:.1f} s, documents {documents}")
        generator = random.Random(arguments.seed)
        for _ in range(KILLS):
            seconds, rows = index(data, stormy, (generator.randrange(1, 3), generator.uniform(0, 3)))
            rest = sorted(Path(p).name for p in parts(stormy))
            blocks = len(list((stormy / "vectors").glob("*/*/block-*")))
            end = "ended before it was killed" if rows else "killed"
            print(f"{end} after {seconds:.1f} s: {blocks} finished jobs, parts {rest or 'none'} of unfinished ones")
        seconds, _ = index(data, stormy)
        print(f"restarted: {seconds:.1f} s")
        for top in ("vectors", "index"):
            print(f"{top}: {same(content(calm, top), content(stormy, top))}")
        before = content(stormy, "vectors")
        seconds, rows = index(data, stormy)
        untouched = before == content(stormy, "vectors")
        encoded = [row.get("encoded", "not said") for row in rows or []]
        print(f"a further run: {seconds:.1f} s, encoded {encoded}, vectors {'untouched' if untouched else 'REWRITTEN'}")


if __name__ == "__main__":
    main()
