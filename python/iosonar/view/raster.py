"""Counts the requests of a window for each dot: from the requests themselves if they are few, else from the rasters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar.figures.model import Cloud, CloudPart, Role, Scale
from iosonar.view.lattice import Lattice
from iosonar.view.pyramid import PER_BIN, AnyLevel, level_for
from iosonar.view.requests import Requests, never
from iosonar.view.scales import FIRST_OCTAVE, KINDS, PER_OCTAVE, ROWS, SECTOR, Kind, Measure

FEW = 1 << 19
"""So many requests are always read themselves."""

AT_ONCE = 1 << 19
OUTSIDE = -(1 << 29)
NANO = 1e9
LABELS = {
    Kind.READ: (Role.READ, "Reads"),
    Kind.WRITE: (Role.WRITE, "Writes"),
    Kind.OTHER: (Role.OTHER, "Other operations"),
    Kind.FAILED: (Role.FAILED, "Failed"),
}


@dataclass(frozen=True)
class Raster:
    """A cloud, and the lattices of its cells, which may be coarser than wanted."""

    x: Lattice
    y: Lattice
    cloud: Cloud


def unit_of(measure: Measure) -> float:
    """What one in a column is in the unit of its axis."""
    return 1 / NANO if measure.is_log else float(SECTOR)


def raster(requests: Requests, levels: Sequence[AnyLevel], measure: Measure, x: Lattice, y: Lattice) -> Raster:
    """The requests of a window, counted for its dots."""
    part = requests.between(measure.order, *ends_ns(x))
    if part.stop - part.start > FEW and (level := level_for(levels, (x.axis.high - x.axis.low) * NANO)):
        return _of_level(level, requests, measure, x, y)
    return _of_requests(requests, measure, part, x, y)


def ends_ns(x: Lattice) -> tuple[int, int]:
    """The times of a window."""
    return round(x.axis.low * NANO), round(x.axis.high * NANO)


def _of_requests(requests: Requests, measure: Measure, part: slice, x: Lattice, y: Lattice) -> Raster:
    low, high = ends_ns(x)
    counts = np.zeros(KINDS * y.count * x.count, np.int64)
    for first in range(part.start, part.stop, AT_ONCE):
        some = slice(first, min(first + AT_ONCE, part.stop))
        values = requests.values(measure, some)
        columns = ((requests.times(measure.order, some) - low) * (x.count / (high - low))).astype(np.int32)
        rows = _rows(measure, values, y)
        cells = (requests.kinds(measure.order, some).astype(np.int32) * y.count + rows) * x.count
        cells += np.clip(columns, 0, x.count - 1)
        inside = (rows >= 0) & (rows < y.count)
        if measure.column == "latency":
            inside &= values != never(values)
        counts += np.bincount(cells[inside], minlength=len(counts))
    return Raster(x, y, _cloud(counts, x.count, y.count))


def _rows(measure: Measure, values: NDArray[Any], y: Lattice) -> NDArray[np.int32]:
    """The cell of each value; beyond the lattice, another number. Values below a logarithmic axis are at its start."""
    low, high = y.axis.low, y.axis.high
    if y.axis.scale is Scale.LOG:
        # In 64 bits only where a cell is so low that 32 do not tell it from the next.
        type_ = np.float32 if np.log2(high / low) / y.count > 1e-4 else np.float64
        floor = max(y.axis.floor, low) if y.axis.floor else 1e-9
        numbers = np.log2(np.maximum(values, max(floor * NANO * (1 + 1e-6), 1)).astype(type_))
        found = (numbers - np.log2(low * NANO)) * (y.count / np.log2(high / low))
    else:
        found = (values.astype(np.float64) * unit_of(measure) - low) * (y.count / (high - low))
    rows: NDArray[np.int32] = np.floor(np.clip(found, -1, y.count)).astype(np.int32)
    return rows


def _cloud(counts: NDArray[Any], across: int, up: int) -> Cloud:
    """A cloud from counts by series, row and column."""
    parts = []
    for kind, (role, label) in LABELS.items():
        own = counts[kind * across * up : (kind + 1) * across * up]
        filled = np.flatnonzero(own)
        columns, rows = (filled % across).astype(np.int32), (filled // across).astype(np.int32)
        parts.append(CloudPart(role, label, columns, rows, own[filled].astype(np.int64)))
    return Cloud(across, up, tuple(parts))


def _of_level(level: AnyLevel, requests: Requests, measure: Measure, x: Lattice, y: Lattice) -> Raster:
    each = (level.high_ns - level.low_ns) / level.bins / NANO
    start = level.low_ns / NANO
    first = max(int((x.axis.low - start) / each), 0)
    last = min(int(np.ceil((x.axis.high - start) / each)), level.bins)
    to_x, column = _joined(
        x, Lattice(replace(x.axis, low=start + first * each, high=start + last * each), max(last - first, 1))
    )
    to_y, row = _joined(y, _rows_between(requests, measure, y))
    cells, numbers = level.between(first, last)
    # The place of each series and row, and the column of each bin; those outside make a place negative.
    within = np.arange(KINDS)[None, :] * to_y.count + row[:, None]
    within = np.where(row[:, None] >= 0, within * to_x.count, OUTSIDE).astype(np.int32).reshape(-1)
    column = np.where(column >= 0, column, OUTSIDE).astype(np.int32)
    places = within[cells & np.int32(PER_BIN - 1)]
    places += column[(cells >> np.int32(PER_BIN.bit_length() - 1)) - np.int32(first)]
    if (row < 0).any() or (column < 0).any():
        inside = places >= 0
        places, numbers = places[inside], numbers[inside]
    counts = np.bincount(places, numbers, minlength=KINDS * to_y.count * to_x.count)
    return Raster(to_x, to_y, _cloud(counts, to_x.count, to_y.count))


@dataclass(frozen=True)
class _Coarse:
    """The rows of a level in a lattice: `first` of them are below it."""

    first: int
    lattice: Lattice


def _rows_between(requests: Requests, measure: Measure, y: Lattice) -> _Coarse:
    low, high = y.axis.low, y.axis.high
    if measure.is_log:
        ends = [(np.log2(max(each * NANO, 1)) - FIRST_OCTAVE) * PER_OCTAVE for each in (low, high)]

        def value(row: int) -> float:
            return float(2.0 ** (FIRST_OCTAVE + row / PER_OCTAVE) / NANO)
    else:
        whole = requests.top * SECTOR
        ends = [each / whole * ROWS for each in (low, high)]

        def value(row: int) -> float:
            return row / ROWS * whole

    first = min(max(int(np.floor(ends[0])), 0), ROWS - 1)
    last = min(max(int(np.ceil(ends[1])), first + 1), ROWS)
    return _Coarse(first, Lattice(replace(y.axis, low=value(first), high=value(last)), last - first))


def _joined(wanted: Lattice, coarse: Lattice | _Coarse) -> tuple[Lattice, NDArray[np.int64]]:
    """The lattice that results, and the cell in it of each bin or row of a level; -1 outside.

    Cells of the level that are smaller than dots are joined to dots; else its own are kept, and spread by the page.
    """
    first, own = (coarse.first, coarse.lattice) if isinstance(coarse, _Coarse) else (0, coarse)
    # Positions on an axis of logarithms are even in them, so the middles are even in the other lattice, too.
    ends = [wanted.axis.share(end) for end in (own.axis.low, own.axis.high)]
    middles = (ends[0] + (ends[1] - ends[0]) * (np.arange(own.count) + 0.5) / own.count) * wanted.count
    number = ROWS if isinstance(coarse, _Coarse) else own.count
    found = np.full(number, -1, np.int64)
    if (ends[1] - ends[0]) * wanted.count / own.count > 1:
        found[first : first + own.count] = np.arange(own.count)
        return own, found
    inside = (middles >= 0) & (middles < wanted.count)
    found[first : first + own.count] = np.where(inside, np.floor(middles).astype(np.int64), -1)
    if isinstance(coarse, _Coarse) and wanted.axis.floor and wanted.axis.low <= wanted.axis.floor * (1 + 1e-9):
        # Values below the axis are at its start.
        found[: first + int(np.count_nonzero(middles < 0))] = 0
    return wanted, found
