"""F01: little data is made durable at a time."""

from __future__ import annotations

from iosonar import units
from iosonar.findings import syncing
from iosonar.findings.call_rows import rows_of, without_calls
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Finding
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.calls.syncs import synchronous_writes, syncs_by_file
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the flags of opening, and by the bytes that each sync makes durable."""
    return _by_flags(study, limits) or _by_syncs(study, limits)


def _by_flags(study: CallStudy, limits: Limits) -> Finding | None:
    """Writes with O_SYNC, O_DSYNC or their RWF_ flags."""
    data = syncing.durable(synchronous_writes(rows_of(study), limits["size"]), "writes", limits["number"])
    if data is None:
        return None
    return syncing.found(
        DETECTOR,
        study,
        data,
        f"{units.counted(data.count, 'write')} of {units.binary_bytes(data.mean_bytes)} on average to {data.shown} "
        "with O_SYNC, O_DSYNC or RWF_DSYNC",
        rows=f"family = 'write' AND bytes < {int(limits['size'])}",
        why="The flags that the files were opened with, or that the writes have, say so.",
    )


def _by_syncs(study: CallStudy, limits: Limits) -> Finding | None:
    """Syncs that make little durable; those of files that are synced at each write are F02."""
    syncs = syncs_by_file(rows_of(study))
    small = syncs.filter(~syncing.is_synced_at_once(syncs) & (syncs.bytes < limits["size"] * syncs.syncs))
    data = syncing.durable(small, "syncs", limits["number"])
    if data is None:
        return None
    return syncing.found(
        DETECTOR,
        study,
        data,
        f"{units.counted(data.count, 'sync')} of {data.shown} make {units.binary_bytes(data.mean_bytes)} durable on "
        "average",
        rows=syncing.IS_SYNC,
        why="The writes to a file between two of its syncs were counted.",
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
