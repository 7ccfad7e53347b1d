"""The state of each leaf of a campaign, as people and programs see it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from iosonar import units
from iosonar.campaign import state, tree
from iosonar.campaign.watch import PROGRESS
from iosonar.errors import UserError
from iosonar.locks import is_held
from iosonar.text import aligned, plain


@dataclass(frozen=True)
class Row:
    """A leaf."""

    leaf: str
    state: str
    """done, replayed, failed, running, finishing, interrupted or to do."""
    results: int
    attempt: int
    seconds: float | None
    """How long the last attempt took, or takes."""
    reason: str
    """Why it failed, or how far it is."""

    def as_json(self) -> dict[str, Any]:
        """The row for programs."""
        return asdict(self)


def rows(top: Path) -> list[Row]:
    """The leaves, in the order in which they run."""
    running = is_running(top)
    return [_row(leaf, running) for leaf in tree.leaves(top)]


def table(found: Sequence[Row]) -> Iterator[str]:
    """A table for people."""
    cells = [("leaf", "state", "results", "took", "")]
    for row in found:
        took = units.span(row.seconds) if row.seconds is not None else ""
        cells.append((plain(row.leaf), row.state, str(row.results or ""), took, plain(row.reason)))
    yield from aligned(cells)
    done = sum(row.state == "done" for row in found)
    yield f"{done} of {units.counted(len(found), 'leaf', 'leaves')} done"


def _row(leaf: tree.Leaf, running: bool) -> Row:
    try:
        known = state.read(leaf.directory)
        results = len(state.finished_results(leaf.directory))
    except UserError as error:
        return Row(leaf.name, "unknown", 0, 0, None, str(error))
    if known is None:
        return Row(leaf.name, "to do", results, 0, None, "")
    shown, reason = state.seen(known, has_results=results > 0, is_running=running)
    if shown == "running":
        reason = _progress(leaf)
    end = known.ended or (time.time() if shown == "running" else None)
    seconds = end - known.started if end and known.started else None
    return Row(leaf.name, shown, results, known.attempt, seconds, reason)


def _progress(leaf: tree.Leaf) -> str:
    try:
        found = json.loads((leaf.top / ".campaign" / PROGRESS).read_text())
    except (OSError, ValueError):
        return ""
    return str(found["progress"]) if found.get("leaf") == leaf.name else ""


def is_running(top: Path) -> bool:
    """Whether a campaign holds the lock."""
    return is_held(top / ".campaign" / "lock")
