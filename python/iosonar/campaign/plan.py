"""What a leaf replays: its instances (host, device, input, result) and the options of `iosonar replay`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from iosonar import units
from iosonar.campaign import inputs, loads, names
from iosonar.campaign.hosts.names import checked_host
from iosonar.campaign.shell import Shell
from iosonar.errors import UserError
from iosonar.pacing import Changes, options_that_change
from iosonar.text import plain

GLOB = re.compile(r"[*?\[]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

CONFLICTS = {"with-conflicts": "allow", "with-drop": "drop", "with-partial": "partial", "with-ordering": "ordering"}
VERIFY = {"no-overhead": "off", "with-verify": "reads", "with-final-verify": "final", "with-paranoia": "paranoia"}

WITHOUT_MEANING = {
    "fan_out": "there is one issuing loop",
    "no_dispatcher": "there is one issuing loop",
    "enable_compress_ssh": "loads and results are compressed files",
    "omit_tmp_cleanup": "temporary directories are always removed",
}
"""Variables of blkreplay that are accepted and have no effect."""

FILTERS = "input_pipe_list"

NO_IO = ("null", "dry-run", "simulate")
"""Values of --engine that do no I/O."""

SHORT = {"-o": "--output"}
ALIASES = {**SHORT, "--threads": "--depth", "-t": "--target"}
"""Other names of options of `iosonar replay`."""

VARIABLES_OF_INSTANCES = {"--target": "replay_device_list", "--output": "output_label"}
"""Options that each instance has, and the variables that they come from."""

OF_CAMPAIGN = {
    "--json": "remove it",
    "--progress": "remove it",
    **{option.name: "remove it" for option in options_that_change(Changes.NOTHING)},
    "--repeat": "remove it, and add a leaf for each repetition",
}
"""Options by which the campaign starts and watches its replays, and what to do instead."""

Expand = Callable[[str, str], Sequence[str]]
"""The devices of a host that match a pattern."""


@dataclass
class Instance:
    """One replay."""

    host: str
    device: str
    original: str
    """The device as the conf named it, before modules replaced it."""
    source: Path
    """The input file."""
    output: str
    """The name of the result."""
    start_s: float = 0.0
    """Where in the load the replay starts."""
    end_s: float | None = None
    """Where in a load of calls it ends; of requests, the options say it."""
    of_calls: bool = False
    """Whether the load is of calls, and the device a directory."""
    options: Sequence[str] = ()
    """Further options of this replay alone."""


@dataclass(frozen=True)
class LeafPlan:
    """What a leaf replays, and how."""

    instances: Sequence[Instance]
    options: Sequence[str]
    """Those of `iosonar replay`, the same for all instances."""
    variables: Mapping[str, str]
    """The variables of the confs."""
    functions: Mapping[str, Sequence[str]]
    """Those of each phase."""
    filters: str = ""
    """The commands that each load goes through before it is replayed."""


def devices(shell: Shell, expand: Expand) -> list[tuple[str, str]]:
    """The pairs of host and device: as listed, or the product of both lists, host by host."""
    hosts = inputs.words(shell.scalar("replay_host_list"))
    if not hosts:
        raise UserError("replay_host_list is empty: name the hosts, such as localhost, or host:device pairs")
    split = [_split_pair(host) for host in hosts]
    if any(device for _, device in split):
        for host, device in split:
            if not host or not device:
                raise UserError(f"replay_host_list: {plain(host or device)}: either all are host:device pairs, or none")
        pairs = split
    else:
        patterns = inputs.words(shell.scalar("replay_device_list"))
        if not patterns:
            raise UserError("replay_device_list is empty: name the devices, such as /dev/sdb")
        pairs = [(host, device) for host, _ in split for device in patterns]
    for host, _ in pairs:
        checked_host(host)
    found = [(host, device) for host, pattern in pairs for device in _expanded(host, pattern, expand)]
    most = integer(shell, "replay_max_parallelism", 0)
    return found[:most] if most > 0 else found


def instances(
    shell: Shell, directories: Sequence[Path], assigned: Sequence[str] = (), *, fetch: bool = True
) -> list[Instance]:
    """The instances, from the arrays that the modules may have changed.

    `assigned` is what `input_file` was before modules could change it. If they did not, `input_file_list` counts.
    Without `fetch`, the inputs may be addresses: see `inputs.find`.
    """
    hosts, targets, originals = (shell.get(name) for name in ("replay_host", "replay_device", "replay_device_orig"))
    count = len(hosts)
    if not count or len(targets) != count:
        counts = f"{units.counted(count, 'host')} and {units.counted(len(targets), 'device')}"
        raise UserError(f"{counts}: a module changed only one of the two lists")
    originals = originals if len(originals) == count else targets
    files = _inputs(shell, directories, assigned, count, fetch)
    label = shell.scalar("output_label") or "TEST"
    form = shell.scalar("output_format") or "replay.gz"
    if form not in names.SUFFIXES:
        raise UserError(f"output_format={plain(form)}: use replay.gz or parquet")
    of_calls = _are_of_calls(files)
    suffix = names.OF_CALLS if of_calls else names.SUFFIXES[form]
    start, delta = seconds(shell, "replay_start", 0.0), seconds(shell, "replay_delta", 0.0)
    duration = seconds(shell, "replay_duration", 0.0)
    found = []
    for index, (host, device, original) in enumerate(zip(hosts, targets, originals, strict=True)):
        checked_host(host)
        source = files[index % len(files)]
        parts = [
            part
            for variable, default, part in (
                ("output_add_path", 1, shell.scalar("sub_prefix").strip(".")),
                ("output_add_host", 1, host),
                ("output_add_device", 1, names.device_part(original)),
                ("output_add_input", 0, names.input_part(str(source))),
            )
            if integer(shell, variable, default)
        ]
        begin = start + index * delta
        end = begin + duration if of_calls and duration else None
        output = names.output_name(label, parts, suffix)
        found.append(Instance(host, device, original, source, output, begin, end, of_calls))
    if all(file.exists() for file in files):
        # A pattern of addresses may stand for several inputs.
        names.refuse_duplicates([instance.output for instance in found])
    return found


def _are_of_calls(files: Sequence[Path]) -> bool:
    """Whether the loads are of calls. Raises UserError if some are, and others of requests."""
    known = {known.of_calls: file for file in files if (known := loads.info(file))}
    if len(known) > 1:
        raise UserError(
            f"{plain(str(known[True]))} is of calls, {plain(str(known[False]))} of requests: use two leaves"
        )
    return True in known


def _inputs(shell: Shell, directories: Sequence[Path], assigned: Sequence[str], count: int, fetch: bool) -> list[Path]:
    changed = shell.get("input_file")
    if fetch and changed and changed != list(assigned):
        if len(changed) != count:
            raise UserError(
                f"{count} devices and {len(changed)} input files: a module changed only one of the two lists"
            )
        files = [directories[0] / name for name in changed]
        for file in files:
            if not file.is_file():
                raise UserError(f"input_file: no file {plain(str(file))}")
        return files
    files = inputs.find(shell.scalar("input_file_list"), directories, fetch=fetch)
    if not files:
        raise UserError("input_file_list is empty: name a load")
    return files


def options(shell: Shell, note: Callable[[str], None]) -> list[str]:
    """The options of `iosonar replay` that all instances of a leaf share."""
    for name, why in WITHOUT_MEANING.items():
        if shell.scalar(name) not in ("", "0"):
            note(f"{name} has no effect: {why}")
    given: list[tuple[str, tuple[str, ...]]] = [
        ("threads", ("--depth", str(integer(shell, "threads", 512)))),
        ("cmode", ("--conflicts", _choice(shell, "cmode", CONFLICTS, "with-partial", note))),
        ("vmode", ("--verify", _choice(shell, "vmode", VERIFY, "no-overhead", note))),
        ("strong", ("--strong", str(integer(shell, "strong", 1)))),
    ]
    if (filled := fill(shell)) is not None:
        given.append(("fill_random", ("--fill-random", decimal(filled))))
    if duration := seconds(shell, "replay_duration", 0):
        given.append(("replay_duration", ("--duration", decimal(duration))))
    if shell.scalar("speedup") and (speedup := number(shell, "speedup", 1)) != 1:
        given.append(("speedup", ("--speedup", decimal(speedup))))
    if offset := number(shell, "replay_out_start", 0):
        given.append(("replay_out_start", ("--output-offset", decimal(offset))))
    if most := integer(shell, "bottleneck", 0):
        given.append(("bottleneck", ("--bottleneck", str(most))))
    if ahead_s := seconds(shell, "ahead_limit", 0):
        given.append(("ahead_limit", ("--ahead-time", decimal(ahead_s))))
    if integer(shell, "verbose", 0) >= 10:
        given.append(("verbose", ("--verbose",)))
    flags = [name for name in ("o_sync", "no_o_direct") if integer(shell, name, 0)]
    given += [(name, ("--" + name.replace("_", "-"),)) for name in flags]
    if simulated := seconds(shell, "simulate_io", 0):
        given.append(("simulate_io", ("--engine", "simulate")))
        given.append(("simulate_io", ("--simulate", f"constant={simulated:.9f}s")))
    elif integer(shell, "fake_io", 0):
        given.append(("fake_io", ("--engine", "null")))
    elif integer(shell, "dry_run", 0):
        given.append(("dry_run", ("--engine", "dry-run")))
    more = shell.get("replay_options")
    variables = {option: variable for variable, (option, *_) in given}
    if seconds(shell, "replay_start", 0) or seconds(shell, "replay_delta", 0):
        variables["--start"] = "replay_start"
    refuse_given(more, variables, ALIASES)
    return [word for _, words in given for word in words] + more


def window(shell: Shell, *, of_calls: bool) -> list[str]:
    """The options of the window, of which each instance has its own."""
    start, duration = seconds(shell, "replay_start", 0.0), seconds(shell, "replay_duration", 0.0)
    end = ("--end", decimal(start + duration)) if of_calls and duration else ()
    return [*(("--start", decimal(start)) if start else ()), *end]


def settings(shell: Shell, note: Callable[[str], None]) -> list[str]:
    """The options of a replay of requests with the start of the window."""
    return [*options(shell, note), *window(shell, of_calls=False)]


def refuse_given(more: Sequence[str], given: Mapping[str, str], aliases: Mapping[str, str]) -> None:
    """Refuses further options that the campaign gives, from the variables of `given` or by itself."""
    for word in more:
        name = word.split("=")[0] if word.startswith("--") else word[:2]
        name = aliases.get(name, name)
        if variable := given.get(name, VARIABLES_OF_INSTANCES.get(name)):
            raise UserError(f"replay_options: the campaign sets {name} from {variable}; set {variable}, remove {name}")
        if name in OF_CAMPAIGN:
            raise UserError(f"replay_options: {name} is the campaign's own: {OF_CAMPAIGN[name]}")
    if "--loop" in more and not any(word.split("=")[0] == "--for" for word in more):
        raise UserError("replay_options: a leaf with --loop never ends: add --for")


def without_device(options: Sequence[str]) -> bool:
    """Whether replays with these options do no I/O on their devices."""
    words = [word for option in options for word in option.split("=", 1)]
    return (
        "--simulate" in words
        or "--fake-io" in words
        or any(word == "--engine" and value in NO_IO for word, value in pairwise(words))
    )


def fill(shell: Shell) -> float | None:
    """The percentage of each block that is random; None if no variable says so, and all of it is."""
    has_fill = shell.scalar("fill_random").strip()
    if integer(shell, "fill_null", 0):
        if has_fill:
            raise UserError("fill_null and fill_random are both set: remove one of them")
        return 0.0
    return number(shell, "fill_random", 0) if has_fill else None


def number(shell: Shell, name: str, default: float) -> float:
    """The number in a variable."""
    text = shell.scalar(name).strip()
    if not text:
        return default
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise UserError(f"{name}={plain(text)}: a number is expected")
    return float(text)


def seconds(shell: Shell, name: str, default: float) -> float:
    """The time in a variable."""
    value = number(shell, name, default)
    if value < 0:
        raise UserError(f"{name}={value:g}: a number of seconds is expected, 0 or more")
    return value


def integer(shell: Shell, name: str, default: int) -> int:
    """The integer in a variable; leading zeros are decimal."""
    value = number(shell, name, default)
    if value != int(value):
        raise UserError(f"{name}={value:g}: an integer is expected")
    return int(value)


def _choice(shell: Shell, name: str, choices: dict[str, str], default: str, note: Callable[[str], None]) -> str:
    value = shell.scalar(name)
    if not value:
        note(f"{name} is not set: {default} is used")
        value = default
    if value not in choices:
        raise UserError(f"{name}={plain(value)}: use one of {', '.join(choices)}")
    return choices[value]


def decimal(value: float) -> str:
    """A number as a word of a command line."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


def _split_pair(word: str) -> tuple[str, str]:
    """Host and device; the device is empty if the word has none. An IPv6 address is in brackets there."""
    if address := re.match(r"([^@:]*@)?\[([^\]]*)\]", word):
        return f"{address[1] or ''}{address[2]}", word[address.end() :].removeprefix(":")
    host, _, device = word.partition(":")
    return host, device


def _expanded(host: str, pattern: str, expand: Expand) -> Sequence[str]:
    if plain(pattern) != pattern or pattern.startswith("-"):
        raise UserError(f"invalid name of a device, {plain(pattern)}")
    if not GLOB.search(pattern):
        return [pattern]
    found = expand(host, pattern)
    if not found:
        raise UserError(f"no device {pattern} on {host}")
    return found
