"""Failures by group, by kind, by collection and by what was found instead; and the list of failing queries.

Everything is computed from diagnoses in memory, so that a page may ask again at every change of a widget.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.analyze.diagnosis import FULL, Diagnosis
from core.analyze.failures import BY_NAME, CAUSE, DEPTH, KINDS, depth_of
from core.analyze.variants import PICTURE, SWAPPED, WORDS
from core.data.dataset import DataSet
from core.data.topics import cluster_of
from core.evaluate.stats import OTHER, Estimate, cluster_bootstrap, cluster_mean, mean_of, pooled_groups
from core.records import TASK_LABELS

BY = ("domain", "specialty", "modality", "collection", "task")
"""Groups that every data set can be asked for; facets of the queries' ``meta`` come beside them."""

NOT_STATED = "not stated"


@dataclass(frozen=True, slots=True)
class Group:
    """One group of queries. ``pooled``: the groups of fewer than 10 clusters joined, named in ``members``.

    ``rate``: share of failures, percentile bootstrap over clusters; ``mean``: of the measure, cluster-robust t.
    ``dominant``: the cause whose share among its failures exceeds that among its other queries most, so that what is
    common everywhere does not pass for a reason; without any its most frequent depth, "" without failures. ``share``
    and ``elsewhere`` are its shares among the failures and among the others (NaN where there are none).
    """

    name: str
    pooled: bool
    n: int
    clusters: int
    failures: int
    rate: Estimate
    mean: Estimate
    dominant: str
    share: float
    elsewhere: float
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KindRow:
    """A kind: how many ``failures`` have it, its ``share`` among them, and among the ``others``; None where there are
    none, or where ``reason`` says why it cannot be told."""

    name: str
    role: str
    sentence: str
    failures: int
    share: float | None
    others: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class AblationRow:
    """Mean nDCG@10 of the variants over the ``n`` two-sided queries of one collection ("" for all), and how many
    queries have each label of the ablation."""

    collection: str
    n: int
    clusters: int
    full: float
    picture: float
    words: float
    swapped: float
    labels: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Confusion:
    """Rows: the query's value of a facet; columns: that of its first hit. ``n`` queries are counted; ``without`` have
    no value, no hit, or a hit without one."""

    facet: str
    names: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    n: int
    without: int


def value_of(diagnosis: Diagnosis, i: int, by: str) -> str:
    """The group of query ``i``: its domain, task, collection, or what its ``meta`` says of a facet."""
    if by == "domain":
        return diagnosis.domain(i)
    query = diagnosis.queries[i]
    if by == "task":
        return TASK_LABELS.get(diagnosis.run.task, diagnosis.run.task)
    if by == "collection":
        return query.collection
    value = query.meta.get(by)
    return NOT_STATED if value in (None, "") else str(value)


def facets(diagnoses: Sequence[Diagnosis]) -> list[str]:
    """What the queries of these diagnoses can be grouped by, as `groups_of` says."""
    first = diagnoses[0]
    found: dict[str, None] = {}
    for diagnosis in diagnoses:
        tasks = [one.run.task for one in diagnoses]
        found |= dict.fromkeys(groups_of(first.dataset, diagnosis.run.task, tasks))
    return list(found)


def groups_of(dataset: DataSet, task: str, tasks: Sequence[str]) -> dict[str, dict[str, set[str]]]:
    """The clusters of the queries of a task by facet and value, for the facets with 2 to 200 values. Case and cluster
    are no facets; ``task`` is one where several ``tasks`` can be looked at, with the clusters of all of them."""
    found: dict[str, dict[str, set[str]]] = {by: defaultdict(set) for by in BY}
    for other in tasks:
        label = TASK_LABELS.get(other, other)
        found["task"][label] = {cluster_of(q) for c in dataset.pool(other).collections for q in c.all_queries()}
    for collection in dataset.pool(task).collections:
        for query in collection.all_queries():
            values = {name: str(value) for name, value in query.meta.items() if value not in (None, "")}
            values |= {"domain": collection.domain, "collection": collection.key}
            for name in {*values, "specialty", "modality", *found} - {"case", "cluster", "task"}:
                found.setdefault(name, defaultdict(set))[values.get(name, NOT_STATED)].add(cluster_of(query))
    several = [by for by, groups in found.items() if 2 <= len(groups) <= 200]
    ordered = [by for by in BY if by in several] + sorted(set(several) - set(BY))
    return {by: dict(found[by]) for by in ordered}


def where(diagnoses: Sequence[Diagnosis], by: str, k: int, measure: str) -> list[Group]:
    """Failure rates by group over one or several tasks of one model, by the lower end of the interval, descending;
    what is too small to be ranked is pooled and stands last."""
    every = [(d, i) for d in diagnoses for i in range(len(d.queries))]
    clusters = [d.clusters[i] for d, i in every]
    names = [value_of(d, i, by) for d, i in every]
    failed = np.concatenate([d.failed(k) for d in diagnoses]) if diagnoses else np.zeros(0, bool)
    values = np.concatenate([d.measured(measure) for d in diagnoses]) if diagnoses else np.zeros(0)
    # Marked, because a group of the data may itself be called "other".
    marked = pooled_groups([f"={name}" for name in names], clusters)
    members: dict[str, list[int]] = defaultdict(list)
    for i, group in enumerate(marked):
        members[group].append(i)
    pooled = f"{OTHER} (joined)" if f"={OTHER}" in members else OTHER
    result = []
    for group, at in members.items():
        joined = sorted({names[i] for i in at}) if group == OTHER else []
        name = pooled if joined else group[1:]
        result.append(_group(name, bool(joined), [every[i] for i in at], failed[at], values[at], k, joined))
    last = math.inf

    def order(one: Group) -> tuple:
        low = one.rate.low if one.rate.low is not None else -last
        return one.pooled, -low, -one.rate.mean, one.name

    return sorted(result, key=order)


def _group(
    name: str,
    pooled: bool,
    queries: Sequence[tuple[Diagnosis, int]],
    failed: np.ndarray,
    values: np.ndarray,
    k: int,
    members: Sequence[str],
) -> Group:
    clusters = [d.clusters[i] for d, i in queries]
    n, many = len(queries), len(set(clusters))
    if np.isfinite(values).all():
        mean = cluster_mean(values.tolist(), clusters)
    else:
        mean = Estimate(math.nan, None, None, n, many, "N/A: the measure says nothing for some of these queries")
    dominant, share, elsewhere = _dominant(queries, failed, k)
    return Group(
        name=name,
        pooled=pooled,
        n=n,
        clusters=many,
        failures=int(failed.sum()),
        rate=cluster_bootstrap(mean_of(failed.astype(float)), clusters),
        mean=mean,
        dominant=dominant,
        share=share,
        elsewhere=elsewhere,
        members=tuple(members),
    )


def _dominant(queries: Sequence[tuple[Diagnosis, int]], failed: np.ndarray, k: int) -> tuple[str, float, float]:
    bad, good = (_counts([q for q, f in zip(queries, failed, strict=True) if f == flag], k) for flag in (True, False))
    n_bad, n_good = int(failed.sum()), int((~failed).sum())
    if not n_bad:
        return "", math.nan, math.nan
    shares = {name: (n / n_bad, good[name] / n_good if n_good else math.nan) for name, n in bad.items()}
    of_role = {role: [name for name in shares if BY_NAME[name].role == role] for role in (CAUSE, DEPTH)}
    excess = {name: shares[name][0] - (shares[name][1] if n_good else 0) for name in of_role[CAUSE]}
    causes = [(more, name) for name, more in excess.items() if more > 0]
    depths = [(shares[name][0], name) for name in of_role[DEPTH]]
    order = {kind.name: -at for at, kind in enumerate(KINDS)}
    _, name = max(causes or depths, key=lambda one: (one[0], order[one[1]]))
    return name, *shares[name]


def _counts(queries: Sequence[tuple[Diagnosis, int]], k: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for d, i in queries:
        found.update(d.found[i].keys())
        depth = depth_of(int(d.first[i]), k)
        if depth:
            found[depth] += 1
    return found


def kinds(diagnoses: Sequence[Diagnosis], k: int) -> list[KindRow]:
    """Every kind with its share among the failures and among the other queries, in the order of the registry; counted
    are the diagnoses for which it can be told."""
    failed = [d.failed(k) for d in diagnoses]
    queries = [[(d, i) for i in range(len(d.queries))] for d in diagnoses]
    bad, good = (
        [
            _counts([q for q, f in zip(qs, fs, strict=True) if f == flag], k)
            for qs, fs in zip(queries, failed, strict=True)
        ]
        for flag in (True, False)
    )
    rows = []
    for kind in KINDS:
        told = [at for at, d in enumerate(diagnoses) if kind.name not in d.not_available]
        reason = "" if told else "; ".join(sorted({d.not_available[kind.name] for d in diagnoses}))
        n_bad, n_good = (sum(int((failed[at] == flag).sum()) for at in told) for flag in (True, False))
        failures, elsewhere = (sum(counts[at][kind.name] for at in told) for counts in (bad, good))
        share = failures / n_bad if n_bad else None
        others = elsewhere / n_good if n_good and kind.role != DEPTH else None
        rows.append(KindRow(kind.name, kind.role, kind.sentence, failures, share, others, reason))
    return rows


def unexplained(diagnoses: Sequence[Diagnosis], k: int) -> tuple[int, int]:
    """How many failures have no cause, and how many failures there are."""
    causes = {kind.name for kind in KINDS if kind.role == CAUSE}
    failures = [(d, i) for d in diagnoses for i in np.flatnonzero(d.failed(k)).tolist()]
    return sum(not causes & d.found[i].keys() for d, i in failures), len(failures)


def ablation(diagnosis: Diagnosis) -> list[AblationRow]:
    """The modality ablation of a run: all queries first, then each collection; [] where there is none."""
    if not diagnosis.ablation:
        return []
    two = np.isfinite(np.stack([diagnosis.ablation[v] for v in (FULL, PICTURE, WORDS, SWAPPED)])).all(axis=0)
    collections = np.array([query.collection for query in diagnosis.queries], object)
    rows = []
    for name in ("", *sorted({query.collection for query in diagnosis.queries})):
        at = np.flatnonzero(two & ((collections == name) | (name == "")))
        if not len(at):
            continue
        means = (float(diagnosis.ablation[variant][at].mean()) for variant in (FULL, PICTURE, WORDS, SWAPPED))
        labels = {
            kind.name: sum(kind.name in diagnosis.found[i] for i in at) for kind in KINDS if kind.needs == "ablation"
        }
        rows.append(AblationRow(name, len(at), len({diagnosis.clusters[i] for i in at}), *means, labels))
    return rows


def confusion(diagnosis: Diagnosis, facet: str) -> Confusion:
    """What the first hits are, by what was asked: ``domain``, ``specialty`` or ``modality``, over all queries."""
    pairs: Counter[tuple[str, str]] = Counter()
    for i, query in enumerate(diagnosis.queries):
        asked = diagnosis.domain(i) if facet == "domain" else str(query.meta.get(facet) or "")
        pairs[asked, diagnosis.top[i][facet]] += 1
    known = {pair: n for pair, n in pairs.items() if all(pair)}
    totals: Counter[str] = Counter()
    for (asked, found), n in known.items():
        totals[asked] += n
        totals[found] += 0
    names = tuple(sorted(totals, key=lambda name: (-totals[name], name)))
    counts = tuple(tuple(known.get((asked, found), 0) for found in names) for asked in names)
    return Confusion(facet, names, counts, sum(known.values()), sum(pairs.values()) - sum(known.values()))
