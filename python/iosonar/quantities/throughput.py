"""Requests and sectors for each window of time, as scheduled or as completed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import MAX_PLACES, Batches, array_of, batches
from iosonar.quantities.integers import divided
from iosonar.quantities.series import series_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

N = TypeVar("N", np.int64, np.float64)

DEFAULT_WINDOW_S = 3.0
MIN_WINDOWS = 10
SECTOR_BYTES = 512
MAX_WINDOWS = 1_200
"""An hour has that many of the default ones. More would be narrower than a pixel, and series would hide each other."""

WHOLE_SHARE = 0.995
"""A window that is covered to this share counts as whole."""

MIN_WINDOW_NS, MAX_WINDOW_NS = 1, 1 << 61
LONGER_S = (3, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
"""Windows of long runs; beyond the last one, it is doubled as often as needed."""


@dataclass(frozen=True)
class Throughput:
    """Counts in consecutive windows of `window_s` seconds.

    `first` is the number of the first window, which begins at `first` × `window_s`. `end_s` is the time of the last
    event; its window is partial.
    """

    window_s: float
    first: int
    end_s: float
    requests: dict[int, NDArray[np.int64]]
    sectors: dict[int, NDArray[np.float64]]

    @property
    def bytes(self) -> dict[int, NDArray[np.float64]]:
        """The bytes that the requests move."""
        return {series: sectors.astype(np.float64) * SECTOR_BYTES for series, sectors in self.sectors.items()}

    @property
    def windows(self) -> int:
        """The number of windows, including the partial one at the end."""
        return len(next(iter(self.requests.values()), ()))

    @property
    def edges_s(self) -> NDArray[np.float64]:
        """The borders of the windows in seconds; the last one is the end of the events."""
        edges = (self.first + np.arange(self.windows + 1, dtype=np.float64)) * self.window_s
        edges[-1] = min(edges[-1], max(self.end_s, edges[-2])) if self.windows else 0.0
        return edges

    @property
    def whole(self) -> int:
        """The number of whole windows; a window with less than a visible part missing counts as whole."""
        covered = self.end_s - (self.first + self.windows - 1) * self.window_s
        return self.windows if covered >= self.window_s * WHOLE_SHARE else max(self.windows - 1, 0)


def window_for(duration_s: float, default_s: float = DEFAULT_WINDOW_S) -> float:
    """The window in seconds for a run of that duration: the default, unless there would be too few or too many."""
    if duration_s > default_s * MAX_WINDOWS:
        window = next((each for each in LONGER_S if duration_s <= each * MAX_WINDOWS), LONGER_S[-1])
        while duration_s > window * MAX_WINDOWS:
            window *= 2
        return float(window)
    if duration_s >= default_s * MIN_WINDOWS or duration_s <= 0:
        return default_s
    most = duration_s / MIN_WINDOWS
    power = 10.0 ** np.floor(np.log10(most))
    return max(float(power * max(step for step in (1, 2, 5) if step * power <= most * (1 + 1e-9))), MIN_WINDOW_NS / 1e9)


def throughput(table: ir.Table, at_ns: ir.IntegerColumn, window_s: float) -> Throughput:
    """Counts requests and their sectors by the time `at_ns`, a column of `table`; skips nulls."""
    window_ns = max(round(min(window_s * 1e9, MAX_WINDOW_NS)), MIN_WINDOW_NS)
    window_s = window_ns / 1e9
    counted = table.filter(at_ns.notnull())
    rows = batches(counted.select(series=series_of(table), at=at_ns, sectors=counted.sectors.fill_null(0)))
    if rows is not None and (known := _counted(rows, window_ns)) is not None:
        return known
    grouped = counted.group_by(series=series_of(table), window=divided(at_ns, window_ns)).aggregate(
        # As float64, which holds any sum.
        n=counted.count(),
        sectors=counted.sectors.fill_null(0).cast("float64").sum(),
        last=at_ns.max(),
    )
    found = grouped.to_pyarrow()
    if not found.num_rows:
        return Throughput(window_s, 0, 0.0, {}, {})
    series, window, n, sectors, last = (array_of(found[name]) for name in ("series", "window", "n", "sectors", "last"))
    first, count = int(window.min()), int(window.max() - window.min()) + 1

    def spread(values: NDArray[N], number: int) -> NDArray[N]:
        dense = np.zeros(count, values.dtype)
        dense[window[series == number] - first] = values[series == number]
        return dense

    numbers = [int(number) for number in np.unique(series)]
    return Throughput(
        window_s,
        first,
        float(last.max()) / 1e9,
        {number: spread(n, number) for number in numbers},
        {number: spread(sectors, number) for number in numbers},
    )


def _counted(rows: Batches, window_ns: int) -> Throughput | None:
    """The same of rows in memory; None if they are spread over too many windows."""
    first, last, end_ns = 0, 0, 0
    n, moved = np.zeros((0, 0), np.int64), np.zeros((0, 0))
    for series, at, sectors in rows:
        window = at // window_ns
        low, high, known = int(window.min()), int(window.max()) + 1, int(series.max()) + 1
        if not n.size:
            first, last, end_ns = low, low, int(at.max())
        new_first, new_last = min(first, low), max(last, high)
        if known * (new_last - new_first) > MAX_PLACES:
            rows.close()
            return None
        around = ((0, max(known - len(n), 0)), (first - new_first, new_last - last))
        n, moved = np.pad(n, around), np.pad(moved, around)
        first, last, end_ns = new_first, new_last, max(end_ns, int(at.max()))
        place = series * np.int64(last - first) + (window - first)
        np.add.at(n.reshape(-1), place, 1)
        # Of the same type: conversion in there takes most of the time.
        np.add.at(moved.reshape(-1), place, sectors.astype(np.float64))
    present = [number for number in range(len(n)) if n[number].any()]
    return Throughput(
        window_ns / 1e9,
        first,
        end_ns / 1e9,
        {number: n[number] for number in present},
        {number: moved[number] for number in present},
    )
