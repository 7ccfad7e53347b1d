"""F08: a process reads the same attributes again, although it changed nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosonar import units
from iosonar.findings.call_rows import largest, literal, on_files, place, rows_of, shown, total, without_calls
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic

if TYPE_CHECKING:
    import ibis.expr.types as ir

STATS = (
    *("stat", "lstat", "fstat", "newfstatat", "statx"),
    *("access", "faccessat", "faccessat2"),
)
CHANGES = ("write", "copy", "resize", "create", "remove", "rename", "attribute")
"""Families of calls after which attributes differ; an open may create a file."""


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the call that a process made before on the same file."""
    rows = rows_of(study)
    files = _repeated(rows, limits["within"] * 1e9)
    files = files.filter(files.again >= limits["each"])
    found = total(
        files,
        files=files.count(),
        again=files.again.sum(),
        ns=files.ns.sum(),
        first_ns=files.first_ns.min(),
        last_ns=files.last_ns.max(),
    )
    stats = rows.filter(rows.call.isin(STATS) & rows.path.notnull())
    every = total(stats, stats=stats.count())["stats"]
    share = found["again"] / every if every else 0.0
    if found["again"] < limits["stats"] or share < limits["share"]:
        return None
    top = largest(files, "again")
    paths = [row["path"] for row in top]
    most = f"; {shown(paths[0])} {units.count(top[0]['again'])} times" if len(paths) > 1 else ""
    what = units.counted(int(found["files"]), "file") if len(paths) > 1 else shown(paths[0])
    return DETECTOR.found(
        Severity.WARNING if share >= 0.5 and found["again"] >= 10 * limits["stats"] else Severity.INFO,
        f"{units.counted(int(found['again']), 'stat')} ask for attributes of {what} that the same "
        f"{'thread' if study.first.is_run else 'process'} asked for less than {units.span(limits['within'])} before: "
        f"{units.percent(share)} of all{most}.",
        place(
            study,
            f"call IN ({', '.join(map(literal, STATS))}) AND {on_files(study, paths)}",
            "mix",
            found["first_ns"],
            found["last_ns"],
        ),
        sure=(
            Confidence.HIGH,
            "The result was the same, and the process changed, opened or created nothing of that name in between.",
        ),
        values={
            "again": int(found["again"]),
            "files": int(found["files"]),
            "share": share,
            "seconds": found["ns"] / 1e9,
        },
    )


def _repeated(rows: ir.Table, within_ns: float) -> ir.Table:
    """A row for each file with stats that repeat the call before on that file."""
    import ibis

    is_stat = rows.call.isin(STATS)
    matters = is_stat | rows.family.isin([*CHANGES, "open"])
    events = rows.filter(matters & rows.path.notnull())
    order = ibis.window(group_by=["instance", "owner", "path"], order_by=[events.begin_ns, events.number])
    is_stat = events.call.isin(STATS)
    marked = events.select(
        "path",
        "begin_ns",
        "duration_ns",
        is_again=is_stat
        & is_stat.lag().over(order)
        & (events.call == events.call.lag().over(order))
        & (events.errno.fill_null(0) == events.errno.lag().over(order).fill_null(0))
        & (events.begin_ns - events.begin_ns.lag().over(order) <= within_ns),
    )
    again = marked.filter(marked.is_again)
    return again.group_by("path").aggregate(
        again=again.count(),
        ns=again.duration_ns.cast("float64").sum().fill_null(0.0),
        first_ns=again.begin_ns.min(),
        last_ns=again.begin_ns.max(),
    )


DETECTOR = Detector[CallStudy](
    "F08",
    "redundant-stats",
    "The attributes of the same files are read again and again",
    "The program, or several of its libraries, check a file that they have just checked. On a local disk that costs "
    "processor time; on a network file system each may be a round trip.",
    (
        "Keep the result, or open the file once and use fstat.",
        "On a network file system, let the client keep attributes for longer (actimeo for NFS).",
    ),
    find,
    (
        Threshold("within", 1.0, Measured.TIME, "How long before the same was asked, at most."),
        Threshold("each", 10, Measured.NUMBER, "How often it is asked again for a file at least."),
        Threshold("stats", 1000, Measured.NUMBER, "The fewest such calls."),
        Threshold("share", 0.15, Measured.SHARE, "Their share of all calls that ask for attributes."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
