"""The plotted numbers of a figure as a table: a row for each cell of a cloud, point of a line, or step."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from iosonar.figures.model import Axis, Cloud, Figure, Line, Rule, Scale, Steps, Unit

if TYPE_CHECKING:
    import pyarrow as pa

SHORT_UNITS = {
    Unit.TIMELINE: "s",
    Unit.REQUESTS_PER_S: "io_per_s",
    Unit.CALLS_PER_S: "calls_per_s",
    Unit.BYTES_PER_S: "bytes_per_s",
    Unit.PERCENT: "pct",
    Unit.ODDS: "one_in",
}
"""Suffixes of column names that differ from the unit's own name."""

STEMS = {
    "accesses_per_page": "accesses_to_the_page",
    "cache_size": "size_of_the_cache",
    "completion_time": "time_of_completion",
    "issue_time": "real_time_of_issue",
    "miss_ratio": "accesses_missed",
    "pages_most_accessed_first": "pages_the_most_popular_first",
    "request_by_order_of_completion": "request",
    "request_run_by_run_in_the_order_of_completion": "request_in_the_order_of_completion",
    "request_size": "length",
    "rate": "load",
    "requests_in_flight_at_issue": "in_flight_at_its_issue",
    "requests_per_bin": "requests_in_a_bin",
}
"""Stems of column names that differ from the axis' label, so that scripts keep working when a label changes."""


class DataFormat(StrEnum):
    """File types for numbers."""

    CSV = "csv"
    PARQUET = "parquet"


def numbers(figure: Figure) -> pa.Table:
    """All layers of a figure in one table.

    Columns are `series`, and the x and y values, named after the axis's label and unit. The end of an interval has a
    column with the suffix `_to`; cells of clouds have `requests`.
    """
    import pyarrow as pa

    x, y = column_name(figure.x), column_name(figure.y)
    y = f"{y}_value" if y == x else y
    rows: dict[str, list[NDArray[np.float64]]] = {name: [] for name in (x, f"{x}_to", y, f"{y}_to", "requests")}
    series: list[str] = []

    def add(label: str, count: int, **columns: NDArray[np.float64]) -> None:
        series.extend([label] * count)
        for name in rows:
            rows[name].append(columns.get(name, np.full(count, np.nan)))

    for layer in figure.layers:
        match layer:
            case Cloud():
                across, up = edges(figure.x, layer.across), edges(figure.y, layer.up)
                for part in layer.parts:
                    columns = {
                        x: across[part.columns],
                        f"{x}_to": across[part.columns + 1],
                        y: up[part.rows],
                        f"{y}_to": up[part.rows + 1],
                        "requests": part.counts.astype(np.float64),
                    }
                    add(part.label, len(part.counts), **columns)
            case Line():
                add(layer.label, len(layer.x), **{x: layer.x, y: layer.y})
            case Steps():
                borders = from_zero(figure.x, layer.edges)
                add(
                    layer.label,
                    len(layer.y),
                    **{x: borders[:-1], f"{x}_to": borders[1:], y: layer.y.astype(np.float64)},
                )
            case Rule():
                pass
    table: dict[str, Any] = {"series": pa.array(series, pa.string())}
    for name, parts in rows.items():
        values = np.concatenate(parts) if parts else np.empty(0)
        if not np.isnan(values).all():
            whole = name == "requests" and not np.isnan(values).any()
            table[name] = pa.array(values.astype(np.int64)) if whole else pa.array(values, from_pandas=True)
    return pa.table(table)


def edges(axis: Axis, count: int) -> NDArray[np.float64]:
    """The borders of a cloud's cells on an axis."""
    if axis.scale is Scale.LOG:
        return from_zero(axis, np.geomspace(axis.low, axis.high, count + 1))
    return np.linspace(axis.low, axis.high, count + 1)


def from_zero(axis: Axis, borders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Borders on an axis, the first one at 0 if values below the axis are in the first cell."""
    return np.concatenate([[0.0], borders[1:]]) if axis.floor else borders


def column_name(axis: Axis) -> str:
    """The column name of an axis: `latency_s` for the label Latency in seconds."""
    label = re.sub(r"[^a-z0-9]+", "_", axis.label.lower()).strip("_")
    label = STEMS.get(label, label)
    unit = SHORT_UNITS.get(axis.unit, axis.unit.value.lower())
    return label if label.endswith(unit) else f"{label}_{unit}"


def write_numbers(figure: Figure, path: Path, format_: DataFormat) -> None:
    """Writes the plotted numbers of a figure."""
    import pyarrow.csv
    import pyarrow.parquet

    # pyarrow interprets some paths as URLs.
    with path.open("wb") as file:
        if format_ is DataFormat.CSV:
            pyarrow.csv.write_csv(numbers(figure), file)
        else:
            pyarrow.parquet.write_table(numbers(figure), file, compression="zstd")
