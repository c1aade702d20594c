"""HTML of the comparison's tables: the twin of each chart, verdicts, what two models solve, cost, published figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from core.analyze.compare import Group, Pair, Standing
from core.analyze.complement import Complement
from core.analyze.league import TASK, League
from core.analyze.league_report import finding as sentence
from core.analyze.league_report import outcomes, rank_words
from core.evaluate.cost import Cost
from core.evaluate.published import Difference, Published
from core.evaluate.stats import Estimate
from ui.cards import escape

if TYPE_CHECKING:
    from core.analyze.quality import CostRow

VERDICTS = {
    "better": ("▲", "better"),
    "worse": ("▼", "worse"),
    "not established": ("≈", "not established"),
}
"""Glyph and words of what a test says of the first of two models."""

COST_FORMS = {"query_ms": ",.2f", "document_ms": ",.2f", "document_bytes": ",.0f", "model_mb": ",.1f"}
"""How the costs of `core.analyze.quality.COSTS` are written."""

MOST_COLUMNS = 7
"""Groups that are columns of one table; more are its rows."""

OUTCOMES = ("wins", "ties", "losses")


def three(value: float | None) -> str:
    """A mean with three decimals; "N/A" where there is none, never zero."""
    return "N/A" if value is None or math.isnan(value) else f"{value:.3f}".replace("-", "−")


def signed(value: float | None) -> str:
    """A difference with its sign, which zero has none of."""
    if value is None or math.isnan(value):
        return "N/A"
    return "0.000" if round(value, 3) == 0 else f"{value:+.3f}".replace("-", "−")


def ends(estimate: Estimate) -> str:
    """The interval of a mean."""
    return "" if estimate.low is None else f"{three(estimate.low)} … {three(estimate.high)}"


def table(label: str, caption: str, heads: Sequence[str], body: str, kind: str = "") -> str:
    """A table that scrolls within the page. ``heads`` are escaped already; the first column is the rows' names."""
    cells = "".join(head if head.startswith("<th") else f'<th scope="col">{head}</th>' for head in heads)
    return (
        f'<div class="m3-scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="m3-table {kind}">'
        f"<caption>{caption}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def finding(league: League) -> str:
    """The sentence on top, and what the domains are."""
    many = len(league.scored)
    verdicts = f"Verdicts are of all {many:,} listed runs, whatever is shown." if many > 1 else ""
    return (
        f'<div class="m3-finding"><p class="m3-strength">{escape(sentence(league))}</p>'
        f"<p>{escape(league.reading)} {verdicts}</p></div>"
    )


def warnings(league: League) -> str:
    """What must be known before the figures are believed: mixed conditions, and runs that are not listed."""
    box = "".join(f"<p>{escape(warning)}</p>" for warning in league.comparison.warnings)
    rest = "".join(f"<li>{escape(reason)}</li>" for reason in league.left_out)
    more = (
        f'<details class="m3-left-out"><summary>Stored and not listed: {len(league.left_out):,}</summary>'
        f"<ul>{rest}</ul></details>"
        if league.left_out
        else ""
    )
    return (f'<div class="m3-message" role="note">{box}</div>' if box else "") + more


def standings(league: League, shown: Sequence[str]) -> str:
    """Every shown model with its macro mean, interval and rank interval, and its mean and rank in each group."""
    every, by_task = league.comparison.domains, league.by == TASK
    groups = every if len(every) <= MOST_COLUMNS else ()
    own = [] if by_task else ["Macro", "95 % interval", "Rank"]
    heads = ["Model", *own, *(f"{escape(group.name)}<span>{_size(group)}</span>" for group in groups)]
    order = {one.name: at for at, one in enumerate(league.comparison.macro.standings)}
    names = sorted((name for name in league.names if name in shown), key=lambda name: order.get(name, len(order)))
    macro = {one.name: one for one in league.comparison.macro.standings}
    ranked = sum(one.rank is not None for one in macro.values())
    body = "".join(_standing(name, None if by_task else macro[name], ranked, groups) for name in names)
    cells = [one for group in (league.comparison.macro, *every) for one in group.standings]
    methods = sorted({one.estimate.method.split(" (")[0] for one in cells if one.estimate.low is not None})
    reasons = dict.fromkeys(group.reason for group in every if group.reason)
    unranked = [f"{', '.join(group.name for group in every if group.reason == why)} ({why})" for why in reasons]
    note = f" Not ranked: {escape('; '.join(unranked))}." if unranked else ""
    families = "each task is a family of its own" if by_task else "one family for the macro means, one for all groups"
    means = (
        "macro means, each task ranked by itself" if by_task else "the macro mean is over domains, whatever is chosen"
    )
    caption = (
        f"{escape(league.measure)} by {escape(league.by)}, higher is better; {means}. Below each name: queries / "
        "clusters. A rank goes from 1 + how many are significantly better to n − how many are significantly worse."
    )
    return (
        table("Means by model", caption, heads, body, "m3-means")
        + (
            ""
            if groups
            else by_group(every, [name for name in league.names if name in shown], league.measure, league.by)
        )
        + f'<p class="m3-method">Intervals: {escape("; ".join(methods) or "none")}, 95 %. Verdicts: paired '
        f"randomisation over clusters, adjusted (Holm) over all pairs of listed runs; {families}.{note}</p>"
    )


def _size(group: Group) -> str:
    sizes = {(one.estimate.n, one.estimate.clusters) for one in group.standings if not math.isnan(one.estimate.mean)}
    n, clusters = max(sizes, default=(0, 0))
    return f"{n:,} / {clusters:,}"


def _standing(name: str, macro: Standing | None, ranked: int, groups: Sequence[Group]) -> str:
    cells = ""
    if macro is not None:
        place = f"{rank_words(macro)} of {ranked}" if macro.rank is not None else "N/A"
        cells = f"<td>{three(macro.estimate.mean)}</td><td>{ends(macro.estimate)}</td><td>{place}</td>"
    for group in groups:
        found = next((one for one in group.standings if one.name == name), None)
        if found is None or math.isnan(found.estimate.mean):
            why = found.reason if found is not None else "N/A: no stored run"
            cells += f'<td title="{escape(why)}">N/A</td>'
        else:
            several = sum(one.rank is not None for one in group.standings) > 1
            ranked = f"<span>rank {rank_words(found)}</span>" if found.rank is not None and several else ""
            cells += f'<td title="{escape(ends(found.estimate))}">{three(found.estimate.mean)}{ranked}</td>'
    why = macro.reason.removeprefix("N/A: ") if macro is not None and math.isnan(macro.estimate.mean) else ""
    return f'<tr><th scope="row">{escape(name)}{f"<span>{escape(why)}</span>" if why else ""}</th>{cells}</tr>'


def by_group(groups: Sequence[Group], shown: Sequence[str], measure: str, by: str) -> str:
    """The twin of the heat map: a row for each group, with the interval of each mean below it."""
    names = [name for name in shown if any(one.name == name for group in groups for one in group.standings)]
    heads = [escape(by.capitalize()), "Queries / clusters", *map(escape, names)]
    body = ""
    for group in groups:
        known = {one.name: one for one in group.standings}
        cells = ""
        for name in names:
            one = known.get(name)
            value = one.estimate if one is not None else None
            if value is None or math.isnan(value.mean):
                cells += f'<td title="{escape(one.reason if one is not None else "")}">N/A</td>'
            else:
                place = f"<span>rank {rank_words(one)}</span>" if one.rank is not None else ""
                cells += f"<td>{three(value.mean)}<span>{ends(value)}</span>{place}</td>"
        joined = f' title="{escape(", ".join(group.members))}"' if group.members else ""
        words = f"{group.name} ({len(group.members)} joined)" if group.members else group.name
        body += f'<tr><th scope="row"{joined}>{escape(words)}</th><td>{_size(group)}</td>{cells}</tr>'
    caption = f"Mean {escape(measure)} by {escape(by)}; below it its 95 % interval, and its rank where it has one."
    return table(f"Means by {by}", caption, heads, body, "m3-means")


def verdict(pair: Pair) -> str:
    """Glyph and words of a verdict."""
    if pair.test is None:
        return "not tested"
    glyph, words = VERDICTS[pair.verdict]
    return f'<span class="m3-verdict" data-verdict="{escape(pair.verdict)}">{glyph} {words}</span>'


def pair(league: League, a: str, b: str, links: bool = True) -> str:
    """Whether A is better than B, by group, and from which difference on that could have been seen.

    ``links``: wins and losses are buttons that open these queries.
    """
    own = () if league.by == TASK else (league.comparison.macro,)
    groups = (*own, *league.comparison.domains)
    body = "".join(_pair_row(group, group.pair(a, b), a, b, links) for group in groups)
    opens = " Wins and losses count queries; a button opens them in Failure cases." if links else ""
    heads = ["Group", "Difference", "95 % interval", "Queries / clusters", "p (Holm)"]
    heads += ['<th scope="col" class="m3-left">Verdict</th>', "Smallest detectable", "Wins", "Ties", "Losses"]
    return table(
        "Difference of two models",
        f"{escape(a)} − {escape(b)}, mean difference in {escape(league.measure)}; the verdict is said of {escape(a)}. "
        f"Smallest detectable: what one unadjusted test finds with a power of 80 %.{opens}",
        heads,
        body,
        "m3-pair",
    )


def _pair_row(group: Group, found: Pair | None, a: str, b: str, links: bool) -> str:
    name = "Macro" if group.name == "macro" else group.name
    if found is None:
        reasons = [s.reason for s in group.standings if s.name in (a, b) and math.isnan(s.estimate.mean)]
        why = reasons[0].removeprefix("N/A: ") if reasons else "no stored run of one of the two"
        said = f'<td>N/A</td><td colspan="8" class="m3-left">{escape(why)}</td>'
        return f'<tr><th scope="row">{escape(name)}</th>{said}</tr>'
    if not sum(outcomes(found)[::2]):
        same = f"<td>0.000</td><td></td><td>{found.difference.n:,} / {found.difference.clusters:,}</td><td></td>"
        same += (
            f'<td class="m3-left">= the same on every query</td><td>N/A</td><td>0</td><td>{outcomes(found)[1]:,}</td>'
        )
        return f'<tr><th scope="row">{escape(name)}</th>{same}<td>0</td></tr>'
    p = "" if found.p_adjusted is None else "< 0.001" if found.p_adjusted < 0.001 else f"{found.p_adjusted:.3f}"
    d = found.difference
    counts = "".join(
        f"<td>{_outcome(group.name, kind, n, links)}</td>" for kind, n in zip(OUTCOMES, outcomes(found), strict=True)
    )
    return (
        f'<tr><th scope="row">{escape(name)}</th><td>{signed(d.mean)}</td><td>{ends(d)}</td>'
        f'<td>{d.n:,} / {d.clusters:,}</td><td>{p}</td><td class="m3-left">{verdict(found)}</td>'
        f"<td>{three(found.detectable)}</td>{counts}</tr>"
    )


def _outcome(group: str, kind: str, n: int, links: bool) -> str:
    if not n or kind == "ties" or not links:
        return f"{n:,}"
    where = "all groups" if group == "macro" else group
    return (
        f'<button type="button" class="m3-link" data-outcome="{kind}" data-within="{escape(group)}" '
        f'aria-label="Open the {n:,} {kind} in {escape(where)}">{n:,}</button>'
    )


def complement(found: Complement) -> str:
    """What two models solve together, the best that choosing between them could reach, and what fusions reach."""
    a, b = escape(found.a), escape(found.b)
    shares = [("Both", found.both), (f"Only {a}", found.only_a)]
    shares += [(f"Only {b}", found.only_b), ("Neither", found.neither)]
    solved = "".join(
        f'<tr><th scope="row">{name}</th><td>{percent(e.mean)}</td>'
        f"<td>{'' if e.low is None else f'{100 * e.low:.1f} … {100 * e.high:.1f} %'}</td></tr>"
        for name, e in shares
    )
    means = (
        (a, found.mean_a),
        (b, found.mean_b),
        ("Better of the two for each query (a bound)", found.best_of_two),
        ("RRF of the two", found.rrf),
        ("z-sum of the two", found.zsum),
    )
    reached = "".join(
        f'<tr><th scope="row">{name}</th><td>{three(e.mean) if e is not None else "N/A"}</td>'
        f"<td>{ends(e) if e is not None else ''}</td></tr>"
        for name, e in means
    )
    notes = " ".join(escape(note) for note in found.notes)
    method = escape(found.both.method) if found.both.low is not None else "none"
    left = table(
        "Queries solved",
        f"Solved: a relevant document in the first 10. {found.n:,} queries / {found.clusters:,} clusters.",
        ["Solved by", "Queries", "95 % interval"],
        solved,
    )
    right = table(
        "What choosing and fusing reach",
        f"Macro {escape(found.measure)}: what choosing could reach, and what fusing does reach.",
        ["Ranking", "Macro", "95 % interval"],
        reached,
    )
    return f'<div class="m3-two">{left}{right}</div><p class="m3-method">{notes} Intervals of shares: {method}.</p>'


def percent(value: float) -> str:
    """A share in %."""
    return "N/A" if math.isnan(value) else f"{100 * value:.1f} %"


def cost(rows: Sequence[CostRow], costs: Mapping[str, Cost], measure: str) -> str:
    """The twin of the chart of quality against cost, with where it was measured."""
    body = ""
    for row in rows:
        cells = "".join(
            f"<td>{'N/A' if row.values.get(key) is None else format(row.values[key], form)}</td>"
            for key, form in COST_FORMS.items()
        )
        front = "<span>on the Pareto front</span>" if row.front else ""
        why = escape(row.reason.removeprefix("N/A: ")) if row.reason else _size_measured(costs.get(row.model))
        body += (
            f'<tr><th scope="row">{escape(row.model)}{front}</th><td>{three(row.macro.mean)}</td>{cells}'
            f'<td class="m3-left m3-wide">{why}</td></tr>'
        )
    heads = ["Model", f"Macro {escape(measure)}", "ms a query", "ms a document", "Bytes a document", "Model, MB"]
    heads.append('<th scope="col" class="m3-left m3-wide">Sample</th>')
    known = [one.conditions for one in costs.values() if not one.reason]
    where = dict.fromkeys("{machine}, {cores} cores, {date}".format(**one) for one in known)
    loads = sorted({load for one in known for load in one["load"].split("; ")})
    busy = f", load {' to '.join(dict.fromkeys((loads[0], loads[-1])))}" if loads else ""
    said = f"Measured on {escape('; '.join(where))}{escape(busy)}. " if where else ""
    return (
        table("Quality and cost", "Encoding in batches, as the models are used. A hybrid asks both parts.", heads, body)
        + f'<p class="m3-method">{said}Times under load, and of other machines, are not comparable. '
        "python -m core cost DATA measures anew.</p>"
    )


def _size_measured(one: Cost | None) -> str:
    return "" if one is None else f"{one.documents:,} documents, {one.queries:,} queries"


def published(facts: Sequence[Published], same: Mapping[str, Difference], ours: Sequence[Standing]) -> str:
    """The published figures of one task with ours where the same model was run, and the reasons of a difference.

    ``same``: by the published model's name.
    """
    order = sorted(facts, key=lambda one: (one.ndcg_at_10 is None, -(one.ndcg_at_10 or 0)))
    body = ""
    for fact in order:
        found = same.get(fact.model)
        mine = f"<td>{three(found.ours)}<span>{escape(found.model)}</span></td>" if found else "<td>not run</td>"
        gap = f"<td>{signed(found.difference)}</td>" if found else "<td></td>"
        body += (
            f'<tr><th scope="row">{escape(fact.model)}<span>{escape(fact.model_id)}</span></th>'
            f"<td>{three(fact.ndcg_at_10)}</td>{mine}{gap}"
            f'<td class="m3-left m3-wide">{escape(fact.paradigm)}</td></tr>'
        )
    source = "; ".join(sorted({f"{fact.source}, arXiv {fact.arxiv}" for fact in facts}))
    heads = ["Published model", "Published", "Ours, same model", "Difference"]
    heads.append('<th scope="col" class="m3-left m3-wide">Paradigm</th>')
    caption = f"nDCG@10 on the benchmark's own data ({escape(source)}); no intervals were published."
    others = ", ".join(
        f"{escape(one.name)} {three(one.estimate.mean)}" for one in ours if not math.isnan(one.estimate.mean)
    )
    reasons = {reason.name: reason for found in same.values() for reason in found.reasons}
    why = "".join(
        f"<div><dt>{escape(reason.name)}</dt><dd>{escape(reason.text)} ({escape(reason.when.rstrip('.'))})</dd></div>"
        for reason in reasons.values()
    )
    said = (
        f'<details class="m3-why" open><summary>Why the figures may differ</summary><dl>{why}</dl></details>'
        if why
        else '<p class="m3-method">None of the published models was run here, so that no difference can be given.</p>'
    )
    here = f'<p class="m3-method">Ours, on this data set, macro over its domains: {others}.</p>' if others else ""
    return table("Published figures", caption, heads, body) + here + said
