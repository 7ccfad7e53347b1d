"""The kinds of rows that tables hold: one file for each family, with its list `KINDS`, and its name here."""

from importlib import import_module

from iosonar.table.kinds.kind import Kind

FAMILIES = ("requests", "calls", "tree", "scale")

KINDS: dict[str, Kind] = {
    kind.name: kind for family in FAMILIES for kind in import_module(f"{__name__}.{family}").KINDS
}
"""All kinds by their names in footers. Of files of several families, the last one here says what is wrong."""

__all__ = ["KINDS", "Kind"]
