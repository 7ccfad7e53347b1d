"""The checks of a judgement: files by subject, and a line here for each check.

A check is a function from a study to a `Check`. All of them are in docs/schemas/verdict.json, but those that do not
affect the grade.
"""

from __future__ import annotations

from collections.abc import Callable

from iosonar.study.calls import CallSide
from iosonar.study.check import Check
from iosonar.study.checks import calls
from iosonar.study.checks.fidelity import fidelity
from iosonar.study.checks.limits import bad_delay, bad_latency
from iosonar.study.checks.outcomes import dropped, errors, skipped
from iosonar.study.checks.steady import steady
from iosonar.study.checks.whole import complete, real
from iosonar.study.checks.wrap_around import wrap_around
from iosonar.study.checks.zero_reads import zero_reads
from iosonar.study.requests import Study

OF_REQUESTS: tuple[Callable[[Study], Check], ...] = (
    fidelity,
    complete,
    real,
    bad_latency,
    bad_delay,
    errors,
    dropped,
    skipped,
    zero_reads,
    wrap_around,
    steady,
)
"""Those of a run of requests, in the order of the verdict."""

OF_CALLS: tuple[Callable[[CallSide], Check], ...] = (
    calls.complete,
    calls.lost_events,
    calls.bad_lines,
    calls.mismatches,
    calls.not_replayed,
    calls.order,
    calls.fidelity,
)
"""Those of a trace or run of calls, in the order of the page."""
