"""A figure as data: axes, layers, legend, notes and the numbers behind it.

Diagrams build a `Figure`; drawers (`matplotlib` for files, another for pages) show it; `numbers` writes it as a table.
Nothing here knows how a picture is made, and nothing that draws computes anything but places and colours.

Units: every position on an axis is in the unit of that axis (`Axis.unit`): times in seconds, whatever the labels say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, StrEnum

import numpy as np
from numpy.typing import NDArray


class Unit(StrEnum):
    """What an axis counts in, and so how its ticks are labelled."""

    SECONDS = "s"
    TIMELINE = "time"
    """Seconds since the start of a run or trace: labelled in ms, s, min or h, whatever suits its length."""
    REQUESTS = "requests"
    REQUESTS_PER_S = "IO/s"
    BYTES = "bytes"
    """Of what is addressed: labelled in KiB, MiB, GiB."""
    BYTES_PER_S = "bytes/s"
    """Of what is transferred: labelled in kB/s, MB/s, GB/s."""
    TIMES = "times"
    """So many times as much: a ratio."""
    GIB = "GiB"
    PERCENT = "%"
    DEVICES = "devices"
    """Several devices above one another, each on a scale of its own: the axis has named ticks."""
    RANK = "rank"
    ODDS = "odds"
    """One in so many: 100 is the 99th percentile, and labelled so."""


class Scale(Enum):
    """How an axis maps its values."""

    LINEAR = "linear"
    LOG = "log"


class Role(StrEnum):
    """What something in a figure stands for. A palette gives each role its colour."""

    READ = "read"
    WRITE = "write"
    PUSHED_READ = "pushed read"
    PUSHED_WRITE = "pushed write"
    OTHER = "other"
    FAILED = "failed"
    ALL = "all"
    DEMAND = "demand"
    ACTUAL = "actual"
    GOOD = "good"
    BAD = "bad"
    FAINT = "faint"
    ORDER_1 = "order 1"
    """The first of a family of lines with an order, such as windows of growing length; ORDER_2 is the next."""
    ORDER_2 = "order 2"
    ORDER_3 = "order 3"
    ORDER_4 = "order 4"
    ORDER_5 = "order 5"


@dataclass(frozen=True)
class Axis:
    """One axis, from `low` to `high` in its unit.

    `named` are the ticks of an axis that has no others: places and texts. An axis of whole numbers has no tick between
    two of them.
    """

    label: str
    unit: Unit
    low: float
    high: float
    scale: Scale = Scale.LINEAR
    named: tuple[tuple[float, str], ...] = ()
    whole: bool = False

    def share(self, value: float) -> float:
        """Where a value lies on the axis, from 0 to 1."""
        if self.scale is Scale.LOG:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class CloudPart:
    """One series of a cloud: the cells that hold anything, by column, row (both from the lower left) and count."""

    role: Role
    label: str
    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Cloud:
    """A density: the figure's area cut into `across` × `up` equal cells (equal in the axes' scales), counted.

    Where parts meet, each has its share of the dots: see `figures/dots.py`.
    """

    across: int
    up: int
    parts: tuple[CloudPart, ...]
    whole_numbers: bool = False
    """Each column is a whole number, such as a queue's depth: columns are drawn apart."""

    @property
    def requests(self) -> int:
        """How many requests it shows."""
        return sum(int(part.counts.sum()) for part in self.parts)


class Stroke(Enum):
    """How a line is drawn."""

    SOLID = "solid"
    DASHED = "dashed"
    DOTTED = "dotted"


@dataclass(frozen=True)
class Line:
    """Points joined by straight lines; a point that is not a number leaves a gap."""

    role: Role
    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    stroke: Stroke = Stroke.SOLID


@dataclass(frozen=True)
class Steps:
    """A value for each interval between `edges` (one more than `y`); not a number leaves a gap.

    The last `partial` intervals are incomplete and drawn as such.
    """

    role: Role
    label: str
    edges: NDArray[np.float64]
    y: NDArray[np.float64]
    stroke: Stroke = Stroke.SOLID
    filled: bool = False
    partial: int = 0


FEW_STEPS = 200
"""So many steps may have a wide line behind them for what they add up to: then it is seen beside one that equals it."""


class Direction(Enum):
    """How a rule runs."""

    HORIZONTAL = "horizontal"
    VERTICAL = "vertical"


NEAR_RIGHT = 0.75
"""Of the x axis: beyond it, a vertical rule's name stands to the left of it, where there is room."""


@dataclass(frozen=True)
class Rule:
    """A straight line across the whole figure, such as a limit or the time of the first offender, with its name."""

    role: Role
    direction: Direction
    at: float
    label: str


Layer = Cloud | Line | Steps | Rule


@dataclass(frozen=True)
class LegendRow:
    """A line of the legend: what, and a text for each of the legend's columns."""

    role: Role
    label: str
    cells: tuple[str, ...] = ()
    stroke: Stroke | None = None
    """Of a line; None for an area or a cloud."""


@dataclass(frozen=True)
class Legend:
    """A small table: a row for each series, a column for each key number."""

    columns: tuple[str, ...] = ()
    rows: tuple[LegendRow, ...] = ()


class NoteKind(StrEnum):
    """What a note is about, and so where it stands and how loud it is."""

    FIDELITY = "fidelity"
    """Whether the replay itself was faithful. Stands first."""
    VERDICT = "verdict"
    WRAP = "wrap"
    """The wrap-around factor."""
    WARNING = "warning"
    INFO = "info"
    STAMP = "stamp"
    """Across the whole picture: the result is not what it seems to be."""


class Severity(StrEnum):
    """How a note is to be taken."""

    NEUTRAL = "neutral"
    GOOD = "good"
    BAD = "bad"
    WARNING = "warning"


@dataclass(frozen=True)
class Note:
    """Something said beside the diagram."""

    kind: NoteKind
    text: str
    severity: Severity = Severity.NEUTRAL


@dataclass(frozen=True)
class Figure:
    """A diagram, ready to be drawn.

    `name` is the manual's (`latency.realtime`); `rank` orders the files by interest (`g01`); `of` says which files it
    shows; `title` says in words what it shows.
    """

    name: str
    rank: str
    title: str
    of: str
    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    legend: Legend = field(default_factory=Legend)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Empty:
    """A diagram that has nothing to show, and why: it is named, not drawn."""

    name: str
    reason: str
