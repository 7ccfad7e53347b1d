"""Spark, for data that outgrows one machine: runs the same expressions on a cluster (the extra `iosonar[spark]`).

Workers run only Spark's own code and need no Python. They must have the files at the same paths as this program.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iosonar.errors import UserError
from iosonar.table.engine import EngineOptions, memory_bytes
from iosonar.table.kinds.column import ROW_NUMBER
from iosonar.text import shown

if TYPE_CHECKING:
    import ibis.expr.types as ir

DRIVER_SHARE = 0.5
"""The driver's share of the memory limit; the rest is for results and what is computed from them."""


class Spark:
    """A session on a cluster or on this machine."""

    def __init__(self, spill: Path, options: EngineOptions) -> None:
        self._session = _session(spill, options)
        self.backend = _backend(self._session)
        self._numbers = count()

    def read(self, parquet: Path, columns: Sequence[str]) -> ir.Table:
        """The columns of a file, and ROW_NUMBER."""
        path = parquet.resolve()
        if path.name.startswith(("_", ".")):
            raise UserError(f"{shown(path)}: Spark ignores files whose names start with _ or .; rename it")
        # Without the option, directories named `NAME=VALUE` become columns.
        frame = self._session.read.option("recursiveFileLookup", "true").parquet(f"file:{_escaped_glob(str(path))}")
        chosen = (f"`{column}`" for column in columns)
        return self._named(frame.selectExpr(*chosen, f"_metadata.row_index AS {ROW_NUMBER}"), "file")

    def keep(self, columns: ir.Table, rows: int, parts: Sequence[ir.Table] = ()) -> ir.Table:
        """Keeps a table in the memory of the workers, and on their disks if it does not fit."""
        return self._named(self._session.sql(self.backend.compile(columns)).persist(), "kept")

    def close(self) -> None:
        """Ends the session and drops all kept tables."""
        self._session.stop()

    def _named(self, frame: Any, stem: str) -> ir.Table:
        name = f"{stem}_{next(self._numbers)}"
        frame.createOrReplaceTempView(name)
        return self.backend.table(name)


def _escaped_glob(path: str) -> str:
    """Escapes a path, which Spark takes as a glob."""
    return "".join("\\" + character if character in "[]{}*?\\^" else character for character in path)


def _session(spill: Path, options: EngineOptions) -> Any:
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise UserError(
            "Spark is not installed: run `pip install 'iosonar[spark]'`; it needs Java 17 or newer"
        ) from error
    settings = {
        "spark.app.name": "iosonar",
        "spark.master": options.url,
        "spark.driver.memory": f"{int(memory_bytes(options.memory) * DRIVER_SHARE) >> 20}m",
        # Results of quantities may have any size.
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
            f"Spark does not start: {error}. It needs Java 17 or newer, on the path or in JAVA_HOME"
        ) from error
    except Exception as error:
        # A Java exception has its whole stack in the text.
        raise UserError(f"cannot connect to Spark at {options.url}: {str(error).strip().splitlines()[-1]}") from error


def _backend(session: Any) -> Any:
    with warnings.catch_warnings():
        # While loading, Ibis defines functions for pandas, and Spark warns about untested versions of pandas.
        warnings.simplefilter("ignore", FutureWarning)
        from ibis.backends.pyspark import Backend

    class ByArrow(Backend):  # type: ignore[misc]
        """Fetches results by Arrow: Ibis's backend uses pandas, which turns integers with nulls into floats."""

        def to_pyarrow(self, expr: Any, /, **_: Any) -> Any:
            from ibis.formats.pyarrow import PyArrowData

            table = expr.as_table()
            found = session.sql(self.compile(table)).toArrow()
            return expr.__pyarrow_result__(PyArrowData.convert_table(found, table.schema()))

    backend = ByArrow()
    backend.register_options()
    backend.do_connect(session)
    return backend
