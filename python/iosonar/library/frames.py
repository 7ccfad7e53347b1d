"""Tables as data frames of other libraries, which are imported when they are asked for."""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from iosonar.errors import UserError

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa


F = TypeVar("F", bound="Frames")


class Frames:
    """What has a table and makes data frames of it, while it is open."""

    def __init__(self, stack: ExitStack) -> None:
        self._resources, self._close = stack, weakref.finalize(self, stack.close)

    def close(self) -> None:
        """Frees memory, and removes the temporary files of what was opened. It cannot be used any more."""
        self._close()

    def __enter__(self: F) -> F:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._close.detach():
            # What was opened says which of its files causes the error.
            self._resources.__exit__(kind, error, at)

    @property
    def table(self) -> ir.Table:
        """The rows, as an Ibis table."""
        raise NotImplementedError

    def to_arrow(self, *columns: str) -> pa.Table:
        """All rows as an Arrow table, in the order of the files; only these columns, if any is named.

        Raises UserError if there is no such column.
        """
        table = self.table
        if unknown := [name for name in columns if name not in table.columns]:
            raise UserError(f"no column {', '.join(unknown)}; the columns are {', '.join(table.columns)}")
        order = [name for name in ("source", "place", "number") if name in table.columns]
        ordered = table.order_by(*order) if order else table
        found: pa.Table = (ordered.select(*columns) if columns else ordered).to_pyarrow()
        return found

    def to_pandas(self, *columns: str) -> Any:
        """The same as a data frame of pandas. Raises UserError if pandas is not installed."""
        _library("pandas")
        return self.to_arrow(*columns).to_pandas()

    def to_polars(self, *columns: str) -> Any:
        """The same as a data frame of Polars. Raises UserError if Polars is not installed."""
        return _library("polars").from_arrow(self.to_arrow(*columns))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(f"{name} is not installed: `pip install {name}`, or use to_arrow()") from error
