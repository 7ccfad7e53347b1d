"""The streams of the programs that made requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iosonar.table.source import SourceFile

if TYPE_CHECKING:
    import ibis.expr.types as ir

OF_THE_LOAD = "requests of the load"
"""The name of the requests that no program made, beside those of a program."""


@dataclass(frozen=True)
class Stream:
    """A stream of a program, in all files in which that program ran.

    `members` are its files and its numbers there. `open` is None, and `instances` 0, for requests of a load.
    """

    name: str
    instances: int
    open: bool | None
    members: tuple[tuple[int, int | None], ...]

    def rows(self, table: ir.Table) -> ir.BooleanValue:
        """Whether a request of the table belongs to this stream."""
        import ibis

        found: ir.BooleanValue = ibis.literal(False)
        for source, number in self.members:
            own = table.stream.isnull() if number is None else table.stream.fill_null(-1) == number
            found |= (table.source == source) & own
        return found


def programs_of(files: Sequence[SourceFile]) -> tuple[str, ...]:
    """The names of the programs that made requests, each once."""
    return tuple(dict.fromkeys(file.program for file in files if file.program))


def is_of_program_alone(file: SourceFile) -> bool:
    """Whether a program made all requests of the run."""
    return bool(file.program) and not file.run.load


def asks_by_itself(file: SourceFile) -> bool:
    """Whether any request has a time that does not depend on completions: of a load, or of an open stream."""
    return not is_of_program_alone(file) or any(stream.open for stream in file.streams)


def has_closed_stream(file: SourceFile) -> bool:
    """Whether requests of a program waited for completions, so that the storage determined their times."""
    return any(not stream.open for stream in file.streams)


def streams_of(files: Sequence[SourceFile]) -> tuple[Stream, ...]:
    """The streams of all programs, and at the end the requests of loads, if any ran beside a program.

    Streams of the same name of the same program are one; those of different programs have the program's name as well.
    """
    found: dict[tuple[str, str], Stream] = {}
    for source, file in enumerate(files):
        for number, stated in enumerate(file.streams):
            key = (file.program, stated.name or f"stream {number}")
            known = found.get(key)
            found[key] = Stream(
                key[1],
                (known.instances if known else 0) + stated.instances,
                stated.open,
                (*(known.members if known else ()), (source, number)),
            )
    names = Counter(name for _, name in found)
    streams = [
        Stream(f"{program}: {name}" if names[name] > 1 else name, each.instances, each.open, each.members)
        for (program, name), each in found.items()
    ]
    loads = tuple((source, None) for source, file in enumerate(files) if not is_of_program_alone(file))
    if streams and loads:
        streams.append(Stream(OF_THE_LOAD, 0, None, loads))
    return tuple(streams)
