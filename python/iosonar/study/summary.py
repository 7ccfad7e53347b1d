"""The key numbers of a run, a load or a trace: computed once, for pages, campaigns and the library."""

from __future__ import annotations

import math
from dataclasses import dataclass

from iosonar.quantities.distribution import Distribution
from iosonar.quantities.outcomes import FAILED
from iosonar.study.calls import CallSide
from iosonar.study.requests import DELAY, LATENCY, Study
from iosonar.table.call_kinds import FAMILIES


@dataclass(frozen=True)
class Times:
    """A distribution of times, in seconds; NaN where there are too few values for a percentile, or none."""

    count: int
    mean_s: float
    p50_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    p999_s: float
    max_s: float

    @classmethod
    def of(cls, values: Distribution) -> Times:
        """From a distribution in nanoseconds."""
        p50_s, p90_s, p95_s, p99_s, p999_s = (values.percentile(share) / 1e9 for share in (0.5, 0.9, 0.95, 0.99, 0.999))
        return cls(values.count, values.mean / 1e9, p50_s, p90_s, p95_s, p99_s, p999_s, values.maximum / 1e9)


@dataclass(frozen=True)
class Summary:
    """The key numbers of requests or calls, as `noun` says.

    `seconds` is the time from the first scheduled request to the last completion, and `rate_per_s` the completed
    requests, or calls, per second of it; of a load, both are those of its demand. `bytes_moved` are bytes that were
    read or written, and of `reads`, `writes` and `others` there are as many. NaN stands for what is not known.
    """

    noun: str
    rows: int
    reads: int
    writes: int
    others: int
    failed: int
    dropped: int
    seconds: float
    rate_per_s: float
    demanded_s: float
    """The duration of the load; NaN if the storage determined it."""
    demanded_per_s: float
    bytes_moved: int
    bytes_per_s: float
    latency: Times
    """From issue to completion; of calls, from start to end."""
    delay: Times | None
    """Issue time minus scheduled time; None if there were no times to keep."""

    @property
    def achieved(self) -> float:
        """The share of the demanded rate that was achieved, at most 1; NaN without demand."""
        share = self.rate_per_s / self.demanded_per_s if self.demanded_per_s > 0 else math.nan
        return min(share, 1.0) if math.isfinite(share) else share


def summary_of(study: Study) -> Summary:
    """The summary of a study of requests, computed once."""
    return study.once("summary", lambda: _of_requests(study))


def _of_requests(study: Study) -> Summary:
    span, work, outcomes = study.span, study.work, study.outcomes
    by_op, total = outcomes.by_op, sum(outcomes.by_op.values())
    reads, writes = by_op.get("read", 0), by_op.get("write", 0)
    demanded_s = (span.last_scheduled_s or 0.0) - (span.first_scheduled_s or 0.0)
    is_demanded = study.has_demand or not study.requests.is_run
    return Summary(
        noun="requests",
        rows=span.requests,
        reads=reads,
        writes=writes,
        others=total - reads - writes,
        failed=outcomes.of(*FAILED),
        dropped=outcomes.of("dropped"),
        seconds=work.seconds,
        rate_per_s=_per(work.requests, work.seconds),
        demanded_s=demanded_s if is_demanded else math.nan,
        demanded_per_s=_per(span.requests, demanded_s) if is_demanded else math.nan,
        bytes_moved=work.data,
        bytes_per_s=_per(work.data, work.seconds),
        latency=Times.of(study.pooled(LATENCY)),
        delay=Times.of(study.pooled(DELAY)) if study.has_delays else None,
    )


def summary_of_calls(side: CallSide) -> Summary:
    """The summary of a trace or run of calls, computed once."""
    return side.once("summary", lambda: _of_calls(side))


def _of_calls(side: CallSide) -> Summary:
    extent, files = side.extent, side.files
    reads, writes = (
        sum(each.calls for each in side.mix if each.of in FAMILIES[family]) for family in ("read", "write")
    )
    moved = files.bytes_read + files.bytes_written
    return Summary(
        noun="calls",
        rows=extent.calls,
        reads=reads,
        writes=writes,
        others=extent.calls - reads - writes,
        failed=extent.failed,
        dropped=0,
        seconds=side.seconds,
        rate_per_s=_per(extent.calls, side.seconds),
        demanded_s=math.nan,
        demanded_per_s=math.nan,
        bytes_moved=moved,
        bytes_per_s=_per(moved, side.seconds),
        latency=Times.of(side.pooled_response),
        delay=Times.of(side.delays.not_held_back) if side.keeps_times else None,
    )


def _per(number: float, seconds: float) -> float:
    return number / seconds if seconds > 0 else math.nan
