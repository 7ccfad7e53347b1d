"""Several devices beside each other: their latencies as a distribution and over time, the slowest first."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import device_look, gap_notes, lineless_note, log_axis, rate_row, shares_of, time_axis
from iosonar.figures.model import Axis, Empty, Figure, Legend, Line, Role, Scale, Steps, Unit
from iosonar.quantities.bands import Bands, bands
from iosonar.quantities.density import Cells
from iosonar.quantities.distribution import Distribution, pooled
from iosonar.quantities.percentiles import IN_TABLES, name_of
from iosonar.study.requests import LATENCY, Study
from iosonar.study.runs import doubt_of
from iosonar.study.slow_devices import SHARES, devices_much_slower
from iosonar.thresholds import MIN_BEYOND

if TYPE_CHECKING:
    import ibis.expr.types as ir

FEWEST_SLICES, MAX_SLICES = 10, 120
REQUESTS_IN_A_SLICE = 1000
"""The fewest requests of a device per slice on average, so that a 99th percentile is meaningful."""


def slow_devices(study: Study) -> list[str]:
    """A sentence for each device that is much slower than others with the same demand.

    None if the run says nothing about devices.
    """
    return [] if doubt_of(study) else [each.sentence for each in devices_much_slower(study)]


def curves(study: Study, name: str, rank: str) -> Figure | Empty:
    """The latency below which a share of the requests stays, for each device."""
    layers, rows = [], []
    shares = shares_of(study, IN_TABLES)
    for number, values in _latencies(study).items():
        look = device_look(study, number)
        odds = np.geomspace(1.0, max(values.count / MIN_BEYOND, 2), 400)
        y = np.array([max(values.quantile(1 - 1 / one_in) / 1e9, LATENCY.minimum_s) for one_in in odds])
        layers.append(Line(*look, odds, y))
        cells = tuple(units.span(values.percentile(share) / 1e9) for share in shares)
        rows.append(rate_row(*look, (units.count(values.count), *cells, units.span(values.maximum / 1e9))))
    if not layers:
        return Empty(name, "no latencies in the file")
    every = np.concatenate([layer.y for layer in layers])
    return Figure(
        name,
        rank,
        "Latency of each device",
        study.of,
        Axis("Share of requests that are faster", Unit.ODDS, 1.0, max(float(line.x[-1]) for line in layers), Scale.LOG),
        log_axis("Latency", Unit.SECONDS, max(float(every.min()), 1e-7), max(float(every.max()), 1e-6)),
        tuple(layers),
        Legend(("requests", *map(name_of, shares), "max"), tuple(rows)),
        common_notes(study),
    )


def over_time(study: Study, name: str, rank: str) -> Figure | Empty:
    """A percentile of the latency of each device over time."""
    found_values = _latencies(study)
    if not found_values:
        return Empty(name, "no latencies in the file")
    fewest = min(values.count for values in found_values.values())
    slices = int(min(max(fewest // REQUESTS_IN_A_SLICE, FEWEST_SLICES), MAX_SLICES))
    cells = Cells(study.first_s, max(study.last_s, study.first_s + 1e-9), slices)
    table = study.by_device
    found = bands_by_device(study, table, table.issued_ns / 1e9, cells)
    return device_lines(study, found, time_axis(study, "Issue time"), "Latency of each device over time", name, rank)


def bands_by_device(study: Study, table: ir.Table, at: ir.NumericColumn, cells: Cells) -> dict[int, Bands]:
    """Percentiles of latency along an axis, for each series of `study.device_groups`."""
    columns = table.mutate(at=at)
    return {
        number: bands(rows, rows["at"], rows.latency_ns, cells, list(SHARES))
        for number in range(len(study.device_groups))
        for rows in [columns.filter(columns.series == number)]
    }


def device_lines(
    study: Study, found: dict[int, Bands], x: Axis, title: str, name: str, rank: str, factor: float = 1.0
) -> Figure | Empty:
    """A line for each device: p99, or p50 if too few requests are beyond p99."""
    looks = {number: device_look(study, number) for number in found}
    return percentile_lines(study, found, looks, _latencies(study), x, title, name, rank, factor)


def percentile_lines(
    study: Study,
    found: Mapping[int, Bands],
    looks: Mapping[int, tuple[Role, str]],
    values: Mapping[int, Distribution],
    x: Axis,
    title: str,
    name: str,
    rank: str,
    factor: float = 1.0,
) -> Figure | Empty:
    """A line for each series: p99, or p50 if too few requests are beyond p99; `values` are all latencies of each."""
    share = next((share for share in SHARES if _mostly_known(found, share)), None)
    if share is None:
        return Empty(name, f"too few requests: p50 needs {2 * MIN_BEYOND}, p99 needs 1,000")
    layers, rows, known = [], [], []
    lineless = [label for number, (_, label) in looks.items() if number not in found]
    for number, each in found.items():
        look = looks[number]
        y = each.quantiles[share] / 1e9
        if np.isnan(y).all():
            lineless.append(look[1])
            continue
        known.append((share, y[each.counts > 0]))
        layers.append(Steps(*look, each.edges * factor, y))
        rows.append(rate_row(*look, (units.span(values[number].percentile(share) / 1e9),)))
    every = np.concatenate([layer.y for layer in layers])
    every = every[np.isfinite(every)]
    return Figure(
        name,
        rank,
        f"{title}: {SHARES[share]}",
        study.of,
        x,
        log_axis("Latency", Unit.SECONDS, max(float(every.min()), 1e-7), max(float(every.max()), 1e-6)),
        tuple(layers),
        Legend(("overall",), tuple(rows)),
        (*common_notes(study), *gap_notes(known), *lineless_note(lineless, share)),
    )


def _mostly_known(found: Mapping[int, Bands], share: float) -> bool:
    """Whether at least half of the slices with requests have enough of them, for most devices."""
    known = [
        np.isfinite(each.quantiles[share]).sum() >= 0.5 * (each.counts > 0).sum() > 0
        for each in found.values()
        if each.counts.any()
    ]
    return bool(known) and sum(known) >= 0.5 * len(known)


def _latencies(study: Study) -> dict[int, Distribution]:
    """The latencies of each group that has some, by its number."""
    of = {(each.device.source, each.device.of_load): each.latency for each in study.devices}
    found = {
        number: pooled([of[device.source, device.of_load] for device in group.devices])
        for number, group in enumerate(study.device_groups)
    }
    return {number: values for number, values in found.items() if values.count}


DIAGRAMS = [
    Diagram(name, "g01", Group.DEVICES, partial(build, name=name, rank="g01"))
    for name, build in (("devices.latency", curves), ("devices.time", over_time))
]
