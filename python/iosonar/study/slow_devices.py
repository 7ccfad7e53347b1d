"""Devices that are much slower than others with the same demand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iosonar import units
from iosonar.quantities.blocks import blocks
from iosonar.quantities.device_demand import demands
from iosonar.quantities.difference import Pairing, differences
from iosonar.quantities.distribution import enough_for
from iosonar.study.base import cached
from iosonar.study.requests import Study

SHARES = {0.99: "p99", 0.5: "p50"}
"""The percentiles that are compared, the preferred one first."""

SLOW = {0.99: 3.0, 0.5: 2.0}
"""A device is slow if a percentile of its latency is at least that many times the median of all others."""

SURE = 1.5
"""The lower end of the interval of that ratio: below it, the difference may come by chance."""

MIN_REQUESTS = 100
"""The fewest requests of a device that is judged."""


@dataclass(frozen=True)
class SlowDevice:
    """A device, by its place in `study.devices`, and the percentile of its latency in ns beside that of the others.

    `low` and `high` are the 95 % interval of the ratio.
    """

    place: int
    name: str
    metric: str
    own_ns: float
    usual_ns: float
    others: int
    low: float
    high: float

    @property
    def ratio(self) -> float:
        """How many times as slow it is."""
        return self.own_ns / self.usual_ns

    @property
    def sentence(self) -> str:
        """What was found, without a full stop; the interval of the ratio is part of it."""
        whose = (
            "that of the other device" if self.others == 1 else f"the median {self.metric} of the {self.others} others"
        )
        bounds = f"{units.number(self.low, 2)} … {units.number(self.high, 2)}"
        return (
            f"{self.name}: its {self.metric} latency, {units.span(self.own_ns / 1e9)}, is "
            f"{units.number(self.ratio, 2)} times {whose} with the same demand, {units.span(self.usual_ns / 1e9)} "
            f"(95 % interval {bounds})"
        )


@cached
def devices_much_slower(study: Study) -> tuple[SlowDevice, ...]:
    """The devices that are much slower than others with the same demand; none if a run was cut short."""
    if len(study.devices) < 2 or not all(file.complete for file in study.requests.files):
        return ()
    found = []
    numbered = list(enumerate(study.devices))
    judged = [(place, each) for place, each in numbered if each.latency.count >= MIN_REQUESTS]
    for place, each in judged:
        for share, name in SHARES.items():
            if not enough_for(share, each.latency.count):
                continue
            own = each.latency.quantile(share)
            # The demand needs another query: only for a device that seems slow.
            if own < SLOW[share] * min(values.latency.quantile(share) for _, values in judged):
                continue
            others = [other for other in _same_demand(study, place) if other in dict(judged)]
            if not others:
                continue
            usual = max(float(np.median([study.devices[other].latency.quantile(share) for other in others])), 1.0)
            if own < SLOW[share] * usual:
                continue
            low, high = _interval(study, place, others, name)
            if not low >= SURE:
                continue
            found.append(SlowDevice(place, each.device.name, name, own, usual, len(others), low, high))
            break
    return tuple(found)


def _same_demand(study: Study, place: int) -> list[int]:
    """The other devices with the same demand as one of `study.devices`."""
    low, high = study.span.first_scheduled_ns or 0, study.span.last_scheduled_ns or 0
    found = study.cached("demands", lambda: demands(study.by_each_device, low, high))
    own = found.get(place)
    return [other for other, each in found.items() if other != place and own is not None and own.is_same(each)]


def _interval(study: Study, place: int, others: Sequence[int], metric: str) -> tuple[float, float]:
    """The interval of the ratio of a percentile of a device to that of others, by the bootstrap of blocks of time."""
    low, high = study.span.first_scheduled_ns or 0, study.span.last_scheduled_ns or 0
    table = study.by_each_device
    of_others, own = (
        blocks(table.filter(rows), low, high) for rows in (table.series.isin(others), table.series == place)
    )
    each = next((each for each in differences([of_others], [own], Pairing.PAIRED) if each.metric == metric), None)
    return (1 + each.low, 1 + each.high) if each else (math.nan, math.nan)
