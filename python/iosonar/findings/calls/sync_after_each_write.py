"""F02: a sync after each small write, without batching."""

from __future__ import annotations

from iosonar import units
from iosonar.findings.call_rows import (
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
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.calls.syncs import SYNCS, syncs_by_file
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic
from iosonar.text import listed

BATCHED = 0.8
"""A file is synced after each write if so large a share of its syncs follows one write."""

FEWEST_OF_A_FILE = 20
"""Fewer syncs of a file are no habit."""

MATTERS = 0.2
"""From this share of the time in calls on, it is a warning."""


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the writes between two syncs of a file."""
    files = syncs_by_file(rows_of(study))
    single = files.filter(
        (files.syncs >= FEWEST_OF_A_FILE)
        & (files.single >= BATCHED * files.syncs)
        & (files.bytes < limits["size"] * files.syncs)
    )
    found = total(
        single,
        files=single.count(),
        syncs=single.syncs.sum(),
        single=single.single.sum(),
        bytes=single.bytes.sum(),
        took_ns=single.took_ns.sum(),
        first_ns=single.first_ns.min(),
        last_ns=single.last_ns.max(),
    )
    if found["syncs"] < limits["syncs"]:
        return None
    paths = [row["path"] for row in largest(single, "syncs")]
    named = [shown(path) for path in paths[:2]]
    more = f" and {units.counted(int(found['files']) - 2, 'more file')}" if found["files"] > 2 else ""
    took_s, share = found["took_ns"] / 1e9, found["single"] / found["syncs"]
    time, whole = of_time(study, took_s), seconds_of(study)
    matters = bool(time) and took_s >= MATTERS * whole and times_say_something(study)
    return DETECTOR.found(
        Severity.WARNING if matters else Severity.INFO,
        f"{units.counted(int(found['syncs']), 'sync')} of {', '.join(named) if more else listed(named)}{more}, "
        f"{units.percent(share)} of them after a single write, of "
        f"{units.binary_bytes(found['bytes'] / found['syncs'])} on average{f'. They take {time}' if time else ''}.",
        place(
            study,
            f"call IN ({', '.join(map(literal, SYNCS))}) AND {on_files(study, paths)}",
            "response.sync",
            found["first_ns"],
            found["last_ns"],
        ),
        sure=(
            Confidence.HIGH,
            f"The writes between two syncs of each file were counted.{strace_doubt(study) if time else ''}",
        ),
        ruled_out=("Group commit: it would sync after several writes when several clients commit at the same time.",),
        values={
            "syncs": int(found["syncs"]),
            "files": int(found["files"]),
            "share": share,
            "mean_bytes": found["bytes"] / found["syncs"],
            "seconds": took_s,
        },
    )


DETECTOR = Detector[CallStudy](
    "F02",
    "sync-after-each-write",
    "A sync after each write",
    "Each record or transaction waits for a flush of its own, so the time of a flush limits how many there are per "
    "second. A database does so on purpose if one client commits one transaction after the other.",
    (
        "Put several rows into a transaction, or several records into a write, and sync once.",
        "If many clients commit at the same time, turn on group commit (commit_delay in PostgreSQL, "
        "binlog_group_commit_sync_delay in MySQL).",
        "Compare the time of a sync with that of the data sheet for a flush: storage with power-loss protection "
        "answers in well under a millisecond.",
    ),
    find,
    (
        Threshold("syncs", 50, Measured.NUMBER, "The fewest syncs of such files together."),
        Threshold("size", 64 << 10, Measured.BYTES, "The mean bytes for each sync from which on a write is not small."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
