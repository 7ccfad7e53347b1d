"""The text around a diagram: title, verdict, legend and notes."""

from __future__ import annotations

from functools import partial

from iosonar.figures.foot import foot
from iosonar.figures.legend import LegendDrawer
from iosonar.figures.model import Figure, NoteKind, Severity
from iosonar.figures.palette import Palette
from iosonar.figures.sheet import Sheet
from iosonar.figures.size import RIGHT
from iosonar.figures.wrapping import wrapped

TEXT = 12
"""Text size around the diagram, in pixels of the base size."""

HEADING, HEADING_LINES, LINE = 44, 6, 17
"""Start, maximum number and distance of the lines below the title."""


def draw_around(figure: Figure, sheet: Sheet, palette: Palette, fullest: float) -> None:
    """Draws it; `fullest` is the largest number of requests in a dot."""
    _heading(figure, sheet, palette, LegendDrawer(figure, sheet, palette, fullest).draw())
    _foot(figure, sheet, palette)


def _heading(figure: Figure, sheet: Sheet, palette: Palette, legend_left: float) -> None:
    sheet.text(20, 17, figure.title, 18, palette.ink, weight="bold")
    y, full = HEADING, sheet.width - 20 - RIGHT
    beside = min(legend_left - 40, full)
    texts = [(figure.of, palette.soft_ink)]
    texts += [
        (note.text, palette.severities[note.severity])
        for note in figure.notes
        if note.kind in (NoteKind.FIDELITY, NoteKind.VERDICT)
    ]
    width = partial(sheet.measure, pixels=TEXT)
    for number, (text, colour) in enumerate(texts):
        # Each other text gets a line, as long as there are enough.
        free = HEADING_LINES - round((y - HEADING) / LINE)
        lines = wrapped(text, width, [beside] * max(min(free - (len(texts) - number - 1), 2), 1))
        for line in lines[:free]:
            sheet.text(20, y, line, TEXT, colour)
            y += LINE


def _foot(figure: Figure, sheet: Sheet, palette: Palette) -> None:
    wrap = [note for note in figure.notes if note.kind is NoteKind.WRAP]
    beside = max((sheet.measure(note.text, TEXT, "bold") + 30 for note in wrap), default=0)
    room = sheet.width - 20 - RIGHT
    lines = foot(figure.notes, partial(sheet.measure, pixels=TEXT), room, room - beside)
    last = sheet.height - 18
    for number, line in enumerate(reversed(lines)):
        sheet.text(20, last - 16 * number, line.text, TEXT, palette.severities[line.severity])
    for note in wrap:
        weight = "bold" if note.severity is Severity.WARNING else "normal"
        sheet.text(sheet.width - RIGHT, last, note.text, TEXT, palette.severities[note.severity], "right", weight)
