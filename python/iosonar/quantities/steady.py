"""When a run became steady.

The rule is MSER (White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6),
1997): of a series of means, leave out as many from the start as make the standard error of the rest smallest. A start
that is like the rest costs more precision than it gains, and stays; a warm-up is cut off. If more than half would have
to go, the run never became steady.

That finds warm-ups only: a rule that leaves out from the start is blind to what changes later. So the rest is held
against itself: it is cut in two where the parts differ most, and a difference far beyond the noise of stretches of
neighbours (which are not independent) is a drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_RATIO = 10.0
"""A run should be at least this many times as long as it takes to become steady."""

IRRELEVANT = 0.01
"""Changes of this size (of a logarithm: one percent) don't count."""

LAST = 5
"""Fewer values than this say nothing about themselves."""

STRETCHES = 10
"""How many stretches of neighbours tell how noisy a series is."""

EDGE = 2
"""Values that a part has at least: a single one is an outlier."""

BEYOND_NOISE = 5.0
"""Standard errors that a drift is at least: the cut is the best of many, and so few stretches tell the noise badly."""

LEAST_DRIFT = math.log(1.25)
"""Of a logarithm: smaller drifts are not worth a word."""


@dataclass(frozen=True)
class Drift:
    """A series of logarithms changed by `by` on average, from the value of index `at` on."""

    at: int
    by: float


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


def drift_of(series: NDArray[np.float64]) -> Drift | None:
    """The largest change within a series of logarithms of means, if it is far beyond the noise."""
    present = np.flatnonzero(np.isfinite(series))
    values = series[present]
    n = len(values)
    if n < 2 * LAST:
        return None
    cuts = np.arange(EDGE, n - EDGE + 1)
    upto = np.cumsum(values)
    before, after = upto[cuts - 1] / cuts, (upto[-1] - upto[cuts - 1]) / (n - cuts)
    # Where least is left unexplained.
    best = int(np.argmax(cuts * (n - cuts) * (after - before) ** 2))
    cut, by = int(cuts[best]), float(after[best] - before[best])
    rest = values - np.where(np.arange(n) < cut, before[best], after[best])
    length = n // STRETCHES
    means = rest[: n // length * length].reshape(-1, length).mean(axis=1)
    variance = max(length * float(means.var(ddof=2)), float(rest.var(ddof=2)), IRRELEVANT**2)
    error = math.sqrt(variance * (1 / cut + 1 / (n - cut)))
    return Drift(int(present[cut]), by) if abs(by) > max(BEYOND_NOISE * error, LEAST_DRIFT) else None
