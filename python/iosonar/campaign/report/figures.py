"""The effect plot: the mean of a metric at each level of each factor, with its interval, and each leaf as a mark."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.campaign.report.analysis import LEAST_S, Analysis
from iosonar.campaign.report.effects import MIN_CHANGE, Effect, MetricAnalysis
from iosonar.campaign.report.factors import Factor
from iosonar.campaign.report.findings import NAMES, not_compared, short
from iosonar.diagrams.parts import log_axis
from iosonar.figures.model import Axis, Figure, Legend, LegendRow, Line, Note, NoteKind, Role, Scale, Stroke, Unit

MAX_NAME = 28
"""Longer names of levels are shortened."""

MIN_PART = 5
"""Parts of a leaf's name are not shortened further."""

MAX_LEVELS = 24
"""Levels of all factors that have room in a figure."""

MAX_LEAVES = 40
"""Leaves that have room in a figure."""

LOG_FROM = 5.0
"""From this ratio of the largest value to the median on, a linear axis would leave little room for most values."""

LOG_NOTE = "; logarithmic axis, as a few values are far above the others"

COMPARED, DOUBTFUL = "compared", "allows no verdict on the storage"

Array = NDArray[np.float64]


def effect_plots(analysis: Analysis) -> tuple[Figure, ...]:
    """A figure for each metric that varies and has effects with intervals."""
    found = [_effect_plot(analysis, each) for each in analysis.metrics if each.freedom]
    return tuple(figure for figure in found if figure is not None)


def leaf_plot(analysis: Analysis) -> Figure | None:
    """The latencies of each leaf: from its median to its p99, or to the highest percentile that it has."""
    leaves = [leaf for leaf in analysis.leaves if leaf.metrics.get("p50")][:MAX_LEAVES]
    if not leaves:
        return None
    layers: list[Line] = []
    named: list[tuple[float, str]] = []
    for role, label, are_used in ((Role.DEVICE_2, COMPARED, True), (Role.DEVICE_1, DOUBTFUL, False)):
        bars: list[tuple[Array, Array]] = []
        for place, leaf in zip(range(len(leaves) - 1, -1, -1), leaves, strict=True):
            if bool(leaf.doubt) is are_used:
                continue
            named.append((float(place), short_path(leaf.name)))
            low = leaf.metrics["p50"]
            high = max(leaf.metrics[name] for name in ("p50", "p90", "p95", "p99") if name in leaf.metrics)
            bars.append(_bar(low, low, high, float(place)))
        if bars:
            x, y = (np.concatenate(parts) for parts in zip(*bars, strict=True))
            layers.append(Line(role, label, x, y))
    every = np.concatenate([layer.x for layer in layers])
    low, high = float(np.nanmin(every)), float(np.nanmax(every))
    left_out = len(analysis.leaves) - len(leaves)
    more = f"; {units.counted(left_out, 'other leaf', 'other leaves')} not shown" if left_out else ""
    return Figure(
        "leaves.latency",
        "c00",
        "Latency of each leaf",
        f"from the median (long line) to p99, or to p95 or p90 with fewer requests{more}",
        Axis("Latency", Unit.SECONDS, low / 1.5, high * 1.5, Scale.LOG),
        Axis("", Unit.DEVICES, -0.6, len(leaves) - 0.4, named=tuple(sorted(named))),
        tuple(layers),
        Legend((), tuple(LegendRow(layer.role, layer.label, (), Stroke.SOLID) for layer in layers)),
    )


def finding(effect: Effect) -> str:
    """The conclusion about an effect, in a word or two."""
    if not math.isfinite(effect.p):
        return "cannot be separated"
    if effect.mixed:
        return "no verdict: options differ"
    return "differs" if effect.claimed else "no difference shown"


def _effect_plot(analysis: Analysis, each: MetricAnalysis) -> Figure | None:
    metric, factor_of = each.metric, {factor.title: factor for factor in analysis.factors.reported}
    values = np.array([leaf.metrics.get(metric, math.nan) for leaf in analysis.used])
    scale = 100.0 if metric == "throughput" else 1.0
    rows = sum(len(means.levels) for means in each.means)
    named: list[tuple[float, str]] = []
    layers: list[Line] = []
    legend: list[LegendRow] = []
    place = float(rows)
    effects = {effect.factor: effect for effect in each.effects}
    known = values[np.isfinite(values)]
    least, most = (max(float(value), LEAST_S.get(metric, 0.0)) for value in (known.min(), known.max()))
    if not each.means or rows > MAX_LEVELS or most < (1 + MIN_CHANGE) * least:
        return None
    for means in each.means:
        factor, effect = factor_of[means.factor], effects[means.factor]
        role = Role.DEVICE_1 if effect.claimed else Role.DEVICE_2
        bars, marks = [], []
        for level, name in enumerate(means.levels):
            place -= 1.0
            named.append((place, _short(f"{short(factor.title)} {name}")))
            bars.append(_bar(means.mean[level] * scale, means.low[level] * scale, means.high[level] * scale, place))
            marks += [_mark(value * scale, place) for value in _values_at(factor, name, values)]
        x, y = (np.concatenate(parts) for parts in zip(*bars, strict=True))
        layers.append(Line(role, factor.title, x, y))
        if marks:
            x, y = (np.concatenate(parts) for parts in zip(*marks, strict=True))
            layers.append(Line(Role.FAINT, "each leaf", x, y))
        interval = f"{units.change(effect.low)} … {units.change(effect.high)}"
        legend.append(
            LegendRow(role, factor.title, (units.change(effect.change), interval, finding(effect)), Stroke.SOLID)
        )
    each_leaf = LegendRow(Role.FAINT, "each leaf", (), Stroke.SOLID)
    title = NAMES[metric]
    axis = value_axis(
        f"{title[:1].upper()}{title[1:]}",
        Unit.PERCENT if metric == "throughput" else Unit.SECONDS,
        np.concatenate([layer.x for layer in layers]),
        float(np.median(known)) * scale,
    )
    return Figure(
        f"effects.{metric}",
        "c01",
        f"{title[:1].upper()}{title[1:]} at each level",
        f"means of {each.leaves} leaves with 95 % intervals; leaves of equal levels differ by about "
        f"{units.change(each.residual).lstrip('+')}{LOG_NOTE if axis.scale is Scale.LOG else ''}",
        axis,
        Axis("", Unit.DEVICES, -0.6, rows - 0.4, named=tuple(sorted(named))),
        tuple(layers),
        Legend(("largest change", "95 % interval", "finding"), (*legend, each_leaf)),
        (Note(NoteKind.INFO, missing),) if (missing := not_compared(analysis, each)) else (),
    )


def value_axis(label: str, unit: Unit, values: Array, median: float) -> Axis:
    """A linear axis, or a logarithmic one if a few values are far above the others."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if low > 0 and high > LOG_FROM * median:
        return log_axis(label, unit, low, high)
    room = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return Axis(label, unit, max(low - room, 0.0), high + room)


def _bar(mean: float, low: float, high: float, y: float) -> tuple[Array, Array]:
    """An interval with cross lines at its ends, and a longer one at the mean."""
    gap = math.nan
    xs = [low, high, gap, low, low, gap, high, high, gap, mean, mean, gap]
    ys = [y, y, gap, y - 0.12, y + 0.12, gap, y - 0.12, y + 0.12, gap, y - 0.25, y + 0.25, gap]
    return np.array(xs), np.array(ys)


def _mark(value: float, y: float) -> tuple[Array, Array]:
    return np.array([value, value, math.nan]), np.array([y - 0.42, y - 0.32, math.nan])


def _values_at(factor: Factor, level: str, values: Array) -> Array:
    found: Array = values[np.array(factor.of) == factor.levels.index(level)]
    return found[np.isfinite(found)]


def short_path(name: str) -> str:
    """The name of a leaf with the middles of its longest parts left out, so that leaves remain different."""
    parts = name.split("/")
    while len("/".join(parts)) > MAX_NAME and len(longest := max(parts, key=len)) > MIN_PART:
        middle = (len(longest) - 1) // 2
        # Each step takes a letter beside the ellipsis; ends differ more often than beginnings.
        cut = longest if "…" in longest else f"{longest[:middle]}…{longest[middle + 1 :]}"
        front, end = cut.split("…", 1)
        parts[parts.index(longest)] = f"{front[:-1]}…{end}" if len(front) > len(end) - 1 else f"{front}…{end[1:]}"
    return _short("/".join(parts))


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
