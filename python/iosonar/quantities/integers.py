"""Exact division of 64-bit integers, and ranges of a column that hold a limited number of rows.

Engines divide as float64, which is exact for integers up to 2^53 only: nanoseconds of 104 days.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from iosonar.quantities.batches import array_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

BLOCK_BITS = 16
"""Binary digits by which a range is divided at once."""


def divided(value: ir.IntegerColumn, by: int) -> ir.IntegerColumn:
    """`value` // `by`, rounded down, exactly; `by` is positive, and the quotient below 2^52."""
    return ((value - remainder(value, by)) / by).round().cast("int64")


def remainder(value: ir.IntegerColumn, by: int) -> ir.IntegerColumn:
    """The remainder of `divided`: from 0 to `by` − 1, also for negative values."""
    return (value % by + by) % by


def cuts(table: ir.Table, column: str, low: int, high: int, rows: int, at_once: int) -> list[tuple[int, int]]:
    """Ranges of `column` from `low` to below `high` that hold all `rows` rows of the table, each about `at_once` rows.

    Ranges are as narrow as the density of rows requires. A range holds more than `at_once` rows only if that many have
    the same value.
    """
    if rows <= at_once or high - low <= 1:
        return [(low, high)] if low < high else []
    # A power of two, so that borders are round if `low` is.
    bits = max((high - low - 1).bit_length() - BLOCK_BITS, 0)
    within = table.filter((table[column] >= low) & (table[column] < high))
    block = (within[column] - low) >> bits
    found = within.group_by(block=block).aggregate(n=within.count()).order_by("block").to_pyarrow()
    blocks, counts = array_of(found["block"]), array_of(found["n"])
    cumulative = np.cumsum(counts)
    # A border before each block at which the cumulative count passes a multiple of `at_once`, and around each full
    # block.
    full = counts > at_once
    new = np.concatenate([[False], (cumulative - 1)[1:] // at_once > (cumulative - 1)[:-1] // at_once]) | full
    new[1:] |= full[:-1]
    borders = sorted({low, *(low + (int(each) << bits) for each in blocks[new])} | {high})
    too_full = {low + (int(block) << bits): int(n) for block, n in zip(blocks[full], counts[full], strict=True)}
    ranges: list[tuple[int, int]] = []
    for first, last in pairwise(borders):
        if bits and first in too_full:
            end = min(first + (1 << bits), last)
            ranges += cuts(within, column, first, end, too_full[first], at_once)
            # There are no rows up to the next border.
            ranges[-1:] = [(ranges[-1][0], last)]
        else:
            ranges.append((first, last))
    return ranges
