"""The mix of calls, and the shares of the threads, as bars."""

from __future__ import annotations

from functools import partial

import numpy as np

from iosonar import units
from iosonar.diagrams.calls.catalogue import CallDiagram, Part
from iosonar.diagrams.calls.parts import bars, category_axis, figure, info
from iosonar.diagrams.parts import linear_axis
from iosonar.figures.model import Empty, Figure, Legend, LegendRow, Role, Steps, Unit
from iosonar.study.calls import CallStudy

SHOWN = 9
"""Bars with a name; all others are one bar."""

OTHERS = "others"


def mix(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """The share of each call: of the number and the time of one table, or of the numbers of several."""
    totals: dict[str, float] = {}
    for side in study.sides:
        for each in side.mix:
            totals[each.of] = totals.get(each.of, 0.0) + each.share + (each.time_share if study.is_single else 0.0)
    order = sorted(totals, key=lambda call: (-totals[call], call))
    shown = order if len(order) <= SHOWN + 1 else order[:SHOWN]
    names = [*shown, OTHERS] if len(shown) < len(order) else shown
    if study.is_single:
        series = [
            (Role.ACTUAL, "share of the calls", {each.of: each.share for each in study.first.mix}),
            (Role.READ, "share of the time in calls", {each.of: each.time_share for each in study.first.mix}),
        ]
    else:
        series = [(side.role, side.name, {each.of: each.share for each in side.mix}) for side in study.sides]
    layers, rows = [], []
    for place, (role, label, shares) in enumerate(series):
        rest = sum(share for call, share in shares.items() if call not in shown)
        values = np.array([shares.get(call, 0.0) for call in shown] + [rest] * (len(names) - len(shown))) * 100
        layers.append(Steps(role, label, *bars(values, place, len(series)), filled=True, bars=True))
        rows.append(LegendRow(role, label))
    most = max(float(np.nanmax(layer.y)) for layer in layers)
    hidden = len(order) - len(shown)
    notes = [info(f"{OTHERS}: {units.counted(hidden, 'call', 'different calls')}")] if hidden else []
    return figure(
        study,
        name,
        rank,
        "Mix of calls",
        category_axis("Call", names),
        linear_axis("Share", Unit.PERCENT, most),
        layers,
        Legend((), tuple(rows)),
        notes,
    )


def threads(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """The share of the calls that each thread made, the most active first."""
    max_threads = max(len(side.threads) for side in study.sides)
    if max_threads < 2:
        return Empty(name, "only one thread")
    shown = min(max_threads, SHOWN + 3)
    layers, rows = [], []
    for place, side in enumerate(study.sides):
        shares = [100 * each.share for each in side.threads]
        values = np.array((shares + [0.0] * shown)[:shown])
        role = Role.ACTUAL if study.is_single else side.role
        layers.append(Steps(role, side.name, *bars(values, place, len(study.sides)), filled=True, bars=True))
        cells = [units.percent(each.share) for each in side.threads[:3]] + ["–"] * 3
        rows.append(LegendRow(role, side.name, (units.count(len(side.threads)), *cells[:3])))
    if study.is_single:
        names = [str(each.of) for each in study.first.threads[:shown]]
        label = "Thread, the most active first"
    else:
        names, label = [str(number + 1) for number in range(shown)], "Rank of the thread by its calls"
    hidden = max_threads - shown
    return figure(
        study,
        name,
        rank,
        "Share of the calls by thread",
        category_axis(label, names),
        linear_axis("Share of the calls", Unit.PERCENT, max(float(np.nanmax(layer.y)) for layer in layers)),
        layers,
        Legend(("threads", "1st", "2nd", "3rd"), tuple(rows)),
        [info(f"{units.counted(hidden, 'thread')} with fewer calls not shown")] if hidden else [],
    )


DIAGRAMS = [
    CallDiagram(name, rank, Part.MIX, partial(build, name=name, rank=rank))
    for name, rank, build in (("mix", "f03", mix), ("threads", "f04", threads))
]
