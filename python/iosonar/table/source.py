"""One file of requests: what its first bytes and its footer say about it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from iosonar import SCHEMA_VERSION
from iosonar.errors import UserError

PARQUET_MAGIC = b"PAR1"
FOOTER_KEY = b"iosonar"
SUFFIXES = (".gz", ".zst", ".parquet", ".load", ".replay", ".txt")


class Kind(StrEnum):
    """Load or run, as the footer's `kind` says."""

    LOAD = "load"
    REPLAY = "replay"


@dataclass(frozen=True)
class SourceFile:
    """A file of requests.

    `given` is the path that the user named; `parquet` is the one that is read: the same, or a temporary file that was
    made of a classic text. `footer` is the JSON object that docs/schema.md describes.
    """

    given: Path
    parquet: Path
    kind: Kind
    footer: dict[str, Any]
    rows: int

    @property
    def name(self) -> str:
        """The file's name without its endings: `mysql` of `mysql.replay.parquet`."""
        name = self.given.name
        while name.endswith(SUFFIXES):
            name = name[: name.rindex(".")]
        return name or self.given.name

    @property
    def run(self) -> dict[str, Any]:
        """The footer's `run`: options, machine, target and statistics. Empty where there is none."""
        return self.footer.get("run") or {}

    @property
    def targets(self) -> list[dict[str, Any]]:
        """What was replayed on, as the footer has it. A run of one target, or of an earlier version, has but one."""
        several = self.run.get("targets")
        one = self.run.get("target")
        return list(several) if several else [one] if one else []

    @property
    def complete(self) -> bool:
        """Whether neither the file nor what it was made from was cut short."""
        return bool(self.footer.get("complete", True))


def is_parquet(path: Path) -> bool:
    """Whether the file begins as Parquet does."""
    try:
        with path.open("rb") as file:
            return file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error


def read_source(given: Path, parquet: Path) -> SourceFile:
    """Reads the footer of a Parquet file of ours.

    Raises UserError if it has none (it was cut short, or another program wrote it) or is of another version.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        parquet_footer = pq.read_metadata(parquet)
    except pa.ArrowInvalid as error:
        raise UserError(
            f"{given}: Parquet without a readable footer, so it was cut short ({error}). If a replay was killed, "
            "`iosonar recover` makes a whole file of its record."
        ) from error
    metadata = parquet_footer.metadata or {}
    if FOOTER_KEY not in metadata:
        raise UserError(f"{given}: Parquet, but not a table of requests: its footer has no key `iosonar`")
    footer = json.loads(metadata[FOOTER_KEY])
    version = footer.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{given}: written with version {version} of the table, but this is version {SCHEMA_VERSION}; "
            "install both halves of iosonar from the same source"
        )
    return SourceFile(given, parquet, Kind(footer["kind"]), footer, parquet_footer.num_rows)
