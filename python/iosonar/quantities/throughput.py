"""Requests and sectors for each window of time, as demanded and as delivered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.series import Series, series_of
from iosonar.quantities.whole import divided

if TYPE_CHECKING:
    import ibis.expr.types as ir

N = TypeVar("N", np.int64, np.float64)

DEFAULT_WINDOW_S = 3.0
LEAST_WINDOWS = 10
SECTOR_BYTES = 512
MOST_WINDOWS = 1_200
"""An hour has so many of the usual ones. More would be narrower than a pixel, and series would hide one another."""

NEARLY = 0.995
"""The share of a window from which on it reads as a whole one."""

LEAST_NS, MOST_NS = 1, 1 << 61
LONGER_S = (3, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
"""Windows of long runs; behind the last one, as many days as it takes, doubled."""


@dataclass(frozen=True)
class Throughput:
    """Counts in consecutive windows of `window_s` seconds.

    `first` is the number of the first window: it begins at `first` × `window_s`. `end_s` is the time of the last event;
    the window that holds it is partial.
    """

    window_s: float
    first: int
    end_s: float
    requests: dict[Series, NDArray[np.int64]]
    sectors: dict[Series, NDArray[np.float64]]

    @property
    def bytes(self) -> dict[Series, NDArray[np.float64]]:
        """The data that those requests move."""
        return {series: sectors.astype(np.float64) * SECTOR_BYTES for series, sectors in self.sectors.items()}

    @property
    def windows(self) -> int:
        """How many windows there are, the partial one at the end included."""
        return len(next(iter(self.requests.values()), ()))

    @property
    def edges_s(self) -> NDArray[np.float64]:
        """The borders of the windows in seconds; the last one is where the events end."""
        edges = (self.first + np.arange(self.windows + 1, dtype=np.float64)) * self.window_s
        edges[-1] = min(edges[-1], max(self.end_s, edges[-2])) if self.windows else 0.0
        return edges

    @property
    def whole(self) -> int:
        """How many of the windows are whole; one that lacks less than can be read off counts as such."""
        covered = self.end_s - (self.first + self.windows - 1) * self.window_s
        return self.windows if covered >= self.window_s * NEARLY else max(self.windows - 1, 0)


def window_for(duration_s: float, usual_s: float = DEFAULT_WINDOW_S) -> float:
    """The window for a run of that duration, in seconds: the usual one, so that there are neither few nor very many."""
    if duration_s > usual_s * MOST_WINDOWS:
        window = next((each for each in LONGER_S if duration_s <= each * MOST_WINDOWS), LONGER_S[-1])
        while duration_s > window * MOST_WINDOWS:
            window *= 2
        return float(window)
    if duration_s >= usual_s * LEAST_WINDOWS or duration_s <= 0:
        return usual_s
    most = duration_s / LEAST_WINDOWS
    power = 10.0 ** np.floor(np.log10(most))
    return max(float(power * max(step for step in (1, 2, 5) if step * power <= most * (1 + 1e-9))), LEAST_NS / 1e9)


def throughput(table: ir.Table, at_ns: ir.IntegerColumn, window_s: float) -> Throughput:
    """Counts requests and their sectors by the time `at_ns`, a column of `table`; null ones don't count."""
    window_ns = max(round(min(window_s * 1e9, MOST_NS)), LEAST_NS)
    window_s = window_ns / 1e9
    counted = table.filter(at_ns.notnull())
    grouped = counted.group_by(series=series_of(table), window=divided(at_ns, window_ns)).aggregate(
        # As float64, which has room for any sum.
        n=counted.count(),
        sectors=counted.sectors.cast("float64").sum(),
        last=at_ns.max(),
    )
    found = grouped.to_pyarrow()
    if not found.num_rows:
        return Throughput(window_s, 0, 0.0, {}, {})
    series, window, n, sectors, last = (found[name].to_numpy() for name in ("series", "window", "n", "sectors", "last"))
    first, count = int(window.min()), int(window.max() - window.min()) + 1

    def spread(values: NDArray[N], number: int) -> NDArray[N]:
        dense = np.zeros(count, values.dtype)
        dense[window[series == number] - first] = values[series == number]
        return dense

    numbers = [Series(number) for number in np.unique(series)]
    return Throughput(
        window_s,
        first,
        float(last.max()) / 1e9,
        {number: spread(n, number) for number in numbers},
        {number: spread(sectors, number) for number in numbers},
    )
