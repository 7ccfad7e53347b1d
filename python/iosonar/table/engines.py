"""Starts the engine that the options select."""

from __future__ import annotations

from pathlib import Path

from iosonar.table.engine import Engine, EngineKind, EngineOptions


def start(spill: Path, options: EngineOptions) -> Engine:
    """Starts an engine that spills to the directory `spill` when it exceeds its memory."""
    if options.kind is EngineKind.SPARK:
        from iosonar.table.spark import Spark

        return Spark(spill, options)
    from iosonar.table.embedded import Embedded

    return Embedded(spill, options)
