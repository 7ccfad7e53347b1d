"""A file of rows, with its footer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iosonar.table.footer import Footer, Program, RunInfo, StatedStream, Target
from iosonar.table.kinds import KINDS, Kind
from iosonar.table.versions import stored_name
from iosonar.text import plain, shown

SUFFIXES = (".gz", ".zst", ".parquet", ".txt", *(f".{kind.dashed}" for kind in KINDS.values()))


@dataclass(frozen=True)
class SourceFile:
    """A file of one of the kinds.

    `given` is the path that the user named. `parquet` is the path that is read: a descriptor of the same file, or of a
    temporary conversion. `columns` have the names in the file, of its `version`.
    """

    given: Path
    parquet: Path
    kind: Kind
    footer: Footer
    rows: int
    columns: tuple[str, ...]
    skipped_rows: tuple[str, ...] = ()
    """Messages about invalid rows that were skipped."""
    copy: Path | None = None
    """The temporary copy of a pipe, or of an object of a store."""

    @property
    def local(self) -> Path:
        """The file on this machine: that of the user, or the copy."""
        return self.copy or self.given

    @property
    def stem(self) -> str:
        """The file's name without its suffixes: `mysql` of `mysql.replay.parquet`."""
        name = self.given.name
        while name.endswith(SUFFIXES):
            name = name[: name.rindex(".")]
        return name or self.given.name

    @property
    def output_stem(self) -> str:
        """The start of the names of its outputs, which tells kinds apart: `mysql.load` of a load, `mysql` of a run."""
        return f"{self.stem}{self.kind.ending}"

    @property
    def name(self) -> str:
        """The stem, escaped for printing."""
        return plain(self.stem)

    @property
    def path(self) -> str:
        """The path that the user named, escaped for printing."""
        return shown(self.given)

    @property
    def known_columns(self) -> list[str]:
        """The columns of docs/schema.md that it has."""
        return [name for name in self.kind.columns if stored_name(name, self.kind, self.version) in self.columns]

    @property
    def run(self) -> RunInfo:
        """How the run was made: options, machine, target and statistics; all of them empty for a load."""
        return self.footer.run

    @property
    def fake(self) -> str:
        """Why the result is fake, as a clause; empty for a real one."""
        return self.run.fake.removeprefix("FAKE RESULT: ")

    def option(self, name: str) -> Any:
        """The value of an option of the run, by its name in the footer; None where it is not known."""
        return self.run.options.get(name)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets of the run. A run with one target, or of an earlier version, has only `target`."""
        return self.run.targets or ((self.run.target,) if self.run.target else ())

    @property
    def program(self) -> str:
        """The name of the program that made requests of the run; empty without one."""
        program = self.run.program or Program()
        return program.name or ("" if program == Program() else "without a name")

    @property
    def streams(self) -> tuple[StatedStream, ...]:
        """The streams of the run's program, in the footer's order."""
        return self.run.program.streams if self.run.program else ()

    @property
    def version(self) -> int:
        """The schema version, which determines the column names."""
        return self.footer.schema_version

    @property
    def complete(self) -> bool:
        """Whether neither the file nor its source was cut short."""
        return self.footer.complete

    @property
    def unreadable_rows(self) -> int:
        """The rows that are missing because the file, or the file it was made from, is damaged."""
        return self.footer.counts.unreadable_rows

    @property
    def is_generated(self) -> bool:
        """Whether a trace of calls, or the trace of a run, was generated: its calls take placeholder times."""
        return "generated" in (self.footer.source.format, self.footer.recorder)

    @property
    def is_by_strace(self) -> bool:
        """Whether strace took the times of a trace of calls, or of the trace of a run: it slows each call down."""
        return "strace" in (self.footer.source.format, self.footer.recorder)
