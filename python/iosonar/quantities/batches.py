"""Rows in this process, batch by batch, for kernels: a kernel is another plan of an expression, with equal results.

The embedded engine hands over columns ten times as fast as it groups them by computed keys, and NumPy counts them in
arrays that have a place for each key. An engine on other machines runs the expression, so that rows stay there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import ibis.expr.types as ir

ROWS = 100_000
"""Rows of a batch: a few of its columns fit into the caches of a processor."""

MAX_PLACES = 4_000_000
"""The most places of an array that counts; with more keys, the engine groups."""

NEAR = 1e-6
"""How near to an integer the last bit of a logarithm could matter; it is much smaller."""

LOG10_E = 1 / math.log(10)

KINDS: dict[str, type[Any]] = {
    "bool": np.bool_,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "double": np.float64,
}
"""Types of Arrow that are arrays of the same bits."""

Batches = Generator[list[NDArray[Any]], None, None]


def batches(rows: ir.Table) -> Batches | None:
    """The columns of rows without nulls, in batches; None if they are not in this process.

    A caller that does not read all batches closes the reader.
    """
    stream = getattr(rows.get_backend(), "batches", None)
    return None if stream is None else _arrays(stream, rows)


def _arrays(stream: Callable[[ir.Table, int], Iterable[Any]], rows: ir.Table) -> Batches:
    for batch in stream(rows, ROWS):
        if any(column.null_count for column in batch.columns):
            raise ValueError("a kernel got a null")
        if batch.num_rows:
            yield [array_of(column) for column in batch.columns]


def array_of(column: Any) -> NDArray[Any]:
    """A column of Arrow as an array, without a copy if possible.

    The function of Arrow does the same, but loads pandas first.
    """
    is_whole = not hasattr(column, "chunks")
    parts = [column] if is_whole else column.chunks
    kind = KINDS.get(str(column.type))
    if column.null_count or kind is None or not parts:
        found: NDArray[Any] = column.to_numpy(zero_copy_only=False) if is_whole else column.to_numpy()
        return found
    arrays = [_of_part(part, kind) for part in parts]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _of_part(part: Any, kind: type[Any]) -> NDArray[Any]:
    if not len(part):
        return np.zeros(0, kind)
    data: Any = part.buffers()[1]
    if kind is np.bool_:
        # A bit each.
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=part.offset + len(part), bitorder="little")
        return bits[part.offset :].view(np.bool_)
    found: NDArray[Any] = np.frombuffer(data, kind, len(part), part.offset * np.dtype(kind).itemsize)
    return found


def wider(values: NDArray[Any], rows: int, nothing: float = 0) -> NDArray[Any]:
    """An array with at least that many rows; new ones are filled with `nothing`."""
    if rows <= len(values):
        return values
    more = np.full((rows - len(values), *values.shape[1:]), nothing, values.dtype)
    return np.concatenate([values, more])


def steps_of_log10(value: NDArray[np.float64], low: float, scale: float) -> NDArray[np.float64]:
    """`floor((log10(value) − low) × scale)`, of positive values, exactly as the engine computes it.

    The logarithms of NumPy differ from those of the C library, which the engine uses, in the last bits of some values.
    That matters only beside an integer. The natural logarithm takes a fraction of the time.
    """
    place = (np.log(value) * LOG10_E - low) * scale
    found: NDArray[np.float64] = np.floor(place)
    unsure = np.flatnonzero(np.abs(place - np.rint(place)) < NEAR)
    if len(unsure):
        distinct, back = np.unique(value[unsure], return_inverse=True)
        exact = [math.floor((math.log10(each) - low) * scale) for each in distinct.tolist()]
        found[unsure] = np.array(exact, np.float64)[back]
    return found
