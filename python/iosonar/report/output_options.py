"""Options of a report's output, and the result for each diagram."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from iosonar.figures.numbers import DataFormat
from iosonar.figures.palette import Theme
from iosonar.report.gate import Judged


class ReportFormat(StrEnum):
    """A page, or a type of picture."""

    HTML = "html"
    PNG = "png"
    SVG = "svg"


@dataclass(frozen=True)
class OutputOptions:
    """Directory, format and theme of a report."""

    directory: Path
    format: ReportFormat = ReportFormat.HTML
    theme: Theme | None = None
    data: DataFormat | None = None
    """Also write the data of each diagram, in this format."""
    inputs: tuple[str, ...] = ()
    """What it shows: see `report/provenance.py`."""
    overwrite: bool = False
    """Whether pages and pictures of other inputs may be replaced."""
    judged: tuple[Judged, ...] = ()
    """The outcomes of conditions, which a page shows."""


@dataclass(frozen=True)
class DiagramFiles:
    """The files of a diagram, or the reason why it has none."""

    name: str
    paths: tuple[Path, ...]
    reason: str = ""
