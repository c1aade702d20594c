"""Quality against cost: the models that no other beats in both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.analyze.league import League
from core.evaluate.cost import Cost
from core.evaluate.stats import Estimate

COSTS = {
    "query_ms": "ms to encode a query",
    "document_ms": "ms to encode a document",
    "document_bytes": "bytes of the index a document",
    "model_mb": "size of the model (MB)",
}
"""What a model costs, in words with the unit; less is better."""

_MEASURED: Mapping[str, Callable[[Cost], float]] = {
    "query_ms": lambda cost: 1000 * cost.query_seconds,
    "document_ms": lambda cost: 1000 * cost.document_seconds,
    "document_bytes": lambda cost: cost.document_bytes,
    "model_mb": lambda cost: cost.model_bytes / 1e6,
}


@dataclass(frozen=True, slots=True)
class CostRow:
    """One model: its macro mean, its cost by the names of `COSTS` (None where ``reason`` says why), and whether it is
    on the Pareto front of the cost that was asked for."""

    model: str
    macro: Estimate
    values: Mapping[str, float | None]
    front: bool
    reason: str


def quality(league: League, costs: Mapping[str, Cost], by: str) -> list[CostRow]:
    """The models of ``costs`` in the order of the league's macro means, with the front of macro mean and ``by``."""
    rows = []
    for one in league.comparison.macro.standings:
        if one.name in costs:
            cost = costs[one.name]
            values = {name: None if cost.reason else make(cost) for name, make in _MEASURED.items()}
            rows.append(CostRow(one.name, one.estimate, values, False, cost.reason))
    return with_front(rows, by)


def with_front(rows: Sequence[CostRow], by: str) -> list[CostRow]:
    """The rows with ``front`` set: no other row costs as little or less and is as good or better, and differs in one of
    the two. Rows without a mean or a cost are never on it."""
    known = [(row.values[by], row.macro.mean) for row in rows if _known(row, by)]
    found = []
    for row in rows:
        cost, mean = row.values[by], row.macro.mean
        beaten = _known(row, by) and any(c <= cost and m >= mean and (c, m) != (cost, mean) for c, m in known)
        found.append(CostRow(row.model, row.macro, row.values, _known(row, by) and not beaten, row.reason))
    return found


def _known(row: CostRow, by: str) -> bool:
    return row.values[by] is not None and math.isfinite(row.macro.mean)
