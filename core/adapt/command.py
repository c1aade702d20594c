"""What ``python -m core adapt`` does: one head with its card, and the fold heads when asked for."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from core.adapt.card import render
from core.adapt.contrastive import Progress
from core.adapt.crossfit import SEED, fold_encoders
from core.adapt.make import FILES, AdaptError, make_head, material
from core.data.dataset import DataSet
from core.models.medlite import CONFIG, FOLDER, HEAD, MedliteEncoder
from core.store.atomic import write_bytes
from core.store.workspace import Workspace

CARD, TRIALS = "README.md", "trials.json"

__all__ = ["AdaptError", "adapt_head"]


def adapt_head(
    dataset: DataSet,
    split: str,
    out: Path,
    workspace: Workspace,
    progress: Progress,
    *,
    folds: int = 0,
    seed: int = SEED,
) -> dict[str, Any]:
    """Train on a split and write head, configuration, evidence, training cases and card into ``out``.

    With ``folds`` the cross-fitting heads are made too, in the workspace. Returns a summary. A folder that holds other
    things than a head is refused (AdaptError); of a head's folder only these files are replaced.
    """
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / CONFIG).is_file())):
        raise AdaptError(f"{out} is there and holds no head; name a new or an empty folder.")
    if out.resolve().is_relative_to(dataset.root.resolve()):
        raise AdaptError(f"{out} lies inside the data set, where nothing is written; name another folder.")
    given = material(dataset, split, workspace, progress)
    out.mkdir(parents=True, exist_ok=True)
    trials = json.loads((out / TRIALS).read_bytes()) if out.resolve() == FOLDER.resolve() else None
    with tempfile.TemporaryDirectory() as name:
        evidence = make_head(given, Path(name), seed, progress)
        # the configuration names the head's hash: a killed run leaves a pair that is refused, never one that is mixed
        for file in sorted(FILES, key=lambda file: file == CONFIG):
            write_bytes(out / file, (Path(name) / file).read_bytes())
    write_bytes(out / CARD, render(evidence, trials).encode())
    encoders = fold_encoders(dataset, workspace, progress, folds=folds, seed=seed) if folds else []
    best = evidence["epochs"][evidence["best_epoch"]]
    return {
        "out": str(out),
        "encoder_id": MedliteEncoder(head_folder=out).encoder_id,
        "data_id": dataset.data_id,
        "counts": evidence["counts"],
        "best_epoch": evidence["best_epoch"],
        "success": {
            "unseen topics": {k: best[k] for k in ("text_to_image", "image_to_image")},
            "trained topics": evidence["fitted_success"],
        },
        "blocks": evidence["blocks"],
        "default_weight": evidence["default_weight"],
        "head": str(out / HEAD),
        "folds": [str(encoder.folder) for encoder in encoders],
    }
