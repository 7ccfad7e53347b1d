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
    peak = int(np.argmax(behind))
    worst_s, most = float(behind[peak]), float(found.backlog[peak])
    after = np.flatnonzero(found.behind_s[peak:] < RECOVERED * worst_s)
    if worst_s < limits["behind"] or most < FEWEST_BEHIND or not len(after):
        return None
    end = peak + int(after[0])
    if not demanded[end] or end - peak < 2:
        return None
    due, done = float(found.due[peak + 1 : end + 1].mean()), float(found.done[peak + 1 : end + 1].mean())
    if done < limits["faster"] * due:
        return None
    before = np.flatnonzero(found.behind_s[:peak] < RECOVERED * worst_s)
    begin_s = float(found.at_s[before[-1]]) if len(before) else study.first_s
    peak_s, end_s = float(found.at_s[peak]), float(found.at_s[end])
    return DETECTOR.found(
        Severity.INFO,
        f"From {units.span(begin_s)} to {units.span(peak_s)}, the storage fell {units.span(worst_s)} behind; then it "
        f"completed {units.count(done)} requests/s while {units.count(due)} were demanded, and caught up at "
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
