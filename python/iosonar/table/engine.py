"""The embedded engine that computes: DuckDB, within bounds of memory, spilling to a folder of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ibis.backends.duckdb import Backend


@dataclass(frozen=True)
class EngineOptions:
    """What the engine may use. `memory` is a size as DuckDB reads it (`2GiB`)."""

    memory: str = "2GiB"
    threads: int | None = None


def connect(spill: Path, options: EngineOptions) -> Backend:
    """Starts an engine that keeps nothing, and spills into `spill` what exceeds its memory."""
    import ibis

    settings: dict[str, object] = {
        "temp_directory": str(spill),
        "memory_limit": options.memory,
        # Rows need no order: what needs one asks for it. Without this the engine buffers whole results.
        "preserve_insertion_order": False,
    }
    if options.threads is not None:
        settings["threads"] = options.threads
    return ibis.duckdb.connect(**settings)
