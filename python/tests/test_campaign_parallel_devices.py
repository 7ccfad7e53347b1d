"""The figures of what each device got by the number of devices at once."""

from __future__ import annotations

import math
from pathlib import Path

from iosonar.campaign.report.parallel_devices import at_once_plots
from iosonar.campaign.report.results import DeviceResult, LeafResult
from iosonar.figures.model import Figure, Line


def lines(figure: Figure) -> list[Line]:
    return [layer for layer in figure.layers if isinstance(layer, Line)]


def leaf(path: str, count: int, p99_s: float = math.nan) -> LeafResult:
    devices = tuple(DeviceResult(f"sd{letter}", 500, 0.001 * count, p99_s) for letter in "abcd"[:count])
    metrics = {"iops": 100.0 * count, "requests": 500.0 * count}
    return LeafResult(path, tuple(path.split("/")), Path(path), "done", metrics=metrics, devices=devices)


def test_each_device_has_a_line_by_the_number_at_once() -> None:
    leaves = [leaf(f"load-1/devices-{count}/repeat-{each}", count) for count in (1, 2, 4) for each in (1, 2)]
    leaves += [leaf(f"load-2/devices-{count}/repeat-1", count, p99_s=0.02) for count in (1, 2)]
    rate, latency = at_once_plots(leaves)
    assert [row.label for row in latency.legend.rows] == ["load-1", "load-2"]
    assert [(line.label, line.x.tolist(), line.y.tolist()) for line in lines(latency)] == [
        ("load-1", [1, 2, 4], [0.001, 0.002, 0.004]),
        ("load-1", [2, 4], [0.002, 0.004]),
        ("load-1", [4], [0.004]),
        ("load-1", [4], [0.004]),
        ("load-2", [1, 2], [0.02, 0.02]),
        ("load-2", [2], [0.02]),
    ]
    assert {value for line in lines(rate) for value in line.y.tolist()} == {100.0}


def test_leaves_with_the_same_number_of_devices_have_no_figure() -> None:
    assert at_once_plots([leaf("a", 2), leaf("b", 2)]) == at_once_plots([]) == ()
