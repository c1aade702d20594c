"""Two models query by query, against plain loops."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.analyze.league import Leagues
from core.analyze.scored import Scored
from core.analyze.two import ahead, largest, query_rows
from core.data.dataset import open_dataset
from core.settings import DEMO

values = st.dictionaries(
    st.tuples(st.sampled_from(["t/A", "t/B"]), st.sampled_from("abcdefgh")),
    st.sampled_from([0.0, 0.25, 1 / 3, 1.0, math.nan]),
)


def scored(name: str, values: dict) -> Scored:
    same = {key: key[1] for key in values}
    return Scored(name, name, "1", (name,), "t", "nDCG@10", values, same, {key: key[0][-1] for key in values})


@given(values, values, st.integers(1, 5))
def test_largest_differences_are_those_of_sorting_all(a, b, most) -> None:
    gaps = sorted((-(a[k] - b[k]), k) for k in a.keys() & b.keys() if math.isfinite(a[k] - b[k]) and a[k] != b[k])
    ahead, behind = largest(scored("a", a), scored("b", b), most)
    assert ahead == [k for d, k in gaps if d < 0][:most]
    assert behind == [k for d, k in sorted((-d, k) for d, k in gaps) if d < 0][:most]
    assert largest(scored("b", b), scored("a", a), most) == (behind, ahead)


def test_who_is_ahead_is_told_of_all_queries_together() -> None:
    a, b = ({("t/A", "x"): 1.0, ("t/A", "y"): 0.0}, {("t/A", "x"): 0.25, ("t/A", "y"): 1.0})
    one, two = scored("a", a), scored("b", b)
    assert ahead(one, two, [("t/A", "x")]) and not ahead(one, two, a) and ahead(two, one, a)
    assert not ahead(one, one, a), "equal is not ahead"


def test_rows_hold_every_query_that_both_have(tmp_path) -> None:
    from core.store.workspace import open_workspace

    workspace = open_workspace(str(tmp_path))
    leagues = Leagues(open_dataset(DEMO, workspace), workspace)
    one, two = (run for run in leagues.of("summary", "nDCG@10").scored if run.name in ("bm25", "medlite"))
    rows = query_rows(leagues.dataset, one, two)
    assert [(row["collection"], row["query"]) for row in rows] == sorted(one.values)
    for row in rows:
        key = (row["collection"], row["query"])
        assert row[f"nDCG@10 {one.name}"] == one.values[key] and row[f"nDCG@10 {two.name}"] == two.values[key]
        assert row["difference"] == pytest.approx(one.values[key] - two.values[key])
        query = leagues.dataset.collections[key[0]].query(key[1])
        assert row["text"] == " ".join(query.text.split()) and row["specialty"] == query.meta["specialty"]
        assert row["domain"] == leagues.dataset.collections[key[0]].domain and row["cluster"] == one.clusters[key]
    lost = scored("lost", {("summary/Head", q): math.nan for c, q in one.values if c == "summary/Head"})
    assert all(row["difference"] is None for row in query_rows(leagues.dataset, lost, two))
