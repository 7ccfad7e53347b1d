"""The columns that most quantities need, each computed once and in the narrowest type.

A report reads the same requests some thirty times. In this form they take a fifth of the memory of the whole table, and
strings are compared only once: `series_of` and `transfers` use these columns if they exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosonar.quantities.address import moves_data
from iosonar.quantities.series import series_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

MAX_INT32 = 2**31 - 1


def narrow(table: ir.Table, rows: int, series: ir.IntegerValue | None = None) -> ir.Table:
    """These columns of a table of `rows` requests; `series`, `moved` and `is_read` are new.

    `series` is the number of each request's series if it is not by operation.
    """
    place = "int32" if rows <= MAX_INT32 else "int64"
    return table.select(
        source=table.source.cast("int16"),
        place=table.place.cast(place),
        device=table.device.fill_null(0).cast("int32"),
        sector=table.sector,
        sectors=table.sectors.cast("int64"),
        scheduled_ns=table.scheduled_ns,
        issued_ns=table.issued_ns,
        completed_ns=table.completed_ns,
        in_flight=table.in_flight,
        series=series_of(table) if series is None else series.cast("int8"),
        moved=moves_data(table),
        is_read=table["op"] == "read",
        not_held_back=table.not_held_back,
    )
