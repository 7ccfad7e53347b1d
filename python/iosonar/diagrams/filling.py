"""How a cache fills: the curve that `iosonar cache fill` computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from iosonar import units
from iosonar.diagrams.parts import rate_row
from iosonar.figures.model import Axis, Figure, Legend, Line, Note, NoteKind, Role, Severity, Stroke, Unit
from iosonar.text import plain

NAME, RANK = "cache.filling", "g47"


def filling(found: dict[str, Any]) -> Figure:
    """The figure of an object that `iosonar cache fill --json` prints."""
    return _of_load(found) if found["kind"] == "load" else _of_reads(found)


def _of_reads(found: dict[str, Any]) -> Figure:
    entries = found["entries"]
    curve = [{"reads": 0, "formula": 0.0, "simulation": 0}, *found["curve"]]
    reads = np.array([point["reads"] for point in curve], dtype=np.float64)
    formula = np.array([point["formula"] for point in curve], dtype=np.float64)
    # Null without a simulation.
    simulated = np.array([point["simulation"] for point in curve], dtype=np.float64)
    law = "uniformly random" if found["zipf"] is None else f"Zipf-distributed (exponent {found['zipf']:g})"
    rate = "" if found["rate"] is None else f" · {found['rate']:,g} reads per second"
    lines = [Line(Role.ALL, "Formula", reads, 100 * formula / entries)]
    rows = [rate_row(Role.ALL, "Formula", (f"{units.count(round(found['full']['mean_reads']))} reads",))]
    if np.isfinite(simulated[1:]).any():
        full = found["full"]["simulation_reads"]
        lines.append(Line(Role.ACTUAL, "Simulation", reads, 100 * simulated / entries, Stroke.DASHED))
        rows.append(
            rate_row(Role.ACTUAL, "Simulation", ("–" if full is None else f"{units.count(full)} reads",), Stroke.DASHED)
        )
    measured = np.array([point.get("measured") for point in curve], dtype=np.float64)
    if np.isfinite(measured[1:]).any():
        measured[0] = 0.0
        lines.append(Line(Role.WRITE, "Measured", reads, 100 * measured / entries, Stroke.DOTTED))
        rows.append(rate_row(Role.WRITE, "Measured", ("–",), Stroke.DOTTED))
    why = found.get("fake")
    fake = (
        ()
        if why is None
        else (
            Note(NoteKind.STAMP, "FAKE RESULT", Severity.BAD),
            Note(NoteKind.WARNING, f"Fake: {plain(why)}", Severity.BAD),
        )
    )
    return Figure(
        NAME,
        RANK,
        "Filling of a cache by random reads",
        f"{units.count(entries)} entries · {law} reads{rate}",
        Axis("Reads", Unit.REQUESTS, 0.0, float(reads[-1])),
        Axis("Filled", Unit.PERCENT, 0.0, 102.0),
        tuple(lines),
        Legend(("full after",), tuple(rows)),
        fake,
    )


def _of_load(found: dict[str, Any]) -> Figure:
    curve = [{"seconds": 0.0, "bytes": 0.0}, *found["curve"]]
    seconds = np.array([point["seconds"] for point in curve], dtype=np.float64)
    size = np.array([point["bytes"] for point in curve], dtype=np.float64)
    blocks = f"Blocks of {units.binary_bytes(found['block_bytes'])}"
    row = (units.count(round(found["blocks"])), units.binary_bytes(found["bytes"]))
    hits = [
        f"{units.percent(cache['hit_ratio'])} with {units.binary_bytes(cache['bytes'])}"
        for cache in found["caches"][-3:]
    ]
    return Figure(
        NAME,
        RANK,
        "Blocks touched: filling of a cache by a load",
        plain(found["load"]),
        Axis("Time", Unit.TIMELINE, 0.0, max(float(seconds[-1]), 1e-9)),
        Axis("Touched", Unit.BYTES, 0.0, 1.1 * float(size[-1])),
        (Line(Role.ALL, blocks, seconds, size),),
        Legend(("blocks", "size"), (rate_row(Role.ALL, blocks, row),)),
        (Note(NoteKind.VERDICT, f"Hit ratio of an LRU cache: {', '.join(hits)}"),),
    )
