"""The key numbers of rows of any kind, for pages, campaigns and the library."""

from __future__ import annotations

import math
from dataclasses import dataclass

from iosonar.quantities.distribution import Distribution


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
    """The key numbers of rows: requests, calls, or whatever `noun` says.

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


def per(number: float, seconds: float) -> float:
    """A number per second; NaN without a duration."""
    return number / seconds if seconds > 0 else math.nan
