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
