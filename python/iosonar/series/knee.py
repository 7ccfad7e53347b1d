"""Special points of a sweep: the knee of the latency-throughput curve, and the best depth.

The knee is the point of the greatest power, throughput / response time (L. Kleinrock, "Power and deterministic rules
of thumb for probabilistic problems in computer communications", ICC 1979). There a straight line from the origin
touches the curve: beyond it, a given share more of throughput costs a greater share of response time. For M/M/1
it is at half of the capacity; for a closed program on c servers of constant time, at depth c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iosonar.series.result import Result

ENOUGH = 0.95
"""The optimum depth is the least with this share of the best throughput."""

EQUAL = 1e-3
"""Values that differ by less than this share are equal: the lowest point of them counts."""


@dataclass(frozen=True)
class Depths:
    """The least depth with nearly the best throughput, and that with the best."""

    optimum: Result
    best: Result


def knee(results: Sequence[Result]) -> Result | None:
    """The first point with the greatest power; None without two points that count."""
    used = _used(results)
    return _first_best(used, [each.power for each in used]) if len(used) > 1 else None


def depths(results: Sequence[Result]) -> Depths | None:
    """The optimum and the best depth; None without two points that count."""
    used = _used(results)
    if len(used) < 2:
        return None
    best = _first_best(used, [each.rate for each in used])
    return Depths(next(each for each in used if each.rate >= ENOUGH * best.rate), best)


def is_at_end(point: Result, results: Sequence[Result]) -> bool:
    """Whether a point is the first or the last that counts, so that a wider sweep may find another."""
    used = _used(results)
    return point in (used[0], used[-1])


def _used(results: Sequence[Result]) -> list[Result]:
    return sorted((each for each in results if each.counts), key=lambda each: each.value)


def _first_best(used: Sequence[Result], values: Sequence[float]) -> Result:
    most = max(values)
    return next(each for each, value in zip(used, values, strict=True) if value >= most * (1 - EQUAL))
