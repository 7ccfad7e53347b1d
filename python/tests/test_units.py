from __future__ import annotations

import math

import pytest

from iosonar import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (1e-9, "1 ns"),
        (1.5e-6, "1.5 µs"),
        (0.0009999, "1 ms"),
        (0.0123, "12.3 ms"),
        (3599.9, "3600 s"),
        (-0.002, "-2 ms"),
        (math.nan, "–"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7, "7"),
        (1234, "1234"),
        (2229.36, "2229"),
        (80794, "80.8 k"),
        (1e8, "100 M"),
        (5.4e-6, "5.4 × 10⁻⁶"),
        (0.00123, "0.00123"),
    ],
)
def test_count(value: float, text: str) -> None:
    assert units.count(value) == text


def test_bytes() -> None:
    assert units.binary_bytes(512) == "512 B"
    assert units.binary_bytes(1.5 * 2**30) == "1.5 GiB"


@pytest.mark.parametrize(
    ("share", "text"), [(1, "100 %"), (0.999999, "99.99 %"), (0.9973, "99.73 %"), (0.5, "50.0 %"), (0, "0 %")]
)
def test_percent_never_rounds_to_all(share: float, text: str) -> None:
    assert units.percent(share) == text
