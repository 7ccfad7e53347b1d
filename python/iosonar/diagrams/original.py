"""The original beside the replay: latency, queue length and requests in the last second, and request by request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from iosonar import units
from iosonar.diagrams import comparison
from iosonar.diagrams.calls.parts import Curve, share_axis
from iosonar.diagrams.calls.parts import curves as staircases
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.comparison import ROLES, STROKES, Side
from iosonar.diagrams.flying import HIGH_PEAK
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import cells_of, cloud_parts, floor_notes, linear_axis, log_axis, look, rate_row, shares_of
from iosonar.figures.model import (
    Cloud,
    Empty,
    Figure,
    Legend,
    LegendRow,
    Line,
    Note,
    NoteKind,
    Role,
    Steps,
    Unit,
)
from iosonar.quantities.density import Cells, density
from iosonar.quantities.pairs import latencies_of_both, pairs
from iosonar.quantities.percentiles import name_of
from iosonar.quantities.progress import progress
from iosonar.study.original import LAST_SECOND, QUEUE, Quantity, original_beside, response_of
from iosonar.study.requests import LATENCY, Study
from iosonar.table.original import of_load

SLICES = 200
"""Slices of time for means of what requests saw."""

RARE = 0.01
"""The share of the lowest values that a distribution has at the end of its axis."""

SHARES = (0.5, 0.95, 0.99)
NO_ORIGINAL = "no original: name the load that the run replayed with --original, if it has latencies"

Sides = Sequence[Side]
Build = Callable[[Sides, str, str], Figure | Empty]


def sides_of(study: Study) -> list[Side]:
    """The original and the run; nothing without an original."""
    original = original_beside(study)
    return [Side("Original", original.study), Side("Replay", study)] if original else []


def of_study(study: Study, build: Build, name: str, rank: str) -> Figure | Empty:
    """A diagram of a run and its original."""
    sides = sides_of(study)
    if not sides:
        return Empty(name, NO_ORIGINAL)
    if not study.pooled(LATENCY).count:
        return Empty(name, "no latencies in the run")
    found = build(sides, name, rank)
    if isinstance(found, Empty):
        return found
    stamps = [note for note in common_notes(study) if note.kind in (NoteKind.FIDELITY, NoteKind.STAMP)]
    return replace(found, notes=tuple(dict.fromkeys((*stamps, *found.notes, *notes_of(study)))))


def notes_of(study: Study) -> tuple[Note, ...]:
    """What makes the original and the run differ."""
    original = original_beside(study)
    return tuple(Note(NoteKind.INFO, text) for text in original.notes) if original else ()


def latency(sides: Sides, name: str, rank: str) -> Figure | Empty:
    """The latency below which a share of the requests stays."""
    return replace(comparison.curves(sides), name=name, rank=rank, title="Latency of the original and of the replay")


def change(sides: Sides, name: str, rank: str) -> Figure | Empty:
    """The change of each percentile of latency, with its interval."""
    figure = comparison.changes({sides[1].letter: response_of(sides[1].study)}, sides)
    if figure is None:
        return Empty(name, "too few requests")
    title = "Change in latency from the original to the replay: above 0 is slower"
    return replace(figure, name=name, rank=rank, title=title)


def over_time(sides: Sides, name: str, rank: str, share: float) -> Figure | Empty:
    """A percentile of latency over time."""
    figure = comparison.over_time(sides, share)
    if figure is None:
        return Empty(name, "too few requests in each slice of time")
    title = f"Latency of the original and of the replay over time: {name_of(share)}"
    return replace(figure, name=name, rank=rank, title=title)


def distribution(sides: Sides, name: str, rank: str, quantity: Quantity) -> Figure | Empty:
    """The distribution of what requests saw at their issue."""
    shares = shares_of(sides[0].study, SHARES)
    found = []
    for role, stroke, side in zip(ROLES, STROKES, sides, strict=False):
        values = quantity.distribution(side.study)
        cells = (quantity.text(values.mean), *(quantity.text(values.percentile(share)) for share in shares))
        found.append(Curve(role, side.name, values, (*cells, quantity.text(values.maximum)), stroke))
    # Few requests at the beginning of both would take most of the axis.
    least = min(curve.values.quantile(RARE) for curve in found)
    x, lines, rows = staircases(found, quantity.label, Unit.REQUESTS, max(least, 1.0), 1.0)
    return Figure(
        name,
        rank,
        f"{quantity.name.capitalize()}: original and replay",
        comparison.of_sides(sides),
        x,
        share_axis("Share of the requests"),
        lines,
        Legend(("avg", *map(name_of, shares), "max"), rows),
        floor_notes(x),
    )


def seen_over_time(sides: Sides, name: str, rank: str, quantity: Quantity) -> Figure | Empty:
    """The mean of what requests saw at their issue, in slices of time."""
    x = comparison.time_of_sides(sides)
    layers: list[Steps] = []
    rows: list[LegendRow] = []
    for role, stroke, side in zip(ROLES, STROKES, sides, strict=False):
        table = quantity.of(side.study)
        found = progress(table, table.issued_ns / 1e9, table[quantity.column], Cells(x.low, x.high, SLICES))
        if found is None:
            return Empty(name, f"no request of {side.name} was issued")
        layers.append(Steps(role, side.name, found.edges, found.mean, stroke))
        values = quantity.distribution(side.study)
        rows.append(rate_row(role, side.name, (quantity.text(values.mean), quantity.text(values.maximum)), stroke))
    every = np.concatenate([layer.y[np.isfinite(layer.y)] for layer in layers])
    least, most = float(every.min()), float(every.max())
    label = quantity.name.capitalize()
    lowest = min(float(np.nanmedian(layer.y)) for layer in layers)
    is_wide = most > HIGH_PEAK * lowest
    return Figure(
        name,
        rank,
        f"{quantity.name.capitalize()} over time: original and replay",
        f"{comparison.of_sides(sides)} · mean over slices of {units.span((x.high - x.low) / SLICES)}",
        x,
        log_axis(label, Unit.REQUESTS, least, most) if is_wide else linear_axis(label, Unit.REQUESTS, most),
        tuple(layers),
        Legend(("avg", "max"), tuple(rows)),
    )


def request_by_request(sides: Sides, name: str, rank: str) -> Figure | Empty:
    """The latency of each request in the replay over that in the original."""
    run = sides[1].study
    original = original_beside(run)
    if original is None or not original.is_by_row:
        return Empty(name, "the requests of the load are not row by row those of the run")
    of_original, of_run = original.study.requests.table, of_load(run.requests.table)
    table = run.with_series(latencies_of_both(of_original, of_run))
    span = (
        table.aggregate(
            least=table.original_ns.min(),
            least_run=table.latency_ns.min(),
            most=table.original_ns.max(),
            most_run=table.latency_ns.max(),
        )
        .to_pyarrow()
        .to_pylist()[0]
    )
    if span["most"] is None:
        return Empty(name, "no request completed in both")
    least, most = min(span["least"], span["least_run"]) / 1e9, max(span["most"], span["most_run"]) / 1e9
    across, up = run.options.size.cells(run.span.requests)
    x, y = (
        log_axis(f"Latency in the {which}", Unit.SECONDS, max(least, LATENCY.minimum_s), max(most, 1e-6), least)
        for which in ("original", "replay")
    )
    found = density(table, table.original_ns / 1e9, table.latency_ns / 1e9, cells_of(x, across), cells_of(y, up))
    rows = [LegendRow(*look(run, number), (units.count(int(of.counts.sum())),)) for number, of in sorted(found.items())]
    ends = np.array([x.low, x.high])
    both = pairs(of_original, of_run)
    text = (
        f"{units.percent(both.slower_share)} of {units.requests(both.requests)} took longer in the replay; the median "
        f"change is {units.change_or_factor(both.median_ratio - 1)}"
        if both
        else ""
    )
    return Figure(
        name,
        rank,
        "Request by request: latency in the replay over that in the original",
        comparison.of_sides(sides),
        x,
        y,
        (Cloud(across, up, cloud_parts(run, found)), Line(Role.FAINT, "equal", ends, ends)),
        Legend(("requests",), (*rows, rate_row(Role.FAINT, "equal", ("",)))),
        (Note(NoteKind.INFO, text),) if text else (),
    )


BUILDS: tuple[tuple[str, str, Build], ...] = (
    ("original.latency", "o01", latency),
    ("original.requests", "o02", request_by_request),
    ("original.change", "o03", change),
    ("original.p50", "o04", partial(over_time, share=0.5)),
    ("original.p99", "o05", partial(over_time, share=0.99)),
    ("original.queue.time", "o06", partial(seen_over_time, quantity=QUEUE)),
    ("original.queue", "o07", partial(distribution, quantity=QUEUE)),
    ("original.rate.time", "o08", partial(seen_over_time, quantity=LAST_SECOND)),
    ("original.rate", "o09", partial(distribution, quantity=LAST_SECOND)),
)

OF_SEVERAL = ("original.queue.time", "original.queue", "original.rate.time", "original.rate")
"""The diagrams that a comparison shows of all sides together; it has others of its own for latency."""


def beside_original(sides: Sides) -> list[Figure | Empty]:
    """The diagrams of a comparison with an original, which is the first side."""
    found = [build(sides, name, rank) for name, rank, build in BUILDS if name in OF_SEVERAL]
    first, *runs = sides
    for side in runs:
        name = "original.requests" if len(runs) == 1 else f"original.requests.{side.letter}"
        found.append(request_by_request((first, side), name, "o02"))
    return found


DIAGRAMS = [
    Diagram(name, rank, Group.ORIGINAL, partial(of_study, build=build, name=name, rank=rank))
    for name, rank, build in BUILDS
]
