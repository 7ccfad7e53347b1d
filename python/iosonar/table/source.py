"""One file of requests: what its footer says about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from iosonar.text import plain, shown

SUFFIXES = (".gz", ".zst", ".parquet", ".load", ".replay", ".txt")


class Kind(StrEnum):
    """Load or run, as the footer's `kind` says."""

    LOAD = "load"
    REPLAY = "replay"


@dataclass(frozen=True)
class SourceFile:
    """A file of requests.

    `given` is the path that the user named; `parquet` is the one that is read, without odd characters. It leads to the
    same file, or to a temporary one that was made of it. `footer` is the JSON object that docs/schema.md describes, its
    types checked and its texts fit to be shown. `columns` are those of the file as it calls them, in its `version`.
    """

    given: Path
    parquet: Path
    kind: Kind
    footer: dict[str, Any]
    rows: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """What is said of rows that are no requests, and were left out."""

    @property
    def stem(self) -> str:
        """The file's name without its endings: `mysql` of `mysql.replay.parquet`."""
        name = self.given.name
        while name.endswith(SUFFIXES):
            name = name[: name.rindex(".")]
        return name or self.given.name

    @property
    def name(self) -> str:
        """The same for people."""
        return plain(self.stem)

    @property
    def path(self) -> str:
        """The path that the user named, for people."""
        return shown(self.given)

    @property
    def run(self) -> dict[str, Any]:
        """The footer's `run`: options, machine, target and statistics. Empty where there is none."""
        return self.footer.get("run") or {}

    def option(self, name: str) -> Any:
        """The value of an option of the run, by its name in the footer; None where it is not known."""
        return (self.run.get("options") or {}).get(name)

    @property
    def targets(self) -> list[dict[str, Any]]:
        """What was replayed on, as the footer has it. A run of one target, or of an earlier version, has but one."""
        several = self.run.get("targets")
        one = self.run.get("target")
        return list(several) if several else [one] if one else []

    @property
    def version(self) -> int:
        """The version of the tables that named its columns."""
        return int(self.footer["schema_version"])

    @property
    def complete(self) -> bool:
        """Whether neither the file nor what it was made from was cut short."""
        return bool(self.footer.get("complete", True))
