"""Histograms of latency and delay, with ten bins per decade, as in the manual."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import (
    count_axis,
    floor_notes,
    look,
    measure_axis,
    measure_row,
    shares_of,
    value_columns,
    verdict_note,
)
from iosonar.figures.model import Empty, Figure, Legend, Role, Steps, Stroke, Unit
from iosonar.quantities.distribution import Distribution
from iosonar.study.requests import DELAY, LATENCY, Measure, Study

DRAWN_PER_DECADE = 10


def histogram(study: Study, measure: Measure, name: str, rank: str) -> Figure | Empty:
    """The number of requests by latency or delay."""
    found = study.distribution(measure)
    if not found:
        return Empty(name, f"no {measure.plural} in the file")
    x = measure_axis(study, measure)
    lines = [(*look(study, series), values) for series, values in sorted(found.items())]
    if len(lines) > 1:
        lines.insert(0, (Role.ALL, "All", study.pooled(measure)))
    rows = [measure_row(role, label, values, shares_of(study), Stroke.SOLID) for role, label, values in lines]
    layers = [Steps(role, label, *decade_bins(values, x.low, x.high)) for role, label, values in lines]
    if x.floor:
        x = replace(x, floor=float(layers[0].edges[1]))
    most = max(float(layer.y.max()) for layer in layers)
    return Figure(
        name,
        rank,
        f"{measure.name.capitalize()} histogram",
        f"{study.of} · {DRAWN_PER_DECADE} bins per decade",
        x,
        count_axis("Requests per bin", Unit.REQUESTS, most * 1.2),
        tuple(layers),
        Legend(value_columns(study), (*rows[1:], *rows[:1])),
        (*common_notes(study), *floor_notes(x), verdict_note(study, measure)),
    )


def decade_bins(values: Distribution, low_s: float, high_s: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges in seconds and counts of the bins from `low_s` to `high_s`.

    Values below the lowest bin are counted in it, so that none is missing.
    """
    first = int(np.floor(np.log10(low_s) * DRAWN_PER_DECADE + 1e-6))
    last = int(np.ceil(np.log10(high_s) * DRAWN_PER_DECADE - 1e-6))
    # Distributions are in nanoseconds.
    decade = np.log10(np.maximum(values.minima, 1)) - 9
    place = np.floor(decade * DRAWN_PER_DECADE + 1e-9).astype(np.int64) - first
    counts = np.bincount(np.clip(place, 0, last - first - 1), values.counts, minlength=last - first)
    return 10.0 ** (np.arange(first, last + 1) / DRAWN_PER_DECADE), counts.astype(np.float64)


DIAGRAMS = [
    Diagram(
        f"{measure.name}.bins",
        rank,
        Group.DYNAMIC,
        partial(histogram, measure=measure, name=f"{measure.name}.bins", rank=rank),
    )
    for measure, rank in ((LATENCY, "g06"), (DELAY, "g07"))
]
