"""S05: the more requests are in flight, the fewer complete per second."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.findings.course import at_depth, rates_of, stalls_of, without_latency
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.requests.write_back_cliff import cliff_of
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.stretches import ServiceRates
from iosonar.study.requests import Study

FEWEST = 25
"""The fewest completions at a depth, in one part of the run."""

LEAST_S = 1.0
"""The shortest time at the greatest depth, in one part of the run. When the storage pauses, requests queue up and few
complete, too, but not for long.
"""

ERRORS = 4
FALLS = 0.8
"""At the greatest depth, at most that share completes of what does halfway to it. Slow requests or a full cache make
the queue longer, too, but then a still longer one is no slower.
"""


@dataclass(frozen=True)
class _Curve:
    """Completions per second at some depths of a part of the run, and their numbers."""

    depth: NDArray[np.float64]
    rate: NDArray[np.float64]
    number: NDArray[np.float64]


def _curve(rates: ServiceRates) -> _Curve:
    """At depths that double."""
    borders = 2 ** np.arange(0, 13)
    borders = np.append(borders[borders <= len(rates.seconds) - 1], len(rates.seconds))
    rows = [
        (rates.mean_depth(low, high), *rates.between(low, high)) for low, high in itertools.pairwise(borders.tolist())
    ]
    known = np.array([row for row in rows if row[2] >= FEWEST]).reshape(-1, 3)
    return _Curve(known[:, 0], known[:, 1], known[:, 2])


def find(study: Study, limits: Limits) -> Finding | None:
    """By completions per second while so many are in flight."""
    if stalls_of(study) is not None or cliff_of(study) is not None:
        return None
    curves = [curve for curve in map(_curve, rates_of(study)) if len(curve.depth) >= 3]
    shown = []
    for curve in curves:
        best, last = int(np.argmax(curve.rate)), len(curve.rate) - 1
        if curve.number[last] / curve.rate[last] < LEAST_S:
            continue
        half = int(np.searchsorted(curve.depth, math.sqrt(curve.depth[best] * curve.depth[last])))
        if not best < half < last or curve.rate[last] > FALLS * curve.rate[half]:
            continue
        error = math.hypot(*(curve.rate[at] * math.sqrt(1 / curve.number[at]) for at in (best, last)))
        loss = 1 - float(curve.rate[last] / curve.rate[best])
        if loss >= limits["loss"] and curve.rate[best] - curve.rate[last] > ERRORS * error:
            shown.append((curve, best, last, loss))
    if not shown:
        return None
    curve, best, last, loss = max(shown, key=lambda each: float(each[0].number.sum()))
    best_depth, depth = float(curve.depth[best]), float(curve.depth[last])
    return DETECTOR.found(
        Severity.WARNING,
        f"With about {units.requests(round(best_depth))} in flight, {units.count(curve.rate[best])} complete per "
        f"second; with about {units.count(round(depth))}, only {units.count(curve.rate[last])}: {units.percent(loss)} "
        "fewer.",
        Evidence(at_depth(study, max(int(depth / 1.5), 1)), "latency.depth", low=best_depth, high=depth),
        sure=(
            Confidence.HIGH if min(curve.number[best], curve.number[last]) >= 300 else Confidence.MEDIUM,
            f"{units.requests(int(curve.number[last]))} completed at the greater depth, {int(curve.number[best]):,} at "
            "the "
            "best; it is so before and after the longest queue.",
        ),
        ruled_out=(
            "A slower storage from some time on: then a still longer queue would be no slower.",
            "A full write cache: it would be found as a write-back cliff (S02).",
        ),
        values={
            "best_depth": best_depth,
            "best_per_s": float(curve.rate[best]),
            "depth": depth,
            "per_s": float(curve.rate[last]),
            "loss": loss,
        },
        advice=(f"Limit the requests in flight to about {units.count(round(best_depth))}.", *DETECTOR.advice),
    )


DETECTOR = Detector[Study](
    "S05",
    "queue-collapse",
    "Queue collapse",
    "The storage gets slower the longer its queue is: heads that seek farther, locks in a controller, or a network "
    "that drops "
    "and retransmits. Once a queue has formed, it feeds itself, as a traffic jam does.",
    (
        "Look for such limits where requests are issued: nr_requests of the block layer, the queue depth of the HBA or "
        "iSCSI "
        "session, io.max, or the number of threads of the application.",
        "Run `iosonar sweep` over --depth: it shows throughput and latency at each depth.",
    ),
    find,
    (Threshold("loss", 0.2, Measured.SHARE, "How much less throughput there is at the greatest depth."),),
    why_not=without_latency,
)
