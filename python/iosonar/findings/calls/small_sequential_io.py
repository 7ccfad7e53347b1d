"""F10: small reads or writes in sequence that a buffer would join."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosonar import units
from iosonar.findings.call_rows import largest, on_files, place, rows_of, shown, total, without_calls, work_of
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.calls.series import CallSeries
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic
from iosonar.text import listed

if TYPE_CHECKING:
    import ibis.expr.types as ir

FEWEST_OF_A_FILE = 100


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By reads and writes that begin where the one before ended, right after it."""
    rows = rows_of(study)
    files = _joinable(rows, limits["size"], limits["within"] * 1e9)
    files = files.filter(files.calls >= FEWEST_OF_A_FILE)
    found = total(
        files,
        files=files.path.nunique(),
        calls=files.calls.sum(),
        reads=files.calls.sum(where=files.series == int(CallSeries.READ)),
        bytes=files.bytes.sum(),
        ns=files.ns.sum(),
        first_ns=files.first_ns.min(),
        last_ns=files.last_ns.max(),
    )
    work = work_of(study)
    every = work[CallSeries.READ].calls + work[CallSeries.WRITE].calls
    share = found["calls"] / every if every else 0.0
    if found["calls"] < limits["calls"] or share < limits["share"]:
        return None
    paths = list(dict.fromkeys(row["path"] for row in largest(files, "calls")))
    reads, writes = int(found["reads"]), int(found["calls"] - found["reads"])
    what = listed([units.counted(number, noun) for number, noun in ((reads, "read"), (writes, "write")) if number])
    mean = found["bytes"] / found["calls"]
    named = (
        listed([shown(path) for path in paths]) if found["files"] <= 2 else units.counted(int(found["files"]), "file")
    )
    families = ", ".join(f"'{name}'" for name, number in (("read", reads), ("write", writes)) if number)
    return DETECTOR.found(
        Severity.WARNING if share >= 0.5 and found["calls"] >= 10 * limits["calls"] else Severity.INFO,
        f"{what} of {units.binary_bytes(mean)} on average continue where the one before ended, in {named}: "
        f"{units.percent(share)} of all reads and writes of files.",
        place(
            study,
            f"family IN ({families}) AND bytes < {int(limits['size'])} AND {on_files(study, paths)}",
            "sizes",
            found["first_ns"],
            found["last_ns"],
        ),
        sure=(
            Confidence.HIGH,
            f"Each of them and the one before have less than {units.binary_bytes(limits['size'])}, and less than "
            f"{units.span(limits['within'])} and no sync are between them.",
        ),
        ruled_out=("Lines of a log that are written as events happen: there would be time between them.",),
        values={
            "calls": int(found["calls"]),
            "reads": reads,
            "writes": writes,
            "share": share,
            "mean_bytes": mean,
            "files": int(found["files"]),
            "seconds": found["ns"] / 1e9,
        },
    )


def _joinable(rows: ir.Table, size: float, within_ns: float) -> ir.Table:
    """A row for each file and series with the calls that could be part of the one before."""
    import ibis

    data = [int(CallSeries.READ), int(CallSeries.WRITE)]
    moves = rows.series.isin(data) & rows.bytes.notnull() & rows.offset.notnull()
    events = rows.filter(rows.path.notnull() & (moves | (rows.series == int(CallSeries.SYNC))))
    order = ibis.window(group_by=["instance", "owner", "path"], order_by=[events.begin_ns, events.number])
    end = events.offset + events.bytes
    marked = events.select(
        "path",
        "series",
        "bytes",
        "begin_ns",
        "duration_ns",
        is_joinable=(
            events.series.isin(data)
            & (events.series == events.series.lag().over(order))
            & (events.offset == end.lag().over(order))
            & (events.bytes < size)
            & (events.bytes.lag().over(order) < size)
            & (events.begin_ns - ibis.coalesce(events.end_ns, events.begin_ns).lag().over(order) <= within_ns)
        ),
    )
    joinable = marked.filter(marked.is_joinable)
    return joinable.group_by("path", "series").aggregate(
        calls=joinable.count(),
        bytes=joinable.bytes.sum().cast("int64"),
        ns=joinable.duration_ns.cast("float64").sum().fill_null(0.0),
        first_ns=joinable.begin_ns.min(),
        last_ns=joinable.begin_ns.max(),
    )


DETECTOR = Detector[CallStudy](
    "F10",
    "small-sequential-io",
    "Small reads and writes in sequence",
    "The program reads or writes without a buffer, or with one that is too small. The page cache joins the data for "
    "the storage, but each call costs processor time, with O_DIRECT and on network file systems also a request.",
    (
        "Read and write through a buffer of 64 KiB to 1 MiB (setvbuf, BufferedReader, bufio, dd bs=1M), or join pieces "
        "by readv and writev.",
    ),
    find,
    (
        Threshold("size", 8 << 10, Measured.BYTES, "The bytes from which on a read or write is not small."),
        Threshold("within", 0.01, Measured.TIME, "How long after the one before, at most."),
        Threshold("calls", 1000, Measured.NUMBER, "The fewest such calls."),
        Threshold("share", 0.2, Measured.SHARE, "Their share of all reads and writes of files."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
