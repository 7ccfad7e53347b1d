"""Draws a figure into a file."""

from __future__ import annotations

from pathlib import Path

from iosonar.figures.model import Figure
from iosonar.figures.palette import Theme
from iosonar.figures.size import Size


def draw(figure: Figure, path: Path, size: Size, theme: Theme) -> None:
    """Draws a figure into a file of the type given by its suffix: PNG, SVG or PDF."""
    if path.suffix == ".png":
        from iosonar.figures.with_pixels import draw as draw_png

        draw_png(figure, path, size, theme)
    else:
        from iosonar.figures.with_matplotlib import draw as draw_vectors

        draw_vectors(figure, path, size, theme)


def prepare(suffix: str) -> None:
    """Imports what draws files of a type."""
    if suffix == ".png":
        import iosonar.figures.with_pixels
    else:
        import iosonar.figures.with_matplotlib  # noqa: F401
