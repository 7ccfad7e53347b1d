"""Collected results of a leaf: hidden files until all are there."""

from __future__ import annotations

from pathlib import Path

from iosonar.campaign import growth, state
from iosonar.campaign.replays import COLLECTED, part
from iosonar.errors import UserError


def finish(directory: Path, known: state.LeafState) -> None:
    """Gives collected results their final names, all or none."""
    names = [instance.output for instance in known.instances]
    for name in names:
        if not part(directory, name).exists() and not (directory / name).exists():
            raise UserError(f"the result {name} is missing")
    for name in names:
        if (collected := part(directory, name)).exists():
            collected.replace(directory / name)


def keep_partial_results(directory: Path, attempt: int) -> list[Path]:
    """Moves results of a leaf that did not end well, whole or as far as known, into a directory that does not count."""
    into = directory / f"failed-{attempt}.old"
    kept = growth.keep(directory, into)
    for path in sorted(directory.glob(".*.part")):
        into.mkdir(exist_ok=True)
        kept.append(path.replace(into / path.name.removeprefix(".").removesuffix(".part")))
    for path in sorted(directory.glob(f".*{COLLECTED}")):
        into.mkdir(exist_ok=True)
        kept.append(path.replace(into / growth.in_parquet(path.name.removeprefix(".").removesuffix(COLLECTED))))
    for path in directory.glob(".*.part.replay.gz"):
        path.unlink(missing_ok=True)
    return kept
