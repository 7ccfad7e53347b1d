"""S21: requests wait for others to the same place, so that the queue runs empty."""

from __future__ import annotations

from iosonar import units
from iosonar.findings.course import usual_of, without_demand
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.requests import Study

TAIL = 0.9
"""The quantile of their delays that counts."""

MANY = 20
"""From so many times the share on, it is a warning."""


def find(study: Study, limits: Limits) -> Finding | None:
    """By the requests that were held back for the order, and how long."""
    usual, table = usual_of(study), study.requests.table
    if usual is None:
        return None
    held = table.filter((table.delay_reason == "order") & table.delay_ns.notnull())
    row = held.aggregate(
        n=held.count(), mean=held.delay_ns.mean(), most=held.delay_ns.max(), long=held.delay_ns.quantile(TAIL)
    ).to_pyarrow()
    number = row["n"][0].as_py()
    share = number / max(study.span.issued, 1)
    if share < limits["share"] or not number:
        return None
    mean_ns, max_ns = row["mean"][0].as_py(), row["most"][0].as_py()
    # Half of the waits are for a request that is nearly done: the long ones show what the order costs.
    if row["long"][0].as_py() < limits["delay"] * usual.p50:
        return None
    mode = next((mode for file in study.files if (mode := file.option("conflicts"))), "")
    return DETECTOR.found(
        Severity.WARNING if share >= MANY * limits["share"] else Severity.INFO,
        f"{units.requests(number)} ({units.percent(share)}) waited for an earlier one to the same place, "
        f"{units.span(mean_ns / 1e9)} on average and up to {units.span(max_ns / 1e9)}.",
        Evidence("delay_reason = 'order'", "delay.setpoint"),
        sure=(Confidence.HIGH, "The replayer records which requests it holds back for the order, and until when."),
        ruled_out=("A full queue: requests that waited for the depth have another reason in their rows.",),
        values={"requests": number, "share": share, "mean_delay_s": mean_ns / 1e9, "max_delay_s": max_ns / 1e9},
        advice=(f"This run used --conflicts {mode}; compare with another mode.", *DETECTOR.advice) if mode else (),
    )


DETECTOR = Detector[Study](
    "S21",
    "ordering-throttles",
    "The order of requests throttles",
    "The load writes and reads the same places at nearly the same time, and the replay keeps their order. Each wait is "
    "a "
    "short stall in which fewer requests are in flight than the storage could serve. The original system had this "
    "order, "
    "too, if its programs or file system waited.",
    (
        "Compare with `--conflicts allow`: the difference is what the order costs.",
        "Look at latency.flying: gaps in the requests in flight are such stalls. They may even help a storage that is "
        "slow at "
        "a great depth.",
    ),
    find,
    (
        Threshold("share", 0.005, Measured.SHARE, "The share of the requests that waited."),
        Threshold(
            "delay", 1.0, Measured.NUMBER, "What a tenth of them waited at least, in multiples of the usual latency."
        ),
    ),
    why_not=without_demand,
)
