"""The composition formula: two terms that are the shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records import QueryError
from core.search.compose import compose

unit = st.lists(st.floats(-1, 1, width=32), min_size=8, max_size=8).map(lambda v: np.array(v, np.float32))


@given(unit, unit, unit, st.floats(0, 1))
def test_the_score_is_the_weighted_sum_and_its_terms_are_the_shares(image, text, doc, weight):
    query = compose(image, text, weight)
    shares = doc @ query.sides
    plain = (
        weight * float(np.dot(image.astype(np.float64), doc)),
        (1 - weight) * float(np.dot(text.astype(np.float64), doc)),
    )
    assert np.allclose(shares, plain, atol=1e-5)
    assert np.isclose(float(doc @ query.mixed), sum(plain), atol=1e-5)


@pytest.mark.parametrize(("side", "weight"), [("image", 1.0), ("text", 0.0)])
def test_with_one_side_absent_the_other_decides_alone(side, weight):
    vector = np.arange(4, dtype=np.float32)
    query = compose(**{"image": None, "text": None, side: vector}, weight=0.3)
    assert query.weight == weight
    assert np.array_equal(query.mixed, vector)


def test_an_empty_query_and_a_weight_outside_its_range_are_refused():
    with pytest.raises(QueryError, match="picture, words, or both"):
        compose(None, None, 0.5)
    for weight in (-0.01, 1.01, float("nan")):
        with pytest.raises(QueryError, match="between 0"):
            compose(np.ones(2, np.float32), np.ones(2, np.float32), weight)
