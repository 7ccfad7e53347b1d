"""Rasters of all requests in several widths of bins, for windows with more requests than can be read at once.

A raster is kept as its nonempty cells, sorted by bin; a cell is (bin × ROWS + row) × KINDS + kind, and has a count. A
bin of one level joins STEP of the finer one. A bin may have a cell twice, whose counts add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar.view.requests import Requests, never
from iosonar.view.scales import KINDS, ROWS, Measure, rows_of

PER_BIN = ROWS * KINDS
"""A power of two."""

STEP = 4
MAX_BINS = 1 << 16
MIN_BINS = 1 << 12
REQUESTS_PER_BIN = 512
"""So many, or more, are in a bin of the finest level, on average: fewer would need as much room as the requests."""

WANTED_BINS = 1024
"""A window has at least so many bins where there are, and up to STEP times as many."""

FEWEST_BINS = 512
AT_ONCE = 1 << 20
MAX_SLOTS = 1 << 23
"""Cells that are counted in an array; more of them are sorted."""


@dataclass(frozen=True)
class Level:
    """Nonempty cells, and the bins from one time to another."""

    bins: int
    low_ns: int
    high_ns: int
    cells: NDArray[np.int32]
    counts: NDArray[np.uint32]

    def between(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """The cells of some bins, and their counts."""
        ends = (np.int32(min(each * PER_BIN, 2**31 - 1)) for each in (first, last))
        start, stop = (int(np.searchsorted(self.cells, end)) for end in ends)
        return self.cells[start:stop], self.counts[start:stop]


class DenseLevel:
    """All cells of a level to which requests are added, while its time grows: then its bins are joined in pairs."""

    bins = MIN_BINS

    def __init__(self, low_ns: int) -> None:
        self.low_ns, self.high_ns = low_ns, low_ns + self.bins
        self.counts = np.zeros((self.bins, PER_BIN), np.uint32)

    def add(self, times_ns: NDArray[np.int64], rows: NDArray[Any], kinds: NDArray[np.uint8]) -> None:
        """Counts requests: their times, rows of values, and series."""
        if not len(times_ns):
            return
        while times_ns.max() >= self.high_ns:
            self.counts[: self.bins // 2] = self.counts[::2] + self.counts[1::2]
            self.counts[self.bins // 2 :] = 0
            self.high_ns += self.high_ns - self.low_ns
        at = bins_of(times_ns, self.low_ns, self.high_ns, self.bins)
        cells, numbers = counted((at * ROWS + rows) * KINDS + kinds)
        self.counts.reshape(-1)[cells] += numbers

    def between(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """The cells of some bins, and their counts."""
        part = self.counts[first:last].reshape(-1)
        filled = np.flatnonzero(part)
        return (filled + first * PER_BIN).astype(np.int32), part[filled]


AnyLevel = Level | DenseLevel


def finest_bins(requests: int) -> int:
    """The bins of the finest level, a power of two."""
    bins = MIN_BINS
    while bins < MAX_BINS and bins * REQUESTS_PER_BIN < requests:
        bins *= 2
    return bins


def counted(cells: NDArray[np.int64], weights: NDArray[Any] | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """The different cells, sorted, and how often each is there."""
    if not len(cells):
        return np.empty(0, np.int32), np.empty(0, np.uint32)
    least = int(cells.min()) // PER_BIN * PER_BIN
    if int(cells.max()) - least < MAX_SLOTS:
        sums = np.bincount(cells - least, weights)
        filled = np.flatnonzero(sums)
        return (filled + least).astype(np.int32), sums[filled].astype(np.uint32)
    found, place = np.unique(cells, return_inverse=True)
    return found.astype(np.int32), np.bincount(place, weights).astype(np.uint32)


def finest(requests: Requests, measure: Measure, bins: int) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The cells of the finest level, some of them at a time."""
    total = len(requests.times(measure.order, slice(None)))
    for first in range(0, total, AT_ONCE):
        part = slice(first, first + AT_ONCE)
        values = requests.values(measure, part)
        at = bins_of(requests.times(measure.order, part), requests.low_ns, requests.high_ns, bins)
        cells = (at * ROWS + rows_of(measure, values, requests.top)) * KINDS + requests.kinds(measure.order, part)
        yield counted(cells[values != never(values)] if measure.column == "latency" else cells)


def bins_of(times_ns: NDArray[np.int64], low_ns: int, high_ns: int, bins: int) -> NDArray[np.int64]:
    """The bin of each time."""
    found = ((times_ns - low_ns) * (bins / (high_ns - low_ns))).astype(np.int64)
    return np.clip(found, 0, bins - 1)


def coarser(level: Level) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The cells of the next coarser level."""
    wide = max(MAX_SLOTS // PER_BIN // STEP, 1) * STEP
    for first in range(0, level.bins, wide):
        cells, counts = level.between(first, first + wide)
        whole = cells.astype(np.int64)
        yield counted(whole // (PER_BIN * STEP) * PER_BIN + whole % PER_BIN, counts)


def level_for(levels: Sequence[AnyLevel], length_ns: float) -> AnyLevel | None:
    """The coarsest level that has enough bins in a length of time; None if none has; finest first."""

    def bins(level: AnyLevel) -> float:
        return level.bins * length_ns / (level.high_ns - level.low_ns)

    enough = [level for level in levels if bins(level) >= WANTED_BINS]
    return enough[-1] if enough else levels[0] if levels and bins(levels[0]) >= FEWEST_BINS else None
