"""The tables on the page of a run or a load: values, devices, streams, machine and settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from iosonar import units
from iosonar.diagrams import Study
from iosonar.diagrams.parts import look
from iosonar.quantities.distribution import Distribution
from iosonar.quantities.percentiles import name_of
from iosonar.report.page import Table
from iosonar.report.sections import times_table
from iosonar.report.typed_options import command_line
from iosonar.study.of_requests import summary_of
from iosonar.study.requests import DeviceValues, Measure
from iosonar.table import SourceFile, Stream
from iosonar.table.footer import Machine, Usage
from iosonar.text import plain

SECTOR_BYTES = 512

DUE, IN_FLIGHT = "due, not completed", "in flight"
"""The depth that the load demands of a device, and the depth that the device sees."""

OF_STREAMS = (0.5, 0.95, 0.99)
"""Percentiles of streams, if none are chosen."""

MAX_DEVICE_ROWS = 40
"""Rows in the table of devices."""


def values(study: Study, measure: Measure) -> Table:
    """Percentiles of a measure, for each kind of request."""
    found = study.distribution(measure)
    named = [(look(study, series)[1], values) for series, values in sorted(found.items())]
    if len(named) > 1:
        named.append(("All", study.pooled(measure)))
    return times_table(measure.name.capitalize(), "requests", named, study.options.percentiles)


def devices(study: Study) -> Table:
    """Rate, mean depth and latency of each device, the slowest first."""
    slowest = study.devices[:MAX_DEVICE_ROWS]
    more = len(study.devices) - len(slowest)
    rest = f", without {units.counted(more, 'faster one')}" if more else ""
    named = [(each.device.name, each.latency) for each in slowest]
    title = f"Rate, mean depth and latency of each device, the slowest first{rest}"
    latency = times_table(title, "requests", named, study.options.percentiles)
    seconds = summary_of(study).seconds
    depths = (DUE, IN_FLIGHT) if study.has_demand else (IN_FLIGHT,)
    rows = tuple(
        (*row[:2], *_rate_and_depths(each, seconds, study.has_demand), *row[2:])
        for row, each in zip(latency.rows, slowest, strict=True)
    )
    return replace(latency, columns=(*latency.columns[:2], "rate", *depths, *latency.columns[2:]), rows=rows)


def _rate_and_depths(each: DeviceValues, seconds: float, has_demand: bool) -> tuple[str, ...]:
    """The rate, the requests that were due and not completed, and those in flight; means over the duration."""
    if not seconds:
        return ("", "", "") if has_demand else ("", "")
    due = (units.number((each.latency_s + each.delay_s) / seconds),) if has_demand else ()
    return f"{units.count(each.latency.count / seconds)}/s", *due, units.number(each.latency_s / seconds)


def streams(study: Study) -> Iterator[Table]:
    """The streams of programs, and how soon their requests were issued after those that they waited for."""
    if not study.streams:
        return
    seconds, shares = summary_of(study).seconds, study.options.percentiles or OF_STREAMS
    rows = tuple(
        (
            each.stream.name,
            _kind(each.stream),
            f"{each.stream.instances:,}" if each.stream.instances else "",
            f"{each.values.requests:,}",
            f"{units.count(each.values.requests / seconds)} requests/s" if seconds else "",
            kinds_of(each.values.requests, each.values.reads, each.values.writes),
            f"{units.transferred(each.values.data / seconds)}/s" if seconds else "",
            *_spans(each.values.latency, shares),
            *_spans(each.values.delay, shares),
        )
        for each in study.streams
    )
    names = tuple(f"{of} {name_of(share)}" for of in ("latency", "delay") for share in shares)
    yield Table("Requests of each stream", ("", "kind", "instances", "requests", "rate", "mix", "data", *names), rows)
    caused = tuple(
        (
            each.stream.name,
            f"{values.delay.count:,}",
            *(
                units.percent(share) if values.not_held_back else ""
                for share in (values.within_10_us, values.within_50_us)
            ),
            *_spans(values.delay, (*shares, 1.0)),
        )
        for number, each in enumerate(study.streams)
        if (values := study.causes.get(number))
    )
    if caused:
        columns = ("", "requests", "within 10 µs", "within 50 µs", *map(name_of, shares), "max")
        yield Table("From the completion of a request to the issue of the one that waits for it", columns, caused)


def _kind(stream: Stream) -> str:
    return "" if stream.open is None else "open" if stream.open else "closed"


def _spans(values: Distribution, shares: Sequence[float]) -> tuple[str, ...]:
    return tuple(units.span(values.percentile(share) / 1e9) if values.count else "" for share in shares)


def _parameters(file: SourceFile) -> Iterator[str]:
    """The parameters of the run's program that the options set, its scale, and its seed."""
    for each in file.option("set") or ():
        yield plain(str(each))
    for name in ("scale", "seed"):
        if (value := file.option(name)) is not None:
            yield f"{name} {value}"


def facts(files: Sequence[SourceFile]) -> Iterator[tuple[str, str]]:
    """What the footers say of the files, their targets, options and machines."""
    for file in files[:8]:
        yield "File", file.path
        run, machine = file.run, file.run.machine
        if run.load:
            yield "Load", run.load
        if run.program and file.program:
            yield "Program", f"{file.program}: {run.program.about}" if run.program.about else file.program
            if parameters := ", ".join(_parameters(file)):
                yield "Parameters", parameters
        for target in file.targets:
            size = f", {units.binary_bytes(target.sectors * SECTOR_BYTES)}" if target.sectors else ""
            scheduler = f", scheduler {target.scheduler}" if target.scheduler else ""
            yield "Target", f"{target.path} ({target.kind or 'device'}{size}{scheduler})"
        yield from machine_facts(machine, run.statistics.usage)
        if run.started_unix_ns:
            started = datetime.fromtimestamp(run.started_unix_ns / 1e9, UTC)
            yield "Started", f"{started:%Y-%m-%d %H:%M:%S} UTC"
        if options := command_line(run):
            yield "Options", options


def machine_facts(machine: Machine, usage: Usage | None) -> Iterator[tuple[str, str]]:
    """The machine of a run, and what all programs did there meanwhile."""
    for name, value in (("Machine", machine.hostname), ("Kernel", machine.kernel), ("Processor", machine.processor)):
        if value:
            yield name, value
    if usage:
        busy, kernel = (units.percent(share / 100) for share in (usage.busy_pct, usage.kernel_pct))
        yield (
            "During the run",
            f"processors {busy} busy ({kernel} in the kernel), at least {units.binary_bytes(usage.available_bytes)} of "
            f"memory available, network {units.transferred(usage.received_bytes)} received, "
            f"{units.transferred(usage.sent_bytes)} sent",
        )


def kinds_of(requests: int, reads: int, writes: int) -> str:
    """The shares of reads, writes and others: 70 % reads, 30 % writes."""
    total = max(requests, 1)
    kinds = (("reads", reads), ("writes", writes), ("others", requests - reads - writes))
    return ", ".join(f"{units.percent(number / total)} {name}" for name, number in kinds if number)
