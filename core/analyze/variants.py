"""The stored runs of the modality ablation that belong to a full run; making them is `core.evaluate.make`'s."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from core.evaluate.make import ABLATION_DEPTH, make_ablation
from core.evaluate.run import RunInfo, StoredRun, open_run
from core.retrievers.ablated import PICTURE, SWAPPED, VARIANTS, WORDS, weight_of, why_not, why_not_named
from core.store.manifest import ManifestError

__all__ = ["ABLATION_DEPTH", "PICTURE", "SWAPPED", "VARIANTS", "WORDS", "make_ablation", "stored_ablation", "why_not"]


def stored_ablation(roots: Sequence[Path], data_id: str, info: RunInfo) -> dict[str, list[StoredRun]] | str:
    """The ablation of a full run: one run of `PICTURE`, one of `WORDS`, and those of `SWAPPED`, a seed each.

    They share its place, encoders, fold plan, split and judgements. A sentence where there are none: the model has
    not two sides, or the runs are missing or damaged. Opens the folders where they must lie, and no others. Queries
    without a place in the ablation are in each run's ``facts["without_hits"]``; a measure of them says nothing.
    """
    if reason := why_not_named(info.model, info.fusion):
        return reason
    found: dict[str, list[StoredRun]] = {}
    for variant in VARIANTS:
        weight = weight_of(variant, info.weight)
        own = dataclasses.replace(info, variant=variant, weight=weight, depth=ABLATION_DEPTH, index_kind="exact")
        run = _open(roots, data_id, own)
        if run is None:
            make = f"python -m core evaluate DATA --model {info.model} --ablation makes them"
            return f"N/A: its runs of the modality ablation are not stored; {make}"
        found.setdefault(variant.partition("-")[0], []).append(run)
    return found


def _open(roots: Sequence[Path], data_id: str, info: RunInfo) -> StoredRun | None:
    for root in roots:
        try:
            return open_run(Path(root) / "runs" / data_id / info.folder)
        except ManifestError:
            continue  # absent or damaged here
    return None
