"""Measures the width of text before it is drawn."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


class Ruler:
    """Measures text on a canvas, in pixels of the base size."""

    def __init__(self, canvas: Canvas) -> None:
        self._dpi = float(canvas.dpi)

    def width(self, text: str, pixels: float, weight: str = "normal") -> float:
        """The width of a text with letters of that height."""
        return _width(text, pixels, weight, self._dpi)


@lru_cache(20_000)
def _width(text: str, pixels: float, weight: str, dpi: float) -> float:
    """Cached: all pictures of a report have the same notes, and each measures them word by word."""
    from matplotlib.font_manager import FontProperties

    # Without the picture's scale. A point of matplotlib is 1/72 inch; the base size has 100 pixels per inch.
    font = FontProperties(size=pixels * 0.72, weight=weight)
    wide, _, _ = _renderer(dpi).get_text_width_height_descent(text, font, False)
    return float(wide) * 100 / dpi


@lru_cache(1)
def _renderer(dpi: float) -> Any:
    from matplotlib.backends.backend_agg import RendererAgg

    # The width of a text does not depend on the size of the canvas.
    make: Any = RendererAgg
    return make(1, 1, dpi)
