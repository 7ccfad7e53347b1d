"""The colours of the roles, for light and dark background.

Reads are blue and writes red, as is customary, with different lightness, so that they are distinguishable without
colour vision and in black-and-white prints. Pushed-back requests have other hues, as a dark blue would look like many
reads in a dot. The total of all requests is not a series and has no hue. Demand and actual, and ordered families, use
colours near those of Okabe and Ito (https://jfly.uni-koeln.de/color/) and matplotlib's viridis. Devices
have those of Okabe and Ito, the most striking one for the slowest. Each has a contrast of 3 : 1 with the background.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from iosonar.figures.model import Role, Severity


class Theme(StrEnum):
    """Light or dark background."""

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
    severities: dict[Severity, str]


_LIGHT = Palette(
    paper="#ffffff",
    plot="#fbfbfc",
    ink="#1b1f24",
    soft_ink="#59636e",
    grid="#dfe3e8",
    roles={
        Role.READ: "#1f77e0",
        Role.WRITE: "#e5383b",
        Role.PUSHED_READ: "#0093a3",
        Role.PUSHED_WRITE: "#b87a00",
        Role.OTHER: "#2e8b57",
        Role.FAILED: "#9b30d9",
        Role.ALL: "#3d444d",
        Role.DEMAND: "#009e73",
        Role.ACTUAL: "#b97a00",
        Role.GOOD: "#1a7f37",
        Role.BAD: "#8b2bbf",
        Role.FAINT: "#858e98",
        Role.ORDER_1: "#440154",
        Role.ORDER_2: "#3b528b",
        Role.ORDER_3: "#21918c",
        Role.ORDER_4: "#35993f",
        Role.ORDER_5: "#a87900",
        Role.DEVICE_1: "#d55e00",
        Role.DEVICE_2: "#0072b2",
        Role.DEVICE_3: "#009e73",
        Role.DEVICE_4: "#c46a9b",
        Role.DEVICE_5: "#2f93cc",
        Role.DEVICE_6: "#7a6a00",
    },
    severities={
        Severity.NEUTRAL: "#59636e",
        Severity.GOOD: "#1a7f37",
        Severity.BAD: "#8b2bbf",
        Severity.WARNING: "#b54708",
    },
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
        Role.PUSHED_READ: "#2fd3df",
        Role.PUSHED_WRITE: "#f7b733",
        Role.OTHER: "#57c78a",
        Role.FAILED: "#d58bff",
        Role.ALL: "#c9d1d9",
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
        Role.DEVICE_1: "#ff7f2a",
        Role.DEVICE_2: "#3d9be9",
        Role.DEVICE_3: "#1fc997",
        Role.DEVICE_4: "#e39ac4",
        Role.DEVICE_5: "#8fd3ff",
        Role.DEVICE_6: "#cdbb3a",
    },
    severities={
        Severity.NEUTRAL: "#9aa5b1",
        Severity.GOOD: "#4ac26b",
        Severity.BAD: "#d58bff",
        Severity.WARNING: "#f0a35e",
    },
)

PALETTES = {Theme.LIGHT: _LIGHT, Theme.DARK: _DARK}
