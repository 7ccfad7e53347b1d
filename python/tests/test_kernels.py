"""A kernel and the expression that it replaces have equal results, and so have our SQL and that of Ibis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from test_spark import made

from iosonar import open as open_files
from iosonar.diagrams import CATALOGUE
from iosonar.figures.model import Figure
from iosonar.quantities.at_issue import at_issue, seen
from iosonar.quantities.bands import bands
from iosonar.quantities.batches import ROWS, array_of, steps_of_log10
from iosonar.quantities.density import Cells, density
from iosonar.quantities.distribution import distributions
from iosonar.quantities.first_use import first_uses
from iosonar.quantities.in_flight import Slices, events
from iosonar.quantities.throughput import throughput
from iosonar.table.embedded import Backend, Embedded
from iosonar.table.embedded_sql import UnknownOperationError, sql_of
from iosonar.table.engine import EngineOptions

if TYPE_CHECKING:
    import ibis.expr.types as ir

POWERS = [base**power + step for base, most in ((10, 19), (2, 62)) for power in range(most) for step in (-1, 0, 1)]
EDGES = sorted({*POWERS, 0, -1, -(10**12), 2**62, 2**53 + 1})


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Embedded]:
    found = Embedded(tmp_path / "spill", EngineOptions())
    yield found
    found.close()


def table_of(engine: Embedded, value: list[int | None], at: list[int | None], series: list[int]) -> ir.Table:
    sectors = [None if number % 5 == 0 else number % 7 for number in range(len(value))]
    columns = {
        "value": pa.array(value, pa.int64()),
        "at": pa.array(at, pa.int64()),
        "series": pa.array(series, pa.int8()),
        "sectors": pa.array(sectors, pa.int64()),
    }
    engine.backend.con.register("made", pa.table(columns))
    return engine.backend.table("made")


def at_random(engine: Embedded, seed: int, rows: int) -> ir.Table:
    """Values with many ties and nulls, in more batches than one if there are as many rows."""
    chance = np.random.default_rng(seed)
    value = (
        chance.lognormal(12, 4, rows).astype(np.int64) // chance.choice([1, 1000], rows) * chance.choice([1, 10], rows)
    )
    at = np.sort(chance.integers(-5_000_000_000, 60_000_000_000, rows)) // 1000 * 1000
    missing = [chance.random(rows) < 0.1 for _ in range(2)]
    lists = [
        [None if no else int(n) for n, no in zip(each, of, strict=True)]
        for each, of in zip((value, at), missing, strict=True)
    ]
    return table_of(engine, lists[0], lists[1], [int(n) for n in chance.choice([0, 1, 4], rows)])


def at_edges(engine: Embedded) -> ir.Table:
    """Around each power of ten and of two, at times of both signs, twice."""
    values = [*EDGES, *EDGES, None]
    return table_of(
        engine, values, [*(min(each, 2**61) for each in values[:-1]), None], [n % 3 for n in range(len(values))]
    )


def seen_rows(table: ir.Table, *, by_kernel: bool) -> list[tuple[int, ...]]:
    """What requests saw, in their order; of those of one time, the order among them is open."""
    found = seen(table) if by_kernel else at_issue(table).to_pyarrow()
    assert found is not None
    names = ("source", "issued_ns", "queue", "last_second")
    return sorted(zip(*(found[name].to_pylist() for name in names), strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_what_requests_saw_is_the_same_by_sorting(engine: Embedded, seed: int) -> None:
    chance = np.random.default_rng(seed)
    issued = chance.integers(0, 5_000_000_000, 3000) // 10**seed * 10**seed
    took = chance.integers(-5, 40_000_000, 3000) // 10**seed * 10**seed
    lost, never = chance.random(3000) < 0.1, chance.random(3000) < 0.1
    columns = {
        "source": pa.array(chance.integers(0, 3, 3000), pa.int16()),
        "scheduled_ns": pa.array(issued - 7, mask=chance.random(3000) < 0.1),
        "issued_ns": pa.array(issued, mask=never),
        "completed_ns": pa.array(issued + took, mask=lost | never),
    }
    engine.backend.con.register("made", pa.table(columns))
    table = engine.backend.table("made")
    assert seen_rows(table, by_kernel=True) == seen_rows(table, by_kernel=False)
    found = seen(table)
    assert found is not None
    kept = engine.keep_rows(found)
    assert kept.scheduled_ns.notnull().sum().to_pyarrow().as_py() == sum(
        each is not None and not no for each, no in zip(columns["scheduled_ns"].to_pylist(), never, strict=True)
    )


QUANTITIES: dict[str, Callable[[ir.Table], Any]] = {
    "distributions": lambda table: distributions(table, table.value),
    "density": lambda table: density(
        table, table["at"] / 1e9, table.value / 1e9, Cells(0.0, 60.0, 601), Cells(1e-7, 100.0, 450, logarithmic=True)
    ),
    "decades": lambda table: density(
        table,
        table.value,
        table.value / 1e9,
        Cells(1.0, 1e12, 24, logarithmic=True),
        Cells(1e-6, 1.0, 6, logarithmic=True),
    ),
    "fine": lambda table: density(
        table,
        table["at"] / 1e9,
        table.value / 1e9,
        Cells(0.0, 60.0, 300_001),
        Cells(1e-7, 100.0, 4_000, logarithmic=True),
    ),
    "bands": lambda table: bands(table, table["at"] / 1e9, table.value, Cells(0.0, 60.0, 90), [0.5, 0.99]),
    "events": lambda table: events(table, table["at"], Slices.of(0, 60_000_000_000, 600)),
    "throughput": lambda table: throughput(table, table["at"], 1.0),
}


def plain(found: Any) -> Any:
    """A result as plain values: cells of a cloud by place, sums to twelve digits, as the order of rows is not kept."""
    if isinstance(found, dict):
        return {key: plain(value) for key, value in sorted(found.items())}
    if isinstance(found, np.ndarray):
        return ["nan" if isinstance(each, float) and math.isnan(each) else plain(each) for each in found.tolist()]
    if isinstance(found, float):
        return float(f"{found:.12g}")
    if hasattr(found, "columns"):
        return sorted(zip(found.columns.tolist(), found.rows.tolist(), found.counts.tolist(), strict=True))
    if hasattr(found, "__dict__"):
        return {name: plain(value) for name, value in vars(found).items()}
    return found


def agree(table: ir.Table, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    by_kernel = plain(QUANTITIES[name](table))
    with monkeypatch.context() as patch:
        patch.setattr(Backend, "batches", None)
        assert plain(QUANTITIES[name](table)) == by_kernel
    return by_kernel


@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize(("seed", "rows"), [(1, 3), (2, 500), (3, ROWS + 7)])
def test_kernels_agree_with_expressions_at_random(
    name: str, seed: int, rows: int, engine: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iosonar.quantities.density.MAX_SORTED", 30_000)
    assert agree(at_random(engine, seed, rows), name, monkeypatch)


@pytest.mark.parametrize("name", ["distributions", "decades", "bands", "events"])
def test_kernels_agree_with_expressions_at_edges(name: str, engine: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    assert agree(at_edges(engine), name, monkeypatch)


@pytest.mark.parametrize("name", QUANTITIES)
def test_kernels_agree_with_expressions_without_rows(
    name: str, engine: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(engine, [None, None], [None, None], [0, 1])
    agree(table, name, monkeypatch)


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("rows", [1, 400, ROWS + 7])
def test_first_uses_of_places_agree(rows: int, devices: int, engine: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(rows + devices)
    issued = chance.integers(-5_000_000, 60_000_000_000, rows) // 1000 * 1000
    took = chance.choice([0, 1, 22_026, 22_027, *chance.lognormal(12, 3, 500).astype(int)], rows)
    never, lost, is_read = (chance.random(rows) < share for share in (0.05, 0.1, 0.6))
    columns = {
        "device": pa.array(chance.integers(0, devices, rows) * 7, pa.int32()),
        "sector": pa.array(chance.lognormal(14, 2, rows).astype(np.int64) % 2**28),
        "issued_ns": pa.array(issued, mask=never),
        "completed_ns": pa.array(issued + took, mask=never | lost),
        "latency_ns": pa.array(took, mask=never | lost),
        "is_read": pa.array(is_read),
        "moved": pa.array(chance.random(rows) < 0.9),
    }
    engine.backend.con.register("made", pa.table(columns))
    table, chunks = engine.backend.table("made"), (128, 2048, 32768)
    by_kernel = plain(dict(enumerate(first_uses(table, chunks, 0, 60_000_000_000))))
    with monkeypatch.context() as patch:
        patch.setattr("iosonar.quantities.first_use.MAX_CHUNKS", 0)
        assert plain(dict(enumerate(first_uses(table, chunks, 0, 60_000_000_000)))) == by_kernel
    assert rows == 1 or all(np.sum(by_kernel[2][kind]) > 0 for kind in ("written", "new"))


def test_many_series_and_windows_are_grouped_by_the_engine(engine: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    many = table_of(engine, list(range(100)), [n * 10**15 for n in range(100)], list(range(100)))
    assert len(distributions(many, many.value)) == 100
    few = throughput(many, many["at"] % 1000 + many["at"], 1e4)
    assert sum(each.sum() for each in few.requests.values()) == 100
    agree(many, "distributions", monkeypatch)


def test_steps_of_logarithms_are_those_of_the_c_library() -> None:
    values = np.array([each for each in EDGES if each > 0], np.float64)
    found = steps_of_log10(values, 0.0, 1000.0)
    assert found.tolist() == [math.floor(math.log10(each) * 1000.0) for each in values.tolist()]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 3], pa.int16()),
        pa.array([True, False, True, True])[1:],
        pa.array([1.5, None, 2.5]),
        pa.array([], pa.int64()),
        pa.chunked_array([[1, 2], [3]], pa.int32()),
        pa.chunked_array([], pa.bool_()),
        pa.array([5, 6, 7, 8], pa.int64())[2:],
    ],
)
def test_columns_of_arrow_become_the_same_arrays(column: Any) -> None:
    expected = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    found = array_of(column)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")


def test_our_sql_has_the_results_of_ibis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [made(tmp_path, f"part{seed}", seed, 2000) for seed in (1, 2)]
    known, compared = Backend.to_pyarrow, []

    def both(self: Backend, expr: Any, /, **options: Any) -> Any:
        found = known(self, expr, **options)
        with suppress(UnknownOperationError):
            ours = self.con.sql(sql_of(expr.as_table().op())).to_arrow_table()
            theirs = self.con.sql(self.of_ibis.compile(expr.as_table())).to_arrow_table()
            compared.append((rows_of(ours), rows_of(theirs)))
        return found

    monkeypatch.setattr(Backend, "to_pyarrow", both)
    # Of expressions, not of kernels.
    monkeypatch.setattr(Backend, "batches", None)
    with open_files(*paths) as run:
        drawn = [diagram.build(run.study) for diagram in CATALOGUE]  # type: ignore[arg-type]
    assert sum(isinstance(each, Figure) for each in drawn) > 40
    assert len(compared) > 50
    for ours, theirs in compared:
        assert ours == theirs


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    """The rows in any order; floats to twelve digits, integers of any width."""

    def text(value: Any) -> str:
        return f"{value:.12g}" if isinstance(value, float) else str(value)

    return sorted(tuple(map(text, row.values())) for row in table.to_pylist())


def test_limited_rows_are_the_first_in_order(engine: Embedded) -> None:
    table = table_of(engine, [3, None, 9, 1], [0, 0, 0, 0], [0, 0, 0, 0])
    ordered = table.order_by(table.value.desc()).limit(2)
    assert [row["value"] for row in ordered.to_pyarrow().to_pylist()] == [9, 3]
    assert table.order_by("value").select("value").to_pyarrow()["value"].to_pylist() == [1, 3, 9, None]


def test_names_and_texts_are_quoted(engine: Embedded) -> None:
    table = table_of(engine, [1, -2], [0, 0], [0, 0])
    import ibis

    odd = table.select(**{'a "b"': ibis.literal("it's"), "n": -table.value - ibis.literal(-1)})
    assert odd.to_pyarrow().to_pylist() == [{'a "b"': "it's", "n": 0}, {'a "b"': "it's", "n": 3}]


def test_ibis_compiles_what_we_do_not(engine: Embedded) -> None:
    table = table_of(engine, [1, 5, 9, None], [0, 0, 0, 0], [0, 0, 0, 0])
    with pytest.raises(UnknownOperationError):
        sql_of(table.value.median().as_table().op())
    assert table.value.median().to_pyarrow().as_py() == 5
    assert engine.backend.name == "duckdb"
