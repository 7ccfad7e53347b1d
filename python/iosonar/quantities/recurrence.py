"""Whether values come at equal distances: times of stalls, or bytes written up to them.

Distances of neighbours are rounded to multiples of a period, so values may be missing; the period is that of the line
through the values. How regular they are is the length of the mean of unit vectors at their phases (Rayleigh): 1 if all
are exactly at multiples, near 0 if they come by chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST = 4
"""The fewest values that can show a period."""

TRIED = (0.1, 0.25, 0.5, 0.75)
"""The quantiles of the distances that are tried as periods."""


@dataclass(frozen=True)
class Recurrence:
    """A period, the place of the first value, and how well the values keep to it."""

    period: float
    phase: float
    regularity: float
    """From 0 to 1."""
    jitter: float
    """The standard deviation from the period, as a share of it."""
    coverage: float
    """The share of the multiples of the period that have a value."""
    chance: float
    """The probability that values at random places would be as regular."""


def recurrence(values: NDArray[np.float64]) -> Recurrence | None:
    """The most regular period of ascending values; None if there are too few."""
    if len(values) < FEWEST:
        return None
    gaps = np.diff(values)
    gaps = gaps[gaps > 0]
    if len(gaps) < FEWEST - 1:
        return None
    found = [_fitted(values, float(period)) for period in np.unique(np.quantile(gaps, TRIED, method="nearest"))]
    known = [each for each in found if each is not None]
    return max(known, key=lambda each: each.regularity * min(each.coverage, 1.0), default=None)


def _fitted(values: NDArray[np.float64], period: float) -> Recurrence | None:
    place = np.zeros(len(values))
    for _ in range(3):
        steps = np.rint(np.diff(values) / period)
        place = np.concatenate([[0.0], np.cumsum(steps)])
        if place[-1] < FEWEST - 1:
            return None
        slope, start = np.polyfit(place, values, 1)
        if not slope > 0:
            return None
        period = float(slope)
    rest = (values - (start + place * period)) / period
    turns = np.exp(2j * math.pi * rest)
    regularity, jitter = float(abs(turns.mean())), float(rest.std())
    many = len(values)
    # Of random values, each has the chance 2 × the largest deviation to be as near; two determine the line.
    largest = min(float(np.abs(rest).max()), 0.5)
    by_largest = (many - 2) * math.log(max(2 * largest, 1e-9))
    by_mean = -many * regularity**2
    chance = min(math.exp(min(by_largest, by_mean)) * len(TRIED), 1.0)
    distinct = len(np.unique(place))
    return Recurrence(period, float(start), regularity, jitter, distinct / (place[-1] + 1), chance)
