"""The names that later versions of the tables changed; docs/schema.md has the list.

Files of earlier versions are read under the names of this one. Only this module has the old names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iosonar.table.kind import Kind

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Renamed:
    """A column that had another name until a version, and its values that had others."""

    old: str
    until: int
    values: Mapping[str, str] = field(default_factory=dict)
    """Old values, with their present names."""


DELAY_REASONS = {"nothing": "none", "recorder": "completion_log"}

COLUMNS: Mapping[Kind, Mapping[str, Renamed]] = {
    Kind.REPLAY: {
        "iteration": Renamed("round", 1),
        "scheduled_ns": Renamed("intended_ns", 1),
        "last_empty_poll_ns": Renamed("unanswered_ns", 1),
        "delay_reason": Renamed("held_by", 1, DELAY_REASONS),
    },
    Kind.CALLS_RUN: {"delay_reason": Renamed("held_by", 2, {"pool": "depth", "replayer": "backlog"})},
}
"""Renamed columns, by their present names."""

_STATISTICS = {
    "issue_error_us": "delay_us",
    "issue_error_free_us": "delay_not_held_back_us",
    "within_free_pct": "within_not_held_back_pct",
    "latency_intended_us": "latency_from_scheduled_us",
    "recorder_stalls": "completion_log_stalls",
}
_STATISTICS_OF_CALLS = {
    "issue_error_us": "delay_not_held_back_us",
    "within_pct": "within_not_held_back_pct",
    "response_us": "latency_us",
    "original_response_us": "original_latency_us",
    "held": "delay_reasons",
}
_WAIT = {"work": "inline"}
_ENGINES = {"fake_io": "null", "dry_run": "dry_run"}
"""Options of version 1 that are values of `engine` now."""
_FINDING = {"expected_generation": "expected_sequence_number", "found_generation": "found_sequence_number"}


def renamed(name: str, kind: Kind, version: int) -> Renamed | None:
    """What a column was in files of that kind and version, if it was renamed since."""
    found = COLUMNS.get(kind, {}).get(name)
    return found if found and version <= found.until else None


def stored_name(name: str, kind: Kind, version: int) -> str:
    """The name of a column in files of that kind and version."""
    found = renamed(name, kind, version)
    return found.old if found else name


def stored_sql(name: str, kind: Kind, version: int) -> str:
    """SQL for a column of a file of that kind and version, with the names and values of this one."""
    column = f'"{stored_name(name, kind, version)}"'
    found = renamed(name, kind, version)
    if not found or not found.values:
        return column
    cases = " ".join(f"WHEN '{old}' THEN '{new}'" for old, new in found.values.items())
    return f"CASE {column} {cases} ELSE {column} END"


def with_new_names(table: ir.Table, kind: Kind, version: int) -> ir.Table:
    """The table of a file of that kind and version, with the names and values of this one."""
    for name in COLUMNS.get(kind, {}):
        found = renamed(name, kind, version)
        if found and found.old in table.columns:
            table = table.rename({name: found.old})
            if found.values:
                table = table.mutate(**{name: table[name].substitute(dict(found.values))})
    return table


def rename_footer(footer: dict[str, Any], version: int) -> None:
    """Renames the keys of a footer of that version; ignores values of unexpected types."""
    _rename(footer, {"notices": "warnings"})
    if version < 2:
        _rename_version_1(footer)
    if version < 3:
        _rename_version_2(footer)


def _rename_version_2(footer: dict[str, Any]) -> None:
    if footer.get("request_time") == "asked":
        footer["request_time"] = "queued"
    run = footer.get("run")
    _rename(run, {"company": "contention"})
    if footer.get("kind") == Kind.CALLS_RUN and isinstance(run, dict):
        statistics = run.get("statistics")
        _rename(statistics, _STATISTICS_OF_CALLS)
        if isinstance(statistics, dict):
            _rename(statistics.get("delay_reasons"), COLUMNS[Kind.CALLS_RUN]["delay_reason"].values)


def _rename_version_1(footer: dict[str, Any]) -> None:
    run = footer.get("run")
    if not isinstance(run, dict):
        return
    options = run.get("options")
    for each in (run, options, run.get("typed")):
        if isinstance(each, dict) and isinstance(wait := each.get("wait"), str):
            each["wait"] = _WAIT.get(wait, wait)
    if isinstance(options, dict):
        for old, engine in _ENGINES.items():
            # Classic results have other values here.
            if isinstance(options.get(old), bool) and options.pop(old):
                options["engine"] = engine
    statistics = run.get("statistics")
    _rename(statistics, _STATISTICS)
    for finding in _elements(run, "findings"):
        _rename(finding, _FINDING)
    verdict = statistics.get("verdict") if isinstance(statistics, dict) else None
    for late in [*_elements(verdict, "late"), *_elements(verdict, "worst")]:
        if isinstance(late, dict) and late.get("cause") == "recorder":
            late["cause"] = DELAY_REASONS["recorder"]


def _elements(value: Any, key: str) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _rename(value: Any, names: Mapping[str, str]) -> None:
    if isinstance(value, dict):
        for old, new in names.items():
            if old in value:
                value[new] = value.pop(old)
