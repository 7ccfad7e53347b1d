"""The columns of the tables in docs/schema.md, and checks that a file has them with types that engines support.

Files of other programs may have other types; `iosonar convert` reads those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from iosonar.table.source import Kind
from iosonar.table.versions import COLUMNS, renamed

if TYPE_CHECKING:
    import pyarrow as pa

ROW_NUMBER = "file_row_number"
"""The row's position in its file, a column that engines add when they read it."""

MAX_NS = 2**62 - 1
"""Times within ± 146 years: differences and sums of any two fit into 64 bits."""

MAX_SECTORS = (2**63 - 1) // 512
"""The largest sector number: offsets in bytes fit into 64 bits."""

_OPS = ("read", "write", "flush", "discard", "write_zeroes")
_DELAY_REASONS = ("none", "depth", "order", "input", "completion_log", "perturbed", "unknown", "backlog")
_OUTCOMES = (
    *("ok", "short", "error", "unfinished", "corrupt"),
    *("dropped", "beyond_end", "unaligned", "too_large", "unsupported", "excluded"),
)


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


def _time(presence: Presence) -> Column:
    return Column(-MAX_NS, MAX_NS, presence=presence)


def _whole(high: int, presence: Presence = Presence.OPTIONAL, low: int = 0) -> Column:
    return Column(low, high, presence=presence)


_I32, _I64, _U32 = 2**31 - 1, 2**63 - 1, 2**32 - 1
_TEXT = Column(is_text=True, presence=Presence.OPTIONAL_NULLABLE)


def _signed(presence: Presence) -> Column:
    return Column(-_I64 - 1, _I64, presence=presence)


COLUMNS_OF: Mapping[Kind, Mapping[str, Column]] = {
    Kind.LOAD: {
        "at_ns": _time(Presence.REQUIRED),
        "device": _whole(2**16 - 1),
        "sector": _whole(MAX_SECTORS, Presence.REQUIRED),
        "sectors": _whole(MAX_SECTORS, Presence.REQUIRED),
        "op": Column(names=_OPS, presence=Presence.REQUIRED),
        "flags": _whole(_I32, low=-_I32 - 1),
        "latency_ns": _time(Presence.OPTIONAL_NULLABLE),
        "queued_ns": _time(Presence.OPTIONAL_NULLABLE),
        "pid": _whole(2**32 - 1, Presence.OPTIONAL_NULLABLE, low=-_I32 - 1),
        "process": Column(is_text=True, presence=Presence.OPTIONAL_NULLABLE),
    },
    Kind.REPLAY: {
        "request": _whole(_I64),
        "iteration": _whole(_I32),
        "device": _whole(2**16 - 1),
        "source_sector": _whole(MAX_SECTORS),
        "sector": _whole(MAX_SECTORS, Presence.REQUIRED),
        "sectors": _whole(MAX_SECTORS, Presence.REQUIRED),
        "op": Column(names=_OPS, presence=Presence.REQUIRED),
        "flags": _whole(_I32, low=-_I32 - 1),
        "scheduled_ns": _time(Presence.REQUIRED),
        "issued_ns": _time(Presence.REQUIRED_NULLABLE),
        "completed_ns": _time(Presence.REQUIRED_NULLABLE),
        "ready_ns": _time(Presence.OPTIONAL_NULLABLE),
        "submitted_ns": _time(Presence.OPTIONAL_NULLABLE),
        "last_empty_poll_ns": _time(Presence.OPTIONAL_NULLABLE),
        "bytes_done": _whole(_I64),
        "in_flight": _whole(_I32, Presence.OPTIONAL_NULLABLE),
        "waiting": _whole(_I32, Presence.OPTIONAL_NULLABLE),
        "pushed_back": Column(),
        "widened": Column(),
        "delay_reason": Column(names=_DELAY_REASONS),
        "outcome": Column(names=_OUTCOMES),
        "errno": _whole(_I32, low=-_I32 - 1),
        "stream": _whole(2**16 - 1, Presence.OPTIONAL_NULLABLE),
        "cause": _whole(_I64, Presence.OPTIONAL_NULLABLE),
    },
    Kind.CALLS: {
        "begin_ns": _time(Presence.REQUIRED),
        "duration_ns": _time(Presence.OPTIONAL_NULLABLE),
        "thread": _whole(_U32, Presence.REQUIRED),
        "process": _whole(_U32, Presence.OPTIONAL_NULLABLE),
        "call": Column(is_text=True, presence=Presence.REQUIRED),
        "uring": Column(presence=Presence.OPTIONAL_NULLABLE),
        "fd": _signed(Presence.OPTIONAL_NULLABLE),
        "fd2": _signed(Presence.OPTIONAL_NULLABLE),
        "fd_path": _TEXT,
        "path": _TEXT,
        "path2": _TEXT,
        "offset": _signed(Presence.OPTIONAL_NULLABLE),
        "length": _signed(Presence.OPTIONAL_NULLABLE),
        "flags": _signed(Presence.OPTIONAL_NULLABLE),
        "mode": _signed(Presence.OPTIONAL_NULLABLE),
        "result": _signed(Presence.OPTIONAL_NULLABLE),
        "errno": _signed(Presence.OPTIONAL_NULLABLE),
        "offset2": _signed(Presence.OPTIONAL_NULLABLE),
        "file": _TEXT,
        "position": _signed(Presence.OPTIONAL_NULLABLE),
    },
    Kind.CALLS_RUN: {
        "call_number": _whole(_I64, Presence.REQUIRED),
        "instance": _whole(_U32, Presence.OPTIONAL_NULLABLE),
        "thread": _whole(_U32, Presence.REQUIRED),
        "call": Column(is_text=True, presence=Presence.REQUIRED),
        "path": _TEXT,
        "position": _signed(Presence.OPTIONAL_NULLABLE),
        "length": _signed(Presence.OPTIONAL_NULLABLE),
        "scheduled_ns": _time(Presence.REQUIRED),
        "issued_ns": _time(Presence.REQUIRED_NULLABLE),
        "completed_ns": _time(Presence.REQUIRED_NULLABLE),
        "predecessors_end_ns": _time(Presence.OPTIONAL_NULLABLE),
        "gap_ns": _time(Presence.OPTIONAL_NULLABLE),
        "delay_reason": Column(is_text=True),
        "result": _signed(Presence.OPTIONAL_NULLABLE),
        "errno": _signed(Presence.OPTIONAL_NULLABLE),
        "expected_result": _signed(Presence.OPTIONAL_NULLABLE),
        "expected_errno": _signed(Presence.OPTIONAL_NULLABLE),
        "expected_duration_ns": _time(Presence.OPTIONAL_NULLABLE),
        "outcome": Column(is_text=True),
    },
    Kind.TREE: {},
    Kind.SCALE: {
        "instances": _whole(_U32, Presence.REQUIRED, low=1),
        "what": Column(names=("program", "replay"), presence=Presence.REQUIRED),
        "instance": _whole(_U32, Presence.REQUIRED),
        "seconds": Column(is_float=True, presence=Presence.REQUIRED),
    },
}


def columns_in(kind: Kind, version: int) -> Mapping[str, Column]:
    """The columns in files of that schema version, by the names of that version."""
    found = {}
    for name, column in COLUMNS_OF[kind].items():
        if was := renamed(name, kind, version):
            old = {new: old for old, new in was.values.items()}
            found[was.old] = replace(column, names=tuple(old.get(each, each) for each in column.names))
        else:
            found[name] = column
    return found


def missing(known: Mapping[str, Column], names: Sequence[str]) -> list[str]:
    """The required columns that are missing."""
    return [name for name, column in known.items() if column.is_required and name not in names]


def have_plain_types(known: Mapping[str, Column], schema: pa.Schema) -> bool:
    """Whether each column of docs/schema.md has a type that needs no interpretation."""
    types = {field.name: field.type for field in schema}
    return all(_has_plain_type(column, types[name]) for name, column in known.items() if name in types)


def _has_plain_type(column: Column, found: pa.DataType) -> bool:
    from pyarrow import types

    if column.is_number:
        return bool(types.is_integer(found))
    if column.is_float:
        return bool(types.is_floating(found))
    if column.names or column.is_text:
        value = found.value_type if types.is_dictionary(found) else found
        return bool(types.is_string(value) or types.is_large_string(value))
    return bool(types.is_boolean(found))


def unique_names(names: Sequence[str], taken: Sequence[str] = (ROW_NUMBER,)) -> list[str]:
    """Makes column names unique for engines, which ignore case: `OP` and `op` are the same. `taken` names are avoided.

    Columns of docs/schema.md keep their names; of others, the first with a name keeps it.
    """
    known = {
        *(name for columns in COLUMNS_OF.values() for name in columns),
        *(was.old for columns in COLUMNS.values() for was in columns.values()),
    }
    counts = Counter(name.lower() for name in names)
    used = {name.lower() for name in taken}
    result: list[str | None] = [None] * len(names)
    # Columns of docs/schema.md come first.
    for place in sorted(range(len(names)), key=lambda place: names[place] not in known):
        name = next(
            each
            for each in _variants(names[place])
            if each.lower() not in used and _is_unused(each, names[place], counts)
        )
        used.add(name.lower())
        result[place] = name
    return [name for name in result if name is not None]


def _is_unused(name: str, original: str, counts: Counter[str]) -> bool:
    # Another column may have this name.
    return name == original or not counts[name.lower()]


def _variants(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in range(1, 1_000_000))
