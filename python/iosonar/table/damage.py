"""What is said about damaged tables: which file, which part, and what to do, without the words of libraries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from iosonar.errors import UserError
from iosonar.text import shown

COPY_AGAIN = "copy the file again from its source, or record again"
"""What to do about a damaged file."""


def damaged(given: Path, what: str) -> UserError:
    """That a part of a file cannot be read."""
    return UserError(f"{shown(given)}: damaged Parquet: {what} cannot be read; {COPY_AGAIN}")


def damage_among(inputs: Mapping[Path, Path]) -> UserError | None:
    """That one of the tables is damaged, if one is: reads all their cells. They are by the paths that users named.

    The errors of engines do not name the file.
    """
    return next((damaged(given, "its rows") for given, path in inputs.items() if not _is_readable(path)), None)


def may_be_damage(error: Exception) -> bool:
    """Whether an engine found something wrong in a file: its errors of other kinds are bugs, or of the machine."""
    import duckdb

    others = (
        duckdb.OutOfMemoryException,
        duckdb.CatalogException,
        duckdb.BinderException,
        duckdb.ParserException,
    )
    return isinstance(error, duckdb.Error) and not isinstance(error, others)


def _is_readable(path: Path) -> bool:
    import duckdb

    try:
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                return True
            cells = "SELECT sum(hash(COLUMNS(*)) % 2) FROM read_parquet(?, hive_partitioning = false)"
            duckdb.connect().execute(cells, [f"/proc/self/fd/{file.fileno()}"]).fetchall()
    except OSError:
        return True
    except duckdb.Error:
        return False
    return True
