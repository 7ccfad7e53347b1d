"""What is drawn around a diagram, in pixels of the base size from the upper left, whatever draws it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from iosonar.figures.model import Stroke


class Sheet(Protocol):
    """A picture without its diagram. The vertical place of a text is the top of its letters' line."""

    width: float
    height: float

    def measure(self, text: str, pixels: float, weight: str = "normal") -> float:
        """The width of a text with letters of that height."""

    def text(
        self, x: float, y: float, text: str, pixels: float, colour: str, align: str = "left", weight: str = "normal"
    ) -> None:
        """Writes a line of text."""

    def square(self, x: float, y: float, side: float, colour: str) -> None:
        """A filled square about its middle."""

    def dash(self, x: float, y: float, length: float, width: float, colour: str, stroke: Stroke) -> None:
        """A horizontal line of a legend, to the right."""

    def strip(self, x: float, y: float, wide: float, high: float, colours: NDArray[np.float64]) -> None:
        """Rows of colours, each as numbers from 0 to 1, scaled to an area."""
