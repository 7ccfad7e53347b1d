"""S04: after an overload, the storage works off its backlog faster than requests come."""

from __future__ import annotations

import numpy as np

from iosonar import units
from iosonar.findings.course import between, without_demand
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.requests.saturation import FEWEST_BEHIND, behind_of
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.requests import Study

RECOVERED = 0.1
"""The backlog counts as worked off at that share of its peak."""


def find(study: Study, limits: Limits) -> Finding | None:
    """By the largest backlog that goes away while the load goes on."""
    found = behind_of(study)
    demanded = found.at_s <= found.last_due_s
    behind = np.where(demanded, found.behind_s, 0.0)
    best = None
    # Stretches in which it was behind, the worst first.
    late = behind >= limits["behind"]
    starts = np.flatnonzero(late & ~np.concatenate([[False], late[:-1]]))
    ends = np.append(starts[1:], len(late))[: len(starts)]
    tops = [int(first + np.argmax(found.backlog[first:last])) for first, last in zip(starts, ends, strict=True)]
    for peak in sorted(tops, key=lambda place: -found.backlog[place]):
        after = np.flatnonzero(found.backlog[peak:] < RECOVERED * found.backlog[peak])
        end = peak + int(after[0]) if len(after) else peak
        if found.backlog[peak] < FEWEST_BEHIND or end - peak < 2 or not demanded[end]:
            continue
        # With the last window: it completed what the backlog lost, which may be all of it.
        due, done = (float(each[peak + 1 : end + 1].mean()) for each in (found.due, found.done))
        if done >= limits["faster"] * due:
            best = (peak, end, due, done)
            break
    if best is None:
        return None
    peak, end, due, done = best
    most = float(found.backlog[peak])
    worst_s = most / done
    before = np.flatnonzero(found.backlog[:peak] < RECOVERED * most)
    begin_s = float(found.at_s[before[-1]]) if len(before) else study.first_s
    peak_s, end_s = float(found.at_s[peak]), float(found.at_s[end])
    return DETECTOR.found(
        Severity.INFO,
        f"From {units.span(begin_s)} to {units.span(peak_s)}, the storage fell {units.span(worst_s)} behind; then it "
        f"completed {units.count(done)} requests/s while {units.count(due) if due else 'none'} were demanded, and "
        "caught up at "
        f"{units.span(end_s)}.",
        Evidence(
            between(study, begin_s, end_s, "scheduled_ns"),
            "overview.thrp",
            max(study.first_s, begin_s - (end_s - begin_s) / 4),
            end_s + (end_s - begin_s) / 4,
        ),
        sure=(
            Confidence.HIGH if end - peak >= 5 else Confidence.MEDIUM,
            f"{units.requests(int(most))} were due and not done at the worst moment.",
        ),
        values={
            "from_s": begin_s,
            "peak_s": peak_s,
            "until_s": end_s,
            "behind_s": worst_s,
            "done_per_s": done,
            "due_per_s": due,
        },
    )


DETECTOR = Detector[Study](
    "S04",
    "backlog-recovery",
    "Recovery from a backlog",
    "The load had a peak that was too much for the storage, or the storage paused; afterwards it caught up. The rate "
    "while it "
    "does is the most that it can deliver for these requests.",
    (
        "Look at how long the recovery took: until then, every request of the real system would have been late as "
        "well.",
        "Compare storages by this time and rate, not by averages of the run, which hide both.",
    ),
    find,
    (
        Threshold("behind", 0.5, Measured.TIME, "How far completions fell behind the demand."),
        Threshold("faster", 1.05, Measured.NUMBER, "How many times the demand is completed meanwhile."),
    ),
    why_not=without_demand,
)
