"""HTML of where runs fail and why: the finding, the twin of each chart, the kinds, the ablation, the provenance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from core.analyze.failures import CAUSE, DEPTH, READING
from core.analyze.report import Report
from core.analyze.slices import AblationRow, Confusion, Group
from core.evaluate.stats import Estimate
from core.records import TASK_LABELS
from ui.cards import escape
from ui.text import KINDS

ROLES = {DEPTH: "How far away", CAUSE: "Causes", READING: "What the modality ablation shows"}


def finding(report: Report) -> str:
    """The sentence on top, who answered, and what was left out."""
    rest = [f"Answered: {report.source}." if report.source else ""]
    if report.seen_excluded:
        rest.append(f"{report.seen_excluded:,} queries that the model was trained on are left out.")
    if report.overlay:
        rest.append(f"Judged anew ({report.overlay}).")
    below = " ".join(part for part in rest if part)
    return f'<div class="m3-finding"><p class="m3-strength">{escape(report.finding)}</p><p>{escape(below)}</p></div>'


def percent(value: float | None, places: int = 1) -> str:
    """A share in %, "N/A" where there is none."""
    return "N/A" if value is None or math.isnan(value) else f"{100 * value:.{places}f} %"


def ends(estimate: Estimate) -> str:
    """The interval of a share in %; "" where there is none."""
    return "" if estimate.low is None else f"{100 * estimate.low:.1f}–{100 * estimate.high:.1f} %"


def kind_words(name: str) -> str:
    """Glyph and words of a kind."""
    glyph, words = KINDS[name]
    return f'<span class="m3-kind"><span aria-hidden="true">{escape(glyph)}</span> {escape(words)}</span>'


def groups(report: Report) -> str:
    """The table twin of the chart of rates; a button a group shows its queries."""
    rows = "".join(_group(group, report.by) for group in report.groups)
    methods = sorted({group.rate.method for group in report.groups if group.rate.low is not None})
    mean = escape(report.measure)
    return (
        f'<div class="m3-scroll" tabindex="0" role="region" aria-label="Failure rates"><table class="m3-table">'
        f"<caption>Failure: no relevant document in the first {report.k}. By {escape(report.by)}, the surely highest "
        f'rate first.</caption><thead><tr><th scope="col">{escape(report.by.capitalize())}</th>'
        '<th scope="col">Failures</th><th scope="col">Rate</th><th scope="col">95 % interval</th>'
        f'<th scope="col">Mean {mean}</th><th scope="col">Queries / clusters</th>'
        '<th scope="col" class="m3-left">Most marked among its failures</th></tr></thead>'
        f'<tbody>{rows}</tbody></table></div><p class="m3-method">Intervals: '
        f"{escape('; '.join(methods) or 'none')}. Groups of fewer than 10 clusters are joined and not ranked.</p>"
    )


def _group(group: Group, by: str) -> str:
    named = {label: task for task, label in TASK_LABELS.items()} if by == "task" else {}
    target = f'data-task="{named[group.name]}"' if group.name in named else f'data-group="{escape(group.name)}"'
    mean = "N/A" if math.isnan(group.mean.mean) else f"{group.mean.mean:.3f}"
    title = f' title="{escape(", ".join(group.members))}"' if group.pooled else ""
    name = f"{group.name} ({len(group.members)} joined)" if group.pooled else group.name
    mark = "none"
    if group.dominant:
        others = "" if math.isnan(group.elsewhere) else f", others {percent(group.elsewhere, 0)}"
        mark = f"{kind_words(group.dominant)} {percent(group.share, 0)}{others}"
    return (
        f'<tr><th scope="row"{title}><button type="button" class="m3-link" {target}>'
        f"{escape(name)}</button></th><td>{group.failures:,}</td><td>{percent(group.rate.mean)}</td>"
        f"<td>{ends(group.rate)}</td><td>{mean}</td><td>{group.n:,} / {group.clusters:,}</td>"
        f'<td class="m3-left">{mark}</td></tr>'
    )


def kinds(report: Report) -> str:
    """Every kind with its share among the failures and among the other queries; a button shows the queries."""
    parts = []
    for role, heading in ROLES.items():
        rows = [kind for kind in report.kinds if kind.role == role]
        there = [kind for kind in rows if not kind.reason]
        absent = [kind for kind in rows if kind.reason]
        body = "".join(
            f'<tr><th scope="row" title="{escape(kind.sentence)}"><button type="button" class="m3-link" '
            f'data-kind="{escape(kind.name)}">{kind_words(kind.name)}</button></th><td>{kind.failures:,}</td>'
            f"<td>{percent(kind.share)}</td><td>{'' if role == DEPTH else percent(kind.others)}</td>"
            f'<td class="m3-left m3-wide">{escape(kind.sentence)}</td></tr>'
            for kind in there
        )
        for reason in dict.fromkeys(kind.reason for kind in absent):
            names = " ".join(kind_words(kind.name) for kind in absent if kind.reason == reason)
            body += (
                f'<tr class="m3-absent"><th scope="row">{names}</th><td colspan="3">N/A</td>'
                f'<td class="m3-left m3-wide">{escape(reason.removeprefix("N/A: "))}</td></tr>'
            )
        parts.append(f'<tbody><tr><th colspan="5" scope="rowgroup" class="m3-role">{heading}</th></tr>{body}</tbody>')
    share = "" if not report.failures else f" ({percent(report.unexplained / report.failures)})"
    return (
        '<div class="m3-scroll" tabindex="0" role="region" aria-label="Kinds of failure">'
        '<table class="m3-table m3-kinds"><caption>Several kinds may hold for one query. '
        f"{report.unexplained:,} of {report.failures:,} failures{share} have no cause named here.</caption>"
        '<thead><tr><th scope="col">Kind</th><th scope="col">Failures</th><th scope="col">Share</th>'
        '<th scope="col">Of the other queries</th><th scope="col" class="m3-left m3-wide">Means</th></tr></thead>'
        f"{''.join(parts)}</table></div>"
    )


def ablation(rows: Sequence[AblationRow], reason: str, note: str = "") -> str:
    """Mean nDCG@10 of the variants, by collection; the reason where there are none. ``note`` must be known of them."""
    if not rows:
        return f"<p>{escape(reason or 'No modality ablation is stored for this run.')}</p>"
    body = "".join(
        f'<tr><th scope="row">{escape(row.collection or "All")}</th>'
        + "".join(f"<td>{value:.3f}</td>" for value in (row.full, row.picture, row.words, row.swapped))
        + f"<td>{row.n:,} / {row.clusters:,}</td></tr>"
        for row in rows
    )
    return (
        '<div class="m3-scroll" tabindex="0" role="region" aria-label="Modality ablation"><table class="m3-table">'
        "<caption>Mean nDCG@10 of the full query, its picture only, its words only, and with the picture of another "
        "case (mean of 5 seeded swaps). Only queries of both sides. Where words alone reach almost nothing, the "
        "labels of single queries mean little.</caption>"
        '<thead><tr><th scope="col">Collection</th><th scope="col">Full</th><th scope="col">Picture only</th>'
        '<th scope="col">Words only</th><th scope="col">Picture swapped</th><th scope="col">Queries / clusters</th>'
        f"</tr></thead><tbody>{body}</tbody></table></div>{f'<p>{escape(note)}</p>' if note else ''}"
    )


def confusion(found: Confusion | None, facet: str) -> str:
    """The twin of the heat map: counts of queries by what was asked and what was found first."""
    if found is None or not found.n:
        return f"<p>Queries or documents here name no {escape(facet)}.</p>"
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in found.names)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td{' class=m3-same' if i == j else ''}>{n:,}</td>" for j, n in enumerate(found.counts[i]))
        + "</tr>"
        for i, name in enumerate(found.names)
    )
    left = (
        f" {found.without:,} queries without a value, a hit or a value of it are not counted." if found.without else ""
    )
    return (
        '<div class="m3-scroll" tabindex="0" role="region" aria-label="First hits by what was asked">'
        f'<table class="m3-table"><caption>Rows: {escape(facet)} of the query. Columns: {escape(facet)} of the first '
        f"hit. {found.n:,} queries.{left}</caption><thead><tr><th></th>{heads}</tr></thead><tbody>{body}</tbody>"
        "</table></div>"
    )


def provenance(facts: Mapping[str, str]) -> str:
    """What made the figures on the screen, in one line that wraps."""
    parts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items() if value
    )
    return f'<dl class="m3-provenance">{parts}</dl>'
