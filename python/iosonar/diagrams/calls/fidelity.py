"""How well runs kept the times of calls: delay, and its ratio to the compute time of the trace."""

from __future__ import annotations

import math
from functools import partial

from iosonar import units
from iosonar.diagrams.calls.catalogue import CallDiagram, Part
from iosonar.diagrams.calls.parts import LEAST_S, Curve, curves, figure, info, share_axis
from iosonar.figures.model import Direction, Empty, Figure, Legend, Role, Rule, Unit
from iosonar.quantities.calls.fidelity import RATIO_UNIT, compute_time_errors
from iosonar.study.calls import CallSide, CallStudy

NO_RUN = "not a run"
NO_TIMES = "with asap timing, calls have no times to keep"
LISTED_US = (10, 25, 50)
INFLATED = 10.0
"""The percentage of the compute time that the paper on replay accuracy compares with."""


def delay(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """The distribution of issue − scheduled time, of calls that were not held back."""
    if not study.runs:
        return Empty(name, NO_RUN)
    timed = [side for side in study.runs if side.keeps_times]
    if not timed:
        return Empty(name, NO_TIMES)
    runs = [side for side in timed if side.delays.not_held_back.count]
    if not runs:
        return Empty(name, "all calls were held back")
    found = [Curve(_role(study, side), side.name, side.delays.not_held_back, _cells(side)) for side in runs]
    x, lines, rows = curves(found, "Delay", Unit.SECONDS, LEAST_S, 1e-9)
    rules = [
        Rule(Role.FAINT, Direction.VERTICAL, us / 1e6, f"{us} µs") for us in LISTED_US if x.low < us / 1e6 < x.high
    ]
    held = " · ".join(
        f"{units.counted(side.delays.held_back.count, 'call')} of {side.name} not counted: something held them"
        for side in runs
        if side.delays.held_back.count
    )
    return figure(
        study,
        name,
        rank,
        "Delay of calls",
        x,
        share_axis("Share of the calls that were not held back"),
        [*lines, *rules],
        Legend(("calls", "p50", "p90", "p99", *(f"≤ {us} µs" for us in LISTED_US)), rows),
        [info("Delay: issue time minus scheduled time"), *([info(held)] if held else [])],
    )


def _cells(side: CallSide) -> tuple[str, ...]:
    errors = side.delays
    quantiles = (units.span(errors.not_held_back.percentile(share) / 1e9) for share in (0.5, 0.9, 0.99))
    return (
        units.count(errors.not_held_back.count),
        *quantiles,
        *(units.percent(errors.within[us]) for us in LISTED_US),
    )


def _role(study: CallStudy, side: CallSide) -> Role:
    return Role.ACTUAL if study.is_single else side.role


def compute_time_error(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """The distribution of E / (B₂ − E₁): delay by the gap after the latest predecessor's end in the trace."""
    if not study.runs:
        return Empty(name, NO_RUN)
    timed = [side for side in study.runs if side.keeps_times]
    if not timed:
        return Empty(name, NO_TIMES)
    found = []
    for side in timed:
        values = side.cached("ratios", partial(compute_time_errors, side.table))
        if values.count:
            cells = (units.count(values.count), *(_percent(values.percentile(share)) for share in (0.5, 0.9, 0.99)))
            found.append(Curve(_role(study, side), side.name, values, cells))
    if not found:
        return Empty(name, "no call followed a gap in the trace")
    x, lines, rows = curves(found, "Delay / compute time", Unit.PERCENT, 1e-3, RATIO_UNIT * 100)
    rules = [Rule(Role.FAINT, Direction.VERTICAL, INFLATED, "10 %")] if x.low < INFLATED < x.high else []
    return figure(
        study,
        name,
        rank,
        "Compute time error ratio",
        x,
        share_axis("Share of the calls"),
        [*lines, *rules],
        Legend(("calls", "p50", "p90", "p99"), rows),
        [info("Compute time: in the trace, from the end of the latest predecessor to the start of the call")],
    )


def _percent(millionths: float) -> str:
    return f"{units.number(millionths * RATIO_UNIT * 100)} %" if math.isfinite(millionths) else "–"


DIAGRAMS = [
    CallDiagram(name, rank, Part.FIDELITY, partial(build, name=name, rank=rank))
    for name, rank, build in (("delay", "f13", delay), ("compute_error", "f14", compute_time_error))
]
