"""What all leaves of a campaign share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iosonar.campaign.hosts import Hosts
from iosonar.campaign.undo import Undo
from iosonar.campaign.watch import Events


@dataclass(frozen=True)
class Surroundings:
    """What all leaves of a campaign share."""

    hosts: Hosts
    undo: Undo
    overrides: Sequence[tuple[str, str]]
    events: Events
    environment: dict[str, str]
    directory: Path
    """Where the campaign keeps what it needs while it runs."""
    said: set[str] = field(default_factory=set)
    """Warnings that are printed once in a campaign."""
