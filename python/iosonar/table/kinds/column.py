"""Columns of tables: which values they may have, and what they were called before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

ROW_NUMBER = "file_row_number"
"""The row's position in its file, a column that engines add when they read it."""

MAX_NS = 2**62 - 1
"""Times within ± 146 years: differences and sums of any two fit into 64 bits."""

MAX_SECTORS = (2**63 - 1) // 512
"""The largest sector number: offsets in bytes fit into 64 bits."""

I32, I64, U32 = 2**31 - 1, 2**63 - 1, 2**32 - 1


class Presence(Enum):
    """Whether a column may be missing, and its cells null."""

    REQUIRED = auto()
    """Must exist, without presence."""
    OPTIONAL = auto()
    """May be missing. Files of iosonar have no presence in it; other files need a conversion."""
    OPTIONAL_NULLABLE = auto()
    """May be missing; null means unknown."""
    REQUIRED_NULLABLE = auto()
    """Must exist; null means unknown."""


@dataclass(frozen=True)
class Column:
    """The allowed values of a column: integers from `low` to `high`, one of `names`, any text, floats, or booleans."""

    low: int | None = None
    high: int | None = None
    names: tuple[str, ...] = ()
    is_text: bool = False
    is_float: bool = False
    presence: Presence = Presence.OPTIONAL

    @property
    def is_number(self) -> bool:
        """Whether it has integers."""
        return self.low is not None

    @property
    def is_required(self) -> bool:
        """Whether a table must have it."""
        return self.presence in (Presence.REQUIRED, Presence.REQUIRED_NULLABLE)

    @property
    def is_nullable(self) -> bool:
        """Whether cells may be null."""
        return self.presence in (Presence.OPTIONAL_NULLABLE, Presence.REQUIRED_NULLABLE)

    @property
    def type(self) -> str:
        """Its type in Ibis."""
        if self.high is not None:
            return "int32" if self.high <= I32 else "int64"
        return "string" if self.names or self.is_text else "float64" if self.is_float else "boolean"


@dataclass(frozen=True)
class Renamed:
    """A column that had another name until a version, and its values that had others."""

    old: str
    until: int
    values: Mapping[str, str] = field(default_factory=dict)
    """Old values, with their present names."""


def time(presence: Presence) -> Column:
    """A column of times, or of differences of times, in ns."""
    return Column(-MAX_NS, MAX_NS, presence=presence)


def whole(high: int, presence: Presence = Presence.OPTIONAL, low: int = 0) -> Column:
    """A column of whole numbers."""
    return Column(low, high, presence=presence)


SIGNED = Column(-I64 - 1, I64, presence=Presence.OPTIONAL_NULLABLE)
TEXT = Column(is_text=True, presence=Presence.OPTIONAL_NULLABLE)
