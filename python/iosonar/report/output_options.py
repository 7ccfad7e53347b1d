"""Options of a report's output, and the result for each diagram."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from iosonar.figures.numbers import DataFormat
from iosonar.figures.palette import Theme


class ReportFormat(StrEnum):
    """One page, or the types of pictures."""

    HTML = "html"
    PNG = "png"
    SVG = "svg"


@dataclass(frozen=True)
class OutputOptions:
    """Where a report goes, in which format and theme."""

    folder: Path
    format: ReportFormat = ReportFormat.HTML
    theme: Theme | None = None
    data: DataFormat | None = None
    """Also write the numbers behind each diagram."""


@dataclass(frozen=True)
class Written:
    """The files of one diagram, or the reason why there are none."""

    name: str
    paths: tuple[Path, ...]
    reason: str = ""
