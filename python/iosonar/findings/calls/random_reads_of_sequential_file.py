"""F05: a file is read at random places, although to read it whole in sequence would be no more work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.findings.call_rows import (
    NAMED,
    diagram_of,
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

if TYPE_CHECKING:
    import ibis.expr.types as ir

CANDIDATES = 50
"""Files that are looked at, those with the most bytes first."""

IN_ORDER = (Pattern.SINGLE.value, Pattern.SEQUENTIAL.value)
WRITTEN = 0.9
"""A file was written in order if so large a part of it was, from its start: it is no table that changes in place."""

SEQUENTIAL = " The file was written in sequence, and its jumps and bytes cost more than to read all of it in sequence."

MATTERS = 0.1
"""From this share of the time in calls on, it is a warning."""


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the pattern of the reads of each file, by how it was written, and by the places that they leave out."""
    names = _candidates(study.first.patterns, limits)
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
    whole = [row for row in names if _is_needless(row, covered[row["path"]], limits)]
    if not whole:
        return None
    paths = [row["path"] for row in whole][:NAMED]
    count, moved = sum(int(row["accesses"]) for row in whole), sum(int(row["bytes"]) for row in whole)
    ends = sum(int(row["size"]) for row in whole)
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
            diagram_of(study, paths[0]),
            min(covered[row["path"]]["first_ns"] for row in whole),
            max(covered[row["path"]]["last_ns"] for row in whole),
        ),
        sure=(
            Confidence.HIGH if share >= 0.95 else Confidence.MEDIUM,
            f"Each place was read {units.number(moved / (share * ends), 2)} times on average, and the steps between "
            f"reads go forward and back.{SEQUENTIAL if share < limits['share'] else ''}",
        ),
        ruled_out=(
            "Lookups in a database: they read some places many times, others never, and last longer, or its file is "
            "written at random places, too.",
        ),
        values={"reads": count, "files": len(whole), "bytes": moved, "covered": share, "seconds": took_s},
    )


def _candidates(patterns: ir.Table, limits: Limits) -> list[dict[str, Any]]:
    """Files with small reads at random places, with `size`: how large they are by all reads and writes."""
    import ibis

    own = patterns.filter((patterns.operation == "read") & (patterns.pattern == Pattern.RANDOM.value))
    writes = patterns.filter(patterns.operation == "write")
    written = writes.select(
        "path",
        written_end=writes.end,
        in_order=writes.pattern.isin(IN_ORDER) & (writes.bytes >= WRITTEN * writes.end),
    )
    joined = own.left_join(written, "path")
    files = joined.select(
        "path",
        "bytes",
        "accesses",
        jumps=joined.forward + joined.backward,
        size=ibis.greatest(joined.end, joined.written_end.fill_null(0)),
        in_order=joined.in_order.fill_null(False),
    )
    kept = files.filter(
        (files.accesses >= limits["reads"])
        & (files.bytes < limits["size"] * files.accesses)
        & (files.bytes <= limits["times"] * files.size)
        & ((files.bytes >= limits["share"] * files.size) | (files.in_order & _costs_more(files, limits)))
    )
    rows: list[dict[str, Any]] = (
        kept.order_by([kept.bytes.desc(), kept.path]).limit(CANDIDATES).to_pyarrow().to_pylist()
    )
    return rows


def _costs_more(file: Any, limits: Limits) -> Any:
    """Whether its jumps and bytes cost more than all of it in sequence."""
    return file.bytes + limits["jump"] * file.jumps >= file.size


def _is_needless(file: dict[str, Any], covered: dict[str, Any], limits: Limits) -> bool:
    """Whether enough of it is read, and one read follows the other: a cache that fills slowly is something else."""
    # Reads at different places that overlap would cover a file more than once.
    share = float(covered["bytes"]) / float(file["size"])
    is_covered = (bool(file["in_order"]) or limits["share"] <= share) and share <= 1.05
    lasted_s = (covered["last_ns"] - covered["first_ns"]) / 1e9
    return is_covered and lasted_s <= limits["gap"] * float(file["accesses"])


DETECTOR = Detector[CallStudy](
    "F05",
    "random-reads-of-sequential-file",
    "Random reads of a sequential file",
    "The program needs all of the file, or much of it, but reads it in small pieces out of order. Read-ahead does not "
    "help, so a disk seeks and an SSD or a server answers each piece for itself.",
    (
        "Read the file from its start to its end in pieces of 1 MiB, and put the pieces into order in memory.",
        "If the order must be random, as in the training of a model, shuffle large blocks, or load the file into "
        "memory first.",
    ),
    find,
    (
        Threshold("share", 0.8, Measured.SHARE, "How much of the file is read, if it was not seen how it was written."),
        Threshold(
            "jump",
            128 << 10,
            Measured.BYTES,
            "How many bytes in sequence cost as much as a jump: a file that was written in sequence counts if the "
            "jumps and bytes of its reads cost more than the whole file.",
        ),
        Threshold("times", 2.0, Measured.NUMBER, "How often each place is read on average, at most."),
        Threshold("size", 64 << 10, Measured.BYTES, "The mean size from which on a read is not small."),
        Threshold("time", 0.01, Measured.SHARE, "Their share of the time in calls on files, if it is known."),
        Threshold("gap", 0.01, Measured.TIME, "The mean time from one read of the file to the next, at most."),
        Threshold("reads", 256, Measured.NUMBER, "The fewest reads of a file."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
