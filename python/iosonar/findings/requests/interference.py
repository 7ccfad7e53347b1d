"""S10: writes occupy the storage for longer than reads do, and reads wait behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.findings.course import stretches_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.requests.unwritten_areas import unwritten_of
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.stretches import Stretch
from iosonar.study.requests import Study

FEWEST = 100
"""The fewest reads with, and without, writes in flight, at the same depth."""

ERRORS = 6
CLUMPED = 10
"""Latencies of neighbours are alike: so many count as one."""

ALIKE_AT, ALIKE = (0.1, 0.25, 0.5, 0.75, 0.9), 2.2
"""The percentiles that are compared, and how far the logarithms of their factors may be apart."""

MOST = 20
"""Writes that take longer than that are served by something else than reads."""

SLOWED = 1.3
"""From that factor on, reads wait for writes."""


@dataclass(frozen=True)
class _Compared:
    """Logarithms of latency of two kinds of requests: the mean change from `a` to `b`, and its standard error."""

    change: float
    error: float
    a: int
    b: int

    @property
    def factor(self) -> float:
        """How many times as long `b` takes."""
        return math.exp(self.change)

    def exceeds(self, factor: float) -> bool:
        """Whether it is that many times as long, and no coincidence."""
        return self.change >= math.log(factor) and self.change >= ERRORS * self.error


def find(study: Study, limits: Limits) -> Finding | None:
    """By latencies at the same number of requests in flight: of reads beside writes, and of writes and reads."""
    rows = [_rows(part) for part in stretches_of(study)]
    if not rows:
        return None
    depth, beside, size, is_read, log = (np.concatenate(each) for each in zip(*rows, strict=True))
    class_ = np.floor(2 * np.log2(np.maximum(depth, 1))).astype(np.int64)
    reads = is_read & (depth > 0)
    slowed = _compared(class_[reads], ~beside[reads], log[reads])
    if slowed and slowed.exceeds(limits["factor"]):
        return _slowed(slowed, log[reads & ~beside], log[reads & beside])
    # Of the same size only: a large write takes longer on any storage.
    kind = np.minimum(class_, 40) * 64 + np.floor(2 * np.log2(np.maximum(size, 1))).astype(np.int64)
    longer = _compared(kind, is_read, log)
    if longer is None or not longer.exceeds(limits["factor"]) or longer.factor > MOST:
        return None
    if not _is_alike(log[is_read], log[~is_read]) or unwritten_of(study) is not None:
        return None
    return _longer(longer, log[reads & ~beside], log[reads & beside])


def _rows(part: Stretch) -> tuple[NDArray[Any], ...]:
    """Of reads and writes: requests in flight, whether writes are among them, sectors, whether it reads, latency."""
    own = part.moved
    log = np.log(np.maximum(part.latency_ns, 1))
    found = (part.in_flight(), part.in_flight(part.is_write) > 0, part.sectors, part.is_read, log)
    return tuple(each[own] for each in found)


def _compared(class_: NDArray[np.int64], is_first: NDArray[np.bool_], log: NDArray[np.float64]) -> _Compared | None:
    """Within each class, so that nothing but the kind differs."""
    changes, weights, errors, many = [], [], [], [0, 0]
    for number in np.unique(class_):
        own = class_ == number
        a, b = log[own & is_first], log[own & ~is_first]
        if min(len(a), len(b)) < FEWEST:
            continue
        changes.append(float(b.mean() - a.mean()))
        weights.append(len(a) * len(b) / (len(a) + len(b)))
        errors.append(CLUMPED * (float(a.var()) / len(a) + float(b.var()) / len(b)))
        many = [many[0] + len(a), many[1] + len(b)]
    if not weights:
        return None
    share = np.array(weights) / sum(weights)
    return _Compared(float(share @ np.array(changes)), math.sqrt(float(share**2 @ np.array(errors))), *many)


def _is_alike(reads: NDArray[np.float64], writes: NDArray[np.float64]) -> bool:
    """Whether fast and slow writes differ from fast and slow reads by the same factor.

    A cache or a thin volume answers some reads early and leaves the others as slow as writes.
    """
    a, b = (np.quantile(each, ALIKE_AT) for each in (reads, writes))
    ratio = b - a
    return bool(ratio.min() > 0) and float(ratio.max()) <= ALIKE * float(ratio.min())


def _slowed(found: _Compared, alone: NDArray[np.float64], with_writes: NDArray[np.float64]) -> Finding:
    return DETECTOR.found(
        Severity.WARNING,
        f"With writes in flight, a read takes {units.number(found.factor, 2)} times as long as with as many reads in "
        f"flight: {_mean(with_writes)} on average, instead of {_mean(alone)}.",
        Evidence("op = 'read'", "latency.depth"),
        sure=(
            Confidence.HIGH if found.change > 2 * ERRORS * found.error else Confidence.MEDIUM,
            f"{len(with_writes):,} reads with writes in flight beside {len(alone):,} without, compared at the same "
            "depth.",
        ),
        ruled_out=("More requests in flight: only reads that met the same number of requests are compared.",),
        values={"factor": found.factor, "reads_beside_writes": len(with_writes), "reads_alone": len(alone)},
    )


def _longer(found: _Compared, alone: NDArray[np.float64], with_writes: NDArray[np.float64]) -> Finding:
    """Writes are slow themselves; reads wait for them if the storage serves few requests at once."""
    known = min(len(alone), len(with_writes)) >= FEWEST
    waits = math.exp(float(with_writes.mean() - alone.mean())) if known else 1.0
    more = f" With writes in flight, reads take {_mean(with_writes)} instead of {_mean(alone)}." if known else ""
    return DETECTOR.found(
        Severity.WARNING if waits >= SLOWED else Severity.INFO,
        f"A write takes {units.number(found.factor, 2)} times as long as a read of the same size with as many requests "
        f"in flight.{more}",
        Evidence("op = 'write'", "latency.bins"),
        sure=(
            Confidence.HIGH if found.change > 2 * ERRORS * found.error else Confidence.MEDIUM,
            f"{found.b:,} writes beside {found.a:,} reads, compared at the same depth and size.",
        ),
        ruled_out=("A cache that answers reads: the fastest and the slowest tenth differ by about the same factor.",),
        values={"write_factor": found.factor, "reads_beside_writes": len(with_writes), "reads_alone": len(alone)},
    )


def _mean(log: NDArray[np.float64]) -> str:
    return units.span(math.exp(float(log.mean())) / 1e9)


DETECTOR = Detector[Study](
    "S10",
    "read-write-interference",
    "Writes cost more than reads",
    "Writes keep the medium busy for longer than reads do, and reads wait behind them where few requests are served at "
    "once: erasing and programming of "
    "flash, "
    "parity of a RAID, or destaging of a write cache.",
    (
        "Spread writes over time, or limit them, if reads matter more: io.max or io.latency of cgroups, or the "
        "scheduler "
        "mq-deadline, which prefers reads.",
        "Put what writes much, such as logs, on another device.",
    ),
    find,
    (
        Threshold(
            "factor", 1.5, Measured.NUMBER, "How many times slower reads are beside writes, or writes are than reads."
        ),
    ),
    why_not=without_latency,
)
