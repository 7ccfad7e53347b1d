"""When a run became steady.

The rule is MSER (White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6),
1997): of a series of means, leave out as many from the start as make the standard error of the rest smallest. A start
that is like the rest costs more precision than it gains, and stays; a warm-up is cut off. If more than half would have
to go, the run never became steady.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST_RATIO = 10.0
"""A run should be at least this many times as long as it takes to become steady."""

IRRELEVANT = 0.01
"""Changes of this size (of a logarithm: one percent) don't count."""

LAST = 5
"""Fewer values than this say nothing about themselves."""


def steady_from(series: NDArray[np.float64]) -> int | None:
    """The index from which a series of logarithms of means is steady; None if that is not in its first half.

    Values that are not numbers are left out.
    """
    present = np.flatnonzero(~np.isnan(series))
    values = series[present] - (series[present].mean() if len(present) else 0.0)
    n = len(values)
    if n < 2 * LAST:
        return None
    # Sums over the rest from each start on, from its end.
    left = np.arange(n, 0, -1)
    sums, squares = np.cumsum(values[::-1])[::-1], np.cumsum((values**2)[::-1])[::-1]
    variance = squares / left - (sums / left) ** 2 + IRRELEVANT**2
    error = (variance / left)[: n - LAST]
    best = error[: n // 2].min()
    if error.min() < 0.5 * best:
        return None
    # Of starts that are next to as good, the first.
    return int(present[np.argmax(error <= 1.05 * best)])
