"""Comparison of runs on the queries they share: means, rank intervals, and a verdict on every pair.

The tests of one family are all pairs of *listed* runs of one data set, task and measure: the macro mean is one family,
the domains together another, and so are the groups of any other facet. Who ticks which runs on a screen changes what
is shown (`Comparison.as_dict`), never a p value: give `compare` what `family` returns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from core.analyze.scored import Key, Scored, family, from_stored, mixed, unlisted
from core.evaluate.stats import (
    FEWEST,
    OTHER,
    Estimate,
    Randomised,
    cluster_mean,
    cluster_sums,
    holm,
    macro,
    macro_weights,
    pooled_groups,
    rank_intervals,
    sign_flips,
    smallest_detectable,
)

__all__ = ["Comparison", "Group", "Pair", "Scored", "Standing", "compare", "family", "from_stored", "unlisted"]

ALPHA = 0.05
TIE = 1e-12
"""Scores of one query this near are a tie."""
MACRO = "macro"
BETTER, WORSE, OPEN = "better", "worse", "not established"
_OPPOSITE = {BETTER: WORSE, WORSE: BETTER, OPEN: OPEN}
_RANGE = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Standing:
    """One model in one group. ``rank`` is its (best, worst) rank; None where ``reason`` says why it has none."""

    name: str
    model_id: str
    revision: str
    run_ids: tuple[str, ...]
    estimate: Estimate
    rank: tuple[int, int] | None
    reason: str


@dataclass(frozen=True, slots=True)
class Pair:
    """``a`` − ``b`` on their queries, ``verdict`` as said of ``a``.

    ``test`` has the p value before adjustment; it and ``p_adjusted`` are None where nothing is tested. ``outcomes``:
    (wins, ties, losses) of ``a``, by domain in the macro and under its own name in a group. ``detectable``: the
    smallest difference one such test would find.
    """

    a: str
    b: str
    difference: Estimate
    test: Randomised | None
    p_adjusted: float | None
    verdict: str
    detectable: float
    outcomes: Mapping[str, tuple[int, int, int]]

    def reversed(self) -> Pair:
        """The same said of ``b``."""
        d = self.difference
        low, high = (None, None) if d.low is None or d.high is None else (-d.high, -d.low)
        outcomes = {domain: (losses, ties, wins) for domain, (wins, ties, losses) in self.outcomes.items()}
        mirrored = replace(d, mean=-d.mean, low=low, high=high)
        return replace(
            self, a=self.b, b=self.a, difference=mirrored, verdict=_OPPOSITE[self.verdict], outcomes=outcomes
        )


@dataclass(frozen=True, slots=True)
class Group:
    """The macro mean, one domain, or one group of another facet.

    ``standings`` by mean, N/A last; ``pairs`` by name; ``reason``: why no tests; ``members``: the groups that were
    joined here because they have too few clusters.
    """

    name: str
    standings: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    reason: str = ""
    members: tuple[str, ...] = ()

    def pair(self, a: str, b: str) -> Pair | None:
        """The pair as said of ``a``; None where one of them is N/A here or unknown."""
        for pair in self.pairs:
            if (pair.a, pair.b) in ((a, b), (b, a)):
                return pair if pair.a == a else pair.reversed()
        return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """``macro`` and ``domains`` are two families of tests, each adjusted (Holm) over all of its pairs.

    ``domains`` are the groups of whatever facet was asked for; the macro mean is always that over the domains.
    """

    task: str
    measure: str
    macro: Group
    domains: tuple[Group, ...]
    warnings: tuple[str, ...]

    def as_dict(self, shown: Collection[str] | None = None) -> dict[str, Any]:
        """For JSON, NaN as None. ``shown``: only these models; no number depends on it."""

        def group(one: Group) -> dict[str, Any]:
            standings = [asdict(s) for s in one.standings if shown is None or s.name in shown]
            pairs = [asdict(p) for p in one.pairs if shown is None or {p.a, p.b} <= set(shown)]
            joined = {"members": list(one.members)} if one.members else {}
            return {"name": one.name, "reason": one.reason, **joined, "standings": standings, "pairs": pairs}

        parts = {"macro": group(self.macro), "domains": [group(one) for one in self.domains]}
        return _plain({"task": self.task, "measure": self.measure, **parts, "warnings": list(self.warnings)})


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def compare(
    scored: Sequence[Scored], groups: Mapping[Key, str] | None = None, overall: Group | None = None
) -> Comparison:
    """Compare the listed runs of one task and measure with one another, by domain or by other ``groups`` of queries.

    Runs that are N/A in a domain (no queries there, or NaN) stand last in it and in the macro, without rank and
    without tests. Domains of fewer than `FEWEST` clusters show means, without ranks and tests; other groups as small
    are joined, and the same holds for what they make together. ``overall``: the macro of these runs where it is known
    from another grouping. ValueError where the runs are of several tasks or measures, share a name, disagree about the
    cluster or domain of a query, or have different queries in a domain, and where a query has no group.
    """
    runs = sorted(scored, key=lambda run: run.name)
    for what in ("task", "measure"):
        if len({getattr(run, what) for run in runs}) != 1:
            raise ValueError(f"compare runs of one {what}, not of {len({getattr(run, what) for run in runs})}")
    if len({run.name for run in runs}) != len(runs):
        raise ValueError("two runs have one name; give each its own, so that the table can tell them apart")
    table = _Table(runs)
    parts = [table.domain(name) for name in table.all_domains] if groups is None else table.groups(groups)
    whole = overall or _judged([table.macro()])[0]
    return Comparison(runs[0].task, runs[0].measure, whole, tuple(_judged(parts)), mixed(runs))


@dataclass(frozen=True)
class _Part:
    """A group before its p values are adjusted: who is N/A and why, and every pair of the others."""

    name: str
    runs: Sequence[Scored]
    estimates: Mapping[str, Estimate]
    missing: Mapping[str, str]
    pairs: Sequence[Pair]
    reason: str
    members: tuple[str, ...]


class _Table:
    """The values of all runs, [runs, queries], with the queries sorted by key."""

    def __init__(self, runs: Sequence[Scored]) -> None:
        self.runs = runs
        self.keys = sorted({key for run in runs for key in run.values})
        self.clusters = self._agreed("clusters")
        self.domains = self._agreed("domains")
        self.all_domains = sorted(set(self.domains))
        self.values = np.array([[run.values.get(key, math.nan) for key in self.keys] for run in runs], np.float64)
        self.gaps: dict[str, dict[str, str]] = {}  # domain: {run: why it is N/A there}
        for domain in self.all_domains:
            self._check(domain)

    def _agreed(self, kind: str) -> list[str]:
        agreed: dict[Key, str] = {}
        for run in self.runs:
            for key in run.values:
                if agreed.setdefault(key, getattr(run, kind)[key]) != getattr(run, kind)[key]:
                    raise ValueError(f"the runs disagree about the {kind[:-1]} of query {key[1]!r} of {key[0]}")
        return [agreed[key] for key in self.keys]

    def _check(self, domain: str) -> None:
        keys = {key for key, name in zip(self.keys, self.domains, strict=True) if name == domain}
        gaps = self.gaps[domain] = {}
        have = {run.name: keys & run.values.keys() for run in self.runs}
        full = [name for name, mine in have.items() if mine]
        for name in full[1:]:
            differ = len(have[name] ^ have[full[0]])
            if differ:
                raise ValueError(
                    f"{full[0]} and {name} do not have the same queries in {domain}: {differ} of {len(keys)} differ"
                )
        for run in self.runs:
            lost = sum(not math.isfinite(run.values[key]) for key in have[run.name])
            if not have[run.name]:
                gaps[run.name] = f"N/A: no queries in {domain}"
            elif lost:
                gaps[run.name] = f"N/A: {lost} of {len(keys)} queries in {domain} have no value"

    def macro(self) -> _Part:
        """The mean over all domains."""
        missing = {name: reason for gap in reversed(self.gaps.values()) for name, reason in gap.items()}
        return self._part(MACRO, range(len(self.keys)), missing, whole=True)

    def domain(self, name: str) -> _Part:
        """One domain."""
        at = [i for i, domain in enumerate(self.domains) if domain == name]
        return self._part(name, at, self.gaps[name])

    def groups(self, groups: Mapping[Key, str]) -> list[_Part]:
        """Every group by name, and last what the small ones make together."""
        lost = next((key for key in self.keys if key not in groups), None)
        if lost is not None:
            raise ValueError(f"query {lost[1]!r} of {lost[0]} has no group")
        names = [groups[key] for key in self.keys]
        # Marked, because a group of the data may itself be called "other".
        marked = pooled_groups([f"={name}" for name in names], self.clusters)
        members: dict[str, list[int]] = defaultdict(list)
        for i, group in enumerate(marked):
            members[group].append(i)
        joined = members.pop(OTHER, None)
        parts = [self._part(group[1:], at, self._lacking(group[1:], at)) for group, at in sorted(members.items())]
        if joined:
            name = f"{OTHER}, joined" if f"={OTHER}" in members else OTHER
            parts.append(
                self._part(name, joined, self._lacking(name, joined), tuple(sorted({names[i] for i in joined})))
            )
        return parts

    def _lacking(self, group: str, at: Sequence[int]) -> dict[str, str]:
        """Which runs are N/A in a group, and why; whole domains may be missing."""
        gaps = {}
        for run, row in zip(self.runs, self.values[:, at], strict=True):
            absent = sum(self.keys[i] not in run.values for i in at)
            lost = int(np.count_nonzero(~np.isfinite(row))) - absent
            if absent == len(at):
                gaps[run.name] = f"N/A: no queries in {group}"
            elif absent:
                gaps[run.name] = f"N/A: {absent} of {len(at)} queries in {group} are in no run"
            elif lost:
                gaps[run.name] = f"N/A: {lost} of {len(at)} queries in {group} have no value"
        return gaps

    def _part(
        self,
        name: str,
        at: Sequence[int],
        missing: Mapping[str, str],
        members: tuple[str, ...] = (),
        whole: bool = False,
    ) -> _Part:
        """The queries ``at`` these places; ``members`` are the groups they were joined of; ``whole``: all domains."""
        clusters = [self.clusters[i] for i in at]
        domains = [self.domains[i] for i in at] if whole else [name] * len(at)
        many, weights = len(set(clusters)), macro_weights(domains, sorted(set(domains)))

        def mean(values: np.ndarray, bounds: tuple[float, float]) -> Estimate:
            if whole:
                return macro(values, clusters, domains, self.all_domains, bounds)
            return cluster_mean(values, clusters, bounds)

        rows = {run.name: self.values[i, at] for i, run in enumerate(self.runs)}
        estimates = {
            run: Estimate(math.nan, None, None, len(at), many, missing[run])
            if run in missing
            else mean(row, (0.0, 1.0))
            for run, row in rows.items()
        }
        names = list(combinations([run.name for run in self.runs if run.name not in missing], 2))
        reason = ""
        if members:
            reason = f"{len(members)} groups of fewer than {FEWEST} clusters each: neither ranked nor tested"
        elif many < FEWEST and not whole:
            reason = f"{many} clusters: fewer than {FEWEST} are neither ranked nor tested"
        differences = np.array([rows[a] - rows[b] for a, b in names]).reshape(len(names), len(at))
        tests = [None] * len(names) if reason else sign_flips(cluster_sums(differences.T, clusters, weights))
        pairs = []
        for (a, b), d, test in zip(names, differences, tests, strict=True):
            difference = mean(d, _RANGE)
            detectable = smallest_detectable(difference)
            pairs.append(Pair(a, b, difference, test, None, OPEN, detectable, _outcomes(d, domains)))
        return _Part(name, self.runs, estimates, missing, pairs, reason, members)


def _outcomes(differences: np.ndarray, domains: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for d, domain in zip(differences, domains, strict=True):
        counts[domain][1 if abs(d) <= TIE else 0 if d > 0 else 2] += 1
    return {domain: tuple(counts[domain]) for domain in sorted(counts)}


def _judged(parts: Sequence[_Part]) -> list[Group]:
    """One family: all tested pairs of all ``parts`` are adjusted together, then judged and ranked."""
    adjusted = iter(holm([pair.test.p for part in parts for pair in part.pairs if pair.test]))
    groups = []
    for part in parts:
        pairs = []
        for pair in part.pairs:
            p = next(adjusted) if pair.test else None
            sure = p is not None and p <= ALPHA
            verdict = (BETTER if pair.difference.mean > 0 else WORSE) if sure else OPEN
            pairs.append(replace(pair, p_adjusted=p, verdict=verdict))
        groups.append(Group(part.name, _standings(part, pairs), tuple(pairs), part.reason, part.members))
    return groups


def _standings(part: _Part, pairs: Sequence[Pair]) -> tuple[Standing, ...]:
    names = [run.name for run in part.runs if run.name not in part.missing]
    better = np.zeros((len(names), len(names)), bool)
    for pair in pairs:
        a, b = names.index(pair.a), names.index(pair.b)
        better[a, b], better[b, a] = pair.verdict == BETTER, pair.verdict == WORSE
    ranks = {} if part.reason else dict(zip(names, rank_intervals(better), strict=True))
    rows = [
        Standing(
            *(run.name, run.model_id, run.revision, run.run_ids, part.estimates[run.name]),
            *(ranks.get(run.name), part.missing.get(run.name, part.reason)),
        )
        for run in part.runs
    ]
    last = math.inf  # N/A has no mean to sort by
    return tuple(sorted(rows, key=lambda row: (last if row.name in part.missing else -row.estimate.mean, row.name)))
