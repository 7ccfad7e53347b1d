"""The requests of a load beside a run of it: the original, at the times of the run.

If the run was faster, the times of the original are divided by its speed-up; its latencies are not.

The response time of an original is the time from `at_ns` to the completion. A replay issues a request at `at_ns`, and
the block layer queues it again: so the original's own time in the queue belongs to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.errors import UserError
from iosonar.table.requests import Requests, beside, with_times
from iosonar.table.source import SourceFile

if TYPE_CHECKING:
    import ibis.expr.types as ir

QUEUED = "queued"
"""The `request_time` of a load whose times are those of queueing."""


@dataclass(frozen=True)
class OriginalRequests:
    """The requests of an original that completed, and whether they are row by row those of the run.

    If they are, requests that the run did not issue are left out.
    """

    requests: Requests
    is_by_row: bool


def has_latencies(file: SourceFile) -> bool:
    """Whether a file is a load with the latencies of its original."""
    return not file.kind.is_run and "latency_ns" in file.known_columns


def refuse_without_latencies(file: SourceFile) -> None:
    """Refuses anything but a load with latencies."""
    if file.kind.is_run:
        raise UserError(f"{file.path} is {file.kind.words}, not a load: an original is a load with latencies")
    if not has_latencies(file):
        raise UserError(f"{file.path} has no latencies: an original is a load with latencies, as recorded or converted")


def original_requests(run: Requests, file: SourceFile) -> OriginalRequests:
    """The requests of a load, at the times of a run, on its engine."""
    load = beside(run, file)
    issued = of_load(run.table)
    is_by_row = _are_same(issued, load.table)
    rows = load.table.semi_join(issued, "request") if is_by_row else load.table
    rows = rows.filter(rows.latency_ns.notnull())
    zero = rows.aggregate(at=rows.scheduled_ns.min()).to_pyarrow()["at"][0].as_py()
    first = issued.aggregate(at=issued.scheduled_ns.min()).to_pyarrow()["at"][0].as_py()
    speed = speedup_of(run.files)

    def at(time: ir.IntegerValue) -> ir.IntegerValue:
        since = time - (zero or 0)
        scaled: ir.IntegerValue = since if speed == 1 else (since / speed).round().cast("int64")
        return scaled + (first or 0)

    queued = rows.queued_ns.fill_null(0) if file.footer.request_time == QUEUED else 0
    issued_ns = at(rows.issued_ns)
    moved = with_times(
        rows,
        scheduled_ns=at(rows.scheduled_ns),
        issued_ns=issued_ns,
        completed_ns=issued_ns + (rows.completed_ns - rows.issued_ns) + queued,
    )
    return OriginalRequests(replace(load, table=moved), is_by_row)


def speedup_of(files: Sequence[SourceFile]) -> float:
    """How many times as fast as their load these runs are; 1 if they differ."""
    speeds = {float(file.option("speedup") or 1) for file in files if file.kind.is_run}
    return speeds.pop() if len(speeds) == 1 else 1.0


def of_load(run: ir.Table) -> ir.Table:
    """The requests of a run that were issued and are not a program's."""
    return run.filter(run.issued_ns.notnull() & run.stream.isnull())


def _are_same(issued: ir.Table, load: ir.Table) -> bool:
    """Whether each request of a run has the position and the operation of the load's request of its number."""
    known = load.select("request", its_sector=load.sector, its_op=load["op"])
    joined = issued.select("request", "source_sector", op_=issued["op"]).left_join(known, "request")
    is_same = (joined.source_sector == joined.its_sector) & (joined.op_ == joined.its_op)
    found = joined.aggregate(rows=joined.count(), same=is_same.fill_null(False).sum()).to_pyarrow().to_pylist()[0]
    return bool(found["rows"]) and found["rows"] == found["same"]


def load_of(run: SourceFile) -> Path | None:
    """The table of the load that a run names, if it is still there: by its path, or beside the run."""
    if not run.run.load:
        return None
    named = Path(run.run.load)
    return next((path for path in (named, run.given.parent / named.name) if _is_table(path)), None)


def _is_table(path: Path) -> bool:
    try:
        # A pipe would block.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except (OSError, ValueError):
        return False
