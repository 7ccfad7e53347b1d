"""The definition of a diagram: a name, a rank, and a function that builds its figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from iosonar.figures.model import Empty, Figure
from iosonar.study.requests import Study

NO_DELAYS = "as fast as possible (--asap): requests have no scheduled times"


class Group(Enum):
    """When a diagram is part of a report."""

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
    VERBOSE = "verbose"
    """Describes the replayer itself."""


@dataclass(frozen=True)
class Diagram:
    """A diagram. Files are sorted by `rank`, the most interesting first."""

    name: str
    rank: str
    group: Group
    builder: Callable[[Study], Figure | Empty]

    def build(self, study: Study) -> Figure | Empty:
        """The figure, or why there is none."""
        if study.requests.is_run and not study.has_delays and "delay" in self.name.split("."):
            return Empty(self.name, NO_DELAYS)
        return self.builder(study)
