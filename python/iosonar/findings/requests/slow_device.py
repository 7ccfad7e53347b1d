"""S11: one device of several, or one member of a stripe, is much slower than the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.findings.course import stretches_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.requests import Study
from iosonar.study.slow_devices import SlowDevice, devices_much_slower

SECTOR_BYTES = 512
CHUNKS = tuple(1 << power for power in range(3, 14))
"""Sectors: 4 KiB to 4 MiB."""

MEMBERS = range(2, 17)
SAMPLE = 60_000
FEWEST = 100
"""The fewest requests of a member."""

FEWEST_PIECES = 8
"""The fewest pieces of a member."""

ERRORS = 10
MAX_LISTED = 4
"""Devices that are named beside the first one."""


def find(study: Study, limits: Limits) -> Finding | None:
    """By the percentiles of devices with the same demand; of one device, by positions."""
    slow = devices_much_slower(study)
    if slow:
        return _device(study, slow)
    return _member(study, limits) if len(study.devices) == 1 else None


def _device(study: Study, slow: tuple[SlowDevice, ...]) -> Finding:
    first = slow[0]
    others = [f"{each.name} ({each.metric} {units.number(each.ratio, 2)} times)" for each in slow[1:]]
    names = ", ".join(others[:MAX_LISTED])
    more = f"; and {len(others) - MAX_LISTED} more" if len(others) > MAX_LISTED else ""
    also = f" Slow, too: {names}{more}." if others else ""
    return DETECTOR.found(
        Severity.WARNING,
        f"{first.sentence}.{also}",
        Evidence(" OR ".join(_rows_of(study, each) for each in slow), "devices.latency"),
        sure=(
            Confidence.HIGH if first.low >= 2 else Confidence.MEDIUM,
            f"The 95 % interval of the ratio begins at {units.number(first.low, 2)}.",
        ),
        ruled_out=("Another demand: only devices with as many requests of the same kinds and sizes are compared.",),
        values={"ratio": first.ratio, "low": first.low, "high": first.high, "devices": len(slow)},
    )


def _rows_of(study: Study, slow: SlowDevice) -> str:
    """A condition on the rows of a device."""
    device = study.devices[slow.place].device
    where = f"source = {device.source}"
    if device.of_load is not None:
        where += f" AND coalesce(device, 0) IN ({', '.join(map(str, device.of_load))})"
    return where


@dataclass(frozen=True)
class _Slow:
    """A member of a stripe, from 0: chunk `number` modulo `members`."""

    chunk: int
    members: int
    member: int
    change: float
    score: float
    share: float


def _member(study: Study, limits: Limits) -> Finding | None:
    """The chunk and number of members that separate latencies best."""
    best: _Slow | None = None
    parts = stretches_of(study)
    sector = np.concatenate([part.sector[part.moved] for part in parts])
    end = np.concatenate([(part.sector + part.sectors)[part.moved] for part in parts])
    reads = np.concatenate([part.is_read[part.moved] for part in parts])
    log = np.concatenate([np.log(np.maximum(part.latency_ns[part.moved], 1)) for part in parts])
    most = reads if reads.mean() >= 0.5 else ~reads
    chosen = np.flatnonzero(most)[:: max(int(most.sum()) // SAMPLE, 1)]
    sector, end, log = sector[chosen], end[chosen], log[chosen]
    if len(log) < 4 * FEWEST:
        return None
    # The extremes of a tail would hide a member.
    log = np.clip(log, *np.quantile(log, (0.01, 0.99)))
    for chunk in CHUNKS:
        within = sector // chunk == (end - 1) // chunk
        if within.mean() < 0.5:
            continue
        # A vote for each piece, however often it is used: a hot piece in a cache is no member.
        place, inverse, number = np.unique(sector[within] // chunk, return_inverse=True, return_counts=True)
        values = np.bincount(inverse, log[within]) / number
        for members in MEMBERS:
            found = _slowest(place, values, number, chunk, members, math.log(limits["factor"]))
            if found and (best is None or found.score > 1.02 * best.score):
                best = found
    if best is None or best.score < ERRORS:
        return None
    bytes_ = best.chunk * SECTOR_BYTES
    return DETECTOR.found(
        Severity.WARNING,
        f"Of every {best.members} pieces of {units.binary_bytes(bytes_)}, requests to piece {best.member} (of 0 to "
        f"{best.members - 1}) take {units.number(math.exp(best.change), 2)} times as long as those to the others: one "
        f"member of a stripe of {best.members} is slow.",
        Evidence(f"sector // {best.chunk} % {best.members} = {best.member}", "latency.region"),
        sure=(
            Confidence.HIGH if best.score > 2 * ERRORS else Confidence.MEDIUM,
            f"The difference is {units.number(best.score, 2)} times its standard error; all other pieces are alike.",
        ),
        ruled_out=("A slow area: the slow pieces lie at equal distances all over the target.",),
        values={
            "members": best.members,
            "member": best.member,
            "chunk_bytes": bytes_,
            "ratio": math.exp(best.change),
        },
    )


def _slowest(
    place: NDArray[np.int64],
    values: NDArray[np.float64],
    requests: NDArray[np.int64],
    chunk: int,
    members: int,
    least: float,
) -> _Slow | None:
    """The slowest member, if it is slower by far than all others, which are alike: by the means of pieces."""
    of = place % members
    number = np.bincount(of, minlength=members).astype(np.float64)
    if number.min() < FEWEST_PIECES or np.bincount(of, requests, members).min() < FEWEST:
        return None
    mean = np.bincount(of, values, members) / number
    slow = int(np.argmax(mean))
    others = np.delete(mean, slow)
    change = float(mean[slow] - others.mean())
    if change < least or float(others.max() - others.min()) > change / 3:
        return None
    error = float(values.std()) * math.sqrt(1 / number[slow] + 1 / (number.sum() - number[slow]))
    return _Slow(chunk, members, slow, change, change / max(error, 1e-9), float(number[slow] / number.sum()))


DETECTOR = Detector[Study](
    "S11",
    "slow-device",
    "One device is slow",
    "It has worn out, recovers from errors, rebuilds, is hot, or has another model, firmware or path than the others. "
    "Where "
    "requests go to all of them, as in a RAID, the slowest one decides.",
    (
        "Read its SMART or NVMe log for errors, temperature and wear, and compare model, firmware, link speed and "
        "limits of its rate (io.max, QoS).",
        "Move it to another slot: if it becomes fast, the old slot, cable or path was slow.",
    ),
    find,
    (Threshold("factor", 1.5, Measured.NUMBER, "How many times as slow a member of a stripe is."),),
    why_not=without_latency,
)
