"""The footer of a file, as docs/schema.md describes it: what the rows are of, and how a run was made.

Every number, text and list has a default for footers that lack it. Texts are escaped for printing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from iosonar.errors import UserError
from iosonar.table.damage import COPY_AGAIN
from iosonar.table.kinds import KINDS
from iosonar.table.structure import Keys, Names, Range, WrongError, structured
from iosonar.table.versions import rename_footer
from iosonar.text import plain, why_wrong

MAX_DEPTH = 100
"""The deepest nesting of JSON values."""

I64 = 2**63 - 1
LAST_SECOND_NS = 253_402_300_799 * 10**9
"""The last second of the year 9999, the last that a date can represent."""

Time = Annotated[int, Range(-I64 - 1, I64)]
"""Nanoseconds from the zero of the table, before it if negative."""

OPTIONS = Keys({"speedup": float, "window": Mapping[str, Time]})
QUANTILES = Keys(dict.fromkeys(("mean", "p50", "p90", "p98", "p99", "p999", "max"), float))


@dataclass(frozen=True)
class Source:
    """Where the rows came from: the name of the format, the path, and free text before the rows."""

    format: str = ""
    path: str = ""
    preamble: str = ""


@dataclass(frozen=True)
class TraceDevice:
    """A device of the trace: its name, empty if it has none, and its size in sectors of 512 bytes."""

    name: str
    sectors: int | None = None


@dataclass(frozen=True)
class Counts:
    """Numbers of rows, and of what was lost."""

    requests: int | None = None
    reads: int = 0
    writes: int = 0
    others: int = 0
    bad_lines: int = 0
    unreadable_rows: int = 0
    """Of the bad lines, damaged rows of a table or a result: of this file, or of the file it was made from."""
    time_jumps: int = 0
    lost_events: int = 0
    unmatched: int = 0
    calls: int | None = None
    unfinished: int = 0
    uring: int = 0
    other_calls: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Extent:
    """The extent of the rows in time, and of requests in sectors of 512 bytes."""

    first_ns: Time | None = None
    last_ns: Time | None = None
    max_end_sector: int | None = None
    max_sectors: int | None = None


@dataclass(frozen=True)
class Clocks:
    """Two clocks of a machine at the same moment."""

    unix_ns: Time
    monotonic_ns: Time


@dataclass(frozen=True)
class Queue:
    """The block layer's settings of a device."""

    scheduler: str = ""
    write_cache: str = ""
    wbt_lat_usec: int | None = None
    rotational: bool | None = None
    """Whether the device says that it has moving parts; virtual disks often say so."""


@dataclass(frozen=True)
class Mount:
    """The mount that a file is on."""

    file_system: str = ""


@dataclass(frozen=True)
class Target:
    """A target of a run; `sectors` is its size in sectors of 512 bytes, None if it has none or it is not known."""

    path: str = ""
    kind: str = ""
    sectors: int | None = None
    logical_block_bytes: int | None = None
    scheduler: str = ""
    write_cache: str = ""
    disk: str = ""
    queue: Queue | None = None
    mount: Mount = field(default_factory=Mount)
    sources: tuple[int, ...] = ()
    """The devices of the load whose requests went to it."""
    others: bool = False
    """Whether the requests of all other devices went to it, too."""

    @property
    def is_real(self) -> bool:
        """Whether there is a target at all."""
        return self.kind != "none"


@dataclass(frozen=True)
class Machine:
    """The machine of a run."""

    hostname: str = ""
    kernel: str = ""
    kernel_command_line: Any = ""
    processor: str = ""
    cpus: Any = None
    cpus_isolated: Any = None
    memory_kib: float | None = None
    governor: Any = None
    virtualisation: Any = None
    clock_source: Any = None
    transparent_hugepages: Any = None


@dataclass(frozen=True)
class StatedStream:
    """A stream of a program; `open` streams do not wait for completions."""

    name: str = ""
    instances: int = 0
    open: bool = True


@dataclass(frozen=True)
class Program:
    """A program that made requests: its name, what it is, its text, and its streams."""

    name: str = ""
    about: str = ""
    text: str = ""
    streams: tuple[StatedStream, ...] = ()


@dataclass(frozen=True)
class Remedy:
    """What to try after a run that was not faithful, and what it costs."""

    attempt: str = field(metadata={"key": "try"})
    costs: str

    @property
    def words(self) -> str:
        """Both, for people."""
        return f"{self.attempt} (costs: {self.costs})"


@dataclass(frozen=True)
class Own:
    """The requests that nothing but the replayer could delay."""

    requests: int
    within_pct: Mapping[str, float] = field(default_factory=dict)
    """Percentage of them that were late by at most that many µs."""
    delay_us: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class StatedVerdict:
    """A run's own verdict: whether it kept the times."""

    faithful: bool | None = None
    """None if the result is fake: then it is no verdict on a storage."""
    kept_times: bool | None = None
    """Of a fake result: whether it kept its times, by the same rule; None in those of earlier versions."""
    own: Own | None = None
    sentence: str = ""
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True)
class OrderProof:
    """Whether a run of calls kept its order: pairs of calls that were checked, and those that were in the wrong one."""

    pairs: int = 0
    violations: int = 0
    missing: int = 0
    reorderable_share: float = 0.0


@dataclass(frozen=True)
class UsageSamples:
    """The course of what the machine did: each value is of the time since the sample before."""

    at_s: tuple[float, ...] = ()
    busy_pct: tuple[float, ...] = ()
    available_bytes: tuple[int, ...] = ()
    received_bytes: tuple[int, ...] = ()
    sent_bytes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Usage:
    """What all programs of the machine did during a run."""

    seconds: float
    busy_pct: float
    kernel_pct: float
    available_bytes: int
    received_bytes: int
    sent_bytes: int
    samples: UsageSamples = field(default_factory=UsageSamples)


@dataclass(frozen=True)
class Statistics:
    """The closing statistics of a run."""

    requests: int | None = None
    reads: int = 0
    errors: int = 0
    short: int = 0
    unfinished: int = 0
    widened: int = 0
    zero_reads: int | None = None
    wrap_factor: float | None = None
    iops: float | None = None
    verdict: StatedVerdict | None = None
    within_pct: Mapping[str, float] = field(default_factory=dict)
    within_not_held_back_pct: Mapping[str, float] = field(default_factory=dict)
    delay_us: Annotated[Mapping[str, Any], QUANTILES] = field(default_factory=dict)
    delay_not_held_back_us: Annotated[Mapping[str, Any], QUANTILES] = field(default_factory=dict)
    latency_us: Annotated[Mapping[str, Any], QUANTILES] = field(default_factory=dict)
    latency_from_scheduled_us: Annotated[Mapping[str, Any], QUANTILES] = field(default_factory=dict)
    order: OrderProof | None = None
    changes_not_replayed: Mapping[str, int] = field(default_factory=dict)
    """Of a run of calls: calls that change files and that it did not repeat, by what they do."""
    outdegree: Mapping[str, int] = field(default_factory=dict)
    """Of a run of calls: the number of calls for which so many calls waited."""
    usage: Usage | None = None


@dataclass(frozen=True)
class Root:
    """The directory below which a run of calls found its files."""

    path: str = ""
    mount: Mount = field(default_factory=Mount)


@dataclass(frozen=True)
class DeviceCounters:
    """A disk's own counters during a run, including other users.

    `busy_s` is the sum of the times of all requests, in seconds.
    """

    disk: str = ""
    requests: int = 0
    merged: int = 0
    busy_s: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class RunInfo:
    """How a run was made, and what it counted."""

    load: str = ""
    program: Program | None = None
    trace: str = ""
    """The trace of a run of calls."""
    trace_zero_ns: Time | None = None
    root: Root | None = None
    options: Annotated[Mapping[str, Any], OPTIONS] = field(default_factory=dict)
    """All options, by their long names with `_` for `-`."""
    typed: Any = None
    """The options that were typed, by their long names."""
    target: Target | None = None
    """The first of the targets; the only one in runs of earlier versions."""
    targets: tuple[Target, ...] = ()
    machine: Machine = field(default_factory=Machine)
    engine: str = ""
    wait: str = ""
    fake: str = ""
    """Why the result is fake; empty for a real one."""
    warnings: tuple[str, ...] = ()
    started_unix_ns: Annotated[int, Range(0, LAST_SECOND_NS)] | None = None
    mean_in_flight: float | None = None
    device_counters: tuple[DeviceCounters, ...] = ()
    statistics: Statistics = field(default_factory=Statistics)


@dataclass(frozen=True)
class Footer:
    """The whole footer. `schema_version` is that of the file, also if its keys have the names of a later one."""

    schema_version: Annotated[int, Range(0, 2**32 - 1)]
    kind: Annotated[str, Names(KINDS)]
    source: Source = field(default_factory=Source)
    recorder: str = ""
    command: tuple[str, ...] = ()
    devices: tuple[TraceDevice, ...] = ()
    counts: Counts = field(default_factory=Counts)
    span: Extent = field(default_factory=Extent)
    complete: bool = True
    request_time: str = "queued"
    """What the times of a load are: when requests were queued, or `issued` to the device."""
    epoch_unix_ns: Time | None = None
    clocks: Clocks | None = None
    warnings: tuple[str, ...] = ()
    run: RunInfo = field(default_factory=RunInfo)


def parse_footer(text: bytes, reads_version: int) -> Footer:
    """The footer. Keys of an earlier version get the names of this one, and null counts as missing.

    Raises UserError if the footer is wrong.
    """
    try:
        found = _escaped(json.loads(text, parse_constant=_refuse_constant))
        if isinstance(found, dict):
            version = found.get("schema_version")
            if isinstance(version, int) and version > reads_version:
                # A newer version may have changed anything.
                raise UserError(
                    f"has version {version} of the tables; this iosonar reads versions up to {reads_version}: use a "
                    "newer iosonar"
                )
            if isinstance(version, int):
                rename_footer(found, version)
            # Any JSON value may stand here.
            kind = KINDS.get(str(found.get("kind")))
            if kind and kind.footer_keys:
                found = {name: value for name, value in found.items() if name in kind.footer_keys}
        footer = structured(Footer, found)
        for name in KINDS[footer.kind].lacking(found):
            raise WrongError(f"{name} is missing")
    except (WrongError, ValueError, RecursionError) as error:
        raise UserError(
            f"the `iosonar` object in its footer does not conform to docs/schema.md: {why_wrong(error)}; {COPY_AGAIN}"
        ) from error
    return footer


def _refuse_constant(text: str) -> Any:
    raise WrongError(f"{text} is not a number")


def _escaped(value: Any, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_escaped(each, depth + 1) for each in value]
    if isinstance(value, dict):
        return {plain(key): _escaped(each, depth + 1) for key, each in value.items() if each is not None}
    return value
