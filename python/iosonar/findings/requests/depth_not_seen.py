"""S19: many requests are in flight, and complete as if there were one at a time."""

from __future__ import annotations

import numpy as np

from iosonar import units
from iosonar.findings.course import at_depth, rates_of, stretches_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.stretches import together
from iosonar.study.requests import Study

FEWEST = 100
"""The fewest completions alone, and with many in flight."""

LEAST = 0.8
"""With many in flight, about as many complete as of one: fewer have another cause."""

BUSY = 0.2
"""The share of the time in which many are in flight."""


SEEN = 1 / 3
"""The share of the requests in flight that the device had at most."""

REACHED = 0.5
"""The device received so many requests for one of the replay, at least: caches answered the others."""


def find_by_counters(study: Study, limits: Limits) -> Finding | None:
    """By the requests in flight of the replay, and those that the kernel counted for the device."""
    if len(study.requests.files) > 1 or study.is_part:
        return None
    file = study.requests.files[0]
    run, asked = file.run, file.run.mean_in_flight or 0.0
    if len(run.device_counters) != 1 or asked < limits["depth"]:
        return None
    device = run.device_counters[0]
    seen = device.busy_s / max(device.seconds, 1e-9)
    if device.requests + device.merged < max(REACHED * file.rows, FEWEST) or seen > SEEN * asked:
        return None
    return DETECTOR.found(
        Severity.INFO,
        f"The replay had {units.number(asked, 3)} requests in flight on average, {device.disk} only "
        f"{units.number(seen, 2)}: the others waited above it.",
        Evidence(at_depth(study, int(limits["depth"])), "latency.depth"),
        sure=(
            Confidence.HIGH,
            f"The kernel counted {device.requests:,} requests of the device that took {units.span(device.busy_s)} "
            f"together, in {units.span(device.seconds)}.",
        ),
        ruled_out=["A cache that answers: the device received the requests."],
        values={"asked": asked, "seen": seen},
    )


def find(study: Study, limits: Limits) -> Finding | None:
    """By the kernel's counters, or by what completes with many requests in flight and what with one."""
    return find_by_counters(study, limits) or _find_by_rate(study, limits)


def _find_by_rate(study: Study, limits: Limits) -> Finding | None:
    """By completions per second with many requests in flight, and the latency of requests that met no other."""
    rates, depth = together(rates_of(study)), int(limits["depth"])
    many, number = rates.between(depth, len(rates.seconds))
    # Requests that were issued while none was in flight: if others follow, they wait behind.
    lonely = np.concatenate([part.latency_ns[part.in_flight() == 0] for part in stretches_of(study)])
    if min(len(lonely), number) < FEWEST:
        return None
    single, alone = len(lonely), 1e9 / max(float(np.median(lonely)), 1.0)
    share = float(rates.seconds[depth:].sum()) / max(float(rates.seconds.sum()), 1e-9)
    gain = many / alone
    between, few = rates.between(2, depth)
    if few >= FEWEST and between > limits["gain"] * alone:
        return None
    if share < BUSY or not LEAST <= gain <= limits["gain"]:
        return None
    return DETECTOR.found(
        Severity.INFO,
        f"With {depth} or more requests in flight, {units.count(many)} complete per second; one alone gets "
        f"{units.count(alone)}: the storage serves them one after the other.",
        Evidence(at_depth(study, depth), "latency.depth"),
        sure=(
            Confidence.MEDIUM,
            f"{int(number):,} completions with so many in flight, during {units.percent(share)} of the time, beside "
            f"{int(single):,} of requests that were alone.",
        ),
        values={"alone_per_s": alone, "many_per_s": many, "gain": gain, "share": share},
    )


DETECTOR = Detector[Study](
    "S19",
    "depth-not-seen",
    "The storage does not see the depth",
    "Something on the way passes on one request at a time: a driver or an emulation with a single queue, a file system "
    "that "
    "locks, a path with a queue depth of 1; or it is a single disk, which has one head.",
    (
        "Compare with what the device sees: aqu-sz of `iostat -x` during the replay.",
        "See the queue depths on the way: /sys/block/NAME/device/queue_depth, nr_requests, the settings of HBA, iSCSI "
        "session "
        "and virtual machine.",
    ),
    find,
    (
        Threshold("depth", 8, Measured.NUMBER, "How many requests in flight are many."),
        Threshold("gain", 1.25, Measured.NUMBER, "How many times the throughput of one request they reach at most."),
    ),
    why_not=without_latency,
    find_if_late=find_by_counters,
)
