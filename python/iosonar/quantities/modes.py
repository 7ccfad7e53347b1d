"""The levels of latency: values that crowd around some latencies, with few between them.

A level is a peak of the density of logarithms, smoothed a little. Two peaks are levels of their own if the density
between them falls far below the lower one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.distribution import Distribution

BINS_PER_DECADE = 40
SMOOTH = 1.6
"""The width of the smoothing, in bins: a decade has 25 of it."""

VALLEY = 0.3
"""Between two levels, the density is at most that share of the lower peak."""


@dataclass(frozen=True)
class Mode:
    """A level: values from `low` to below `high`, in the unit of the distribution."""

    low: float
    high: float
    median: float
    share: float
    count: int


def modes(found: Distribution, least_share: float, factor: float) -> list[Mode]:
    """The levels of a distribution, from the lowest to the highest.

    Each has at least that share of the values, and a median that is that many times as high as the one before.
    """
    if not found.count:
        return []
    middle = np.sqrt(np.maximum(found.minima, 1) * np.maximum(found.maxima, 1))
    place = np.log10(middle) * BINS_PER_DECADE
    low = int(np.floor(place[0])) - 6
    bin_ = np.floor(place).astype(np.int64) - low
    density = _smoothed(np.bincount(bin_, found.counts, int(bin_[-1]) + 12).astype(np.float64))
    cuts = _valleys(density)
    while True:
        levels = _levels(found, middle, [10 ** ((cut + low + 0.5) / BINS_PER_DECADE) for cut in cuts])
        weak = _weakest(levels, least_share, factor)
        if weak is None:
            return levels
        # Drop the cut at the shallower side of the weak level.
        sides = [cut for cut in (weak - 1, weak) if 0 <= cut < len(cuts)]
        cuts.pop(max(sides, key=lambda side: density[cuts[side]]))


def _smoothed(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    reach = np.arange(-6, 7)
    weights = np.exp(-0.5 * (reach / SMOOTH) ** 2)
    found: NDArray[np.float64] = np.convolve(counts, weights / weights.sum(), mode="same")
    return found


def _valleys(density: NDArray[np.float64]) -> list[int]:
    """The lowest places between peaks that are deep enough."""
    inner = density[1:-1]
    peaks: list[int] = (np.flatnonzero((inner > density[:-2]) & (inner >= density[2:])) + 1).tolist()
    while len(peaks) > 1:
        depth = []
        for left, right in itertools.pairwise(peaks):
            lowest = float(density[left : right + 1].min())
            depth.append(lowest / max(min(density[left], density[right]), 1e-9))
        shallow = int(np.argmax(depth))
        if depth[shallow] <= VALLEY:
            break
        peaks.pop(shallow if density[peaks[shallow]] < density[peaks[shallow + 1]] else shallow + 1)
    return [
        left + int(np.median(np.flatnonzero(density[left : right + 1] == density[left : right + 1].min())))
        for left, right in itertools.pairwise(peaks)
    ]


def _levels(found: Distribution, middle: NDArray[np.float64], cuts: Sequence[float]) -> list[Mode]:
    borders = [0, *np.searchsorted(middle, cuts).tolist(), len(middle)]
    levels = []
    for number, (first, end) in enumerate(itertools.pairwise(borders)):
        counts = found.counts[first:end]
        total = int(counts.sum())
        at = int(np.searchsorted(np.cumsum(counts), total / 2)) if total else 0
        median = float(middle[first + min(at, max(end - first - 1, 0))]) if end > first else 0.0
        low = 0.0 if not number else float(cuts[number - 1])
        high = float(cuts[number]) if number < len(cuts) else float("inf")
        levels.append(Mode(low, high, median, total / found.count, total))
    return levels


def _weakest(levels: Sequence[Mode], least_share: float, factor: float) -> int | None:
    """A level that is too small, or too near to the one before; None if there is none."""
    if len(levels) < 2:
        return None
    smallest = min(range(len(levels)), key=lambda number: levels[number].share)
    if levels[smallest].share < least_share:
        return smallest
    for number in range(1, len(levels)):
        if levels[number].median < factor * levels[number - 1].median:
            return number if levels[number].share < levels[number - 1].share else number - 1
    return None
