"""Diagrams of calls to files: one file for each family, with its list `DIAGRAMS`."""

from iosonar.diagrams.calls import blocks, fidelity, files, graph, machine, mix, response, timeline
from iosonar.diagrams.calls.catalogue import CallDiagram, Part
from iosonar.study.calls import CallSide, CallStudy

FAMILIES = (timeline, mix, response, files, blocks, graph, fidelity, machine)

CATALOGUE: tuple[CallDiagram, ...] = tuple(
    sorted(
        (diagram for family in FAMILIES for diagram in family.DIAGRAMS),
        key=lambda diagram: (diagram.rank, diagram.name),
    )
)
"""All diagrams of calls, the most interesting first."""

__all__ = ["CATALOGUE", "CallDiagram", "CallSide", "CallStudy", "Part"]
