"""One measure of one model's runs, ready to be compared, and which runs are *listed*: in the tables and the tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.evaluate.run import StoredRun, document

Key = tuple[str, str]
"""(collection, query id)."""

CONDITIONS = {
    "data_id": "version of the data",
    "precision": "precision",
    "depth": "depth of the rankings",
    "cut_off": "cut-off",
    "index_kind": "index",
}
"""Conditions that compared runs should share, in words; those that no run states are passed over."""


@dataclass(frozen=True)
class Scored:
    """One measure of the queries of one model's runs: ``run_ids`` names them, one or more collections together.

    ``values`` is NaN for a query that the model cannot answer. Queries seen in training are not in it. ``clusters``
    and ``domains`` name those of each query. ``conditions`` holds the keys of `CONDITIONS`, and for `family`:
    ``data_id``, ``variant``, ``index_kind``, ``overlay``, ``split``, ``fold_plan``, ``depth`` as in `RunInfo`,
    ``default_weighting`` (bool: fusion and weight are the model's own defaults), ``trained_on`` (bool: its card names
    cases of this data), ``revised`` (a number or date that grows with the revisions of a model), and ``judged_by``
    where the data set's own judgements are not of overlay ""; or ``imported`` (bool) alone. ValueError where a query
    has no cluster or domain.
    """

    name: str
    model_id: str
    revision: str
    run_ids: tuple[str, ...]
    task: str
    measure: str
    values: Mapping[Key, float]
    clusters: Mapping[Key, str]
    domains: Mapping[Key, str]
    conditions: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind, named in (("cluster", self.clusters), ("domain", self.domains)):
            lost = next((key for key in self.values if key not in named), None)
            if lost is not None:
                raise ValueError(f"query {lost[1]!r} of {lost[0]} in the runs of {self.name} has no {kind}")


def from_stored(
    runs: Sequence[StoredRun],
    measure: str,
    clusters: Mapping[Key, str],
    domains: Mapping[Key, str],
    conditions: Mapping[str, Any],
) -> Scored:
    """One model's runs of one task, a collection each, as one record; ``conditions`` adds what the runs do not know.

    ValueError where the runs are not of one data set, task, model, revision and setting; KeyError where a run lacks
    the measure; ManifestError where one is damaged.
    """
    shared = (
        "model",
        "model_id",
        "revision",
        "task",
        "variant",
        "overlay",
        "split",
        "index_kind",
        "depth",
        "fold_plan",
    )
    settings = {(run.data_id, *(getattr(run.info, name) for name in shared)) for run in runs}
    if len(settings) != 1:
        raise ValueError(f"{len(settings)} settings in one record: give one model's runs of one task, made alike")
    info = runs[0].info
    values = {document(q, r.info.place): v for r in runs for q, v in r.measures[measure].items()}
    known = {name: getattr(info, name) for name in shared[4:]} | {"data_id": runs[0].data_id}
    ids = tuple(sorted({run.info.run_id for run in runs}))
    name, model, revision, task = (getattr(info, attribute) for attribute in shared[:4])
    return Scored(name, model, revision, ids, task, measure, values, clusters, domains, {**conditions, **known})


def unlisted(run: Scored) -> str:
    """Why a run is in no table of comparison, "" where it is listed; ValueError where it does not say enough."""
    has = run.conditions
    if has.get("imported"):
        return ""
    try:
        reasons = {
            f"variant {has['variant']}": has["variant"] != "full",
            f"index {has['index_kind']}": has["index_kind"] != "exact",
            "fusion or weight is not the default": not has["default_weighting"],
            "judged anew": has["overlay"] != has.get("judged_by", ""),
            f"only the queries of split {has['split']}": bool(has["split"]),
            "trained on this data and not cross-fitted": has["trained_on"] and not has["fold_plan"],
        }
    except KeyError as error:
        raise ValueError(f"the run of {run.name} does not state {error}, so whether it is listed is unknown") from None
    return next((reason for reason, holds in reasons.items() if holds), "")


def family(runs: Iterable[Scored]) -> list[Scored]:
    """The listed runs by name: full variant, exact index, default fusion and weight, no overlay, cross-fitted where
    the model was trained on the data; of each model, data set, task and measure that of the newest revision, of those
    the deepest. What anybody ticks plays no part. ValueError as in `unlisted`.
    """
    best: dict[tuple, Scored] = {}
    for run in runs:
        if not unlisted(run):
            of = (run.conditions.get("data_id"), run.task, run.measure, run.model_id)
            best[of] = max(best.get(of, run), run, key=_newest)
    return sorted(best.values(), key=lambda run: (run.name, run.model_id, run.task, run.measure, run.run_ids))


def _newest(run: Scored) -> tuple:
    return run.conditions.get("revised", 0), run.conditions.get("depth", 0), run.revision, run.run_ids
