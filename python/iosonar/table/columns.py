"""Checks that a file has the columns of docs/schema.md, with types that engines support.

Files of other programs may have other types; `iosonar convert` reads those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from iosonar.table.kinds import KINDS, Kind
from iosonar.table.kinds.column import ROW_NUMBER, Column
from iosonar.table.versions import renamed

if TYPE_CHECKING:
    import pyarrow as pa


def columns_in(kind: Kind, version: int) -> Mapping[str, Column]:
    """The columns in files of that schema version, by the names of that version."""
    found = {}
    for name, column in kind.columns.items():
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
        *(name for kind in KINDS.values() for name in kind.columns),
        *(was.old for kind in KINDS.values() for was in kind.renamed.values()),
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
