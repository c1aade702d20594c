from __future__ import annotations

import numpy as np

from core.adapt.closed_form import principal_axes, ridge


def test_ridge_solves_the_penalised_problem():
    """Oracle: least squares with the penalty as extra rows."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((30, 5)) + 3, rng.standard_normal((30, 4)) - 1
    centred, target = x - x.mean(0), y - y.mean(0)
    penalty = 0.7 * np.mean(np.diag(centred.T @ centred))
    rows = np.vstack([centred, np.sqrt(penalty) * np.eye(5)])
    wanted = np.linalg.lstsq(rows, np.vstack([target, np.zeros((5, 4))]), rcond=None)[0]
    np.testing.assert_allclose(ridge(x, y, 0.7), wanted, atol=1e-5)


def test_the_axes_are_those_of_the_singular_value_decomposition():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((40, 6)) * np.array([6, 5, 4, 3, 2, 1]) + 10
    axes = principal_axes(x, 3)
    wanted = np.linalg.svd(x - x.mean(0), full_matrices=False)[2][:3].T
    np.testing.assert_allclose(np.abs(np.sum(axes * wanted, axis=0)), 1, atol=1e-5)
    assert (axes[np.abs(axes).argmax(0), range(3)] > 0).all()


def test_whitening_evens_out_the_variances():
    x = np.random.default_rng(4).standard_normal((60, 5)) * np.array([9, 5, 3, 2, 1])
    plain, half, full = (np.var(x @ principal_axes(x, 5, share), axis=0) for share in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(full, plain[0], rtol=1e-4)
    np.testing.assert_allclose(half, np.sqrt(plain * plain[0]), rtol=1e-4)


def test_no_more_axes_than_the_rows_span():
    x = np.random.default_rng(3).standard_normal((4, 9))
    assert principal_axes(x, 256).shape == (9, 3)
    np.testing.assert_array_equal(principal_axes(x, 256), principal_axes(x.copy(), 256))
