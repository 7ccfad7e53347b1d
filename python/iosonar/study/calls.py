"""Shared by all diagrams of calls: one or several tables side by side, the options, and cached quantities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING

from iosonar import units
from iosonar.figures.model import Role
from iosonar.quantities.calls.access import Access, access_patterns, largest_accesses
from iosonar.quantities.calls.attribution import FileRequests, requests_of_files
from iosonar.quantities.calls.by_file import AllFiles, all_files
from iosonar.quantities.calls.call_load import CallLoad, call_load, window_for
from iosonar.quantities.calls.fidelity import Delays, delays
from iosonar.quantities.calls.series import with_series
from iosonar.quantities.calls.shares import Share, mix, shares_of_threads
from iosonar.quantities.distribution import Distribution, distributions, pooled
from iosonar.study.base import BaseStudy, Cached, Options
from iosonar.table.blocks import Blocks
from iosonar.table.call_kinds import FAMILIES
from iosonar.table.calls import Calls
from iosonar.table.source import SourceFile
from iosonar.table.window import Window
from iosonar.text import short_name

if TYPE_CHECKING:
    import ibis.expr.types as ir

RUN_ROLES = (Role.ACTUAL, Role.READ, Role.FAILED, Role.WRITE, Role.DEMAND)
"""One for each run beside the original; more could not be distinguished."""

MAX_SIDES = len(RUN_ROLES) + 1
MAX_FILES = 4
"""Files with a diagram of their offsets."""

MIN_ACCESSES = 3
"""The fewest reads or writes of such a file."""

FARTHEST = 1 << 61
"""2 EiB: more than any file has."""

PLACEHOLDERS = "was generated: the times that its calls take are placeholders"

LISTED = 40
"""Files in a table."""

KEPT = (
    *("number", "instance", "thread", "call", "path", "offset", "bytes", "series"),
    *("begin_ns", "end_ns", "duration_ns", "scheduled_ns", "gap_ns", "expected_duration_ns"),
    *("delay_reason", "outcome", "has_failed", "is_mismatch"),
    *("process", "family", "errno", "result", "flags", "waited_ns"),
)


@dataclass(frozen=True)
class Extent:
    """Numbers of a table: rows, calls that were made, times of the first begin and the last end."""

    rows: int
    calls: int
    failed: int
    mismatches: int
    threads: int
    first_ns: int
    last_ns: int


def plain_name(calls: Calls) -> str:
    """The file's name, for a run with its order and timing."""
    how = ", ".join(str(value) for name in ("order", "timing") if (value := calls.file.option(name)))
    return f"{calls.file.name} ({how})" if how else calls.file.name


def lost_changes(file: SourceFile) -> str:
    """Calls of the trace that change files and that the run did not repeat, in words; empty if there are none."""
    lost = file.run.statistics.changes_not_replayed
    named = ", ".join(f"{name} {units.count(number)}" for name, number in sorted(lost.items()))
    calls = sum(lost.values())
    return f"{units.counted(calls, 'call')} that {'changes' if calls == 1 else 'change'} files: {named}" if lost else ""


def zero_of(runs: Sequence[SourceFile]) -> int | None:
    """When the windows of the runs begin in the trace; None where a run does not say."""
    zeros = [zero for run in runs if (zero := run.run.trace_zero_ns) is not None]
    return min(zeros) if zeros and len(zeros) == len(runs) else None


class CallSide(Cached):
    """A trace, or a run: its calls, with all quantities computed on them, each once."""

    def __init__(self, calls: Calls, role: Role, number: int = 1, zero_ns: int | None = None) -> None:
        super().__init__()
        self.calls, self.role, self._number, self._zero_ns = calls, role, number, zero_ns

    @property
    def is_run(self) -> bool:
        """Whether it is a run."""
        return self.calls.is_run

    @property
    def name(self) -> str:
        """The file's name, for a run with its order and timing; with a number if several sides would be the same."""
        return plain_name(self.calls) + (f" #{self._number}" if self._number > 1 else "")

    @cached_property
    def every(self) -> ir.Table:
        """All rows, with the columns KEPT; offsets and bytes within FARTHEST, so that sums of them fit into 64 bits."""
        table = with_series(self.calls.table).select(*KEPT)
        within = {name: table[name].clip(-FARTHEST, FARTHEST) for name in ("offset", "bytes")}
        return self.calls.kept(table.mutate(**within))

    @cached_property
    def table(self) -> ir.Table:
        """The calls that were made."""
        return self.every.filter(self.every.begin_ns.notnull())

    @cached_property
    def extent(self) -> Extent:
        """Numbers and times."""
        table = self.every
        row = (
            table.aggregate(
                rows=table.count(),
                calls=table.begin_ns.count(),
                failed=table.has_failed.sum(where=table.begin_ns.notnull()),
                mismatches=table.is_mismatch.sum(),
                threads=table.thread.nunique(where=table.begin_ns.notnull()),
                first_ns=table.begin_ns.min(),
                last_ns=table.end_ns.max(),
                last_begin_ns=table.begin_ns.max(),
            )
            .to_pyarrow()
            .to_pylist()[0]
        )
        last = max(row.pop("last_begin_ns") or 0, row["last_ns"] or 0)
        return Extent(**{name: value or 0 for name, value in row.items()} | {"last_ns": last})

    @property
    def origin_ns(self) -> int:
        """Zero of the time axes: of a trace its first begin, beside runs that of their window; a run's virtual zero.

        With a window, it is the start of that.
        """
        start_ns = self.calls.window.from_ns if self.calls.window else None
        if self.is_run:
            return start_ns or 0
        if start_ns is not None:
            return start_ns if self._zero_ns is None else self.extent.first_ns
        return self.extent.first_ns if self._zero_ns is None else self._zero_ns

    @property
    def seconds(self) -> float:
        """From the origin to the last end."""
        return max(self.extent.last_ns - self.origin_ns, 0) / 1e9

    @cached_property
    def begin_s(self) -> ir.NumericColumn:
        """The start of each call on the time axes."""
        begin: ir.NumericColumn = (self.table.begin_ns - self.origin_ns) / 1e9
        return begin

    @cached_property
    def mix(self) -> list[Share[str]]:
        """The mix of calls."""
        return mix(self.table)

    @property
    def bytes_read(self) -> int:
        """The bytes that reads moved, also those of unknown files."""
        return self._moved("read")

    @property
    def bytes_written(self) -> int:
        """The bytes that writes and copies moved, also those of unknown files."""
        return self._moved("write", "copy")

    def _moved(self, *families: str) -> int:
        return sum(each.bytes for family in families for each in self.mix if each.of in FAMILIES[family])

    @cached_property
    def threads(self) -> list[Share[int]]:
        """The shares of the threads."""
        return shares_of_threads(self.table)

    @cached_property
    def response(self) -> dict[int, Distribution]:
        """The distribution of response times in ns, by series."""
        return distributions(self.table, self.table.duration_ns)

    @cached_property
    def original_response(self) -> dict[int, Distribution]:
        """The same in the original of a run, of the calls that the run made; nothing if the original was generated."""
        if self.calls.file.is_generated:
            return {}
        return distributions(self.table, self.table.expected_duration_ns)

    @cached_property
    def pooled_response(self) -> Distribution:
        """The response times of all calls."""
        return pooled(list(self.response.values()))

    @cached_property
    def files(self) -> AllFiles:
        """Totals over all files."""
        return all_files(self.table)

    @cached_property
    def patterns(self) -> ir.Table:
        """The pattern of each file and operation."""
        return self.calls.kept(access_patterns(self.table))

    @cached_property
    def accesses(self) -> list[Access]:
        """The files and operations with the most bytes, with the names of their patterns."""
        return largest_accesses(self.patterns, LISTED)

    @property
    def drawn_files(self) -> list[str]:
        """The files with a diagram of their offsets, `offset.1` and further: those with the most bytes."""
        paths = dict.fromkeys(each.path for each in self.accesses if each.accesses >= MIN_ACCESSES)
        return list(paths)[:MAX_FILES]

    @property
    def keeps_times(self) -> bool:
        """Whether it is a run whose calls had times to keep."""
        return self.is_run and (self.calls.file.option("timing") or "exact") != "asap"

    @cached_property
    def delays(self) -> Delays:
        """The delays of a run."""
        return delays(self.table)

    def load(self, window_s: float) -> CallLoad:
        """Calls per second in windows."""
        return self.cached(
            ("load", window_s), lambda: call_load(self.table, window_s, self.origin_ns, self.extent.last_ns)
        )


class CallStudy(BaseStudy):
    """One table of calls, or an original and runs side by side."""

    def __init__(
        self,
        tables: Sequence[Calls],
        options: Options,
        blocks: Blocks | None = None,
        repetitions: Sequence[Sequence[Calls]] = (),
    ) -> None:
        super().__init__(options)
        self.blocks, self.page = blocks, "report" if len(tables) == 1 else "compare"
        groups = [[each, *more] for each, more in zip_longest(tables, repetitions, fillvalue=())]
        runs = [each for group in groups for each in group if each.is_run]
        roles, names = iter(RUN_ROLES), Counter[str]()

        def side(each: Calls, role: Role) -> CallSide:
            if not each.is_run:
                # Beside runs, the original has the calls that they made.
                zero_ns = zero_of([run.file for run in runs])
                return CallSide(each.made_by(runs) if runs else each, Role.ALL, zero_ns=zero_ns)
            names[plain_name(each)] += 1
            return CallSide(each, role, names[plain_name(each)])

        self.sides = tuple(side(each, next(roles) if each.is_run else Role.ALL) for each, *_ in groups)
        self.groups = tuple(
            (first, *(side(each, first.role) for each in more))
            for first, (_, *more) in zip(self.sides, groups, strict=True)
        )
        """Each side with its repetitions, which diagrams do not show."""

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The file of each side."""
        return tuple(side.calls.file for side in self.sides)

    @property
    def inputs(self) -> tuple[SourceFile, ...]:
        """These, those of the repetitions, and the recording of block devices."""
        every = tuple(side.calls.file for group in self.groups for side in group)
        return (*every, self.blocks.file) if self.blocks else every

    @property
    def stem(self) -> str:
        """The name of the first file, and the window."""
        name = short_name(self.files[0].output_stem if self.is_single else self.files[0].stem)
        return f"{name}.{stem}" if (stem := self.window.stem if self.window else "") else name

    @property
    def window(self) -> Window | None:
        """The window of time that the calls are of; None if they are all."""
        return next((side.calls.window for group in self.groups for side in group if side.calls.window), None)

    @property
    def is_part(self) -> bool:
        """Whether a window leaves calls out."""
        return self.window is not None and not self.window.is_all

    def why_empty(self, name: str) -> str:
        """A file without calls has no diagram, and a generated trace none of response times."""
        if name.startswith("response.") and not self.runs and self.first.calls.file.is_generated:
            return f"the trace {PLACEHOLDERS}"
        return "" if self.calls else "no calls in the file"

    @property
    def first(self) -> CallSide:
        """The only side, or the original."""
        return self.sides[0]

    @property
    def is_single(self) -> bool:
        """Whether there is nothing to compare."""
        return len(self.sides) == 1

    @property
    def left_out(self) -> int:
        """Calls of the original that none of its runs made."""
        is_original = self.runs and not self.first.is_run and not self.is_part
        return self.first.calls.file.rows - self.first.extent.rows if is_original else 0

    @property
    def runs(self) -> tuple[CallSide, ...]:
        """The runs."""
        return tuple(side for side in self.sides if side.is_run)

    @property
    def calls(self) -> int:
        """The number of calls that were made."""
        return sum(side.extent.calls for side in self.sides)

    @property
    def of(self) -> str:
        """The files, for people."""
        return " · ".join(f"{side.name}, {units.counted(side.extent.calls, 'call')}" for side in self.sides)

    @cached_property
    def seconds(self) -> float:
        """The end of time axes."""
        return max(side.seconds for side in self.sides)

    @cached_property
    def requests_of_files(self) -> list[FileRequests]:
        """Files with the bytes of their calls and of the requests of `blocks` that they caused."""
        if self.blocks is None:
            return []
        return requests_of_files(self.first.calls.table, self.blocks.table)

    @property
    def window_s(self) -> float:
        """The window of the load."""
        return self.options.window_s or window_for(self.seconds)
