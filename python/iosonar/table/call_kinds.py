"""The families of system calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

FAMILIES: dict[str, tuple[str, ...]] = {
    family: tuple(names)
    for family, names in json.loads(Path(__file__).with_name("call_families.json").read_text()).items()
}
"""The calls of each family. A test of the Rust half writes the file from its table of calls."""

MOVES_DATA = ("read", "write", "copy")
"""Families whose result is a number of bytes of a file."""


def family_of(call: ir.StringColumn) -> ir.StringValue:
    """The family of each call; null for unknown calls."""
    import ibis

    return ibis.cases(*((call.isin(names), family) for family, names in FAMILIES.items()), else_=ibis.null())
