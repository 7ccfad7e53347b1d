"""What differs between leaves: variables, and the module that they belong to."""

from __future__ import annotations

import functools
from collections.abc import Collection
from pathlib import Path

from iosonar.campaign.unread_variables import ASSIGNED, BASE

DERIVED = (
    *("output", "input_pipe_list", "sub_prefix", "replay_out", "base_dir", "verbose", "campaign_"),
    *("enable_graph", "graph_", "picture"),
)
"""Prefixes of variables that say where results go and how they are drawn, or follow from others: nobody varies them."""


def module_of(names: Collection[str]) -> str:
    """The module whose variables all of these are, such as pipe_spread; empty if there is none."""
    return next((module for module, known in _modules().items() if names and known.issuperset(names)), "")


@functools.cache
def _modules() -> dict[str, frozenset[str]]:
    found = {_name(path): frozenset(ASSIGNED.findall(path.read_text())) for path in (BASE / "defaults").glob("*.conf")}
    # Its variables are different things.
    del found["main"]
    return found


def _name(path: Path) -> str:
    return path.stem.removeprefix("default-")
