"""What the view draws over time, and the rows of values in the rasters of an index."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 512
"""Rows of values in the rasters of an index."""

PER_OCTAVE = 16
"""Rows from a time to its double."""

FIRST_OCTAVE = 6
"""Times up to 2 ** 6 ns are in the first row; those beyond 2 ** 38 ns, 275 s, in the last."""

SECTOR = 512


class Kind(IntEnum):
    """The series of a request."""

    READ = 0
    WRITE = 1
    OTHER = 2
    FAILED = 3


KINDS = len(Kind)


class Order(Enum):
    """The time by which requests are sorted."""

    ISSUE = "begin"
    COMPLETION = "end"


@dataclass(frozen=True)
class Measure:
    """A value of each request over one of its times. `column` is its name in `Requests`."""

    name: str
    column: str
    order: Order
    is_log: bool


LATENCY = Measure("latency.realtime", "latency", Order.ISSUE, True)
COMPLETED = Measure("latency.completed", "latency", Order.COMPLETION, True)
DELAY = Measure("delay.realtime", "delay", Order.ISSUE, True)
POSITION = Measure("position.realtime", "sector", Order.ISSUE, False)
MEASURES = (LATENCY, COMPLETED, DELAY, POSITION)


def logarithms(values_ns: NDArray[Any]) -> NDArray[np.float32]:
    """Logarithms to base 2 of times in ns; those below 1 ns count as 1 ns."""
    found: NDArray[np.float32] = np.log2(np.maximum(values_ns, 1).astype(np.float32))
    return found


def rows_of(measure: Measure, values: NDArray[Any], top: int) -> NDArray[np.int32]:
    """The row of each value; positions are divided evenly up to `top`."""
    if measure.is_log:
        rows = ((logarithms(values) - FIRST_OCTAVE) * PER_OCTAVE).astype(np.int32)
    else:
        rows = (values.astype(np.float64) * (ROWS / max(top, 1))).astype(np.int32)
    return np.clip(rows, 0, ROWS - 1)
