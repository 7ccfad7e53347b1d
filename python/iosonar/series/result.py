"""The result of a point: what the run's footer says about rate, response time and fidelity."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iosonar.errors import UserError
from iosonar.series.plan import Point
from iosonar.text import plain, shown
from iosonar.thresholds import is_unfilled

NEARLY = 0.9
"""This share of --depth in flight on average shows that the depth limits the throughput."""

UNFILLED = "target not filled"
"""The mark of a point whose reads returned only zeros."""


@dataclass(frozen=True)
class Result:
    """Times in seconds. Response times count from the scheduled time, latencies from the issue."""

    name: str
    value: float
    requests: int
    rate: float
    """Completed requests per second."""
    response_mean_s: float
    response_median_s: float
    response_p99_s: float
    latency_mean_s: float
    latency_p99_s: float
    mean_in_flight: float
    """As the run counted it."""
    faithful: bool
    failed: int
    fake: str
    fills_depth: bool
    """Whether about as many requests were in flight, on average, as --depth allows."""
    warnings: tuple[str, ...]
    unfilled: bool = False
    """Whether reads returned only zeros, from areas of the target that were never written."""
    waiting: tuple[str, ...] = ()
    """Options of the binary with which another run waits for its requests in the same way."""

    @property
    def counts(self) -> bool:
        """Whether the times are those of the storage."""
        return self.faithful and not self.unfilled

    @property
    def in_flight(self) -> float:
        """The mean number of requests in flight, by Little's law."""
        return self.rate * self.latency_mean_s

    @property
    def power(self) -> float:
        """Rate divided by mean response time."""
        return self.rate / self.response_mean_s if self.response_mean_s > 0 else math.nan

    @property
    def marks(self) -> str:
        """What a reader must know about the point; empty if nothing."""
        marks = [] if self.faithful else ["not faithful"]
        marks += [UNFILLED] if self.unfilled else []
        return ", ".join([*marks, f"{self.failed:,} failed"] if self.failed else marks)


def read(path: Path, point: Point) -> Result | None:
    """The result of a finished point; None if its run is missing or incomplete."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with path.open("rb") as file:
            metadata = pyarrow.parquet.read_schema(file).metadata or {}
        footer = json.loads(metadata[b"iosonar"])
    except FileNotFoundError:
        return None
    except (pa.ArrowInvalid, KeyError, ValueError):
        return None
    except OSError as error:
        raise UserError(f"cannot read {shown(path)}: {error.strerror or error}") from error
    if not footer.get("complete"):
        return None
    run = footer.get("run") or {}
    return _result(run, run.get("statistics") or {}, point)


def _result(run: dict[str, Any], statistics: dict[str, Any], point: Point) -> Result:
    response = statistics.get("latency_from_scheduled_us") or statistics.get("latency_us") or {}
    latency = statistics.get("latency_us") or {}
    verdict = statistics.get("verdict") or {}
    failed = sum(int(statistics.get(key) or 0) for key in ("errors", "short", "unfinished"))
    return Result(
        name=point.name,
        value=point.value,
        requests=int(statistics.get("requests") or 0),
        rate=_number(statistics.get("iops")),
        response_mean_s=_number(response.get("mean")) / 1e6,
        response_median_s=_number(response.get("p50")) / 1e6,
        response_p99_s=_number(response.get("p99")) / 1e6,
        latency_mean_s=_number(latency.get("mean")) / 1e6,
        latency_p99_s=_number(latency.get("p99")) / 1e6,
        mean_in_flight=_number(run.get("mean_in_flight")),
        faithful=bool(verdict.get("faithful")),
        failed=failed,
        fake=plain(str(run.get("fake") or "")).removeprefix("FAKE RESULT: "),
        fills_depth=_fills_depth(run),
        warnings=tuple(plain(str(each)) for each in run.get("warnings") or []),
        unfilled=is_unfilled(int(statistics.get("zero_reads") or 0), int(statistics.get("reads") or 0)),
        waiting=tuple(_waiting(run)),
    )


def _waiting(run: dict[str, Any]) -> Iterator[str]:
    """How a run waited, as options."""
    options = run.get("options") or {}
    if options.get("virtual_time"):
        return
    if isinstance(wait := options.get("wait"), str):
        yield f"--wait={wait}"
    if isinstance(poll := options.get("busy_poll"), int):
        yield f"--busy-poll={poll}ns"


def _fills_depth(run: dict[str, Any]) -> bool:
    depth, mean = (run.get("options") or {}).get("depth"), run.get("mean_in_flight")
    return bool(depth and mean) and float(mean or 0) >= NEARLY * float(depth or 0)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
