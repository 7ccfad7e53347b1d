"""What a sensitivity series found, as sentences, as a table and as rows for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from iosonar import units
from iosonar.figures.model import Note
from iosonar.report.page import Table
from iosonar.series.output import Cell
from iosonar.series.result import UNFILLED
from iosonar.series.sensitivity import EXACT, Degradation, Row

ABOUT = (
    "Response times count from the issue of a request, so the degraded times are not part of them. In flight "
    "is the mean number of requests in flight. All ratios are relative to the exact replay."
)
_LABELS = {Degradation.QUANTIZE: "quantised to", Degradation.DELAY: "delayed by up to"}


def findings(rows: Sequence[Row], notes: Sequence[Note]) -> list[str]:
    """What makes points say nothing, then the largest changes, as a sentence for each metric."""
    doubts = [f"{note.text}." for note in notes]
    degraded = [row for row in rows if row.how and row.counts]
    if not degraded or not all(row.counts for row in rows if not row.how):
        return doubts
    return [
        *doubts,
        *_largest(degraded, "mean response time", "ratio_mean"),
        *_largest(degraded, "mean number of requests in flight", "ratio_in_flight"),
    ]


def _largest(rows: Sequence[Row], noun: str, value: str) -> Iterator[str]:
    # Not known where it is 0 in the exact replay.
    known = [row for row in rows if getattr(row, value) > 0]
    if not known:
        return
    most = max(known, key=lambda row: abs(math.log(getattr(row, value))))
    change = units.number(getattr(most, value))
    if change == "1":
        yield f"The {noun} is that of the exact replay with all degraded times."
        return
    yield f"The {noun} changes most with times {_label(most)}: {change} times that of the exact replay."


def table(rows: Sequence[Row]) -> Table:
    """The rows for people."""
    columns = ("times", "mean", "p99", "in flight", "mean ÷ exact", "p99 ÷ exact", "in flight ÷ exact", "")
    return Table("", columns, tuple(_cells(row) for row in rows))


def as_rows(rows: Sequence[Row]) -> list[dict[str, Cell]]:
    """The rows for programs."""
    return [
        {
            "point": row.name,
            "how": str(row.how or EXACT),
            "time_s": row.time_s,
            "runs": row.runs,
            "response_mean_s": row.response_mean_s,
            "response_p99_s": row.response_p99_s,
            "in_flight": row.in_flight,
            "ratio_response_mean": row.ratio_mean,
            "ratio_response_p99": row.ratio_p99,
            "ratio_in_flight": row.ratio_in_flight,
            "faithful": row.faithful,
            "unfilled": row.unfilled,
            "failed": row.failed,
        }
        for row in rows
    ]


def as_json(rows: Sequence[Row], fakes: Sequence[str]) -> dict[str, Any]:
    """The rows; numbers that are unknown are null."""
    points = [
        {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
        for row in as_rows(rows)
    ]
    return {"schema_version": 1, "fake": list(fakes), "points": points}


def _label(row: Row) -> str:
    return f"{_LABELS[row.how]} {units.seconds(row.time_s)}" if row.how else EXACT


def _cells(row: Row) -> tuple[str, ...]:
    marks = [
        *(["not faithful"] if row.faithful is False else []),
        *([UNFILLED] if row.unfilled else []),
        *([f"{row.failed:,} failed"] if row.failed else []),
    ]
    return (
        _label(row),
        units.span(row.response_mean_s),
        units.span(row.response_p99_s),
        units.count(row.in_flight),
        *(units.number(ratio) for ratio in (row.ratio_mean, row.ratio_p99, row.ratio_in_flight)),
        ", ".join(marks),
    )
