"""Fill the store that the repository ships for the demo: vectors, match strengths, runs and costs of the models in it.

Everything is made from scratch in a workspace of its own, so that nothing old is shipped, and put in place at the end.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.data.dataset import open_dataset, silent
from core.embed.pipeline import Progress
from core.evaluate.cost import measure, store
from core.evaluate.evaluate import OFFLINE, Choice, Evaluation
from core.evaluate.run import TIMING
from core.models import specs
from core.retrievers.ablated import why_not
from core.retrievers.dense import Dense
from core.search.calibrate import calibrate
from core.search.searcher import Searcher
from core.search.strength import FILE
from core.settings import DEMO
from core.store.workspace import Workspace


def ship(out: Path, models: Sequence[str] | None = None, progress: Progress = silent) -> list[dict[str, Any]]:
    """Replace the store in ``out`` by that of ``models`` (default: `OFFLINE`) on the demo; one row a model and task.

    Raises ModelUnavailable where a model cannot run here and KeyError for an unknown one; then ``out`` stays as it is.
    """
    with tempfile.TemporaryDirectory(prefix="ship-") as name:
        made = Workspace(Path(name), shipped=None)
        dataset = open_dataset(DEMO, made, progress=progress)
        evaluation = Evaluation(dataset, made, Choice(), progress)
        rows = [row for model in models or OFFLINE for row in _model(evaluation, model, progress)]
        out.mkdir(parents=True, exist_ok=True)
        for part in ("vectors", "index", "runs", "costs"):
            shutil.rmtree(out / part, ignore_errors=True)
        for file in _kept(made.root):
            target = out / file.relative_to(made.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return rows


def _kept(root: Path) -> Iterator[Path]:
    """What takes long to make. Indexes are joined from vectors in a moment, and times of runs are those of one machine;
    so are costs, but each names the machine that ships and how busy it was."""
    yield from root.glob("vectors/*/*/block-*/*")
    yield from root.glob(f"index/*/*/*/{FILE}")
    yield from (file for file in root.glob("runs/*/*/*/*") if file.name != TIMING)
    yield from root.glob("costs/*/*/*.json")


def _model(evaluation: Evaluation, model: str, progress: Progress) -> Iterator[dict[str, Any]]:
    retriever = evaluation.retriever(model)
    spec = retriever.spec
    for task in evaluation.tasks:
        if isinstance(retriever, Dense):
            fair = retriever.fair
            parts = [(answerer.searcher, answerer.queries) for answerer in fair.answerers(task, progress)]
            searcher = Searcher(fair.dataset, task, fair.pipeline, progress, with_graph=False)
            searcher.keep_calibration(calibrate(searcher, parts, fair.source, progress))
        row = {"model": spec.name, "model_id": spec.model_id, "revision": spec.revision, "task": task}
        runs = sum(len(scores.runs) for scores in evaluation.scores(model, task))
        ablation = [] if why_not(retriever) else evaluation.ablation(model, task)
        if model in specs.SPECS:  # a hybrid costs what its parts do
            store(measure(evaluation.dataset, evaluation.workspace, task, model, progress), evaluation.workspace)
        yield row | {"runs": runs + len(ablation)}
