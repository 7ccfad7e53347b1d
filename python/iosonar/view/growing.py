"""An index that grows: requests arrive in the order of completion, and are kept in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iosonar.view.build import LOWEST_NS
from iosonar.view.index import Index
from iosonar.view.pyramid import AnyLevel, DenseLevel, bins_of
from iosonar.view.requests import Requests, last_ends
from iosonar.view.scales import KINDS, MEASURES, SECTOR, Measure, Order, rows_of

MOST = 12 << 20
"""Requests that are kept, so that memory stays below 1 GiB; of more, the earlier half is left out."""

BY_ISSUE = {
    "begin": np.int64,
    "latency": np.int64,
    "delay": np.int64,
    "sector": np.int64,
    "sectors": np.int64,
    "kind": np.uint8,
    "place": np.int64,
}
BY_END = {"end": np.int64, "latency_of_end": np.int64, "kind_of_end": np.uint8}
NEVER = np.iinfo(np.int64).max


class Sorted:
    """Columns sorted by the first of them; rows that are added belong near the end."""

    def __init__(self, types: Mapping[str, Any]) -> None:
        self.columns: dict[str, NDArray[Any]] = {name: np.empty(1 << 12, type_) for name, type_ in types.items()}
        self.key, self.length = next(iter(types)), 0

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name][: self.length]

    def add(self, rows: Mapping[str, NDArray[Any]]) -> int:
        """Adds rows; returns the first place that changed."""
        number = len(rows[self.key])
        if not number:
            return self.length
        while self.length + number > len(self.columns[self.key]):
            self.columns = {name: np.concatenate([of, np.empty_like(of)]) for name, of in self.columns.items()}
        first = int(np.searchsorted(self[self.key], rows[self.key].min(), side="right"))
        last = self.length + number
        order = np.argsort(np.concatenate([self[self.key][first:], rows[self.key]]), kind="stable")
        for name, of in self.columns.items():
            of[first:last] = np.concatenate([of[first : self.length], rows[name]])[order]
        self.length = last
        return first

    def leave_out(self, number: int) -> None:
        """Leaves out the first rows."""
        for of in self.columns.values():
            of[: self.length - number] = of[number : self.length].copy()
        self.length -= number


class Growing:
    """An index that grows."""

    def __init__(self, top: int) -> None:
        self.by_issue, self.by_end = Sorted(BY_ISSUE), Sorted(BY_END)
        self.top, self.not_issued, self.left_out = max(top, 1), 0, 0
        self.ranges = {"latency": [NEVER, 10 * LOWEST_NS], "delay": [NEVER, 10 * LOWEST_NS], "sector": [0, 0]}
        self.kinds = np.zeros(KINDS, np.int64)
        self._start(0)

    def _start(self, low_ns: int) -> None:
        self.levels = {measure.name: DenseLevel(low_ns) for measure in MEASURES}
        self.depth, self.low_ns = np.zeros(DenseLevel.bins, np.int32), low_ns
        self.depth_high = low_ns + DenseLevel.bins

    def __len__(self) -> int:
        return self.by_issue.length

    def add(self, rows: Mapping[str, NDArray[Any]]) -> None:
        """Adds issued requests, by the names of `BY_ISSUE`."""
        if not len(rows["begin"]):
            return
        ended = rows["latency"] != NEVER
        of_end = {
            "end": rows["begin"][ended] + rows["latency"][ended],
            "latency_of_end": rows["latency"][ended],
            "kind_of_end": rows["kind"][ended],
        }
        self._widen(rows, ended)
        self.kinds += np.bincount(rows["kind"], minlength=KINDS)
        first = self.by_issue.add(rows)
        self.by_end.add(of_end)
        if len(self) > MOST:
            self._leave_out()
            return
        if (top := int((rows["sector"] + rows["sectors"]).max())) > self.top:
            self.top = max(top, 2 * self.top)
            self._count_again()
            return
        for measure in MEASURES:
            self._count(measure, rows if measure.order is Order.ISSUE else None, of_end)
        self._deepen(first)

    def _widen(self, rows: Mapping[str, NDArray[Any]], ended: NDArray[np.bool_]) -> None:
        for name, values in (("latency", rows["latency"][ended]), ("delay", rows["delay"])):
            found = self.ranges[name]
            if len(above := values[values > 0]):
                found[0] = min(found[0], int(above.min()))
                found[1] = max(found[1], int(above.max()))
        self.ranges["sector"][1] = max(self.ranges["sector"][1], int((rows["sector"] + rows["sectors"]).max()) * SECTOR)

    def _count(
        self, measure: Measure, rows: Mapping[str, NDArray[Any]] | None, of_end: Mapping[str, NDArray[Any]]
    ) -> None:
        """Adds requests to a raster."""
        if rows is None:
            times, values, kinds = of_end["end"], of_end["latency_of_end"], of_end["kind_of_end"]
        else:
            values = rows[measure.column]
            chosen = values != NEVER
            times, values, kinds = (each[chosen] for each in (rows["begin"], values, rows["kind"]))
        self.levels[measure.name].add(times, rows_of(measure, values, self.top), kinds)

    def _count_again(self) -> None:
        self._start(int(self.by_issue["begin"][0]) if self.left_out else 0)
        rows = {name: self.by_issue[name] for name in BY_ISSUE}
        of_end = {name: self.by_end[name] for name in BY_END}
        for measure in MEASURES:
            self._count(measure, rows if measure.order is Order.ISSUE else None, of_end)
        self._deepen(0)

    def _leave_out(self) -> None:
        """Leaves out the earlier half."""
        half = len(self) // 2
        self.by_issue.leave_out(half)
        self.left_out += half
        self.by_end.leave_out(int(np.searchsorted(self.by_end["end"], self.by_issue["begin"][0])))
        self._count_again()

    def _deepen(self, first: int) -> None:
        """The most in flight in each bin, from that of a request on."""
        begin = self.by_issue["begin"]
        if first >= len(begin):
            return
        while begin[-1] >= self.depth_high:
            half = len(self.depth) // 2
            self.depth[:half] = np.maximum(self.depth[::2], self.depth[1::2])
            self.depth[half:] = 0
            self.depth_high += self.depth_high - self.low_ns
        each = (self.depth_high - self.low_ns) / len(self.depth)
        bin_ = int(bins_of(begin[first : first + 1], self.low_ns, self.depth_high, len(self.depth))[0])
        times = begin[int(np.searchsorted(begin, self.low_ns + bin_ * each)) :]
        at = bins_of(times, self.low_ns, self.depth_high, len(self.depth))
        starts = np.flatnonzero(np.diff(at, prepend=-1))
        self.depth[bin_:] = 0
        self.depth[at[starts]] = np.maximum.reduceat(self.requests().in_flight(times), starts)

    def requests(self) -> Requests:
        """What is there now; valid until more is added."""
        begin, end = self.by_issue["begin"], self.by_end["end"]
        high = max([self.low_ns, *(int(each[-1]) for each in (begin, end) if len(each))]) + 1
        ranges = {name: (min(low, most) if low else low, most) for name, (low, most) in self.ranges.items()}
        columns: dict[str, Any] = {name: self.by_issue[name] for name in BY_ISSUE}
        columns |= {name: self.by_end[name] for name in BY_END}
        return Requests(
            **columns,
            last_end=np.empty(0, np.int64),
            low_ns=self.low_ns,
            high_ns=high,
            top=self.top,
            not_issued=self.not_issued,
            ranges={
                name: (max(low, LOWEST_NS), most) if name != "sector" else (low, most)
                for name, (low, most) in ranges.items()
            },
        )

    def index(self) -> Index:
        """The same as an index."""
        requests = self.requests()
        requests.last_end = last_ends(requests.begin, requests.latency)
        levels: dict[str, list[AnyLevel]] = {name: [level] for name, level in self.levels.items()}
        return Index(requests, levels, self.depth, (self.low_ns, self.depth_high), self.kinds, [])
