"""What an evaluation gives away, and the runs of others that it takes in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.data.names import trec_name
from core.evaluate.evaluate import Evaluation, Scores
from core.evaluate.imported import Imported, run_of_import
from core.evaluate.io_mteb import write_results
from core.evaluate.io_trec import write_qrels, write_run
from core.evaluate.make import Made, judged_by
from core.evaluate.measures import ALL, not_available, per_query, without_relevant
from core.evaluate.run import Run, open_run, save
from core.evaluate.tables import to_csv, to_latex
from core.retrievers.place import Place
from core.store.atomic import write_bytes


def write_tables(rows: Sequence[dict[str, Any]], csv: Path | None, latex: Path | None) -> None:
    """The rows of an evaluation as CSV and as LaTeX (booktabs), where a file is named."""
    for path, text in ((csv, to_csv), (latex, to_latex)):
        if path is not None:
            write_bytes(path, text(rows).encode())


def write_trec(evaluation: Evaluation, scores: Sequence[Scores], folder: Path) -> None:
    """Every run as ``<model>/<place>.run.gz`` and the judgements of its collections as ``qrels/<place>.qrels``."""
    for found in scores:
        for made in found.runs:
            place = trec_name(made.info.place)
            write_run(folder / trec_name(made.info.model) / f"{place}.run.gz", open_run(made.folder).run)
            if found.scope == "collections":
                write_qrels(folder / "qrels" / f"{place}.qrels", evaluation.dataset.collections[made.info.place].qrels)


def write_mteb(evaluation: Evaluation, scores: Sequence[Scores], folder: Path) -> None:
    """Each model's means over collections in MTEB's result layout; see `core.evaluate.io_mteb.write_results`."""
    for found in scores:
        if found.scope != "collections":
            continue
        means: dict[str, dict[str, float | None]] = {}
        for measure in ALL:
            for domain, cell in evaluation.row(found, measure)["by_domain"].items():
                means.setdefault(domain, {})[measure] = cell and cell["mean"]
        spec, dataset = found.retriever.spec, evaluation.dataset
        seconds = math.fsum(open_run(made.folder).timing.get("seconds", 0.0) for made in found.runs)
        place = (folder, dataset.name, dataset.data_id, found.task, spec.model_id, spec.revision)
        write_results(*place, means, seconds or None)


def measured_import(
    imported: Imported, place: Place, model: str, model_id: str, revision: str
) -> tuple[Run, dict[str, dict[str, float]]]:
    """The results of a file as the run of a model on one collection, and its measures."""
    overlay = judged_by(place.dataset)
    run = run_of_import(imported, place.collections[0], model, model_id, revision, overlay)
    names = [name for name in ALL if not not_available(name, place.positives_only)]
    return run, per_query(run.rankings, place.qrels, names)


def store_import(imported: Imported, place: Place, model: str, model_id: str, revision: str, root: Path) -> Made:
    """Store `measured_import`."""
    run, measures = measured_import(imported, place, model, model_id, revision)
    facts = {
        "notes": imported.notes(),
        "stands_for": "",
        "without_relevant": len(without_relevant(place.qrels, place.qrels)),
        "positives_only": place.positives_only,
    }
    folder = save(root, place.dataset.data_id, run, measures, {}, facts)
    return Made(folder, run.info, True)
