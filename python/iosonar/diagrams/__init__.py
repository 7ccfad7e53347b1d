"""Diagrams: one file for each family, with its list `DIAGRAMS`.

To add a diagram, add a function to a family's file and an entry to its list; for a family, a file and an entry here.
"""

from iosonar.diagrams import (
    caching,
    correlation,
    devices,
    flying,
    histograms,
    load,
    machine,
    original,
    overview,
    percentiles,
    position,
    replayer,
    sonar,
    streams,
    throughput,
    working_sets,
)
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.study.base import Options
from iosonar.study.requests import Study

FAMILIES = (
    overview,
    throughput,
    devices,
    streams,
    original,
    sonar,
    histograms,
    flying,
    correlation,
    percentiles,
    position,
    working_sets,
    load,
    caching,
    replayer,
    machine,
)

CATALOGUE: tuple[Diagram[Study], ...] = tuple(
    sorted(
        (diagram for family in FAMILIES for diagram in family.DIAGRAMS),
        key=lambda diagram: (diagram.rank, diagram.name),
    )
)
"""All diagrams, the most interesting first."""

__all__ = ["CATALOGUE", "Diagram", "Group", "Options", "Study"]
