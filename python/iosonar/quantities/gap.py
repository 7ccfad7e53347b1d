"""How far apart two distributions are: the largest vertical distance between their curves, with an interval.

It is the statistic of Kolmogorov and Smirnov. The interval is that of resampled blocks of time, as for changes in
latency: successive requests are not independent, so the usual table of critical values does not apply.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.blocks import BLOCKS, Blocks, aligned
from iosonar.quantities.difference import Pairing, interval, resampled


@dataclass(frozen=True)
class Gap:
    """The largest difference between the shares of values up to any limit, from 0 to 1, and its interval."""

    share: float
    low: float
    high: float


def largest_gap(a: list[Blocks], b: list[Blocks], pairing: Pairing, seed: int = 1) -> Gap:
    """Compares the pooled runs of two sides."""
    generator = np.random.default_rng(seed)
    draws = [resampled(generator) for _ in range(2)]
    if pairing is Pairing.PAIRED:
        draws[1] = draws[0]
    cells = aligned([*a, *b])
    sides = [np.sum(part, axis=0) for part in (cells[: len(a)], cells[len(a) :])]
    whole = np.ones((1, BLOCKS))
    at = float(_gaps([whole, whole], sides)[0])
    low, high = interval(_gaps(draws, sides), at)
    return Gap(at, max(min(low, at), 0.0), min(max(high, at), 1.0))


def _gaps(weights: list[NDArray[np.float64]], sides: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    shares = []
    for drawn, counts in zip(weights, sides, strict=True):
        below = np.cumsum(drawn @ counts, axis=1)
        shares.append(below / np.maximum(below[:, -1:], 1e-9))
    found: NDArray[np.float64] = np.abs(shares[0] - shares[1]).max(axis=1)
    return found
