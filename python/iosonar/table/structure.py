"""Reads JSON into dataclasses: the types of the fields say which values are right.

`int` is a whole number of 0 or more, unless a `Range` says otherwise, `float` a finite number of 0 or more, and `Any`
anything. A field without a default must be there; other keys may have any value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

U64 = 2**64 - 1


class WrongError(Exception):
    """A value is not what it should be; the text names it by its path."""


@dataclass(frozen=True)
class Range:
    """The bounds of an integer: `Annotated[int, Range(-1, 1)]`."""

    low: int = 0
    high: int = U64


@dataclass(frozen=True, eq=False)
class Keys:
    """The types of some keys of an object: `Annotated[Mapping[str, Any], Keys({"at": int})]`."""

    types: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Names:
    """The values of a text: `Annotated[str, Names(["a", "b"])]`."""

    names: Collection[str]


def structured(kind: type[T], value: Any, where: str = "") -> T:
    """The value as that type. Raises WrongError if it is not one."""
    found: T = _read(kind, value, where)
    return found


def _read(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        base, rule = inner
        if isinstance(rule, Range):
            return _integer(rule, value, where)
        if isinstance(rule, Names):
            _require(isinstance(value, str) and value in rule.names, f"one of {', '.join(rule.names)}", where)
            return value
        found = _read(base, value, where)
        for name, of in rule.types.items():
            if name in found:
                _read(of, found[name], f"{where}.{name}")
        return found
    if origin in (Union, UnionType):
        (some,) = (each for each in inner if each is not NoneType)
        return _read(some, value, where)
    if origin is tuple:
        _require(isinstance(value, list), "a list", where)
        return tuple(_read(inner[0], each, f"{where}[{place}]") for place, each in enumerate(value))
    if origin is Mapping:
        _require(isinstance(value, dict), "an object", where)
        return {name: _read(inner[1], each, f"{where}.{name}") for name, each in value.items()}
    if kind is int:
        return _integer(Range(), value, where)
    if kind is float:
        is_right = type(value) in (int, float) and abs(value) <= 1e300 and math.isfinite(value) and value >= 0
        _require(is_right, "a finite number of 0 or more", where)
        return value
    if kind is bool:
        _require(isinstance(value, bool), "true or false", where)
        return value
    if is_dataclass(kind):
        return _object(kind, value, where)
    _require(isinstance(value, str), "a string", where)
    return value


def _object(kind: Any, value: Any, where: str) -> Any:
    _require(isinstance(value, dict), "an object", where)
    stem, found = f"{where}." if where else "", {}
    for name, key, of, is_required in _fields(kind):
        if key in value:
            found[name] = _read(of, value[key], f"{stem}{key}")
        elif is_required:
            raise WrongError(f"{stem}{key} is missing")
    return kind(**found)


@cache
def _fields(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    """The fields of a dataclass: name, key in JSON, type, and whether it must be there."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (
            each.name,
            each.metadata.get("key", each.name),
            hints[each.name],
            each.default is MISSING and each.default_factory is MISSING,
        )
        for each in fields(kind)
    )


def _integer(rule: Range, value: Any, where: str) -> int:
    is_right = type(value) is int and rule.low <= value <= rule.high
    _require(is_right, f"an integer from {rule.low} to {rule.high}", where)
    found: int = value
    return found


def _require(is_right: bool, expected: str, where: str) -> None:
    if not is_right:
        raise WrongError(f"{where or 'it'} is not {expected}")
