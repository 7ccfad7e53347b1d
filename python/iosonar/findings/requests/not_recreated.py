"""S15: the same load ran several times on the same target, which keeps what the first run left."""

from __future__ import annotations

from collections.abc import Iterator

from iosonar import units
from iosonar.findings.detector import Detector
from iosonar.findings.finding import Confidence, Evidence, Finding, Severity
from iosonar.findings.thresholds import Limits, Measured, Threshold
from iosonar.quantities.distribution import distributions
from iosonar.study.check import Topic
from iosonar.study.requests import Study
from iosonar.table import SourceFile

FEWEST = 100
"""The fewest requests of an operation, in the first iteration and in all later ones."""


def find(study: Study, limits: Limits) -> Finding | None:
    """By the load, the target and the start of the runs, or by the iterations of one; and whether later ones differ."""
    return _of_files(study, limits) or _of_iterations(study, limits)


def _of_iterations(study: Study, limits: Limits) -> Finding | None:
    """Whether the same requests took longer or shorter in the first iteration of `--loop` than in later ones."""
    if not any(file.option("loop") for file in study.files):
        return None
    table = study.requests.table
    shown = []
    for op in ("read", "write"):
        rows = table.filter((table["op"] == op) & table.issued_ns.notnull() & table.completed_ns.notnull())
        numbered = rows.mutate(series=(rows.iteration > 0).cast("int32"))
        latency = distributions(numbered, numbered.completed_ns - numbered.issued_ns)
        if not all(place in latency and latency[place].count >= FEWEST for place in (0, 1)):
            continue
        first, later = (max(latency[place].quantile(0.5), 1.0) for place in (0, 1))
        shown.append((max(first / later, later / first), op, first, later, latency[0].count + latency[1].count))
    if not shown or max(shown)[0] < limits["factor"]:
        return None
    _, op, first, later, number = max(shown)
    return DETECTOR.found(
        Severity.WARNING,
        f"Half of the {op}s took up to {units.span(first / 1e9)} in the first iteration, and {units.span(later / 1e9)} "
        "in later ones, of the same load on the same target.",
        Evidence(f"op = '{op}' AND iteration > 0", "latency.realtime"),
        sure=(
            Confidence.MEDIUM,
            f"{units.requests(number)} were compared; each iteration meets the target as the one before left it.",
        ),
        values={"runs": 1, "ratio": first / later},
    )


def _of_files(study: Study, limits: Limits) -> Finding | None:
    """Whether later runs took longer or shorter than the first."""
    pairs = list(_repeated(study))
    if not pairs:
        return None
    numbered = study.table.mutate(series=study.table.source.cast("int32"))
    latency = distributions(numbered, numbered.latency_ns)
    known = [
        (a, b, latency[a].quantile(0.5) / max(latency[b].quantile(0.5), 1))
        for a, b in pairs
        if a in latency and b in latency
    ]
    if not known:
        return None
    first, second, faster = max(known, key=lambda each: max(each[2], 1 / max(each[2], 1e-9)))
    file, other = study.files[first], study.files[second]
    differs = max(faster, 1 / max(faster, 1e-9)) >= limits["factor"]
    how = f"{units.number(max(faster, 1 / faster), 2)} times as {'fast' if faster > 1 else 'slow'}"
    return DETECTOR.found(
        Severity.WARNING if differs else Severity.INFO,
        f"{other.name} repeats the load of {file.name} on {_target(file)}, later: "
        f"{f'half of its requests were {how}' if differs else 'its requests took about as long'}.",
        Evidence(f"source = {second}", "latency.realtime"),
        sure=(
            Confidence.MEDIUM if differs else Confidence.LOW,
            "Load, target and times of both runs are known; whether the target was made anew in between is not.",
        ),
        values={"runs": len({place for pair in pairs for place in pair}), "ratio": faster},
    )


def _target(file: SourceFile) -> str:
    return ", ".join(target.path for target in file.targets)


def _repeated(study: Study) -> Iterator[tuple[int, int]]:
    """Pairs of runs of the same load on the same target, the earlier one first."""
    for later, file in enumerate(study.files):
        run = file.run
        if run.started_unix_ns is None or not run.load or not _target(file) or run.engine in ("simulate", "null"):
            continue
        for earlier, other in enumerate(study.files):
            before = other.run
            if (
                before.started_unix_ns is not None
                and before.started_unix_ns < run.started_unix_ns
                and before.load == run.load
                and _target(other) == _target(file)
                and before.machine.hostname == run.machine.hostname
            ):
                yield earlier, later


DETECTOR = Detector[Study](
    "S15",
    "not-recreated",
    "A run was repeated on the same target",
    "Storage remembers: the first run filled caches, and made thin storage or flash map its addresses. The second one "
    "meets "
    "another storage, usually a much faster one, so the two are not repetitions of one experiment.",
    (
        "Before each run, delete the volume, create it anew, and fill it with random data.",
        "If the memory of the storage is what you want to see, keep the runs apart and name them accordingly.",
    ),
    find,
    (Threshold("factor", 1.3, Measured.NUMBER, "How much faster or slower half of the requests are."),),
    about=Topic.RESULT,
    why_not=lambda study: (
        ""
        if len(study.files) > 1 or any(file.option("loop") for file in study.files)
        else "a single run shows no repetition"
    ),
)
