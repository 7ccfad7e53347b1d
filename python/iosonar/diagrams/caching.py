"""Caches for a load: reuse distances and the miss-ratio curve."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from iosonar import units
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.notes import common_notes
from iosonar.diagrams.parts import count_axis, rate_row
from iosonar.figures.model import Axis, Empty, Figure, Legend, Line, Note, NoteKind, Role, Scale, Steps, Stroke, Unit
from iosonar.quantities.reuse import Reuse, reuse_of
from iosonar.study.accesses import accesses_of
from iosonar.study.requests import Study

STEPS = 300


def reuse_distances(study: Study, name: str, rank: str) -> Figure | Empty:
    """The amount of other data accessed between two accesses to the same page."""
    found = _reuse(study)
    if found is None:
        return Empty(name, "no request transfers data")
    again = np.isfinite(found.distance)
    if not again.any():
        return Empty(name, "no page is accessed more than once")
    distance = found.distance[again] * found.page_bytes
    # Whole powers of two; distance zero is in the lowest bin.
    bottom = math.log2(found.page_bytes)
    top = max(math.ceil(math.log2(float(distance.max()) + 1)), bottom + 1)
    edges = 2.0 ** np.arange(bottom, top + 0.5, 0.5)
    counts = np.histogram(np.maximum(distance, edges[0]), edges)[0] * (found.accesses / len(found.distance))
    first = 1 - again.mean()
    row = (units.count(found.accesses), units.percent(float(first)), units.binary_bytes(float(np.median(distance))))
    return Figure(
        name,
        rank,
        "Reuse distance: data accessed between two accesses to the same page",
        _sampled(study, found),
        Axis("Reuse distance", Unit.BYTES, float(edges[0]), float(edges[-1]), Scale.LOG),
        count_axis(
            f"Accesses to pages of {units.binary_bytes(found.page_bytes)}", Unit.REQUESTS, max(float(counts.max()), 10)
        ),
        (Steps(Role.ALL, "All", edges, counts, filled=True),),
        Legend(("accesses", "first accesses", "median distance"), (rate_row(Role.ALL, "All", row),)),
        common_notes(study),
    )


def miss_ratio(study: Study, name: str, rank: str) -> Figure | Empty:
    """The share of accesses that a cache of each size would have missed."""
    found = _reuse(study)
    if found is None:
        return Empty(name, "no request transfers data")
    again = found.distance[np.isfinite(found.distance)]
    largest = 2.0 ** math.ceil(math.log2(max(float(again.max()) + 2, 16.0) if len(again) else 16.0))
    pages = np.geomspace(1, largest, STEPS)
    missed, error = found.miss_ratio(pages)
    x = pages * found.page_bytes
    lines = [Line(Role.ALL, "LRU cache", x, 100 * missed)]
    rows = [rate_row(Role.ALL, "LRU cache", ())]
    if (error > 0).any():
        lines += [
            Line(Role.FAINT, "± 2 standard errors", x, 100 * np.clip(missed + sign * 2 * error, 0, 1), Stroke.DOTTED)
            for sign in (-1, 1)
        ]
        rows.append(rate_row(Role.FAINT, "± 2 standard errors", (), Stroke.DOTTED))
    return Figure(
        name,
        rank,
        "Miss ratio by cache size",
        _sampled(study, found),
        Axis("Cache size", Unit.BYTES, found.page_bytes, largest * found.page_bytes, Scale.LOG),
        Axis("Miss ratio", Unit.PERCENT, 0.0, 102.0),
        tuple(lines),
        Legend((), tuple(rows)),
        (*common_notes(study), Note(NoteKind.VERDICT, answer(found))),
    )


def answer(found: Reuse) -> str:
    """The miss ratios of a few cache sizes, in words."""
    again = found.distance[np.isfinite(found.distance)]
    most = math.floor(math.log2(max(float(again.max()) if len(again) else 1.0, 256.0)))
    sizes = 2.0 ** np.arange(max(most - 6, 8), most + 1, 3, dtype=np.float64)[-3:]
    missed, error = found.miss_ratio(sizes)
    ratios = [
        units.percent(miss)
        + (f" ± {200 * deviation:.1f}" if deviation else "")
        + f" with {units.binary_bytes(pages * found.page_bytes)}"
        for pages, miss, deviation in zip(sizes, missed, error, strict=True)
    ]
    return f"Miss ratio of an LRU cache: {', '.join(ratios)}"


def _reuse(study: Study) -> Reuse | None:
    def compute() -> Reuse | None:
        found = accesses_of(study)
        return None if found is None else reuse_of(found)

    return study.cached("reuse", compute)


def _sampled(study: Study, found: Reuse) -> str:
    if len(found.distance) == found.accesses:
        return study.of
    return f"{study.of} · sampled: {len(found.distance):,} of {found.accesses:,} accesses"


DIAGRAMS = [
    Diagram("reuse.bins", "g45", Group.STATIC, partial(reuse_distances, name="reuse.bins", rank="g45")),
    Diagram("miss.ratio", "g46", Group.STATIC, partial(miss_ratio, name="miss.ratio", rank="g46")),
]
