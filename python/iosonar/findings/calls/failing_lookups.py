"""F09: the program looks for files in many directories where they are not."""

from __future__ import annotations

from iosonar import units
from iosonar.findings.call_rows import literal, path_column, place, rows_of, shown, total, without_calls
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic

ENOENT = 2
STATS = ("stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2")
"""Calls beside opens that look a name up."""


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By opens and stats that fail with ENOENT."""
    rows = rows_of(study)
    lookups = rows.filter(((rows.family == "open") | rows.call.isin(STATS)) & rows.path.notnull())
    failing = lookups.filter(lookups.errno == ENOENT)
    parts = failing.select(
        "begin_ns",
        "duration_ns",
        directory=failing.path.re_replace("/[^/]*$", ""),
        base=failing.path.re_replace("^.*/", ""),
    )
    found = total(
        parts,
        failing=parts.count(),
        directories=parts.directory.nunique(),
        names=parts.base.nunique(),
        ns=parts.duration_ns.cast("float64").sum(),
        first_ns=parts.begin_ns.min(),
        last_ns=parts.begin_ns.max(),
    )
    every = total(lookups, lookups=lookups.count())["lookups"]
    share = found["failing"] / every if every else 0.0
    if found["failing"] < limits["lookups"] or share < limits["share"] or found["directories"] < limits["directories"]:
        return None
    bases = parts.group_by("base").aggregate(n=parts.count(), directories=parts.directory.nunique())
    most = bases.order_by([bases.n.desc(), bases.base]).limit(1).to_pyarrow().to_pylist()[0]
    example = (
        f"; {shown(most['base'])} alone {units.count(most['n'])} times in "
        f"{units.counted(int(most['directories']), 'directory', 'directories')}"
        if most["n"] >= 10
        else ""
    )
    return DETECTOR.found(
        Severity.WARNING if share >= 0.5 and found["failing"] >= 10 * limits["lookups"] else Severity.INFO,
        f"{units.counted(int(found['failing']), 'lookup')} fail because there is no such file, {units.percent(share)} "
        f"of all that open a file or ask for attributes: {units.counted(int(found['names']), 'name')} in "
        f"{units.counted(int(found['directories']), 'directory', 'directories')}{example}.",
        place(
            study,
            f"(family = 'open' OR call IN ({', '.join(map(literal, STATS))})) AND errno = {ENOENT} "
            f"AND {path_column(study)} IS NOT NULL",
            "mix",
            found["first_ns"],
            found["last_ns"],
        ),
        sure=(Confidence.HIGH, "The calls failed with ENOENT."),
        values={
            "failing": int(found["failing"]),
            "share": share,
            "names": int(found["names"]),
            "directories": int(found["directories"]),
            "seconds": found["ns"] / 1e9,
        },
    )


DETECTOR = Detector[CallStudy](
    "F09",
    "failing-lookups",
    "Lookups of files that do not exist",
    "The program searches a list of directories, such as a search path of headers, modules or libraries, and finds "
    "each file late or never. A local file system remembers missing names; many network file systems ask the server "
    "each time.",
    (
        "Shorten the search path, or put the directory where most files are first.",
        "Keep the result of the search, as compilers' precompiled headers and bytecode caches do.",
    ),
    find,
    (
        Threshold("lookups", 500, Measured.NUMBER, "The fewest lookups that fail."),
        Threshold("share", 0.25, Measured.SHARE, "Their share of all lookups."),
        Threshold("directories", 5, Measured.NUMBER, "In how many directories, at least."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
