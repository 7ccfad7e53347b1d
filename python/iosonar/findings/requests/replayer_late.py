"""S20: the replayer itself issued requests too late."""

from __future__ import annotations

from iosonar import units
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.check import Topic
from iosonar.study.grades import Grade
from iosonar.study.requests import Study
from iosonar.study.runs import runs_of

REASONS = {
    "none": "the processor was busy with something else",
    "input": "the load was read too slowly",
    "completion_log": "the record of completions was written too slowly",
    "backlog": "it had been late before",
}
"""What each value of `delay_reason` means of a request that was not held back."""

LATE_NS = 50_000


def find(study: Study, limits: Limits) -> Finding | None:
    """By the check of the verdict, and the reasons of the late requests; or by its own option."""
    return _perturbed(study, limits) or _late(study)


def _perturbed(study: Study, limits: Limits) -> Finding | None:
    """Whether `--perturb` made many requests late."""
    words = next((words for file in study.files if (words := file.option("perturb"))), None)
    if words is None:
        return None
    table = study.requests.table
    rows = table.filter((table.delay_reason == "perturbed") & (table.delay_ns > LATE_NS))
    row = rows.aggregate(n=rows.count(), mean=rows.delay_ns.mean()).to_pyarrow()
    number = row["n"][0].as_py()
    share = number / max(study.span.issued, 1)
    if share < limits["share"]:
        return None
    mean_s = row["mean"][0].as_py() / 1e9
    return DETECTOR.found(
        Severity.WARNING,
        f"--perturb {words} made {units.requests(number)} ({units.percent(share)}) more than 50 µs late, "
        f"{units.span(mean_s)} on average.",
        Evidence(f"delay_reason = 'perturbed' AND delay_ns > {LATE_NS}", "delay.setpoint"),
        sure=(Confidence.HIGH, "The replayer records which requests it moved."),
        ruled_out=("A busy machine: the option moved these requests.",),
        values={"late": number, "share": share, "mean_delay_s": mean_s},
        meaning="The replay moved requests on purpose. Times between them are not those of the load.",
        advice=("Compare with a replay without `--perturb`: the difference is what the exact times matter.",),
    )


def _late(study: Study) -> Finding | None:
    """By the check of the verdict."""
    late = [run for run in runs_of(study) if run.grade in (Grade.WARNING, Grade.BAD)]
    if not late:
        return None
    worst = max(late, key=lambda run: run.grade.rank if run.grade else 0)
    table = study.requests.table
    rows = table.filter(table.not_held_back & (table.delay_ns > LATE_NS))
    counted = rows.group_by("delay_reason").aggregate(n=rows.count()).to_pyarrow().to_pylist()
    if not counted:
        # Such as perturbed times, which are late by intention.
        return None
    total = sum(row["n"] for row in counted)
    main = max(counted, key=lambda row: row["n"])
    why = REASONS.get(main["delay_reason"] or "none", "not known")
    within = worst.fidelity.within_50_us if worst.fidelity else 0.0
    return DETECTOR.found(
        Severity.BAD if worst.grade is Grade.BAD else Severity.WARNING,
        f"Of the requests not held back, the replayer issued only {units.percent(within)} within 50 µs of their time; "
        f"{units.requests(total)} were later, mostly because {why}.",
        Evidence(f"not_held_back AND delay_ns > {LATE_NS}", "delay.setpoint"),
        sure=(Confidence.HIGH, "The replayer measures itself: requests that waited for the storage do not count."),
        values={"within_50_us": within, "late": total, "main_reason_share": main["n"] / total},
        advice=tuple(f"{step.words[:1].upper()}{step.words[1:]}." for step in worst.remedies),
    )


DETECTOR = Detector[Study](
    "S20",
    "replayer-late",
    "The replayer was late",
    "The machine under the replayer could not keep the times of the load. Requests came bunched instead of at their "
    "times, "
    "so latencies and delays of this run are no measure of the storage.",
    (
        "Leave a processor to the replayer alone (`--isolate`), and stop other programs.",
        "Replay from a local disk or memory that is not the target, and write the result there, too.",
        "Replay with a lower `--speedup`, or split the load over several machines.",
    ),
    find,
    (Threshold("share", 0.05, Measured.SHARE, "The share of the requests that `--perturb` made late."),),
    about=Topic.RESULT,
    why_not=lambda study: "" if study.requests.is_run and study.has_delays else "there were no times to keep",
)
