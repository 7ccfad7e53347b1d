"""F06: one thread does most of the work on files, and the other threads of its process wait for it."""

from __future__ import annotations

from typing import Any

from iosonar import units
from iosonar.findings.call_rows import place, rows_of, strace_doubt, times_say_something, without_times
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.calls import CallStudy

FEWEST_CALLS = 20
"""A thread with fewer calls on files takes no part."""

SOON = 0.1
"""A call of another thread that begins within this part of a long call after the end of one follows it."""

CLEARLY = 2.0
"""So many times as many do so as would by chance."""

LISTED = 100_000
"""Threads that are looked at, those with the most time first."""


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the time of each thread of a process, and by when the others begin their calls."""
    found = [each for each in _processes(study) if _is_alone(each, limits)]
    for process in sorted(found, key=lambda each: -each["busy_s"]):
        if finding := _of_process(study, process, limits):
            return finding
    return None


def _processes(study: CallStudy) -> list[dict[str, Any]]:
    """Each process with its busiest thread. A run does not say which threads are of one process."""
    rows = rows_of(study)
    named = rows.filter(rows.path.notnull() & rows.duration_ns.notnull())
    threads = named.group_by("process", "thread").aggregate(
        calls=named.count(),
        ns=named.duration_ns.cast("float64").sum(),
        squares=(named.duration_ns.cast("float64") ** 2).sum(),
        waited_ns=named.waited_ns.cast("float64").sum(),
        first_ns=named.begin_ns.min(),
        last_ns=named.end_ns.max(),
    )
    kept = threads.filter(threads.calls >= FEWEST_CALLS).order_by(threads.ns.desc()).limit(LISTED)
    processes: dict[int | None, list[dict[str, Any]]] = {}
    for row in kept.to_pyarrow().to_pylist():
        processes.setdefault(row["process"], []).append(row)
    return [_summed(process, rows_) for process, rows_ in processes.items()]


def _summed(process: int | None, threads: list[dict[str, Any]]) -> dict[str, Any]:
    top, *others = sorted(threads, key=lambda row: -row["ns"])
    first, last = min(row["first_ns"] for row in threads), max(row["last_ns"] for row in threads)
    lasted = sum(row["last_ns"] - row["first_ns"] for row in others)
    waited = [row["waited_ns"] for row in others if row["waited_ns"] is not None]
    return {
        "process": process,
        "thread": top["thread"],
        "threads": len(threads),
        "calls": top["calls"],
        "busy_s": top["ns"] / 1e9,
        # The mean by time, as the short calls between long ones do not hold anybody back.
        "call_s": top["squares"] / max(top["ns"], 1) / 1e9,
        "share": top["ns"] / max(sum(row["ns"] for row in threads), 1),
        "span_s": (last - first) / 1e9,
        "waited": sum(waited) / lasted if waited and lasted > 0 else None,
        "first_ns": first,
        "last_ns": last,
    }


def _is_alone(process: dict[str, Any], limits: Limits) -> bool:
    return bool(
        process["threads"] >= limits["threads"]
        and process["share"] >= limits["share"]
        and process["span_s"] > 0
        and process["busy_s"] >= limits["busy"] * process["span_s"]
        and process["busy_s"] >= limits["time"]
    )


def _of_process(study: CallStudy, process: dict[str, Any], limits: Limits) -> Finding | None:
    """What is left if the other threads do not care when that thread is in a call."""
    import ibis

    rows = rows_of(study)
    own = rows.path.notnull() & rows.end_ns.notnull()
    if process["process"] is not None:
        own &= rows.process == process["process"]
    calls = rows.filter(own)
    is_top = calls.thread == process["thread"]
    of_thread = ibis.window(group_by="thread", order_by=[calls.begin_ns, calls.number])
    turns = calls.select("begin_ns", "number", "end_ns", is_top=is_top, ended_ns=calls.end_ns.lag().over(of_thread))
    before = ibis.window(order_by=[turns.begin_ns, turns.number], preceding=(None, 1), following=None)
    marked = turns.select(
        "is_top",
        "begin_ns",
        # When its last call ended, or ends, and the one before that.
        last_ns=turns.end_ns.max(where=turns.is_top).over(before),
        ended_ns=turns.ended_ns.max(where=turns.is_top).over(before),
    )
    others = marked.filter(~marked.is_top & marked.last_ns.notnull())
    is_during = others.last_ns > others.begin_ns
    since_ns = others.begin_ns - is_during.ifelse(others.ended_ns, others.last_ns)
    soon_s = SOON * process["call_s"]
    row = (
        others.aggregate(
            calls=others.count(), during=is_during.sum(), soon=(since_ns <= soon_s * 1e9).fill_null(False).sum()
        )
        .to_pyarrow()
        .to_pylist()[0]
    )
    busy = min(process["busy_s"] / process["span_s"], 1.0)
    during, soon = ((row[name] or 0) / max(row["calls"], 1) for name in ("during", "soon"))
    takes_turns = during <= limits["overlap"] * busy
    # Of all moments, those within that time after the end of a call.
    chance = min(process["calls"] * soon_s / process["span_s"], 1.0)
    follows = soon >= max(limits["soon"], CLEARLY * chance)
    if row["calls"] < limits["calls"] or not (takes_turns or follows):
        return None
    waited = process["waited"]
    waits = f"; the others were blocked for {units.percent(min(waited, 1.0))} of their time" if waited else ""
    return DETECTOR.found(
        Severity.WARNING if times_say_something(study) else Severity.INFO,
        f"Thread {process['thread']} is in calls on files for {units.percent(min(busy, 1.0))} of "
        f"{units.span(process['span_s'])}, {units.percent(process['share'])} of the time of all "
        f"{process['threads']} threads{waits}. Of the {units.counted(row['calls'], 'call')} of the others, "
        + (
            f"{units.percent(during)} began while it was in one."
            if takes_turns
            else f"{units.percent(soon)} began within {units.span(soon_s)} after one of its calls ended."
        ),
        place(study, f"thread = {process['thread']}", "threads", process["first_ns"], process["last_ns"]),
        sure=(
            Confidence.HIGH if waited and waited >= 0.5 else Confidence.MEDIUM,
            "If the other threads did not wait for it, about "
            f"{units.percent(busy if takes_turns else chance)} of their calls would begin "
            f"{'during its calls' if takes_turns else 'so soon after one of its calls'}."
            f"{strace_doubt(study)}",
        ),
        ruled_out=("A thread that works in the background: the others would not care when it is in a call.",),
        values={
            "thread": process["thread"],
            "threads": process["threads"],
            "busy": busy,
            "share": process["share"],
            "during": during,
            "soon": soon,
            "seconds": process["busy_s"],
            "waited": waited,
        },
    )


DETECTOR = Detector[CallStudy](
    "F06",
    "one-thread-serialises",
    "One thread blocks the others",
    "The other threads wait while one thread reads or writes: for its data, or for a lock that it holds. More threads "
    "or a device with more parallelism do not help.",
    (
        "Let several threads read or write, each a part, or have one thread read ahead of the others.",
        "Look for a lock that is held during I/O, with `perf lock` or `perf trace -e futex`.",
    ),
    find,
    (
        Threshold(
            "share", 0.7, Measured.SHARE, "The share of the thread in the time of its process in calls on files."
        ),
        Threshold("busy", 0.5, Measured.SHARE, "How much of the time it is in such calls."),
        Threshold("soon", 0.5, Measured.SHARE, "Or how many calls of others begin as soon as one of its calls ended."),
        Threshold(
            "overlap",
            0.3,
            Measured.NUMBER,
            "The most calls of others that begin during its calls, relative to chance.",
        ),
        Threshold("threads", 3, Measured.NUMBER, "The fewest threads that use files."),
        Threshold("calls", 100, Measured.NUMBER, "The fewest calls of the other threads."),
        Threshold("time", 0.1, Measured.TIME, "The shortest time in its calls."),
    ),
    why_not=without_times,
)
