"""Diagrams of files: offsets over time, bytes by file, sizes of reads and writes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from iosonar import units
from iosonar.diagrams.calls.catalogue import CallDiagram, Part
from iosonar.diagrams.calls.parts import ONE_SIDE, ROLES, figure, info, short_path, time_axis
from iosonar.diagrams.parts import cells_of, count_axis, log_axis
from iosonar.figures.model import (
    Axis,
    Cloud,
    CloudPart,
    Empty,
    Figure,
    Legend,
    LegendRow,
    Line,
    Role,
    Scale,
    Steps,
    Stroke,
    Unit,
)
from iosonar.quantities.calls.access import accesses
from iosonar.quantities.calls.series import CallSeries
from iosonar.quantities.density import density
from iosonar.quantities.distribution import distributions
from iosonar.study.calls import MAX_FILES, CallStudy

if TYPE_CHECKING:
    import ibis.expr.types as ir

FEWEST_FILES = 3
"""With fewer files with data, a table is enough."""


def offsets(study: CallStudy, place: int, name: str, rank: str) -> Figure | Empty:
    """The offset of each read and write of a file over time: the file with the most bytes is the first."""
    if not study.is_single:
        return Empty(name, ONE_SIDE)
    side = study.first
    paths = side.drawn_files
    if place >= len(paths):
        return Empty(name, "no such file" if paths else "no file with several reads or writes")
    path = paths[place]
    found = {each.operation: each for each in side.accesses if each.path == path}
    table = accesses(side.table)
    table = table.filter(table.path == path)
    low, high = min(each.low for each in found.values()), max(each.end for each in found.values())
    low = 0 if low < high / 2 else low
    x, y = _time_of(study, table), Axis("Offset", Unit.BYTES, float(low), low + max((high - low) * 1.04, 1.0))
    across, up = study.options.size.cells(sum(each.accesses for each in found.values()))
    begin = (table.begin_ns - side.origin_ns) / 1e9
    cells = density(table, begin, table.offset, cells_of(x, across), cells_of(y, up))
    parts = tuple(
        CloudPart(ROLES[CallSeries(series)], CallSeries(series).title, each.columns, each.rows, each.counts)
        for series, each in sorted(cells.items())
    )
    rows = tuple(
        LegendRow(
            Role.READ if operation == "read" else Role.WRITE,
            f"{operation.capitalize()}s",
            (units.count(each.accesses), units.transferred(each.bytes), each.pattern.value),
        )
        for operation, each in sorted(found.items())
    )
    # A file that was read and written has the pattern of what moved more bytes in its title.
    main = max(found.values(), key=lambda each: each.bytes)
    return figure(
        study,
        name,
        rank,
        f"Offset over time: {main.pattern.value}",
        x,
        y,
        (Cloud(across, up, parts, noun="calls"),),
        Legend(("calls", "moved", "pattern"), rows),
        of=f"{short_path(path)} · {side.name}",
    )


def _time_of(study: CallStudy, table: ir.Table) -> Axis:
    """The whole time; or, if the accesses took less than half of it, their own."""
    row = table.aggregate(first=table.begin_ns.min(), last=table.begin_ns.max()).to_pyarrow().to_pylist()[0]
    first, last = ((row[name] - study.first.origin_ns) / 1e9 for name in ("first", "last"))
    if last - first >= study.seconds / 2 or last <= first:
        return time_axis(study)
    return Axis("Time", Unit.TIMELINE, first, last + (last - first) * 0.01)


def bytes_by_file(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """The bytes read and written by file, the files with the most bytes first."""
    if not study.is_single:
        return Empty(name, ONE_SIDE)
    layers, rows = [], []
    files = study.first.files
    for role, label, values in (
        (Role.READ, "Bytes read", files.read_by_rank),
        (Role.WRITE, "Bytes written", files.written_by_rank),
    ):
        if len(values):
            x = np.repeat(np.arange(len(values) + 1) + 1.0, 2)[1:-1]
            layers.append(Line(role, label, x, np.repeat(values, 2)))
            cells = (*_concentration(values), units.transferred(values.sum()))
            rows.append(LegendRow(role, label, cells, Stroke.SOLID))
    if not layers or max(len(line.x) // 2 for line in layers) < FEWEST_FILES:
        return Empty(name, "fewer than three files with data")
    most = max(float(line.x[-1]) for line in layers)
    y_all = np.concatenate([line.y for line in layers])
    return figure(
        study,
        name,
        rank,
        "Bytes by file, the largest first",
        Axis("Rank of the file", Unit.RANK, 1.0, max(most, 10.0), Scale.LOG),
        log_axis("Bytes of the file's calls", Unit.BYTES, float(y_all.min()), float(y_all.max())),
        layers,
        Legend(("files", "hold 90 %", "total"), tuple(rows)),
    )


def _concentration(values: NDArray[np.float64]) -> tuple[str, str]:
    """The number of files, and of those that hold 90 % of the bytes."""
    needed = int(np.searchsorted(np.cumsum(values), 0.9 * values.sum() * (1 - 1e-12))) + 1
    return units.count(len(values)), units.count(min(needed, len(values)))


def sizes(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """The number of reads and writes by the bytes that they moved, in powers of two."""
    if not study.is_single:
        return Empty(name, ONE_SIDE)
    layers, rows = [], []
    table = study.first.table
    moved = table.filter(table.series.isin((int(CallSeries.READ), int(CallSeries.WRITE))))
    found = sorted(distributions(moved, moved.bytes).items())
    # And an empty bin after the largest, as a bin is closed at its right edge by the next.
    bins = int(np.log2(max([1.0, *(values.maximum for _, values in found)]))) + 2
    for series, values in found:
        kind = CallSeries(series)
        counts = np.bincount(np.floor(np.log2(np.maximum(values.minima, 1))).astype(np.int64), values.counts, bins)
        edges = 2.0 ** np.arange(len(counts) + 1, dtype=np.float64)
        layers.append(Steps(ROLES[kind], kind.title, edges, counts.astype(np.float64)))
        cells = (units.count(values.count), units.binary_bytes(values.mean), units.binary_bytes(values.maximum))
        rows.append(LegendRow(ROLES[kind], kind.title, cells, Stroke.SOLID))
    if not layers:
        return Empty(name, "no reads or writes")
    high = max(float(layer.edges[-1]) for layer in layers)
    low = min(float(layer.edges[int(np.flatnonzero(layer.y)[0])]) for layer in layers)
    most = max(float(layer.y.max()) for layer in layers)
    return figure(
        study,
        name,
        rank,
        "Sizes of reads and writes",
        Axis("Bytes moved", Unit.BYTES, low / 2, high * 2, Scale.LOG),
        count_axis("Calls per bin", Unit.CALLS, most * 1.2),
        layers,
        Legend(("calls", "mean", "max"), tuple(rows)),
        [info("Bins of powers of two")],
    )


DIAGRAMS = [
    *(
        CallDiagram(
            f"offset.{place + 1}",
            "f08",
            Part.FILES,
            partial(offsets, place=place, name=f"offset.{place + 1}", rank="f08"),
        )
        for place in range(MAX_FILES)
    ),
    CallDiagram("files.bytes", "f09", Part.FILES, partial(bytes_by_file, name="files.bytes", rank="f09")),
    CallDiagram("sizes", "f10", Part.FILES, partial(sizes, name="sizes", rank="f10")),
]
