"""Everything the failure analysis says about one run, for the command line, files and screens."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from core.analyze import lists, slices
from core.analyze.desk import Desk
from core.analyze.diagnosis import Diagnosis
from core.analyze.failures import FACETS
from core.analyze.rejudge import Overlay
from core.analyze.slices import AblationRow, Confusion, Group, KindRow
from core.data.dataset import silent
from core.embed.pipeline import Progress
from core.records import TASK_LABELS
from core.version import code_version

TASK = "task"
_FORMULA = tuple("=+-@＝＋－＠")


@dataclass(frozen=True, slots=True)
class Report:
    """One run: of one task, or of all of them where it is grouped by task (``task`` is "" then)."""

    run: str
    model_id: str
    revision: str
    run_ids: tuple[str, ...]
    source: str
    task: str
    scope: str
    by: str
    k: int
    measure: str
    overlay: str
    n: int
    clusters: int
    failures: int
    seen_excluded: int
    finding: str
    groups: tuple[Group, ...]
    kinds: tuple[KindRow, ...]
    unexplained: int
    ablation: tuple[AblationRow, ...]
    ablation_note: str
    confusion: tuple[Confusion, ...]


def report(diagnoses: Sequence[Diagnosis], by: str, k: int, measure: str) -> list[Report]:
    """The reports of one model's diagnoses: one a task, or one of all tasks grouped by task.

    ValueError for a facet that no query has.
    """
    known = slices.facets(diagnoses)
    if by not in (*slices.BY, *known):
        raise ValueError(f"No query names {by!r}; group by {', '.join(dict.fromkeys((*slices.BY, *known)))}.")
    if by == TASK:
        return [_report(diagnoses, by, k, measure)]
    return [_report([one], by, k, measure) for one in diagnoses]


def _report(diagnoses: Sequence[Diagnosis], by: str, k: int, measure: str) -> Report:
    first = diagnoses[0]
    groups = slices.where(diagnoses, by, k, measure)
    one = first if len(diagnoses) == 1 else None
    unexplained, failures = slices.unexplained(diagnoses, k)
    facets = [facet for facet in FACETS if one is not None and len(slices.confusion(one, facet).names) > 1]
    return Report(
        run=first.label,
        model_id=first.run.model_id,
        revision=first.run.revision,
        run_ids=tuple(name for d in diagnoses for name in d.run_ids),
        source=first.run.source,
        task=first.run.task if one is not None else "",
        scope=first.run.scope,
        by=by,
        k=k,
        measure=measure,
        overlay=first.overlay,
        n=sum(len(d.queries) for d in diagnoses),
        clusters=len({name for d in diagnoses for name in d.clusters}),
        failures=failures,
        seen_excluded=sum(d.seen_excluded for d in diagnoses),
        finding=finding(first.label, groups, k),
        groups=tuple(groups),
        kinds=tuple(slices.kinds(diagnoses, k)),
        unexplained=unexplained,
        ablation=tuple(slices.ablation(one)) if one is not None else (),
        ablation_note=_weights(one) if one is not None else "",
        confusion=tuple(slices.confusion(one, facet) for facet in facets) if one is not None else (),
    )


def _weights(diagnosis: Diagnosis) -> str:
    """What must be known of an ablation: where one side has no weight, leaving it out changes nothing by itself."""
    weights = {float(w) for run in diagnosis.run.runs for w in run.facts.get("weights", ())}
    if not diagnosis.ablation or not weights & {0.0, 1.0}:
        return ""
    every = "its" if len(weights) == 1 else "some heads'"
    side, agree = ("picture", "words only and swapped") if 0.0 in weights else ("words", "picture only")
    return (
        f"The full run gives the {side} no weight ({every} default here), so that full, {agree} agree by construction; "
        f"this says nothing about the {side} itself."
    )


def finding(label: str, groups: Sequence[Group], k: int) -> str:
    """One sentence: the group whose failure rate is surely highest, and what marks its failures."""
    counted = [group for group in groups if group.n]
    if not counted:
        return f"{label} has no judged query here."
    if not any(group.failures for group in counted):
        return f"{label} has a relevant document in the first {k} for every query."
    top = next((group for group in counted if not group.pooled), None)
    if top is None:
        pooled = counted[0]
        return (
            f"{label} fails on {_percent(pooled.rate.mean)} of all {pooled.n:,} queries ({_counts(pooled)}); no group "
            f"has enough clusters to be looked at alone{_marked(pooled)}."
        )
    return f"{label} fails on {_percent(top.rate.mean)} of {top.name} queries ({_counts(top)}){_marked(top)}."


def _percent(value: float) -> str:
    return "N/A" if math.isnan(value) else f"{100 * value:.0f} %"


def _counts(group: Group) -> str:
    interval = "no interval" if group.rate.low is None else f"{100 * group.rate.low:.0f}–{100 * group.rate.high:.0f} %"
    topics = f"{group.clusters:,} cluster{'' if group.clusters == 1 else 's'}"
    return f"{group.n:,} quer{'y' if group.n == 1 else 'ies'}, {topics}; {interval}"


def _marked(group: Group) -> str:
    """What stands out among the failures of a group, with how common it is among its other queries."""
    if not group.dominant or not group.failures:
        return ""
    rest = "" if math.isnan(group.elsewhere) else f", {_percent(group.elsewhere)} of the rest"
    return f"; most marked among its failures: {group.dominant} ({_percent(group.share)}{rest})"


def overview(
    desk: Desk,
    main: Diagnosis,
    by: str,
    k: int,
    measure: str,
    overlay: Overlay | None = None,
    progress: Progress = silent,
) -> Report:
    """The report of one diagnosis; grouped by task, that of the same run in every task."""
    if by != TASK:
        return _report([main], by, k, measure)
    every = []
    for task in desk.tasks():
        runs = desk.runs(task, main.run.scope)[0]
        every += [desk.diagnosis(run, overlay, progress) for run in runs if run.label == main.run.label]
    return _report(every, by, k, measure)


def rows_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of `failure_rows` as CSV; cells that a spreadsheet would run as a formula begin with an apostrophe."""
    out = io.StringIO(newline="")
    if rows:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.lstrip().startswith(_FORMULA) else value


def failure_rows(diagnosis: Diagnosis, k: int, measure: str, at: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """A flat row a query, for CSV and JSON; ``at`` are the queries, in this order; by default all that fail, worst
    first. Numbers that are N/A are None."""
    wanted = lists.chosen(diagnosis, k, measure, lists.Wanted()) if at is None else at
    return [_row(diagnosis, i, k, measure) for i in wanted]


def _row(diagnosis: Diagnosis, i: int, k: int, measure: str) -> dict[str, Any]:
    query, value = diagnosis.queries[i], float(diagnosis.measured(measure)[i])
    first = int(diagnosis.first[i])
    held = diagnosis.kinds(i, k)
    shares = {f"nDCG@10 {name}": _number(values[i]) for name, values in diagnosis.ablation.items()}
    top = diagnosis.hits(i)[:1]
    return {
        "run": diagnosis.label,
        "task": diagnosis.run.task,
        "collection": query.collection,
        "query": query.id,
        "cluster": diagnosis.clusters[i],
        "domain": diagnosis.domain(i),
        "specialty": query.meta.get("specialty"),
        "modality": query.meta.get("modality"),
        measure: _number(value),
        "first relevant": first or None,
        "depth": diagnosis.depth,
        "relevant": len(diagnosis.relevant(i)),
        "top hit": "/".join(top[0][0]) if top else None,
        "kinds": "; ".join(held),
        "evidence": "; ".join(f"{name}: {evidence}" for name, evidence in held.items()),
        **shares,
        "text": " ".join(query.text.split()),
    }


def _number(value: float | np.floating) -> float | None:
    return None if math.isnan(value) else float(value)


def provenance(diagnosis: Diagnosis) -> Mapping[str, str]:
    """What made the figures of a diagnosis, in words by name: on every view and in every file."""
    run = diagnosis.run
    tools = run.runs[0].facts.get("tools", {})
    return {
        "data": f"{diagnosis.dataset.name}, {diagnosis.dataset.data_id}",
        "judgements": diagnosis.dataset.qrels_name
        + (f", judged anew {diagnosis.overlay}" if diagnosis.overlay else ""),
        "task": TASK_LABELS.get(run.task, run.task),
        "scope": run.scope,
        "model": f"{run.label}: {run.model_id}, {run.revision}",
        "answered by": run.source,
        "runs": ", ".join(diagnosis.run_ids),
        "left out": f"{diagnosis.seen_excluded:,} queries the model was trained on",
        "code": f"M3Retrieve Explorer {code_version()}",
        "measured with": ", ".join(f"{name} {number}" for name, number in tools.items()),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
