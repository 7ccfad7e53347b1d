"""Latency and rate of each device over the number of devices that were used at once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from iosonar.campaign.names import REPLICATE
from iosonar.campaign.report.results import LeafResult
from iosonar.figures.model import Axis, Figure, Legend, LegendRow, Line, Role, Scale, Stroke, Unit

ROLES = (Role.DEVICE_1, Role.DEVICE_2, Role.DEVICE_3, Role.DEVICE_4, Role.DEVICE_5, Role.DEVICE_6)
"""For the groups of leaves that differ in something else, such as the load."""

Values = dict[tuple[str, ...], dict[str, dict[int, list[float]]]]
"""Values by group, device and number of devices."""


def at_once_plots(leaves: Sequence[LeafResult]) -> tuple[Figure, ...]:
    """Two figures, if the leaves differ in how many devices they used."""
    known = [leaf for leaf in leaves if leaf.devices]
    counts = sorted({len(leaf.devices) for leaf in known})
    groups = [(leaf, _group(leaf, known)) for leaf in known]
    if len(counts) < 2 or len({group for _, group in groups}) > len(ROLES):
        return ()
    found = (
        _figure("rate", "Requests of each device", Unit.REQUESTS_PER_S, counts, _values(groups, rate=True)),
        _figure("latency", "Latency of each device", Unit.SECONDS, counts, _values(groups, rate=False)),
    )
    return tuple(figure for figure in found if figure)


def _group(leaf: LeafResult, leaves: Sequence[LeafResult]) -> tuple[str, ...]:
    """The path without repetitions, and without the level that sets the number of devices."""
    kept = []
    for level, name in enumerate(leaf.path):
        numbers: dict[str, set[int]] = defaultdict(set)
        for each in leaves:
            if level < len(each.path):
                numbers[each.path[level]].add(len(each.devices))
        sets_it = len(set(map(tuple, numbers.values()))) > 1 and all(len(each) == 1 for each in numbers.values())
        if not sets_it and len(numbers) > 1 and not REPLICATE.fullmatch(name):
            kept.append(name)
    return tuple(kept)


def _values(leaves: Sequence[tuple[LeafResult, tuple[str, ...]]], *, rate: bool) -> Values:
    found: Values = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for leaf, group in leaves:
        per_request = leaf.metrics.get("iops", math.nan) / max(leaf.metrics.get("requests", 0.0), 1.0)
        for device in leaf.devices:
            value = device.requests * per_request if rate else _latency(device.p99_s, device.p50_s)
            if math.isfinite(value) and value > 0:
                found[group][device.name][len(leaf.devices)].append(value)
    return found


def _latency(p99_s: float, p50_s: float) -> float:
    return p99_s if math.isfinite(p99_s) else p50_s


def _figure(name: str, title: str, unit: Unit, counts: Sequence[int], values: Values) -> Figure | None:
    groups = dict(zip(sorted(values), ROLES, strict=False))
    layers = [line for group, role in groups.items() for line in _lines(role, group, values[group])]
    if not layers:
        return None
    every = np.concatenate([layer.y for layer in layers])
    what = "p99, or the median with few requests; " if name == "latency" else ""
    return Figure(
        f"devices.{name}",
        "c02" if name == "latency" else "c03",
        f"{title}, by the number of devices at once",
        f"{what}a line for each device",
        Axis("Devices at once", Unit.DEVICES, counts[0] - 0.5, counts[-1] + 0.5, named=_ticks(counts)),
        Axis("Latency" if name == "latency" else "Rate", unit, every.min() / 1.5, every.max() * 1.5, Scale.LOG),
        tuple(layers),
        Legend((), tuple(LegendRow(role, _label(group), (), Stroke.SOLID) for group, role in groups.items())),
    )


def _lines(role: Role, group: tuple[str, ...], devices: dict[str, dict[int, list[float]]]) -> Iterator[Line]:
    for _, by_count in sorted(devices.items()):
        places = sorted(by_count)
        medians = [float(np.median(by_count[place])) for place in places]
        yield Line(role, _label(group), np.array(places, dtype=float), np.array(medians), marks=True)


def _label(group: tuple[str, ...]) -> str:
    return "/".join(group) or "each device"


def _ticks(counts: Sequence[int]) -> tuple[tuple[float, str], ...]:
    return tuple((float(count), str(count)) for count in counts)
