"""What a league says in one sentence, and its figures as files: CSV, LaTeX, MTEB results."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from core.analyze.compare import BETTER, WORSE, Group, Pair, Standing
from core.analyze.league import TASK, League, Leagues
from core.analyze.scored import Scored
from core.evaluate.evaluate import cell, interval, number
from core.evaluate.io_mteb import result_files
from core.evaluate.published import Difference, Published, differences
from core.evaluate.stats import Estimate, cluster_mean
from core.evaluate.tables import plain_csv, to_csv, to_latex
from core.records import TASK_LABELS

_PLURALS = {"specialty": "specialties", "modality": "modalities"}
_NAMED = 3  # models that a sentence names; more are counted
_OLDEST = (1980, 1, 1, 0, 0, 0)  # equal figures are equal bytes


def plural(by: str) -> str:
    """The groups of a facet in words."""
    return _PLURALS.get(by, f"{by}s")


def finding(league: League) -> str:
    """A sentence or two: who is first in the macro mean, over whom that is established, and in which groups.

    They are of all listed runs, whatever is shown.
    """
    macro, label = league.comparison.macro, TASK_LABELS.get(league.task, league.task)
    ranked = [one for one in macro.standings if one.rank is not None]
    domains = len(set().union(*(set(run.domains.values()) for run in league.scored)))
    across = f"Across the {domains} domains of {label}" if domains > 1 else f"On {label}"
    if not ranked:
        named = [one for one in macro.standings if not math.isnan(one.estimate.mean)]
        why = "no listed run has a value in every domain" if not named else (macro.reason or "nothing could be tested")
        return f"{across} no model is ranked: {why}."
    first = ranked[0]
    if len(ranked) == 1:
        lacking = len(macro.standings) - 1
        alone = "no other run is listed"
        if lacking:
            alone = f"{_others(lacking)} no value in some domain"
        return f"{across} only {first.name} is ranked, with a macro {league.measure} of {_mean(first)}; {alone}."
    others = [one.name for one in ranked[1:]]
    beaten = [name for name in others if _verdict(macro, first.name, name) == BETTER]
    left = [name for name in others if name not in beaten]
    said = []
    if not beaten:
        said.append("but not established better than any other")
    elif not left:
        said.append("better than all others")
    else:
        said.append(f"better than {_and(beaten) if len(beaten) <= _NAMED else f'{len(beaten)} others'}")
        said.append(f"not established against {_and(left) if len(left) <= _NAMED else f'the other {len(left)}'}")
    return (
        f"{across} {first.name} has the highest macro {league.measure}, {_mean(first)}: rank {rank_words(first)} of "
        f"{len(ranked)}, {', '.join(said)}.{_where(league, first.name, others)}"
    )


def _verdict(group: Group, a: str, b: str) -> str:
    """The verdict on a pair, "" where it was not tested."""
    pair = group.pair(a, b)
    return pair.verdict if pair is not None and pair.test is not None else ""


def _mean(one: Standing) -> str:
    e = one.estimate
    ends = "" if e.low is None or e.high is None else f" [{e.low:.3f}, {e.high:.3f}]"
    return f"{e.mean:.3f}{ends} ({e.n:,} queries, {e.clusters:,} clusters)"


def rank_words(one: Standing) -> str:
    """The rank interval, "" where there is none."""
    return "" if one.rank is None else "–".join(map(str, dict.fromkeys(one.rank)))


def _where(league: League, first: str, others: Sequence[str]) -> str:
    """In which groups a lead of the first is established, and in which it is behind; of those that were tested."""
    groups = [group for group in league.comparison.domains if not group.reason]
    if len(league.comparison.domains) < 2:
        return ""
    if not groups:
        return f" No single {league.by} has enough clusters to be tested."
    ahead = [group.name for group in groups if any(_verdict(group, first, name) == BETTER for name in others)]
    behind = [group.name for group in groups if any(_verdict(group, first, name) == WORSE for name in others)]
    lead = f"over some model in {_and(ahead)}" if ahead else "over no model in any"
    worse = f", and it is behind one in {_and(behind)}" if behind else ""
    return f" By {league.by} a lead of it is established {lead}{worse}."


def _others(n: int) -> str:
    return "the other model has" if n == 1 else f"the {n} other models have"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _estimate(group: Group, name: str) -> Estimate | None:
    return next((one.estimate for one in group.standings if one.name == name), None)


def standing_rows(league: League, shown: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each shown model, by macro mean, as `core.evaluate.tables` writes them; groups stand for domains.

    By task the macro mean is that of the league's own task, as the row says.
    """
    runs = {run.name: run for run in league.scored}
    rows = []
    for one in league.comparison.macro.standings:
        if one.name not in shown:
            continue
        run, e = runs[one.name], one.estimate
        keys = sorted(key for key, value in run.values.items() if math.isfinite(value))
        micro = cluster_mean([run.values[key] for key in keys], [run.clusters[key] for key in keys])
        best, worst = one.rank or (None, None)
        groups = league.comparison.domains
        ranks = {f"{g.name} rank": rank_words(s) for g in groups for s in g.standings if s.name == one.name and s.rank}
        rows.append(
            {"model": one.name, "model_id": one.model_id, "revision": one.revision, "task": league.task}
            | {"measure": league.measure, "n": e.n, "clusters": e.clusters, "macro": number(e.mean)}
            | {"micro": number(micro.mean) if not math.isnan(e.mean) else None, "interval": interval(e)}
            | {
                "method": e.method,
                "seen_excluded": None if run.conditions.get("imported") else 0,
                "scope": "collections",
                "training_data": False,
            }
            | {"reason": one.reason}
            | {"by_domain": {g.name: (found := _estimate(g, one.name)) and cell(found) for g in groups}}
            | {"more": {"by": league.by, "rank best": best, "rank worst": worst, **ranks, **league.conditions}}
        )
    return rows


def standings_csv(league: League, shown: Sequence[str]) -> str:
    """The shown models with means, intervals, n and rank intervals, and what made them, as CSV."""
    rows = standing_rows(league, shown)
    every = list(dict.fromkeys(name for row in rows for name in row["more"]))
    return to_csv([row | {"more": {name: row["more"].get(name) for name in every}} for row in rows])


def latex(league: League, shown: Sequence[str]) -> str:
    """The same as a LaTeX table (booktabs), what made it in comments on top."""
    head = "".join(f"% {name}: {' '.join(value.split())}\n" for name, value in league.conditions.items())
    return head + to_latex(standing_rows(league, shown))


def pair_rows(league: League) -> list[dict[str, Any]]:
    """A flat row for each pair and group: all listed runs, whatever is shown. None is N/A."""
    own = () if league.by == TASK else (league.comparison.macro,)
    return [
        _pair_row(league, group, pair) | dict(league.conditions)
        for group in (*own, *league.comparison.domains)
        for pair in group.pairs
    ]


def _pair_row(league: League, group: Group, pair: Pair) -> dict[str, Any]:
    d = pair.difference
    wins, ties, losses = outcomes(pair)
    return {
        "task": league.task,
        "measure": league.measure,
        "by": league.by,
        "group": group.name,
        "a": pair.a,
        "b": pair.b,
        "difference": number(d.mean),
        "low": d.low,
        "high": d.high,
        "interval": d.method,
        "n": d.n,
        "clusters": d.clusters,
        "p": pair.test.p if pair.test else None,
        "test": pair.test.method if pair.test else group.reason,
        "p (Holm)": pair.p_adjusted,
        "verdict": pair.verdict if pair.test else "not tested",
        "smallest detectable": number(pair.detectable),
        "wins": wins,
        "ties": ties,
        "losses": losses,
    }


def outcomes(pair: Pair) -> tuple[int, int, int]:
    """(wins, ties, losses) of ``a`` over all of a pair's domains."""
    wins, ties, losses = (sum(counts[at] for counts in pair.outcomes.values()) for at in range(3))
    return wins, ties, losses


def pairs_csv(league: League) -> str:
    """`pair_rows` as CSV."""
    return plain_csv(pair_rows(league))


def mteb_zip(leagues: Leagues, task: str, extra: Sequence[Scored] = ()) -> bytes:
    """The means by domain of all listed runs of a task in MTEB's result layout, one file a model; see
    `core.evaluate.io_mteb.result_files`. Equal figures are equal bytes. ValueError where no model has any."""
    means: dict[tuple[str, str], dict[str, dict[str, float | None]]] = {}
    seconds: dict[tuple[str, str], float | None] = {}
    for measure in leagues.measures(task, extra):
        own = [run for run in extra if (run.task, run.measure) == (task, measure)]
        for run in (*leagues.listed(task, measure)[0], *own):
            who = run.model_id, run.revision
            for domain, mean in _by_domain(run).items():
                means.setdefault(who, {}).setdefault(domain, {})[measure] = mean
            spent = [one.timing.get("seconds") for one in leagues.stored(run).values()]
            seconds[who] = math.fsum(spent) if spent and None not in spent else None
    files: dict[str, bytes] = {}
    dataset = leagues.dataset
    for (model_id, revision), scores in means.items():
        files |= result_files(
            *(dataset.name, dataset.data_id, task, model_id, revision), scores, seconds[model_id, revision]
        )
    if not files:
        raise ValueError(f"No listed run of {task} has a value that MTEB's files could hold.")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(path, _OLDEST), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _by_domain(run: Scored) -> dict[str, float | None]:
    """The mean of each domain; None where a query has no value."""
    found: dict[str, list[float]] = {}
    for key, value in run.values.items():
        found.setdefault(run.domains[key], []).append(value)
    return {d: fmean(values) if all(map(math.isfinite, values)) else None for d, values in sorted(found.items())}


def same_published(league: League, facts: Sequence[Published] | None = None) -> dict[str, Difference]:
    """By published model, ours where the same model was run; brought runs have any name and are left out."""
    found: dict[str, Difference] = {}
    for run in league.scored:
        if not run.conditions.get("imported"):
            for one in beside_published(league, run.name, facts):
                if one.same_model:
                    found.setdefault(one.published.model, one)
    return found


def beside_published(league: League, name: str, facts: Sequence[Published] | None = None) -> list[Difference]:
    """One model beside every published figure of its task, the same model first; nothing for other measures."""
    return differences(standing_rows(league, [name]), facts)
