"""What a cache would have done for a load: reuse distances and the miss-ratio curve."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.parts import count_axis, rate_row
from iosonar.diagrams.study import Study
from iosonar.figures.model import Axis, Empty, Figure, Legend, Line, Note, NoteKind, Role, Scale, Steps, Stroke, Unit
from iosonar.quantities.reuse import Reuse, reuse

PAGE_BYTES = 4096
STEPS = 300


def reuse_distances(study: Study, name: str, rank: str) -> Figure | Empty:
    """How much else is accessed between two accesses to the same page."""
    found = _reuse(study)
    if found is None:
        return Empty(name, "no request moves data")
    again = np.isfinite(found.distance)
    if not again.any():
        return Empty(name, "no page is accessed twice")
    distance = found.distance[again] * PAGE_BYTES
    # A whole number of powers of two; distance zero is in the lowest bin.
    top = math.ceil(math.log2(max(float(distance.max()), PAGE_BYTES) + 1))
    edges = 2.0 ** np.arange(math.log2(PAGE_BYTES), top + 0.5, 0.5)
    counts = np.histogram(np.maximum(distance, edges[0]), edges)[0] * (found.accesses / len(found.distance))
    first = 1 - again.mean()
    row = (units.count(found.accesses), units.percent(float(first)), units.binary_bytes(float(np.median(distance))))
    return Figure(
        name,
        rank,
        "Reuse distance: what else is accessed before the same page again",
        _sampled(study, found),
        Axis("Reuse distance", Unit.BYTES, float(edges[0]), float(edges[-1]), Scale.LOG),
        count_axis("Accesses to pages of 4 KiB", Unit.REQUESTS, max(float(counts.max()), 10)),
        (Steps(Role.ALL, "All", edges, np.where(counts > 0, counts, np.nan), filled=True),),
        Legend(("accesses", "first ever", "median"), (rate_row(Role.ALL, "All", row),)),
        study.notes,
    )


def miss_ratio(study: Study, name: str, rank: str) -> Figure | Empty:
    """The share of accesses that a cache of each size would not have held."""
    found = _reuse(study)
    if found is None:
        return Empty(name, "no request moves data")
    again = found.distance[np.isfinite(found.distance)]
    largest = 2.0 ** math.ceil(math.log2(max(float(again.max()) + 2, 16.0) if len(again) else 16.0))
    pages = np.geomspace(1, largest, STEPS)
    missed, error = found.miss_ratio(pages)
    x = pages * PAGE_BYTES
    lines = [Line(Role.ALL, "Missed", x, 100 * missed)]
    rows = [rate_row(Role.ALL, "Missed by an LRU cache", ())]
    if (error > 0).any():
        lines += [
            Line(Role.FAINT, "± 2 standard errors", x, 100 * np.clip(missed + sign * 2 * error, 0, 1), Stroke.DOTTED)
            for sign in (-1, 1)
        ]
        rows.append(rate_row(Role.FAINT, "± 2 standard errors", (), Stroke.DOTTED))
    return Figure(
        name,
        rank,
        "Miss ratio by the size of a cache",
        _sampled(study, found),
        Axis("Size of the cache", Unit.BYTES, PAGE_BYTES, largest * PAGE_BYTES, Scale.LOG),
        Axis("Accesses missed", Unit.PERCENT, 0.0, 102.0),
        tuple(lines),
        Legend((), tuple(rows)),
        (*study.notes, Note(NoteKind.VERDICT, answer(found))),
    )


def answer(found: Reuse) -> str:
    """In plain words: how much of the accesses caches of a few sizes would have held."""
    again = found.distance[np.isfinite(found.distance)]
    most = math.floor(math.log2(max(float(again.max()) if len(again) else 1.0, 256.0)))
    sizes = 2.0 ** np.arange(max(most - 6, 8), most + 1, 3, dtype=np.float64)[-3:]
    missed, error = found.miss_ratio(sizes)
    said = [
        f"{units.binary_bytes(pages * PAGE_BYTES)} {units.percent(1 - miss)}"
        + (f" ± {200 * deviation:.1f}" if deviation else "")
        for pages, miss, deviation in zip(sizes, missed, error, strict=True)
    ]
    return f"A cache would have held: {', '.join(said)} of the accesses"


def _reuse(study: Study) -> Reuse | None:
    return study.once("reuse", lambda: reuse(study.table))


def _sampled(study: Study, found: Reuse) -> str:
    if len(found.distance) == found.accesses:
        return study.of
    return f"{study.of} · sampled: {len(found.distance):,} of {found.accesses:,} accesses"


DIAGRAMS = [
    Diagram("reuse.bins", "g45", Group.STATIC, partial(reuse_distances, name="reuse.bins", rank="g45")),
    Diagram("miss.ratio", "g46", Group.STATIC, partial(miss_ratio, name="miss.ratio", rank="g46")),
]
