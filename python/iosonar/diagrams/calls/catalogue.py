"""The definition of a diagram of calls: a name, a rank, the part of the page, and a function that builds its figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from iosonar.figures.model import Empty, Figure
from iosonar.study.calls import CallStudy


class Part(StrEnum):
    """The parts of a page."""

    TIME = "time"
    RESPONSE = "response"
    FILES = "files"
    BLOCKS = "blocks"
    MIX = "mix"
    ORDER = "order"
    FIDELITY = "fidelity"


@dataclass(frozen=True)
class CallDiagram:
    """A diagram. Files are sorted by `rank`, the most interesting first."""

    name: str
    rank: str
    part: Part
    builder: Callable[[CallStudy], Figure | Empty]

    def build(self, study: CallStudy) -> Figure | Empty:
        """The figure, or why there is none."""
        if not study.calls:
            return Empty(self.name, "no calls in the file")
        return self.builder(study)
