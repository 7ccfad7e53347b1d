"""A window of time: the requests or calls that are due in it.

A request or call of a run belongs to the window of its scheduled time, whatever the storage did. So the same window of
two runs of a load has the same requests. With `--asap` nothing is scheduled, and the time of issue counts. Of a trace
of calls, it is the time at which a call began.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iosonar.errors import UsageError
from iosonar.table.source import SourceFile

if TYPE_CHECKING:
    import ibis.expr.types as ir

FARTHEST_NS = 1 << 62
"""146 years, as for the times of rows."""


@dataclass(frozen=True)
class Window:
    """From `from_ns` to before `to_ns`; None where it has no end. `skips_warm_up` if its start is the warm-up's end."""

    from_ns: int | None = None
    to_ns: int | None = None
    skips_warm_up: bool = False
    about: str = ""
    """What was found about the warm-up, as a sentence."""

    @classmethod
    def of(cls, from_s: float | None, to_s: float | None) -> Window | None:
        """From times in seconds; None without any. Raises UsageError if it is empty."""
        if from_s is None and to_s is None:
            return None
        start, end = (None if at is None else _nanoseconds(at) for at in (from_s, to_s))
        if start is not None and end is not None and start >= end:
            raise UsageError(f"--from {from_s:g} is not before --to {to_s:g} (seconds)")
        return cls(start, end)

    @property
    def is_all(self) -> bool:
        """Whether it leaves nothing out."""
        return self.from_ns is None and self.to_ns is None

    @property
    def stem(self) -> str:
        """The part of the names of pages and pictures: from-120s-to-600s."""
        if self.skips_warm_up:
            # Its end differs between runs, and is on the page.
            return "without-warm-up" + ("" if self.to_ns is None else f"-to-{_short(self.to_ns)}")
        parts = (("from", self.from_ns), ("to", self.to_ns))
        return "-".join(f"{name}-{_short(at)}" for name, at in parts if at is not None)

    def as_json(self) -> dict[str, float | None]:
        """The window for programs, in seconds."""
        times = {"from_s": self.from_ns, "to_s": self.to_ns}
        return {name: None if at is None else at / 1e9 for name, at in times.items()}

    def holds(self, table: ir.Table, files: Sequence[SourceFile]) -> ir.BooleanValue:
        """Whether a request of these files is in the window."""
        import ibis

        at: ir.IntegerValue = table.scheduled_ns
        if unscheduled := [index for index, file in enumerate(files) if file.option("asap")]:
            at = table.source.isin(unscheduled).ifelse(ibis.coalesce(table.issued_ns, table.scheduled_ns), at)
        return self.holds_at(at)

    def holds_calls(self, table: ir.Table, file: SourceFile) -> ir.BooleanValue:
        """Whether a call of this file is in the window."""
        import ibis

        has_no_times = file.kind.is_run and file.option("timing") == "asap"
        return self.holds_at(ibis.coalesce(table.begin_ns, table.scheduled_ns) if has_no_times else table.scheduled_ns)

    def holds_at(self, at: ir.IntegerValue) -> ir.BooleanValue:
        """Whether a time is in the window."""
        import ibis

        found: ir.BooleanValue = ibis.literal(True)
        if self.from_ns is not None:
            found &= at >= self.from_ns
        if self.to_ns is not None:
            found &= at < self.to_ns
        return found

    def sql(self, file: SourceFile) -> str:
        """The same condition on the views of `iosonar sql`."""
        at = file.kind.due(file) if file.kind.due else ""
        bounds = ((">=", self.from_ns), ("<", self.to_ns))
        return " AND ".join(f"{at} {sign} {value}" for sign, value in bounds if value is not None) or "true"


def _nanoseconds(seconds: float) -> int:
    if not math.isfinite(seconds) or abs(seconds) * 1e9 > FARTHEST_NS:
        raise UsageError(f"{seconds:g} s is not a time within 146 years")
    return round(seconds * 1e9)


def _short(at_ns: int) -> str:
    return f"{at_ns / 1e9:.9f}".rstrip("0").rstrip(".") + "s"
