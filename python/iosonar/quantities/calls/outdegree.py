"""The outdegree of the graph of an order: how many calls wait for a call directly."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Outdegrees:
    """`counts[n]` calls have n direct successors."""

    counts: NDArray[np.int64]

    @property
    def maximum(self) -> int:
        """The largest outdegree."""
        found = np.flatnonzero(self.counts)
        return int(found[-1]) if len(found) else 0

    @property
    def median(self) -> int:
        """The smallest outdegree that half of the calls do not exceed."""
        total = int(self.counts.sum())
        return int(np.searchsorted(np.cumsum(self.counts), total / 2)) if total else 0

    @property
    def mean(self) -> float:
        """The mean outdegree."""
        total = int(self.counts.sum())
        return float((self.counts * np.arange(len(self.counts))).sum() / total) if total else 0.0


def of_histogram(histogram: Mapping[str, int]) -> Outdegrees:
    """From the number of calls by outdegree, as JSON has it."""
    counts = np.zeros(max((int(degree) for degree in histogram), default=0) + 1, np.int64)
    for degree, calls in histogram.items():
        counts[int(degree)] = calls
    return Outdegrees(counts)


def of_predecessors(predecessors: Iterable[Iterable[int]]) -> Outdegrees:
    """From the direct predecessors of each call, by number."""
    successors: dict[int, int] = {}
    calls = 0
    for before in predecessors:
        calls += 1
        for each in before:
            successors[each] = successors.get(each, 0) + 1
    counts = np.bincount(np.fromiter(successors.values(), np.int64, len(successors)), minlength=1)
    counts[0] = calls - len(successors)
    return Outdegrees(counts)


def of_order(path: Path) -> Outdegrees:
    """From the output of `iosonar files order --format tsv`: the last column has the predecessors' numbers."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        head = next(rows, [])
        if not head or head[-1] != "predecessors":
            raise ValueError("its last column is not `predecessors`")
        calls = (row for row in rows if len(row) == len(head))
        return of_predecessors([int(each) for each in row[-1].split()] for row in calls)
