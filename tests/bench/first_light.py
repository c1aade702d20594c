"""nDCG@10 of ``medlite`` on the queries of held-out cases, per domain: picture alone, words alone, both.

    python tests/bench/first_light.py MEDPIX [--task query_to_image] [--split dev]

MEDPIX is what ``python -m core prepare medpix`` wrote. Per collection (the benchmark's protocol), exact search, the
query's own picture is never its answer. The second table leaves out queries whose topic also stands in the training
cases. Figures are means over queries with n queries / n topics; intervals come with the evaluation room.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import ir_measures
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.context import AppContext
from core.data.dataset import open_dataset
from core.search.searcher import Searcher

MODES = {"picture": 1.0, "words": 0.0, "both": None}


def rankings(searcher: Searcher, collection, queries, weight: float | None) -> dict[str, dict[str, float]]:
    """Scores of all documents of one collection for each query, the query itself left out."""
    start = searcher.pool.row_of(collection.key, collection.corpus.row(0)["id"])
    ids = collection.corpus.column("id").to_pylist()
    groups = searcher.index.group_of_row[start : start + len(ids)]
    vectors = np.asarray(searcher.index.exact.vectors)[searcher.index.vector_of_group[groups]]
    run = {}
    for query, composed in zip(queries, searcher.stored_queries(queries, weight), strict=True):
        scores = (vectors @ composed.sides).sum(axis=1)
        run[query.id] = {d: float(s) for d, s in zip(ids, scores, strict=True) if d != query.id}
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("medpix", type=Path)
    parser.add_argument("--task", default="query_to_image")
    parser.add_argument("--split", default="dev")
    arguments = parser.parse_args()

    context = AppContext()
    dataset = open_dataset(arguments.medpix, context.workspace)
    searcher = context.searcher(dataset, arguments.task, "medlite")
    collections = searcher.pool.collections
    trained = {
        query.meta["cluster"] for c in collections for query in c.all_queries() if query.meta.get("split") == "train"
    }
    print(
        f"medlite {searcher.encoder.spec.revision}, default weight {searcher.default_weight}, {arguments.task}, exact"
    )
    for title, unseen in (("all queries of", False), ("queries whose topic is not in the training cases, of", True)):
        print(f"\n{title} the {arguments.split} cases: nDCG@10")
        print(f"{'domain':32}" + "".join(f"{mode:>9}" for mode in MODES) + "   queries / topics")
        per_query: dict[str, list[float]] = {mode: [] for mode in MODES}
        topics = set()
        macro = []
        for collection in collections:
            queries = [
                q
                for q in collection.all_queries()
                if q.meta.get("split") == arguments.split
                and any(g > 0 for g in collection.qrels.get(q.id, {}).values())
                and not (unseen and q.meta["cluster"] in trained)
            ]
            if not queries:
                print(f"{collection.domain:32}{'N/A':>9}{'N/A':>9}{'N/A':>9}   0 / 0")
                continue
            qrels = {q.id: collection.qrels[q.id] for q in queries}
            row = []
            for mode, weight in MODES.items():
                run = rankings(searcher, collection, queries, weight)
                values = [m.value for m in ir_measures.iter_calc([ir_measures.nDCG @ 10], qrels, run)]
                assert len(values) == len(queries)
                per_query[mode] += values
                row.append(float(np.mean(values)))
            macro.append(row)
            here = {q.meta["cluster"] for q in queries}
            topics |= here
            print(f"{collection.domain:32}" + "".join(f"{v:9.3f}" for v in row) + f"   {len(queries)} / {len(here)}")
        n = len(per_query["both"])
        print(f"{'micro':32}" + "".join(f"{np.mean(v):9.3f}" for v in per_query.values()) + f"   {n} / {len(topics)}")
        if len(macro) == len(collections):
            print(f"{'macro':32}" + "".join(f"{v:9.3f}" for v in np.mean(macro, axis=0)))


if __name__ == "__main__":
    main()
