"""Two models query by query: where they differ most, and all of their scores."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from core.analyze.compare import TIE
from core.analyze.scored import Key, Scored
from core.data.dataset import DataSet


def largest(a: Scored, b: Scored, most: int) -> tuple[list[Key], list[Key]]:
    """The ``most`` queries on which ``a`` is furthest ahead, and those on which ``b`` is, furthest first, ties
    by name."""
    gaps = {key: a.values[key] - b.values[key] for key in a.values.keys() & b.values.keys()}
    known = {key: d for key, d in gaps.items() if math.isfinite(d)}
    ahead = sorted((key for key, d in known.items() if d > TIE), key=lambda key: (-known[key], key))
    behind = sorted((key for key, d in known.items() if d < -TIE), key=lambda key: (known[key], key))
    return ahead[:most], behind[:most]


def ahead(a: Scored, b: Scored, keys: Iterable[Key]) -> bool:
    """Whether ``a`` does better than ``b`` on these queries taken together; both have all of them."""
    return math.fsum(a.values[key] - b.values[key] for key in keys) > 0


def query_rows(dataset: DataSet, a: Scored, b: Scored) -> list[dict[str, Any]]:
    """A flat row for each query that both have, by name, for CSV; None is N/A."""
    rows = []
    for key in sorted(a.values.keys() & b.values.keys()):
        query = dataset.collections[key[0]].query(key[1])
        one, two = a.values[key], b.values[key]
        known = math.isfinite(one) and math.isfinite(two)
        rows.append(
            {"collection": key[0], "query": key[1], "cluster": a.clusters[key], "domain": a.domains[key]}
            | {"specialty": query.meta.get("specialty"), "modality": query.meta.get("modality")}
            | {f"{a.measure} {a.name}": one if math.isfinite(one) else None}
            | {f"{b.measure} {b.name}": two if math.isfinite(two) else None}
            | {"difference": one - two if known else None, "text": " ".join(query.text.split())}
        )
    return rows
