"""Odd tables: each is read as by the Rust half, or refused with a one-line reason."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from factory import LOAD_SCHEMA, MS, RUN_SCHEMA, load_row, run_row, write_load, write_run
from hypothesis import given, settings
from hypothesis import strategies as st

from iosonar.cli import sql
from iosonar.errors import UserError
from iosonar.table import open_requests
from iosonar.table.damage import damage_among
from iosonar.table.footer import RunInfo
from iosonar.table.validation import open_validated

ROWS = [run_row(n, scheduled=n * MS, sector=8 * n, op="write" if n % 3 else "read") for n in range(6)]
LOAD = [load_row(n * MS, sector=8 * n) for n in range(6)]


def table_with(schema: pa.Schema, rows: list[dict[str, Any]], name: str, column: Any) -> pa.Table:
    table = pa.Table.from_pylist(rows, schema=schema)
    place = table.schema.get_field_index(name)
    return table.append_column(name, column) if place < 0 else table.set_column(place, name, column)


def read(path: Path) -> list[dict[str, Any]]:
    """All rows of the table, as reports compute them."""
    with open_requests([path]) as requests:
        kept = requests.kept(lambda table: table.drop("delay_ns", "latency_ns"))
        found: list[dict[str, Any]] = kept.order_by("place").to_pyarrow().to_pylist()
    return found


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as refused:
        read(path)
    text = str(refused.value)
    assert text.startswith(str(path)) and "\n" not in text and "Traceback" not in text
    return text.removeprefix(str(path)).lstrip(": ")


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("device", ["x"] * 6, "its column device has the type BYTE_ARRAY; docs/schema.md lists the columns"),
        ("device", [-1] * 6, "has no request"),
        ("device", [2**40] * 6, "has no request"),
        ("sector", [True] * 6, "its column sector has the type BOOLEAN"),
        ("sector", [NAN] * 6, "has no request"),
        ("sector", [INFINITY] * 6, "has no request"),
        ("sector", [2**63 - 1] * 6, "has no request"),
        ("sectors", [[8]] * 6, "its column sectors is missing"),
        ("op", ["transmogrify"] * 6, "op is not read, write, flush, discard or write_zeroes"),
        ("op", [1] * 6, "its column op has the type INT64"),
        ("delay_reason", ["x"] * 6, "delay_reason is not a known name"),
        ("outcome", ["x"] * 6, "outcome is not a known name"),
        ("scheduled_ns", [None] * 6, "scheduled_ns is missing"),
        ("issued_ns", [2**63 - 1] * 6, "row 0 left out: a time is 292 years or more from zero"),
        ("issued_ns", [2**63 - 2] * 6, "column issued_ns has values outside"),
        ("pushed_back", ["yes"] * 6, "its column pushed_back has the type BYTE_ARRAY"),
    ],
)
def test_an_invalid_run_is_refused(tmp_path: Path, name: str, values: list[Any], message: str) -> None:
    array = pa.array(values, pa.int64()) if values[0] is None else pa.array(values)
    path = write_run(tmp_path / "a.parquet", table_with(RUN_SCHEMA, ROWS, name, array))
    assert message in refusal(path)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        # Types that other programs use for integers.
        ("sector", [0.0, 8.0, 16.0, 24.0, 32.0, 40.0], [0, 8, 16, 24, 32, 40]),
        ("in_flight", [1.0, NAN, 2.0, NAN, 3.0, 4.0], [1, None, 2, None, 3, 4]),
        ("device", [None] * 6, [0] * 6),
        ("pushed_back", [0, 1, 0, 1, 0, 0], [False, True, False, True, False, False]),
        ("outcome", [None] * 6, ["ok"] * 6),
    ],
)
def test_types_of_other_programs_are_read(tmp_path: Path, name: str, values: list[Any], expected: list[Any]) -> None:
    kind = {"device": pa.int32(), "outcome": pa.string()}.get(name)
    path = write_run(tmp_path / "a.parquet", table_with(RUN_SCHEMA, ROWS, name, pa.array(values, kind)))
    assert [row[name] for row in read(path)] == expected


def test_invalid_rows_are_skipped_with_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = table_with(RUN_SCHEMA, ROWS, "sector", pa.array([0, -8, 16, 24, 32, 40]))
    path = write_run(tmp_path / "a.replay.parquet", table)
    assert [row["sector"] for row in read(path)] == [0, 16, 24, 32, 40]
    with pytest.raises(SystemExit):
        sql.app([str(path), "SELECT count(*) AS n FROM requests"], prog_name="iosonar sql")
    message = capsys.readouterr()
    assert message.out.split() == ["n", "─", "5"]
    assert (
        message.err == f"note: {path}: row 1 left out: sector or sectors are missing, negative or beyond any device\n"
    )


@pytest.mark.parametrize(
    "name", ["file_row_number", "source", "place", "OP", "filename", "delay_ns", "select", 'a"b', ""]
)
def test_additional_columns_may_have_any_name(tmp_path: Path, name: str) -> None:
    path = write_run(tmp_path / "a.parquet", table_with(RUN_SCHEMA, ROWS, name, pa.array(list("abcdef"))))
    rows = read(path)
    assert [row["place"] for row in rows] == list(range(6)) and {row["source"] for row in rows} == {0}
    assert [row["op"] for row in rows] == [row["op"] for row in ROWS]
    assert {row["delay_ns"] for row in rows} == {0}


def test_a_column_name_may_occur_twice(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS, schema=RUN_SCHEMA).append_column("op", pa.array(["x"] * 6))
    assert [row["op"] for row in read(write_run(tmp_path / "a.parquet", table))] == [row["op"] for row in ROWS]


VERDICT: dict[str, Any] = {"faithful": True, "own": {"requests": 1}}
FOOTERS: list[tuple[dict[str, Any], str]] = [
    ({"kind": 3}, "kind is not one of load, replay"),
    ({"devices": "sda"}, "devices is not a list"),
    ({"devices": [{"name": 3}]}, "devices[0].name is not a string"),
    ({"counts": {"requests": -1}}, "counts.requests is not an integer from 0"),
    ({"span": {"last_ns": 2**70}}, "span.last_ns is not an integer from"),
    ({"complete": "yes"}, "complete is not true or false"),
    ({"warnings": "none"}, "warnings is not a list"),
    ({"source": {}}, "source.format is missing"),
    ({"run": {"target": 3}}, "run.target is not an object"),
    ({"run": {"targets": [7]}}, "run.targets[0] is not an object"),
    ({"run": {"target": {"sectors": "many"}}}, "run.target.sectors is not an integer"),
    ({"run": {"options": []}}, "run.options is not an object"),
    ({"run": {"options": {"speedup": "fast"}}}, "run.options.speedup is not a finite number"),
    ({"run": {"statistics": {"wrap_factor": NAN}}}, "NaN is not a number"),
    ({"run": {"statistics": {"wrap_factor": -1}}}, "run.statistics.wrap_factor is not a finite number of 0 or more"),
    ({"run": {"statistics": {"verdict": {"faithful": True}}}}, "run.statistics.verdict.own is missing"),
    ({"run": {"warnings": [1]}}, "run.warnings[0] is not a string"),
    ({"run": {"started_unix_ns": 2**70}}, "run.started_unix_ns is not an integer"),
    ({"run": {"machine": {"kernel": [1]}}}, "run.machine.kernel is not a string"),
    ({"run": {"machine": {"memory_kib": "much"}}}, "run.machine.memory_kib is not a finite number"),
    ({"run": {"target": {"queue": 7}}}, "run.target.queue is not an object"),
    ({"run": {"targets": [{"mount": "/"}]}}, "run.targets[0].mount is not an object"),
    ({"run": {"options": {"window": {"start": "x"}}}}, "run.options.window.start is not an integer"),
    ({"run": {"statistics": {"verdict": VERDICT | {"remedies": [1]}}}}, "verdict.remedies[0] is not an object"),
    ({"run": {"statistics": {"verdict": VERDICT | {"remedies": [{}]}}}}, "verdict.remedies[0].try is missing"),
]


@pytest.mark.parametrize(("footer", "message"), FOOTERS)
def test_each_key_of_the_footer_has_its_type(tmp_path: Path, footer: dict[str, Any], message: str) -> None:
    text = refusal(write_run(tmp_path / "a.parquet", ROWS, **footer))
    assert (
        text.startswith("the `iosonar` object in its footer does not conform to docs/schema.md: ") and message in text
    )


def test_null_in_the_footer_counts_as_missing(tmp_path: Path) -> None:
    run = {"options": None, "target": None, "machine": None, "statistics": None, "warnings": None}
    path = write_run(tmp_path / "a.parquet", ROWS, run=run, epoch_unix_ns=None)
    with open_requests([path]) as requests:
        assert requests.files[0].run == RunInfo()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", '"x"', "[" * 100_000, '{"a":' * 5_000, "\\ud800", "9" * 9_999]
)
def test_a_footer_that_is_not_an_object_is_refused(tmp_path: Path, text: str) -> None:
    table = pa.Table.from_pylist(ROWS, schema=RUN_SCHEMA).replace_schema_metadata({"iosonar": text})
    pq.write_table(table, tmp_path / "a.parquet")
    assert "the `iosonar` object in its footer does not conform to docs/schema.md: " in refusal(tmp_path / "a.parquet")


def test_a_table_without_a_footer_is_recognised_by_its_columns(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS, schema=RUN_SCHEMA), tmp_path / "a.parquet")
    assert [row["op"] for row in read(tmp_path / "a.parquet")] == [row["op"] for row in ROWS]


ARRAYS = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=6, max_size=6).map(
        lambda values: pa.array(values, pa.int64())
    ),
    st.lists(st.sampled_from([0, 1, 8, 2**31, 2**53, 2**62, -1, None]), min_size=6, max_size=6).map(
        lambda values: pa.array(values, pa.int64())
    ),
    st.lists(st.floats() | st.none(), min_size=6, max_size=6).map(lambda values: pa.array(values, pa.float64())),
    st.lists(st.booleans() | st.none(), min_size=6, max_size=6).map(lambda values: pa.array(values, pa.bool_())),
    st.lists(st.text(max_size=3) | st.none(), min_size=6, max_size=6).map(lambda values: pa.array(values, pa.string())),
    st.lists(st.binary(max_size=3) | st.none(), min_size=6, max_size=6).map(
        lambda values: pa.array(values, pa.binary())
    ),
    st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6).map(lambda values: pa.array(values, pa.uint64())),
    st.lists(st.integers(-(2**62), 2**62), min_size=6, max_size=6).flatmap(
        lambda values: st.sampled_from(
            [pa.timestamp("ns"), pa.timestamp("ms"), pa.time64("ns"), pa.duration("us")]
        ).map(lambda kind: pa.array(values, pa.int64()).view(kind))  # type: ignore[type-var]
    ),
)


@settings(max_examples=30)
@given(name=st.sampled_from([*RUN_SCHEMA.names, "ready_ns", "extra"]), array=ARRAYS)
def test_any_run_is_read_or_refused(tmp_path: Path, name: str, array: Any) -> None:
    path = write_run(tmp_path / "a.parquet", table_with(RUN_SCHEMA, ROWS, name, array))
    try:
        rows = read(path)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert 0 < len(rows) <= 6


@settings(max_examples=15)
@given(name=st.sampled_from([*LOAD_SCHEMA.names, "latency_ns", "queued_ns", "pid"]), array=ARRAYS)
def test_any_load_is_read_or_refused(tmp_path: Path, name: str, array: Any) -> None:
    path = write_load(tmp_path / "a.parquet", table_with(LOAD_SCHEMA, LOAD, name, array))
    try:
        rows = read(path)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert 0 < len(rows) <= 6


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["run", "devices", "counts", "span", "source", "complete", "warnings", "epoch_unix_ns", "clocks", "kind"]
RUN_KEYS = ["options", "target", "targets", "machine", "statistics", "warnings", "fake", "load", "started_unix_ns"]
RUN_KEYS += ["findings"]


@settings(max_examples=60)
@given(key=st.sampled_from([*KEYS, *(f"run.{name}" for name in RUN_KEYS)]), value=JSON, version=st.sampled_from([1, 2]))
def test_any_footer_is_accepted_or_refused(tmp_path: Path, key: str, value: Any, version: int) -> None:
    from iosonar.table.footer import parse_footer

    footer: dict[str, Any] = {
        **{"schema_version": version, "kind": "replay", "source": {"format": "test"}, "devices": [{"name": ""}]},
        **{"counts": {}, "span": {}, "complete": True, "run": {}},
    }
    outer, _, inner = key.partition(".")
    footer[outer] = {inner: value} if inner else value
    try:
        found = parse_footer(json.dumps(footer).encode(), 2)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(found.devices, tuple) and isinstance(found.run, RunInfo)


RUN: dict[str, Any] = {
    "load": "a.load",
    "options": {"speedup": 2.0, "asap": False, "closed": None, "window": {"start": 1, "end": 2}, "data": {"kind": "x"}},
    "typed": {"depth": "8", "target": ["a", "b"]},
    "target": {"path": "/dev/x", "kind": "block", "sectors": 8, "queue": {"scheduler": "none"}, "mount": {}},
    "targets": [
        {"path": "f", "kind": "file", "sectors": 8, "queue": {}, "mount": {"file_system": "ext4"}, "disk": "x"}
    ],
    "machine": {"hostname": "h", "kernel": "6", "cpus": 2, "memory_kib": 4096, "governor": ["x"]},
    "engine": "io_uring",
    "wait": "spin",
    "fake": "FAKE RESULT: x",
    "warnings": ["x"],
    "started_unix_ns": 10**18,
    "statistics": {
        "requests": 3,
        "wrap_factor": 0.5,
        "zero_reads": 1,
        "verdict": {
            "faithful": False,
            "sentence": "x",
            "own": {"requests": 1, "within_pct": {"10": 99.0, "50": 100}, "delay_us": {"p99": 3.5, "max": 9}},
            "remedies": [{"try": "x", "costs": "y"}],
        },
    },
}
ODD_VALUES: list[Any] = [None, True, 0, -1, 2**70, 10**400, 0.5, 1e308, "", "x", [], [7], [[]], {}, {"x": 1}]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of a value and of all values within it."""
    yield at
    within = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in within:
        yield from places(inner, (*at, key))


@pytest.mark.parametrize("value", ODD_VALUES, ids=repr)
@pytest.mark.parametrize("without", [(), ("typed",), ("targets",)], ids=str)
def test_any_run_in_a_footer_is_shown_or_refused(value: Any, without: tuple[str, ...]) -> None:
    from iosonar.report.run_tables import facts
    from iosonar.report.settings import _settings_of
    from iosonar.study.runs import stated_fidelity, wrap_factor
    from iosonar.table import SourceFile
    from iosonar.table.footer import parse_footer
    from iosonar.table.kinds.requests import REPLAY

    base = {name: value for name, value in RUN.items() if name not in without}
    shown = 0
    for place in places(base):
        run = copy.deepcopy({"run": base})
        inner: Any = run
        for key in ("run", *place[:-1]) if place else ():
            inner = inner[key]
        inner[place[-1] if place else "run"] = value
        footer = {
            **{"schema_version": 1, "kind": "replay", "source": {"format": "test"}, "devices": [{"name": ""}]},
            **{"counts": {}, "span": {}, "complete": True, **run},
        }
        try:
            found = parse_footer(json.dumps(footer).encode(), 1)
        except UserError:
            continue
        file = SourceFile(Path("a"), Path("a"), REPLAY, found, 1, ())
        list(facts([file]))
        dict(_settings_of(file))
        stated_fidelity(file.run.statistics)
        wrap_factor(file)
        shown += 1
    assert shown


@pytest.mark.parametrize("cut", [4, 8, 40, 400])
def test_damage_is_reported_in_one_line(tmp_path: Path, cut: int) -> None:
    path = write_run(tmp_path / "a.parquet", ROWS)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert "truncated" in refusal(path)
    path.write_bytes(whole[: -cut - 8] + b"\xff" * cut + whole[-8:])
    assert "damaged Parquet" in refusal(path)


def test_an_invalid_column_name_is_reported_in_one_line(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a.parquet", ROWS)
    whole = path.read_bytes()
    # The schema names it first, the row group last.
    place = whole.rindex(b"in_flight", 0, whole.index(b"ARROW:schema") if b"ARROW:schema" in whole else None)
    assert place != whole.index(b"in_flight")
    path.write_bytes(whole[:place] + b"in\xacflight" + whole[place + len("in_flight") :])
    try:
        read(path)
    except UserError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    assert refusal(tmp_path / "directory") == "Is a directory, and no file *.parquet is below it"
    assert "not a regular file" in refusal(Path("/dev/null"))


TABLES = [
    "crates/trace/tests/golden/v3.load.parquet",
    "crates/trace/tests/golden/v3.replay.parquet",
    "crates/files/tests/golden/v2.calls.parquet",
    "fuzz/seeds/calls/few.calls-run.parquet",
]


@pytest.mark.parametrize("table", TABLES)
def test_damage_is_reported_without_words_of_libraries(tmp_path: Path, table: str) -> None:
    source = Path(__file__).parents[2] / table
    path, whole = tmp_path / source.name, source.read_bytes()
    reported = 0
    for place in range(4, len(whole), len(whole) // 12):
        path.write_bytes(whole[:place] + bytes(24) + whole[place + 24 :])
        try:
            with ExitStack() as stack:
                open_validated(path, tmp_path, stack)
        except UserError as error:
            text = str(error)
            assert text.startswith(f"{path}: "), text
            foreign = (
                "thrift",
                "TProtocol",
                "Expecting",
                "EOF",
                "Parquet reader",
                "Error:",
                "dictionary",
                str(tmp_path / "table"),
            )
            assert not any(word in text for word in foreign), text
            reported += 1
    assert reported > 3


def test_damage_that_an_engine_finds_is_reported_with_its_file(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a.parquet", ROWS)
    with ExitStack() as stack:
        open_validated(path, tmp_path, stack)
    assert damage_among({path: path}) is None
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(400) + whole[404:])
    assert str(damage_among({path: path})).startswith(
        f"{path}: damaged Parquet: its rows cannot be read; copy the file again"
    )
