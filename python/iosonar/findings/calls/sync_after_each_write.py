"""F02: a sync after each small write, or after two, without batching."""

from __future__ import annotations

from iosonar import units
from iosonar.findings import syncing
from iosonar.findings.call_rows import rows_of, without_calls
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Finding
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.calls.syncs import syncs_by_file
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the writes between two syncs of a file. Two are a record's head and its body, not a batch."""
    files = syncs_by_file(rows_of(study))
    at_once = files.filter(syncing.is_synced_at_once(files) & (files.bytes < limits["size"] * files.syncs))
    data = syncing.durable(at_once, "syncs", limits["syncs"])
    if data is None:
        return None
    share, each = data.sums["at_once"] / data.count, data.sums["writes"] / data.count
    after = "a single write" if each < 1.05 else "one write or two"
    return syncing.found(
        DETECTOR,
        study,
        data,
        f"{units.counted(data.count, 'sync')} of {data.shown}, {units.percent(share)} of them after {after}, make "
        f"{units.binary_bytes(data.mean_bytes)} durable on average",
        rows=syncing.IS_SYNC,
        why="The writes between two syncs of each file were counted.",
        ruled_out=("Group commit: it would sync after several writes when several clients commit at the same time.",),
        values={"share": share, "writes_each": each},
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
        Threshold(
            "size",
            256 << 10,
            Measured.BYTES,
            "The mean bytes for each sync from which on their transfer may take longer than the flush.",
        ),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
