"""F07: a process opens the same files again and again."""

from __future__ import annotations

from iosonar import units
from iosonar.findings.call_rows import largest, on_files, place, rows_of, shown, total, without_calls
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic

O_EXCL, O_TRUNC, O_DIRECTORY = 0o200, 0o1000, 0o200000
OTHERWISE = O_EXCL | O_TRUNC | O_DIRECTORY
"""Flags of opens that make a new file or list a directory."""

KERNEL = ("/proc/", "/sys/", "/dev/")


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the opens of each process and file."""
    rows = rows_of(study)
    opens = rows.filter((rows.family == "open") & ~rows.has_failed & rows.path.notnull())
    opens = opens.filter((opens.flags.fill_null(0) & OTHERWISE) == 0)
    for prefix in KERNEL:
        opens = opens.filter(~opens.path.startswith(prefix))
    each = opens.group_by("owner", "path").aggregate(
        opens=opens.count(), first_ns=opens.begin_ns.min(), last_ns=opens.begin_ns.max()
    )
    again = each.filter(each.opens >= limits["each"])
    files = again.group_by("path").aggregate(
        opens=again.opens.sum(), first_ns=again.first_ns.min(), last_ns=again.last_ns.max()
    )
    found = total(
        files,
        files=files.count(),
        opens=files.opens.sum(),
        first_ns=files.first_ns.min(),
        last_ns=files.last_ns.max(),
    )
    every = total(opens, opens=opens.count())["opens"]
    share = found["opens"] / every if every else 0.0
    if found["opens"] < limits["opens"] or share < limits["share"]:
        return None
    first, *more = largest(files, "opens")
    paths = [first["path"], *(row["path"] for row in more)]
    others = f"; {shown(first['path'])} {units.count(first['opens'])} times" if more else ""
    what = units.counted(int(found["files"]), "file") if more else shown(first["path"])
    return DETECTOR.found(
        Severity.WARNING if share >= 0.5 and found["opens"] >= 10 * limits["opens"] else Severity.INFO,
        f"{units.counted(int(found['opens']), 'open')} are of {what} that a "
        f"{'thread' if study.first.is_run else 'process'} opens at least {int(limits['each'])} times, "
        f"{units.percent(share)} of all{others}.",
        place(study, f"family = 'open' AND {on_files(study, paths)}", "mix", found["first_ns"], found["last_ns"]),
        sure=(
            Confidence.MEDIUM if study.first.is_run else Confidence.HIGH,
            "Only opens of one process are counted together, without failed ones, new files and directories."
            if not study.first.is_run
            else "A run does not say which threads are of one process: only opens of one thread are counted together.",
        ),
        values={
            "opens": int(found["opens"]),
            "files": int(found["files"]),
            "share": share,
            "most": int(first["opens"]),
        },
    )


DETECTOR = Detector[CallStudy](
    "F07",
    "redundant-opens",
    "The same files are opened again and again",
    "The program opens and closes a file around each access. Each open walks the path and checks permissions; on a "
    "network file system it also asks the server whether the file changed, and close may write data back.",
    (
        "Keep the file open between accesses, or keep a small cache of open files.",
        "If the content rarely changes, keep it in memory and watch the file by inotify.",
    ),
    find,
    (
        Threshold("each", 20, Measured.NUMBER, "How often a process opens a file at least."),
        Threshold("opens", 500, Measured.NUMBER, "The fewest opens of such files together."),
        Threshold("share", 0.15, Measured.SHARE, "Their share of all opens."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
