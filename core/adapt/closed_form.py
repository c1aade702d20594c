"""The closed-form alignment that training starts from: principal axes of the texts, ridge regression onto them."""

from __future__ import annotations

import numpy as np


def principal_axes(features: np.ndarray, count: int, whitening: float = 0.0) -> np.ndarray:
    """The first axes ``float32 [p, k]`` of rows ``[n, p]`` about their mean; k = count, fewer where n or p is less.

    ``whitening`` 0 … 1 evens out their variances v: an axis is scaled by (v / largest v)^(−whitening/2), so 1 makes
    all equal. Each axis points to where its largest entry is positive, so that equal input gives equal axes.
    """
    centred = features.astype(np.float64) - features.mean(0, dtype=np.float64)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    values, vectors = values[::-1], vectors[:, ::-1]
    found = int(np.sum(values > values[0] * 1e-9))
    count = min(count, found, len(features) - 1)
    axes, values = vectors[:, :count], values[:count]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(count)])
    return (axes * signs * (values / values[0]) ** (-whitening / 2)).astype(np.float32)


def ridge(features: np.ndarray, targets: np.ndarray, penalty: float) -> np.ndarray:
    """W = (XᵀX + λI)⁻¹XᵀY ``float32 [p, q]`` of centred X ``[n, p]`` and Y ``[n, q]``, in float64.

    ``penalty`` is λ as a share of the mean diagonal element of XᵀX, so that it does not depend on n or on units.
    """
    x = features.astype(np.float64) - features.mean(0, dtype=np.float64)
    y = targets.astype(np.float64) - targets.mean(0, dtype=np.float64)
    gram = x.T @ x
    gram[np.diag_indices_from(gram)] += penalty * np.trace(gram) / len(gram)
    return np.linalg.solve(gram, x.T @ y).astype(np.float32)
