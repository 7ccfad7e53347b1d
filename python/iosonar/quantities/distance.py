"""The distance between the lowest and the highest sector of a working set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import transfers
from iosonar.quantities.batches import array_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from iosonar.quantities.working_set import Grid

NOTHING = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Reaches:
    """The lowest and highest sector touched in each cell of time, one row for each device and nonempty cell."""

    extent: NDArray[np.int64]
    cell: NDArray[np.int32]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


def reaches(table: ir.Table, grid: Grid, last_ns: int | None = None) -> Reaches:
    """Computes them for each cell of the grid; with `last_ns`, only for the last `last_ns` of each cell."""
    moved = transfers(table)
    if last_ns is not None:
        moved = moved.filter(grid.left(moved.scheduled_ns) >= grid.step_ns - last_ns)
    moved = moved.mutate(cell=grid.cell(moved.scheduled_ns))
    found = (
        moved.group_by("extent", "cell")
        .aggregate(low=moved.sector.min(), high=(moved.end_sector - 1).max())
        .order_by("extent", "cell")
        .to_pyarrow()
    )
    return Reaches(*(array_of(found[name]) for name in ("extent", "cell", "low", "high")))


def distances(found: Reaches, grid: Grid, window_ns: int | None, partial: Reaches | None = None) -> NDArray[np.float64]:
    """The distance in sectors at the end of each cell of the grid, over the preceding window; None is an infinite one.

    From the lowest touched sector to the highest: zero for a single sector. Distances of several devices are added. NaN
    where nothing was touched, or the window has not yet passed. If the window is not a whole number of cells, `partial`
    has the sectors touched in the remaining part, at the end of a cell.
    """
    whole, rest = (grid.count, 0) if window_ns is None else divmod(window_ns, grid.step_ns)
    if rest and partial is None:
        raise ValueError("the window is not a whole number of cells")
    whole = min(whole, grid.count)
    total, touched = np.zeros(grid.count), np.zeros(grid.count, np.bool_)
    for rows_of_device in _by_extent(found):
        first, end = int(rows_of_device.cell[0]), min(int(rows_of_device.cell[-1]) + whole + (rest > 0), grid.count)
        tail = None
        if rest and partial is not None:
            of_extent = slice(
                *np.searchsorted(partial.extent, [rows_of_device.extent[0], rows_of_device.extent[0] + 1])
            )
            tail = Reaches(
                partial.extent[of_extent], partial.cell[of_extent], partial.low[of_extent], partial.high[of_extent]
            )
        highest, lowest = (
            _within(rows_of_device, tail, side, first, max(end, first + 1), whole) for side in ("high", "low")
        )
        is_touched = highest != NOTHING
        total[first : first + len(is_touched)] += np.where(is_touched, highest + lowest, 0)
        touched[first : first + len(is_touched)] |= is_touched
    total[~touched] = np.nan
    total[: grid.unfilled(window_ns)] = np.nan
    return total


def _by_extent(found: Reaches) -> list[Reaches]:
    """Splits the rows by device."""
    cuts = np.flatnonzero(np.diff(found.extent)) + 1
    columns = [np.split(column, cuts) for column in (found.extent, found.cell, found.low, found.high)]
    return [Reaches(*each) for each in zip(*columns, strict=True) if len(each[0])]


def _within(
    rows_of_device: Reaches, tail: Reaches | None, side: str, first: int, end: int, whole: int
) -> NDArray[np.int64]:
    """The highest sector (or the negated lowest) of the window at the ends of the cells from `first` to below `end`."""

    def dense(rows: Reaches) -> NDArray[np.int64]:
        values = np.full(end - first, NOTHING)
        inside = rows.cell < end
        values[rows.cell[inside] - first] = rows.high[inside] if side == "high" else -rows.low[inside]
        return values

    highest_values = sliding_maximum(dense(rows_of_device), whole) if whole else np.full(end - first, NOTHING)
    if tail is not None and whole < end - first:
        np.maximum(highest_values[whole:], dense(tail)[: end - first - whole], out=highest_values[whole:])
    return highest_values


def sliding_maximum(values: NDArray[np.int64], window: int) -> NDArray[np.int64]:
    """For each value, the largest of the last `window` values: the maximum of two running maxima within blocks.

    Source: van Herk, "A fast algorithm for local minimum and maximum filters on rectangular and octagonal kernels",
    Pattern Recognition Letters 13 (1992).
    """
    count = len(values)
    if window >= count:
        return np.maximum.accumulate(values)
    padded = np.full(-(-(count + window - 1) // window) * window, NOTHING)
    # There is nothing before the first value.
    padded[window - 1 : window - 1 + count] = values
    blocks = padded.reshape(-1, window)
    prefix_maxima = np.maximum.accumulate(blocks, axis=1).ravel()
    suffix_maxima = np.maximum.accumulate(blocks[:, ::-1], axis=1)[:, ::-1].ravel()
    result: NDArray[np.int64] = np.maximum(suffix_maxima[:count], prefix_maxima[window - 1 : window - 1 + count])
    return result
