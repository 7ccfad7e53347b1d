"""A kernel: cuts requests at each other's borders, and determines when each piece is touched next.

request 1   |-------------------|              in cell 0
request 2          |------|                    in cell 5
pieces      |--a---|--b---|--c--|              a, c: cell 0, never again; b: cell 0, next 5; b again: cell 5, never
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pieces:
    """A row for each touch of a piece of the device: its `cell` of time, that of the `next` touch, and the `length`.

    Lengths are in sectors. `next` is NEVER for the last touch of a piece.
    """

    cell: NDArray[np.int32]
    next: NDArray[np.int32]
    length: NDArray[np.int64]


NEVER = np.int32(2**31 - 1)

MAX_PIECES = 8_000_000
"""Pieces in memory at once. If all requests overlap each other, pieces grow with their number squared."""

MAX_SPLITS = 64
"""Beyond that piece_counts times MAX_PIECES, `overwritten` is faster than splitting."""


def pieces(begin: NDArray[np.int64], end: NDArray[np.int64], cell: NDArray[np.int32]) -> Iterator[Pieces]:
    """Cuts the requests [begin, end), each in a cell of time, in any order. Lengths are positive."""
    borders, ranks = _ranked(np.concatenate([begin, end]))
    piece_counts = ranks[len(begin) :] - ranks[: len(begin)]
    total = int(piece_counts.sum())
    if total <= MAX_PIECES:
        yield _cut(borders, ranks[: len(begin)], piece_counts, cell)
    elif total > MAX_SPLITS * MAX_PIECES or len(borders) <= 2:
        order = np.argsort(cell, kind="stable")
        yield overwritten(begin[order], end[order], cell[order])
    else:
        middle = borders[len(borders) // 2]
        lower, upper = begin < middle, end > middle
        yield from pieces(begin[lower], np.minimum(end[lower], middle), cell[lower])
        yield from pieces(np.maximum(begin[upper], middle), end[upper], cell[upper])


def _cut(
    borders: NDArray[np.int64], first: NDArray[np.int64], piece_counts: NDArray[np.int64], cell: NDArray[np.int32]
) -> Pieces:
    """Cuts requests that consist of `piece_counts` pieces from their `first` on."""
    # Piece and cell in one integer, for a fast sort: both have less than 32 bits.
    bits = int(cell.max()).bit_length()
    before = np.cumsum(piece_counts) - piece_counts
    # The pieces of request 0, then those of request 1, …
    touches = np.repeat(((first - before) << bits) + cell, piece_counts)
    touches += np.arange(len(touches)) << bits
    touches.sort()
    cells = (touches & ((1 << bits) - 1)).astype(np.int32)
    piece = touches >> bits
    next_ = np.empty(len(touches), np.int32)
    next_[:-1], next_[-1:] = np.where(piece[1:] == piece[:-1], cells[1:], NEVER), NEVER
    return Pieces(cells, next_, np.diff(borders)[piece])


def overwritten(begin: NDArray[np.int64], end: NDArray[np.int64], cell: NDArray[np.int32]) -> Pieces:
    """The same for requests in order of time that overlap very much: slower, but with at most 3 pieces per request.

    Sectors last touched by the same request form one piece, until a later request overwrites all or part of it.
    """
    begins: list[int] = []
    ends: list[int] = []
    cells: list[int] = []
    found: list[tuple[int, int, int]] = []
    for low, high, now in zip(begin.tolist(), end.tolist(), cell.tolist(), strict=True):
        first, last = bisect_right(ends, low), bisect_left(begins, high)
        found += [(cells[place], now, min(ends[place], high) - max(begins[place], low)) for place in range(first, last)]
        new = [(low, high, now)]
        if first < last:
            if begins[first] < low:
                new.insert(0, (begins[first], low, cells[first]))
            if ends[last - 1] > high:
                new.append((high, ends[last - 1], cells[last - 1]))
        begins[first:last], ends[first:last], cells[first:last] = ([each[n] for each in new] for n in range(3))
    found += [(last, int(NEVER), high - low) for low, high, last in zip(begins, ends, cells, strict=True)]
    columns = np.array(found, np.int64).reshape(-1, 3)
    return Pieces(columns[:, 0].astype(np.int32), columns[:, 1].astype(np.int32), columns[:, 2])


def _ranked(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct values in ascending order, and for each value its rank among them."""
    base = values.min()
    bits = max(len(values) - 1, 1).bit_length()
    if int(values.max() - base).bit_length() + bits > 63:
        distinct, place = np.unique(values, return_inverse=True)
        return distinct, place.astype(np.int64)
    # Value and position in one integer: sorting integers is much faster than argsort or searching.
    keys = (values - base) << bits | np.arange(len(values))
    keys.sort()
    sorted_values = keys >> bits
    new = np.ones(len(values), bool)
    np.not_equal(sorted_values[1:], sorted_values[:-1], out=new[1:])
    ranks = np.empty(len(values), np.int64)
    ranks[keys & ((1 << bits) - 1)] = np.cumsum(new) - 1
    return sorted_values[new] + base, ranks
