"""Response times: of reads and of writes, by call, and by the number of calls in progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from iosonar import units
from iosonar.diagrams.calls.catalogue import CallDiagram, Part
from iosonar.diagrams.calls.parts import (
    LEAST_S,
    ROLES,
    Curve,
    bars,
    category_axis,
    curves,
    figure,
    info,
    share_axis,
)
from iosonar.diagrams.parts import Mark, gap_notes, log_axis, shares_of
from iosonar.figures.model import Axis, Cloud, CloudPart, Empty, Figure, Legend, LegendRow, Role, Steps, Stroke, Unit
from iosonar.quantities.bands import Bands, bands
from iosonar.quantities.calls.response import by_call, with_concurrency
from iosonar.quantities.calls.series import CallSeries
from iosonar.quantities.density import Cells, density
from iosonar.quantities.distribution import Distribution
from iosonar.quantities.percentiles import name_of
from iosonar.study.calls import CallSide, CallStudy
from iosonar.thresholds import MIN_BEYOND

SHOWN_CALLS = 10
MAX_CONCURRENCY = 256
ORIGINAL = "original"
BAR = Mark("bar", "missing bars", "calls")
LINE_OF_CALLS = Mark("line", "gaps", "calls")
SHARES = {0.5: (Role.ORDER_1, "p50"), 0.9: (Role.ORDER_3, "p90"), 0.99: (Role.ORDER_5, "p99")}


def response(study: CallStudy, series: CallSeries, name: str, rank: str) -> Figure | Empty:
    """The distribution of the response times of reads or writes."""
    found = list(_curves(study, series))
    if not found:
        return Empty(name, f"no {series.title.lower()}")
    x, lines, rows = curves(found, "Response time", Unit.SECONDS, LEAST_S, 1e-9)
    return figure(
        study,
        name,
        rank,
        f"Response time of {series.title.lower()}",
        x,
        share_axis(f"Share of the {series.title.lower()}"),
        lines,
        Legend(("calls", *map(name_of, shares_of(study, tuple(SHARES))), "max"), rows),
    )


def _curves(study: CallStudy, series: CallSeries) -> Iterator[Curve]:
    """Each side; and, without a trace among them, the original as the first run's file has it."""
    shares = shares_of(study, tuple(SHARES))
    if study.first.is_run and (values := study.first.original_response.get(series)):
        yield Curve(Role.ALL, ORIGINAL, values, _cells(values, shares))
    for side in study.sides:
        if values := side.response.get(series):
            yield Curve(ROLES[series] if study.is_single else side.role, side.name, values, _cells(values, shares))


def _cells(values: Distribution, shares: Sequence[float]) -> tuple[str, ...]:
    quantiles = (values.percentile(share) for share in shares)
    return (
        units.count(values.count),
        *(units.span(each / 1e9) for each in quantiles),
        units.span(values.maximum / 1e9),
    )


def by_calls(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """Quantiles of the response time of each call: the most frequent calls."""
    names = [each.of for each in study.first.mix if each.seconds][:SHOWN_CALLS]
    if not names:
        return Empty(name, "no call returned")
    layers, rows, known = [], [], []
    for place, side in enumerate(study.sides):
        found = by_call(side.table, names)
        # Of several sides, the median and the 99th percentile.
        for share, (role, label) in SHARES.items() if study.is_single else [(0.5, SHARES[0.5]), (0.99, SHARES[0.99])]:
            values = [found[call].percentile(share) / 1e9 if call in found else np.nan for call in names]
            heights = np.maximum(np.array(values), LEAST_S)
            known.append((share, np.array(values)[[call in found for call in names]]))
            title = label if study.is_single else f"{side.name}: {label}"
            stroke = Stroke.SOLID if study.is_single or share == 0.5 else Stroke.DOTTED
            look = role if study.is_single else side.role
            layers.append(Steps(look, title, *bars(heights, place, len(study.sides)), stroke))
            rows.append(LegendRow(look, title, (), stroke))
    every = np.concatenate([layer.y for layer in layers])
    if not np.isfinite(every).any():
        return Empty(name, f"too few calls: p50 needs {2 * MIN_BEYOND} of a kind")
    smallest = float(np.nanmin(np.concatenate([values for _, values in known])))
    least = LEAST_S if smallest < LEAST_S else float(np.nanmin(every)) / 1.2
    return figure(
        study,
        name,
        rank,
        "Response time by call",
        category_axis("Call, the most frequent first", names),
        log_axis("Response time", Unit.SECONDS, least, float(np.nanmax(every)), smallest),
        layers,
        Legend((), tuple(rows)),
        gap_notes(known, BAR),
    )


def by_concurrency(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """Quantiles of the response time by the number of calls that were in progress at its begin."""
    found = {number: _bands(side) for number, side in enumerate(study.sides)}
    layers, rows, known = [], [], []
    for number, side in enumerate(study.sides):
        shares = SHARES if study.is_single else {0.5: SHARES[0.5], 0.9: SHARES[0.9]}
        for share, (role, label) in shares.items():
            values = found[number].quantiles[share] / 1e9
            known.append((share, values[found[number].counts > 0]))
            if np.isnan(values).all():
                continue
            title = label if study.is_single else f"{side.name}: {label}"
            stroke = Stroke.SOLID if study.is_single or share == 0.5 else Stroke.DOTTED
            look = role if study.is_single else side.role
            layers.append(Steps(look, title, found[number].edges, np.maximum(values, LEAST_S), stroke))
            rows.append(LegendRow(look, title, (), stroke))
    if not layers:
        return Empty(name, "too few calls")
    drawn = [layer.y for layer in layers]
    every = np.concatenate(drawn)
    most = max(int(np.flatnonzero(~np.isnan(layer.y))[-1]) + 1 for layer in layers)
    alone = found[0].counts[0] / max(found[0].counts.sum(), 1)
    text = f"{units.percent(float(alone))} of the calls of {study.first.name} began while no other was in progress"
    x = Axis("Calls in progress at the start of a call, itself included", Unit.CALLS, 0.5, most + 0.5, whole=True)
    all_ = study.first.pooled_response
    smallest = float(np.nanmin(np.concatenate([values for _, values in known])))
    least, highest = max(float(np.nanmin(every)) / 1.2, LEAST_S), float(np.nanmax(every))
    if study.is_single:
        smallest = all_.minimum / 1e9
        least, highest = max(smallest, LEAST_S), max(all_.maximum / 1e9, 1e-6)
    y = log_axis("Response time", Unit.SECONDS, least, highest, smallest)
    clouds = [_cloud(study, x, y, most)] if study.is_single else []
    legend = [*rows, *(LegendRow(part.role, part.label) for cloud in clouds for part in reversed(cloud.parts))]
    return figure(
        study,
        name,
        rank,
        "Response time by concurrency",
        x,
        y,
        [*clouds, *layers],
        Legend((), tuple(legend)),
        [info(text), *gap_notes(known, LINE_OF_CALLS)],
    )


def _cloud(study: CallStudy, x: Axis, y: Axis, most: int) -> Cloud:
    """The calls of the only side, in a column for each concurrency."""
    across, up = study.options.size.cells(study.first.extent.calls)
    across = min(across, most)
    table = with_concurrency(study.first.table, int(CallSeries.OTHER))
    cells = density(
        table, table.concurrency, table.duration_ns / 1e9, Cells(x.low, x.high, across), Cells(y.low, y.high, up, True)
    )
    parts = tuple(
        CloudPart(ROLES[CallSeries(series)], CallSeries(series).title, each.columns, each.rows, each.counts)
        for series, each in sorted(cells.items(), reverse=True)
    )
    return Cloud(across, up, parts, whole_numbers=across == most, noun="calls")


def _bands(side: CallSide) -> Bands:
    def compute() -> Bands:
        table = with_concurrency(side.table, int(CallSeries.OTHER))
        cells = Cells(0.5, MAX_CONCURRENCY + 0.5, MAX_CONCURRENCY)
        return bands(table, table.concurrency, table.duration_ns, cells, list(SHARES))

    return side.cached("concurrency", compute)


DIAGRAMS = [
    CallDiagram(name, rank, Part.RESPONSE, partial(build, name=name, rank=rank))
    for name, rank, build in (
        ("response.read", "f05", partial(response, series=CallSeries.READ)),
        ("response.write", "f05", partial(response, series=CallSeries.WRITE)),
        ("response.sync", "f05", partial(response, series=CallSeries.SYNC)),
        ("response.call", "f06", by_calls),
        ("response.concurrency", "f07", by_concurrency),
    )
]
