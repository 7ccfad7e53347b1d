"""F09: the program looks for files where they are not: in many directories, or again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iosonar import units
from iosonar.findings.call_rows import literal, path_column, place, rows_of, shown, total, without_calls
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.study.calls import CallStudy
from iosonar.study.check import Topic

if TYPE_CHECKING:
    import ibis.expr.types as ir

ENOENT = 2
STATS = ("stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2")
"""Calls beside opens that look a name up."""
CHANGES = ("create", "remove", "rename")
"""Families of calls after which a lookup may have another result."""


def find(study: CallStudy, limits: Limits) -> Finding | None:
    """By opens and stats that fail with ENOENT, and need not have been made."""
    rows = rows_of(study)
    lookups = rows.filter(_is_lookup(rows) & rows.path.notnull())
    parts = _needless(rows, limits["directories"])
    found = total(
        parts,
        failing=parts.count(),
        again=parts.is_again.sum(),
        directories=parts.directory.nunique(),
        names=parts.base.nunique(),
        ns=parts.duration_ns.cast("float64").sum(),
        first_ns=parts.begin_ns.min(),
        last_ns=parts.begin_ns.max(),
    )
    every = total(lookups, lookups=lookups.count())["lookups"]
    share = found["failing"] / every if every else 0.0
    if found["failing"] < limits["lookups"] or share < limits["share"]:
        return None
    bases = parts.group_by("base").aggregate(n=parts.count(), directories=parts.directory.nunique())
    most = bases.order_by([bases.n.desc(), bases.base]).limit(1).to_pyarrow().to_pylist()[0]
    example = (
        f"; {shown(most['base'])} alone {units.count(most['n'])} times in "
        f"{units.counted(int(most['directories']), 'directory', 'directories')}"
        if most["n"] >= 10
        else ""
    )
    again = f", {units.count(int(found['again']))} of them again" if found["again"] else ""
    return DETECTOR.found(
        Severity.WARNING if share >= 0.5 and found["failing"] >= 10 * limits["lookups"] else Severity.INFO,
        f"{units.counted(int(found['failing']), 'lookup')} fail because there is no such file{again}, "
        f"{units.percent(share)} of all that open a file or ask for attributes: "
        f"{units.counted(int(found['names']), 'name')} in "
        f"{units.counted(int(found['directories']), 'directory', 'directories')}{example}.",
        place(
            study,
            f"(family = 'open' OR call IN ({', '.join(map(literal, STATS))})) AND errno = {ENOENT} "
            f"AND {path_column(study)} IS NOT NULL",
            "mix",
            found["first_ns"],
            found["last_ns"],
        ),
        sure=(
            Confidence.HIGH,
            "The calls failed with ENOENT. Only those were counted that repeat one before, without a change of that "
            f"name in between, or are of a name that is looked for in {units.number(limits['directories'])} "
            "directories or more.",
        ),
        ruled_out=("Checks of new names before the files are created: each is made once, in one place.",),
        values={
            "failing": int(found["failing"]),
            "again": int(found["again"]),
            "share": share,
            "names": int(found["names"]),
            "directories": int(found["directories"]),
            "seconds": found["ns"] / 1e9,
        },
    )


def _is_lookup(rows: ir.Table) -> ir.BooleanValue:
    return (rows.family == "open") | rows.call.isin(STATS)


def _needless(rows: ir.Table, directories: float) -> ir.Table:
    """Failing lookups that repeat the call before on that path, or are part of a search in several directories."""
    import ibis

    events = rows.filter(rows.path.notnull() & (_is_lookup(rows) | rows.family.isin(CHANGES)))
    failed = (_is_lookup(events) & (events.errno == ENOENT)).fill_null(False)
    order = ibis.window(group_by=["instance", "owner", "path"], order_by=[events.begin_ns, events.number])
    marked = events.select(
        "instance",
        "owner",
        "begin_ns",
        "duration_ns",
        failed=failed,
        is_lookup=_is_lookup(events),
        is_again=failed & failed.lag().over(order).fill_null(False),
        directory=events.path.re_replace("/[^/]*$", ""),
        base=events.path.re_replace("^.*/", ""),
    )
    keys = ["instance", "owner", "base"]
    looked_up = marked.filter(marked.is_lookup)
    places = looked_up.group_by(*keys).aggregate(places=looked_up.directory.nunique(), fails=looked_up.failed.sum())
    searched = places.filter((places.places >= directories) & (places.fails > 0)).select(*keys, "places")
    failing = marked.filter(marked.failed).left_join(searched, keys)
    return failing.filter(failing.is_again | failing.places.notnull()).select(
        "begin_ns", "duration_ns", "is_again", "directory", "base"
    )


DETECTOR = Detector[CallStudy](
    "F09",
    "failing-lookups",
    "Lookups of files that do not exist",
    "The program searches a list of directories, such as a search path of headers, modules or libraries, and finds "
    "each file late or never; or it asks again for what it did not find. A local file system remembers missing names; "
    "many network file systems ask the server each time.",
    (
        "Shorten the search path, or put the directory where most files are first.",
        "Keep the result of the search, as compilers' precompiled headers and bytecode caches do.",
    ),
    find,
    (
        Threshold("lookups", 500, Measured.NUMBER, "The fewest lookups that fail without need."),
        Threshold("share", 0.2, Measured.SHARE, "Their share of all lookups."),
        Threshold("directories", 3, Measured.NUMBER, "The fewest directories in which a name is searched."),
    ),
    about=Topic.RESULT,
    why_not=without_calls,
)
