"""F11: a few files, a directory or a mount take most of the time, as their calls are slower than those elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.findings.call_rows import (
    literal,
    on_files,
    path_column,
    place,
    rows_of,
    seconds_of,
    shown,
    strace_doubt,
    times_say_something,
    without_times,
)
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.calls.series import CallSeries
from iosonar.study.calls import CallStudy
from iosonar.text import listed

if TYPE_CHECKING:
    import ibis.expr.types as ir

DIAGRAMS = {CallSeries.READ: "read", CallSeries.WRITE: "write", CallSeries.SYNC: "sync"}
"""Diagrams of response times, by series; others are in `response.call`."""
MAX_FILES, DEEPEST, LOOKED_AT = 5, 4, 200
NEARLY = 0.9
"""A smaller group is named if it takes nearly as much of the time."""


@dataclass(frozen=True)
class Sums:
    """Calls, with their time and bytes."""

    calls: float = 0
    ns: float = 0
    bytes: float = 0

    def without(self, other: Sums) -> Sums:
        """The rest."""
        return Sums(self.calls - other.calls, self.ns - other.ns, self.bytes - other.bytes)

    def joined(self, other: Sums) -> Sums:
        """Both."""
        return Sums(self.calls + other.calls, self.ns + other.ns, self.bytes + other.bytes)


@dataclass(frozen=True)
class Group:
    """Files, or a directory, and its calls of a name."""

    call: str
    series: CallSeries
    paths: tuple[str, ...]
    is_directory: bool
    sums: Sums

    def condition(self, path: ir.StringColumn) -> ir.BooleanValue:
        """Whether a path is of the group."""
        return path.startswith(f"{self.paths[0]}/") if self.is_directory else path.isin(self.paths)


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the mean time of the same calls, in groups of files from the smallest to the largest."""
    rows = rows_of(study)
    named = rows.filter(rows.path.notnull() & rows.duration_ns.notnull() & (rows.series != int(CallSeries.OTHER)))
    whole = seconds_of(study) * 1e9
    if whole < limits["time"] * 1e9:
        return None
    totals = {str(row["call"]): _sums(row) for row in _summed(named, "call").to_pyarrow().to_pylist()}
    slow = [
        group
        for group in _groups(named)
        if group.sums.ns >= limits["share"] * whole and _factor(group, totals[group.call], limits) >= limits["factor"]
    ]
    if not slow:
        return None
    most = max(group.sums.ns for group in slow)
    for group in (each for each in slow if each.sums.ns >= NEARLY * most):
        if finding := _found(study, named, group, totals[group.call], whole, limits):
            return finding
    return None


def _groups(named: ir.Table) -> Iterator[Group]:
    """The file with the most time, then directories, the deepest first, then some files."""
    by_call: dict[str, list[dict[str, Any]]] = {}
    for row in _top(_summed(named, "path", "call", "series")):
        by_call.setdefault(row["call"], []).append(row)
    yield from _of_files(by_call, 1)
    for depth in range(DEEPEST, 0, -1):
        prefixed = named.mutate(directory=named.path.re_extract(f"^((/[^/]+){{{depth}}})/", 1))
        inside = prefixed.filter(prefixed.directory != "")
        for row in _top(_summed(inside, "directory", "call", "series")):
            yield Group(row["call"], CallSeries(int(row["series"])), (row["directory"],), True, _sums(row))
    for count in range(2, MAX_FILES + 1):
        yield from _of_files(by_call, count)


def _of_files(by_call: dict[str, list[dict[str, Any]]], count: int) -> Iterator[Group]:
    """That many files with the most time, by call."""
    for call, rows in by_call.items():
        if len(rows) >= count:
            sums = Sums()
            for row in rows[:count]:
                sums = sums.joined(_sums(row))
            paths = tuple(row["path"] for row in rows[:count])
            yield Group(call, CallSeries(int(rows[0]["series"])), paths, False, sums)


def _summed(table: ir.Table, *keys: str) -> ir.Table:
    return table.group_by(*keys).aggregate(
        calls=table.count(),
        ns=table.duration_ns.cast("float64").sum(),
        bytes=table.bytes.cast("float64").sum().fill_null(0.0),
    )


def _top(table: ir.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        table.order_by([table.ns.desc(), table[table.columns[0]]]).limit(LOOKED_AT).to_pyarrow().to_pylist()
    )
    return rows


def _sums(row: dict[str, Any]) -> Sums:
    return Sums(float(row["calls"]), float(row["ns"] or 0), float(row["bytes"] or 0))


def _factor(group: Group, total: Sums, limits: Limits) -> float:
    """How many times as long its calls take as the same calls elsewhere, beyond what their size explains."""
    own, rest = group.sums, total.without(group.sums)
    if min(own.calls, rest.calls) < limits["calls"] or not rest.ns > 0:
        return 0.0
    factor = (own.ns / own.calls) / (rest.ns / rest.calls)
    if own.bytes and rest.bytes:
        factor /= max((own.bytes / own.calls) / (rest.bytes / rest.calls), 1.0)
    return factor


def _found(
    study: CallStudy, named: ir.Table, group: Group, total: Sums, whole: float, limits: Limits
) -> Finding | None:
    """The finding, if it is not a few calls alone that took so long."""
    same = named.filter(named.call == group.call)
    is_own = group.condition(same.path)
    row = (
        same.aggregate(
            own=same.duration_ns.cast("float64").quantile(0.5, where=is_own),
            rest=same.duration_ns.cast("float64").quantile(0.5, where=~is_own),
            first_ns=same.begin_ns.min(where=is_own),
            last_ns=same.begin_ns.max(where=is_own),
        )
        .to_pyarrow()
        .to_pylist()[0]
    )
    if not row["own"] or row["own"] < limits["median"] * (row["rest"] or 0):
        return None
    rest = total.without(group.sums)
    share, factor = group.sums.ns / whole, _factor(group, total, limits)
    return DETECTOR.found(
        Severity.WARNING if times_say_something(study) else Severity.INFO,
        f"The {group.call} calls {_where(group)} take {units.percent(min(share, 1.0))} of the time in calls on files, "
        f"although they are {units.percent(group.sums.calls / total.calls)} of the {group.call} calls: one takes "
        f"{units.span(group.sums.ns / group.sums.calls / 1e9)} on average, elsewhere "
        f"{units.span(rest.ns / rest.calls / 1e9)}.",
        place(
            study,
            _filter(study, group),
            f"response.{DIAGRAMS.get(group.series, 'call')}",
            row["first_ns"],
            row["last_ns"],
        ),
        sure=(
            Confidence.HIGH if row["own"] >= limits["factor"] * (row["rest"] or 0) else Confidence.MEDIUM,
            f"The median differs, too: {units.span(row['own'] / 1e9)} against {units.span((row['rest'] or 0) / 1e9)}."
            + strace_doubt(study),
        ),
        ruled_out=("Larger reads or writes: sizes were taken into account.",) if group.sums.bytes else (),
        values={
            "share": share,
            "factor": factor,
            "calls": int(group.sums.calls),
            "seconds": group.sums.ns / 1e9,
            "mean_s": group.sums.ns / group.sums.calls / 1e9,
            "elsewhere_s": rest.ns / rest.calls / 1e9,
        },
    )


def _where(group: Group) -> str:
    names = [shown(path) for path in group.paths]
    if group.is_directory:
        return f"below {names[0]}"
    return f"of {listed(names) if len(names) <= 2 else f'{len(names)} files, such as {names[0]},'}"


def _filter(study: CallStudy, group: Group) -> str:
    of = (
        f"starts_with({path_column(study)}, {literal(f'{group.paths[0]}/')})"
        if group.is_directory
        else on_files(study, group.paths)
    )
    return f"call = {literal(group.call)} AND {of}"


DETECTOR = Detector[CallStudy](
    "F11",
    "slow-calls-by-file-system",
    "Slow calls in one place",
    "These files are on slower storage than the others, are fragmented or locked, or are opened with other flags, such "
    "as O_DIRECT or O_SYNC; elsewhere the page cache may answer.",
    (
        "Look where they are: `findmnt -T PATH` names the mount and its device; compare it with that of the others.",
        "If it is the same device, compare the flags of opening, and whether the others are in the page cache.",
        "Move these files to faster storage, or keep more of them in memory.",
    ),
    find,
    (
        Threshold("share", 0.5, Measured.SHARE, "Their share of the time in calls on files."),
        Threshold("factor", 5.0, Measured.NUMBER, "How many times as long their calls take on average."),
        Threshold("median", 3.0, Measured.NUMBER, "And by the median."),
        Threshold("calls", 100, Measured.NUMBER, "The fewest calls there, and elsewhere."),
        Threshold("time", 0.1, Measured.TIME, "The shortest time in calls on files."),
    ),
    why_not=without_times,
)
