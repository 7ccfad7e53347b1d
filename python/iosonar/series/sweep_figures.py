"""The figures of a sweep: response time over throughput with the knee, and both over what was varied."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from iosonar import units
from iosonar.diagrams.parts import linear_axis, log_axis
from iosonar.figures.model import (
    Axis,
    Direction,
    Figure,
    Layer,
    Legend,
    LegendRow,
    Line,
    Note,
    NoteKind,
    Role,
    Rule,
    Scale,
    Stroke,
    Unit,
)
from iosonar.series.knee import ENOUGH, Depths, depths, is_at_end, knee
from iosonar.series.notes import fake_notes, fidelity_notes, too_few_notes, unfilled_notes
from iosonar.series.result import Result
from iosonar.series.sweep import SweepVariable

Value = Callable[[Result], float]

TIMES: tuple[tuple[str, Role, Value], ...] = (
    ("mean", Role.ALL, lambda each: each.response_mean_s),
    ("median", Role.READ, lambda each: each.response_median_s),
    ("p99", Role.DEVICE_1, lambda each: each.response_p99_s),
)
ROOM_FOR_NAMES = 1.06
"""Above the highest point, so that a flat curve does not cross the names of rules."""

UNFAITHFUL = "replay not faithful"
NAMES = {SweepVariable.DEPTH: "Queue depth", SweepVariable.RATE: "Demanded rate", SweepVariable.SPAN: "Working set"}
UNITS = {SweepVariable.DEPTH: Unit.REQUESTS, SweepVariable.RATE: Unit.REQUESTS_PER_S, SweepVariable.SPAN: Unit.BYTES}

NAMED_APART = 0.04
"""Values are the ticks of their axis, if they are at least this share of it apart."""


def figures(of: str, vary: SweepVariable, results: Sequence[Result]) -> tuple[Figure, ...]:
    """All figures of a sweep, the most interesting first."""
    if vary is SweepVariable.SPAN:
        return (_over_value(of, vary, results, "g01"),)
    return (_curve(of, vary, results), _throughput(of, vary, results), _over_value(of, vary, results, "g03"))


def text_of(vary: SweepVariable, value: float) -> str:
    """A value of what was varied, for people."""
    if vary is SweepVariable.SPAN:
        return units.binary_bytes(value)
    return units.count(value)


def knee_text(vary: SweepVariable, results: Sequence[Result]) -> str | None:
    """A sentence about the knee, for sweeps that can have one."""
    found = knee(results) if vary is not SweepVariable.SPAN else None
    if found is None:
        return None
    text = (
        f"Knee at {vary} {text_of(vary, found.value)}: {units.count(found.rate)} requests/s with a mean response time "
        f"of {units.span(found.response_mean_s)}, the greatest throughput / response time"
    )
    return (
        f"{text}; it is the {_end(found, results)} point, so a wider sweep may find another"
        if is_at_end(found, results)
        else text
    )


def depth_text(results: Sequence[Result]) -> str | None:
    """A sentence about the optimum depth."""
    found = depths(results)
    if found is None:
        return None
    return (
        f"Optimum depth {found.optimum.value:g}: the least with {ENOUGH * 100:g} % of the best throughput, "
        f"{units.count(found.best.rate)} requests/s at depth {found.best.value:g}"
    )


def _end(point: Result, results: Sequence[Result]) -> str:
    return "first" if point.value <= min(each.value for each in results if each.counts) else "last"


def _curve(of: str, vary: SweepVariable, results: Sequence[Result]) -> Figure:
    rates = np.array([each.rate for each in results])
    layers, rows = _times(results, rates)
    best = knee(results)
    if best is not None:
        label = f"knee: {vary} {text_of(vary, best.value)}"
        at = np.array([best.rate]), np.array([best.response_mean_s])
        layers += [Rule(Role.GOOD, Direction.VERTICAL, best.rate, label), Line(Role.GOOD, "knee", *at, marks=True)]
    return Figure(
        "sweep.curve",
        "g01",
        "Response time over throughput",
        of,
        linear_axis("Completed requests", Unit.REQUESTS_PER_S, float(rates.max())),
        _time_axis(results),
        tuple(layers),
        Legend((f"at {vary} {text_of(vary, results[0].value)}", f"at {text_of(vary, results[-1].value)}"), rows),
        _notes(results, knee_text(vary, results)),
    )


def _throughput(of: str, vary: SweepVariable, results: Sequence[Result]) -> Figure:
    values = np.array([each.value for each in results])
    rates = np.array([each.rate for each in results])
    layers: list[Layer] = [Line(Role.ACTUAL, "completed", values, rates, marks=True)]
    rows = [LegendRow(Role.ACTUAL, "completed", (units.count(float(rates.max())),), Stroke.SOLID)]
    if vary is SweepVariable.RATE:
        layers.insert(0, Line(Role.DEMAND, "demanded", values, values, Stroke.DASHED))
        rows.insert(0, LegendRow(Role.DEMAND, "demanded", (units.count(float(values.max())),), Stroke.DASHED))
    rules: tuple[Rule, ...] = ()
    text = knee_text(vary, results)
    if vary is SweepVariable.DEPTH:
        found = depths(results)
        rules, text = _depth_rules(found), depth_text(results)
    _add_unfaithful(layers, rows, results, values, lambda each: each.rate)
    most = float(max(rates.max(), values.max() if vary is SweepVariable.RATE else 0))
    return Figure(
        "sweep.throughput",
        "g02",
        "Throughput over queue depth" if vary is SweepVariable.DEPTH else "Completed over demanded requests",
        of,
        _value_axis(vary, results),
        linear_axis("Completed requests", Unit.REQUESTS_PER_S, ROOM_FOR_NAMES * most),
        (*layers, *rules),
        Legend(("most",), tuple(rows)),
        _notes(results, text),
    )


def _depth_rules(found: Depths | None) -> tuple[Rule, ...]:
    if found is None:
        return ()
    if found.optimum is found.best:
        return (Rule(Role.GOOD, Direction.VERTICAL, found.best.value, f"optimum and best: {found.best.value:g}"),)
    return (
        Rule(Role.GOOD, Direction.VERTICAL, found.optimum.value, f"optimum: {found.optimum.value:g}"),
        Rule(Role.FAINT, Direction.VERTICAL, found.best.value, f"best: {found.best.value:g}"),
    )


def _over_value(of: str, vary: SweepVariable, results: Sequence[Result], rank: str) -> Figure:
    values = np.array([each.value for each in results])
    layers, rows = _times(results, values)
    return Figure(
        "sweep.response",
        rank,
        f"Response time over {NAMES[vary].lower()}",
        of,
        _value_axis(vary, results),
        _time_axis(results),
        tuple(layers),
        Legend((f"at {text_of(vary, results[0].value)}", f"at {text_of(vary, results[-1].value)}"), rows),
        _notes(results, None),
    )


def _times(results: Sequence[Result], x: np.ndarray) -> tuple[list[Layer], tuple[LegendRow, ...]]:
    """A line for each response time, and marks on what was not faithful."""
    layers: list[Layer] = []
    rows = []
    for label, role, value in TIMES:
        y = np.array([value(each) for each in results])
        layers.append(Line(role, label, x, y, marks=True))
        rows.append(LegendRow(role, label, (units.span(float(y[0])), units.span(float(y[-1]))), Stroke.SOLID))
    _add_unfaithful(layers, rows, results, x, lambda each: each.response_mean_s)
    return layers, tuple(rows)


def _add_unfaithful(
    layers: list[Layer], rows: list[LegendRow], results: Sequence[Result], x: np.ndarray, value: Value
) -> None:
    wrong = [(at, value(each)) for at, each in zip(x, results, strict=True) if not each.faithful]
    if not wrong:
        return
    # Gaps between the points: only their marks are drawn.
    points = np.array([pair for each in wrong for pair in (each, (math.nan, math.nan))])
    layers.append(Line(Role.BAD, UNFAITHFUL, points[:, 0], points[:, 1], marks=True))
    rows.append(LegendRow(Role.BAD, UNFAITHFUL, (units.counted(len(wrong), "point"), ""), Stroke.SOLID))


def _time_axis(results: Sequence[Result]) -> Axis:
    every = [value(each) for each in results for _, _, value in TIMES]
    known = [value for value in every if value > 0] or [1e-6]
    return log_axis("Response time", Unit.SECONDS, max(0.9 * min(known), 1e-7), max(known))


def _value_axis(vary: SweepVariable, results: Sequence[Result]) -> Axis:
    values = [each.value for each in results]
    if vary is SweepVariable.RATE:
        return linear_axis(NAMES[vary], UNITS[vary], max(values))
    room = 1.15 * (max(values) / min(values)) ** 0.02
    axis = Axis(NAMES[vary], UNITS[vary], min(values) / room, max(values) * room, Scale.LOG)
    named: list[tuple[float, str]] = []
    for value in values:
        if not named or axis.share(value) - axis.share(named[-1][0]) >= NAMED_APART:
            named.append((value, text_of(vary, value)))
    return replace(axis, named=tuple(named))


def _notes(results: Sequence[Result], text: str | None) -> tuple[Note, ...]:
    found = (Note(NoteKind.VERDICT, text),) if text else ()
    doubts = (*fidelity_notes(results), *unfilled_notes(results))
    return (*doubts, *found, *too_few_notes(results), *fake_notes(results))
