"""The load: calls per second in equal windows of time, with median, mean, maximum and coefficient of variation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of
from iosonar.quantities.integers import divided

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROUND_S = (1.0, 2.0, 5.0)
MAX_WINDOWS = 1_200
MIN_WINDOWS = 60
"""A shorter trace than a minute gets windows of less than a second."""


@dataclass(frozen=True)
class CallLoad:
    """Calls per second in consecutive windows of `window_s` from zero on; the last one may be partial."""

    window_s: float
    edges_s: NDArray[np.float64]
    rates: NDArray[np.float64]
    whole: int
    """The number of windows that the table covers entirely."""
    calls: int

    @property
    def drawn(self) -> NDArray[np.float64]:
        """The rates that a diagram shows: that of a short last window is determined by chance, and NaN."""
        rates = self.rates.copy()
        if self.whole < len(rates) and len(rates) > 1 and self.edges_s[-1] - self.edges_s[-2] < self.window_s / 2:
            rates[-1] = np.nan
        return rates

    @property
    def counted(self) -> NDArray[np.float64]:
        """The rates that the statistics are about: of whole windows, if there are at least two."""
        return self.rates[: self.whole] if self.whole > 1 else self.rates

    @property
    def median(self) -> float:
        """The median rate."""
        return float(np.median(self.counted)) if len(self.rates) else math.nan

    @property
    def mean(self) -> float:
        """The calls of the whole time, divided by it."""
        return self.calls / float(self.edges_s[-1]) if len(self.rates) else math.nan

    @property
    def maximum(self) -> float:
        """The highest rate of a window that is drawn."""
        return float(np.nanmax(self.drawn)) if len(self.rates) else math.nan

    @property
    def variation(self) -> float:
        """The coefficient of variation: standard deviation divided by mean (1 is 100 %)."""
        mean = float(self.counted.mean()) if len(self.rates) else 0.0
        return float(self.counted.std()) / mean if mean else math.nan


def window_for(seconds: float) -> float:
    """A second; a shorter round time for less than a minute, a longer one for more than 20 minutes."""
    if MIN_WINDOWS <= seconds <= MAX_WINDOWS:
        return 1.0
    least = seconds / (MAX_WINDOWS if seconds > MAX_WINDOWS else 2 * MIN_WINDOWS)
    power = 10.0 ** math.floor(math.log10(max(least, 1e-6)))
    return next(step * power for step in (*ROUND_S, 10.0) if step * power >= least * (1 - 1e-9))


def call_load(table: ir.Table, window_s: float, origin_ns: int, last_ns: int) -> CallLoad:
    """Counts the calls that begin in each window, from `origin_ns` until `last_ns`."""
    window_ns = max(round(window_s * 1e9), 1)
    length = max(last_ns - origin_ns, 1)
    windows = -(-length // window_ns)
    inside = (table.begin_ns - origin_ns).clip(0, length - 1)
    found = table.group_by(window=divided(inside, window_ns)).aggregate(n=table.count()).to_pyarrow()
    counts = np.zeros(windows)
    counts[array_of(found["window"]).astype(np.int64)] = array_of(found["n"])
    edges = np.arange(windows + 1, dtype=np.float64) * (window_ns / 1e9)
    edges[-1] = length / 1e9
    whole = windows if length % window_ns == 0 else windows - 1
    # A partial window would have a rate at random if it is very short.
    widths = np.maximum(np.diff(edges), window_ns / 1e10)
    return CallLoad(window_ns / 1e9, edges, counts / widths, whole, int(counts.sum()))
