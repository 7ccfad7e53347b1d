"""The columns of the tables in docs/schema.md, and whether a file has them in a form that engines can compute with.

What another program wrote may have other types, which `iosonar convert` reads, and which are not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from iosonar.table.source import Kind
from iosonar.table.versions import COLUMNS, DELAY_REASONS, stored_name

if TYPE_CHECKING:
    import pyarrow as pa

ROW_NUMBER = "file_row_number"
"""The column with a row's place in its file, which engines add to what they read."""

MOST_NS = 2**62 - 1
"""Any two times within ± 146 years have a difference, and a sum, in 64 bits."""

MOST_SECTORS = (2**63 - 1) // 512
"""Offsets in bytes fit into 64 bits."""

_OPS = ("read", "write", "flush", "discard", "write_zeroes")
_DELAY_REASONS = ("none", "depth", "order", "input", "completion_log", "perturbed")
_OUTCOMES = (
    *("ok", "short", "error", "unfinished", "corrupt"),
    *("dropped", "beyond_end", "unaligned", "too_large", "unsupported", "excluded"),
)


class Nulls(Enum):
    """Whether a cell may be null, and its column missing."""

    REFUSED = auto()
    NOT_HERE = auto()
    """Null stands for another value, or is not in files of ours; the column may be missing."""
    UNKNOWN = auto()
    """Null is a value that is not known; the column may be missing."""
    NEEDED_UNKNOWN = auto()
    """The same, but the column may not be missing."""


@dataclass(frozen=True)
class Column:
    """What a column may hold: whole numbers from `low` to `high`, one of `names`, any text, or true and false."""

    low: int | None = None
    high: int | None = None
    names: tuple[str, ...] = ()
    is_text: bool = False
    nulls: Nulls = Nulls.NOT_HERE

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.low is not None

    @property
    def is_needed(self) -> bool:
        """Whether a table without it is none."""
        return self.nulls in (Nulls.REFUSED, Nulls.NEEDED_UNKNOWN)

    @property
    def may_be_null(self) -> bool:
        """Whether a cell may be."""
        return self.nulls in (Nulls.UNKNOWN, Nulls.NEEDED_UNKNOWN)


def _time(nulls: Nulls) -> Column:
    return Column(-MOST_NS, MOST_NS, nulls=nulls)


def _whole(high: int, nulls: Nulls = Nulls.NOT_HERE, low: int = 0) -> Column:
    return Column(low, high, nulls=nulls)


_I32, _I64 = 2**31 - 1, 2**63 - 1

COLUMNS_OF: Mapping[Kind, Mapping[str, Column]] = {
    Kind.LOAD: {
        "at_ns": _time(Nulls.REFUSED),
        "device": _whole(2**16 - 1),
        "sector": _whole(MOST_SECTORS, Nulls.REFUSED),
        "sectors": _whole(MOST_SECTORS, Nulls.REFUSED),
        "op": Column(names=_OPS, nulls=Nulls.REFUSED),
        "flags": _whole(_I32, low=-_I32 - 1),
        "latency_ns": _time(Nulls.UNKNOWN),
        "queued_ns": _time(Nulls.UNKNOWN),
        "pid": _whole(2**32 - 1, Nulls.UNKNOWN, low=-_I32 - 1),
        "process": Column(is_text=True, nulls=Nulls.UNKNOWN),
    },
    Kind.REPLAY: {
        "request": _whole(_I64),
        "iteration": _whole(_I32),
        "device": _whole(2**16 - 1),
        "source_sector": _whole(MOST_SECTORS),
        "sector": _whole(MOST_SECTORS, Nulls.REFUSED),
        "sectors": _whole(MOST_SECTORS, Nulls.REFUSED),
        "op": Column(names=_OPS, nulls=Nulls.REFUSED),
        "flags": _whole(_I32, low=-_I32 - 1),
        "scheduled_ns": _time(Nulls.REFUSED),
        "issued_ns": _time(Nulls.NEEDED_UNKNOWN),
        "completed_ns": _time(Nulls.NEEDED_UNKNOWN),
        "ready_ns": _time(Nulls.UNKNOWN),
        "submitted_ns": _time(Nulls.UNKNOWN),
        "last_empty_poll_ns": _time(Nulls.UNKNOWN),
        "bytes_done": _whole(_I64),
        "in_flight": _whole(_I32, Nulls.UNKNOWN),
        "waiting": _whole(_I32, Nulls.UNKNOWN),
        "pushed_back": Column(),
        "widened": Column(),
        "delay_reason": Column(names=_DELAY_REASONS),
        "outcome": Column(names=_OUTCOMES),
        "errno": _whole(_I32, low=-_I32 - 1),
    },
}


def columns_in(kind: Kind, version: int) -> Mapping[str, Column]:
    """The columns in files of that version, by their names there."""
    if version > 1:
        return COLUMNS_OF[kind]
    old = {new: old for old, new in DELAY_REASONS.items()}
    return {
        stored_name(name, version): replace(column, names=tuple(old.get(each, each) for each in column.names))
        for name, column in COLUMNS_OF[kind].items()
    }


def missing(known: Mapping[str, Column], names: Sequence[str]) -> list[str]:
    """The columns without which this is no such table."""
    return [name for name, column in known.items() if column.is_needed and name not in names]


def are_plain(known: Mapping[str, Column], schema: pa.Schema) -> bool:
    """Whether each column that docs/schema.md names has a type that needs no interpretation."""
    types = {field.name: field.type for field in schema}
    return all(_is_plain(column, types[name]) for name, column in known.items() if name in types)


def _is_plain(column: Column, found: pa.DataType) -> bool:
    from pyarrow import types

    if column.is_number:
        return bool(types.is_integer(found))
    if column.names or column.is_text:
        value = found.value_type if types.is_dictionary(found) else found
        return bool(types.is_string(value) or types.is_large_string(value))
    return bool(types.is_boolean(found))


def renamed(names: Sequence[str], taken: Sequence[str] = (ROW_NUMBER,)) -> list[str]:
    """Names under which an engine can tell all columns from each other, and from those that are `taken`.

    Engines don't tell `OP` from `op`. The columns of docs/schema.md, and what comes first, stay as they are.
    """
    known = {*(name for columns in COLUMNS_OF.values() for name in columns), *COLUMNS.values()}
    counts = Counter(name.lower() for name in names)
    used = {name.lower() for name in taken}
    result: list[str | None] = [None] * len(names)
    # Those of docs/schema.md choose first.
    for place in sorted(range(len(names)), key=lambda place: names[place] not in known):
        name = next(
            each for each in _variants(names[place]) if each.lower() not in used and _free(each, names[place], counts)
        )
        used.add(name.lower())
        result[place] = name
    return [name for name in result if name is not None]


def _free(name: str, wanted: str, counts: Counter[str]) -> bool:
    # Not what another column is called already.
    return name == wanted or not counts[name.lower()]


def _variants(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in range(1, 1_000_000))
