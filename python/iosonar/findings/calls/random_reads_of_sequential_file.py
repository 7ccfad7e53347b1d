"""F05: a file is read whole, but at random places."""

from __future__ import annotations

from typing import Any

from iosonar import units
from iosonar.findings.call_rows import (
    NAMED,
    literal,
    of_time,
    on_files,
    place,
    rows_of,
    seconds_of,
    shown,
    times_say_something,
    without_calls,
)
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.calls.access import Pattern, accesses
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic
from iosonar.text import listed

CANDIDATES = 50
"""Files that are looked at, those with the most bytes first."""


MATTERS = 0.1
"""From this share of the time in calls on, it is a warning."""


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the pattern of the reads of each file, and by the places that they leave out."""
    patterns = study.first.patterns
    candidates = patterns.filter(
        (patterns.operation == "read")
        & (patterns.pattern == Pattern.RANDOM.value)
        & (patterns.accesses >= limits["reads"])
        & (patterns.bytes < limits["size"] * patterns.accesses)
        & (patterns.bytes >= limits["share"] * patterns.end)
        & (patterns.bytes <= limits["times"] * patterns.end)
    )
    names = (
        candidates.order_by([candidates.bytes.desc(), candidates.path])
        .limit(CANDIDATES)
        .select("path", "end", "bytes", "accesses")
        .to_pyarrow()
        .to_pylist()
    )
    if not names:
        return None
    rows = rows_of(study)
    reads = accesses(rows)
    of_these = reads.filter((reads.operation == "read") & reads.path.isin([row["path"] for row in names]))
    places = of_these.group_by("path", "offset").aggregate(
        bytes=of_these.bytes.max(),
        ns=of_these.duration_ns.cast("float64").sum(),
        first_ns=of_these.begin_ns.min(),
        last_ns=of_these.begin_ns.max(),
    )
    covered = {
        row["path"]: row
        for row in places.group_by("path")
        .aggregate(
            bytes=places.bytes.sum(), ns=places.ns.sum(), first_ns=places.first_ns.min(), last_ns=places.last_ns.max()
        )
        .to_pyarrow()
        .to_pylist()
    }
    whole = [row for row in names if _is_whole(row, covered[row["path"]], limits)]
    if not whole:
        return None
    paths = [row["path"] for row in whole][:NAMED]
    count, moved = sum(int(row["accesses"]) for row in whole), sum(int(row["bytes"]) for row in whole)
    ends = sum(int(row["end"]) for row in whole)
    share = sum(int(covered[row["path"]]["bytes"]) for row in whole) / ends
    took_s = sum(float(covered[row["path"]]["ns"] or 0) for row in whole) / 1e9
    time, whole_s = of_time(study, took_s), seconds_of(study)
    time_share = took_s / whole_s if time else 1.0
    if time_share < limits["time"]:
        return None
    named = listed([shown(path) for path in paths]) if len(whole) <= 2 else units.counted(len(whole), "file")
    return DETECTOR.found(
        Severity.WARNING if time and time_share >= MATTERS and times_say_something(study) else Severity.INFO,
        f"{units.percent(min(share, 1.0))} of {named} ({units.transferred(ends)}) is read, in "
        f"{units.counted(count, 'read')} of {units.binary_bytes(moved / count)} at random places"
        f"{f'. They take {time}' if time else ''}.",
        place(
            study,
            f"family = {literal('read')} AND {on_files(study, paths)}",
            "offset.1" if paths[0] in {each.path for each in study.first.accesses[:1]} else "files.bytes",
            min(covered[row["path"]]["first_ns"] for row in whole),
            max(covered[row["path"]]["last_ns"] for row in whole),
        ),
        sure=(
            Confidence.HIGH if share >= 0.95 else Confidence.MEDIUM,
            f"Each place was read {units.number(moved / (share * ends), 2)} times on average, and the steps between "
            "reads go forward and back.",
        ),
        ruled_out=("Lookups in a database: they read some places many times, others never, and last longer.",),
        values={"reads": count, "files": len(whole), "bytes": moved, "covered": share, "seconds": took_s},
    )


def _is_whole(file: dict[str, Any], covered: dict[str, Any], limits: Limits) -> bool:
    """Whether its bytes are read, and one read follows the other: a cache that fills slowly is something else."""
    # Reads at different places that overlap would cover a file more than once.
    is_covered = limits["share"] <= float(covered["bytes"]) / float(file["end"]) <= 1.05
    lasted_s = (covered["last_ns"] - covered["first_ns"]) / 1e9
    return is_covered and lasted_s <= limits["gap"] * float(file["accesses"])


DETECTOR = Detector[CallStudy](
    "F05",
    "random-reads-of-sequential-file",
    "Random reads of a file that is read whole",
    "The program needs all of the file, but reads it in small pieces out of order. Read-ahead does not help, so a "
    "disk seeks and an SSD or a server answers each piece for itself.",
    (
        "Read the file from its start to its end in pieces of 1 MiB, and put the pieces into order in memory.",
        "If the order must be random, as in the training of a model, shuffle large blocks, or load the file into "
        "memory first.",
    ),
    find,
    (
        Threshold("share", 0.8, Measured.SHARE, "How much of the file is read."),
        Threshold("times", 2.0, Measured.NUMBER, "How often each place is read on average, at most."),
        Threshold("size", 64 << 10, Measured.BYTES, "The mean size from which on a read is not small."),
        Threshold("time", 0.01, Measured.SHARE, "Their share of the time in calls on files, if it is known."),
        Threshold("gap", 0.01, Measured.TIME, "The mean time from one read of the file to the next, at most."),
        Threshold("reads", 256, Measured.NUMBER, "The fewest reads of a file."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
