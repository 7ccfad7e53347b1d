"""The options of a run as typed on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iosonar.table.footer import RunInfo

DEFAULTS: Mapping[str, Any] = {
    "fit": "wrap",
    "speedup": 1.0,
    "seed": 1,
    "depth": 512,
    "depth_for": "all",
    "align": "expand",
    "conflicts": "partial",
    "strong": "any_write",
    "buffers": 256 << 20,
    "ahead_requests": 4096,
    "ahead": 1_000_000_000,
    "grace": 200_000_000,
    "output_offset": 0,
    "verify": "off",
    "verify_memory": 1 << 30,
}
"""Defaults, for runs whose footer does not have the typed options."""

LISTED_ELSEWHERE = ("load", "output", "target", "targets")
"""Options that the page lists in other lines."""

_FOREVER = 2**63 - 1
_RANDOM = {"kind": "random", "random_pct": 100, "filler": "deadbeef", "dedupe_pct": 0}
_NAMES = {"ahead_requests": "ahead", "ahead": "ahead_time"}
_TIMES = ("ahead", "grace", "output_offset", "for")
_SIZES = ("buffers", "verify_memory")


def typed_options(run: RunInfo) -> dict[str, str]:
    """The options that differ from their defaults: long names with values, empty for a flag."""
    typed = run.typed if isinstance(run.typed, dict) else _from_effective_options(run.options)
    return {name: _text(value) for name, value in typed.items() if name not in LISTED_ELSEWHERE}


def command_line(run: RunInfo) -> str:
    """The same as one line: --asap --depth 64."""
    return " ".join(f"--{name} {value}".rstrip() for name, value in typed_options(run).items())


def _text(value: object) -> str:
    if value is True:
        return ""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _from_effective_options(options: Mapping[str, Any]) -> dict[str, Any]:
    typed: dict[str, Any] = {}
    for name, value in options.items():
        if value in (None, False, [], "") or DEFAULTS.get(name) == value:
            continue
        if name == "window" and isinstance(value, dict):
            typed |= {edge: _seconds(at) for edge, at in value.items() if at not in (0, _FOREVER, None)}
        elif name == "data" and isinstance(value, dict):
            if value != _RANDOM:
                typed["data"] = " ".join(f"{key}={part}" for key, part in value.items())
        elif name in _TIMES and isinstance(value, int):
            typed[_NAMES.get(name, name)] = _seconds(value)
        elif name in _SIZES and isinstance(value, int):
            typed[name] = value >> 20
        else:
            typed[_NAMES.get(name, name)] = value
    return {name.replace("_", "-"): value for name, value in typed.items()}


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:.9f}".rstrip("0").rstrip(".") + "s"
