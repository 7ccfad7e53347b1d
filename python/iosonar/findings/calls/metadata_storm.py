"""F03: most of the work is on names and attributes, not on data."""

from __future__ import annotations

from iosonar import units
from iosonar.findings.call_rows import (
    place,
    rows_of,
    strace_doubt,
    times_say_something,
    total,
    without_calls,
    without_times,
    work_of,
)
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.calls.series import CallSeries
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic
from iosonar.text import listed

FAMILIES = {
    "open": "opening",
    "resize": "resizing",
    "stat": "attributes",
    "list": "listing",
    "create": "creating names",
    "remove": "removing names",
    "rename": "renaming",
    "attribute": "changing attributes",
}

MATTERS, MATTERS_S = 0.1, 0.5
"""From this share of the duration on, and so many seconds, it is a warning."""


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By the calls, and by their time, of names and attributes against those of data."""
    work = work_of(study)
    names = work[CallSeries.METADATA]
    data = [work[series] for series in (CallSeries.READ, CallSeries.WRITE, CallSeries.SYNC)]
    calls = names.calls + sum(each.calls for each in data)
    seconds = names.seconds + sum(each.seconds for each in data)
    share = names.calls / calls if calls else 0.0
    time_share = names.seconds / seconds if seconds > 0 and not without_times(study) else 0.0
    by_time = time_share >= limits["time"] and names.seconds >= limits["busy"] * study.first.seconds
    if names.calls < limits["calls"] or not (by_time or share >= limits["share"]):
        return None
    rows = rows_of(study)
    named = rows.filter((rows.series == int(CallSeries.METADATA)) & rows.path.notnull())
    found = total(named, files=named.path.nunique(), first_ns=named.begin_ns.min(), last_ns=named.begin_ns.max())
    counts = named.group_by("family").aggregate(n=named.count())
    mix = {row["family"]: int(row["n"]) for row in counts.order_by(counts.n.desc()).limit(3).to_pyarrow().to_pylist()}
    most = listed([f"{FAMILIES[family]} ({units.count(number)})" for family, number in mix.items()])
    took = f" and {units.percent(time_share)} of their time ({units.span(names.seconds)})" if time_share else ""
    severe = by_time and times_say_something(study) and names.seconds >= max(MATTERS_S, MATTERS * study.first.seconds)
    return DETECTOR.found(
        Severity.WARNING if severe else Severity.INFO,
        f"{units.percent(share)} of the calls on files{took} are on names and attributes, not on data: "
        f"{units.counted(names.calls, 'call')} on {units.counted(int(found['files']), 'name')}; mostly {most}.",
        place(
            study,
            f"family IN ({', '.join(repr(each) for each in mix)})",
            "mix",
            found["first_ns"],
            found["last_ns"],
        ),
        sure=(
            Confidence.HIGH if by_time or share >= 0.75 else Confidence.MEDIUM,
            "Only calls on files were counted, without close, lseek, and waits for pipes, sockets and processes."
            + strace_doubt(study),
        ),
        values={
            "calls": names.calls,
            "share": share,
            "time_share": time_share,
            "seconds": names.seconds,
            "names": int(found["files"]),
        },
    )


DETECTOR = Detector[CallStudy](
    "F03",
    "metadata-storm",
    "Metadata storm",
    "The program works on many small files, or reads names and attributes again and again. The latency of each such "
    "call counts, not the throughput of the storage; on a network file system each one may go to the server.",
    (
        "Put many small files into few large ones: an archive, a pack, a database.",
        "Keep directory listings and attributes in the program instead of asking again.",
        "On NFS, look at attribute caching (actimeo) and `nconnect`; on a local disk, at the memory for inodes and "
        "directory entries (vm.vfs_cache_pressure).",
    ),
    find,
    (
        Threshold("share", 0.6, Measured.SHARE, "The share of the calls on files."),
        Threshold("time", 0.5, Measured.SHARE, "Or their share of the time."),
        Threshold("busy", 0.01, Measured.SHARE, "That time by the duration of all, at least."),
        Threshold("calls", 5000, Measured.NUMBER, "The fewest calls on names and attributes."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
