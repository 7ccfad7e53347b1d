"""A step in a series: the place where its mean changes, once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST = 5
"""The fewest values on each side."""


@dataclass(frozen=True)
class Step:
    """`at` is the index of the first value after it; `clear` the shares of values on their own side of the middle."""

    at: int
    before: float
    after: float
    error: float
    """The standard error of the change."""
    clear: float

    @property
    def change(self) -> float:
        """By how much the mean rises."""
        return self.after - self.before


def step_of(values: NDArray[np.float64], fewest: int = FEWEST) -> Step | None:
    """The split with the least squares of the rest; None for few values."""
    many = len(values)
    if many < 2 * fewest:
        return None
    sums = np.cumsum(values)
    first = np.arange(fewest, many - fewest + 1)
    low, high = sums[first - 1] / first, (sums[-1] - sums[first - 1]) / (many - first)
    gain = (high - low) ** 2 * first * (many - first)
    best = int(np.argmax(gain))
    at, before, after = int(first[best]), float(low[best]), float(high[best])
    rest = np.concatenate([values[:at] - before, values[at:] - after])
    # Successive values are not independent: as if there were a third of them.
    error = float(rest.std()) * math.sqrt(3 * (1 / at + 1 / (many - at)))
    middle, sign = (before + after) / 2, 1 if after >= before else -1
    clear = min(float((sign * (values[:at] - middle) < 0).mean()), float((sign * (values[at:] - middle) > 0).mean()))
    return Step(at, before, after, error, clear)
