"""What is drawn: one file for each family of diagrams, each with its list `DIAGRAMS`.

A new diagram is a function in a family's file and a line in its list; a new family is a file and a line here.
"""

from iosonar.diagrams import (
    caching,
    correlation,
    flying,
    histograms,
    load,
    overview,
    percentiles,
    position,
    replayer,
    sonar,
    throughput,
    working_sets,
)
from iosonar.diagrams.catalogue import Diagram, Group
from iosonar.diagrams.study import Options, Study

FAMILIES = (
    overview,
    throughput,
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
)

CATALOGUE: tuple[Diagram, ...] = tuple(
    sorted(
        (diagram for family in FAMILIES for diagram in family.DIAGRAMS),
        key=lambda diagram: (diagram.rank, diagram.name),
    )
)
"""Every diagram there is, the most interesting first."""

__all__ = ["CATALOGUE", "Diagram", "Group", "Options", "Study"]
