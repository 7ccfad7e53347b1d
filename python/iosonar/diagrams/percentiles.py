"""Percentiles of latency: over time, by size, position and depth, and from the scheduled time beside from the issue."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams import devices
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import log_axis, look, max_depth_of, rate_row, time_axis
from iosonar.diagrams.study import LATENCY, Study
from iosonar.figures.model import (
    Axis,
    Direction,
    Empty,
    Figure,
    Legend,
    Line,
    Note,
    NoteKind,
    Role,
    Rule,
    Scale,
    Severity,
    Steps,
    Unit,
)
from iosonar.quantities.address import transfers
from iosonar.quantities.bands import Bands, bands
from iosonar.quantities.density import Cells
from iosonar.quantities.depth import with_depth
from iosonar.quantities.distribution import Distribution, distributions, pooled
from iosonar.quantities.steady import MIN_RATIO, MIN_VALUES, drift_of, steady_from
from iosonar.thresholds import MIN_BEYOND

if TYPE_CHECKING:
    import ibis.expr.types as ir

SHARES = {0.5: Role.ORDER_1, 0.9: Role.ORDER_2, 0.99: Role.ORDER_3, 0.999: Role.ORDER_4, 0.9999: Role.ORDER_5}
FEWEST_DRAWN, MOST_SLICES = 10, 180
STEADY_SLICES = 20
"""The fewest slices from which to determine whether a run was steady."""
REQUESTS_IN_A_SLICE = 1000
"""The fewest requests per slice on average, so that a 99th percentile is meaningful."""

LEAST_SLICES = 2 * MIN_VALUES
"""The fewest slices with requests from which to determine whether a run was steady."""

REGIONS = 120
SECTOR_BYTES = 512


def over_time(study: Study, name: str, rank: str) -> Figure | Empty:
    """Percentiles of latency in slices of time, and the time from which the run was steady."""
    if not study.distribution(LATENCY):
        return Empty(name, "no latencies in the file")
    if study.options.each_device:
        return devices.over_time(study, name, rank)
    found = bands_over_time(study)
    steady_s, note = steady(study)
    rules = (
        ()
        if steady_s is None or steady_s <= study.first_s
        else (Rule(Role.GOOD, Direction.VERTICAL, steady_s, "steady from here"),)
    )
    slice_s = (study.last_s - study.first_s) / len(found.counts)
    figure = _banded(study, found, time_axis(study, "Issue time"), "over time", name, rank)
    if isinstance(figure, Empty):
        return figure
    of = f"{study.of} · slices of {units.span(slice_s)}"
    return Figure(
        name, rank, figure.title, of, figure.x, figure.y, (*figure.layers, *rules), figure.legend, (*figure.notes, note)
    )


def bands_over_time(study: Study) -> Bands:
    """The percentiles of latency in slices of the whole duration."""
    return _bands_over_time(study, FEWEST_DRAWN)


def _bands_over_time(study: Study, least: int) -> Bands:
    slices = min(max(study.span.completed // REQUESTS_IN_A_SLICE, least), MOST_SLICES)
    cells = Cells(study.first_s, max(study.last_s, study.first_s + 1e-9), slices)
    table = study.table
    return study.once(
        ("bands", slices), lambda: bands(table, table.issued_ns / 1e9, table.latency_ns, cells, list(SHARES))
    )


def steady(study: Study) -> tuple[float | None, Note]:
    """The time in seconds from which the run was steady, by the mean logarithm of slices, and a note about it."""
    found = _bands_over_time(study, STEADY_SLICES)
    # With a coarse clock, latencies may be zero: count at least a nanosecond.
    means = np.log(np.maximum(found.mean, 1.0))
    if np.isfinite(means).sum() < LEAST_SLICES:
        return None, Note(NoteKind.VERDICT, "Too short to tell whether latency was steady", Severity.NEUTRAL)
    start = steady_from(means)
    if start is None:
        return None, Note(
            NoteKind.VERDICT, "Not steady: latency was still changing when the run ended", Severity.WARNING
        )
    at = float(found.edges[start])
    if drift := drift_of(means[start:]):
        since, times = units.span(float(found.edges[start + drift.at])), units.number(math.exp(drift.by), 2)
        text = f"Not steady: from {since} on, latency was {times} times as high as before on average"
        return None, Note(NoteKind.VERDICT, text, Severity.WARNING)
    took, whole = at - study.first_s, study.last_s - study.first_s
    if took * MIN_RATIO > whole:
        text = f"Steady from {units.span(at)} on: a run should last {MIN_RATIO:g} times as long as its warm-up"
        return at, Note(NoteKind.VERDICT, text, Severity.WARNING)
    text = f"Steady from {units.span(at)} on" if took else "Steady throughout: no warm-up, no drift"
    return at, Note(NoteKind.VERDICT, text, Severity.GOOD)


def by_size(study: Study, name: str, rank: str) -> Figure | Empty:
    """Percentiles of latency by the length of requests."""
    if not study.distribution(LATENCY):
        return Empty(name, "no latencies in the file")
    table = study.table.filter(study.table.sectors > 0)
    longest = table.aggregate(most=table.sectors.max()).to_pyarrow()["most"][0].as_py()
    if longest is None:
        return Empty(name, "no request transfers data")
    # Cells of half a power of two, so that sizes that are powers of two are in the middle of a cell.
    count = 2 * math.ceil(math.log2(longest) + 0.5) + 1
    cells = Cells(2**-0.25, 2 ** (count / 2 - 0.25), count, logarithmic=True)
    x = Axis("Request size", Unit.BYTES, cells.low * SECTOR_BYTES, cells.high * SECTOR_BYTES, Scale.LOG)
    return _lines(study, table, table.sectors, cells, x, "by request size", name, rank, SECTOR_BYTES)


def by_region(study: Study, name: str, rank: str) -> Figure | Empty:
    """Percentiles of latency by position on the device."""
    if not study.distribution(LATENCY):
        return Empty(name, "no latencies in the file")
    table = transfers(study.table)
    last = table.aggregate(most=table.end_sector.max()).to_pyarrow()["most"][0].as_py()
    if last is None:
        return Empty(name, "no request transfers data")
    cells = Cells(0.0, float(last), REGIONS)
    x = Axis("Position", Unit.BYTES, 0.0, float(last) * SECTOR_BYTES)
    return _lines(study, table, table.sector, cells, x, "by position", name, rank, SECTOR_BYTES)


def by_depth(study: Study, name: str, rank: str) -> Figure | Empty:
    """Percentiles of latency by the number of requests in flight at issue."""
    if not study.distribution(LATENCY):
        return Empty(name, "no latencies in the file")
    table: ir.Table = study.once("depth", lambda: with_depth(study.table))
    deepest = max_depth_of(study, table)
    count = min(deepest, REGIONS)
    cells = Cells(0.5, deepest + 0.5, count)
    x = Axis("Requests in flight at issue", Unit.REQUESTS, cells.low, cells.high, whole=True)
    return _lines(study, table, table.depth, cells, x, "by requests in flight at issue", name, rank)


def _lines(
    study: Study,
    table: ir.Table,
    at: ir.NumericColumn,
    cells: Cells,
    x: Axis,
    words: str,
    name: str,
    rank: str,
    factor: float = 1.0,
) -> Figure | Empty:
    """A line for each percentile, or for each device."""
    if study.options.each_device:
        found = devices.bands_by_device(study, table, at, cells)
        return devices.device_lines(study, found, x, f"Latency {words}", name, rank, factor)
    return _banded(study, bands(table, at, table.latency_ns, cells, list(SHARES)), x, words, name, rank, factor)


def _banded(
    study: Study, found: Bands, x: Axis, words: str, name: str, rank: str, factor: float = 1.0
) -> Figure | Empty:
    """A line for each percentile; `factor` converts the unit of the cells to that of the axis."""
    if all(np.isnan(quantiles).all() for quantiles in found.quantiles.values()):
        return Empty(name, f"too few requests: p50 needs {2 * MIN_BEYOND}, p99 needs 1,000")
    everything = study.pooled(LATENCY)
    layers = [
        Steps(role, _title(share), found.edges * factor, found.quantiles[share] / 1e9) for share, role in SHARES.items()
    ]
    shown = np.concatenate([layer.y for layer in layers])
    shown = shown[~np.isnan(shown)]
    least, most = max(float(shown.min()), 1e-7), float(shown.max())
    rows = [
        rate_row(role, _title(share), (units.span(everything.percentile(share) / 1e9),))
        for share, role in SHARES.items()
    ]
    return Figure(
        name,
        rank,
        f"Percentiles of latency {words}",
        study.of,
        x,
        log_axis("Latency", Unit.SECONDS, least, max(most, 1e-6)),
        tuple(layers),
        Legend(("overall",), tuple(rows)),
        common_notes(study),
    )


def _title(share: float) -> str:
    return f"p{units.number(share * 100, 6)}"


def from_scheduled(study: Study, name: str, rank: str) -> Figure | Empty:
    """Each percentile of latency from the issue, and from the scheduled time.

    What a user feels is the second; they part where requests had to wait before they were issued.
    """
    if not study.distribution(LATENCY):
        return Empty(name, "no latencies in the file")
    table = study.table
    by_series = distributions(table, table.completed_ns - table.scheduled_ns)
    scheduled = pooled(list(by_series.values()))
    each_device = study.options.each_device
    lines = (
        [(*look(study, series), values) for series, values in sorted(by_series.items())]
        if each_device
        else [
            (Role.DEMAND, "From scheduled time", scheduled),
            (Role.ACTUAL, "From issue time", study.pooled(LATENCY)),
        ]
    )
    layers = [Line(role, label, *quantile_curve(values)) for role, label, values in lines]
    rows = [
        rate_row(
            role,
            label,
            (
                *(units.span(values.percentile(share) / 1e9) for share in (0.5, 0.99, 0.999)),
                units.span(values.maximum / 1e9),
            ),
        )
        for role, label, values in lines
    ]
    values = np.concatenate([layer.y for layer in layers])
    return Figure(
        name,
        rank,
        "Latency from scheduled time" if each_device else "Latency from issue time and from scheduled time",
        study.of,
        Axis("Share of requests that are faster", Unit.ODDS, 1.0, float(max(layers[0].x[-1], 10.0)), Scale.LOG),
        log_axis("Latency", Unit.SECONDS, max(float(values.min()), 1e-7), max(float(values.max()), 1e-6)),
        tuple(layers),
        Legend(("p50", "p99", "p99.9", "max"), tuple(rows)),
        common_notes(study),
    )


def quantile_curve(values: Distribution) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Odds (one in N is slower) and latencies in seconds, in ascending order, as long as enough requests are slower."""
    odds = np.geomspace(1.0, max(values.count / MIN_BEYOND, 2), 400)
    return odds, np.array([max(values.quantile(1 - 1 / one_in), 1.0) / 1e9 for one_in in odds])


DIAGRAMS = [
    Diagram(name, rank, Group.DYNAMIC, partial(build, name=name, rank=rank))
    for name, rank, build in (
        ("latency.bands", "g13", over_time),
        ("latency.size", "g14", by_size),
        ("latency.region", "g15", by_region),
        ("latency.depth", "g16", by_depth),
        ("latency.scheduled", "g17", from_scheduled),
    )
]
