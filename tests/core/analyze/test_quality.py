"""The Pareto front against its definition, and costs as they were measured."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from core.analyze.league import Leagues
from core.analyze.quality import COSTS, CostRow, quality, with_front
from core.data.dataset import open_dataset
from core.evaluate.cost import Cost
from core.evaluate.stats import Estimate
from core.settings import DEMO

number = st.sampled_from([0.1, 0.2, 0.3, 0.4])


def row(name: str, mean: float, cost: float | None) -> CostRow:
    return CostRow(name, Estimate(mean, None, None, 1, 1, ""), {"query_ms": cost}, False, "" if cost else "N/A: why")


@given(st.lists(st.tuples(number | st.just(math.nan), number | st.none()), max_size=8))
def test_the_front_holds_what_nothing_beats(pairs) -> None:
    found = with_front([row(f"m{n}", mean, cost) for n, (mean, cost) in enumerate(pairs)], "query_ms")
    assert [one.model for one in found] == [f"m{n}" for n in range(len(pairs))]
    usable = [(mean, cost) for mean, cost in pairs if cost is not None and not math.isnan(mean)]
    for (mean, cost), one in zip(pairs, found, strict=True):
        if cost is None or math.isnan(mean):
            assert not one.front
            continue
        better = [m for m, c in usable if (m > mean and c <= cost) or (m >= mean and c < cost)]
        assert one.front == (not better)


def test_what_a_model_costs_is_what_was_measured(tmp_path) -> None:
    from core.store.workspace import open_workspace

    workspace = open_workspace(str(tmp_path))
    leagues = Leagues(open_dataset(DEMO, workspace), workspace)
    league = leagues.of("summary", "nDCG@10")
    about = ("id", "r", league.data_id, "summary", 3, 2)
    costs = {
        "bm25": Cost("bm25", *about, 0.002, 0.25, 384.5, 2_500_000, 7),
        "late": Cost("late", *about, reason="N/A: x"),
    }
    rows = quality(league, costs, "document_ms")
    assert [one.name for one in league.comparison.macro.standings if one.name in costs] == [one.model for one in rows]
    bm25, late = sorted(rows, key=lambda one: one.model)
    assert bm25.values == {"query_ms": 250.0, "document_ms": 2.0, "document_bytes": 384.5, "model_mb": 2.5}
    assert bm25.front and late.values == dict.fromkeys(COSTS) and not late.front and late.reason == "N/A: x"
