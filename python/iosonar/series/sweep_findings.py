"""What a sweep found, as sentences, as a table and as rows for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from iosonar import units
from iosonar.report.page import Table
from iosonar.series.knee import depths, knee
from iosonar.series.notes import fakes_of, fidelity_notes, too_few_notes, unfilled_notes
from iosonar.series.output import Cell
from iosonar.series.result import Result
from iosonar.series.sweep import SweepVariable
from iosonar.series.sweep_figures import depth_text, knee_text, text_of

ABOUT = (
    "Response times count from the scheduled time of a request, so waiting for the device is part of them. In flight "
    "is throughput × mean latency from the issue (Little's law)."
)

HEADS = {SweepVariable.DEPTH: "depth", SweepVariable.RATE: "demanded rate", SweepVariable.SPAN: "working set"}


def findings(vary: SweepVariable, results: Sequence[Result]) -> list[str]:
    """The conclusions, as sentences."""
    found = [
        *(note.text for note in (*fidelity_notes(results), *unfilled_notes(results))),
        knee_text(vary, results),
        depth_text(results) if vary is SweepVariable.DEPTH else None,
        limit_text(results) if vary is SweepVariable.RATE else None,
        *(note.text for note in too_few_notes(results)),
    ]
    return [f"{text}." for text in found if text] + [f"FAKE RESULT: {text}" for text in fakes_of(results)]


def limit_text(results: Sequence[Result]) -> str | None:
    """What to do about points that show the limit on the requests in flight instead of the device."""
    full = [each for each in results if each.is_limited_by_depth]
    if not full:
        return None
    shares = ", ".join(f"{each.name} ({units.percent(each.delayed_by_depth / each.requests)})" for each in full)
    return (
        f"Requests waited for room in --depth at {shares}: times and throughput may be limited by the depth, not by "
        "the device; repeat with a larger one (-- --depth 4096) and another --output"
    )


def table(vary: SweepVariable, results: Sequence[Result]) -> Table:
    """The points for people; the last column has what they must know."""
    columns = (HEADS[vary], "requests/s", "mean", "median", "p99", "in flight", "")
    return Table("", columns, tuple(_cells(vary, each, _names(vary, results)) for each in results))


def rows(vary: SweepVariable, results: Sequence[Result]) -> list[dict[str, Cell]]:
    """The points for programs."""
    names = _names(vary, results)
    return [
        {
            "point": each.name,
            str(vary): each.value,
            "requests": each.requests,
            "requests_per_s": each.rate,
            "response_mean_s": each.response_mean_s,
            "response_p50_s": each.response_median_s,
            "response_p99_s": each.response_p99_s,
            "latency_mean_s": each.latency_mean_s,
            "in_flight_by_littles_law": each.in_flight,
            "in_flight_counted": each.mean_in_flight,
            "delayed_by_depth": each.delayed_by_depth,
            "power": each.power,
            "faithful": each.faithful,
            "unfilled": each.unfilled,
            "failed": each.failed,
            "fake": bool(each.fake),
            "marks": ", ".join(names.get(each.name, ())),
        }
        for each in results
    ]


def as_json(vary: SweepVariable, results: Sequence[Result]) -> dict[str, Any]:
    """The points and the special ones among them; numbers that are unknown are null."""
    bend = knee(results) if vary is not SweepVariable.SPAN else None
    best = depths(results) if vary is SweepVariable.DEPTH else None
    return {
        "schema_version": 1,
        "vary": str(vary),
        "points": [{key: _finite(value) for key, value in row.items()} for row in rows(vary, results)],
        "knee": bend.name if bend else None,
        "optimum": best.optimum.name if best else None,
        "best": best.best.name if best else None,
    }


def _finite(value: Cell) -> Cell:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _names(vary: SweepVariable, results: Sequence[Result]) -> dict[str, list[str]]:
    """What a point is: the knee, the optimum, the best."""
    found: dict[str, list[str]] = {}
    if vary is not SweepVariable.SPAN and (bend := knee(results)):
        found.setdefault(bend.name, []).append("knee")
    if vary is SweepVariable.DEPTH and (best := depths(results)):
        found.setdefault(best.optimum.name, []).append("optimum")
        found.setdefault(best.best.name, []).append("best")
    return found


def _cells(vary: SweepVariable, each: Result, names: dict[str, list[str]]) -> tuple[str, ...]:
    times = (each.response_mean_s, each.response_median_s, each.response_p99_s)
    limited = ["limited by --depth"] if each.is_limited_by_depth and vary is not SweepVariable.DEPTH else []
    marks = [*names.get(each.name, ()), *limited, *([each.marks] if each.marks else [])]
    return (
        text_of(vary, each.value),
        units.count(each.rate),
        *(units.span(time) for time in times),
        units.count(each.in_flight),
        ", ".join(marks),
    )
