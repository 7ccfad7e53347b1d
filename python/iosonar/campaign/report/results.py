"""The result of each leaf: its metrics, those of its devices, and whether it allows a verdict on the storage."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from iosonar import units
from iosonar.campaign import outcome, state, status, tree
from iosonar.campaign.names import OF_CALLS
from iosonar.campaign.report.cache import Cache
from iosonar.campaign.report.found import Found, found_in
from iosonar.campaign.report.results_of_calls import measured_calls
from iosonar.campaign.report.starts import Start
from iosonar.diagrams import Options, Study
from iosonar.diagrams.devices import slow_devices
from iosonar.errors import UserError
from iosonar.findings.registry import diagnose_requests
from iosonar.progress import step
from iosonar.report.gate import (
    BANDWIDTH,
    COUNTS,
    DELAY,
    IOPS,
    MAX,
    MEAN,
    STATE,
    THROUGHPUT,
    VERDICT,
    Condition,
    Fidelity,
)
from iosonar.report.gate_subjects import fidelity_of, subject_of_requests
from iosonar.study.grades import Grade
from iosonar.study.of_requests import judgement_of, summary_of
from iosonar.table import open_requests
from iosonar.text import plain, shown
from iosonar.thresholds import is_unfilled

TIMES = ("p50", "p90", "p95", "p99", "p99.9", MEAN, MAX)
"""What is measured of latency and delay, and what else: conditions may ask for more."""

METRICS = (*TIMES, *(DELAY + name for name in TIMES), IOPS, BANDWIDTH, THROUGHPUT, *COUNTS)
"""What is measured on each leaf; conditions may ask for more percentiles."""

NOT_FILLED = "fill the target first (enable_wipe=1)"
"""What to do about reads that return only zeros."""

PAGES = (".report.html", ".html")
"""The suffixes of a leaf's page, the preferred one first."""


@dataclass(frozen=True)
class DeviceResult:
    """The latencies of a device of a leaf, in seconds; NaN with too few requests."""

    name: str
    requests: int
    p50_s: float
    p99_s: float


@dataclass(frozen=True)
class LeafResult:
    """A leaf with its result.

    `metrics` has p50 … p99.9, mean and max of latency, the same of delay as delay.p50 …, both in seconds; throughput,
    the share of the demanded rate that was achieved; iops; bandwidth, in bytes per second; and the numbers errors,
    dropped and requests. Metrics that the leaf does not have are missing.
    """

    name: str
    path: tuple[str, ...]
    """The components of the path below the top; like all texts here, escaped for printing."""
    directory: Path
    state: str
    reason: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    started: float = math.nan
    """Seconds since 1970; NaN if unknown."""
    ended: float = math.nan
    files: tuple[Path, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    fidelity: Fidelity = Fidelity.UNKNOWN
    doubt: str = ""
    """Why the leaf allows no verdict on the storage; empty if it does."""
    unfilled: bool = False
    """Whether reads returned only zeros, also if the replay allows no verdict for another reason."""
    grade: Grade | None = None
    devices: tuple[DeviceResult, ...] = ()
    """The slowest first."""
    slow: tuple[str, ...] = ()
    """Sentences about devices that are much slower than the others."""
    findings: tuple[Found, ...] = ()
    """What its requests or calls say, the worst first."""
    late_s: float = math.nan
    """How late the last call of a replay of calls came; NaN if it kept no times, and for requests."""
    fell_behind: bool = False
    """Whether that is so late that the storage did not keep up."""
    notes: tuple[str, ...] = ()
    wrap_factor: float = 0.0
    """How often the part of the load was as large as its device; up to 1, nothing wrapped around."""
    options: tuple[str, ...] | None = None
    """Those of its replays; None if unknown."""
    common_options: tuple[str, ...] | None = None
    """What they would be without the confs of its path."""
    starts: tuple[Start, ...] = ()
    """How its instances began."""

    @property
    def done(self) -> bool:
        """Whether the leaf has results that could be read."""
        return bool(self.metrics)

    @property
    def spread(self) -> float:
        """The p99 of the slowest device divided by that of the fastest (p50 with few requests); NaN for one device.

        Also NaN if the fastest has 0.
        """
        for name in ("p99_s", "p50_s"):
            known: list[float] = [getattr(device, name) for device in self.devices]
            if len(known) > 1 and all(map(math.isfinite, known)):
                return max(known) / min(known) if min(known) > 0 else math.nan
        return math.nan

    @property
    def page(self) -> Path | None:
        """The leaf's own page, if there is one."""
        found = sorted(path for path in self.directory.rglob("*.html") if path.is_file())
        for suffix in PAGES:
            for path in found:
                if path.name.endswith(suffix):
                    return path
        return None


def read_results(top: Path, conditions: Sequence[Condition] = ()) -> list[LeafResult]:
    """All leaves of a campaign, in the order of the tree, with all metrics that the conditions need.

    Leaves without a finished result have no metrics.

    Raises UserError if there is no leaf.
    """
    if not top.is_dir():
        raise UserError(f"{shown(top)}: no such directory")
    cache = Cache.open(top)
    metrics = tuple(dict.fromkeys((*METRICS, *(each.metric for each in conditions))))
    measured = _Measured(cache, tuple(name for name in metrics if name not in (VERDICT, STATE)), status.is_running(top))
    leaves = list(tree.leaves(top))
    found = []
    for number, leaf in enumerate(leaves, 1):
        step(plain(leaf.name), number, len(leaves))
        found.append(_read(plain(leaf.name), tuple(map(plain, leaf.path)), leaf.directory, measured))
    cache.save([leaf.name for leaf in found])
    return found


@dataclass(frozen=True)
class _Measured:
    """What is measured on results, and what was measured before."""

    cache: Cache
    metrics: tuple[str, ...]
    is_running: bool
    """Whether a campaign runs in the tree."""

    def of(self, leaf: str, files: Sequence[Path]) -> dict[str, Any]:
        """What is measured on the results of a leaf; they are read only if something is not known yet."""
        known = self.cache.get(leaf, files)
        before = known["metrics"] if known else {}
        if known is None or not before.keys() >= set(self.metrics):
            known = _measured(files, tuple(dict.fromkeys((*self.metrics, *before))))
            self.cache.put(leaf, files, known)
        return known


def _read(name: str, path: tuple[str, ...], directory: Path, measured: _Measured) -> LeafResult:
    try:
        found = state.read(directory)
        files = tuple(state.finished_results(directory))
    except UserError as error:
        return LeafResult(name, path, directory, "failed", str(error))
    if found is None:
        return LeafResult(name, path, directory, "to do")
    shown_state, reason = state.seen(found, has_results=bool(files), is_running=measured.is_running)
    known = LeafResult(
        name,
        path,
        directory,
        shown_state,
        plain(reason),
        {plain(name): plain(value) for name, value in found.variables.items()},
        math.nan if found.started is None else found.started,
        math.nan if found.ended is None else found.ended,
        files,
        notes=tuple(found.notes),
        wrap_factor=max((outcome.wrap_factor(each, found.options or ()) for each in found.instances), default=0.0),
        options=_escaped(found.options),
        common_options=_escaped(found.common_options),
        starts=tuple(map(Start.of, found.instances)),
    )
    if not files:
        return known
    try:
        return _with_values(known, measured.of(name, files))
    except OSError as error:
        return replace(known, state="failed", reason=f"cannot read its results: {error.strerror}")
    except UserError as error:
        return replace(known, state="failed", reason=str(error))


def _escaped(words: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(map(plain, words))


def _measured(files: Sequence[Path], metrics: Sequence[str]) -> dict[str, Any]:
    """Everything that is measured on the results of a leaf, in types of JSON; metrics that it does not have are NaN."""
    if any(path.name.endswith(OF_CALLS) for path in files):
        return measured_calls(files, metrics)
    with open_requests(files) as requests:
        if not requests.is_run:
            raise UserError("its result is a load, not a run")
        study = Study(requests, Options())
        subject, unfilled = subject_of_requests(study), _unfilled(study)
        doubt = fidelity_of(study)[1]
        begins = [at / 1e9 for file in requests.files if (at := file.run.started_unix_ns)]
        several = len(study.devices) > 1
        return {
            "started": min(begins, default=math.nan),
            "metrics": {name: subject.value(name) for name in metrics},
            "fidelity": str(subject.fidelity),
            "doubt": "; ".join(text for text in (doubt, unfilled) if text),
            "unfilled": unfilled,
            "grade": str(subject.grade),
            "devices": [vars(device) for device in _devices(study)],
            "slow": slow_devices(study) if several else [],
            "findings": found_in(diagnose_requests(study)),
        }


def _with_values(known: LeafResult, values: dict[str, Any]) -> LeafResult:
    """A leaf with what was measured on its results; null is NaN."""
    return replace(
        known,
        started=_number(values["started"]) if math.isnan(known.started) else known.started,
        metrics={name: value for name, each in values["metrics"].items() if math.isfinite(value := _number(each))},
        fidelity=Fidelity(values["fidelity"]),
        doubt=values["doubt"],
        unfilled=bool(values["unfilled"]),
        grade=Grade(values["grade"]),
        devices=tuple(
            DeviceResult(device["name"], device["requests"], _number(device["p50_s"]), _number(device["p99_s"]))
            for device in values["devices"]
        ),
        slow=tuple(values["slow"]),
        findings=tuple(map(Found.of, values["findings"])),
        late_s=_number(values.get("late_s")),
        fell_behind=bool(values.get("fell_behind")),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _unfilled(study: Study) -> str:
    """What the reads say about a target that was never filled; empty if they found data, or if that is not known."""
    zeros, reads = int(judgement_of(study)["zero_reads"].values["requests"] or 0), summary_of(study).reads
    if not is_unfilled(zeros, reads):
        return ""
    return f"{zeros:,} of {units.counted(reads, 'read')} returned only zeros: {NOT_FILLED}"


def _devices(study: Study) -> Iterator[DeviceResult]:
    for each in study.devices:
        values = each.latency
        p50, p99 = (values.percentile(share) / 1e9 for share in (0.5, 0.99))
        yield DeviceResult(each.device.name, values.count, p50, p99)
