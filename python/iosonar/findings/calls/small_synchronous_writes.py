"""F01: little data is made durable at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosonar import units
from iosonar.findings.call_rows import (
    NAMED,
    largest,
    literal,
    of_time,
    on_files,
    place,
    rows_of,
    seconds_of,
    shown,
    strace_doubt,
    times_say_something,
    total,
    without_calls,
)
from iosonar.findings.calls.sync_after_each_write import BATCHED, FEWEST_OF_A_FILE
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.calls.syncs import SYNCS, synchronous_writes, syncs_by_file
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic
from iosonar.text import listed

if TYPE_CHECKING:
    import ibis.expr.types as ir

MATTERS = 0.2
"""From this share of the time in calls on, it is a warning."""


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the flags of opening, and by the bytes that each sync makes durable."""
    rows = rows_of(study)
    return _by_flags(study, limits, synchronous_writes(rows, limits["size"])) or _by_syncs(
        study, limits, syncs_by_file(rows)
    )


def _by_flags(study: CallStudy, limits: Limits, writes: ir.Table) -> Finding | None:
    """Writes with O_SYNC, O_DSYNC or their RWF_ flags."""
    found = total(
        writes,
        files=writes.count(),
        writes=writes.writes.sum(),
        bytes=writes.bytes.sum(),
        took_ns=writes.took_ns.sum(),
        first_ns=writes.first_ns.min(),
        last_ns=writes.last_ns.max(),
    )
    if found["writes"] < limits["number"]:
        return None
    paths = [row["path"] for row in largest(writes, "writes")]
    return _found(
        study,
        f"{units.counted(int(found['writes']), 'write')} of {units.binary_bytes(found['bytes'] / found['writes'])} on "
        f"average to {_files(int(found['files']), paths)} with O_SYNC, O_DSYNC or RWF_DSYNC",
        f"family = 'write' AND bytes < {int(limits['size'])} AND {on_files(study, paths)}",
        "response.write",
        found,
        "writes",
        "The flags that the files were opened with, or that the writes have, say so.",
    )


def _by_syncs(study: CallStudy, limits: Limits, syncs: ir.Table) -> Finding | None:
    """Syncs that make little durable; those after each single write are another finding."""
    is_single = (syncs.syncs >= FEWEST_OF_A_FILE) & (syncs.single >= BATCHED * syncs.syncs)
    small = syncs.filter(~is_single & (syncs.bytes < limits["size"] * syncs.syncs))
    found = total(
        small,
        files=small.count(),
        syncs=small.syncs.sum(),
        bytes=small.bytes.sum(),
        took_ns=small.took_ns.sum(),
        first_ns=small.first_ns.min(),
        last_ns=small.last_ns.max(),
    )
    if found["syncs"] < limits["number"]:
        return None
    files = int(found["files"])
    paths = [row["path"] for row in largest(small, "syncs")]
    of_files = on_files(study, paths) if files <= NAMED else f"family = 'sync' AND {_syncs()}"
    return _found(
        study,
        f"{units.counted(int(found['syncs']), 'sync')} of {_files(files, paths)} make "
        f"{units.binary_bytes(found['bytes'] / found['syncs'])} durable on average",
        f"{_syncs()} AND {of_files}" if files <= NAMED else of_files,
        "response.sync",
        found,
        "syncs",
        "The writes to a file between two of its syncs were counted.",
    )


def _syncs() -> str:
    return f"call IN ({', '.join(map(literal, SYNCS))})"


def _files(number: int, paths: list[str]) -> str:
    return listed([shown(path) for path in paths]) if number <= 2 else units.counted(number, "file")


def _found(
    study: CallStudy, what: str, rows: str, diagram: str, found: dict[str, float], noun: str, why: str
) -> Finding:
    took_s = found["took_ns"] / 1e9
    whole = seconds_of(study)
    time = of_time(study, took_s)
    share = took_s / whole if time else 0.0
    return DETECTOR.found(
        Severity.WARNING if share >= MATTERS and times_say_something(study) else Severity.INFO,
        f"{what}{f'. They take {time}' if time else ''}.",
        place(study, rows, diagram, found["first_ns"], found["last_ns"]),
        sure=(Confidence.HIGH, f"{why}{strace_doubt(study) if time else ''}"),
        values={
            noun: int(found[noun]),
            "files": int(found["files"]),
            "bytes": int(found["bytes"]),
            "mean_bytes": found["bytes"] / found[noun],
            "seconds": took_s,
            "share": share,
        },
    )


DETECTOR = Detector[CallStudy](
    "F01",
    "small-synchronous-writes",
    "Small synchronous writes",
    "The program waits until the storage has each small piece of data. Such a wait takes nearly as long for 4 KiB as "
    "for 1 MiB, so the storage delivers a small part of its throughput.",
    (
        "Write more data before each sync: join several records, transactions or small files.",
        "If each piece must survive a power failure at once, put these files on storage with a short flush, such as an "
        "SSD with power-loss protection.",
        "If a loss of the last seconds is acceptable, open the files without O_SYNC and O_DSYNC, or sync less often.",
    ),
    find,
    (
        Threshold(
            "size",
            16 << 10,
            Measured.BYTES,
            "The bytes that a synchronous write or a sync has at least if it is not small.",
        ),
        Threshold("number", 100, Measured.NUMBER, "The fewest such writes or syncs."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
