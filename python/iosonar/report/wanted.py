"""What a report is to be written as, and what became of each of its parts."""

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
class Wanted:
    """What to write, and where."""

    folder: Path
    format: ReportFormat = ReportFormat.HTML
    theme: Theme | None = None
    data: DataFormat | None = None
    """Also write the numbers behind each diagram."""


@dataclass(frozen=True)
class Done:
    """A diagram that was dealt with: the files that were written, or why there are none."""

    name: str
    paths: tuple[Path, ...]
    reason: str = ""
