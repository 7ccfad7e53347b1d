"""What all programs of the machine did during a run, by its samples of processors and network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.figures.model import Axis, Empty, Figure, Legend, LegendRow, Note, NoteKind, Role, Steps, Stroke, Unit
from iosonar.study.requests import Study
from iosonar.table import SourceFile
from iosonar.table.footer import Usage

PROCESSORS, NETWORK = "machine.processors", "machine.network"

UNKNOWN = "no run has counters of its machine"

ROLES = (Role.ALL, Role.ACTUAL, Role.READ, Role.WRITE, Role.FAILED, Role.DEMAND)
"""Of the first runs; more could not be distinguished."""


def processors(files: Sequence[SourceFile], of: str, rank: str) -> Figure | Empty:
    """How busy the processors were, of each run."""
    found = _known(files)
    if not found:
        return Empty(PROCESSORS, UNKNOWN)
    layers, rows = [], []
    for (label, usage), role in zip(found, ROLES, strict=False):
        edges, busy = _edges(usage), np.array(usage.samples.busy_pct)
        layers.append(Steps(role, label, edges, busy))
        cells = (units.percent(usage.busy_pct / 100), units.percent(usage.kernel_pct / 100))
        rows.append(LegendRow(role, label, cells, Stroke.SOLID))
    return Figure(
        PROCESSORS,
        rank,
        "Processor utilization of the machine",
        of,
        _time(found),
        Axis("Utilization", Unit.PERCENT, 0.0, 105.0),
        tuple(layers),
        Legend(("avg", "in the kernel"), tuple(rows)),
        _notes(found),
    )


def network(files: Sequence[SourceFile], of: str, rank: str) -> Figure | Empty:
    """Bytes received and sent over the network, of each run."""
    found = _known(files)
    if not found:
        return Empty(NETWORK, UNKNOWN)
    layers, rows, most = [], [], 0.0
    for (label, usage), role in zip(found, ROLES, strict=False):
        edges = _edges(usage)
        for way, bytes_, total, stroke in (
            ("received", usage.samples.received_bytes, usage.received_bytes, Stroke.SOLID),
            ("sent", usage.samples.sent_bytes, usage.sent_bytes, Stroke.DASHED),
        ):
            rate = np.array(bytes_) / np.maximum(np.diff(edges), 1e-3)
            most = max(most, float(rate.max()))
            name = f"{label}, {way}" if len(found) > 1 else way.capitalize()
            layers.append(Steps(role, name, edges, rate, stroke))
            rows.append(LegendRow(role, name, (units.transferred(total),), stroke))
    return Figure(
        NETWORK,
        rank,
        "Network traffic of the machine",
        of,
        _time(found),
        Axis("Bytes per second", Unit.BYTES_PER_S, 0.0, most * 1.06 or 1.0),
        tuple(layers),
        Legend(("total",), tuple(rows)),
        _notes(found),
    )


def _known(files: Sequence[SourceFile]) -> list[tuple[str, Usage]]:
    """The runs with samples, by their hosts if these differ, else by name."""
    runs = [(file, usage) for file in files if (usage := file.run.statistics.usage) and _has_samples(usage)]
    hosts = [file.run.machine.hostname for file, _ in runs]
    differ = len(set(hosts)) == len(hosts)
    return [(host if differ and host else file.name, usage) for host, (file, usage) in zip(hosts, runs, strict=True)]


def _has_samples(usage: Usage) -> bool:
    samples = usage.samples
    columns = (samples.busy_pct, samples.received_bytes, samples.sent_bytes)
    return len(samples.at_s) > 0 and all(len(each) == len(samples.at_s) for each in columns)


def _edges(usage: Usage) -> NDArray[np.float64]:
    # Another program may have written them in any order.
    return np.maximum.accumulate(np.array((0.0, *usage.samples.at_s)))


def _time(found: Sequence[tuple[str, Usage]]) -> Axis:
    end = max(float(_edges(usage)[-1]) for _, usage in found)
    return Axis("Time of the run", Unit.TIMELINE, 0.0, max(end * 1.01, 1e-6))


def _notes(found: Sequence[tuple[str, Usage]]) -> tuple[Note, ...]:
    more = f"; only the first {len(ROLES)} runs" if len(found) > len(ROLES) else ""
    return (Note(NoteKind.INFO, f"Of all programs on the machine{more}"),)


DIAGRAMS = [
    Diagram[Study](PROCESSORS, "g51", Group.VERBOSE, lambda study: processors(study.files, study.of, "g51")),
    Diagram[Study](NETWORK, "g52", Group.VERBOSE, lambda study: network(study.files, study.of, "g52")),
]
