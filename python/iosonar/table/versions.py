"""The names that version 2 of the tables changed; docs/schema.md has the list.

Files of version 1 are read under the names of version 2. Only this module has the old names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ibis.expr.types as ir

COLUMNS = {
    "iteration": "round",
    "scheduled_ns": "intended_ns",
    "last_empty_poll_ns": "unanswered_ns",
    "delay_reason": "held_by",
}
"""Columns of a run, with their names in version 1."""

DELAY_REASONS = {"nothing": "none", "recorder": "completion_log"}
"""Values of `delay_reason` in version 1, with their present names."""

_STATISTICS = {
    "issue_error_us": "delay_us",
    "issue_error_free_us": "delay_not_held_back_us",
    "within_free_pct": "within_not_held_back_pct",
    "latency_intended_us": "latency_from_scheduled_us",
    "recorder_stalls": "completion_log_stalls",
}
_WAIT = {"work": "inline"}
_ENGINES = {"fake_io": "null", "dry_run": "dry_run"}
"""Options of version 1 that are values of `engine` now."""
_FINDING = {"expected_generation": "expected_sequence_number", "found_generation": "found_sequence_number"}


def stored_name(name: str, version: int) -> str:
    """The name of a column in files of that version."""
    return COLUMNS.get(name, name) if version < 2 else name


def stored_sql(name: str, version: int) -> str:
    """SQL for a column of a file of that version, with the names and values of this one."""
    if version > 1:
        return f'"{name}"'
    column = f'"{stored_name(name, version)}"'
    if name != "delay_reason":
        return column
    cases = " ".join(f"WHEN '{old}' THEN '{new}'" for old, new in DELAY_REASONS.items())
    return f"CASE {column} {cases} ELSE {column} END"


def with_new_names(table: ir.Table, version: int) -> ir.Table:
    """The table of a file of that version, with the names and values of this one."""
    if version > 1:
        return table
    table = table.rename({new: old for new, old in COLUMNS.items() if old in table.columns})
    if "delay_reason" in table.columns:
        table = table.mutate(delay_reason=table.delay_reason.substitute(DELAY_REASONS))
    return table


def rename_footer(footer: dict[str, Any]) -> None:
    """Renames the keys of a footer of version 1; ignores values of unexpected types."""
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
