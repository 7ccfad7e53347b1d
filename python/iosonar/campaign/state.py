"""The state of a leaf: `campaign.json`, which says what the last attempt did, and the results in its directory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from iosonar.campaign.names import OF_CALLS
from iosonar.errors import UserError
from iosonar.text import plain, shown, why_wrong

FILE_NAME = "campaign.json"
VERSION = 1

RESULT_SUFFIXES = (".replay.gz", ".replay.parquet", OF_CALLS)
"""The suffixes of finished results."""

STATES = ("running", "finishing", "done", "failed", "interrupted")
"""The states of a leaf. One that is finishing has its results; functions of its finish phase are still to be called."""

UNFINISHED = ("finishing", "interrupted")
"""States in which a leaf that has its results is not done: it is not replayed again, but the next start finishes it."""

KILLED = "the campaign was killed"

REPLAYED = "replayed"
"""What people see of a leaf in such a state while nothing works on it."""

T = TypeVar("T")


@dataclass
class HostSample:
    """The load average of a host over a minute, and the free space of its temporary directory, at one time."""

    at: float = 0.0
    """Seconds since 1970."""
    load1: float = 0.0
    tmp_free_bytes: int = 0


@dataclass
class InstanceState:
    """One replay of a leaf: a host, a device and an input."""

    host: str = ""
    device: str = ""
    device_original: str = ""
    input: str = ""
    input_sha256: str = ""
    output: str = ""
    """The name of the result in the leaf's directory."""
    state: str = ""
    began: bool = False
    """Whether it got its start, so that it may have changed the device."""
    exit_code: int | None = None
    reason: str = ""
    boot_id: str = ""
    """Of its host's kernel: another one after a restart."""
    clock_offset_s: float | None = None
    """The host's CLOCK_MONOTONIC minus the controller's at the start; older results have CLOCK_REALTIME here."""
    clock_uncertainty_s: float | None = None
    clock_drift_ppm: float | None = None
    """How much faster the host's clock runs."""
    clock_drift_uncertainty_ppm: float | None = None
    clock_exchanges: int | None = None
    start_skew_s: float | None = None
    """How much later than the common start it began; the truth differs by at most `start_skew_uncertainty_s`."""
    start_skew_uncertainty_s: float | None = None
    device_state: dict[str, Any] | None = None
    """A sample of the device before the replay, if `state_sample` is set: its hash, its blocks, those that are zero."""
    summary: dict[str, Any] | None = None
    """What `iosonar replay --json` printed."""


@dataclass
class LeafState:
    """The last attempt to run a leaf."""

    leaf: str = ""
    """The path of the leaf below the top of the campaign."""
    state: str = "running"
    reason: str = ""
    attempt: int = 1
    started: float | None = None
    """Seconds since 1970."""
    ended: float | None = None
    path: list[str] = field(default_factory=list)
    """The components of `leaf`."""
    variables: dict[str, str] = field(default_factory=dict)
    """The scalar variables of the confs, as the run phase saw them."""
    options: list[str] | None = None
    """Those of `iosonar replay`, the same for all instances."""
    common_options: list[str] | None = None
    """What they would be without the confs of the leaf's path."""
    instances: list[InstanceState] = field(default_factory=list)
    hosts: dict[str, list[HostSample]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    took_s: dict[str, float] = field(default_factory=dict)
    """How long each function of its phases took."""
    finished: list[str] = field(default_factory=list)
    """The functions of the finish phase that have ended."""
    recorded: bool = True
    """False for results without `campaign.json`, as another program leaves them: their variables are unknown."""


def read(leaf: Path) -> LeafState | None:
    """The state of a leaf; None if it was never started.

    A leaf that has results but no `campaign.json` is done.

    Raises UserError if `campaign.json` cannot be read.
    """
    path = leaf / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        results = finished_results(leaf)
        return _without_record(leaf, results) if results else None
    except (OSError, UnicodeError) as error:
        raise UserError(f"cannot read {shown(path)}: {getattr(error, 'strerror', None) or 'it is not text'}") from error
    try:
        return _parse(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(
            f"{shown(path)} is damaged: {why_wrong(error)}; remove it (results in the directory still count as done)"
        ) from error


def last_attempt(leaf: Path) -> list[LeafState]:
    """The attempt before this one, if there was one and its state can be read."""
    try:
        known = read(leaf)
    except UserError:
        known = None
    return [known] if known and known.recorded else []


def write(leaf: Path, state: LeafState) -> None:
    """Writes `campaign.json` atomically, and waits until it is on the disk."""
    path = leaf / FILE_NAME
    content = {"version": VERSION, **asdict(state)}
    del content["recorded"]
    unfinished = leaf / f".{FILE_NAME}.{os.getpid()}.unfinished"
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            # Bytes of a path that are not UTF-8 become escaped surrogates.
            json.dump(content, file, indent=1, ensure_ascii=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        directory = os.open(leaf, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise UserError(f"cannot write {shown(path)}: {error.strerror}") from error


def finished_results(leaf: Path) -> list[Path]:
    """The result files of a leaf, by name. Hidden files are unfinished."""
    try:
        found = list(leaf.iterdir())
    except OSError as error:
        raise UserError(f"cannot read {shown(leaf)}: {error.strerror}") from error
    return sorted(
        path
        for path in found
        if path.name.endswith(RESULT_SUFFIXES) and not path.name.startswith(".") and path.is_file()
    )


def is_done(leaf: Path) -> bool:
    """Whether a leaf has its results, and nothing is left to do for it."""
    if not finished_results(leaf):
        return False
    try:
        known = read(leaf)
    except UserError:
        # A damaged file says nothing against the results.
        return True
    return known is None or known.state not in UNFINISHED


def seen(known: LeafState, *, has_results: bool, is_running: bool) -> tuple[str, str]:
    """The state of a leaf as people see it, and the reason. `is_running`: whether a campaign runs in its tree."""
    if has_results and known.state in UNFINISHED:
        if known.state == "finishing" and is_running:
            return known.state, ""
        return REPLAYED, f"{known.reason or KILLED}; the next start finishes it without another replay"
    if has_results:
        return "done", known.reason
    if known.state == "done":
        return "to do", "its results were removed"
    if known.state in ("running", "finishing") and not is_running:
        return "interrupted", KILLED
    return known.state, known.reason


def _without_record(leaf: Path, results: list[Path]) -> LeafState:
    instances = [InstanceState(output=path.name, state="done") for path in results]
    return LeafState(leaf.name, "done", path=[leaf.name], instances=instances, recorded=False)


def _parse(found: Any) -> LeafState:
    """The state in a JSON object. Keys that are missing get their defaults, unknown keys are ignored."""
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    version = _value(found, "version", _integer, VERSION)
    if version > VERSION:
        raise ValueError(f"it has version {version}, and this iosonar reads version {VERSION}: use a newer iosonar")
    state = _value(found, "state", _text, "running")
    if state not in STATES:
        raise ValueError(f"state is {state!r}, not one of {', '.join(STATES)}")
    return LeafState(
        leaf=_value(found, "leaf", _text, ""),
        state=state,
        reason=_value(found, "reason", _text, ""),
        attempt=_value(found, "attempt", _integer, 1),
        started=_value(found, "started", _number, None),
        ended=_value(found, "ended", _number, None),
        path=_value(found, "path", _list(_text), []),
        variables=_value(found, "variables", _values(_text), {}),
        options=_value(found, "options", _list(_text), None),
        common_options=_value(found, "common_options", _list(_text), None),
        instances=_value(found, "instances", _list(_instance), []),
        hosts=_value(found, "hosts", _values(_list(_sample)), {}),
        notes=_value(found, "notes", _list(_text), []),
        took_s=_value(found, "took_s", _values(_number), {}),
        finished=_value(found, "finished", _list(_text), []),
    )


def _instance(found: Any) -> InstanceState:
    if not isinstance(found, dict):
        raise ValueError("an instance is not an object")
    names = ("host", "device", "device_original", "input", "input_sha256", "output", "state", "reason", "boot_id")
    numbers = (
        *("clock_offset_s", "clock_uncertainty_s", "clock_drift_ppm", "clock_drift_uncertainty_ppm"),
        *("start_skew_s", "start_skew_uncertainty_s"),
    )
    return InstanceState(
        **{name: _value(found, name, _text, "") for name in names},
        **{name: _value(found, name, _number, None) for name in numbers},
        began=_value(found, "began", _boolean, _value(found, "state", _text, "") == "done"),
        exit_code=_value(found, "exit_code", _integer, None),
        clock_exchanges=_value(found, "clock_exchanges", _integer, None),
        device_state=_value(found, "device_state", _object, None),
        summary=_value(found, "summary", _object, None),
    )


def _sample(found: Any) -> HostSample:
    if not isinstance(found, dict):
        raise ValueError("a sample of a host is not an object")
    return HostSample(
        _value(found, "at", _number, 0.0),
        _value(found, "load1", _number, 0.0),
        _value(found, "tmp_free_bytes", _integer, 0),
    )


def _value(found: Mapping[str, Any], name: str, of: Callable[[Any], T], missing: Any) -> Any:
    value = found.get(name)
    if value is None:
        return missing
    try:
        return of(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{plain(repr(value))[:60]} is not a string")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{plain(repr(value))[:60]} is not an integer")
    return value


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"{plain(repr(value))[:60]} is not true or false")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"{plain(repr(value))[:60]} is not a number")
    return float(value)


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value


def _list(of: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    def parse(value: Any) -> list[T]:
        if not isinstance(value, list):
            raise ValueError("it is not a list")
        return [of(each) for each in value]

    return parse


def _values(of: Callable[[Any], T]) -> Callable[[Any], dict[str, T]]:
    def parse(value: Any) -> dict[str, T]:
        return {name: of(each) for name, each in _object(value).items()}

    return parse
