"""Windows of time in words."""

from __future__ import annotations

from collections.abc import Sequence

from iosonar import units
from iosonar.table import SourceFile, Window


def window_words(window: Window | None) -> str:
    """From 2 min to 10 min; empty if it leaves nothing out."""
    if window is None:
        return ""
    start, end = (None if at is None else units.span(at / 1e9) for at in (window.from_ns, window.to_ns))
    if start and end:
        return f"from {start} to {end}"
    return f"from {start} on" if start else f"before {end}" if end else ""


def due_words(files: Sequence[SourceFile]) -> str:
    """What happened to the requests or calls of a window during it: they were due, or only issued."""
    if not files[0].kind.is_run:
        return "made"
    has_no_times = all(file.option("asap") or file.option("timing") == "asap" for file in files)
    return "issued" if has_no_times else "due"
