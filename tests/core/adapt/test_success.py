from __future__ import annotations

import numpy as np

from core.adapt.success import success, success_among


def plain(query, case, documents, cases, without=None) -> bool:
    """Oracle: sort the documents for one query."""
    order = sorted((-float(query @ d), j) for j, d in enumerate(documents) if j != without)
    return any(cases[j] == case for _, j in order[:10])


def test_against_sorting_one_query_at_a_time():
    rng = np.random.default_rng(0)
    # small whole numbers: exact products, many ties
    documents, cases = rng.integers(-2, 3, (60, 3)).astype(float), rng.integers(0, 25, 60)
    queries, asked = rng.integers(-2, 3, (40, 3)).astype(float), rng.choice(cases, 40)
    wanted = [plain(q, c, documents, cases) for q, c in zip(queries, asked, strict=True)]
    assert success(queries, asked, documents, cases).tolist() == wanted
    assert 0 < np.mean(wanted) < 1
    hits, rows = success_among(documents, cases)
    assert rows.tolist() == [i for i, c in enumerate(cases) if list(cases).count(c) > 1]
    assert hits.tolist() == [plain(documents[i], cases[i], documents, cases, i) for i in rows]


def test_a_document_never_finds_itself():
    hits, rows = success_among(np.eye(3), np.array(["a", "b", "c"]))
    assert (len(hits), len(rows)) == (0, 0)
    hits, rows = success_among(np.eye(3), np.array(["a", "b", "a"]))
    assert (hits.tolist(), rows.tolist()) == ([True, True], [0, 2])
