"""Names of percentiles: p50, p99.9."""

from __future__ import annotations

import re

from iosonar.thresholds import MIN_BEYOND

IN_TABLES = (0.5, 0.95, 0.99, 0.999)
"""The percentiles in tables, if none are chosen."""

_NAME = re.compile(r"p(\d{1,2}(?:\.\d{1,6})?)")


def name_of(share: float) -> str:
    """The name of a percentile: p99.9 of 0.999."""
    return f"p{share * 100:.9g}"


def share_of(name: str) -> float | None:
    """The share of values below a percentile: 0.999 of p99.9; None if it is not the name of one."""
    found = _NAME.fullmatch(name)
    share = round(float(found[1]) / 100, 10) if found else 0.0
    return share if share > 0 else None


def fewest(share: float) -> int:
    """The fewest values that a percentile takes."""
    return round(MIN_BEYOND / (1 - share))
