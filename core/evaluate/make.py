"""Make and store the runs of a model with their measures: the benchmark's protocol, one run a collection."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.data.collection import Collection
from core.data.dataset import silent
from core.embed.centring import SAMPLE, SEED
from core.embed.pipeline import Progress
from core.evaluate.fair import Answerer, Fair
from core.evaluate.measures import DEFAULT, per_query, without_relevant
from core.evaluate.rank import qrels_of, rank_collection
from core.evaluate.run import Rankings, Run, RunInfo, open_run, save
from core.store.manifest import ManifestError

DEPTH = 1000
"""Documents a ranking holds at most."""


@dataclass(frozen=True, slots=True)
class Made:
    """A stored run: its folder, and whether it was made now or stood there already."""

    folder: Path
    info: RunInfo
    fresh: bool


def make_runs(fair: Fair, task: str, progress: Progress = silent, depth: int = DEPTH) -> list[Made]:
    """One run a collection of the task, full queries at the default weight, exact search; what is stored is kept.

    Every query of a collection is in its run; those without a relevant document are in no measure and are counted in
    the run's facts. Runs of cross-fitted heads name the encoder that they stand for.
    """
    answerers = list(fair.answerers(task, progress))
    return [_made(fair, answerers, collection, depth, progress) for collection in fair.dataset.pool(task).collections]


def _made(fair: Fair, answerers: Sequence[Answerer], collection: Collection, depth: int, progress: Progress) -> Made:
    workspace, encoder = fair.pipeline.workspace, fair.pipeline.encoder
    weights = [answerer.searcher.default_weight for answerer in answerers]
    info = RunInfo(
        model=encoder.name,
        model_id=encoder.spec.model_id,
        revision=encoder.spec.revision,
        encoder_ids=tuple(answerer.searcher.encoder.encoder_id for answerer in answerers),
        task=collection.task,
        place=collection.key,
        fusion="centred",
        weight=weights[0] if len(set(weights)) == 1 else None,
        centring=f"sample {SAMPLE}, seed {SEED}",
        index_kind="exact",
        depth=depth,
        fold_plan=fair.fold_plan,
    )
    folder = workspace.path("runs", fair.dataset.data_id, info.folder)
    try:
        open_run(folder)
        return Made(folder, info, False)
    except ManifestError:
        pass  # absent or damaged: made now
    started, rankings = time.perf_counter(), {}
    for answerer in answerers:
        queries = [q for q in answerer.queries if q.collection == collection.key]
        rankings |= rank_collection(answerer.searcher, collection, queries, None, depth, progress)
    queries = list(collection.all_queries())
    qrels = qrels_of(collection, queries)
    measures = per_query(rankings, qrels, DEFAULT)
    facts = _facts(fair, answerers, rankings, qrels, weights)
    timing = {"seconds": time.perf_counter() - started, "queries": len(queries)}
    save(workspace.root, fair.dataset.data_id, Run(info, rankings), measures, timing, facts)
    return Made(folder, info, True)


def _facts(
    fair: Fair,
    answerers: Sequence[Answerer],
    rankings: Rankings,
    qrels: Mapping[str, Mapping[str, int]],
    weights: Sequence[float],
) -> dict[str, Any]:
    index = answerers[0].searcher.index
    return {
        "stands_for": fair.pipeline.encoder.encoder_id,
        "answered_by": fair.source,
        "weights": list(weights),
        "without_relevant": len(without_relevant(rankings, qrels)),
        "left_out_documents": index.facts["left_out"],
        "truncated_texts": index.facts["truncated"],
    }
