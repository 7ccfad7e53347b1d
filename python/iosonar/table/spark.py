"""Spark, for what outgrows one machine: the same expressions, given to a cluster (the extra `iosonar[spark]`).

Workers only run Spark's own code: they need no Python. They must see the files under the same paths as this program.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar.errors import UserError
from iosonar.table.columns import ROW_NUMBER
from iosonar.table.engine import EngineOptions, memory_bytes
from iosonar.text import shown

if TYPE_CHECKING:
    import ibis.expr.types as ir

DRIVER_SHARE = 0.5
"""Of the memory; the rest is for what this program makes of the answers."""


class Spark:
    """A session with a cluster, or with this machine alone."""

    def __init__(self, spill: Path, options: EngineOptions) -> None:
        self._session = _session(spill, options)
        self.backend = _backend(self._session)
        self._numbers = count()

    def read(self, parquet: Path, columns: Sequence[str]) -> ir.Table:
        """These columns of a file, with the place of each row."""
        path = parquet.resolve()
        if path.name.startswith(("_", ".")):
            raise UserError(f"{shown(path)}: Spark ignores files whose names start with _ or .; rename it")
        # Without the option, folders called `NAME=VALUE` are columns.
        frame = self._session.read.option("recursiveFileLookup", "true").parquet(f"file:{_literally(str(path))}")
        chosen = (f"`{column}`" for column in columns)
        return self._named(frame.selectExpr(*chosen, f"_metadata.row_index AS {ROW_NUMBER}"), "file")

    def keep(self, columns: ir.Table, rows: int) -> ir.Table:
        """In the memory of the workers, and on their disks if it does not fit."""
        return self._named(self._session.sql(self.backend.compile(columns)).persist(), "kept")

    def close(self) -> None:
        """Ends the session, with all that it keeps."""
        self._session.stop()

    def _named(self, frame: Any, stem: str) -> ir.Table:
        name = f"{stem}_{next(self._numbers)}"
        frame.createOrReplaceTempView(name)
        return self.backend.table(name)


def _literally(path: str) -> str:
    """As a pattern that only this path fits."""
    return "".join("\\" + character if character in "[]{}*?\\^" else character for character in path)


def _session(spill: Path, options: EngineOptions) -> Any:
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise UserError(
            "Spark is not installed: `pip install 'iosonar[spark]'` brings it; it needs Java 17 or newer"
        ) from error
    settings = {
        "spark.app.name": "iosonar",
        "spark.master": options.url,
        "spark.driver.memory": f"{int(memory_bytes(options.memory) * DRIVER_SHARE) >> 20}m",
        # What kernels ask for is as large as it is.
        "spark.driver.maxResultSize": "0",
        "spark.local.dir": str(spill),
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        raise UserError(
            f"Spark doesn't start: {error}. It needs Java 17 or newer, on the path or in JAVA_HOME"
        ) from error
    except Exception as error:
        # What Java throws arrives with its whole stack.
        raise UserError(f"cannot connect to Spark at {options.url}: {str(error).strip().splitlines()[-1]}") from error


def _backend(session: Any) -> Any:
    with warnings.catch_warnings():
        # Ibis makes functions for pandas when it is loaded, and Spark says that it has not seen this pandas before.
        warnings.simplefilter("ignore", FutureWarning)
        from ibis.backends.pyspark import Backend

    class ByArrow(Backend):  # type: ignore[misc]
        """Ibis' own backend goes through pandas, which makes floats of integers with nulls."""

        def to_pyarrow(self, expr: Any, /, **_: Any) -> Any:
            from ibis.formats.pyarrow import PyArrowData

            table = expr.as_table()
            found = session.sql(self.compile(table)).toArrow()
            return expr.__pyarrow_result__(PyArrowData.convert_table(found, table.schema()))

    backend = ByArrow()
    backend.register_options()
    backend.do_connect(session)
    return backend
