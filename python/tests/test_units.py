from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iosonar import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (1e-9, "1 ns"),
        (1.5e-6, "1.5 µs"),
        (0.0009999, "1 ms"),
        (0.0123, "12.3 ms"),
        (3599.9, "3,600 s"),
        (-0.002, "-2 ms"),
        (math.nan, "–"),
    ],
)
def test_seconds_have_the_unit_that_fits_their_size(value: float, text: str) -> None:
    assert units.seconds(value) == text


def test_spans_are_in_minutes_from_a_minute_on() -> None:
    values = [0, 85e-9, 0.00085, 0.44857, 0.9999, 59.94, 59.96, 3599.9, 3660, 90_000, -3660]
    texts = ["0 s", "85 ns", "850 µs", "449 ms", "1 s", "59.9 s", "1 min", "1 h", "1 h 1 min", "1 d 1 h", "-1 h 1 min"]
    assert [units.span(value) for value in values] == texts


CASES = json.loads((Path(__file__).parents[2] / "crates/trace/tests/numbers.json").read_text(encoding="utf-8"))
"""Numbers as both halves format them: the tests of crates/trace/src/text/human.rs read the same file."""


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("span", units.span),
        ("transferred", units.transferred),
        ("addressed", units.binary_bytes),
        ("rate", units.count),
        ("share", units.percent),
        ("requests", units.requests),
    ],
)
def test_both_halves_format_numbers_alike(name: str, written: Callable[[float], str]) -> None:
    assert len(CASES[name]) > 5
    assert [(value, written(value)) for value, _ in CASES[name]] == [(value, text) for value, text in CASES[name]]


COUNTS = [
    (0, "0"),
    (7, "7"),
    (12.345, "12.3"),
    (1234, "1,234"),
    (2229.36, "2,229"),
    (80794, "80,794"),
    (1e8, "100,000,000"),
    (5.4e-6, "<0.001"),
    (0.001, "0.001"),
    (-7, "-7"),
    (0.00123, "0.00123"),
    (math.inf, "–"),
]


@pytest.mark.parametrize(("value", "text"), COUNTS)
def test_counts_are_shown_in_full(value: float, text: str) -> None:
    assert units.count(value) == text


def test_millions_are_abbreviated_along_an_axis() -> None:
    assert [units.tick(value) for value in (500, 1e4, 250_000, 1e6, 2.5e7)] == [
        "500",
        "10,000",
        "250,000",
        "1 M",
        "25 M",
    ]


def test_along_an_axis_small_counts_differ() -> None:
    assert [units.tick(value) for value in (0.001, 2e-4, -2e-4)] == ["0.001", "2 × 10⁻⁴", "-2 × 10⁻⁴"]


def test_sizes_are_binary_and_transferred_data_decimal() -> None:
    assert units.binary_bytes(512) == "512 B"
    assert units.binary_bytes(1.5 * 2**30) == "1.5 GiB"
    assert units.transferred(29_173_158.7) == "29.2 MB"
    assert units.transferred(1_500) == "1.5 kB"
    assert units.transferred(0) == "0 B"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1, "100 %"),
        (0.999999, "99.9 %"),
        (0.9973, "99.7 %"),
        (0.94996, "94.9 %"),
        (0.95, "95.0 %"),
        (0.57, "57.0 %"),
        (0.29, "29.0 %"),
        (0.5, "50.0 %"),
        (0.6999243794, "70.0 %"),
        (1 / 6, "16.7 %"),
        (0.9504, "95.0 %"),
        (0.001, "0.1 %"),
        (0.00049, "<0.1 %"),
        (0, "0 %"),
        (math.nan, "–"),
    ],
)
def test_a_share_is_never_rounded_to_a_threshold_it_misses(share: float, text: str) -> None:
    assert units.percent(share) == text


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_shares_of_counts_are_rounded_to_the_nearest_tenth(part: int, whole: int) -> None:
    part = min(part, whole)
    text = units.percent(part / whole)
    assert (text == "100 %") == (part == whole) and (text == "0 %") == (part == 0)
    if text.startswith("<"):
        assert 2000 * part < whole * 1.000001
        return
    shown = round(float(text.removesuffix(" %")) * 10)
    near = 10 if 0 < whole - part < whole / 1000 or whole * 949 < part * 1000 < whole * 950 else 5
    assert abs(shown * whole - part * 1000) <= whole * near / 10 * 1.000001
    assert shown < 950 or part * 1000 >= 950 * whole


@given(st.floats(0, 1), st.integers(1, 9999))
def test_a_rounded_share_is_on_the_same_side_of_any_threshold(share: float, limit: int) -> None:
    text = units.percent(share, limit / 10_000)
    shown = 0.0 if text.startswith("<") else float(text.removesuffix(" %")) * 100
    if limit % 10 == 0 and not text.startswith("<"):
        assert (shown >= limit - 1e-6) == (share >= limit / 10_000)


def test_changes_have_a_sign_unless_zero() -> None:
    assert [units.change(share) for share in (0.1234, -0.05, -0.0001, 25.0)] == [
        "+12.3 %",
        "-5.0 %",
        "+0.0 %",
        "+2,500.0 %",
    ]


def test_one_is_singular() -> None:
    assert (units.requests(1), units.requests(3082), units.counted(2, "run")) == (
        "1 request",
        "3,082 requests",
        "2 runs",
    )
