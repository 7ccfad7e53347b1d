"""The summary and the judgement of a trace or run of calls."""

from __future__ import annotations

import math
from collections.abc import Callable

from iosonar.study.base import cached
from iosonar.study.calls import CallSide
from iosonar.study.check import Check, Topic
from iosonar.study.checks import calls
from iosonar.study.grades import Grade
from iosonar.study.judgement import Judgement
from iosonar.study.summary import Summary, Times, per
from iosonar.table.call_kinds import FAMILIES

CHECKS: tuple[Callable[[CallSide], Check], ...] = (
    calls.complete,
    calls.lost_events,
    calls.bad_lines,
    calls.mismatches,
    calls.not_replayed,
    calls.order,
    calls.fidelity,
)
"""All checks, in the order of the page."""


@cached
def summary_of_calls(side: CallSide) -> Summary:
    """The summary, computed once."""
    extent = side.extent
    reads, writes = (
        sum(each.calls for each in side.mix if each.of in FAMILIES[family]) for family in ("read", "write")
    )
    moved = side.bytes_read + side.bytes_written
    return Summary(
        noun="calls",
        rows=extent.calls,
        reads=reads,
        writes=writes,
        others=extent.calls - reads - writes,
        failed=extent.failed,
        dropped=0,
        seconds=side.seconds,
        rate_per_s=per(extent.calls, side.seconds),
        demanded_s=math.nan,
        demanded_per_s=math.nan,
        bytes_moved=moved,
        bytes_per_s=per(moved, side.seconds),
        latency=Times.of(side.pooled_response),
        delay=Times.of(side.delays.not_held_back) if side.keeps_times else None,
    )


@cached
def judgement_of_calls(side: CallSide) -> Judgement:
    """The judgement, computed once."""
    file, checks = side.calls.file, tuple(check(side) for check in CHECKS)
    missed = any(check.about is Topic.REPLAY and check.grade is Grade.BAD for check in checks)
    doubt = "the result is fake" if file.fake else "the replay was not faithful" if missed else ""
    return Judgement((file.path,), "calls", side.extent.calls, checks, doubt, bool(file.fake))
