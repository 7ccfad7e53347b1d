"""Diagrams of the order of calls: gaps between them, and the outdegree of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.calls.catalogue import CallDiagram, Part
from iosonar.diagrams.calls.parts import LEAST_S, Curve, curves, figure, info, share_axis
from iosonar.errors import UserError
from iosonar.figures.model import Axis, Empty, Figure, Legend, LegendRow, Role, Scale, Steps, Stroke, Unit
from iosonar.quantities.calls.gaps import ARRIVAL, THINK, gaps
from iosonar.quantities.calls.outdegree import Outdegrees, of_histogram, of_order
from iosonar.study.calls import RUN_ROLES, CallStudy
from iosonar.text import plain, shown

LEAST_DEGREE = 0.6
"""The lower end of the axis of outdegrees."""

KINDS = {ARRIVAL: "from start to start, all threads", THINK: "from end to start, within a thread"}


def gaps_between(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """The distribution of gaps between calls."""
    found = []
    for side in study.sides:
        for kind, values in sorted(gaps(side.table).items()):
            label = KINDS[kind] if study.is_single else f"{side.name}: {KINDS[kind].split(',')[0]}"
            role = (Role.ACTUAL, Role.READ)[kind] if study.is_single else side.role
            stroke = Stroke.DASHED if kind == THINK and not study.is_single else Stroke.SOLID
            cells = tuple(units.span(values.percentile(share) / 1e9) for share in (0.5, 0.9, 0.99))
            found.append(Curve(role, label, values, (*cells, units.span(values.maximum / 1e9)), stroke))
    if not found:
        return Empty(name, "fewer than two calls")
    x, lines, rows = curves(found, "Gap", Unit.SECONDS, LEAST_S, 1e-9)
    return figure(
        study,
        name,
        rank,
        "Gaps between calls",
        x,
        share_axis("Share of the gaps"),
        lines,
        Legend(("p50", "p90", "p99", "max"), rows),
    )


def outdegree(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """The share of calls on which at least so many calls wait directly."""
    layers, rows = [], []
    for role, label, found in _degrees(study):
        if found.maximum:
            layers.append(Steps(role, label, *_tail(found)))
        cells = (units.count(found.median), units.count(found.mean), units.count(found.maximum))
        rows.append(LegendRow(role, label, cells, Stroke.SOLID))
    if not layers:
        return Empty(name, "needs the graph of an order: --graph FILE.tsv, by `iosonar files order --format tsv`")
    most = max(float(layer.edges[-1]) for layer in layers)
    least = min(float(layer.y.min()) for layer in layers)
    return figure(
        study,
        name,
        rank,
        "Outdegree of the order",
        Axis("Calls that wait for a call directly", Unit.CALLS, LEAST_DEGREE, max(most, 9.0) * 1.1, Scale.LOG),
        Axis("Share of the calls with at least that many", Unit.PERCENT, min(least / 1.5, 50.0), 115.0, Scale.LOG),
        layers,
        Legend(("median", "mean", "max"), tuple(rows)),
        [info("Calls that no other call waits for are left of the axis")],
    )


def _degrees(study: CallStudy) -> Iterator[tuple[Role, str, Outdegrees]]:
    """The outdegrees of runs that state them, and of the graphs that the user named."""
    for side in study.sides:
        if histogram := side.calls.file.run.statistics.outdegree:
            yield Role.ACTUAL if study.is_single else side.role, side.name, of_histogram(histogram)
    for role, path in zip(RUN_ROLES, study.options.graphs, strict=False):
        try:
            yield role, plain(path.name), of_order(path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UserError(f"{shown(path)}: {why}; `iosonar files order --format tsv` writes it") from error


def _tail(found: Outdegrees) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges halfway above each outdegree, and the share in percent of the calls with at least that outdegree."""
    degrees = np.flatnonzero(found.counts)
    degrees = degrees[degrees > 0]
    at_least = found.counts[::-1].cumsum()[::-1][degrees] * 100.0 / found.counts.sum()
    return np.concatenate([[LEAST_DEGREE], degrees + 0.5]), at_least


DIAGRAMS = [
    CallDiagram("gaps", "f11", Part.ORDER, partial(gaps_between, name="gaps", rank="f11")),
    CallDiagram("outdegree", "f12", Part.ORDER, partial(outdegree, name="outdegree", rank="f12")),
]
