"""Calls, bytes, sizes, durations and speeds of each file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of
from iosonar.quantities.calls.series import CallSeries

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class FileWork:
    """What calls did to a file. `seconds` is the time in calls; speeds are bytes by the time in those calls."""

    path: str
    calls: int
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    seconds: float
    read_seconds: float
    write_seconds: float
    end: int
    """The largest offset that a read or write reached."""
    first_s: float
    last_s: float

    @property
    def bytes(self) -> int:
        """The bytes read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def speed(self) -> float:
        """Bytes per second of the time in reads and writes; zero if they took none."""
        took = self.read_seconds + self.write_seconds
        return self.bytes / took if took else 0.0

    @property
    def mean_size(self) -> float:
        """Mean bytes of a read or write that moved some."""
        moves = self.reads + self.writes
        return self.bytes / moves if moves else 0.0


@dataclass(frozen=True)
class AllFiles:
    """The number of files, and the bytes of each that has any, the most first."""

    files: int
    read_by_rank: NDArray[np.float64]
    written_by_rank: NDArray[np.float64]


def by_file(table: ir.Table) -> ir.Table:
    """A row for each path, as an expression."""
    named = table.filter(table.path.notnull())
    read = named.series == int(CallSeries.READ)
    write = named.series == int(CallSeries.WRITE)
    moved = named.bytes.notnull()
    took = named.duration_ns.cast("float64") / 1e9
    return named.group_by("path").aggregate(
        calls=named.count(),
        reads=(read & moved).sum(),
        writes=(write & moved).sum(),
        bytes_read=named.bytes.sum(where=read).fill_null(0).cast("int64"),
        bytes_written=named.bytes.sum(where=write).fill_null(0).cast("int64"),
        seconds=took.sum().fill_null(0.0),
        read_seconds=took.sum(where=read & moved).fill_null(0.0),
        write_seconds=took.sum(where=write & moved).fill_null(0.0),
        end=(named.offset + named.bytes).max().fill_null(0),
        first_s=named.begin_ns.min() / 1e9,
        last_s=named.begin_ns.max() / 1e9,
    )


def largest_files(table: ir.Table, limit: int) -> list[FileWork]:
    """The files with the most bytes, then with the most calls."""
    files = by_file(table)
    order = [(files.bytes_read + files.bytes_written).desc(), files.calls.desc(), files.path]
    return [FileWork(**row) for row in files.order_by(order).limit(limit).to_pyarrow().to_pylist()]


def all_files(table: ir.Table) -> AllFiles:
    """Their number, and the bytes of each in descending order."""
    files = by_file(table)
    found = files.select("bytes_read", "bytes_written").to_pyarrow()
    read, written = (array_of(found[name]).astype(np.float64) for name in ("bytes_read", "bytes_written"))
    return AllFiles(len(read), _ranked(read), _ranked(written))


def _ranked(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sort(values[values > 0])[::-1]
