"""The time of a job over the number of instances that run at once: of a program and of its replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class JobTimes:
    """Mean, shortest and longest time in seconds of concurrent instances of a program, or of its replay."""

    what: str
    instances: int
    mean: float
    shortest: float
    longest: float


@dataclass(frozen=True)
class HostTraffic:
    """What a host did while a number of instances ran, on it and on others; `host` is empty if it was the only one."""

    instances: int
    host: str
    own: int
    """Instances on this host."""
    mean_s: float
    """The mean time of these."""
    received: int
    sent: int

    @property
    def moved(self) -> int:
        """Bytes over the network in both directions."""
        return self.received + self.sent


def traffic(table: ir.Table) -> list[HostTraffic]:
    """For each number of instances of a replay and host, where the bytes on the network are known."""
    known = table.filter((table.what == "replay") & table.received_bytes.notnull() & table.sent_bytes.notnull())
    rows = (
        known.mutate(host=known.host.fill_null(""))
        .group_by("instances", "host")
        .aggregate(
            own=lambda each: each.count(),
            mean_s=lambda each: each.seconds.mean(),
            received=lambda each: each.received_bytes.max(),
            sent=lambda each: each.sent_bytes.max(),
        )
        .to_pyarrow()
        .to_pylist()
    )
    return sorted((HostTraffic(**row) for row in rows), key=lambda each: (each.instances, each.host))


def job_times(table: ir.Table) -> list[JobTimes]:
    """For each kind (`program`, `replay`) and number of instances, ascending."""
    seconds = table.seconds
    rows = (
        table.group_by("what", "instances")
        .aggregate(mean=seconds.mean(), shortest=seconds.min(), longest=seconds.max())
        .to_pyarrow()
        .to_pylist()
    )
    return sorted((JobTimes(**row) for row in rows), key=lambda each: (each.what, each.instances))
