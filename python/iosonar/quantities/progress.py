"""A value of each request over its row in the file, reduced to slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.batches import array_of
from iosonar.quantities.density import Cells

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Progress:
    """Mean, minimum, maximum and sum of a value in each slice; NaN (sum: zero) in a slice without values."""

    edges: NDArray[np.float64]
    mean: NDArray[np.float64]
    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]
    total: NDArray[np.float64]


def progress(table: ir.Table, at: ir.NumericColumn, value: ir.NumericColumn, cells: Cells) -> Progress | None:
    """Reduces `value` over `at`, both columns of `table`; None if it is null everywhere."""
    counted = table.filter(value.notnull())
    number = value.cast("float64")
    found = (
        counted.group_by(cell=cells.of(at))
        .aggregate(mean=number.mean(), minimum=number.min(), maximum=number.max(), total=number.sum())
        .to_pyarrow()
    )
    if not found.num_rows:
        return None

    def spread(name: str, nothing: float) -> NDArray[np.float64]:
        dense = np.full(cells.count, nothing)
        dense[array_of(found["cell"])] = array_of(found[name])
        return dense

    nan = float("nan")
    return Progress(
        cells.edges(), spread("mean", nan), spread("minimum", nan), spread("maximum", nan), spread("total", 0.0)
    )
