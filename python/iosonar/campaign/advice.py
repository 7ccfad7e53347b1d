"""Warnings before a leaf runs, if its results will not be comparable.

Functions from plain data to sentences; nothing here touches a host or a file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from iosonar.campaign.varied import DERIVED, module_of
from iosonar.text import plain

SHORT_S = 60.0
"""Shorter runs end before most devices are steady."""

MIN_FREE_BYTES = 2 << 30
"""Free space of a temporary directory below which a result may not fit: 30 million requests take about 2 GiB."""

MAX_LISTED = 4

RECREATING = ("create_lv", "recreate_lvm")
FILLING = ("wipe",)


@dataclass(frozen=True)
class Instance:
    """One replay of a leaf, as planned."""

    host: str
    device: str
    """The device in the confs, before modules changed it."""
    input: str
    start_s: float = 0.0
    """The window of the load begins here."""
    input_ends_s: float | None = None
    """When its last request is due, in its own time; None if that is not known."""


@dataclass(frozen=True)
class EarlierLeaf:
    """A leaf of the same campaign that was started before, whether or not it failed."""

    name: str
    path: tuple[str, ...]
    variables: Mapping[str, str]
    devices: tuple[tuple[str, str], ...]
    """Host and device of each instance."""
    replayed: bool = True
    """Whether a replay was started that may have changed the devices."""


@dataclass(frozen=True)
class PlannedLeaf:
    """A leaf that is about to run."""

    path: tuple[str, ...]
    variables: Mapping[str, str]
    instances: tuple[Instance, ...]
    earlier: Sequence[EarlierLeaf] = ()
    """Other leaves that were started before, and the earlier attempts of this one."""
    free_bytes: Mapping[str, int] = field(default_factory=dict)
    """The free space of the temporary directory of each host."""
    without_device: bool = False
    """Whether its replays do no I/O."""
    files_prepare: str = ""
    """Of a load of calls: how its files are prepared; empty for requests."""


def before(leaf: PlannedLeaf) -> list[str]:
    """All warnings about a leaf, each a sentence without a full stop."""
    return [
        *_same_state(leaf),
        *_zeros(leaf),
        *_duration(leaf),
        *_common_mode(leaf),
        *_one_thing_at_a_time(leaf),
        *_space(leaf),
    ]


def _same_state(leaf: PlannedLeaf) -> Iterator[str]:
    """Every run must find the device in the same state: recreated, filled, and not yet replayed on."""
    if leaf.without_device or leaf.files_prepare == "reset":
        return
    recreated = any(_enabled(leaf.variables, name) for name in RECREATING)
    filled = any(_enabled(leaf.variables, name) for name in FILLING)
    if filled:
        return
    used: dict[str, str] = {}
    for earlier in leaf.earlier:
        if earlier.replayed:
            used |= {f"{host}:{device}": earlier.name for host, device in earlier.devices}
    again = [name for each in leaf.instances if (name := f"{each.host}:{each.device}") in used]
    if leaf.files_prepare:
        if again:
            yield (
                f"{plain(used[again[0]])} replayed in {_listed(again)} before: this run finds files as that one left "
                "them; set files_prepare=reset"
            )
    elif again and not recreated:
        yield (
            f"{plain(used[again[0]])} replayed on {_listed(again)} before, and nothing has refilled "
            f"{'it' if len(again) == 1 else 'them'} since: this run finds what that run left behind; set enable_wipe=1"
        )
    elif recreated:
        yield (
            "the volumes are recreated but not filled: reads of areas never written do not reach the medium; "
            "set enable_wipe=1"
        )
    else:
        yield (
            "nothing fills the devices before this run: reads of areas never written do not reach the medium; "
            "set enable_wipe=1"
        )


def writes_zeros(variables: Mapping[str, str]) -> bool:
    """Whether a leaf writes blocks of zeros."""
    has_fill = bool(variables.get("fill_random", "").strip())
    return _enabled(variables, "fill_null") or (has_fill and not _number(variables, "fill_random"))


def _zeros(leaf: PlannedLeaf) -> Iterator[str]:
    """Zeros are data that many devices do not store."""
    if writes_zeros(leaf.variables):
        name = "fill_random=0" if leaf.variables.get("fill_random", "").strip() else "fill_null=1"
        yield (
            f"{name} writes zeros, as blkreplay did: devices that compress or recognise zeros do not store them; set "
            "fill_random=100"
        )


def _duration(leaf: PlannedLeaf) -> Iterator[str]:
    duration = _number(leaf.variables, "replay_duration")
    if 0 < duration < SHORT_S:
        yield (
            f"replay_duration={duration:g} is short: caches, garbage collection and throttling need minutes to become "
            "steady; use at least 60 s, for recorded loads an hour"
        )
    if _enabled(leaf.variables, "pipe_repeat") or not duration:
        return
    beyond = [
        each
        for each in leaf.instances
        if each.input_ends_s is not None and each.start_s + duration > each.input_ends_s * 1.01
    ]
    if beyond:
        worst = min(beyond, key=lambda each: (each.input_ends_s or 0.0) - each.start_s)
        of = f", for {len(beyond)} of {len(leaf.instances)} devices" if len(leaf.instances) > 1 else ""
        left = max((worst.input_ends_s or 0.0) - worst.start_s, 0.0)
        yield (
            f"{plain(worst.input)} ends {left:,.0f} s after the start of the window, before "
            f"replay_duration={duration:g}{of}: shorten it, reduce replay_delta, or set enable_pipe_repeat=1"
        )


def _common_mode(leaf: PlannedLeaf) -> Iterator[str]:
    """Instances with the same window of the same load issue the same requests at the same time."""
    together: dict[tuple[str, float], int] = defaultdict(int)
    for each in leaf.instances:
        together[each.input, each.start_s] += 1
    (name, _), most = max(together.items(), key=lambda item: item[1], default=(("", 0.0), 0))
    if most > 1:
        yield (
            f"{most} devices replay the same requests of {plain(name)} at the same time, so their bursts coincide; set "
            "replay_delta, or give each its own load"
        )


def _one_thing_at_a_time(leaf: PlannedLeaf) -> Iterator[str]:
    """Siblings that differ in one directory must differ in one variable, or in those of one module."""
    for other in leaf.earlier:
        if len(other.path) != len(leaf.path) or not other.variables:
            continue
        differing = [place for place, pair in enumerate(zip(leaf.path, other.path, strict=True)) if len(set(pair)) > 1]
        if len(differing) != 1:
            continue
        names = sorted(
            name
            for name in leaf.variables.keys() & other.variables.keys()
            if leaf.variables[name] != other.variables[name] and not name.startswith(DERIVED)
        )
        if len(names) > 1 and not module_of(names):
            here, there = leaf.path[differing[0]], other.path[differing[0]]
            more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
            yield (
                f"{plain(here)} differs from {plain(there)} in {', '.join(map(plain, names[:MAX_LISTED]))}{more}: "
                "change one thing at a time, or their effects cannot be separated"
            )
            # One example is enough.
            return


def _space(leaf: PlannedLeaf) -> Iterator[str]:
    for host, free in sorted(leaf.free_bytes.items()):
        if free < MIN_FREE_BYTES:
            yield (
                f"{plain(host)}: only {free / 2**30:.1f} GiB are free in the temporary directory, and results may not "
                "fit; set TMPDIR to a larger one"
            )


def _enabled(variables: Mapping[str, str], module: str) -> bool:
    return bool(_number(variables, f"enable_{module}"))


def _number(variables: Mapping[str, str], name: str) -> float:
    """A variable as a decimal number, 0 if it is not a number: 060 is sixty, as in the confs."""
    try:
        found = float(variables.get(name, "") or 0)
    except ValueError:
        return 0.0
    return found if math.isfinite(found) else 0.0


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(map(plain, names[:MAX_LISTED])) + more
