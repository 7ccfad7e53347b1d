"""A recording of block devices that was made at the same time as a trace of calls, on the trace's clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from iosonar.errors import UsageError
from iosonar.table.calls import Calls
from iosonar.table.kinds.requests import LOAD
from iosonar.table.source import SourceFile
from iosonar.table.window import Window

if TYPE_CHECKING:
    import ibis.expr.types as ir

SECTOR_BYTES = 512


@dataclass(frozen=True)
class Blocks:
    """The reads and writes of a recording: `at_ns` (by the trace's clock), `pid`, `process`, `op`, `bytes`."""

    table: ir.Table
    file: SourceFile

    def within(self, window: Window | None) -> Blocks:
        """The requests that were made in a window of the trace."""
        return self if window is None else replace(self, table=self.table.filter(window.holds_at(self.table.at_ns)))


def blocks_beside(calls: Calls, load: SourceFile) -> Blocks:
    """The requests of a recording, with times that count from the zero of the trace.

    Raises UsageError if the files do not say when they were recorded, or which process made a request.
    """
    import ibis

    if load.kind is not LOAD:
        raise UsageError(f"{load.path} is {load.kind.words}: --blocks needs a recording of block devices, a load")
    if "pid" not in load.columns:
        raise UsageError(f"{load.path} has no column pid: only recordings say which process made a request")
    ahead_ns = _zero_ns(load, calls.file) - _zero_ns(calls.file, load)
    known = load.known_columns
    table = calls.engine.read(load.parquet, known)
    moving = table.filter(table["op"].isin(["read", "write"]))
    process = moving.process if "process" in known else ibis.null().cast("string")
    return Blocks(
        moving.select(
            at_ns=moving.at_ns + ahead_ns,
            pid=moving.pid.cast("int64"),
            process=process,
            op=moving["op"],
            bytes=moving.sectors.cast("int64") * SECTOR_BYTES,
        ),
        load,
    )


def _zero_ns(file: SourceFile, other: SourceFile) -> int:
    """When the times of a file are zero: on CLOCK_MONOTONIC if both files know it, else by the wall clock."""
    clocks = file.footer.clocks
    epoch = clocks.unix_ns if file.footer.epoch_unix_ns is None and clocks else file.footer.epoch_unix_ns
    if epoch is None:
        raise UsageError(f"{file.path} does not say when it was recorded (epoch_unix_ns in its footer)")
    if clocks is None or other.footer.clocks is None:
        return epoch
    # The wall clock may be set between the recordings.
    return epoch - clocks.unix_ns + clocks.monotonic_ns
