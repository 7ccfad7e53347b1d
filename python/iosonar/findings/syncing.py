"""Shared by the findings of data that is made durable, F01 and F02: the files, and how their time is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iosonar import units
from iosonar.findings.call_rows import (
    largest,
    literal,
    of_time,
    on_files,
    place,
    seconds_of,
    shown,
    strace_doubt,
    times_say_something,
    total,
)
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Finding, Severity
from iosonar.quantities.calls.syncs import SYNCS
from iosonar.study.calls import CallStudy
from iosonar.text import listed

if TYPE_CHECKING:
    import ibis.expr.types as ir

HABIT = 0.8
"""A file is synced at once if so large a share of its syncs follows one write or two."""

FEWEST_OF_A_FILE = 20
"""Fewer syncs of a file are no habit."""

MATTERS = 0.2
"""From this share of the time in calls on files on, it is a warning."""

IS_SYNC = f"call IN ({', '.join(map(literal, SYNCS))})"
"""The syncs, as a filter."""


@dataclass(frozen=True)
class Durable:
    """Files with what was made durable in them, and the sums of all of them."""

    noun: str
    """The column that counts: `syncs` or `writes`."""
    sums: Mapping[str, Any]
    paths: Sequence[str]
    """The files with the most, those with the most first."""

    @property
    def count(self) -> int:
        """How many syncs or writes."""
        return int(self.sums[self.noun])

    @property
    def files(self) -> int:
        """How many files."""
        return int(self.sums["files"])

    @property
    def mean_bytes(self) -> float:
        """Of a sync or write."""
        return float(self.sums["bytes"] / self.count)

    @property
    def shown(self) -> str:
        """The files in a sentence: their names, if there are few."""
        names = [shown(path) for path in self.paths]
        return listed(names) if self.files <= len(names) <= 2 else units.counted(self.files, "file")


def is_synced_at_once(files: ir.Table) -> ir.BooleanValue:
    """Whether a file of `syncs_by_file` has a sync for each write or two, by habit."""
    return (files.syncs >= FEWEST_OF_A_FILE) & (files.at_once >= HABIT * files.syncs)


def durable(files: ir.Table, noun: str, fewest: float) -> Durable | None:
    """The sums of files of `syncs_by_file` or `synchronous_writes`; None if there are too few syncs or writes."""
    sums = total(
        files,
        files=files.count(),
        bytes=files.bytes.sum(),
        took_ns=files.took_ns.sum(),
        first_ns=files.first_ns.min(),
        last_ns=files.last_ns.max(),
        **{name: files[name].sum() for name in ("syncs", "at_once", "writes") if name in files.columns},
    )
    if sums[noun] < fewest:
        return None
    return Durable(noun, sums, [row["path"] for row in largest(files, noun)])


def found(
    detector: Detector[CallStudy],
    study: CallStudy,
    data: Durable,
    seen: str,
    *,
    rows: str,
    why: str,
    ruled_out: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> Finding:
    """The finding; `seen` lacks the time, `rows` are those of all files if `data` names too few of them."""
    took_s, whole_s = data.sums["took_ns"] / 1e9, seconds_of(study)
    time = of_time(study, took_s)
    share = took_s / whole_s if time else 0.0
    is_named = data.files <= len(data.paths)
    return detector.found(
        Severity.WARNING if share >= MATTERS and times_say_something(study) else Severity.INFO,
        f"{seen}{f'. They take {time}' if time else ''}.",
        place(
            study,
            f"{rows} AND {on_files(study, data.paths)}" if is_named or data.noun == "writes" else rows,
            "response.sync" if data.noun == "syncs" else "response.write",
            data.sums["first_ns"],
            data.sums["last_ns"],
        ),
        sure=(Confidence.HIGH, f"{why}{strace_doubt(study) if time else ''}"),
        ruled_out=ruled_out,
        values={
            data.noun: data.count,
            "files": data.files,
            "bytes": int(data.sums["bytes"]),
            "mean_bytes": data.mean_bytes,
            "seconds": took_s,
        }
        | dict(values or {"share": share}),
    )
