"""Checks the cells of a file against docs/schema.md, from the Parquet statistics if the file has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar.table.kinds.column import MAX_NS, MAX_SECTORS, Column

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass
class _Extent:
    """Minimum, maximum and number of nulls of a column; None without numbers."""

    low: int | None = None
    high: int | None = None
    nulls: int = 0

    def add(self, low: int | None, high: int | None, nulls: int) -> None:
        if low is not None and high is not None:
            self.low = low if self.low is None else min(self.low, low)
            self.high = high if self.high is None else max(self.high, high)
        self.nulls += nulls


def invalid_values(known: Mapping[str, Column], metadata: pq.FileMetaData, parquet: Path) -> str | None:
    """The first violation of docs/schema.md in the cells, or None. All columns have the right types."""
    found = _from_statistics(metadata, known.keys())
    present = {metadata.schema.column(place).path for place in range(metadata.num_columns)} & known.keys()
    without_statistics = [name for name in known if name in present and name not in found and _is_checked(known[name])]
    if without_statistics:
        found |= _from_cells(parquet, {name: known[name] for name in without_statistics})
    for name in (name for name in known if name in found):
        column, extent = known[name], found[name]
        if extent.nulls and not column.is_nullable:
            return f"column {name} has null or unknown values"
        below = column.low is not None and extent.low is not None and extent.low < column.low
        if below or (column.high is not None and extent.high is not None and extent.high > column.high):
            return f"column {name} has values outside {column.low} … {column.high}"
    if "sector" not in known:
        return None
    if (found["sector"].high or 0) + (found["sectors"].high or 0) > MAX_SECTORS and _ends_beyond(parquet):
        return "sector or sectors are beyond any device"
    if "latency_ns" in present and max((found["at_ns"].high or 0), 0) + (found["latency_ns"].high or 0) > 2 * MAX_NS:
        return "a time exceeds 64 bits of nanoseconds"
    return None


def _is_checked(column: Column) -> bool:
    """Whether some cells could be invalid: any text may be in a column that may have nulls."""
    return not (column.is_text and column.is_nullable)


def _from_statistics(metadata: pq.FileMetaData, names: Any) -> dict[str, _Extent]:
    """The extents of integer and boolean columns with statistics in all row groups."""
    found: dict[str, _Extent] = {}
    without = set()
    for group in (metadata.row_group(number) for number in range(metadata.num_row_groups)):
        for chunk in (group.column(place) for place in range(group.num_columns)):
            name = chunk.path_in_schema
            if name not in names:
                continue
            extent = found.setdefault(name, _Extent())
            statistics = chunk.statistics
            nulls = statistics.null_count if statistics is not None else None
            if statistics is None or nulls is None:
                without.add(name)
            elif nulls == group.num_rows:
                extent.add(None, None, nulls)
            elif isinstance(low := statistics.min, int) and isinstance(high := statistics.max, int):
                extent.add(low, high, nulls)
            else:
                without.add(name)
    return {name: extent for name, extent in found.items() if name not in without}


def _from_cells(parquet: Path, columns: dict[str, Column]) -> dict[str, _Extent]:
    """The extents from the cells. Unknown names count as nulls."""
    import duckdb

    def parts() -> Iterator[str]:
        for name, column in columns.items():
            quoted = '"' + name + '"'
            if column.names:
                known = ", ".join(f"'{each}'" for each in column.names)
                yield f"NULL, NULL, count(*) FILTER ({quoted} IS NULL OR {quoted} NOT IN ({known}))"
            elif column.is_number:
                yield f"min({quoted}), max({quoted}), count(*) - count({quoted})"
            else:
                yield f"NULL, NULL, count(*) - count({quoted})"

    with duckdb.connect() as connection:
        row = connection.execute(f"SELECT {', '.join(parts())} FROM {_table(parquet)}").fetchone()
    assert row is not None
    found = {}
    for place, name in enumerate(columns):
        found[name] = _Extent(*row[3 * place : 3 * place + 3])
    return found


def _ends_beyond(parquet: Path) -> bool:
    import duckdb

    with duckdb.connect() as connection:
        query = f"SELECT max(sector::HUGEINT + sectors::HUGEINT) FROM {_table(parquet)}"
        row = connection.execute(query).fetchone()
    return bool(row and row[0] is not None and row[0] > MAX_SECTORS)


def _table(parquet: Path) -> str:
    return f"read_parquet('{parquet}', hive_partitioning=false)"
