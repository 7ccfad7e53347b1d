"""Whether latencies and delays stayed within their limits."""

from __future__ import annotations

from iosonar import units
from iosonar.study.check import Check, Topic
from iosonar.study.grades import Grade
from iosonar.study.requests import DELAY, LATENCY, Measure, Study

USUAL_S = {False: 0.1, True: 1.0}
"""The longest latency that is usual for a device without and with moving parts, whatever the limit of the verdict."""

MOVING = {False: "without moving parts", True: "with moving parts"}


def bad_latency(study: Study) -> Check:
    """Whether the storage was fast enough."""
    is_shown = bool(study.distribution(LATENCY)) and not slow_for_device(study).sentence
    return _within(study, LATENCY, is_shown=is_shown or not study.verdict(LATENCY).passed)


def slow_for_device(study: Study) -> Check:
    """Whether latencies are longer than is usual for such devices, though within the limit of the verdict."""
    name, found = "slow_for_device", study.verdict(LATENCY)
    kinds = {target.queue.rotational for file in study.files for target in file.targets if target.queue}
    moving = next(iter(kinds)) if len(kinds) == 1 else None
    if moving is None or not found.passed or found.maximum_s <= USUAL_S[moving]:
        return Check(name, None, is_graded=False)
    sentence = (
        f"The longest latency, {units.span(found.maximum_s)}, is within the limit of {units.span(found.limit_s)}, but "
        f"long for a device {MOVING[moving]}: more than {units.span(USUAL_S[moving])} is unusual"
    )
    return Check(name, Grade.WARNING, sentence=sentence, about=Topic.TIMES, is_graded=False)


def bad_delay(study: Study) -> Check:
    """Whether requests were issued soon enough."""
    return _within(study, DELAY, is_shown=study.has_delays and bool(study.distribution(DELAY)))


def _within(study: Study, measure: Measure, *, is_shown: bool) -> Check:
    found = study.verdict(measure)
    reason = beyond_limit(found.beyond, found.limit_s, measure)
    values = {
        "limit_s": found.limit_s,
        "beyond": found.beyond,
        "first_at_s": None if found.first_at_s is None else found.first_at_s + study.origin_ns / 1e9,
        "max_s": found.maximum_s,
    }
    sentence = f"{reason}; the maximum is {units.span(found.maximum_s)}" if is_shown else ""
    grade = Grade.GOOD if found.passed else Grade.BAD
    return Check(f"bad_{measure.name}", grade, values, reason, sentence, about=Topic.TIMES)


def beyond_limit(beyond: int, limit_s: float, measure: Measure) -> str:
    """The number of latencies or delays above their limit: No latency above 5 s."""
    number = f"{beyond:,}" if beyond else "No"
    return f"{number} {measure.plural if beyond > 1 else measure.name} above {units.span(limit_s)}"
