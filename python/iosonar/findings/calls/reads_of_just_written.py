"""F04: the program reads data that it wrote itself shortly before."""

from __future__ import annotations

from iosonar import units
from iosonar.findings.call_rows import diagram_of, largest, on_files, place, rows_of, shown, total, without_calls
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.calls.read_back import read_back
from iosonar.quantities.calls.series import CallSeries
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic
from iosonar.text import listed


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the last write of the process to the place of each read."""
    rows = rows_of(study)
    files = read_back(rows, limits["within"] * 1e9)
    found = total(
        files,
        files=files.count(),
        reads=files.reads.sum(),
        bytes=files.bytes.sum(),
        age_ns=files.age_ns.sum(),
        first_ns=files.first_ns.min(),
        last_ns=files.last_ns.max(),
    )
    if found["reads"] < limits["reads"] or found["bytes"] < limits["bytes"]:
        return None
    read = rows.filter((rows.series == int(CallSeries.READ)) & rows.bytes.notnull() & rows.path.notnull())
    every = total(read, bytes=read.bytes.cast("float64").sum())
    share = found["bytes"] / every["bytes"] if every["bytes"] else 0.0
    if share < limits["share"]:
        return None
    paths = [row["path"] for row in largest(files, "bytes")]
    files_found = int(found["files"])
    named = listed([shown(path) for path in paths]) if files_found <= 2 else units.counted(files_found, "file")
    return DETECTOR.found(
        Severity.WARNING if share >= 0.5 else Severity.INFO,
        f"{units.counted(int(found['reads']), 'read')} return {units.transferred(found['bytes'])} of {named} that "
        f"{'the same process' if not study.first.is_run else 'the same thread'} wrote "
        f"{units.span(found['age_ns'] / found['reads'] / 1e9)} before on average: {units.percent(share)} of all bytes "
        "read from files.",
        place(
            study,
            f"family = 'read' AND {on_files(study, paths)}",
            diagram_of(study, paths[0]),
            found["first_ns"],
            found["last_ns"],
        ),
        sure=(
            Confidence.HIGH,
            "Each of these reads overlaps the last write to that place.",
        ),
        values={
            "reads": int(found["reads"]),
            "bytes": int(found["bytes"]),
            "share": share,
            "age_s": found["age_ns"] / found["reads"] / 1e9,
            "files": files_found,
        },
    )


DETECTOR = Detector[CallStudy](
    "F04",
    "reads-of-just-written",
    "Reads of what was just written",
    "The program passes data to itself through a file, or does not keep what it wrote. The page cache usually answers "
    "such reads; with O_DIRECT, a small memory or a network file system, they go to the storage.",
    (
        "Keep the data in memory until it is no longer needed, or enlarge the program's own cache or sort buffer.",
        "If it is a temporary file, put it into memory (tmpfs) or on a local disk.",
    ),
    find,
    (
        Threshold("within", 5.0, Measured.TIME, "How long before the read the write began, at most."),
        Threshold("share", 0.2, Measured.SHARE, "The share of all bytes read from files."),
        Threshold("reads", 100, Measured.NUMBER, "The fewest such reads."),
        Threshold("bytes", 1 << 20, Measured.BYTES, "The fewest bytes of them."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
