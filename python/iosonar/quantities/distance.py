"""How far apart the lowest and the highest sector of a working set are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import transfers

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from iosonar.quantities.working_set import Grid


@dataclass(frozen=True)
class Reaches:
    """The lowest and the highest sector that each cell of time touches, a row for each device and cell that has any."""

    extent: NDArray[np.int64]
    cell: NDArray[np.int32]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


def reaches(table: ir.Table, grid: Grid) -> Reaches:
    """Finds them for each cell of the grid."""
    moved = transfers(table).mutate(cell=lambda moved: grid.cell(moved.intended_ns))
    found = (
        moved.group_by("extent", "cell")
        .aggregate(low=moved.sector.min(), high=(moved.sector + moved.sectors - 1).max())
        .to_pyarrow()
    )
    return Reaches(*(found[name].to_numpy() for name in ("extent", "cell", "low", "high")))


def distances(found: Reaches, grid: Grid, window: int) -> NDArray[np.float64]:
    """The distance in sectors at the end of each cell of the grid, over the `window` cells before.

    From the lowest sector that was touched to the highest: zero if it is one and the same. Of several devices the
    distances are added. Where nothing was touched, or the window has not yet passed, it is not a number.
    """
    total = np.full(grid.count, np.nan)
    for number in np.unique(found.extent):
        mine = found.extent == number
        lowest = _sliding(found.cell[mine], -found.low[mine].astype(np.float64), grid.count, window)
        highest = _sliding(found.cell[mine], found.high[mine].astype(np.float64), grid.count, window)
        distance = np.where(np.isfinite(highest), highest + lowest, np.nan)
        total = np.where(np.isnan(total), distance, total + np.nan_to_num(distance))
    if window < grid.count:
        total[: window - 1] = np.nan
    return total


def _sliding(cell: NDArray[np.int32], value: NDArray[np.float64], count: int, window: int) -> NDArray[np.float64]:
    """The largest value of the last `window` cells, for each cell; minus infinity where there is none."""
    from scipy.ndimage import maximum_filter1d

    window = min(window, count)
    dense = np.full(count + window, -np.inf)
    dense[cell] = value
    # The filter's window reaches from its origin `window − 1` cells back.
    filtered: NDArray[np.float64] = maximum_filter1d(
        dense, window, mode="constant", cval=-np.inf, origin=(window - 1) // 2 if window % 2 else window // 2 - 1
    )
    return filtered[:count]
