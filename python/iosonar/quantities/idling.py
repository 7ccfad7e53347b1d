"""How long the storage takes to its next completion after a read and after a write, while requests wait.

A storage that idles after reads, for a read that may follow, takes longer after a read, whatever comes next. Slow
writes do not look so: they make the time before their own completion longer, not the one after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.stretches import Stretch

FEWEST = 100
"""The fewest completions of a kind after a kind."""

CLUMPED = 3
"""Neighbours are alike: so many count as one."""

SAME_QUEUE = 0.5
"""Beside others, writes take at least that share of the latency of reads, and the other way round."""

CLIPPED = 0.99
"""Longer gaps than that quantile are other events."""


@dataclass(frozen=True)
class Pauses:
    """How much longer the next completion takes after a read, with the standard error, and the mean time after one."""

    pause_ns: float
    error_ns: float
    after_read_ns: float
    reads: int
    writes: int

    @property
    def share(self) -> float:
        """The pause as a share of the time after a write."""
        return self.pause_ns / max(self.after_read_ns - self.pause_ns, 1.0)


def pauses(parts: Sequence[Stretch]) -> Pauses | None:
    """The smaller one of those before reads and before writes; None for few, or if writes do not wait with reads."""
    rows = [_gaps(part) for part in parts]
    if not rows:
        return None
    gap, after, before = (np.concatenate(each) for each in zip(*rows, strict=True))
    if not len(gap) or not all(_in_same_queue(part) for part in parts):
        return None
    gap = np.minimum(gap, np.quantile(gap, CLIPPED))
    found = []
    for is_read in (True, False):
        first, other = gap[after & (before == is_read)], gap[~after & (before == is_read)]
        if min(len(first), len(other)) < FEWEST:
            continue
        error = math.sqrt(CLUMPED * (float(first.var()) / len(first) + float(other.var()) / len(other)))
        pause, mean = float(first.mean() - other.mean()), float(first.mean())
        found.append(Pauses(pause, error, mean, len(first), len(other)))
    return min(found, key=lambda each: each.pause_ns, default=None)


def _gaps(part: Stretch) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Times between completions while others wait: how long, whether after a read, and whether before a read."""
    order = np.argsort(part.completed_ns, kind="stable")
    end, is_read, moved = part.completed_ns[order], part.is_read[order], part.moved[order]
    # In flight right after each completion: those issued until then, and not completed.
    flying = np.searchsorted(part.issued_ns, end, side="right") - np.arange(1, len(end) + 1)
    chosen = (flying[:-1] >= 1) & moved[:-1] & moved[1:]
    return np.diff(end)[chosen].astype(np.float64), is_read[:-1][chosen], is_read[1:][chosen]


def _in_same_queue(part: Stretch) -> bool:
    others = part.in_flight() >= 1
    reads, writes = (part.latency_ns[others & kind] for kind in (part.is_read, part.is_write))
    if min(len(reads), len(writes)) < FEWEST:
        return False
    return SAME_QUEUE <= float(np.median(writes)) / max(float(np.median(reads)), 1.0) <= 1 / SAME_QUEUE
