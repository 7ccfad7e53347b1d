"""Diagrams of calls: the parts of a page that they are in."""

from __future__ import annotations

from enum import Enum

from iosonar.diagrams.catalogue import Diagram
from iosonar.study.calls import CallStudy


class Part(Enum):
    """The parts of a page."""

    TIME = "time"
    RESPONSE = "response"
    FILES = "files"
    BLOCKS = "blocks"
    MIX = "mix"
    ORDER = "order"
    FIDELITY = "fidelity"


CallDiagram = Diagram[CallStudy]
