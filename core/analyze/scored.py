"""One measure of one model's runs, ready to be compared, and which runs are *listed*: in the tables and the tests."""

from __future__ import annotations

from collections import defaultdict
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
    cases of this data), ``revised`` (a number that grows with the revisions of a model), and ``judged_by`` where the
    data set's own judgements are not of overlay ""; or ``imported`` (bool) alone. ValueError where a query has no
    cluster or domain.
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

    The depth of imports may differ, because that is the longest ranking of a file; the record has the deepest.
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
        "fold_plan",
    )
    settings = {(run.data_id, *(getattr(run.info, name) for name in shared)) for run in runs}
    depths = {run.info.depth for run in runs}
    if len(settings) != 1 or (len(depths) != 1 and runs[0].info.index_kind != "imported"):
        many = max(len(settings), len(depths))
        raise ValueError(f"{many} settings in one record: give one model's runs of one task, made alike")
    info = runs[0].info
    values = {document(q, r.info.place): v for r in runs for q, v in r.measures[measure].items()}
    known = {name: getattr(info, name) for name in shared[4:]} | {"data_id": runs[0].data_id, "depth": max(depths)}
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
    that on most collections, of those the deepest. What anybody ticks plays no part. ValueError as in `unlisted`.
    """
    return sorted_out(runs)[0]


def sorted_out(runs: Iterable[Scored]) -> tuple[list[Scored], list[str]]:
    """What `family` gives, and why each of the other runs is not listed, a sentence a run."""
    listed, left_out = [], []
    for run in runs:
        if reason := unlisted(run):
            left_out.append(f"{run.name} ({run.revision}): {reason}.")
        else:
            listed.append(run)
    for identity in ("model_id", "name"):  # a table cannot tell two of one name apart either
        best: dict[tuple, Scored] = {}
        for run in listed:
            of = (run.conditions.get("data_id"), run.task, run.measure, getattr(run, identity))
            last, first = sorted([best.get(of, run), run], key=_newest)
            best[of] = first
            if last is not first:
                left_out.append(f"{last.name} ({last.revision}): {_outdone(last, first)}.")
        listed = list(best.values())
    return sorted(listed, key=lambda run: (run.name, run.task, run.measure, run.run_ids)), sorted(left_out)


def _newest(run: Scored) -> tuple:
    """Sorts last what counts."""
    places = len({collection for collection, _ in run.values})
    return run.conditions.get("revised", 0), places, run.conditions.get("depth", 0), run.revision, run.run_ids


def _outdone(run: Scored, by: Scored) -> str:
    """Why another run of the same model is listed instead."""
    words = ("an older revision than the one listed", "on fewer collections", "less deep")
    pairs = zip(_newest(run), _newest(by), words, strict=False)
    return next((said for mine, other, said in pairs if mine != other), "another run of the same model is listed")


def mixed(runs: Sequence[Scored]) -> tuple[str, ...]:
    """Sentences on what differs in the conditions of runs that are compared."""
    found = []
    for key, words in CONDITIONS.items():
        states = [str(run.conditions.get(key, "not stated")) for run in runs]
        if len(set(states)) > 1:
            said = ", ".join(f"{run.name} {state}" for run, state in zip(runs, states, strict=True))
            found.append(f"The runs differ in {words}: {said}.")
    plans = {run.conditions["fold_plan"] for run in runs if run.conditions.get("fold_plan")}
    if len(plans) > 1:
        found.append(f"The cross-fitted runs follow {len(plans)} plans of folds.")
    revisions: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        revisions[run.model_id].add(run.revision)
    for model, several in sorted(revisions.items()):
        if len(several) > 1:
            found.append(f"Several revisions of {model} are compared: {', '.join(sorted(several))}.")
    return tuple(found)
