"""What a diagram is: a name, a rank, and a function that builds its figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from iosonar.diagrams.study import Study
from iosonar.figures.model import Empty, Figure

NO_DELAYS = "as fast as possible (--asap): requests have no scheduled times"


class Group(Enum):
    """When a diagram is made."""

    ALWAYS = "always"
    STATIC = "static"
    """Describes a load: where it goes, how large, how often."""
    DYNAMIC = "dynamic"
    """Describes a run: what the storage did."""
    BOTH = "both"
    """Describes a load as well as a run."""
    VERBOSE = "verbose"
    """Describes the replayer itself."""


@dataclass(frozen=True)
class Diagram:
    """A diagram that can be asked for. Files are listed by `rank`: the most interesting come first."""

    name: str
    rank: str
    group: Group
    builder: Callable[[Study], Figure | Empty]

    def build(self, study: Study) -> Figure | Empty:
        """The figure, or why there is none."""
        if study.requests.is_run and not study.has_delays and "delay" in self.name.split("."):
            return Empty(self.name, NO_DELAYS)
        return self.builder(study)
