"""The smallest cache that serves a load: what `iosonar cache size` computes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from iosonar import units
from iosonar.diagrams.parts import log_axis, rate_row
from iosonar.figures.model import (
    Axis,
    Direction,
    Figure,
    Legend,
    Line,
    Note,
    NoteKind,
    Role,
    Rule,
    Scale,
    Severity,
    Stroke,
    Unit,
)
from iosonar.text import plain

NAME, RANK = "cache.size", "g48"
OPS = {"read": "reads", "write": "writes", "both": "reads and writes"}


def cache_size(found: dict[str, Any]) -> Figure:
    """The figure of an object that `iosonar cache size --json` prints.

    A cache serves the load where the largest working set is not above the line of what is filled in the same time.
    """
    smallest, upper = found["smallest"], found["upper"]
    points = [(point["fill_s"], point["bytes"], point["touched_bytes"]) for point in found["curve"]]
    points.append((smallest["fill_s"], smallest["bytes"], smallest["bytes"]))
    window, filled, touched = np.array(sorted(points), dtype=np.float64).T
    rate = f"Filled at {units.binary_bytes(found['fill_bytes_per_s'])}/s"
    size = units.binary_bytes(smallest["bytes"])
    rules = [Rule(Role.GOOD, Direction.HORIZONTAL, smallest["bytes"], f"smallest cache: {size}")]
    notes = [Note(NoteKind.VERDICT, f"The smallest cache that serves the load has {size}", Severity.GOOD)]
    if upper is not None:
        above = units.binary_bytes(upper["bytes"])
        rules.append(Rule(Role.FAINT, Direction.HORIZONTAL, upper["bytes"], f"upper cache: {above}"))
        notes.append(
            Note(NoteKind.INFO, f"The upper cache of {above} serves it alone")
            if upper["serves"]
            else Note(
                NoteKind.INFO,
                f"Below {above}: {units.binary_bytes(upper['inclusive_bytes'])} if inclusive, "
                f"{units.binary_bytes(upper['exclusive_bytes'])} if exclusive",
            )
        )
    low = min(filled.min(), touched.min())
    high = max(filled.max(), touched.max(), *(rule.at for rule in rules))
    return Figure(
        NAME,
        RANK,
        "Size of a cache: the largest working sets beside what is filled in the same time",
        f"{plain(found['load'])} · {OPS[found['op']]} · blocks of {units.binary_bytes(found['block_bytes'])}",
        log_axis("Window δ", Unit.SECONDS, float(window.min()), float(window.max())),
        Axis(
            "Size", Unit.BYTES, 2.0 ** math.floor(math.log2(low)), 2.0 ** math.ceil(math.log2(high * 1.05)), Scale.LOG
        ),
        (
            Line(Role.ALL, "Touched within δ, at most", window, touched),
            Line(Role.DEMAND, rate, window, filled, Stroke.DASHED),
            *rules,
        ),
        Legend(
            (),
            (
                rate_row(Role.ALL, "Touched within δ, at most", ()),
                rate_row(Role.DEMAND, rate, (), Stroke.DASHED),
            ),
        ),
        tuple(notes),
    )
