"""Several groups of runs side by side, with common axes: the first is what the others are held against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.overview import rates
from iosonar.diagrams.parts import linear_axis, log_axis, rate_row
from iosonar.diagrams.percentiles import quantile_curve
from iosonar.diagrams.study import LATENCY, Study
from iosonar.figures.model import Axis, Figure, Legend, Line, Role, Scale, Steps, Stroke, Unit
from iosonar.quantities.difference import SHARES, Difference

ROLES = (Role.ACTUAL, Role.READ, Role.DEMAND, Role.FAILED, Role.WRITE)
"""One for each side; so many can be told apart."""


@dataclass(frozen=True)
class Side:
    """A group of runs of the same thing, under a letter."""

    letter: str
    study: Study

    @property
    def name(self) -> str:
        """The letter and the files."""
        names = [file.name for file in self.study.requests.files]
        return f"{self.letter} · {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}"

    @property
    def runs(self) -> int:
        """How many runs it holds."""
        return len(self.study.requests.files)


def curves(sides: Sequence[Side]) -> Figure:
    """The latency that a share of the requests stays below, for each side."""
    layers, rows = [], []
    for role, side in zip(ROLES, sides, strict=False):
        values = side.study.pooled(LATENCY)
        x, y = quantile_curve(values)
        layers.append(Line(role, side.name, x, y))
        cells = tuple(units.seconds(values.quantile(share) / 1e9) for share in SHARES.values())
        rows.append(rate_row(role, side.name, (*cells, units.seconds(values.maximum / 1e9))))
    y_all = np.concatenate([layer.y for layer in layers])
    return Figure(
        "compare.latency",
        "c01",
        "Latency: how many are faster",
        _of(sides),
        Axis("Share of requests that are faster", Unit.ODDS, 1.0, max(float(line.x[-1]) for line in layers), Scale.LOG),
        log_axis("Latency", Unit.SECONDS, max(float(y_all.min()), 1e-7), max(float(y_all.max()), 1e-6)),
        tuple(layers),
        Legend((*SHARES, "max"), tuple(rows)),
    )


def changes(of: dict[str, list[Difference]], sides: Sequence[Side]) -> Figure | None:
    """By how much each quantile changed, and between which limits that is known."""
    layers: list[Line] = []
    rows = []
    for role, side in zip(ROLES[1:], sides[1:], strict=False):
        found = [each for each in of[side.letter] if each.metric in SHARES]
        if len(found) < 2:
            continue
        x = np.array([1 / (1 - SHARES[each.metric]) for each in found])
        label = f"{side.letter} against {sides[0].letter}"
        middle, low, high = (
            np.array([getattr(each, of_) for each in found]) * 100 for of_ in ("change", "low", "high")
        )
        layers.append(Line(role, label, x, middle))
        layers += [Line(role, f"{label}, 95 %", x, bound, Stroke.DASHED) for bound in (low, high)]
        rows += [rate_row(role, label, ()), rate_row(role, f"{label}, 95 %", (), Stroke.DASHED)]
    if not layers:
        return None
    every = np.concatenate([line.y for line in layers])
    low_y, high_y = min(float(every.min()), 0.0), max(float(every.max()), 0.0)
    room = 0.08 * max(high_y - low_y, 1.0)
    layers.append(Line(Role.FAINT, "no change", np.array([2.0, 1000.0]), np.zeros(2)))
    return Figure(
        "compare.change",
        "c02",
        "Change of latency, above 0 slower",
        _of(sides),
        Axis("Quantile of latency", Unit.ODDS, 1.9, 1050.0, Scale.LOG),
        Axis("Change", Unit.PERCENT, low_y - room, high_y + room),
        tuple(layers),
        Legend((), (*rows, rate_row(Role.FAINT, "no change", ()))),
    )


def over_time(sides: Sequence[Side], share: float, label: str) -> Figure:
    """One percentile of latency over time, for each side."""
    from iosonar.diagrams.percentiles import bands_over_time

    layers, rows = [], []
    for role, side in zip(ROLES, sides, strict=False):
        found = bands_over_time(side.study)
        y: NDArray[np.float64] = found.quantiles[share] / 1e9
        layers.append(Steps(role, side.name, found.edges, np.where(y > 0, y, np.nan)))
        rows.append(rate_row(role, side.name, ()))
    every = np.concatenate([layer.y for layer in layers])
    least, most = (float(np.nanmin(every)), float(np.nanmax(every))) if np.isfinite(every).any() else (1e-6, 1e-5)
    return Figure(
        f"compare.{label}",
        "c03",
        f"Latency over time: {label}",
        _of(sides),
        _time(sides),
        log_axis("Latency", Unit.SECONDS, max(least, 1e-7), max(most, 1e-6)),
        tuple(layers),
        Legend((), tuple(rows)),
    )


def delivered(sides: Sequence[Side]) -> Figure:
    """Throughput that was delivered over time, of one run on average."""
    layers, rows = [], []
    for role, side in zip(ROLES, sides, strict=False):
        found = side.study.throughput("completed_ns")
        if not found.windows:
            continue
        total = np.sum(list(found.requests.values()), axis=0)
        y = rates(total, found) / side.runs
        layers.append(Steps(role, side.name, found.edges_s, y, partial=found.windows - found.whole))
        mean = float(np.nanmean(y)) if np.isfinite(y).any() else math.nan
        rows.append(rate_row(role, side.name, (units.count(mean),)))
    most = max((float(np.nanmax(layer.y)) for layer in layers if np.isfinite(layer.y).any()), default=0.0)
    return Figure(
        "compare.throughput",
        "c05",
        "Throughput delivered",
        _of(sides),
        _time(sides),
        linear_axis("Throughput", Unit.REQUESTS_PER_S, most),
        tuple(layers),
        Legend(("avg",), tuple(rows)),
    )


def _of(sides: Sequence[Side]) -> str:
    return " · ".join(f"{side.name}, {side.study.span.requests:,} requests" for side in sides)


def _time(sides: Sequence[Side]) -> Axis:
    low, high = min(side.study.first_s for side in sides), max(side.study.last_s for side in sides)
    return Axis("Time", Unit.TIMELINE, low, low + max((high - low) * 1.01, 1e-3))
