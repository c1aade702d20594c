"""What every index can do."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Index(Protocol):
    """Inner-product search over ``n`` unit vectors of ``d`` dimensions."""

    kind: str

    def candidates(self, query: np.ndarray, k: int) -> np.ndarray:
        """At least the ``min(k, n)`` best rows for ``query`` float32 [d], in no promised order, int64.

        An approximate index that cannot reach that many gives none; whoever asks then searches exactly.
        """
        ...
