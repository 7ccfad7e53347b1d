"""What diagrams of several families are made of: axes that fit, series with their roles, rows of the legend."""

from __future__ import annotations

import math
from dataclasses import replace

from iosonar import units
from iosonar.diagrams.study import Measure, Study
from iosonar.figures.model import (
    Axis,
    CloudPart,
    Direction,
    LegendRow,
    Mood,
    Note,
    NoteKind,
    Role,
    Rule,
    Scale,
    Stroke,
    Unit,
)
from iosonar.quantities.density import Cells, Density
from iosonar.quantities.distribution import Distribution
from iosonar.quantities.series import Series
from iosonar.quantities.verdict import Verdict

ROLES = {
    Series.READ: Role.READ,
    Series.WRITE: Role.WRITE,
    Series.PUSHED_READ: Role.PUSHED_READ,
    Series.PUSHED_WRITE: Role.PUSHED_WRITE,
    Series.OTHER: Role.OTHER,
    Series.FAILED: Role.FAILED,
}

VALUE_COLUMNS = ("requests", "avg", "p99", "max")


def time_axis(study: Study, label: str) -> Axis:
    """From the first to the last moment of a study, with a little room behind it."""
    low, high = study.first_s, study.last_s
    return Axis(label, Unit.TIMELINE, low, low + max((high - low) * 1.01, 1e-3))


def log_axis(label: str, unit: Unit, least: float, most: float) -> Axis:
    """A logarithmic axis that holds both values, with its ends at 1, 2 or 5 of a decade and at least a decade long."""
    low, high = _round_down(least), _round_up(most * 1.05)
    if high / low < 10:
        low, high = _round_down(math.sqrt(low * high / 10)), _round_up(math.sqrt(low * high * 10))
    return Axis(label, unit, low, high, Scale.LOG)


def count_axis(label: str, unit: Unit, most: float) -> Axis:
    """A logarithmic axis of numbers from 1 to `most`; begins below 1, so that a single one doesn't lie on the frame."""
    return replace(log_axis(label, unit, 1, max(most, 1)), low=0.7)


def linear_axis(label: str, unit: Unit, most: float) -> Axis:
    """From zero to a little above the largest value."""
    return Axis(label, unit, 0.0, most * 1.06 if most > 0 else 1.0)


def cells_of(axis: Axis, count: int) -> Cells:
    """An axis cut into cells."""
    return Cells(axis.low, axis.high, count, axis.scale is Scale.LOG)


def measure_axis(study: Study, measure: Measure) -> Axis:
    """The axis of latencies or delays, in seconds."""
    values = study.pooled(measure)
    least, most = max(values.minimum / 1e9, measure.least_s), max(values.maximum / 1e9, 10 * measure.least_s)
    limit = study.verdict(measure).limit_s
    if most > limit / 3:
        # Near the limit its line is shown; far below it, it would only cost the room that the values need.
        most = max(most, limit)
    return log_axis(measure.name.capitalize(), Unit.SECONDS, least, most)


def measure_legend(found: dict[Series, Distribution]) -> tuple[LegendRow, ...]:
    """A row for each series with its number of requests, average, 99th percentile and maximum."""
    return tuple(measure_row(ROLES[series], series.title, values) for series, values in sorted(found.items()))


def measure_row(role: Role, label: str, values: Distribution, stroke: Stroke | None = None) -> LegendRow:
    """The row of one of them."""
    cells = (
        units.count(values.count),
        units.seconds(values.mean / 1e9),
        units.seconds(values.quantile(0.99) / 1e9),
        units.seconds(values.maximum / 1e9),
    )
    return LegendRow(role, label, cells, stroke)


def rate_row(role: Role, label: str, values: tuple[str, ...], stroke: Stroke = Stroke.SOLID) -> LegendRow:
    """A row for a line."""
    return LegendRow(role, label, values, stroke)


def cloud_parts(found: dict[Series, Density]) -> tuple[CloudPart, ...]:
    """The series of a cloud in the order in which they lie over each other."""
    return tuple(
        CloudPart(ROLES[series], series.title, cells.columns, cells.rows, cells.counts)
        for series, cells in sorted(found.items())
    )


def verdict_note(verdict: Verdict, measure: Measure) -> Note:
    """The verdict in words."""
    limit, most = units.seconds(verdict.limit_s), units.seconds(verdict.maximum_s)
    if verdict.passed:
        return Note(NoteKind.VERDICT, f"Passed: no {measure.plural} beyond {limit} (max = {most})", Mood.GOOD)
    return Note(
        NoteKind.VERDICT, f"Failed: {verdict.beyond:,} {measure.plural} beyond {limit} (max = {most})", Mood.BAD
    )


def verdict_rules(verdict: Verdict, measure: Measure, axis: Axis, *, at_times: bool) -> list[Rule]:
    """The limit as a line where it is within the axis, and the time of the first offender where the x axis is time."""
    rules = []
    if axis.low < verdict.limit_s < axis.high:
        role = Role.GOOD if verdict.passed else Role.BAD
        rules.append(Rule(role, Direction.HORIZONTAL, verdict.limit_s, f"bad {measure.name}"))
    if at_times and verdict.first_at_s is not None:
        rules.append(
            Rule(
                Role.BAD,
                Direction.VERTICAL,
                verdict.first_at_s,
                f"first beyond, at {units.seconds(verdict.first_at_s, 5)}",
            )
        )
    return rules


def _round_down(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return max(step * power for step in (1, 2, 5) if step * power <= value * (1 + 1e-9))


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return min(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))
