"""How to read and query the tables of a kind of rows. Its `library` does the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iosonar.table.kinds.column import Column, Renamed

Definition = str | Callable[[Any], str]
"""SQL, or what makes it from a `SourceFile` (of a column), or from all of them (of a view)."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of rows, and of the tables that hold them."""

    name: str
    """The footer's `kind`."""
    words: str
    """What a file of it is, with its article, for people."""
    columns: Mapping[str, Column]
    """Those of docs/schema.md."""
    library: str = ""
    """The module whose `FAMILY` opens, draws, judges and compares its files; empty if only `iosonar sql` reads them.

    It is named here, not imported: the library uses the tables."""
    is_run: bool = False
    """Whether it has the results of a replay."""
    own_ending: str | None = None
    """The ending of output names, after the name of the file, if it is not the name of the kind."""
    known_by: tuple[str, ...] = ()
    """Columns by which a table without footer is recognised."""
    converted_to: str = ""
    """The ending of the file that `iosonar convert` makes of other formats; empty if it cannot read this kind."""
    renamed: Mapping[str, Renamed] = field(default_factory=dict)
    """Renamed columns, by their present names."""
    rename_run: Callable[[dict[str, Any], int], None] | None = None
    """Renames keys of `run` in a footer of a version."""
    footer_keys: tuple[str, ...] = ()
    """The only keys of the footer that are read; empty for all."""
    lacking: Callable[[Mapping[str, Any]], Sequence[str]] = lambda footer: ()
    """The keys that a valid footer of this kind must have, and this one lacks."""
    view: str = ""
    """The view of `iosonar sql` that has the rows."""
    added: Mapping[str, Column] = field(default_factory=dict)
    """Columns of other kinds in the view."""
    computed: Mapping[str, str] = field(default_factory=dict)
    """Columns of the view from those of the file, for files that lack them; others are null."""
    derived: Mapping[str, Definition] = field(default_factory=dict)
    """Further columns of the view, from those of the view; later ones may use earlier ones."""
    views: Mapping[str, Definition] = field(default_factory=dict)
    """Further views of `iosonar sql`."""
    due: Callable[[Any], str] | None = None
    """SQL of the time by which a row of a `SourceFile` belongs to a window of time; None if windows are not for them.

    The rows of a window are in the view `in_window`."""

    @property
    def ending(self) -> str:
        """The ending of output names, after the name of the file; it tells kinds apart."""
        return f".{self.dashed}" if self.own_ending is None else self.own_ending

    @property
    def dashed(self) -> str:
        """The name in names of files."""
        return self.name.replace("_", "-")

    def __repr__(self) -> str:
        return f"<{self.words}>"


def rename(value: Any, names: Mapping[str, str]) -> None:
    """Renames keys of an object; ignores other values."""
    if isinstance(value, dict):
        for old, new in names.items():
            if old in value:
                value[new] = value.pop(old)
