"""Selects the diagrams of a report."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from iosonar.diagrams import Diagram, Group, Study
from iosonar.errors import UsageError
from iosonar.study.base import BaseStudy
from iosonar.table import Requests, devices_of, streams_of

S = TypeVar("S", bound=BaseStudy)

SONAR = "latency.realtime"
"""The diagram of a run that is also part of the report of a load with latencies."""


@dataclass(frozen=True)
class Selection:
    """The selected diagrams. By default, static ones for loads, dynamic ones for runs."""

    static: bool = False
    dynamic: bool = False
    verbose: bool = False
    only: tuple[str, ...] = ()

    def choose(
        self, catalogue: Sequence[Diagram[Study]], requests: Requests, *, has_original: bool = False
    ) -> list[Diagram[Study]]:
        """The selected diagrams of the catalogue, for these requests."""
        if self.only:
            return named(catalogue, self.only)
        groups = {Group.ALWAYS, Group.BOTH}
        if self.static or not requests.is_run:
            groups.add(Group.STATIC)
        if self.dynamic or requests.is_run:
            groups.add(Group.DYNAMIC)
            if len(devices_of(requests.files)) > 1:
                groups.add(Group.DEVICES)
            if len(streams_of(requests.files)) > 1:
                groups.add(Group.STREAMS)
        if has_original:
            groups.add(Group.ORIGINAL)
        if self.verbose:
            groups.add(Group.VERBOSE)
        recorded = any("latency_ns" in file.known_columns for file in requests.files)
        return [diagram for diagram in catalogue if diagram.group in groups or (recorded and diagram.name == SONAR)]


def named(catalogue: Sequence[Diagram[S]], only: Sequence[str]) -> list[Diagram[S]]:
    """The diagrams of these names or families. Raises UsageError if a name is unknown."""
    for name in only:
        if not any(_is_named(diagram, name) for diagram in catalogue):
            names = [diagram.name for diagram in catalogue]
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"the diagrams are {', '.join(names)}"
            raise UsageError(f"no diagram is called {name!r}; {hint}")
    return [diagram for diagram in catalogue if any(_is_named(diagram, name) for name in only)]


def _is_named(diagram: Diagram[Any], name: str) -> bool:
    """Whether the diagram has that name or belongs to that family."""
    return diagram.name == name or diagram.name.startswith(f"{name}.")
