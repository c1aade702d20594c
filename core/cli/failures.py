"""The command failures: where runs fail, of which kind, and which queries."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.base import AsJson, Bar, Data, Qrels, app, fail, open_data
from core.cli.printing import line, print_json


@app.command()
def failures(
    data: Data,
    run: Annotated[list[str] | None, typer.Option(help="Stored run; may be repeated. All when left out.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    by: Annotated[
        str, typer.Option(help="Facet to group by: domain, specialty, modality, collection, task, …")
    ] = "domain",
    k: Annotated[int, typer.Option("-k", help="A failure has no relevant document in the first k.", min=1)] = 10,
    measure: Annotated[str, typer.Option(help="Measure whose mean is shown.")] = "nDCG@10",
    scope: Annotated[
        str, typer.Option(help="pool, collections, or empty for the pool where runs of it are stored.")
    ] = "",
    judgements: Annotated[
        Path | None, typer.Option(help="Re-judgements to score with: a CSV file of the page.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Also write every failing query to this file.")] = None,
    as_json: AsJson = False,
    qrels: Qrels = "test",
) -> None:
    """Where stored runs fail, how much of that each kind of failure explains, and which queries fail.

    Nothing is ranked or encoded; `evaluate` makes runs, and with --ablation those of the modality ablation.
    """
    from core.analyze.desk import Desk
    from core.analyze.report import failure_rows, report, rows_csv
    from core.analyze.task_runs import SCOPES
    from core.data.layouts import DataError
    from core.evaluate.measures import ALL
    from core.media.phash import Hashes
    from core.store.manifest import ManifestError

    if measure not in ALL:
        fail(f"Runs are stored without {measure!r}; they have {', '.join(ALL)}.")
    if scope and scope not in SCOPES:
        fail(f"--scope is {scope!r}; use {' or '.join(SCOPES)}.", 2)
    bar = Bar()
    dataset, workspace = open_data(data, qrels, bar)
    overlay = None
    if judgements is not None:
        overlay = _overlay(judgements, dataset)
    desk = Desk(dataset, workspace, Hashes(workspace.path("thumbnails")))
    try:
        found: dict[str, list] = {}
        known: set[str] = set()
        for name in task or dataset.tasks:
            dataset.pool(name)
            runs, refused = desk.runs(name, scope or None)
            for reason in refused:
                typer.echo(reason, err=True)
            known |= {one.label for one in runs} | {one.model for one in runs}
            for one in runs:
                if not run or {one.label, one.model} & set(run):
                    found.setdefault(one.label, []).append(desk.diagnosis(one, overlay, bar))
        unknown = sorted(set(run or ()) - known)
        if unknown:
            fail(f"There is no stored run of {unknown[0]!r}; there are: {', '.join(sorted(known)) or 'none'}.")
        if not found:
            fail("There is no stored run of this data set. python -m core evaluate makes them.")
        reports = [one for diagnoses in found.values() for one in report(diagnoses, by, k, measure)]
        if csv is not None:
            rows = [row for diagnoses in found.values() for d in diagnoses for row in failure_rows(d, k, measure)]
            csv.write_text(rows_csv(rows), encoding="utf-8", newline="")
    except (DataError, ManifestError, ValueError, OSError) as error:
        bar.close()
        fail(error)
    bar.close()
    if as_json:
        print_json(_plain([asdict(one) for one in reports]))
        return
    for one in reports:
        _print(one)


def _overlay(path: Path, dataset: Any) -> Any:
    from core.analyze.rejudge_files import from_csv

    try:
        return from_csv(path.read_bytes(), path.name, dataset).overlay()
    except (ValueError, OSError) as error:
        fail(error)


def _print(one: Any) -> None:
    from core.records import TASK_LABELS

    what = TASK_LABELS.get(one.task, one.task) or "all tasks"
    line(f"{one.run} on {what} ({one.scope}), {one.n:,} queries / {one.clusters:,} clusters, k = {one.k}")
    line(f"  {one.finding}")
    if one.source:
        line(f"  Answered: {one.source}.")
    if one.seen_excluded:
        line(f"  {one.seen_excluded:,} queries the model was trained on are left out.")
    cells = [[one.by, "fail", "rate", "95 % interval", one.measure, "n / clusters", "most marked kind"]]
    for group in one.groups:
        name = f"{group.name} ({len(group.members)} pooled)" if group.pooled else group.name
        mark = f"{group.dominant} {_share(group.share)} (others {_share(group.elsewhere)})" if group.dominant else ""
        ends = "" if group.rate.low is None else f"{100 * group.rate.low:.1f} … {100 * group.rate.high:.1f} %"
        mean = "N/A" if math.isnan(group.mean.mean) else f"{group.mean.mean:.3f}"
        cells.append(
            [
                name,
                f"{group.failures:,}",
                _share(group.rate.mean),
                ends,
                mean,
                f"{group.n:,} / {group.clusters:,}",
                mark,
            ]
        )
    _columns(cells)
    line("")
    cells = [["kind of failure", "failures", "share", "among others", "role"]]
    absent: dict[str, list[str]] = {}
    for kind in one.kinds:
        if kind.reason:
            absent.setdefault(kind.reason, []).append(kind.name)
        else:
            cells.append([kind.name, f"{kind.failures:,}", _share(kind.share), _share(kind.others), kind.role])
    _columns(cells)
    for reason, names in absent.items():
        line(f"  {', '.join(names)}: {reason}")
    if one.failures:
        line(f"  without a cause: {one.unexplained:,} of {one.failures:,} ({_share(one.unexplained / one.failures)})")
    if one.ablation:
        line("")
        cells = [["modality ablation, nDCG@10", "full", "picture", "words", "swapped", "n / clusters"]]
        for row in one.ablation:
            means = [f"{value:.3f}" for value in (row.full, row.picture, row.words, row.swapped)]
            cells.append([row.collection or "all", *means, f"{row.n:,} / {row.clusters:,}"])
        _columns(cells)
        if one.ablation_note:
            line(f"  {one.ablation_note}")
    for found in one.confusion:
        same = sum(found.counts[at][at] for at in range(len(found.names)))
        if found.n:
            line(f"  first hit of the {found.facet} asked for: {_share(same / found.n)} of {found.n:,} queries")
    if one.groups:
        line(f"  Rates: {one.groups[0].rate.method}. Means: {one.groups[0].mean.method}.")
    line("")


def _columns(cells: list[list[str]]) -> None:
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    for first, *rest in cells:
        *middle, last = rest
        shown = [text.rjust(width) for text, width in zip(middle, widths[1:-1], strict=True)]
        line("  " + "  ".join([first.ljust(widths[0]), *shown, last]).rstrip())


def _share(value: float | None) -> str:
    return "N/A" if value is None or math.isnan(value) else f"{100 * value:.1f} %"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
