"""What a run asked of each of its devices, and when: only devices with the same demand can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

SLICES = 10
"""Slices of the whole time in which demands are compared."""

SAME = 0.1
"""Demands are the same if their numbers of requests and bytes, and their shares of reads, differ by less."""

SAME_TIMES = 0.25
"""The share of the requests that may come at other times: random arrivals of a hundred requests reach 0.2."""


@dataclass(frozen=True)
class Demand:
    """The demand on a device: `slices` has the number of requests in each slice of the run."""

    reads: int
    sectors: float
    slices: NDArray[np.float64]

    @property
    def requests(self) -> float:
        """The number of requests."""
        return float(self.slices.sum())

    def is_same(self, other: Demand) -> bool:
        """Whether both devices had as many requests of the same kind and size, at the same times."""
        if not (self.requests and other.requests):
            return False
        shares = [each.slices / each.requests for each in (self, other)]
        return (
            _near(self.requests, other.requests)
            and _near(self.sectors, other.sectors)
            and abs(self.reads / self.requests - other.reads / other.requests) <= SAME
            and float(np.abs(shares[0] - shares[1]).sum()) / 2 <= SAME_TIMES
        )


def demands(table: ir.Table, low_ns: int, high_ns: int) -> dict[int, Demand]:
    """The demand on each series of a table, over its scheduled times."""
    width = max((high_ns - low_ns) / SLICES, 1.0)
    place = ((table.scheduled_ns - low_ns) / width).floor().cast("int32").clip(0, SLICES - 1)
    is_read = table.is_read if "is_read" in table.columns else table["op"] == "read"
    found = (
        table.group_by(series=table.series, place=place)
        .aggregate(n=table.count(), reads=is_read.sum(), sectors=table.sectors.cast("float64").sum())
        .to_pyarrow()
    )
    series, place, n, reads, sectors = (array_of(found[name]) for name in ("series", "place", "n", "reads", "sectors"))
    return {
        int(number): Demand(
            int(reads[series == number].sum()),
            float(np.nansum(sectors[series == number])),
            np.bincount(place[series == number], n[series == number], SLICES).astype(np.float64),
        )
        for number in np.unique(series)
    }


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= SAME * max(a, b)
