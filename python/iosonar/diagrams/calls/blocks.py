"""Calls and the requests of block devices that they caused, by file."""

from __future__ import annotations

from functools import partial

import numpy as np

from iosonar import units
from iosonar.diagrams.calls.catalogue import CallDiagram, Part
from iosonar.diagrams.calls.parts import bars, category_axis, figure, info, short_path
from iosonar.diagrams.parts import linear_axis
from iosonar.figures.model import Empty, Figure, Legend, LegendRow, Role, Steps, Unit
from iosonar.study.calls import CallStudy

SHOWN = 8
NAME_LENGTH = 16
"""Characters of a path below a bar."""

SERIES = (
    (Role.PUSHED_READ, "read by calls", "called_read"),
    (Role.READ, "read by requests", "requested_read"),
    (Role.PUSHED_WRITE, "written by calls", "called_written"),
    (Role.WRITE, "written by requests", "requested_written"),
)


def by_file(study: CallStudy, name: str, rank: str) -> Figure | Empty:
    """Bytes of calls and of requests for the files with the most bytes, and for requests that no call caused."""
    if study.blocks is None:
        return Empty(name, "needs a recording of block devices: --blocks NAME.load.parquet")
    shown = study.requests_of_files[:SHOWN]
    if not shown:
        return Empty(name, "neither calls nor requests moved data")
    names = [short_path(each.name, NAME_LENGTH) if each.is_file else f"({each.name})" for each in shown]
    layers, rows = [], []
    for place, (role, label, attribute) in enumerate(SERIES):
        values = np.array([float(getattr(each, attribute)) for each in shown])
        total = sum(getattr(each, attribute) for each in study.requests_of_files)
        layers.append(Steps(role, label, *bars(values, place, len(SERIES)), filled=True, bars=True))
        rows.append(LegendRow(role, label, (units.transferred(total),)))
    hidden = len(study.requests_of_files) - len(shown)
    of = f"{study.first.name} and {study.blocks.file.name}"
    notes = [info("In parentheses: processes whose requests no call caused, such as writeback by the kernel")]
    if hidden:
        notes.append(
            info(f"{units.counted(hidden, 'file or process', 'files and processes')} with fewer bytes not shown")
        )
    return figure(
        study,
        name,
        rank,
        "Bytes of calls and of the requests that they caused",
        category_axis("File, the most bytes first", names),
        linear_axis("Bytes", Unit.BYTES, max(float(np.nanmax(layer.y)) for layer in layers)),
        layers,
        Legend(("total",), tuple(rows)),
        notes,
        of=of,
    )


DIAGRAMS = [CallDiagram("amplification", "f15", Part.BLOCKS, partial(by_file, name="amplification", rank="f15"))]
