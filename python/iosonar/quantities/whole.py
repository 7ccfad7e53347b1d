"""Whole numbers of 64 bits, divided without the rounding of floating point; a column, cut into ranges of so many rows.

Engines divide by way of float64, which tells whole numbers apart up to 2^53 only: nanoseconds of 104 days.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import ibis.expr.types as ir

BLOCK_BITS = 16
"""A range is looked at in so many halvings at once."""


def divided(value: ir.IntegerColumn, by: int) -> ir.IntegerColumn:
    """`value` // `by`, rounded down, exactly; `by` is above zero, the quotient below 2^52."""
    return ((value - remainder(value, by)) / by).round().cast("int64")


def remainder(value: ir.IntegerColumn, by: int) -> ir.IntegerColumn:
    """What `divided` leaves: from 0 to `by` − 1, also of negative values."""
    return (value % by + by) % by


def cuts(table: ir.Table, column: str, low: int, high: int, rows: int, at_once: int) -> list[tuple[int, int]]:
    """Ranges of `column` from `low` to below `high`, which hold all `rows` rows of the table, each about `at_once`.

    Where many rows lie close together, ranges are as narrow as that takes. More than `at_once` have the same value in
    common where a range holds more.
    """
    if rows <= at_once or high - low <= 1:
        return [(low, high)] if low < high else []
    # Of a power of two, so that borders are round if `low` is.
    bits = max((high - low - 1).bit_length() - BLOCK_BITS, 0)
    within = table.filter((table[column] >= low) & (table[column] < high))
    block = (within[column] - low) >> bits
    found = within.group_by(block=block).aggregate(n=within.count()).order_by("block").to_pyarrow()
    blocks, counts = found["block"].to_numpy(), found["n"].to_numpy()
    upto = np.cumsum(counts)
    # A border before each block with which the rows reach another multiple, and around each that is too full by itself.
    full = counts > at_once
    new = np.concatenate([[False], (upto - 1)[1:] // at_once > (upto - 1)[:-1] // at_once]) | full
    new[1:] |= full[:-1]
    borders = sorted({low, *(low + (int(each) << bits) for each in blocks[new])} | {high})
    too_full = {low + (int(block) << bits): int(n) for block, n in zip(blocks[full], counts[full], strict=True)}
    ranges: list[tuple[int, int]] = []
    for first, last in pairwise(borders):
        if bits and first in too_full:
            end = min(first + (1 << bits), last)
            ranges += cuts(within, column, first, end, too_full[first], at_once)
            # What lies behind holds nothing up to the next border.
            ranges[-1:] = [(ranges[-1][0], last)]
        else:
            ranges.append((first, last))
    return ranges
