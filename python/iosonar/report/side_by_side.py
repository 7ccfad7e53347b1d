"""The key numbers of traces and runs of calls, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from iosonar import units
from iosonar.quantities.distribution import pooled
from iosonar.quantities.percentiles import name_of
from iosonar.report.page import Table
from iosonar.study.calls import CallSide, CallStudy

SHARES = (0.5, 0.95, 0.99)
SHARES_OF_DELAY = (0.5, 0.99)

Group = Sequence[CallSide]


def side_by_side(study: CallStudy, names: Sequence[str] = ()) -> Table:
    """A column for each side with its repetitions: sums, percentiles of all calls, and ranges of what each run has.

    `names` are those of a comparison, whose own tables have the percentiles of response times.
    """
    window_s = study.window_s
    chosen = study.options.percentiles
    shares, of_delay = chosen or SHARES, chosen or SHARES_OF_DELAY

    def row(title: str, text: Callable[[Group], str]) -> tuple[str, ...]:
        return (title, *(text(group) for group in study.groups))

    def of_runs(title: str, value: Callable[[CallSide], float], text: Callable[[float], str]) -> tuple[str, ...]:
        return row(title, lambda group: _range([value(side) for side in group], text))

    rows = [
        row("calls", lambda group: f"{sum(side.extent.calls for side in group):,}"),
        of_runs("duration", lambda side: side.seconds, units.span),
        of_runs("calls per second, median", lambda side: side.load(window_s).median, units.count),
        of_runs("calls per second, maximum", lambda side: side.load(window_s).maximum, units.count),
        *(row(f"response time {name_of(share)}", partial(_response, share)) for share in shares if not names),
        of_runs("time in calls", lambda side: side.pooled_response.total / 1e9, units.span),
        row("mismatches", _mismatches),
        *(row(f"delay {name_of(share)}", partial(_delay, share)) for share in of_delay),
    ]
    return Table("Side by side", ("", *(names or [side.name for side in study.sides])), tuple(rows))


def _range(values: Sequence[float], text: Callable[[float], str]) -> str:
    """The value of a run, or the least and the greatest of several."""
    return " … ".join(dict.fromkeys(text(value) for value in (min(values), max(values))))


def _response(share: float, group: Group) -> str:
    return units.span(pooled([side.pooled_response for side in group]).percentile(share) / 1e9)


def _mismatches(group: Group) -> str:
    return f"{sum(side.extent.mismatches for side in group):,}" if group[0].is_run else "–"


def _delay(share: float, group: Group) -> str:
    timed = [side.delays.not_held_back for side in group if side.keeps_times]
    return units.span(pooled(timed).percentile(share) / 1e9) if timed else "–"
