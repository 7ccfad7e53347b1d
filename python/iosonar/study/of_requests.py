"""The summary and the judgement of a study of requests.

All checks are in docs/schemas/verdict.json, but those that do not affect the grade.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from iosonar.quantities.outcomes import FAILED
from iosonar.study.base import cached
from iosonar.study.check import Check
from iosonar.study.checks.completeness import complete, real
from iosonar.study.checks.fidelity import fidelity
from iosonar.study.checks.limits import bad_delay, bad_latency, slow_for_device
from iosonar.study.checks.outcomes import dropped, errors, skipped
from iosonar.study.checks.steady import steady
from iosonar.study.checks.wrap_around import wrap_around
from iosonar.study.checks.zero_reads import zero_reads
from iosonar.study.judgement import Judgement
from iosonar.study.requests import DELAY, LATENCY, Study
from iosonar.study.runs import doubt_of
from iosonar.study.summary import Summary, Times, per

CHECKS: tuple[Callable[[Study], Check], ...] = (
    fidelity,
    complete,
    real,
    bad_latency,
    slow_for_device,
    bad_delay,
    errors,
    dropped,
    skipped,
    zero_reads,
    wrap_around,
    steady,
)
"""All checks, in the order of the verdict."""


@cached
def summary_of(study: Study) -> Summary:
    """The summary, computed once."""
    span, work, outcomes = study.span, study.work, study.outcomes
    by_op, total = outcomes.by_op, sum(outcomes.by_op.values())
    reads, writes = by_op.get("read", 0), by_op.get("write", 0)
    demanded_s = (span.last_scheduled_s or 0.0) - (span.first_scheduled_s or 0.0)
    is_demanded = study.has_demand or not study.requests.is_run
    return Summary(
        noun="requests",
        rows=span.requests,
        reads=reads,
        writes=writes,
        others=total - reads - writes,
        failed=outcomes.of(*FAILED),
        dropped=outcomes.of("dropped"),
        seconds=work.seconds,
        rate_per_s=per(work.requests, work.seconds),
        demanded_s=demanded_s if is_demanded else math.nan,
        demanded_per_s=per(span.requests, demanded_s) if is_demanded else math.nan,
        bytes_moved=work.data,
        bytes_per_s=per(work.data, work.seconds),
        latency=Times.of(study.pooled(LATENCY)),
        delay=Times.of(study.pooled(DELAY)) if study.has_delays else None,
    )


@cached
def judgement_of(study: Study) -> Judgement:
    """The judgement, computed once."""
    files = study.requests.files
    return Judgement(
        tuple(file.path for file in files),
        "requests",
        study.span.requests,
        tuple(check(study) for check in CHECKS),
        doubt_of(study),
        any(file.fake for file in files),
        study.window.as_json() | {"of_requests": study.rows} if study.window else None,
    )
