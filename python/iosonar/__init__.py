"""Loads, runs and calls to files, for notebooks and programs.

    import iosonar

    run = iosonar.open("mysql.replay.parquet")
    run.summary, run.verdict, run.to_pandas(), run.draw("latency.realtime")

docs/library.md is the manual, docs/schema.md the contract with the Rust half, which writes the tables.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iosonar.errors import UsageError, UserError
    from iosonar.library.comparison import Comparison, compare
    from iosonar.library.run import Run
    from iosonar.library.run import open_run as open  # noqa: A004
    from iosonar.study.check import Check
    from iosonar.study.grades import Grade
    from iosonar.study.judgement import Judgement
    from iosonar.study.summary import Summary, Times

__all__ = [
    "SCHEMA_VERSION",
    "Check",
    "Comparison",
    "Grade",
    "Judgement",
    "Run",
    "Summary",
    "Times",
    "UsageError",
    "UserError",
    "compare",
    "open",
]

SCHEMA_VERSION = 2
"""The version of the tables that this package reads. The Rust half has the same number."""

_HOMES = {
    "errors": ("UsageError", "UserError"),
    "library.comparison": ("Comparison", "compare"),
    "library.run": ("Run", "open"),
    "study.check": ("Check",),
    "study.grades": ("Grade",),
    "study.judgement": ("Judgement",),
    "study.summary": ("Summary", "Times"),
}
"""The public names by their modules, which are imported when they are used: commands start without them."""


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{home}")
    return getattr(module, "open_run" if name == "open" else name)


def __dir__() -> list[str]:
    return sorted(__all__)
