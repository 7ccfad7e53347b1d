"""The colours of each role, for light and dark paper.

Blue reads and red writes, as the field knows them, chosen so that they differ in lightness as well: people who don't
tell red from green, and prints without colour, keep them apart. Pushed-back requests have the hue of their kind, with
more contrast to the paper. Demand and actual, and the ordered families, follow Okabe and Ito's colours for everyone
(https://jfly.uni-koeln.de/color/) and matplotlib's viridis.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from iosonar.figures.model import Mood, Role


class Theme(StrEnum):
    """The paper."""

    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True)
class Palette:
    """All colours of a theme, as #rrggbb."""

    paper: str
    plot: str
    ink: str
    soft_ink: str
    grid: str
    roles: dict[Role, str]
    moods: dict[Mood, str]


_LIGHT = Palette(
    paper="#ffffff",
    plot="#fbfbfc",
    ink="#1b1f24",
    soft_ink="#59636e",
    grid="#dfe3e8",
    roles={
        Role.READ: "#2a9df4",
        Role.WRITE: "#e5383b",
        Role.PUSHED_READ: "#0b2a6b",
        Role.PUSHED_WRITE: "#6d0a2e",
        Role.OTHER: "#2e8b57",
        Role.FAILED: "#9b30d9",
        Role.ALL: "#8a7500",
        Role.DEMAND: "#009e73",
        Role.ACTUAL: "#e69f00",
        Role.GOOD: "#1a7f37",
        Role.BAD: "#8b2bbf",
        Role.FAINT: "#8c959f",
        Role.ORDER_1: "#440154",
        Role.ORDER_2: "#3b528b",
        Role.ORDER_3: "#21918c",
        Role.ORDER_4: "#5ec962",
        Role.ORDER_5: "#e0a100",
    },
    moods={Mood.NEUTRAL: "#59636e", Mood.GOOD: "#1a7f37", Mood.BAD: "#8b2bbf", Mood.WARNING: "#b54708"},
)

_DARK = Palette(
    paper="#0f1318",
    plot="#151a21",
    ink="#e8ebef",
    soft_ink="#9aa5b1",
    grid="#29313b",
    roles={
        Role.READ: "#3b9eff",
        Role.WRITE: "#f0474a",
        Role.PUSHED_READ: "#c3e2ff",
        Role.PUSHED_WRITE: "#ffc9bd",
        Role.OTHER: "#57c78a",
        Role.FAILED: "#d58bff",
        Role.ALL: "#d8c45a",
        Role.DEMAND: "#2cc79a",
        Role.ACTUAL: "#f5b63a",
        Role.GOOD: "#4ac26b",
        Role.BAD: "#d58bff",
        Role.FAINT: "#6e7a87",
        Role.ORDER_1: "#b48ae8",
        Role.ORDER_2: "#6f9ff0",
        Role.ORDER_3: "#2fc6b8",
        Role.ORDER_4: "#8fe06f",
        Role.ORDER_5: "#fde725",
    },
    moods={Mood.NEUTRAL: "#9aa5b1", Mood.GOOD: "#4ac26b", Mood.BAD: "#d58bff", Mood.WARNING: "#f0a35e"},
)

PALETTES = {Theme.LIGHT: _LIGHT, Theme.DARK: _DARK}
