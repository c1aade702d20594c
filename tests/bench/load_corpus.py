"""Loading a 200 MB corpus.jsonl: our first load, opening again, and fetching by key, beside ``pandas.read_json``.

Run as ``python tests/bench/load_corpus.py [--megabytes N]``. Every step runs in a process of its own. Memory is the
peak of its resident set above what it was before the step, after the imports; of that, "own" leaves out the pages of
mapped files, which the system takes back when it needs them.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

FETCHES = 1000
_SYLLABLES = ("car", "di", "o", "my", "pa", "thy", "neu", "ro", "gas", "tro", "he", "ma", "der", "pul", "le", "sion")


def write_corpus(folder: Path, megabytes: int) -> int:
    """Write a corpus of passages of 40 to 400 seeded words with one query; return the number of documents."""
    chance = random.Random(20)
    words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) for _ in range(20_000)]
    size = count = 0
    folder.mkdir()
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as stream:
        while size < megabytes * 10**6:
            text = " ".join(chance.choices(words, k=chance.randint(40, 400)))
            meta = {"specialty": words[count % 30], "case": str(count // 4)}
            row = {"_id": f"doc-{count}", "title": " ".join(chance.choices(words, k=4)), "text": text, "meta": meta}
            size += stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    (folder / "queries.jsonl").write_text('{"_id": "q", "caption": "a lesion"}\n', encoding="utf-8")
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tdoc-0\t1\n", encoding="utf-8")
    return count


def resident() -> tuple[float, float]:
    """Resident set of this process now, and its part that is no mapped file, in MB."""
    _, whole, shared = map(int, Path("/proc/self/statm").read_text().split()[:3])
    page = resource.getpagesize() / 1e6
    return whole * page, (whole - shared) * page


def measured(step: Callable[[], object]) -> dict[str, float]:
    """Seconds of ``step``, and by how many MB the peaks of `resident` rose above the start (sampled every 5 ms)."""
    idle = resident()
    peaks, done = list(idle), threading.Event()

    def sample() -> None:
        while not done.wait(0.005):
            peaks[:] = map(max, peaks, resident())

    sampler = threading.Thread(target=sample)
    sampler.start()
    started = time.perf_counter()
    step()
    seconds = time.perf_counter() - started
    done.set()
    sampler.join()
    peaks[:] = map(max, peaks, resident())
    whole = max(peaks[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)
    return {"seconds": seconds, "mb": whole - idle[0], "own_mb": peaks[1] - idle[1]}


def run_step(step: str, data: Path, workspace: Path) -> dict[str, float]:
    """One step in this process: ``load``, ``open``, ``fetch`` or ``pandas``."""
    if step == "pandas":
        import pandas as pd

        pd.read_json  # noqa: B018  (what it imports lazily belongs to idle)
        return measured(lambda: pd.read_json(data / "corpus.jsonl", lines=True))
    from core.data.dataset import open_dataset
    from core.store.workspace import open_workspace

    place = open_workspace(str(workspace))
    if step == "load":
        return measured(lambda: open_dataset(data, place))
    if step == "open":
        return measured(lambda: [len(c.corpus) for c in open_dataset(data, place).collections.values()])
    (collection,) = open_dataset(data, place).collections.values()
    chance = random.Random(7)
    ids = [f"doc-{chance.randrange(len(collection.corpus))}" for _ in range(FETCHES)]
    return measured(lambda: [collection.doc(i).text for i in ids])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS, metavar=("STEP", "DATA", "WORKSPACE"))
    asked = parser.parse_args()
    if asked.step:
        print(json.dumps(run_step(asked.step[0], Path(asked.step[1]), Path(asked.step[2]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        data, workspace = Path(folder) / "corpus", Path(folder) / "workspace"
        documents = write_corpus(data, asked.megabytes)
        size = (data / "corpus.jsonl").stat().st_size / 1e6
        print(f"corpus.jsonl: {size:.0f} MB, {documents} documents")
        results = {}
        for step in ("pandas", "load", "open", "fetch"):
            command = [sys.executable, __file__, "--step", step, str(data), str(workspace)]
            results[step] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    names = {
        "pandas": "pandas.read_json(lines=True)",
        "load": "our first load",
        "open": "our opening again",
        "fetch": f"our {FETCHES} fetches by key",
    }
    peer = results["pandas"]
    print(f"{'':32}{'seconds':>9}{'peak MB':>9}{'own MB':>9}{'time ratio':>12}{'memory ratio':>14}")
    for step, name in names.items():
        row = results[step]
        times, memory = row["seconds"] / peer["seconds"], row["mb"] / peer["mb"]
        print(f"{name:32}{row['seconds']:9.3f}{row['mb']:9.0f}{row['own_mb']:9.0f}{times:12.4f}{memory:14.4f}")


if __name__ == "__main__":
    main()
