"""A kernel: cuts requests at each other's borders, and tells for each piece when it is touched next.

request 1   |-------------------|              in cell 0
request 2          |------|                    in cell 5
pieces      |--a---|--b---|--c--|              a, c: cell 0, never again; b: cell 0, next 5; b again: cell 5, never
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pieces:
    """A row for each time that a piece of the device is touched: `cell` of time, that of the `next` touch, `length`.

    Lengths are in sectors. A piece that is never touched again has NEVER as its `next`.
    """

    cell: NDArray[np.int32]
    next: NDArray[np.int32]
    length: NDArray[np.int64]


NEVER = np.int32(2**31 - 1)


def pieces(begin: NDArray[np.int64], end: NDArray[np.int64], cell: NDArray[np.int32]) -> Pieces:
    """Cuts the requests [begin, end), each in a cell of time, in any order. Lengths are above zero."""
    from scipy.sparse import csr_array

    order = np.argsort(cell, kind="stable")
    begin, end, cell = begin[order], end[order], np.ascontiguousarray(cell[order], np.int32)
    borders, ranks = _ranked(np.concatenate([begin, end]))
    first, last = ranks[: len(begin)], ranks[len(begin) :]
    many = last - first
    total = int(many.sum())
    # The pieces of request 0, then those of request 1, …
    piece = np.arange(total) - np.repeat(np.cumsum(many) - many - first, many)
    cells = np.repeat(cell, many)
    # A counting sort by piece that keeps the order of time: the transpose of a sparse matrix with a row for each touch.
    touched = csr_array((cells, piece, np.arange(total + 1)), shape=(total, len(borders))).tocsc()
    sorted_cells, starts = touched.data, touched.indptr
    next_ = np.empty(total, np.int32)
    next_[:-1], next_[-1:] = sorted_cells[1:], NEVER
    touches = np.diff(starts)
    next_[starts[1:][touches > 0] - 1] = NEVER
    length = np.repeat(np.diff(borders, append=borders[-1:]), touches)
    return Pieces(sorted_cells, next_, length)


def _ranked(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different values in their order, and for each value its place among them."""
    base = values.min()
    bits = max(len(values) - 1, 1).bit_length()
    if int(values.max() - base).bit_length() + bits > 63:
        different, place = np.unique(values, return_inverse=True)
        return different, place.astype(np.int64)
    # A value and where it stands in one number: sorting numbers is many times faster than sorting places, or searching.
    keys = (values - base) << bits | np.arange(len(values))
    keys.sort()
    sorted_values = keys >> bits
    new = np.ones(len(values), bool)
    np.not_equal(sorted_values[1:], sorted_values[:-1], out=new[1:])
    ranks = np.empty(len(values), np.int64)
    ranks[keys & ((1 << bits) - 1)] = np.cumsum(new) - 1
    return sorted_values[new] + base, ranks
