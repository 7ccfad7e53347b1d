"""The result of a point: what the run's footer says about rate, response time and fidelity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar import SCHEMA_VERSION
from iosonar.errors import UserError
from iosonar.series.plan import Point
from iosonar.table.footer import RunInfo, StatedVerdict, parse_footer
from iosonar.text import shown
from iosonar.thresholds import is_unfilled
from iosonar.units import FAITHFUL

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

HELD_BACK = 0.01
"""From this share of requests on that waited for room in --depth, the 99th percentile shows the depth."""

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
    delayed_by_depth: int
    """Requests that waited for room in --depth."""
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
    def is_limited_by_depth(self) -> bool:
        """Whether times and throughput may be those of --depth, not of the device."""
        return self.delayed_by_depth > 0 and self.delayed_by_depth >= HELD_BACK * self.requests

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
            table = pyarrow.parquet.ParquetFile(file)
            footer = parse_footer((table.schema_arrow.metadata or {})[b"iosonar"], SCHEMA_VERSION)
            return _result(footer.run, point, _delayed_by_depth(table)) if footer.complete else None
    except FileNotFoundError:
        return None
    except (pa.ArrowInvalid, KeyError, UserError):
        return None
    except OSError as error:
        raise UserError(f"cannot read {shown(path)}: {error.strerror or error}") from error


def _delayed_by_depth(table: ParquetFile) -> int:
    """How many requests waited for room in --depth."""
    import pyarrow as pa
    import pyarrow.compute as pc

    depth = pa.scalar("depth")
    reasons = (batch.column(0).cast(pa.string()) for batch in table.iter_batches(columns=["delay_reason"]))
    return sum(len(each.filter(pc.equal(each, depth))) for each in reasons)


def _result(run: RunInfo, point: Point, delayed_by_depth: int) -> Result:
    found = run.statistics
    latency = found.latency_us
    response = found.latency_from_scheduled_us or latency
    return Result(
        name=point.name,
        value=point.value,
        requests=found.requests or 0,
        rate=math.nan if found.iops is None else found.iops,
        response_mean_s=_seconds(response, "mean"),
        response_median_s=_seconds(response, "p50"),
        response_p99_s=_seconds(response, "p99"),
        latency_mean_s=_seconds(latency, "mean"),
        latency_p99_s=_seconds(latency, "p99"),
        mean_in_flight=math.nan if run.mean_in_flight is None else run.mean_in_flight,
        faithful=_is_faithful(found.verdict),
        failed=found.errors + found.short + found.unfinished,
        fake=run.fake.removeprefix("FAKE RESULT: "),
        delayed_by_depth=delayed_by_depth,
        warnings=run.warnings,
        unfilled=is_unfilled(found.zero_reads or 0, found.reads),
        waiting=tuple(waiting_of(run)),
    )


def _is_faithful(verdict: StatedVerdict | None) -> bool:
    """Whether a run kept its times: of a fake one, which has no verdict, by the same rule."""
    if verdict is None:
        return False
    kept = verdict.kept_times if verdict.faithful is None else verdict.faithful
    if kept is not None:
        return kept
    # A fake result of an earlier version.
    return verdict.own is not None and verdict.own.within_pct.get("50", 100) >= FAITHFUL * 100


def waiting_of(run: RunInfo) -> Iterator[str]:
    """How a run waited, as options."""
    if run.options.get("virtual_time"):
        return
    # Of calls, the options only have what was typed.
    if isinstance(wait := run.options.get("wait") or run.wait or None, str):
        yield f"--wait={wait}"
    if isinstance(poll := run.options.get("busy_poll"), int):
        yield f"--busy-poll={poll}ns"


def _seconds(quantiles: Mapping[str, float], name: str) -> float:
    return quantiles.get(name, math.nan) / 1e6
