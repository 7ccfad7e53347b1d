"""The plan of a sweep: a program, at several depths, rates or spans."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

from iosonar.errors import UsageError, UserError
from iosonar.pacing import Changes, options_that_change
from iosonar.series import binary
from iosonar.series.plan import Plan, Point, fingerprint, fingerprint_of_model, refuse_own_options, target_words
from iosonar.series.values import size_text
from iosonar.text import plain

KIND = "sweep"

OWN = (
    *("--output", "-o", "--overwrite", "--json", "--progress", "--for", "--target", "-t", "--simulate", "--start-file"),
    *(option.name for option in options_that_change(Changes.NOTHING)),
)
"""Options of `workload run` that the sweep itself gives, or that are for a single run."""

LIMITS = ("--depth", "--threads", "--bottleneck")
"""Options of `workload run` that would limit the requests in flight of a sweep of depths."""

MAX_IN_FLIGHT = 65_536


class SweepVariable(StrEnum):
    """What differs between the points; the name is also that of the program's parameter."""

    DEPTH = "depth"
    RATE = "rate"
    SPAN = "span"


@dataclass(frozen=True)
class Sweep:
    """What the user asked for."""

    program: str
    vary: SweepVariable
    values: Sequence[int]
    parameter: str | None
    targets: Sequence[str]
    simulate: str | None
    virtual_time: bool
    duration: str
    options: Sequence[str]


def plan(sweep: Sweep) -> Plan:
    """The plan of a sweep. Reads the program, which must have the parameter."""
    refuse_own_options(sweep.options, (*OWN, *(LIMITS if sweep.vary is SweepVariable.DEPTH else ())))
    if sweep.vary is SweepVariable.DEPTH and (most := max(sweep.values)) > MAX_IN_FLIGHT:
        raise UsageError(f"--depth {most}: at most {MAX_IN_FLIGHT} requests can be in flight")
    text = binary.text_of(["workload", "show", sweep.program])
    known = _parameters(text)
    parameter = sweep.parameter or str(sweep.vary)
    if parameter not in known:
        listed = ", ".join(known) or "it has none"
        raise UsageError(
            f"{plain(sweep.program)} has no parameter {plain(parameter)} to vary; its parameters: {plain(listed)}. "
            f"Name one of them with --parameter, or use ${plain(parameter)} in a program of your own (docs/sweep.md)"
        )
    if parameter in (set_ := _set_parameters(sweep.options)):
        raise UsageError(f"--set {plain(parameter)}= after --: the sweep sets it for each point")
    set_options = [*sweep.options, *_depth_of_one(sweep, known, set_)]
    target = target_words(sweep.targets, sweep.simulate, sweep.virtual_time)
    settings: dict[str, Any] = {
        "program": sweep.program,
        "content of the program": fingerprint(text.encode()),
        "parameter": parameter,
        "for": sweep.duration,
        "device": list(target),
        "description of the device": fingerprint_of_model(sweep.simulate),
        "options": set_options,
    }
    command = ("workload", "run", sweep.program, *target, "--for", sweep.duration, *set_options)
    return Plan(KIND, settings, command, tuple(_point(sweep.vary, parameter, value) for value in sweep.values))


def _parameters(text: str) -> list[str]:
    try:
        return list(tomllib.loads(text).get("set", {}))
    except (tomllib.TOMLDecodeError, AttributeError) as error:
        raise UserError(f"cannot read the program's text: {plain(str(error))}") from error


def _set_parameters(options: Sequence[str]) -> set[str]:
    """The parameters of the program that options set: --set NAME=VALUE or --set=NAME=VALUE."""
    words = [word.removeprefix("--set=") for word in options if word.startswith("--set=")]
    words += [word for before, word in pairwise(options) if before == "--set"]
    return {word.partition("=")[0] for word in words}


def _depth_of_one(sweep: Sweep, known: Sequence[str], set_: set[str]) -> list[str]:
    """One request at a time for spans, unless the depth is set."""
    return ["--set", "depth=1"] if sweep.vary is SweepVariable.SPAN and "depth" in known and "depth" not in set_ else []


def _point(vary: SweepVariable, parameter: str, value: int) -> Point:
    text = size_text(value) if vary is SweepVariable.SPAN else str(value)
    return Point(f"{vary}-{text}", value, ("--set", f"{parameter}={text}"))
