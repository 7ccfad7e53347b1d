"""Collected results of a leaf: hidden files until all are there."""

from __future__ import annotations

from pathlib import Path

from iosonar.campaign import state
from iosonar.campaign.replays import part
from iosonar.errors import UserError


def finish(folder: Path, known: state.LeafState) -> None:
    """Gives collected results their final names."""
    for instance in known.instances:
        collected = part(folder, instance.output)
        if collected.exists():
            collected.replace(folder / instance.output)
        elif not (folder / instance.output).exists():
            raise UserError(f"the result {instance.output} is missing")


def keep_partial_results(folder: Path, attempt: int) -> None:
    """Moves collected results of a leaf that did not end well into a folder that does not count."""
    for path in sorted(folder.glob(".*.part")):
        kept = folder / f"failed-{attempt}.old"
        kept.mkdir(exist_ok=True)
        path.replace(kept / path.name.removeprefix(".").removesuffix(".part"))
    for path in [*folder.glob(".*.collected"), *folder.glob(".*.part.replay.gz")]:
        path.unlink(missing_ok=True)
