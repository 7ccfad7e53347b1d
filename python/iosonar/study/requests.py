"""Shared by all diagrams of a report: the table, the options, and cached quantities."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.quantities.distribution import Distribution, distributions, pooled
from iosonar.quantities.narrow import narrow
from iosonar.quantities.outcomes import Outcomes, outcomes
from iosonar.quantities.span import Span, span
from iosonar.quantities.streams import CauseValues, StreamValues, cause_values, stream_values
from iosonar.quantities.throughput import Throughput, throughput, window_for
from iosonar.quantities.verdict import Verdict, verdict
from iosonar.quantities.work import Work, demand, work
from iosonar.study.base import BaseStudy, Options
from iosonar.study.window import window_words
from iosonar.table import Device, Requests, SourceFile, Stream, Window, asks_by_itself, devices_of, streams_of
from iosonar.text import joined_names, short_name

if TYPE_CHECKING:
    import ibis.expr.types as ir

SECOND_NS = 1_000_000_000
FAR_NS = 1 << 53
"""104 days: the largest range in which float64 distinguishes nanoseconds."""

TIMES = ("scheduled_ns", "issued_ns", "completed_ns")


@dataclass(frozen=True)
class Measure:
    """A quantity of each request that several diagrams show: latency or delay, in ns in the table."""

    name: str
    plural: str
    column: str
    minimum_s: float
    """Smaller values are drawn at the lower end of the axis: clocks are not more accurate."""


LATENCY = Measure("latency", "latencies", "latency_ns", 1e-7)
DELAY = Measure("delay", "delays", "delay_ns", 1e-7)


MAX_DEVICES = 6
"""The most devices with series of their own."""


@dataclass(frozen=True)
class DeviceValues:
    """A device and the latencies of its requests."""

    device: Device
    latency: Distribution
    latency_s: float = 0.0
    """The sum of all latencies: divided by the duration, the mean number in flight (Little's law)."""
    delay_s: float = 0.0
    """The sum of the delays of the same requests."""


@dataclass(frozen=True)
class DeviceGroup:
    """One or several devices as one series."""

    title: str
    devices: tuple[Device, ...]


MAX_STREAMS = 6
"""The most streams with series of their own."""


@dataclass(frozen=True)
class StudyStream:
    """A stream of a program and its requests."""

    stream: Stream
    values: StreamValues


@dataclass(frozen=True)
class StreamGroup:
    """One or several streams as one series; `streams` are indices into the study's streams."""

    title: str
    streams: tuple[int, ...]


class Study(BaseStudy):
    """A table of requests, with all quantities computed on it, each once."""

    def __init__(self, requests: Requests, options: Options, origin_ns: int | None = None) -> None:
        super().__init__(options)
        self.requests = requests
        self.find_original: Callable[[Study], Any] = lambda study: None
        """Finds the load that the run replayed: see `study/original.py`."""
        self._given_origin_ns = origin_ns

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The files, in the order of the sources of their rows."""
        return self.requests.files

    @property
    def stem(self) -> str:
        """The name of the first file or of a series, and the devices."""
        name = joined_names([file.output_stem for file in self.files])
        if self.options.device:
            device = re.sub(r"[^\w.+-]", "_", self.options.device.removeprefix("/dev/"))
            name = short_name(f"{name}.{device}")
        name = f"{name}.each-device" if self.options.each_device else name
        stem = self.window.stem if self.window else ""
        return f"{name}.{stem}" if stem else name

    @property
    def window(self) -> Window | None:
        """The window of time that the requests are of; None if they are all."""
        return self.requests.window

    def prepare(self) -> None:
        """Keeps the rows, so that copies of the study do not read them again."""
        _ = self.span

    def why_empty(self, name: str) -> str:
        """Diagrams of delays need scheduled times."""
        is_missing = self.requests.is_run and not self.has_delays and "delay" in name.split(".")
        return "as fast as possible (--asap): requests have no scheduled times" if is_missing else ""

    @cached_property
    def _kept(self) -> ir.Table:
        """All requests, with the columns of `narrow`, kept after the first read."""

        def columns(table: ir.Table) -> ir.Table:
            return narrow(table, self.rows, self._group_of(table) if self.options.each_device else None)

        return self.requests.kept(columns)

    @cached_property
    def _kept_span(self) -> Span:
        return span(self._kept)

    @cached_property
    def origin_ns(self) -> int:
        """Subtracted from all times, in whole seconds: zero, unless the times are too far from the table's zero.

        Axes are float64, which does not distinguish neighbouring times far from zero.
        """
        if self._given_origin_ns is not None:
            return self._given_origin_ns
        first, last = self._kept_span.first_ns, self._kept_span.last_ns
        far = max(abs(first), abs(last))
        return first // SECOND_NS * SECOND_NS if far >= FAR_NS and last - first < far // 5 else 0

    @cached_property
    def table(self) -> ir.Table:
        """All requests, with the columns of `narrow`; times count from `origin_ns`."""
        if not self.origin_ns:
            return self._kept
        return self._kept.mutate(**{name: self._kept[name] - self.origin_ns for name in TIMES})

    @cached_property
    def span(self) -> Span:
        """The number of requests, and the range of their times."""
        return span(self.table) if self.origin_ns else self._kept_span

    @property
    def completed(self) -> int:
        """The number of requests with a latency."""
        return self.span.completed

    @property
    def rows(self) -> int:
        """All requests of the files, also those outside of the window."""
        return sum(file.rows for file in self.requests.files)

    @property
    def is_part(self) -> bool:
        """Whether a window leaves requests out."""
        return self.window is not None and not self.window.is_all

    @cached_property
    def present(self) -> ir.Table:
        """`table`, and with a window also the requests before and after it, which may be in flight during it."""
        if not self.is_part:
            return self.table
        whole = self.requests.whole_table
        series = self._group_of(whole) if self.options.each_device else None
        table = narrow(whole, self.rows, series)
        return table.mutate(**{name: table[name] - self.origin_ns for name in TIMES}) if self.origin_ns else table

    @cached_property
    def places(self) -> tuple[int, int]:
        """The rows of the files one after the other: the first in the window, and the one after its last."""
        rows = max(self.rows, 1)
        if not self.is_part or len(self.requests.files) > 1:
            return 0, rows
        found = self.table.aggregate(low=self.table.place.min(), high=self.table.place.max()).to_pyarrow()
        low, high = found["low"][0].as_py(), found["high"][0].as_py()
        return (0, rows) if low is None else (low, high + 1)

    @cached_property
    def devices(self) -> tuple[DeviceValues, ...]:
        """The devices with requests and their latencies, the slowest first (by the 99th percentile)."""
        # The kept columns, unless they wait for the order of the devices.
        table = self.requests.table if self.options.each_device else self.table
        known = devices_of(self.requests.files)
        number = self._number_of(table, known)
        numbered = table.mutate(series=number)
        found = distributions(numbered, numbered.latency_ns)
        nothing = pooled([])
        timed = numbered.filter(numbered.latency_ns.notnull())
        sums = timed.group_by("series").aggregate(
            # Sums of years do not fit into 64 bits.
            latency=timed.latency_ns.cast("float64").sum(),
            delay=timed.delay_ns.cast("float64").sum(),
        )
        seconds = {
            row["series"]: (float(row["latency"]) / 1e9, float(row["delay"] or 0) / 1e9)
            for row in sums.to_pyarrow().to_pylist()
        }
        each = [
            DeviceValues(device, found.get(index, nothing), *seconds.get(index, (0.0, 0.0)))
            for index, device in enumerate(known)
        ]
        return tuple(sorted(each, key=lambda one: -one.latency.quantile(0.99) if one.latency.count else 1.0))

    @cached_property
    def device_groups(self) -> tuple[DeviceGroup, ...]:
        """The series of diagrams by device: the slowest devices, and all others together if there are too many."""
        devices = [each.device for each in self.devices]
        if len(devices) <= MAX_DEVICES:
            return tuple(DeviceGroup(device.name, (device,)) for device in devices)
        first, rest = devices[: MAX_DEVICES - 1], devices[MAX_DEVICES - 1 :]
        groups = [DeviceGroup(device.name, (device,)) for device in first]
        return (*groups, DeviceGroup(f"{len(rest)} other devices", tuple(rest)))

    @property
    def by_each_device(self) -> ir.Table:
        """All requests, with the place of their device in `devices` as their series."""
        table = self.requests.table if self.options.each_device else self.table
        return table.mutate(series=self._number_of(table, [each.device for each in self.devices]))

    def _group_of(self, table: ir.Table) -> ir.IntegerValue:
        """The index of each request's group."""
        groups = [(device, number) for number, group in enumerate(self.device_groups) for device in group.devices]
        return self._number_of(table, [device for device, _ in groups], [number for _, number in groups])

    def _number_of(
        self, table: ir.Table, devices: Sequence[Device], numbers: Sequence[int] | None = None
    ) -> ir.IntegerValue:
        import ibis

        known = range(len(devices)) if numbers is None else numbers
        # A request of a device that no footer names counts to the last one.
        return ibis.cases(
            *((device.rows(table), number) for device, number in zip(devices, known, strict=True)), else_=known[-1]
        ).cast("int32")

    def with_series(self, table: ir.Table) -> ir.Table:
        """A table of requests with all columns, with the series that diagrams show."""
        return table.mutate(series=self._group_of(table)) if self.options.each_device else table

    @property
    def by_device(self) -> ir.Table:
        """All requests, with the index of their group of devices as their series."""
        return self.table if self.options.each_device else self.table.mutate(series=self._group_of(self.table))

    @cached_property
    def streams(self) -> tuple[StudyStream, ...]:
        """The streams of programs with their requests, in the order of the programs."""
        known = streams_of(self.requests.files)
        found = stream_values(self.by_stream) if known else {}
        nothing = StreamValues(0, 0, 0, 0, pooled([]), pooled([]))
        return tuple(StudyStream(stream, found.get(number, nothing)) for number, stream in enumerate(known))

    @cached_property
    def causes(self) -> dict[int, CauseValues]:
        """The requests of each stream, by its index, that waited for another request."""
        return cause_values(self.by_stream) if self.streams else {}

    @cached_property
    def stream_groups(self) -> tuple[StreamGroup, ...]:
        """The series of diagrams by stream: the busiest streams, and all others together if there are too many."""
        order = sorted(range(len(self.streams)), key=lambda number: -self.streams[number].values.requests)
        busiest = order if len(order) <= MAX_STREAMS else order[: MAX_STREAMS - 1]
        groups = [StreamGroup(self.streams[number].stream.name, (number,)) for number in busiest]
        rest = tuple(order[len(busiest) :])
        return (*groups, StreamGroup(f"{len(rest)} other streams", rest)) if rest else tuple(groups)

    @property
    def by_stream(self) -> ir.Table:
        """The requests of programs and of loads beside them, with the index of their stream as their series."""
        return self._by_stream([(stream, number) for number, stream in enumerate(streams_of(self.requests.files))])

    @property
    def by_stream_group(self) -> ir.Table:
        """The same with the index of their group of streams."""
        known = self.streams
        return self._by_stream(
            [
                (known[stream].stream, number)
                for number, group in enumerate(self.stream_groups)
                for stream in group.streams
            ]
        )

    def _by_stream(self, numbers: Sequence[tuple[Stream, int]]) -> ir.Table:
        import ibis

        table = self.requests.table
        if self.origin_ns:
            table = table.mutate(**{name: table[name] - self.origin_ns for name in TIMES})
        series = ibis.cases(*((stream.rows(table), number) for stream, number in numbers)).cast("int32")
        return table.mutate(series=series).filter(lambda numbered: numbered.series.notnull())

    @property
    def of(self) -> str:
        """The files and the target, for people."""
        files = self.requests.files
        names = ", ".join(file.name for file in files[:4]) + (f" and {len(files) - 4} more" if len(files) > 4 else "")
        targets = ", ".join(target.path for target in files[0].targets if target.is_real and target.path)
        where = f" on {targets}" if targets and len(files) == 1 else ""
        when = f" · {window_words(self.window)}" if self.window and not self.window.is_all else ""
        return f"{names}{where} · {units.requests(self.span.requests)}{when}"

    @property
    def has_delays(self) -> bool:
        """Whether requests of a run had scheduled times; those issued as fast as possible had none."""
        return any(not file.option("asap") for file in self.requests.files if file.kind.is_run)

    @property
    def has_demand(self) -> bool:
        """Whether a load or open streams set the times of a run; in closed loops and streams, the storage sets them."""
        return any(
            asks_by_itself(file) and not (file.option("asap") or file.option("closed")) for file in self.requests.files
        )

    @property
    def window_s(self) -> float:
        """The window of throughput in seconds."""
        return self.options.window_s or window_for(self.last_s - self.first_s)

    @property
    def first_s(self) -> float:
        """The start of time axes: zero, unless most of the axis would be empty."""
        return self.first_ns / 1e9

    @property
    def first_ns(self) -> int:
        """The same in nanoseconds."""
        first, last = self.span.first_ns, self.span.last_ns
        return first if self.is_part or first < 0 or 5 * first > last else 0

    @property
    def last_s(self) -> float:
        """The end of time axes."""
        return self.last_ns / 1e9

    @property
    def last_ns(self) -> int:
        """The same in nanoseconds."""
        return self.span.last_ns

    @cached_property
    def outcomes(self) -> Outcomes:
        """The number of requests by outcome and by operation."""
        return outcomes(self.requests.table)

    @cached_property
    def work(self) -> Work:
        """Requests and bytes of a run, counted as the replay counts them; of a load, its demand."""
        return work(self.requests.table) if self.requests.is_run else demand(self.requests.table)

    def distribution(self, measure: Measure) -> dict[int, Distribution]:
        """The distribution of latency or delay, in ns, for each series."""
        return self.cached(("distribution", measure), lambda: distributions(self.table, self.table[measure.column]))

    def pooled(self, measure: Measure) -> Distribution:
        """The same for all requests."""
        return self.cached(("pooled", measure), lambda: pooled(list(self.distribution(measure).values())))

    def throughput(self, column: str) -> Throughput:
        """Throughput by one of the times of a request, such as `scheduled_ns`."""
        return self.cached(("throughput", column), lambda: throughput(self.table, self.table[column], self.window_s))

    def verdict(self, measure: Measure) -> Verdict:
        """Whether latencies or delays stayed within their limit."""
        limit, at = (
            (self.options.bad_latency_s, self.table.issued_ns)
            if measure is LATENCY
            else (self.options.bad_delay_s, self.table.scheduled_ns)
        )
        return self.cached(
            ("verdict", measure),
            lambda: verdict(self.table, self.table[measure.column], at, limit, self.options.bad_count),
        )
