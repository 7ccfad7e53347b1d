"""Options of commands that open runs, loads and calls: which device, how much memory, which engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from iosonar.library.run import Run

Device = Annotated[str, typer.Option(metavar="NAME", help="Only this device, such as sdb, /dev/sdb, or HOST:/dev/sdb.")]
Memory = Annotated[
    str, typer.Option(metavar="SIZE", help="Memory limit: 2G, or bytes; what exceeds it spills to TMPDIR.")
]
MEMORY = "2GiB"
Engine = Annotated[
    str,
    typer.Option(
        metavar="NAME[=URL]",
        help="Query engine: duckdb, spark (on this machine), or spark=spark://HOST:7077 (a cluster).",
    ),
]
ENGINE = "duckdb"


def refuse_options(run: Run, typed: Mapping[str, Any]) -> None:
    """Refuses options that files of this kind cannot have; `typed` has their values, false if they were not given.

    Raises UsageError.
    """
    from iosonar.errors import UsageError

    refused = run.family.refused
    if found := [name for name, value in typed.items() if value and name[2:].partition(" ")[0] in refused]:
        raise UsageError(f"{', '.join(found)}: not for {run.family.title}")
