"""The definition of a diagram: a name, a rank, and a function that builds its figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from iosonar.figures.model import Empty, Figure
from iosonar.study.base import BaseStudy

S = TypeVar("S", bound=BaseStudy)


class Group(Enum):
    """When a diagram of requests is part of a report."""

    ALWAYS = "always"
    STATIC = "static"
    """Describes a load: positions, sizes, frequency of access."""
    DYNAMIC = "dynamic"
    """Describes a run: what the storage did."""
    BOTH = "both"
    """Describes a load or a run."""
    DEVICES = "devices"
    """Shows several devices of a run beside each other."""
    STREAMS = "streams"
    """Shows the streams of a program beside each other."""
    ORIGINAL = "original"
    """Shows a run beside its original."""
    VERBOSE = "verbose"
    """Describes the replayer itself."""


@dataclass(frozen=True)
class Diagram(Generic[S]):
    """A diagram of a kind of study. Files are sorted by `rank`, the most interesting first."""

    name: str
    rank: str
    group: Enum
    """When it is part of a report, or in which part of the page."""
    builder: Callable[[S], Figure | Empty]

    def build(self, study: S) -> Figure | Empty:
        """The figure, or why there is none."""
        why = study.why_empty(self.name)
        return Empty(self.name, why) if why else self.builder(study)
