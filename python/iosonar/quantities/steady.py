"""Determines when a run became steady.

The rule is MSER (White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6),
1997): of a series of means, remove as many from the start as minimise the standard error of the rest. Removing a start
that is like the rest costs more precision than it gains, so it stays; a warm-up is removed. If more than half would
have to be removed, the run never became steady.

That detects warm-ups only: truncation at the start does not see later changes. So the rest is split where its parts
differ most, and a difference far beyond the noise is a drift. The noise is estimated from segments of neighbouring
values, which are not independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_RATIO = 10.0
"""A run should be at least this many times as long as it takes to become steady."""

IRRELEVANT = 0.01
"""Changes of this size (of a logarithm: one percent) do not matter."""

MIN_VALUES = 5
"""Fewer values do not allow a conclusion."""

SEGMENTS = 10
"""Segments of neighbouring values from which the noise is estimated."""

MIN_PART = 2
"""The fewest values in a part: a single one is an outlier."""

DRIFT_ERRORS = 5.0
"""A drift is at least that many standard errors: the split is the best of many, and few segments estimate the noise
badly."""

MIN_DRIFT = math.log(1.25)
"""The smallest drift, of a logarithm, that is reported."""


@dataclass(frozen=True)
class Drift:
    """A change of a series of logarithms by `by` on average, from index `at` on."""

    at: int
    by: float


def steady_from(series: NDArray[np.float64]) -> int | None:
    """The index from which a series of logarithms of means is steady; None if it is not in the first half.

    NaN values are skipped.
    """
    present = np.flatnonzero(~np.isnan(series))
    values = series[present] - (series[present].mean() if len(present) else 0.0)
    n = len(values)
    if n < 2 * MIN_VALUES:
        return None
    # Sums over the rest, for each start.
    left = np.arange(n, 0, -1)
    sums, squares = np.cumsum(values[::-1])[::-1], np.cumsum((values**2)[::-1])[::-1]
    variance = squares / left - (sums / left) ** 2 + IRRELEVANT**2
    error = (variance / left)[: n - MIN_VALUES]
    best = error[: n // 2].min()
    if error.min() < 0.5 * best:
        return None
    # The first of all starts that are nearly as good.
    return int(present[np.argmax(error <= 1.05 * best)])


def drift_of(series: NDArray[np.float64]) -> Drift | None:
    """The largest change within a series of logarithms of means, if it is far beyond the noise."""
    present = np.flatnonzero(np.isfinite(series))
    values = series[present]
    n = len(values)
    if n < 2 * MIN_VALUES:
        return None
    cuts = np.arange(MIN_PART, n - MIN_PART + 1)
    cumulative = np.cumsum(values)
    before, after = cumulative[cuts - 1] / cuts, (cumulative[-1] - cumulative[cuts - 1]) / (n - cuts)
    # The split with the least residual variance.
    best = int(np.argmax(cuts * (n - cuts) * (after - before) ** 2))
    cut, by = int(cuts[best]), float(after[best] - before[best])
    rest = values - np.where(np.arange(n) < cut, before[best], after[best])
    length = n // SEGMENTS
    means = rest[: n // length * length].reshape(-1, length).mean(axis=1)
    variance = max(length * float(means.var(ddof=2)), float(rest.var(ddof=2)), IRRELEVANT**2)
    error = math.sqrt(variance * (1 / cut + 1 / (n - cut)))
    return Drift(int(present[cut]), by) if abs(by) > max(DRIFT_ERRORS * error, MIN_DRIFT) else None
