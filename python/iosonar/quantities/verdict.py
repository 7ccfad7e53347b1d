"""Checks whether a quantity stayed within a limit, and finds the first violation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Verdict:
    """The number of values above the limit (seconds), and the time (seconds) of the first one."""

    limit_s: float
    beyond: int
    first_at_s: float | None
    maximum_s: float
    fails_at: int = 1
    """The number of values above the limit that is too many."""

    @property
    def passed(self) -> bool:
        """Whether so few requests exceeded the limit that it does not count."""
        return self.beyond < self.fails_at


def verdict(
    table: ir.Table, value_ns: ir.IntegerColumn, at_ns: ir.IntegerColumn, limit_s: float, fails_at: int = 1
) -> Verdict:
    """Compares `value_ns` with a limit; `at_ns` is the time reported for a violation."""
    beyond = value_ns > round(min(limit_s * 1e9, 2**62))
    row = (
        table.aggregate(beyond=beyond.sum(), first=at_ns.min(where=beyond), maximum=value_ns.max())
        .to_pyarrow()
        .to_pylist()[0]
    )
    first, maximum = row["first"], row["maximum"]
    return Verdict(
        limit_s,
        row["beyond"] or 0,
        None if first is None else first / 1e9,
        0.0 if maximum is None else maximum / 1e9,
        fails_at,
    )
