"""Fill the store that the repository ships for the demo: vectors, match strengths and runs of the models in it.

Everything is made from scratch in a workspace of its own, so that nothing old is shipped, and put in place at the end.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.data.dataset import DataSet, open_dataset, silent
from core.embed.pipeline import Pipeline, Progress
from core.evaluate.fair import Fair
from core.evaluate.make import make_runs
from core.evaluate.run import TIMING
from core.models import specs
from core.search.calibrate import calibrate
from core.search.searcher import Searcher
from core.search.strength import FILE
from core.settings import DEMO
from core.store.workspace import Workspace


def ship(out: Path, models: Sequence[str] | None = None, progress: Progress = silent) -> list[dict[str, Any]]:
    """Replace the store in ``out`` by that of ``models`` (default: all) on the demo; one row a model and task.

    Raises ModelUnavailable where a model cannot run here and KeyError for an unknown one; then ``out`` stays as it is.
    """
    with tempfile.TemporaryDirectory(prefix="ship-") as name:
        made = Workspace(Path(name), shipped=None)
        dataset = open_dataset(DEMO, made, progress=progress)
        rows = [row for model in models or specs.SPECS for row in _model(dataset, model, made, progress)]
        out.mkdir(parents=True, exist_ok=True)
        for part in ("vectors", "index", "runs"):
            shutil.rmtree(out / part, ignore_errors=True)
        for file in _kept(made.root):
            target = out / file.relative_to(made.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return rows


def _kept(root: Path) -> Iterator[Path]:
    """What takes long to make. Indexes are joined from vectors in a moment, and times are those of one machine."""
    yield from root.glob("vectors/*/*/block-*/*")
    yield from root.glob(f"index/*/*/*/{FILE}")
    yield from (file for file in root.glob("runs/*/*/*/*") if file.name != TIMING)


def _model(dataset: DataSet, model: str, workspace: Workspace, progress: Progress) -> Iterator[dict[str, Any]]:
    pipeline = Pipeline(specs.load(model), workspace)
    fair, spec = Fair(dataset, pipeline, progress), pipeline.encoder.spec
    for task in dataset.tasks:
        before = pipeline.done.encoded
        answerers = list(fair.answerers(task, progress))
        parts = [(answerer.searcher, answerer.queries) for answerer in answerers]
        searcher = Searcher(dataset, task, pipeline, progress, with_graph=False)
        searcher.keep_calibration(calibrate(searcher, parts, fair.source, progress))
        row = {"model": spec.name, "model_id": spec.model_id, "revision": spec.revision, "task": task}
        row["runs"] = len(make_runs(fair, task, progress))
        yield row | {"vectors": pipeline.done.encoded - before}
