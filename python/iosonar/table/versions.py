"""The names that later versions of the tables changed; docs/schema.md has the list.

Files of earlier versions are read under the names of this one. Each kind has the old names of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iosonar.table.kinds import KINDS
from iosonar.table.kinds.column import Renamed
from iosonar.table.kinds.kind import Kind, rename

if TYPE_CHECKING:
    import ibis.expr.types as ir

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


def renamed(name: str, kind: Kind, version: int) -> Renamed | None:
    """What a column was in files of that kind and version, if it was renamed since."""
    found = kind.renamed.get(name)
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
    for name in kind.renamed:
        found = renamed(name, kind, version)
        if found and found.old in table.columns:
            table = table.rename({name: found.old})
            if found.values:
                table = table.mutate(**{name: table[name].substitute(dict(found.values))})
    return table


def rename_footer(footer: dict[str, Any], version: int) -> None:
    """Renames the keys of a footer of that version; ignores values of unexpected types."""
    rename(footer, {"notices": "warnings"})
    run = footer.get("run")
    if version < 2:
        _rename_version_1(run)
    if version < 3:
        if footer.get("request_time") == "asked":
            footer["request_time"] = "queued"
        rename(run, {"company": "contention"})
    # Any JSON value may stand here.
    kind = KINDS.get(str(footer.get("kind")))
    if kind and kind.rename_run and isinstance(run, dict):
        kind.rename_run(run, version)


def _rename_version_1(run: Any) -> None:
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
    rename(statistics, _STATISTICS)
    for finding in _elements(run, "findings"):
        rename(finding, _FINDING)
    verdict = statistics.get("verdict") if isinstance(statistics, dict) else None
    for late in [*_elements(verdict, "late"), *_elements(verdict, "worst")]:
        if isinstance(late, dict) and late.get("cause") == "recorder":
            late["cause"] = "completion_log"


def _elements(value: Any, key: str) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []
