"""What happened in each of many equal cells of time: requests due, issued and completed, their bytes and latencies.

Findings ask many questions about the course of a run; one pass over the rows answers all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of, batches
from iosonar.quantities.integers import divided

if TYPE_CHECKING:
    import ibis.expr.types as ir

SECTOR_BYTES = 512
REQUESTS_IN_A_CELL = 8
"""The fewest requests for each cell on average."""

FEWEST, MOST = 240, 60_000
"""Cells of a timeline."""

NEVER = -(1 << 62)
"""In place of a time that is not known."""


class Op(IntEnum):
    """What a request does."""

    READ = 0
    WRITE = 1
    OTHER = 2
    """Flushes, discards and the like."""


OPS = len(Op)

SUMS = ("due", "due_bytes", "issued", "completed", "completed_bytes", "written", "logs", "squares")


@dataclass(frozen=True)
class Timeline:
    """For each operation a row, with a column for each cell of time.

    `due` requests count by their scheduled time, `issued` by that of their issue, `completed` by that of their
    completion; bytes accordingly, `written` those of writes by their issue. `logs` and `squares` are the sums of the
    logarithm of latency in ns, and of its square, of the requests that were issued in a cell and completed; `known` is
    their number, and `slowest` the highest of their latencies.
    """

    low_ns: int
    width_ns: int
    due: NDArray[np.float64]
    due_bytes: NDArray[np.float64]
    issued: NDArray[np.float64]
    completed: NDArray[np.float64]
    completed_bytes: NDArray[np.float64]
    written: NDArray[np.float64]
    logs: NDArray[np.float64]
    squares: NDArray[np.float64]
    known: NDArray[np.float64]
    slowest: NDArray[np.float64]

    @property
    def cells(self) -> int:
        """The number of cells."""
        return int(self.due.shape[1])

    @property
    def width_s(self) -> float:
        """The length of a cell in seconds."""
        return self.width_ns / 1e9

    @property
    def edges_s(self) -> NDArray[np.float64]:
        """The borders of the cells in seconds."""
        return (self.low_ns + np.arange(self.cells + 1, dtype=np.float64) * self.width_ns) / 1e9

    @property
    def in_flight(self) -> NDArray[np.float64]:
        """The requests of each operation that are in flight at the end of each cell."""
        found: NDArray[np.float64] = np.maximum(np.cumsum(self.issued - self.completed, axis=1), 0)
        return found

    @property
    def backlog(self) -> NDArray[np.float64]:
        """All requests that are due and have not completed at the end of each cell."""
        found: NDArray[np.float64] = np.maximum(np.cumsum((self.due - self.completed).sum(axis=0)), 0)
        return found

    def until(self, per_cell: NDArray[np.float64], at_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of a row of values from the start to each of some times."""
        found: NDArray[np.float64] = np.interp(at_s, self.edges_s, np.concatenate([[0.0], np.cumsum(per_cell)]))
        return found

    def joined(self, per_cell: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """The sums of each `count` cells, without a rest at the end."""
        whole = per_cell.shape[-1] // count * count
        found: NDArray[np.float64] = per_cell[..., :whole].reshape(*per_cell.shape[:-1], -1, count).sum(axis=-1)
        return found


def timeline(table: ir.Table, low_ns: int, high_ns: int, rows: int) -> Timeline:
    """Of a table with the columns of `narrow`; times outside of the range count in the nearest cell."""
    import ibis

    cells = min(max(rows // REQUESTS_IN_A_CELL, FEWEST), MOST)
    width = -(-max(high_ns - low_ns, 1) // cells)
    cells = -(-max(high_ns - low_ns, 1) // width)
    op = ibis.cases((table.is_read, int(Op.READ)), (table.moved, int(Op.WRITE)), else_=int(Op.OTHER)).cast("int8")
    known = table.select(
        op=op,
        sectors=table.moved.ifelse(table.sectors, 0),
        due=table.scheduled_ns,
        issued=table.issued_ns.fill_null(NEVER),
        completed=table.completed_ns.fill_null(NEVER),
    )
    found = batches(known)
    size = OPS * cells
    sums = {name: np.zeros(size) for name in (*SUMS, "known", "slowest")}
    if found is None:
        _grouped(known, low_ns, width, cells, sums)
    else:
        for columns in found:
            _add(columns, low_ns, width, cells, sums)
    return Timeline(low_ns, width, **{name: values.reshape(cells, OPS).T.copy() for name, values in sums.items()})


def _add(
    columns: list[NDArray[Any]], low_ns: int, width: int, cells: int, sums: dict[str, NDArray[np.float64]]
) -> None:
    """Adds the requests of a batch."""
    op, sectors, due, issued, completed = columns
    data = sectors * float(SECTOR_BYTES)

    def place(at: NDArray[np.int64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = np.clip((at - low_ns) // width, 0, cells - 1) * OPS + op
        return found

    def count(name: str, at: NDArray[np.int64], weights: NDArray[np.float64] | None = None) -> None:
        if len(at):
            # Rows near each other have times near each other: few cells.
            first = int(at.min())
            counts = np.bincount(at - first, weights)
            sums[name][first : first + len(counts)] += counts

    at_due = place(due)
    count("due", at_due)
    count("due_bytes", at_due, data)
    was_issued, is_done = issued != NEVER, (issued != NEVER) & (completed != NEVER)
    at_issue, at_end = place(issued), place(completed)
    count("issued", at_issue[was_issued])
    writes = was_issued & (op == int(Op.WRITE))
    count("written", at_issue[writes], data[writes])
    count("completed", at_end[is_done])
    count("completed_bytes", at_end[is_done], data[is_done])
    latency = np.maximum(completed[is_done] - issued[is_done], 1).astype(np.float64)
    logs, at = np.log(latency), at_issue[is_done]
    count("known", at)
    count("logs", at, logs)
    count("squares", at, logs * logs)
    np.maximum.at(sums["slowest"], at, latency)


def _grouped(known: ir.Table, low_ns: int, width: int, cells: int, sums: dict[str, NDArray[np.float64]]) -> None:
    """The same of rows on other machines."""
    import ibis

    data = (known.sectors * SECTOR_BYTES).cast("float64")
    issued = known.filter(known.issued != NEVER)
    done = issued.filter(issued.completed != NEVER)
    latency = ibis.greatest(done.completed - done.issued, 1).cast("float64")
    log = latency.ln()

    def at(table: ir.Table, column: str) -> Any:
        cell = divided(table[column].clip(low_ns, low_ns + width * cells - 1) - low_ns, width)
        return table.group_by(place=cell * OPS + table["op"].cast("int64"))

    parts = (
        at(known, "due").aggregate(due=known.count(), due_bytes=data.sum()),
        at(issued, "issued").aggregate(
            issued=issued.count(),
            written=(issued["op"] == int(Op.WRITE)).ifelse((issued.sectors * SECTOR_BYTES).cast("float64"), 0.0).sum(),
        ),
        at(done, "completed").aggregate(
            completed=done.count(), completed_bytes=(done.sectors * SECTOR_BYTES).cast("float64").sum()
        ),
        at(done, "issued").aggregate(
            known=done.count(), logs=log.sum(), squares=(log * log).sum(), slowest=latency.max()
        ),
    )
    for part in parts:
        rows = part.to_pyarrow()
        place = array_of(rows["place"])
        for name in rows.column_names:
            if name != "place":
                sums[name][place] = array_of(rows[name]).astype(np.float64)


def windows(timeline: Timeline, count: int) -> Iterator[slice]:
    """About `count` equal parts of a timeline."""
    step = max(timeline.cells // count, 1)
    for first in range(0, timeline.cells - step + 1, step):
        yield slice(first, first + step)
