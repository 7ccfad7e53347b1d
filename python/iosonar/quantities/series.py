"""The series of diagrams: reads, writes, pushed-back reads and writes, and others."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


class Series(IntEnum):
    """The series of a request. Later ones are drawn over earlier ones."""

    READ = 0
    WRITE = 1
    PUSHED_READ = 2
    PUSHED_WRITE = 3
    OTHER = 4
    FAILED = 5

    @property
    def title(self) -> str:
        """The name in legends."""
        return _TITLES[self]


_TITLES = {
    Series.READ: "Reads",
    Series.WRITE: "Writes",
    Series.PUSHED_READ: "Pushed-back reads",
    Series.PUSHED_WRITE: "Pushed-back writes",
    Series.OTHER: "Flushes, discards",
    Series.FAILED: "Failed",
}

MAX_SERIES = 8
"""The most series of a diagram, by operation or by device."""

FAILURES = ("error", "short", "corrupt")
"""Outcomes of requests that failed on the target."""


def series_of(table: ir.Table) -> ir.IntegerColumn:
    """The number of each request's series, as int8."""
    import ibis

    if "series" in table.columns:
        return table.series

    pushed = table.pushed_back.fill_null(False)
    op = table["op"]  # `table.op` is a method of Ibis tables
    number = ibis.cases(
        (table.outcome.isin(FAILURES), int(Series.FAILED)),
        ((op == "read") & ~pushed, int(Series.READ)),
        ((op == "write") & ~pushed, int(Series.WRITE)),
        (op == "read", int(Series.PUSHED_READ)),
        (op == "write", int(Series.PUSHED_WRITE)),
        else_=int(Series.OTHER),
    )
    return number.cast("int8")


def operation_of(moved: ir.Table) -> ir.IntegerColumn:
    """READ or WRITE, as int8, of requests that move data: for quantities of the load, whatever the outcome."""
    is_read = moved.is_read if "is_read" in moved.columns else moved["op"] == "read"
    return is_read.ifelse(int(Series.READ), int(Series.WRITE)).cast("int8")
