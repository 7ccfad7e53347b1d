"""The kinds of tables."""

from __future__ import annotations

from enum import StrEnum


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
