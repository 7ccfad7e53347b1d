"""The options that `iosonar replay` and `iosonar files replay` share, as the Rust half defines them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


class Changes(StrEnum):
    """What an option changes in a replay, as in crates/pacing/src/options/option.rs.

    Other scheduled times; other issue times on purpose; the same load in other circumstances; or nothing, as the option
    decides when and how often the replay starts.
    """

    LOAD = "load"
    ISSUE_TIMES = "issue_times"
    MEASUREMENT = "measurement"
    NOTHING = "nothing"


@dataclass(frozen=True)
class PacingOption:
    """An option, by its key in the footer."""

    key: str
    changes: Changes
    default: Any
    is_time: bool
    """Whether its value in the footer is in ns."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        return f"--{self.key.replace('_', '-')}"

    def words(self, value: Any) -> str:
        """The option with this value of the footer, as on the command line; empty for its default."""
        if value is None or value is False or value == self.default:
            return ""
        if isinstance(value, list):
            return f"{self.name}={','.join(map(str, value))}"
        if self.is_time and isinstance(value, int):
            value = f"{value / 1e9:.9g}"
        elif isinstance(value, float):
            value = f"{value:g}"
        return self.name if value is True else f"{self.name} {value}"


PACING_OPTIONS = tuple(
    PacingOption(key, Changes(about["changes"]), about["default"], about["is_time"])
    for key, about in json.loads(Path(__file__).with_name("pacing_options.json").read_text()).items()
)
"""A test of the Rust half writes the file."""


def options_that_change(*changes: Changes) -> list[PacingOption]:
    """The options that change one of these."""
    return [option for option in PACING_OPTIONS if option.changes in changes]
