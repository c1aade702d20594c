"""nDCG@10 of ``medlite`` on all of MedPix, cross-fitted, beside the frozen tower and what training data would flatter.

    python tests/bench/crossfit.py MEDPIX [--task query_to_image]

MEDPIX is what ``python -m core prepare medpix`` wrote. Each query is answered by the fold head that saw neither its
case nor its topic. Per collection (the benchmark's protocol), exact, the query's own picture is never its answer;
intervals are cluster-robust t by topic. *frozen*: the picture tower's 1,280 features, centred, picture alone. *seen*:
the shipped head on the queries it was trained on; the difference to the cross-fitted rows of the same queries is the
leak.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.adapt.crossfit import fold_encoders, fold_plan, seen
from core.adapt.features import Features
from core.adapt.pairs import case_of
from core.data.dataset import open_dataset, silent
from core.data.topics import cluster_of
from core.embed.centring import normalise
from core.embed.pipeline import Pipeline
from core.evaluate.measures import per_query
from core.evaluate.rank import qrels_of, rank_collection
from core.evaluate.run import trec_name
from core.evaluate.stats import cluster_mean
from core.models.medlite import FOLDER, MedliteEncoder
from core.search.searcher import Searcher
from core.settings import Settings
from core.store.workspace import open_workspace

MODES = {"picture": 1.0, "words": 0.0, "both": None}
NAME = "nDCG@10"


class Values(dict):
    """(collection, query id) → nDCG@10."""

    def add(self, collection, queries, rankings) -> None:
        qrels = qrels_of(collection, queries)
        for query in queries:
            found = per_query(rankings, {trec_name(query.id): qrels[trec_name(query.id)]}, [NAME])[NAME]
            if found:
                self[collection.key, query.id] = found[trec_name(query.id)]


def ranked(dataset, task, encoder, workspace, features, wanted) -> dict[str, Values]:
    """nDCG@10 of one encoder, by mode, for the queries that ``wanted`` says."""
    pipeline = Pipeline(encoder, workspace)
    features.fill(pipeline, dataset, silent)
    searcher = Searcher(dataset, task, pipeline)
    result = {mode: Values() for mode in MODES}
    for collection in dataset.pool(task).collections:
        queries = [query for query in collection.all_queries() if wanted(query)]
        for mode, weight in MODES.items():
            result[mode].add(collection, queries, rank_collection(searcher, collection, queries, weight, 10))
    return result


def frozen(dataset, task, features) -> Values:
    """The picture tower alone, written out: cosine of its centred features."""
    result = Values()
    for collection in dataset.pool(task).collections:
        docs = [doc for doc in collection.docs() if doc.images]
        queries = list(collection.all_queries())
        references = [r for item in (*docs, *queries) for r in item.images]
        keys = features.pipelines["image"].picture_keys(collection, references)
        x = features.get("image", [keys[doc.images[0]] for doc in docs])
        asked = features.get("image", [keys[query.images[0]] for query in queries])
        scores = normalise(asked - x.mean(0)) @ normalise(x - x.mean(0)).T
        rankings = {
            trec_name(q.id): [(trec_name(d.id), float(s)) for d, s in zip(docs, row, strict=True) if d.id != q.id]
            for q, row in zip(queries, scores, strict=True)
        }
        result.add(collection, queries, rankings)
    return result


def cell(values: Values, clusters: dict, keys: list) -> str:
    estimate = cluster_mean([values[key] for key in keys], [clusters[key] for key in keys])
    return f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("medpix", type=Path)
    parser.add_argument("--task", default="query_to_image")
    arguments = parser.parse_args()

    workspace = open_workspace(Settings.from_environment().workspace)
    dataset = open_dataset(arguments.medpix, workspace)
    task, plan = arguments.task, fold_plan(dataset)
    shipped = MedliteEncoder()
    features = Features(shipped, workspace)
    columns: dict[str, Values] = {mode: Values() for mode in MODES}
    for number, encoder in enumerate(fold_encoders(dataset, workspace, silent)):
        blocks, weights = encoder.config["blocks"], encoder.config["default_weight"]
        print(f"fold {number}: α {blocks['alpha']}, β {blocks['beta']}, default weights {weights}")
        found = ranked(dataset, task, encoder, workspace, features, lambda q, n=number: plan.of_query(q) == n)
        for mode in MODES:
            columns[mode].update(found[mode])
    if dataset.pool(task).target == "image":
        columns = {"frozen": frozen(dataset, task, features), **columns}
    queries = {(c.key, q.id): q for c in dataset.pool(task).collections for q in c.all_queries()}
    clusters = {key: cluster_of(query) for key, query in queries.items()}
    everything = [key for key in queries if key in columns["both"]]
    print(f"\n{task}, all queries, cross-fitted: {NAME}")
    print(f"{'domain':32}" + "".join(f"{name:>22}" for name in columns) + "   queries / topics")
    domains = {c.key: c.domain for c in dataset.pool(task).collections}
    for name, keys in [(domains[c], [k for k in everything if k[0] == c]) for c in domains] + [("micro", everything)]:
        cells = "".join(f"{cell(values, clusters, keys):>22}" for values in columns.values())
        print(f"{name:32}{cells}   {len(keys)} / {len({clusters[key] for key in keys})}")
    macro = [np.mean([np.mean([v[k] for k in everything if k[0] == c]) for c in domains]) for v in columns.values()]
    print(f"{'macro':32}" + "".join(f"{value:>22.3f}" for value in macro))
    if "frozen" in columns:
        difference = [columns["picture"][k] - columns["frozen"][k] for k in everything]
        estimate = cluster_mean(difference, [clusters[k] for k in everything], (-1.0, 1.0))
        print(f"picture − frozen: {estimate.mean:+.4f} [{estimate.low:+.4f}, {estimate.high:+.4f}]")
    difference = [columns["both"][k] - columns["picture"][k] for k in everything]
    estimate = cluster_mean(difference, [clusters[k] for k in everything], (-1.0, 1.0))
    print(f"both − picture: {estimate.mean:+.4f} [{estimate.low:+.4f}, {estimate.high:+.4f}]")

    names = seen(dataset, FOLDER, workspace)
    leaked = ranked(dataset, task, shipped, workspace, features, lambda q: case_of(q) in names)
    keys = [key for key in everything if key in leaked["both"]]
    print(f"\nthe leak: the {len(keys)} queries of training cases, micro {NAME}")
    for name, values in (("cross-fitted", columns), ("training data", leaked)):
        print(f"{name:16}" + "".join(f"{mode} {cell(values[mode], clusters, keys)}   " for mode in MODES))


if __name__ == "__main__":
    main()
