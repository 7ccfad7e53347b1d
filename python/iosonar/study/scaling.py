"""A study of an experiment with several instances of a program at once, and of its replay."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from iosonar.quantities.calls.scaling import HostTraffic, JobTimes, job_times, traffic
from iosonar.study.base import BaseStudy, Options
from iosonar.table import SourceFile
from iosonar.text import short_name

if TYPE_CHECKING:
    import ibis.expr.types as ir


class ScaleStudy(BaseStudy):
    """The times of all instances."""

    def __init__(self, table: ir.Table, file: SourceFile, options: Options) -> None:
        super().__init__(options)
        self.table, self.file = table, file

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The only file."""
        return (self.file,)

    @property
    def stem(self) -> str:
        """The start of the names of pages and pictures."""
        return short_name(self.file.output_stem)

    @cached_property
    def times(self) -> list[JobTimes]:
        """The times by the number of instances."""
        return job_times(self.table)

    @cached_property
    def traffic(self) -> list[HostTraffic]:
        """The bytes on the network by the number of instances and host; empty if they are not known."""
        if not {"host", "received_bytes", "sent_bytes"} <= set(self.table.columns):
            return []
        return traffic(self.table)
