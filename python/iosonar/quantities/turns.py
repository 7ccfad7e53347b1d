"""Turns: requests whose sector is lower than their predecessor's. A disk has to seek backwards for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar.quantities.address import transfers
from iosonar.quantities.series import Series, series_of

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Turns:
    """How many requests, and how many turns among them, in consecutive windows from `first` × `window_s` on."""

    window_s: float
    first: int
    requests: dict[Series, NDArray[np.int64]]
    turns: dict[Series, NDArray[np.int64]]


def turns(table: ir.Table, order: str, window_s: float) -> Turns:
    """Counts turns in the order of a time, `intended_ns` or `completed_ns`. Each device of each file is on its own."""
    moved = transfers(table)
    moved = moved.filter(moved[order].notnull())
    before = moved.sector.lag().over(group_by=moved.extent, order_by=[moved[order], moved.place])
    window = (moved[order].cast("float64") / round(window_s * 1e9)).floor().cast("int64")
    marked = moved.select(series=series_of(moved), window=window, turn=(moved.sector < before).fill_null(False))
    found = marked.group_by("series", "window").aggregate(n=marked.count(), turns=marked.turn.sum()).to_pyarrow()
    if not found.num_rows:
        return Turns(window_s, 0, {}, {})
    series, windows, n, turned = (found[name].to_numpy() for name in ("series", "window", "n", "turns"))
    first, count = int(windows.min()), int(windows.max() - windows.min()) + 1

    def spread(values: NDArray[np.int64], number: int) -> NDArray[np.int64]:
        dense = np.zeros(count, np.int64)
        dense[windows[series == number] - first] = values[series == number]
        return dense

    numbers = [Series(number) for number in np.unique(series)]
    return Turns(
        window_s,
        first,
        {number: spread(n, number) for number in numbers},
        {number: spread(turned, number) for number in numbers},
    )
