"""Shared by several families of diagrams: axes, roles of series, rows of the legend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.figures.model import (
    Axis,
    CloudPart,
    Direction,
    LegendRow,
    Note,
    NoteKind,
    Role,
    Rule,
    Scale,
    Severity,
    Stroke,
    Unit,
)
from iosonar.figures.ticks import moment, text
from iosonar.quantities.density import Cells, Density
from iosonar.quantities.distribution import Distribution
from iosonar.quantities.percentiles import name_of
from iosonar.quantities.series import Series
from iosonar.quantities.throughput import Throughput
from iosonar.quantities.verdict import Verdict
from iosonar.study.base import BaseStudy
from iosonar.study.checks.limits import beyond_limit
from iosonar.study.requests import Measure, Study
from iosonar.study.runs import doubt_of
from iosonar.thresholds import MIN_BEYOND

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROLES = {
    Series.READ: Role.READ,
    Series.WRITE: Role.WRITE,
    Series.PUSHED_READ: Role.PUSHED_READ,
    Series.PUSHED_WRITE: Role.PUSHED_WRITE,
    Series.OTHER: Role.OTHER,
    Series.FAILED: Role.FAILED,
}

MIN_AXIS_S = 1e-6
"""The minimum length of a time axis."""

DEVICE_ROLES = (
    Role.DEVICE_1,
    Role.DEVICE_2,
    Role.DEVICE_3,
    Role.DEVICE_4,
    Role.DEVICE_5,
    Role.DEVICE_6,
)
"""The roles of devices, the slowest first."""


def look(study: Study, series: int) -> tuple[Role, str]:
    """The role and the title of a series, which is an operation or a device."""
    if study.options.each_device:
        return device_look(study, series)
    return ROLES[Series(series)], Series(series).title


def device_look(study: Study, number: int) -> tuple[Role, str]:
    """The role and the title of one of the study's groups of devices."""
    group = study.device_groups[number]
    return DEVICE_ROLES[number] if len(group.devices) == 1 else Role.FAINT, group.title


MAX_LINELESS = 6
"""The most series that a note names."""


def value_columns(study: BaseStudy, noun: str = "requests") -> tuple[str, ...]:
    """The columns of `measure_legend`."""
    return (noun, "avg", *map(name_of, shares_of(study)), "max")


def shares_of(study: BaseStudy, shares: tuple[float, ...] = (0.99,)) -> tuple[float, ...]:
    """The percentiles that the user chose, else these."""
    return study.options.percentiles or shares


def time_axis(study: Study, label: str) -> Axis:
    """An axis from the first to the last time of a study, with a small margin."""
    low, high = study.first_s, study.last_s
    return Axis(label, Unit.TIMELINE, low, low + max((high - low) * 1.01, MIN_AXIS_S))


def max_depth_of(study: Study, table: ir.Table) -> int:
    """The largest `depth` in a table, at least 1."""
    found = study.cached("max_depth", lambda: table.aggregate(most=table.depth.max()).to_pyarrow()["most"][0].as_py())
    return max(found or 0, 1)


def log_axis(label: str, unit: Unit, least: float, most: float, smallest: float = math.inf) -> Axis:
    """A logarithmic axis with both values; its ends are 1, 2 or 5 times a power of ten, at least a decade apart.

    `smallest` is the smallest value: if it is below the axis, such values are at the axis's lower end.
    """
    low, high = _round_down(least), _round_up(most * 1.05)
    if high / low < 10:
        low, high = _round_down(math.sqrt(low * high / 10)), _round_up(math.sqrt(low * high * 10))
    return Axis(label, unit, low, high, Scale.LOG, floor=low if smallest < low * (1 - 1e-9) else 0.0)


def floor_notes(*axes: Axis) -> tuple[Note, ...]:
    """Where values below an axis are drawn."""
    ends = [(axis.label, text(axis.unit, axis.low)) for axis in axes if axis.floor]
    return tuple(Note(NoteKind.INFO, f"{label}: values below {end}, also 0, are drawn at {end}") for label, end in ends)


def count_axis(label: str, unit: Unit, most: float) -> Axis:
    """A logarithmic axis of counts up to `most`; it begins below 1, so that a count of 1 is not on the frame."""
    return replace(log_axis(label, unit, 1, max(most, 1)), low=0.7)


def linear_axis(label: str, unit: Unit, most: float) -> Axis:
    """An axis from zero to slightly above the largest value."""
    return Axis(label, unit, 0.0, most * 1.06 if most > 0 else 1.0)


def rate_text(unit: Unit, value: float) -> str:
    """A rate, as in legends."""
    return f"{units.transferred(value)}/s" if unit is Unit.BYTES_PER_S and math.isfinite(value) else units.count(value)


def windows_text(found: Throughput) -> str:
    """The length of the windows, and how a partial last window is drawn."""
    text = f"windows of {units.span(found.window_s)}"
    if found.whole == found.windows:
        return text
    covered = float(found.edges_s[-1] - found.edges_s[-2])
    if found.windows == 1:
        return f"{text}; the only one covers {units.span(covered)}"
    shown = "dotted" if covered >= 0.5 * found.window_s else "not drawn"
    return f"{text}; the last covers {units.span(covered)} and is {shown}"


def cells_of(axis: Axis, count: int) -> Cells:
    """An axis divided into cells."""
    return Cells(axis.low, axis.high, count, axis.scale is Scale.LOG)


def measure_axis(study: Study, measure: Measure) -> Axis:
    """The axis of latencies or delays, in seconds."""
    values = study.pooled(measure)
    least, most = max(values.minimum / 1e9, measure.minimum_s), max(values.maximum / 1e9, 10 * measure.minimum_s)
    limit = study.verdict(measure).limit_s
    if most > limit / 3:
        # Include the limit if it is near; a distant one would take the space that the values need.
        most = max(most, limit)
    return log_axis(measure.name.capitalize(), Unit.SECONDS, least, most, values.minimum / 1e9)


def measure_legend(study: Study, found: Mapping[int, Distribution]) -> tuple[LegendRow, ...]:
    """A row for each series with its number of requests, average, percentiles and maximum."""
    shares = shares_of(study)
    return tuple(measure_row(*look(study, series), values, shares) for series, values in sorted(found.items()))


def measure_row(
    role: Role, label: str, values: Distribution, shares: Sequence[float], stroke: Stroke | None = None
) -> LegendRow:
    """The legend row of a distribution."""
    cells = (
        units.count(values.count),
        units.span(values.mean / 1e9),
        *(units.span(values.percentile(share) / 1e9) for share in shares),
        units.span(values.maximum / 1e9),
    )
    return LegendRow(role, label, cells, stroke)


def rate_row(role: Role, label: str, values: tuple[str, ...], stroke: Stroke = Stroke.SOLID) -> LegendRow:
    """A legend row for a line."""
    return LegendRow(role, label, values, stroke)


def cloud_parts(study: Study, found: Mapping[int, Density]) -> tuple[CloudPart, ...]:
    """The series of a cloud."""
    return tuple(
        CloudPart(*look(study, series), cells.columns, cells.rows, cells.counts)
        for series, cells in sorted(found.items())
    )


def verdict_note(study: Study, measure: Measure) -> Note:
    """The verdict in words; no verdict if the run's times say nothing about the device."""
    verdict = study.verdict(measure)
    text = f"{beyond_limit(verdict.beyond, verdict.limit_s, measure)} (max {units.span(verdict.maximum_s)})"
    if doubt := doubt_of(study):
        return Note(NoteKind.VERDICT, f"{text}. No verdict: {doubt}", Severity.NEUTRAL)
    head, severity = ("Passed", Severity.GOOD) if verdict.passed else ("Failed", Severity.BAD)
    return Note(NoteKind.VERDICT, f"{head}: {text[:1].lower()}{text[1:]}", severity)


@dataclass(frozen=True)
class Mark:
    """What shows a percentile: its name, and that of places where it is missing."""

    name: str
    gaps: str
    noun: str = "requests"


LINE = Mark("line", "gaps")


def gap_notes(found: Iterable[tuple[float, NDArray[np.float64]]], mark: Mark = LINE) -> tuple[Note, ...]:
    """Why percentiles, each with its values, have gaps or are missing; without a value where there is no request."""
    of: dict[float, list[NDArray[np.float64]]] = {}
    for share, values in found:
        of.setdefault(share, []).append(np.isnan(values))
    missing = {share: np.concatenate(parts) for share, parts in of.items()}
    gaps = [share for share, each in missing.items() if each.any() and not each.all()]
    nowhere = [share for share, each in missing.items() if len(each) and each.all()]
    texts = [f"{_needs(gaps, mark.noun)}; {mark.gaps} have fewer"] if gaps else []
    texts += [f"{_needs(nowhere, mark.noun)}: no {mark.name}"] if nowhere else []
    return tuple(Note(NoteKind.INFO, text) for text in texts)


def _needs(shares: Sequence[float], noun: str) -> str:
    """The numbers of requests that percentiles need: p50 needs at least 20 requests, p99 1,000."""
    first, *others = [(name_of(share), f"{round(MIN_BEYOND / (1 - share)):,}") for share in shares]
    return ", ".join((f"{first[0]} needs at least {first[1]} {noun}", *(f"{label} {n}" for label, n in others)))


def lineless_note(labels: Sequence[str], share: float) -> tuple[Note, ...]:
    """Which series have no line, as nowhere enough requests determine the percentile."""
    if not labels:
        return ()
    more = f" and {len(labels) - MAX_LINELESS} more" if len(labels) > MAX_LINELESS else ""
    text = f"No line for {', '.join(labels[:MAX_LINELESS])}{more}: {_needs([share], 'requests')}"
    return (Note(NoteKind.INFO, text),)


def verdict_rules(verdict: Verdict, measure: Measure, x: Axis, axis: Axis, *, at_times: bool) -> list[Rule]:
    """A rule at the limit if it is within the axis, and one at the first violation if the x axis is time."""
    rules = []
    if axis.low < verdict.limit_s < axis.high:
        role = Role.GOOD if verdict.passed else Role.BAD
        rules.append(Rule(role, Direction.HORIZONTAL, verdict.limit_s, f"{measure.name} limit"))
    if at_times and verdict.first_at_s is not None:
        rules.append(
            Rule(
                Role.BAD,
                Direction.VERTICAL,
                verdict.first_at_s,
                f"first above the limit, at {moment(x, verdict.first_at_s)}",
            )
        )
    return rules


def _round_down(value: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is not above the value."""
    return max(round_one for round_one in _round_numbers(value) if round_one <= value * (1 + 1e-9))


def _round_up(value: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that is not below the value."""
    return min(round_one for round_one in _round_numbers(value) if round_one >= value * (1 - 1e-9))


def _round_numbers(value: float) -> list[float]:
    """Round numbers around a value, whatever the rounding of its logarithm."""
    power = 10.0 ** math.floor(math.log10(value))
    return [step * power for step in (0.5, 1, 2, 5, 10, 20)]
