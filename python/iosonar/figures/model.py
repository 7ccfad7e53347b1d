"""A figure as data: axes, layers, legend, notes and the plotted numbers.

Diagrams build a `Figure`; `with_matplotlib` draws it into files, `for_page` describes it for the script of pages;
`numbers` writes it as a table. This module is independent of drawing, and drawers compute only positions and colours.

Units: positions on an axis are in the unit of that axis (`Axis.unit`): times in seconds, whatever the labels show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum

import numpy as np
from numpy.typing import NDArray


class Unit(StrEnum):
    """The unit of an axis, which determines its tick labels."""

    SECONDS = "s"
    TIMELINE = "time"
    """Seconds since the start of a run or trace: labelled in ms, s, min or h, according to the length."""
    REQUESTS = "requests"
    REQUESTS_PER_S = "requests/s"
    CALLS = "calls"
    CALLS_PER_S = "calls/s"
    BYTES = "bytes"
    """Sizes: labelled in KiB, MiB, GiB."""
    BYTES_PER_S = "bytes/s"
    """Throughput: labelled in kB/s, MB/s, GB/s."""
    TIMES = "times"
    """A ratio."""
    GIB = "GiB"
    PERCENT = "%"
    DEVICES = "devices"
    """Several devices above each other, each with its own scale: the axis has named ticks."""
    RANK = "rank"
    ODDS = "odds"
    """One in N: 100 is the 99th percentile, and labelled as such."""


class Scale(Enum):
    """How an axis maps its values."""

    LINEAR = "linear"
    LOG = "log"


class Role(StrEnum):
    """The meaning of an element of a figure. A palette gives each role its colour."""

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
    DEVICE_1 = "device 1"
    """The slowest of several devices; DEVICE_2 is the next."""
    DEVICE_2 = "device 2"
    DEVICE_3 = "device 3"
    DEVICE_4 = "device 4"
    DEVICE_5 = "device 5"
    DEVICE_6 = "device 6"


@dataclass(frozen=True)
class Axis:
    """One axis, from `low` to `high` in its unit.

    `named` are the only ticks of an axis, as positions and texts. An axis of integers has no ticks between them.
    Positions up to `floor` also stand for all values below the axis; 0 if there are none.
    """

    label: str
    unit: Unit
    low: float
    high: float
    scale: Scale = Scale.LINEAR
    named: tuple[tuple[float, str], ...] = ()
    whole: bool = False
    floor: float = 0.0

    def share(self, value: float) -> float:
        """The position of a value on the axis, from 0 to 1."""
        if self.scale is Scale.LOG:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class CloudPart:
    """One series of a cloud: its nonempty cells, by column, row (both from the lower left) and count."""

    role: Role
    label: str
    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class Cloud:
    """A density: the figure's area divided into `across` × `up` cells, equal in the axes' scales, with counts.

    If parts overlap, each has its share of the dots: see `figures/dots.py`.
    """

    across: int
    up: int
    parts: tuple[CloudPart, ...]
    whole_numbers: bool = False
    """Each column is an integer, such as a queue depth: columns are drawn with gaps."""
    noun: str = "requests"
    """The plural of what is counted."""

    @property
    def requests(self) -> int:
        """The number of requests."""
        return sum(int(part.counts.sum()) for part in self.parts)


class Stroke(Enum):
    """How a line is drawn."""

    SOLID = "solid"
    DASHED = "dashed"
    DOTTED = "dotted"


@dataclass(frozen=True)
class Line:
    """Points joined by straight lines; NaN leaves a gap."""

    role: Role
    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    stroke: Stroke = Stroke.SOLID
    marks: bool = False
    """Whether each point has a mark: for few points that were measured."""


@dataclass(frozen=True)
class Steps:
    """A value for each interval between `edges` (one more than `y`); NaN leaves a gap.

    The last `partial` intervals are incomplete and drawn as such.
    """

    role: Role
    label: str
    edges: NDArray[np.float64]
    y: NDArray[np.float64]
    stroke: Stroke = Stroke.SOLID
    filled: bool = False
    partial: int = 0
    bars: bool = False
    """Separate bars, filled with nearly their full colour."""


FEW_STEPS = 200
"""With at most that many steps, the line of the total is drawn wide, to remain visible beside one that equals it."""


class Direction(Enum):
    """The direction of a rule."""

    HORIZONTAL = "horizontal"
    VERTICAL = "vertical"


NEAR_RIGHT = 0.75
"""The share of the x axis beyond which the name of a vertical rule is to its left, where there is room."""

NEAR = 0.2
"""The share of the x axis that the name of a vertical rule may need: a rule in it would cross the name."""


@dataclass(frozen=True)
class Rule:
    """A straight line across the whole figure with a name, such as a limit or the time of its first violation."""

    role: Role
    direction: Direction
    at: float
    label: str
    can_be_nameless: bool = False
    """Whether its name is left out where no room is certain, as in pictures."""


Layer = Cloud | Line | Steps | Rule


def emptied(layer: Layer) -> Layer:
    """A layer without the numbers of its cloud or its steps."""
    if isinstance(layer, Cloud):
        parts = tuple(
            replace(part, columns=part.columns[:0].copy(), rows=part.rows[:0].copy(), counts=part.counts[:0].copy())
            for part in layer.parts
        )
        return replace(layer, parts=parts)
    return replace(layer, edges=layer.edges[:1].copy(), y=layer.y[:0].copy()) if isinstance(layer, Steps) else layer


@dataclass(frozen=True)
class LegendRow:
    """A row of the legend, with a text for each of its columns."""

    role: Role
    label: str
    cells: tuple[str, ...] = ()
    stroke: Stroke | None = None
    """The stroke of a line; None for an area or a cloud."""


@dataclass(frozen=True)
class Legend:
    """A small table: a row for each series, a column for each key number."""

    columns: tuple[str, ...] = ()
    rows: tuple[LegendRow, ...] = ()


class NoteKind(StrEnum):
    """The topic of a note, which determines its place and emphasis."""

    FIDELITY = "fidelity"
    """Whether the replay was faithful. The first note."""
    VERDICT = "verdict"
    WRAP = "wrap"
    """The wrap-around factor."""
    WARNING = "warning"
    INFO = "info"
    STAMP = "stamp"
    """A stamp across the whole picture: the result is not what it seems."""


class Severity(StrEnum):
    """The severity of a note."""

    NEUTRAL = "neutral"
    GOOD = "good"
    BAD = "bad"
    WARNING = "warning"


@dataclass(frozen=True)
class Note:
    """A text beside the diagram."""

    kind: NoteKind
    text: str
    severity: Severity = Severity.NEUTRAL


@dataclass(frozen=True)
class Figure:
    """A diagram, ready to be drawn.

    `name` is that of the manual (`latency.realtime`), `rank` orders the files by interest (`g01`), `of` names the files
    shown, and `title` describes the diagram.
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
    """A diagram without data, with the reason: it is listed, not drawn."""

    name: str
    reason: str


@dataclass(frozen=True)
class RuleName:
    """The place of a vertical rule's name: at its left or right, and its line below the frame."""

    is_left: bool
    row: int


def name_of_rule(figure: Figure, rule: Rule) -> RuleName:
    """Where the name of a vertical rule crosses no other one, if there is such a place."""
    rules = [layer for layer in figure.layers if isinstance(layer, Rule) and layer.direction is Direction.VERTICAL]
    own = figure.x.share(rule.at)
    shares = [figure.x.share(each.at) for each in rules]
    room_left = own > NEAR and not any(0 < own - share < NEAR for share in shares)
    room_right = own <= NEAR_RIGHT and not any(0 < share - own < NEAR for share in shares)
    is_left = not room_right and (room_left or own > NEAR_RIGHT)
    return RuleName(is_left, 0 if room_left or room_right else sum(share < own for share in shares))


def horizontal_names_at_left(figure: Figure) -> bool:
    """Whether the names of horizontal rules are at the left end: away from the name of the last vertical rule."""
    shares = [
        figure.x.share(layer.at)
        for layer in figure.layers
        if isinstance(layer, Rule) and layer.direction is Direction.VERTICAL
    ]
    return max(shares, default=0.0) > 0.5
