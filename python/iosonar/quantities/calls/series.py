"""The series of calls in diagrams: what calls do, in five groups of families."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


class CallSeries(IntEnum):
    """The series of a call in diagrams. Later ones are drawn over earlier ones."""

    READ = 0
    WRITE = 1
    SYNC = 2
    METADATA = 3
    OTHER = 4

    @property
    def title(self) -> str:
        """The name in legends."""
        return _TITLES[self]


_TITLES = {
    CallSeries.READ: "Reads",
    CallSeries.WRITE: "Writes",
    CallSeries.SYNC: "Syncs",
    CallSeries.METADATA: "Names and attributes",
    CallSeries.OTHER: "Descriptors and processes",
}

_SERIES = {
    CallSeries.READ: ("read",),
    CallSeries.WRITE: ("write", "copy"),
    CallSeries.SYNC: ("sync",),
    CallSeries.METADATA: ("open", "resize", "stat", "list", "create", "remove", "rename", "attribute"),
}
"""Families by series. `close`, `lseek`, and calls on processes and sockets touch no name and no content."""


def with_series(table: ir.Table) -> ir.Table:
    """The table with the number of each call's series, as int8."""
    import ibis

    branches = ((table.family.isin(families), int(series)) for series, families in _SERIES.items())
    return table.mutate(series=ibis.cases(*branches, else_=int(CallSeries.OTHER)).cast("int8"))
