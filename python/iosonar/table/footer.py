"""Parses the footer's JSON object and checks its types against docs/schema.md."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from iosonar.errors import UserError
from iosonar.table.versions import rename_footer
from iosonar.text import plain

MAX_DEPTH = 100
"""The deepest nesting of JSON values."""

I64 = 2**63 - 1
U64 = 2**64 - 1
LAST_SECOND_NS = 253_402_300_799 * 10**9
"""The last second of the year 9999, the last that a date can represent."""

Check = Callable[[Any, str], None]
"""Raises _WrongError if the value is wrong. The second argument is the path of the value."""


class _WrongError(Exception):
    pass


def parse_footer(text: bytes, reads_version: int) -> dict[str, Any]:
    """The footer's object, with all texts escaped for printing, and without keys whose value is null.

    Keys of an earlier version get the names of this one, but `schema_version` keeps its value.

    Raises UserError if the footer is wrong.
    """
    try:
        found = _escaped(json.loads(text, parse_constant=_refuse_constant))
        if isinstance(found, dict):
            version = found.get("schema_version")
            if isinstance(version, int) and version > reads_version:
                # A newer version may have changed anything.
                raise UserError(
                    f"has version {version} of the tables; this iosonar reads versions up to {reads_version}: use a "
                    "newer iosonar"
                )
            if isinstance(version, int):
                rename_footer(found, version)
            kind = found.get("kind")
            # Any JSON value may stand here.
            if isinstance(kind, str) and kind in _FOOTERS_OF_CALLS:
                _FOOTERS_OF_CALLS[kind](found, "")
                return found
        _FOOTER(found, "")
    except (_WrongError, ValueError, RecursionError) as error:
        why = plain(str(error)) or "nested too deeply"
        raise UserError(f"the `iosonar` object in its footer does not conform to docs/schema.md: {why}") from error
    result: dict[str, Any] = found
    return result


def _refuse_constant(text: str) -> Any:
    raise _WrongError(f"{text} is not a number")


def _escaped(value: Any, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [_escaped(each, depth + 1) for each in value]
    if isinstance(value, dict):
        return {plain(key): _escaped(each, depth + 1) for key, each in value.items() if each is not None}
    return value


def _require(is_right: bool, expected: str, where: str) -> None:
    if not is_right:
        raise _WrongError(f"{where or 'it'} is not {expected}")


def _text(value: Any, where: str) -> None:
    _require(isinstance(value, str), "a string", where)


def _boolean(value: Any, where: str) -> None:
    _require(isinstance(value, bool), "true or false", where)


def _integer(low: int, high: int) -> Check:
    def check(value: Any, where: str) -> None:
        _require(type(value) is int and low <= value <= high, f"an integer from {low} to {high}", where)

    return check


def _number(value: Any, where: str) -> None:
    is_right = type(value) in (int, float) and abs(value) <= 1e300 and math.isfinite(value) and value >= 0
    _require(is_right, "a finite number of 0 or more", where)


def _percentile(value: Any, where: str) -> None:
    """A number, or null: too few times were above it."""
    if value is not None:
        _number(value, where)


def _one_of(*names: str) -> Check:
    def check(value: Any, where: str) -> None:
        _require(value in names, f"one of {', '.join(names)}", where)

    return check


def _list(of: Check) -> Check:
    def check(value: Any, where: str) -> None:
        _require(isinstance(value, list), "a list", where)
        for place, each in enumerate(value):
            of(each, f"{where}[{place}]")

    return check


def _object(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """An object with those keys; other keys may have any value."""

    def check(value: Any, where: str) -> None:
        _require(isinstance(value, dict), "an object", where)
        stem = f"{where}." if where else ""
        for name, of in required.items():
            if name not in value:
                raise _WrongError(f"{stem}{name} is missing")
            of(value[name], f"{stem}{name}")
        for name, of in (optional or {}).items():
            if name in value:
                of(value[name], f"{stem}{name}")

    return check


def _values(of: Check) -> Check:
    """An object whose values all pass the check."""

    def check(value: Any, where: str) -> None:
        _require(isinstance(value, dict), "an object", where)
        for name, each in value.items():
            of(each, f"{where}.{name}")

    return check


_COUNT = _integer(0, U64)
_TIME = _integer(-I64 - 1, I64)
_ERROR = _object({}, dict.fromkeys(("p50", "p90", "p98", "p99", "p999", "max"), _percentile))
_TARGET = _object(
    {},
    {
        "path": _text,
        "kind": _text,
        "sectors": _COUNT,
        "scheduler": _text,
        "logical_block_bytes": _COUNT,
        "queue": _object({}),
        "mount": _object({}),
    },
)
_VERDICT = _object(
    {
        "faithful": _boolean,
        "own": _object({"requests": _COUNT}, {"within_pct": _values(_number), "delay_us": _values(_percentile)}),
    },
    {"sentence": _text, "remedies": _list(_object({"try": _text, "costs": _text}))},
)
_STATISTICS = _object(
    {},
    {
        "requests": _COUNT,
        "wrap_factor": _number,
        "zero_reads": _COUNT,
        "verdict": _VERDICT,
        "within_pct": _values(_number),
        "within_not_held_back_pct": _values(_number),
        "delay_us": _ERROR,
        "delay_not_held_back_us": _ERROR,
    },
)
_RUN = _object(
    {},
    {
        "load": _text,
        "program": _object(
            {},
            {
                "name": _text,
                "about": _text,
                "streams": _list(_object({}, {"name": _text, "instances": _COUNT, "open": _boolean})),
            },
        ),
        "options": _object({}, {"speedup": _number, "window": _values(_TIME)}),
        "target": _TARGET,
        "targets": _list(_TARGET),
        "machine": _object({}, {"hostname": _text, "kernel": _text, "processor": _text, "memory_kib": _number}),
        "engine": _text,
        "fake": _text,
        "warnings": _list(_text),
        "started_unix_ns": _integer(0, LAST_SECOND_NS),
        "statistics": _STATISTICS,
    },
)
_FOOTER = _object(
    {
        "schema_version": _integer(0, 2**32 - 1),
        "kind": _one_of("load", "replay", "calls", "calls_run", "tree", "scale"),
        "source": _object({"format": _text}, {"path": _text, "preamble": _text}),
        "devices": _list(_object({"name": _text}, {"sectors": _COUNT})),
        "counts": _object(
            {},
            dict.fromkeys(
                ("requests", "reads", "writes", "others", "bad_lines", "time_jumps", "lost_events", "unmatched"), _COUNT
            ),
        ),
        "span": _object({}, {"first_ns": _TIME, "last_ns": _TIME, "max_end_sector": _COUNT, "max_sectors": _COUNT}),
        "complete": _boolean,
    },
    {
        "epoch_unix_ns": _TIME,
        "clocks": _object({"unix_ns": _TIME, "monotonic_ns": _TIME}),
        "request_time": _one_of("queued", "issued"),
        "notices": _list(_text),
        "run": _RUN,
    },
)

_OF_ANY_KIND: dict[str, Check] = {"schema_version": _integer(0, 2**32 - 1), "kind": _text}
_OF_CALLS: dict[str, Check] = {
    "source": _object({}, {"format": _text, "path": _text}),
    "recorder": _text,
    "command": _list(_text),
    "processes": _list(_object({}, {"process": _COUNT, "cwd": _text})),
    "clocks": _object({"unix_ns": _TIME, "monotonic_ns": _TIME}),
    "epoch_unix_ns": _TIME,
    "counts": _object(
        {},
        {
            **dict.fromkeys(("calls", "unfinished", "uring", "bad_lines", "lost_events"), _COUNT),
            "other_calls": _values(_COUNT),
        },
    ),
    "span": _object({}, {"first_ns": _TIME, "last_ns": _TIME}),
    "complete": _boolean,
    "notices": _list(_text),
    "run": _object(
        {},
        {
            "options": _object({}),
            "fake": _text,
            "statistics": _object({}, {"verdict": _object({"faithful": _boolean}, {"sentence": _text})}),
        },
    ),
}
_FOOTERS_OF_CALLS: Mapping[str, Check] = {
    "calls": _object(_OF_ANY_KIND, _OF_CALLS),
    "calls_run": _object(_OF_ANY_KIND, _OF_CALLS),
    "tree": _object(_OF_ANY_KIND),
    "scale": _object(_OF_ANY_KIND, {"counts": _object({}), "complete": _boolean}),
}
