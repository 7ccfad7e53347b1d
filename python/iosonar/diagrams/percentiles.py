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
from iosonar.diagrams.parts import floor_notes, gap_notes, log_axis, look, max_depth_of, rate_row, shares_of, time_axis
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
from iosonar.quantities.percentiles import IN_TABLES, name_of
from iosonar.study.requests import LATENCY, Study
from iosonar.study.runs import doubt_of
from iosonar.study.steady import PERCENTILES, bands_over_time, steadiness
from iosonar.thresholds import MIN_BEYOND

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROLES = (Role.ORDER_1, Role.ORDER_2, Role.ORDER_3, Role.ORDER_4, Role.ORDER_5)
SHARES = dict(zip(PERCENTILES, ROLES, strict=True))


def lines_of(study: Study) -> dict[float, Role]:
    """The percentiles with a line, and their roles: those that the user chose, else SHARES."""
    chosen = study.options.percentiles
    last = max(len(chosen) - 1, 1)
    return {share: ROLES[(len(ROLES) - 1) * n // last] for n, share in enumerate(chosen)} if chosen else SHARES


REGIONS = 120
SECTOR_BYTES = 512


def over_time(study: Study, name: str, rank: str) -> Figure | Empty:
    """Percentiles of latency in slices of time, and the time from which the run was steady."""
    if not study.distribution(LATENCY):
        return Empty(name, "no latencies in the file")
    if study.options.each_device:
        return devices.over_time(study, name, rank)
    found = bands_over_time(study)
    found_steady = steadiness(study)
    steady_s, severity = found_steady.since_s, Severity(found_steady.grade or Severity.NEUTRAL)
    note = Note(NoteKind.VERDICT, found_steady.text, severity)
    if doubt := doubt_of(study):
        note = Note(NoteKind.VERDICT, f"{found_steady.text}. No verdict: {doubt}", Severity.NEUTRAL)
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
    table: ir.Table = study.cached("depth", lambda: with_depth(study.table))
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
    return _banded(
        study, bands(table, at, table.latency_ns, cells, list(lines_of(study))), x, words, name, rank, factor
    )


def _banded(
    study: Study, found: Bands, x: Axis, words: str, name: str, rank: str, factor: float = 1.0
) -> Figure | Empty:
    """A line for each percentile; `factor` converts the unit of the cells to that of the axis."""
    lines = lines_of(study)
    if all(np.isnan(found.quantiles[share]).all() for share in lines):
        return Empty(name, f"too few requests: p50 needs {2 * MIN_BEYOND}, p99 needs 1,000")
    everything = study.pooled(LATENCY)
    layers = [
        Steps(role, name_of(share), found.edges * factor, found.quantiles[share] / 1e9) for share, role in lines.items()
    ]
    shown = np.concatenate([layer.y for layer in layers])
    shown = shown[~np.isnan(shown)]
    least, most = max(float(shown.min()), 1e-7), float(shown.max())
    rows = [
        rate_row(role, name_of(share), (units.span(everything.percentile(share) / 1e9),))
        for share, role in lines.items()
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
        (*common_notes(study), *gap_notes((share, found.quantiles[share][found.counts > 0]) for share in lines)),
    )


def from_scheduled(study: Study, name: str, rank: str) -> Figure | Empty:
    """Each percentile of latency from the issue, and from the scheduled time.

    What a user feels is the second; they part where requests had to wait before they were issued.
    """
    if not study.distribution(LATENCY):
        return Empty(name, "no latencies in the file")
    table = study.table
    by_series = distributions(table, table.completed_ns - table.scheduled_ns)
    scheduled = pooled(list(by_series.values()))
    each_device, shares = study.options.each_device, shares_of(study, IN_TABLES)
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
                *(units.span(values.percentile(share) / 1e9) for share in shares),
                units.span(values.maximum / 1e9),
            ),
        )
        for role, label, values in lines
    ]
    values = np.concatenate([layer.y for layer in layers])
    smallest = min(found.minimum for _, _, found in lines) / 1e9
    y = log_axis("Latency", Unit.SECONDS, float(values.min()), max(float(values.max()), 1e-6), smallest)
    return Figure(
        name,
        rank,
        "Latency from scheduled time" if each_device else "Latency from issue time and from scheduled time",
        study.of,
        Axis("Share of requests that are faster", Unit.ODDS, 1.0, float(max(layers[0].x[-1], 10.0)), Scale.LOG),
        y,
        tuple(layers),
        Legend((*map(name_of, shares), "max"), tuple(rows)),
        (*common_notes(study), *floor_notes(y)),
    )


def quantile_curve(values: Distribution) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Odds (one in N is slower) and latencies in seconds, in ascending order, as long as enough requests are slower."""
    odds = np.geomspace(1.0, max(values.count / MIN_BEYOND, 2), 400)
    return odds, np.array([max(values.quantile(1 - 1 / one_in) / 1e9, LATENCY.minimum_s) for one_in in odds])


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
