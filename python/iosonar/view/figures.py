"""The diagrams of the view, for the whole run or a window of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.parts import linear_axis, log_axis
from iosonar.figures.model import Axis, Figure, Legend, LegendRow, Role, Steps, Unit
from iosonar.figures.size import dot_of
from iosonar.view.index import Index
from iosonar.view.lattice import MARGIN, Lattice, Window, lattice
from iosonar.view.raster import FEW, LABELS, NANO, ends_ns, raster, unit_of
from iosonar.view.requests import never
from iosonar.view.scales import COMPLETED, DELAY, LATENCY, MEASURES, POSITION, SECTOR, Order

SINGLE = 1500
"""So many requests, or fewer, are also drawn one by one."""

MAX_BARS = 4000
SLICES = 256
EVENTS = 3000
"""So many changes, or fewer, of what is in flight are drawn one by one."""

FLYING = "latency.flying"
THROUGHPUT = "overview.thrp"
TITLES = {
    LATENCY.name: ("Latency over issue time", "Latency", "Issue time"),
    COMPLETED.name: ("Latency over completion time", "Latency", "Completion time"),
    DELAY.name: ("Delay over issue time", "Delay", "Issue time"),
    POSITION.name: ("Position over issue time", "Position", "Issue time"),
    FLYING: ("Requests in flight", "In flight", "Time"),
    THROUGHPUT: ("Throughput", "Requests per second", "Time"),
}
MEASURE_OF = {measure.name: measure for measure in MEASURES}


@dataclass(frozen=True)
class Bars:
    """Requests one by one: times and values in the units of the axes, and the number of each in the index."""

    row: NDArray[np.int64]
    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    y: NDArray[np.float64]
    kind: NDArray[np.uint8]

    def as_json(self) -> dict[str, Any]:
        """For the page; null where a request did not complete."""
        numbers = {"begin": self.begin, "end": self.end, "y": self.y}
        found = {name: [None if np.isnan(each) else each for each in of.tolist()] for name, of in numbers.items()}
        labels = [{"role": role, "label": label} for role, label in LABELS.values()]
        return {"row": self.row.tolist(), **found, "kind": self.kind.tolist(), "kinds": labels}


class Figures:
    """Draws an index."""

    def __init__(self, index: Index, of: str, *, is_run: bool = True, grows: bool = False) -> None:
        self.index, self.of, self.is_run, self.grows = index, of, is_run, grows
        self._known: dict[str, tuple[Axis, Axis]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The diagrams that there are."""
        has_latency = self.grows or len(self.index.requests.end) > 0
        chosen = {LATENCY: has_latency, COMPLETED: has_latency, DELAY: self.is_run, POSITION: True}
        clouds = [measure.name for measure in (LATENCY, DELAY, POSITION, COMPLETED) if chosen[measure]]
        return tuple(clouds[:1] + ([FLYING] if has_latency else []) + [THROUGHPUT] + clouds[1:])

    def whole(self, name: str) -> Figure:
        """A diagram of everything."""
        x, y = self.axes(name)
        return self.window(name, Window(x.low, x.high, y.low, y.high))

    def axes(self, name: str) -> tuple[Axis, Axis]:
        """The whole axes of a diagram."""
        if self.grows:
            return self._axes(name)
        if name not in self._known:
            self._known[name] = self._axes(name)
            self.index.release()
        return self._known[name]

    def _axes(self, name: str) -> tuple[Axis, Axis]:
        requests = self.index.requests
        _, label, time = TITLES[name]
        low, high = requests.low_ns / NANO, requests.high_ns / NANO
        x = Axis(time if self.is_run else "Time", Unit.TIMELINE, low, low + max((high - low) * 1.01, 1e-6))
        if name == FLYING:
            return x, linear_axis(label, Unit.REQUESTS, float(self.index.depth.max(initial=1)))
        if name == THROUGHPUT:
            edges = np.linspace(requests.low_ns, requests.high_ns, SLICES + 1).astype(np.int64)
            return x, linear_axis(label, Unit.REQUESTS_PER_S, max(float(y.max()) for _, _, y in self._rates(edges)))
        measure = MEASURE_OF[name]
        least, most = requests.ranges[measure.column]
        if not measure.is_log:
            return x, Axis(label, Unit.BYTES, 0.0, max(most * 1.02, float(SECTOR)))
        y = log_axis(label, Unit.SECONDS, least / NANO, most / NANO)
        return x, replace(y, floor=y.low) if measure is DELAY else y

    def window(self, name: str, window: Window) -> Figure:
        """A diagram whose axes are those of a window and a margin around it."""
        x, y = self.axes(name)
        if name in (FLYING, THROUGHPUT):
            return self._curves(name, lattice(x, window.x_low, window.x_high, SLICES, 1, MARGIN), y)
        measure = MEASURE_OF[name]
        dot = self.dot(name, window)
        across = lattice(x, window.x_low, window.x_high, window.width, dot, MARGIN)
        up = lattice(y, window.y_low, window.y_high, window.height, dot)
        found = raster(self.index.requests, self.index.levels.get(name, ()), measure, across, up)
        return self._figure(name, found.x.axis, found.y.axis, (found.cloud,))

    def _figure(self, name: str, x: Axis, y: Axis, layers: tuple[Any, ...]) -> Figure:
        rows = tuple(LegendRow(each.role, each.label, (), each.stroke) for each in layers if isinstance(each, Steps))
        legend = Legend((), rows) if rows else Legend(("requests",), self._rows())
        return Figure(name, "", TITLES[name][0], self.of, x, y, layers, legend)

    def _rows(self) -> tuple[LegendRow, ...]:
        """The series that there are; of a run that goes on, all."""
        numbers = self.index.kinds.tolist()
        return tuple(
            LegendRow(role, label, (units.count(numbers[kind]),))
            for kind, (role, label) in LABELS.items()
            if numbers[kind] or self.grows
        )

    def count(self, name: str, window: Window) -> int:
        """How many requests a window has, whatever their values."""
        order = MEASURE_OF[name].order if name in MEASURE_OF else Order.ISSUE
        part = self.index.requests.between(order, round(window.x_low * NANO), round(window.x_high * NANO))
        return int(part.stop - part.start)

    def dot(self, name: str, window: Window) -> int:
        """The size of its dots."""
        return dot_of(self.count(name, window))

    def bars(self, name: str, window: Window) -> Bars | None:
        """The requests of a window one by one, if they are few."""
        measure, requests = MEASURE_OF.get(name), self.index.requests
        low, high = (round(each * NANO) for each in (window.x_low, window.x_high))
        if measure is None or self.count(name, window) > SINGLE:
            return None
        rows = requests.overlapping(low, high)
        if len(rows) > MAX_BARS:
            return None
        begin, latency = requests.begin[rows] / NANO, requests.latency[rows]
        end = np.where(latency == never(latency), np.nan, begin + latency / NANO)
        column: NDArray[Any] = getattr(requests, measure.column)[rows]
        y = column * unit_of(measure)
        if measure.column == "latency":
            y = np.where(np.isnan(end), np.nan, y)
        if measure is DELAY:
            # From when a request was due to its issue.
            return Bars(rows, begin - column / NANO, begin, y, requests.kind[rows])
        return Bars(rows, begin, end, y, requests.kind[rows])

    def _curves(self, name: str, x: Lattice, y: Axis) -> Figure:
        low, high = ends_ns(x)
        requests = self.index.requests
        low, high = max(low, requests.low_ns), min(high, requests.high_ns)
        edges = np.unique(np.linspace(low, max(high, low + 1), x.count + 1).astype(np.int64))
        if name == FLYING:
            layers: tuple[Steps, ...] = (self._flying(edges),)
        else:
            layers = tuple(Steps(role, label, edges / NANO, rates) for role, label, rates in self._rates(edges))
        return self._figure(name, x.axis, y, layers)

    def _rates(self, edges: NDArray[np.int64]) -> list[tuple[Role, str, NDArray[np.float64]]]:
        requests, seconds = self.index.requests, np.diff(edges) / NANO
        found = [(Role.DEMAND, "Issued", np.diff(requests.before(Order.ISSUE, edges)) / seconds)]
        if len(requests.end):
            found.append((Role.ACTUAL, "Completed", np.diff(requests.before(Order.COMPLETION, edges)) / seconds))
        return found

    def _flying(self, edges: NDArray[np.int64]) -> Steps:
        """The peak in each slice, or each change if there are few."""
        requests, index = self.index.requests, self.index
        issued = requests.between(Order.ISSUE, int(edges[0]), int(edges[-1]))
        completed = requests.between(Order.COMPLETION, int(edges[0]), int(edges[-1]))
        number = issued.stop - issued.start + completed.stop - completed.start
        if number <= EVENTS:
            times = np.unique(np.concatenate([edges[[0]], requests.begin[issued], requests.end[completed]]))
            levels = requests.in_flight(times)
            return Steps(
                Role.ALL, "In flight", np.append(times, edges[-1]) / NANO, levels.astype(np.float64), filled=True
            )
        peaks = requests.in_flight(edges[:-1])
        bins, (low, high) = len(index.depth), index.depth_ns
        per_slice = bins * (edges[-1] - edges[0]) / (high - low) / max(len(edges) - 1, 1)
        if issued.stop - issued.start > FEW and per_slice >= 2:
            first, last = (int((each - low) * bins / (high - low)) for each in (edges[0], edges[-1]))
            depth = np.asarray(index.depth[first : max(last, first + 1)])
            at = np.linspace(low, high, bins + 1)[first : first + len(depth)]
            slices = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(peaks) - 1)
            np.maximum.at(peaks, slices, depth)
        else:
            for start in range(issued.start, issued.stop, FEW):
                times = requests.begin[start : min(start + FEW, issued.stop)]
                slices = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, len(peaks) - 1)
                starts = np.flatnonzero(np.diff(slices, prepend=-1))
                np.maximum.at(peaks, slices[starts], np.maximum.reduceat(requests.in_flight(times), starts))
        return Steps(Role.ALL, "In flight", edges / NANO, peaks.astype(np.float64), filled=True)
