"""Which files may be looked at together: what was counted twice, or drawn as what it is not, would be nonsense."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iosonar.errors import UserError
from iosonar.table.source import Kind, SourceFile


def refuse_copies(files: Iterable[SourceFile], parts: bool = True) -> None:
    """Refuses files that are given twice, and copies of one run, which are known by when it was started.

    With `parts`, pieces of one run are not copies: they differ in their extent or their counts.
    """
    seen: dict[object, SourceFile] = {}
    for file in files:
        keys: list[object] = [file.given.resolve()]
        if started := file.run.get("started_unix_ns"):
            extent = (str(file.footer.get("span")), str(file.footer.get("counts"))) if parts else ()
            keys.append((started, *extent))
        for key in keys:
            if (other := seen.setdefault(key, file)) is not file:
                same = "is given twice" if file.given == other.given else f"is the same run as {other.given}"
                raise UserError(f"{file.given} {same}: it would count as if it had been run twice")


def refuse_mixture(files: Sequence[SourceFile]) -> None:
    """Refuses loads and runs side by side: their times have different zeros, and a load has no results."""
    first = {file.kind: file for file in reversed(files)}
    if len(first) > 1:
        load, run = first[Kind.LOAD].given, first[Kind.REPLAY].given
        raise UserError(f"{load} is a load, {run} is a run: they can't be shown as one, so make a report of each")
