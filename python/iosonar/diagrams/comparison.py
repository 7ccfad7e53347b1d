"""Diagrams of several groups of runs with common axes, compared with the first group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.overview import rates
from iosonar.diagrams.parts import MIN_AXIS_S, gap_notes, linear_axis, log_axis, rate_row, shares_of
from iosonar.diagrams.percentiles import quantile_curve
from iosonar.figures.model import (
    Axis,
    Figure,
    Legend,
    LegendRow,
    Line,
    Note,
    NoteKind,
    Role,
    Scale,
    Severity,
    Steps,
    Stroke,
    Unit,
)
from iosonar.quantities.blocks import rates as rates_of_blocks
from iosonar.quantities.difference import SHARES, Difference
from iosonar.quantities.percentiles import name_of, share_of
from iosonar.study.requests import LATENCY, Study
from iosonar.study.steady import bands_over_time
from iosonar.table import SourceFile

ROLES = (Role.ACTUAL, Role.READ, Role.DEMAND, Role.FAILED, Role.WRITE)
"""One for each side; more could not be distinguished."""

STROKES = (Stroke.SOLID, Stroke.DASHED, Stroke.DOTTED, Stroke.DASHED, Stroke.DOTTED)
"""Where the sides can be equal, so that none hides another."""

BESIDE = 1.12
"""Factor between the bars of two sides."""

Values = NDArray[np.float64]

ARROW = 0.04
"""The height of an arrow, as a share of the highest change drawn."""

CAP = 1.03
"""Half the width of the line at a bar's end, as a factor."""


@dataclass(frozen=True)
class Side:
    """A group of runs of the same experiment, with a letter."""

    letter: str
    study: Study

    @property
    def name(self) -> str:
        """The letter and the files."""
        return side_name(self.letter, self.study.requests.files)

    @property
    def is_original(self) -> bool:
        """Whether it is the load that the other sides replayed."""
        return not self.study.requests.is_run

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.study.requests.files)


def side_name(letter: str, files: Sequence[SourceFile]) -> str:
    """The letter and the files of a side, of requests or of calls."""
    return f"{letter} · {files[0].name}{f' and {len(files) - 1} more' if len(files) > 1 else ''}"


def curves(sides: Sequence[Side]) -> Figure:
    """The latency below which a share of the requests stays, for each side."""
    layers, rows = [], []
    shares = shares_of(sides[0].study, SHARES)
    for role, side in zip(ROLES, sides, strict=False):
        values = side.study.pooled(LATENCY)
        x, y = quantile_curve(values)
        layers.append(Line(role, side.name, x, y))
        cells = tuple(units.span(values.percentile(share) / 1e9) for share in shares)
        rows.append(rate_row(role, side.name, (*cells, units.span(values.maximum / 1e9))))
    y_all = np.concatenate([layer.y for layer in layers])
    return Figure(
        "compare.latency",
        "c01",
        "Latency distribution",
        of_sides(sides),
        Axis("Share of requests that are faster", Unit.ODDS, 1.0, max(float(line.x[-1]) for line in layers), Scale.LOG),
        log_axis("Latency", Unit.SECONDS, max(float(y_all.min()), 1e-7), max(float(y_all.max()), 1e-6)),
        tuple(layers),
        Legend((*map(name_of, shares), "max"), tuple(rows)),
        _stamps(sides),
    )


def changes(of: dict[str, list[Difference]], sides: Sequence[Side]) -> Figure | None:
    """The change of each quantile, with its interval."""
    bars: list[tuple[Role, str, Values, Values, Values, Values]] = []
    rows: list[LegendRow] = []
    metrics: tuple[str, ...] = ()
    for role, side in zip(ROLES[1:], sides[1:], strict=False):
        found = [each for each in of[side.letter] if share_of(each.metric)]
        if len(found) < 2:
            continue
        x = np.array([1 / (1 - (share_of(each.metric) or 0.0)) for each in found])
        label = f"{side.letter} against {sides[0].letter}, 95 % interval"
        middle, low, high = (
            np.array([getattr(each, of_) for each in found]) * 100 for of_ in ("change", "low", "high")
        )
        # Bars of several sides are adjacent.
        x = x * BESIDE ** (len(rows) - (len(sides) - 2) / 2)
        bars.append((role, label, x, middle, low, high))
        rows.append(rate_row(role, label, tuple(units.change_or_factor(each.change) for each in found)))
        metrics = metrics or tuple(each.metric for each in found)
    if not bars:
        return None
    top = _top([middle for _, _, _, middle, _, _ in bars], [high for *_, high in bars])
    layers = [Line(role, label, *error_bars(x, middle, low, high, top)) for role, label, x, middle, low, high in bars]
    ends = (
        min(1.75, *(0.875 * float(x.min()) for _, _, x, *_ in bars)),
        max(1150.0, *(1.15 * float(x.max()) for _, _, x, *_ in bars)),
    )
    every = np.concatenate([line.y for line in layers])
    low_y, high_y = min(float(np.nanmin(every)), 0.0), max(float(np.nanmax(every)), 0.0)
    room = 0.08 * max(high_y - low_y, 1.0)
    layers.append(Line(Role.FAINT, "no change", np.array(ends), np.zeros(2)))
    return Figure(
        "compare.change",
        "c02",
        "Change in latency: above 0 is slower",
        of_sides(sides),
        Axis("Quantile of latency", Unit.ODDS, *ends, Scale.LOG),
        Axis("Change", Unit.PERCENT, low_y - room, high_y + room),
        tuple(layers),
        Legend(metrics, (*rows, rate_row(Role.FAINT, "no change", ()))),
        _stamps(sides),
    )


def _top(middles: Sequence[NDArray[np.float64]], highs: Sequence[NDArray[np.float64]]) -> float:
    """The highest change that is drawn: one wide interval does not flatten the others."""
    middle, high = np.concatenate(middles), np.concatenate(highs)
    top = max(100.0, 2 * float(np.median(np.abs(high))), 1.5 * float(middle.max()))
    # Nearly all of an interval is as good as the whole.
    return top if float(high.max()) > 1.5 * top else math.inf


def error_bars(
    x: NDArray[np.float64],
    middle: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    top: float = math.inf,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Error bars on a logarithmic axis: the interval of each value, with a cross line at both limits and at the value.

    As one line with gaps: nothing is known between the values, so nothing is drawn there. An interval beyond `top`
    ends there with an arrow.
    """
    gap = np.full(len(x), np.nan)
    end = np.minimum(high, top)
    edge = np.where(high > top, end - ARROW * abs(top), end) if math.isfinite(top) else end
    strokes = [
        (x, x, low, end),
        *((x / width, x * width, at, at) for at, width in ((low, CAP), (middle, CAP**2))),
        (x / CAP, x, edge, end),
        (x, x * CAP, end, edge),
    ]
    xs = np.column_stack([part for left, right, _, _ in strokes for part in (left, right, gap)])
    ys = np.column_stack([part for _, _, one, two in strokes for part in (one, two, gap)])
    return xs.ravel(), ys.ravel()


def over_time(sides: Sequence[Side], share: float) -> Figure | None:
    """A percentile of latency over time, for each side; None if no slice of time has enough requests."""
    layers, rows, label = [], [], name_of(share)
    for role, side in zip(ROLES, sides, strict=False):
        found = bands_over_time(side.study)
        y: NDArray[np.float64] = found.quantiles[share] / 1e9
        layers.append(Steps(role, side.name, found.edges, np.where(y > 0, y, np.nan)))
        rows.append(rate_row(role, side.name, ()))
    every = np.concatenate([layer.y for layer in layers])
    if not (every > 0).any():
        return None
    least, most = float(np.nanmin(every)), float(np.nanmax(every))
    return Figure(
        f"compare.{label}",
        "c03",
        f"Latency over time: {label}",
        of_sides(sides),
        time_of_sides(sides),
        log_axis("Latency", Unit.SECONDS, max(least, 1e-7), max(most, 1e-6)),
        tuple(layers),
        Legend((), tuple(rows)),
        (*gap_notes([(share, every)]), *_stamps(sides)),
    )


def delivered(sides: Sequence[Side]) -> Figure:
    """Completed throughput over time, as a mean over the runs of a side."""
    layers: list[Steps] = []
    rows: list[LegendRow] = []
    for role, side in zip(ROLES, sides, strict=False):
        found = side.study.throughput("completed_ns")
        if not found.windows:
            continue
        total = np.sum(list(found.requests.values()), axis=0)
        y = rates(total, found) / side.runs
        stroke = STROKES[len(rows)]
        layers.append(Steps(role, side.name, found.edges_s, y, stroke, partial=found.windows - found.whole))
        rows.append(rate_row(role, side.name, (units.count(_rate(side)),), stroke))
    most = max((float(np.nanmax(layer.y)) for layer in layers if np.isfinite(layer.y).any()), default=0.0)
    return Figure(
        "compare.throughput",
        "c05",
        "Throughput delivered",
        of_sides(sides),
        time_of_sides(sides),
        linear_axis("Throughput", Unit.REQUESTS_PER_S, most),
        tuple(layers),
        Legend(("avg",), tuple(rows)),
        _stamps(sides),
    )


def _stamps(sides: Sequence[Side]) -> tuple[Note, ...]:
    """The stamp of a picture with a fake result."""
    is_fake = any(file.fake for side in sides for file in side.study.requests.files)
    return (Note(NoteKind.STAMP, "FAKE RESULT", Severity.BAD),) if is_fake else ()


def _rate(side: Side) -> float:
    """The mean of the rates of a side's runs, each as the run counts it."""
    table = side.study.table
    found = [rates_of_blocks(table.filter(table.source == index)) for index in range(side.runs)]
    return float(np.mean([run.mean() for run in found if len(run)] or [0.0]))


def of_sides(sides: Sequence[Side]) -> str:
    """The sides and their numbers of requests."""
    return " · ".join(f"{side.name}, {side.study.span.requests:,} requests" for side in sides)


def time_of_sides(sides: Sequence[Side]) -> Axis:
    """An axis of the time of all sides."""
    low, high = min(side.study.first_s for side in sides), max(side.study.last_s for side in sides)
    return Axis("Time", Unit.TIMELINE, low, low + max((high - low) * 1.01, MIN_AXIS_S))
