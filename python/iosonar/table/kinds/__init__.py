"""The kinds of rows that tables hold: one file for each family, with its list `KINDS`, and its name here."""

from iosonar.table.kinds import calls, requests, scale, tree
from iosonar.table.kinds.kind import Kind

KINDS: dict[str, Kind] = {kind.name: kind for family in (requests, calls, tree, scale) for kind in family.KINDS}
"""All kinds by their names in footers. Of files of several families, the last one here says what is wrong."""

__all__ = ["KINDS", "Kind"]
