"""Collected results of a leaf: hidden files until all are there."""

from __future__ import annotations

from pathlib import Path

from iosonar.campaign import state
from iosonar.campaign.replays import part
from iosonar.errors import UserError


def finish(directory: Path, known: state.LeafState) -> None:
    """Gives collected results their final names."""
    for instance in known.instances:
        collected = part(directory, instance.output)
        if collected.exists():
            collected.replace(directory / instance.output)
        elif not (directory / instance.output).exists():
            raise UserError(f"the result {instance.output} is missing")


def keep_partial_results(directory: Path, attempt: int) -> None:
    """Moves collected results of a leaf that did not end well into a directory that does not count."""
    for path in sorted(directory.glob(".*.part")):
        kept = directory / f"failed-{attempt}.old"
        kept.mkdir(exist_ok=True)
        path.replace(kept / path.name.removeprefix(".").removesuffix(".part"))
    for path in [*directory.glob(".*.collected"), *directory.glob(".*.part.replay.gz")]:
        path.unlink(missing_ok=True)
