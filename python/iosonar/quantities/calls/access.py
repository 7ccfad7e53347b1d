"""The access pattern of each file, for its reads and for its writes, with a name.

An *access* is a read or write that moved bytes. The step from one access to the next is one of four kinds:

- *contiguous*: it begins where the one before ended;
- *resumed*: it begins where the highest access so far ended, after an excursion below it;
- *forward*: it begins higher than where the one before ended; the difference is a gap;
- *backward*: it begins lower than where the one before ended; the difference is the distance.

Steps are those within a thread, or those of all threads together, whichever has the larger share of contiguous and
resumed ones: a pool of threads may share a sequential reader. *Jumps* are forward and backward steps.

The names, tried in this order:

| name | rule |
|---|---|
| single access | no steps |
| backwards | at least 90 % of the steps go to a lower offset |
| strided | at least 90 % of the steps have the same positive distance from start to start, with a gap |
| sequential | at most 2 jumps; or at most 1 % of the steps are jumps, over at most 10 % of the bytes |
| sequential with gaps | at most 2 backward steps, or at most 5 % of the jumps |
| sequential with backward jumps | at least half of the steps contiguous or resumed, at most 10 % of the jumps forward |
| random | 20 to 80 % of the jumps backward; at least 10 % of the steps are jumps, or all jumps exceed all bytes |
| mixed | all else |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from iosonar.quantities.calls.series import CallSeries

if TYPE_CHECKING:
    import ibis.expr.types as ir


class Pattern(StrEnum):
    """The names of access patterns."""

    SINGLE = "single access"
    BACKWARDS = "backwards"
    STRIDED = "strided"
    SEQUENTIAL = "sequential"
    WITH_GAPS = "sequential with gaps"
    WITH_BACKWARD_JUMPS = "sequential with backward jumps"
    RANDOM = "random"
    MIXED = "mixed"


MAX_STEPS = 0.9
FEW_JUMPS = 2
"""That many jumps do not change a name, such as those to a directory at the end of an archive and back."""
RARE_JUMPS, SHORT_JUMPS = 0.01, 0.1
RARE_BACKWARD, RARE_FORWARD = 0.05, 0.1
MIXED_LOW, MIXED_HIGH = 0.2, 0.8
FREQUENT_JUMPS = 0.1


@dataclass(frozen=True)
class Access:
    """The reads, or the writes, of a file. Counts are of steps; gaps and distances are sums in bytes."""

    path: str
    operation: str
    pattern: Pattern
    accesses: int
    bytes: int
    contiguous: int
    resumed: int
    forward: int
    backward: int
    gap_bytes: int
    backward_bytes: int
    stride: int | None
    """The most frequent distance from start to start."""
    low: int
    end: int


def accesses(table: ir.Table) -> ir.Table:
    """The reads and writes that moved bytes of a file, with `operation`."""
    series = (int(CallSeries.READ), int(CallSeries.WRITE))
    found = table.filter(
        table.bytes.notnull() & table.offset.notnull() & table.path.notnull() & table.series.isin(series)
    )
    return found.mutate(operation=(found.series == series[0]).ifelse("read", "write"))


def access_patterns(table: ir.Table) -> ir.Table:
    """A row for each file and operation, with the fields of Access, as an expression."""
    import ibis

    found = accesses(table)
    keys = ("path", "operation")
    threads = _named(_steps(found, ("instance", "thread")), "by_thread")
    together = _named(_steps(found, ("instance",)), "together")
    both = threads.join(together, list(keys))
    names = [name for name in threads.columns if name not in keys]
    own, all_ = (both[f"contiguous_{part}"] + both[f"resumed_{part}"] for part in ("by_thread", "together"))
    stems = [name.removesuffix("_by_thread") for name in names]
    chosen = both.select(
        *keys,
        **{
            stem: ibis.ifelse(own >= all_, both[f"{stem}_by_thread"], both[f"{stem}_together"]).cast("int64")
            for stem in stems
        },
    )
    return chosen.mutate(pattern=_pattern(chosen))


def _named(table: ir.Table, suffix: str) -> ir.Table:
    return table.rename({f"{name}_{suffix}": name for name in table.columns if name not in ("path", "operation")})


def _steps(found: ir.Table, within: tuple[str, ...]) -> ir.Table:
    """The sums over all steps between accesses that agree in these columns."""
    import ibis

    keys = ["path", "operation", *within]
    order = [found.begin_ns, found.number]
    window = ibis.window(group_by=keys, order_by=order)
    before = ibis.window(group_by=keys, order_by=order, preceding=(None, 1))
    end = found.offset + found.bytes
    steps = found.select(
        "path",
        "operation",
        "bytes",
        "offset",
        end=end,
        step=found.offset - found.offset.lag().over(window),
        jump=found.offset - end.lag().over(window),
        frontier=end.max().over(before),
    )
    jump, step = steps.jump, steps.step
    resumed = (jump != 0) & (steps.offset == steps.frontier)
    forward, backward = (jump > 0) & ~resumed, (jump < 0) & ~resumed
    sums = steps.group_by("path", "operation").aggregate(
        accesses=steps.count(),
        bytes=steps.bytes.sum(),
        steps=jump.count(),
        contiguous=(jump == 0).sum(),
        resumed=resumed.sum(),
        forward=forward.sum(),
        backward=backward.sum(),
        lower=(step < 0).sum(),
        gap_bytes=jump.sum(where=forward).fill_null(0),
        backward_bytes=(-jump).sum(where=backward).fill_null(0),
        low=steps.offset.min(),
        end=steps.end.max(),
    )
    gapped = steps.filter((step > 0) & (jump != 0))
    strides = gapped.group_by("path", "operation", "step").aggregate(n=gapped.count())
    modes = strides.group_by("path", "operation").aggregate(
        stride=strides.step.argmax(strides.n), in_stride=strides.n.max()
    )
    joined = sums.left_join(modes, ["path", "operation"])
    kept = [name for name in joined.columns if not name.endswith("_right")]
    return joined.select(*kept).fill_null({"in_stride": 0})


def _pattern(sums: ir.Table) -> ir.StringValue:
    """The name, by the rules above."""
    import ibis

    jumps = sums.forward + sums.backward
    distances = sums.gap_bytes + sums.backward_bytes
    in_order = sums.contiguous + sums.resumed
    is_rare = (jumps <= RARE_JUMPS * sums.steps) & (distances <= SHORT_JUMPS * sums.bytes)
    both_ways = (sums.backward >= MIXED_LOW * jumps) & (sums.backward <= MIXED_HIGH * jumps)
    # The sums compare the mean jump with the mean number of bytes between two jumps.
    matters = (jumps >= FREQUENT_JUMPS * sums.steps) | (distances >= sums.bytes)
    return ibis.cases(
        (sums.steps == 0, Pattern.SINGLE.value),
        (sums.lower >= MAX_STEPS * sums.steps, Pattern.BACKWARDS.value),
        ((sums.in_stride >= MAX_STEPS * sums.steps) & (sums.steps > 1), Pattern.STRIDED.value),
        ((jumps <= FEW_JUMPS) | is_rare, Pattern.SEQUENTIAL.value),
        ((sums.backward <= FEW_JUMPS) | (sums.backward <= RARE_BACKWARD * jumps), Pattern.WITH_GAPS.value),
        (
            (in_order * 2 >= sums.steps) & (sums.forward <= RARE_FORWARD * jumps),
            Pattern.WITH_BACKWARD_JUMPS.value,
        ),
        (both_ways & matters, Pattern.RANDOM.value),
        else_=Pattern.MIXED.value,
    )


def _whole(value: Any) -> Any:
    """Sums of a kept table are decimals."""
    return None if value is None else int(value)


FIELDS = tuple(name for name in Access.__dataclass_fields__ if name not in ("path", "operation", "pattern"))


def largest_accesses(found: ir.Table, limit: int) -> list[Access]:
    """The files and operations with the most bytes, of the rows of `access_patterns`."""
    rows = found.order_by([found.bytes.desc(), found.path, found.operation]).limit(limit).to_pyarrow().to_pylist()
    return [
        Access(row["path"], row["operation"], Pattern(row["pattern"]), **{name: _whole(row[name]) for name in FIELDS})
        for row in rows
    ]


def count_patterns(found: ir.Table) -> list[tuple[Pattern, str, int, int]]:
    """For each pattern and operation in the rows of `access_patterns`, its files and bytes; the most bytes first."""
    rows = (
        found.group_by("pattern", "operation")
        .aggregate(files=found.count(), moved=found.bytes.sum())
        .to_pyarrow()
        .to_pylist()
    )
    counted = [(Pattern(row["pattern"]), str(row["operation"]), int(row["files"]), int(row["moved"])) for row in rows]
    return sorted(counted, key=lambda each: (-each[3], each[0], each[1]))
