"""Make and store the runs of a retriever with their measures, one run a place; what is stored is not made again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from core.data.dataset import DataSet, silent
from core.embed.pipeline import Progress
from core.evaluate.measures import ALL, not_available, per_query, without_relevant
from core.evaluate.run import Run, RunInfo, open_run, save
from core.retrievers.ablated import VARIANTS, Ablated, why_not
from core.retrievers.base import Ranked, Retriever
from core.retrievers.dense import Dense
from core.retrievers.fair import Fair
from core.retrievers.place import Place
from core.store.manifest import ManifestError
from core.store.workspace import Workspace

DEPTH = 1000
"""Documents a ranking holds at most."""

ABLATION_DEPTH = 100
"""The same in runs of the modality ablation."""


@dataclass(frozen=True, slots=True)
class Made:
    """A stored run: its folder, and whether it was made now or stood there already."""

    folder: Path
    info: RunInfo
    fresh: bool


def judged_by(dataset: DataSet) -> str:
    """The ``overlay`` of runs that are judged with the file a data set was opened with: "" for ``qrels/test.tsv``."""
    return "" if dataset.qrels_name == "test" else f"qrels {dataset.qrels_name}"


def run_info(retriever: Retriever, place: Place, depth: int, index_kind: str = "exact") -> RunInfo:
    """What the run of a retriever on a place is called; finding it needs no ranking."""
    recipe = retriever.recipe(place.task)
    return RunInfo(
        model=retriever.spec.name,
        model_id=retriever.spec.model_id,
        revision=retriever.spec.revision,
        encoder_ids=recipe.encoder_ids,
        task=place.task,
        place=place.name,
        fusion=recipe.fusion,
        weight=recipe.weight,
        centring=recipe.centring,
        index_kind=index_kind,
        depth=depth,
        variant=recipe.variant,
        fold_plan=recipe.fold_plan,
        overlay=judged_by(place.dataset),
    )


def make_run(
    retriever: Retriever,
    place: Place,
    workspace: Workspace,
    progress: Progress = silent,
    depth: int = DEPTH,
    index_kind: str = "exact",
) -> Made | None:
    """The stored run of ``retriever`` on a place, made if it is missing or damaged; None where it is not available.

    Every query of the place is in its run; those without a relevant document are in no measure and are counted in the
    run's facts. Runs of cross-fitted heads name the encoder they stand for. The workspace and what is shipped are
    looked through in this order.
    """
    if retriever.cannot(place):
        return None
    data_id, info = place.dataset.data_id, run_info(retriever, place, depth, index_kind)
    for root in workspace.roots:
        folder = root / "runs" / data_id / info.folder
        try:
            stored = open_run(folder)
            if set(stored.measures) >= {name for name in ALL if not not_available(name, place.positives_only)}:
                return Made(folder, info, False)
        except ManifestError:
            pass  # absent or damaged
    started = time.perf_counter()
    ranked = retriever.rank(place, depth, progress)
    seconds = time.perf_counter() - started
    names = [name for name in ALL if not not_available(name, place.positives_only)]
    measures = per_query(ranked.rankings, place.qrels, names)
    facts = {
        **ranked.facts,
        "stands_for": retriever.stands_for,
        "without_relevant": len(without_relevant(place.qrels, place.qrels)),
        "positives_only": place.positives_only,
    }
    timing = {"seconds": seconds, "queries": len(place.queries), "documents": len(place.ids)}
    save(workspace.root, data_id, Run(info, ranked.rankings), measures, timing, facts)
    return Made(workspace.path("runs", data_id, info.folder), info, True)


def make_ablation(retriever: Retriever, place: Place, workspace: Workspace, progress: Progress = silent) -> list[Made]:
    """The stored runs of the modality ablation of an encoder on a place, made where they are missing or damaged.

    They are those of `VARIANTS` in this order, always exact. ValueError with the reason for any other retriever, see
    `why_not`.
    """
    if not isinstance(retriever, Dense) or why_not(retriever):
        raise ValueError(why_not(retriever))
    known: dict = {}
    found = (
        make_run(Ablated(retriever, variant, known), place, workspace, progress, ABLATION_DEPTH) for variant in VARIANTS
    )
    return [made for made in found if made is not None]


def stored_ranking(
    retriever: Retriever, place: Place, workspace: Workspace, progress: Progress, depth: int, index_kind: str = "exact"
) -> Ranked:
    """The rankings and facts of a run that is stored or made now."""
    made = make_run(retriever, place, workspace, progress, depth, index_kind)
    assert made is not None, "asked for only where the retriever has a run"
    stored = open_run(made.folder)
    return Ranked(stored.run.rankings, stored.facts)


def make_runs(fair: Fair, task: str, progress: Progress = silent, depth: int = DEPTH) -> list[Made]:
    """The run of an encoder, or of the heads that stand for it, on each collection of a task."""
    retriever, workspace = Dense(fair), fair.pipeline.workspace
    places = [Place(fair.dataset, task, workspace, c.key) for c in fair.dataset.pool(task).collections]
    made = (make_run(retriever, place, workspace, progress, depth) for place in places)
    return [one for one in made if one is not None]
