"""A file of requests or of calls, with its footer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from iosonar.text import plain, shown

SUFFIXES = (".gz", ".zst", ".parquet", ".load", ".replay", ".calls", ".calls-run", ".tree", ".scale", ".txt")


class Kind(StrEnum):
    """The footer's `kind`: requests (a load or a run), calls to files (a trace or a run), and what belongs to calls."""

    LOAD = "load"
    REPLAY = "replay"
    CALLS = "calls"
    CALLS_RUN = "calls_run"
    TREE = "tree"
    SCALE = "scale"

    @property
    def words(self) -> str:
        """The kind with its article, for people."""
        return _WORDS[self]


_WORDS = {
    Kind.LOAD: "a load",
    Kind.REPLAY: "a run",
    Kind.CALLS: "a trace of calls",
    Kind.CALLS_RUN: "a run of calls",
    Kind.TREE: "a snapshot of a tree",
    Kind.SCALE: "a table of several instances",
}

OF_REQUESTS = (Kind.LOAD, Kind.REPLAY)
OF_CALLS = (Kind.CALLS, Kind.CALLS_RUN)


@dataclass(frozen=True)
class SourceFile:
    """A file of one of the kinds.

    `given` is the path that the user named. `parquet` is the path that is read: a descriptor of the same file, or of a
    temporary conversion. `footer` is the JSON object in docs/schema.md, with types checked and texts escaped for
    printing. `columns` have the names in the file, of its `version`.
    """

    given: Path
    parquet: Path
    kind: Kind
    footer: dict[str, Any]
    rows: int
    columns: tuple[str, ...]
    skipped_rows: tuple[str, ...] = ()
    """Messages about invalid rows that were skipped."""

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
        return self.stem if self.kind is Kind.REPLAY else f"{self.stem}.{self.kind.replace('_', '-')}"

    @property
    def name(self) -> str:
        """The stem, escaped for printing."""
        return plain(self.stem)

    @property
    def path(self) -> str:
        """The path that the user named, escaped for printing."""
        return shown(self.given)

    @property
    def run(self) -> dict[str, Any]:
        """The footer's `run`: options, machine, target and statistics; empty without it."""
        return self.footer.get("run") or {}

    def option(self, name: str) -> Any:
        """The value of an option of the run, by its name in the footer; None where it is not known."""
        return (self.run.get("options") or {}).get(name)

    @property
    def targets(self) -> list[dict[str, Any]]:
        """The targets of the run. A run with one target, or of an earlier version, has only `target`."""
        several = self.run.get("targets")
        one = self.run.get("target")
        return list(several) if several else [one] if one else []

    @property
    def version(self) -> int:
        """The schema version, which determines the column names."""
        return int(self.footer["schema_version"])

    @property
    def complete(self) -> bool:
        """Whether neither the file nor its source was cut short."""
        return bool(self.footer.get("complete", True))
