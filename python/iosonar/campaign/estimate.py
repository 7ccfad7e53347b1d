"""How long a campaign takes: each leaf from its load, its options and its preparation, or from earlier runs.

It supposes that the storage keeps up with the load: a replay that is overloaded takes longer.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iosonar import units
from iosonar.campaign import confs, inputs
from iosonar.campaign.loads import LoadInfo
from iosonar.campaign.plan import Instance, LeafPlan
from iosonar.campaign.replays import LONGEST_GRACE_S, VIRTUAL
from iosonar.campaign.state import LeafState
from iosonar.text import aligned, plain

QUICK = ("main", "scheduler", "check", "pipe_", "input_reverse")
"""Prefixes of modules that take no time worth an estimate."""

REPLAY = "main_run"
"""The function that replays."""

_UNTIMED = ("--asap", "--closed", "--edit", "--program")
"""Options after which the times of the load do not say how long the replay takes."""

_TIME = re.compile(r"(\d+\.?\d*|\.\d+)([a-zµμ]*)")
_SIZES = {unit: 1024.0**power for power, unit in enumerate("BKMGTPE")}

_BOUNDS = {
    (False, False): ("", "at"),
    (True, False): ("at least ", "after"),
    (False, True): ("at most ", "by"),
    (True, True): ("about ", "at about"),
}
"""How long all leaves take and when they end: whether something is unknown, and whether a replay has only a limit."""

Find = Callable[[Path], LoadInfo | None]
"""What is known of a load."""


@dataclass(frozen=True)
class Replay:
    """How long a replay takes."""

    seconds: float | None
    """None if that cannot be known."""
    at_most: bool = False
    why: str = ""
    """Why it is not known, or only its limit."""


@dataclass(frozen=True)
class Estimate:
    """How long a leaf takes."""

    leaf: str
    replay: Replay
    rest_s: float
    """Preparation, pauses, and what follows the replay."""
    unknown: tuple[str, ...] = ()
    """What is not in it."""
    earlier: str = ""
    """The leaf whose earlier run it is from, if it is."""

    @property
    def seconds(self) -> float:
        """The sum of what is known."""
        return (self.replay.seconds or 0.0) + self.rest_s

    def as_json(self) -> dict[str, Any]:
        """The estimate for programs."""
        return {
            "replay_s": self.replay.seconds,
            "at_most": self.replay.at_most,
            "rest_s": self.rest_s,
            "earlier_run": self.earlier or None,
            "not_estimated": list(self.unknown),
        }


def estimate(leaf: str, planned: LeafPlan, load: Find, earlier: Sequence[LeafState]) -> Estimate:
    """The estimate of a leaf. `earlier` are the leaves that were started before, and its own attempts."""
    like = _like(leaf, planned, [known for known in earlier if known.state == "done" and known.took_s])
    replays = [replay(planned, each, load(each.source)) for each in planned.instances]
    longest = max(replays, key=lambda each: (each.seconds is None, each.seconds or 0.0))
    if like and like.leaf == leaf and longest.seconds is None:
        longest = Replay(like.took_s.get(REPLAY))
    unknown = [] if longest.seconds is not None else [f"the replay ({longest.why})"]
    if like:
        rest = sum(seconds for function, seconds in like.took_s.items() if function != REPLAY)
    else:
        rest = 0.0
        for what, seconds in _steps(planned):
            rest += seconds or 0.0
            unknown += [what] if seconds is None else []
    return Estimate(leaf, longest, rest + _grace(planned), tuple(unknown), like.leaf if like else "")


def replay(planned: LeafPlan, instance: Instance, load: LoadInfo | None) -> Replay:
    """How long an instance replays, if the storage keeps up."""
    given = _values(planned.options)
    variables = planned.variables
    speedup = _seconds(given.get("--speedup")) or 1.0
    limit, length, end = (_seconds(given.get(name)) for name in ("--for", "--duration", "--end"))
    start = instance.start_s or _seconds(given.get("--start")) or 0.0
    if VIRTUAL in planned.options:
        return Replay(None, why="virtual time")
    if "--loop" in planned.options:
        return Replay(limit)
    if untimed := next((name for name in _UNTIMED if name in given), ""):
        return Replay(limit, at_most=True, why=f"{untimed}: it depends on the storage, unless --for limits it")
    ends = [at for at in (start + length if length else None, end or None) if at is not None]
    if is_on(variables, "enable_pipe_repeat"):
        begins = start
    elif load is None or is_on(variables, "enable_pipe_cmd") or variables.get("input_pipe_list", "").strip():
        why = f"{plain(inputs.shown(instance.source))} {'is filtered' if load else 'is not on the controller'}"
        most = [(min(ends) - start) / speedup] if ends else []
        return Replay(min([*most, *([limit] if limit else [])], default=None), at_most=True, why=why)
    else:
        begins, last = max(load.first_s, start), load.last_s
        if is_on(variables, "enable_pipe_select"):
            begins = max(begins, _number(variables, "pipe_select_from", 0.0))
            last = min(last, _number(variables, "pipe_select_to", 300.0))
        ends.append(last)
    if not ends:
        return Replay(None, why="pipe_repeat without replay_duration")
    seconds = max(min(ends) - begins, 0.0) / speedup
    return Replay(min(seconds, limit) if limit else seconds)


def requests(planned: LeafPlan, instance: Instance, load: LoadInfo | None) -> int:
    """About how many requests an instance replays; 0 if that is not known."""
    if load is None:
        return 0
    found = replay(planned, instance, load)
    if found.seconds is None or found.at_most or load.last_s <= load.first_s:
        return load.requests
    speedup = _seconds(_values(planned.options).get("--speedup")) or 1.0
    return int(load.requests / (load.last_s - load.first_s) * found.seconds * speedup)


def table(found: Sequence[Estimate], now: float | None = None) -> Iterator[str]:
    """The estimates as a table, with their sum and the expected end."""
    rows = [("leaf", "replay", "rest", "sum", "")]
    for each in found:
        is_known = each.replay.seconds is not None
        most = "≤ " if each.replay.at_most and is_known else ""
        shown = units.span(each.replay.seconds or 0.0) if is_known else "?"
        words = [f"as {plain(each.earlier)}"] if each.earlier else []
        words += [f"not counted: {', '.join(each.unknown)}"] if each.unknown else []
        rows.append(
            (plain(each.leaf), most + shown, units.span(each.rest_s), most + units.span(each.seconds), "; ".join(words))
        )
    yield from aligned(rows)
    total, ends = sum_of(found, time.time() if now is None else now)
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(ends))
    leaves = units.counted(len(found), "leaf", "leaves")
    is_limit = any(each.replay.at_most and each.replay.seconds is not None for each in found)
    how_long, ends_at = _BOUNDS[any(each.unknown for each in found), is_limit]
    yield f"{leaves}: {how_long}{units.span(total)}; started now, the campaign ends {ends_at} {at}"


def sum_of(found: Sequence[Estimate], now: float) -> tuple[float, float]:
    """The time that leaves take together, and when that is over."""
    total = sum(each.seconds for each in found)
    return total, now + total


def _like(leaf: str, planned: LeafPlan, earlier: Sequence[LeafState]) -> LeafState | None:
    """The last attempt of a leaf, or the last leaf with the same devices and modules."""
    devices = sorted((each.host, each.original) for each in planned.instances)
    enabled = _modules(planned.variables)

    def is_alike(known: LeafState) -> bool:
        found = sorted((each.host, each.device_original) for each in known.instances)
        return found == devices and _modules(known.variables) == enabled

    found = [known for known in earlier if known.leaf == leaf or is_alike(known)]
    return max(found, key=lambda known: (known.leaf == leaf, known.started or 0.0), default=None)


def _modules(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith("enable_")}


def _steps(planned: LeafPlan) -> Iterator[tuple[str, float | None]]:
    """What a leaf does besides its replay, and how long that takes; None if it is not known."""
    modules = {name for name, _ in confs.modules_of(confs.MODULES)}
    for phase, functions in planned.functions.items():
        for function in functions:
            name = function.removesuffix(f"_{phase}")
            if name.startswith(QUICK) or (name in modules and not is_on(planned.variables, f"enable_{name}")):
                continue
            if name in ("wipe", "slurp"):
                if phase == "setup":
                    yield _filling(planned, name)
            elif name == "smartctl":
                if phase == "prepare":
                    yield from _smartctl(planned)
            elif phase in ("prepare", "setup", "run") or name == "graph":
                yield name, None


def _smartctl(planned: LeafPlan) -> Iterator[tuple[str, float | None]]:
    for name in ("enable_ssd_erase", "enable_ssd_trim"):
        if is_on(planned.variables, name):
            yield name, None
            yield "settle_wait", _number(planned.variables, "settle_wait", 0.0)


def _filling(planned: LeafPlan, name: str) -> tuple[str, float | None]:
    """Filling or reading all devices, at the same time."""
    speed = _number(planned.variables, f"{name}_speed", 0.0) * 1e6
    if not speed:
        return f"{name} (set {name}_speed)", None
    sizes = [_size(planned, each) for each in planned.instances]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        unknown = next(each for each, size in zip(planned.instances, sizes, strict=True) if size is None)
        return f"{name} (the size of {plain(f'{unknown.host}:{unknown.device}')} is not known here)", None
    return name, max(known, default=0) / speed


def _size(planned: LeafPlan, instance: Instance) -> float | None:
    """The size of a device in bytes; a dry run asks no host."""
    if is_on(planned.variables, "enable_recreate_lvm"):
        found = re.fullmatch(r"([0-9.]+)([KMGTPE])", planned.variables.get("lv_size", "1T").strip().upper())
        return float(found[1]) * _SIZES[found[2]] if found else None
    if instance.host != "localhost":
        return None
    try:
        with Path(instance.device).open("rb") as device:
            return float(device.seek(0, 2))
    except OSError:
        return None


def _grace(planned: LeafPlan) -> float:
    """The pause before the common start."""
    grace = _number(planned.variables, "start_grace", 15.0)
    return 0.0 if VIRTUAL in planned.options else min(grace, max(LONGEST_GRACE_S, grace / 10))


def _values(options: Sequence[str]) -> dict[str, str]:
    """Options by name, each with the word after it."""
    words = [word for option in options for word in option.split("=", 1)]
    return {word: after for word, after in zip(words, [*words, ""][1:], strict=True) if word.startswith("--")}


def _seconds(text: str | None) -> float | None:
    found = _TIME.fullmatch(text or "")
    return float(found[1]) * units.TIME_UNITS.get(found[2], 1.0) if found else None


def is_on(variables: Mapping[str, str], name: str) -> bool:
    """Whether a variable is a number that is not 0."""
    return bool(_number(variables, name, 0.0))


def _number(variables: Mapping[str, str], name: str, default: float) -> float:
    try:
        return float(variables.get(name) or default)
    except ValueError:
        return default
