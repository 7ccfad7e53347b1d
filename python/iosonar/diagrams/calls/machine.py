"""What all programs of the machine did during runs of calls."""

from __future__ import annotations

from iosonar.diagrams.calls.catalogue import CallDiagram, Part
from iosonar.diagrams.machine import NETWORK, PROCESSORS, network, processors

DIAGRAMS = (
    CallDiagram(PROCESSORS, "f90", Part.FIDELITY, lambda study: processors(study.files, study.of, "f90")),
    CallDiagram(NETWORK, "f91", Part.FIDELITY, lambda study: network(study.files, study.of, "f91")),
)
