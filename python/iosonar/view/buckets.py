"""Sorts columns of any length on disk: rows go to the bucket of their time, then each bucket is sorted in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

FINE = 1 << 20
"""Intervals of time from which buckets are joined."""

IN_BUCKET = 1 << 20
"""Rows of a bucket, about."""


class Histogram:
    """Counts times of a known range, to divide them into buckets."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.each = low, FINE / (max(high - low, 0) + 1)
        self.counts = np.zeros(FINE, np.int64)

    def add(self, times: NDArray[np.int64]) -> None:
        """Counts more times."""
        self.counts += np.bincount(self.places(times), minlength=FINE)

    def places(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The interval of each time."""
        found: NDArray[np.int64] = ((times - self.low) * self.each).astype(np.int64)
        return np.clip(found, 0, FINE - 1)


class Buckets:
    """Columns that are filled in any order, and then sorted by the first of them."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], histogram: Histogram) -> None:
        self.columns, self.histogram = columns, histogram
        before = np.cumsum(histogram.counts) - histogram.counts
        number = before // IN_BUCKET
        self.bucket = np.cumsum(np.diff(number, prepend=number[0]) > 0)
        first = np.flatnonzero(np.diff(self.bucket, prepend=-1))
        self.starts = before[first]
        self.filled = self.starts.copy()

    def add(self, rows: Mapping[str, NDArray[Any]]) -> None:
        """Puts rows into their buckets."""
        key = next(iter(self.columns))
        own = self.bucket[self.histogram.places(rows[key])]
        if not len(own):
            return
        # Nearly all are in the same few buckets, as files are in the order of completion.
        order = np.argsort(own, kind="stable")
        numbers, firsts = np.unique(own[order], return_index=True)
        for number, first, last in zip(numbers, firsts, [*firsts[1:], len(own)], strict=True):
            chosen, start = order[first:last], self.filled[number]
            for name, column in self.columns.items():
                column[start : start + len(chosen)] = rows[name][chosen]
            self.filled[number] += len(chosen)

    def sort(self, done: Callable[[int], None]) -> None:
        """Sorts each bucket, and says after each how many rows are sorted."""
        key = next(iter(self.columns))
        for start, stop in zip(self.starts, self.filled, strict=True):
            order = np.argsort(self.columns[key][start:stop], kind="stable")
            for column in self.columns.values():
                column[start:stop] = column[start:stop][order]
            done(int(stop))
