"""Refuses inconsistent sets of files: copies of one run, or loads mixed with runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iosonar.errors import UsageError, UserError
from iosonar.table.source import OF_REQUESTS, Kind, SourceFile


def refuse_copies(files: Iterable[SourceFile], parts: bool = True) -> None:
    """Refuses a file named twice, and copies of one run, which have the same start time.

    With `parts`, parts of one run are not copies: they differ in span or counts.
    """
    seen: dict[object, SourceFile] = {}
    for file in files:
        keys: list[object] = [file.given.resolve()]
        if started := file.run.started_unix_ns:
            extent = (str(file.footer.span), str(file.footer.counts)) if parts else ()
            keys.append((started, *extent))
        for key in keys:
            if (other := seen.setdefault(key, file)) is not file:
                same = "is named twice" if file.given == other.given else f"is the same run as {other.path}"
                raise UserError(f"{file.path} {same}; name each run once")


def refuse_mixture(files: Sequence[SourceFile]) -> None:
    """Refuses other tables than those of requests, and a mixture of loads and runs.

    Times of loads and runs have different zeros, and a load has no results.
    """
    if other := next((file for file in files if file.kind not in OF_REQUESTS), None):
        raise UsageError(f"{other.path} is {other.kind.words}, not of requests: make a separate report of it")
    first = {file.kind: file for file in reversed(files)}
    if len(first) > 1:
        load, run = first[Kind.LOAD].path, first[Kind.REPLAY].path
        raise UserError(f"{load} is a load, {run} is a run: make a separate report of each")
