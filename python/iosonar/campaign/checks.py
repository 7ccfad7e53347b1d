"""Checks before a run: the temperature of drives, RAID arrays, free space. Each failure says what to do."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iosonar import units
from iosonar.campaign import estimate, loads
from iosonar.campaign.hosts import Host
from iosonar.campaign.plan import LeafPlan, without_device
from iosonar.errors import UserError
from iosonar.text import plain

SYS, PROC = "/sys", "/proc"

BYTES_OF_REQUEST = 80
"""The size of a request in a result."""

AGAIN_S = 10.0
"""How often the temperature is read while the drives cool down."""

# Prints facts, a line each: `below DEVICE DISK` for each block device that a device consists of, `heat DISK THOUSANDTHS
# [LIMIT]`, `smart DISK JSON`, `file NUMBER FREE SIZE BLOCKS PATH` and `space NUMBER FREE PATH` (free KiB of the file
# system with that number), and `mdstat LINE`.
_FACTS = r"""
sys=$1 proc=$2 directory=$3
shift 3
space() { echo "$(stat -c %d -- "$1") $(df -Pk -- "$1" | tail -n 1 | { read -r _ _ _ free _; echo "$free"; })"; }
visit() (
    path=$(readlink -f "$sys/class/block/$2") && [ -d "$path" ] || exit 0
    [ ! -e "$path/partition" ] || path=${path%/*}
    name=${path##*/}
    echo "below $1 $name"
    has_heat=
    for file in "$path"/device/hwmon*/temp1_input "$path"/device/hwmon/hwmon*/temp1_input; do
        [ -r "$file" ] || continue
        echo "heat $name $(cat "$file") $(cat "${file%input}max" 2>/dev/null)"
        has_heat=1
    done
    if [ -z "$has_heat" ] && [ -e "$path/device" ] && command -v smartctl >/dev/null; then
        echo "smart $name $(smartctl -A -j "/dev/$name" </dev/null 2>/dev/null | tr -d '\n')"
    fi
    for below in "$path"/slaves/*; do
        [ ! -e "$below" ] || visit "$1" "${below##*/}"
    done
)
PATH=$PATH:/usr/sbin:/sbin
for device; do
    path=$(readlink -f -- "$device")
    if [ -b "$path" ]; then
        visit "$device" "${path##*/}"
    elif [ -f "$path" ]; then
        echo "file $(space "$path") $(stat -c '%s %b' -- "$path") $device"
        source=$(df -P -- "$path" | tail -n 1 | { read -r source _; echo "$source"; })
        [ ! -b "$source" ] || visit "$device" "$(basename "$(readlink -f "$source")")"
    fi
done
echo "space $(space "$directory") $directory"
[ ! -r "$proc/mdstat" ] || sed 's/^/mdstat /' "$proc/mdstat"
"""


@dataclass(frozen=True)
class Limits:
    """What is checked, by the variables `check_…`."""

    temperature: float
    """In degrees Celsius; 0: not checked."""
    raid: bool
    free_bytes: float | None
    """What must stay free; None: not checked."""
    wait_s: float
    """How long drives may cool down."""


@dataclass
class Facts:
    """What a host reports about its devices."""

    below: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The block devices that a device consists of, by device."""
    heat: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The temperature of a drive and its own limit, infinite if it has none."""
    files: list[tuple[int, str, int]] = field(default_factory=list)
    """File system, path and the bytes that are not allocated yet, of each target that is a file."""
    free: dict[int, tuple[str, int]] = field(default_factory=dict)
    """A place in a file system, and its free bytes."""
    temporary: int = -1
    """The file system of the temporary directory."""
    mdstat: list[str] = field(default_factory=list)


def facts(host: Host, devices: Sequence[str], directory: str = "") -> Facts:
    """Reads the facts of a host. `directory` replaces its temporary directory."""
    done = host.script(_FACTS, SYS, PROC, directory or host.directory, *devices)
    if done.code:
        raise UserError(
            f"{host.name}: the checks before the run failed: {done.words}; set enable_check=0 to skip checks"
        )
    return parse(done.text)


def parse(text: str) -> Facts:
    """The facts in the output of the script."""
    found = Facts()
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        words = rest.split(" ")
        if kind == "below":
            found.below[" ".join(words[:-1])].append(words[-1])
        elif kind == "heat" and len(words) > 1 and words[1].lstrip("-").isdigit():
            own = float(words[2]) / 1000 if len(words) > 2 and words[2].isdigit() else 0.0
            # Some drives say 0, or an impossible limit.
            found.heat[words[0]] = (float(words[1]) / 1000, own if 30 <= own <= 120 else float("inf"))
        elif kind == "smart":
            if (degrees := _smart_degrees(rest.partition(" ")[2])) is not None:
                found.heat[words[0]] = (degrees, float("inf"))
        elif kind in ("file", "space") and len(words) > 2 and words[0].isdigit() and words[1].isdigit():
            number, path = int(words[0]), " ".join(words[4 if kind == "file" else 2 :])
            found.free[number] = (path, int(words[1]) * 1024)
            if kind == "space":
                found.temporary = number
            else:
                found.files.append((number, path, max(int(words[2]) - int(words[3]) * 512, 0)))
        elif kind == "mdstat":
            found.mdstat.append(rest)
    return found


def _smart_degrees(text: str) -> float | None:
    try:
        return float(json.loads(text)["temperature"]["current"])
    except (ValueError, TypeError, KeyError):
        return None


def hot(host: str, found: Facts, limit: float) -> Iterator[str]:
    """A sentence for each drive below the devices that is too hot."""
    if limit:
        for name, (degrees, own) in sorted(found.heat.items()):
            if degrees > min(limit, own):
                whose = "check_temperature" if limit <= own else "the limit of the drive"
                yield f"{plain(host)}: {plain(name)} is at {degrees:.0f} °C, above {min(limit, own):.0f} °C ({whose})"


def raid(host: str, found: Facts) -> Iterator[str]:
    """A sentence for each array below the devices that is degraded, inactive or resyncing."""
    names = {name: device for device, below in found.below.items() for name in below}
    for name, lines in _arrays(found.mdstat):
        if name not in names:
            continue
        text = "\n".join(lines)
        is_at = f"{plain(host)}: {name}, below {plain(names[name])}," if name not in names[name] else f"{host}: {name}"
        disks = re.search(r"\[(\d+)/(\d+)\]", text)
        work = re.search(r"(resync|recovery|reshape|check|repair)\s*=\s*(\S+)", text)
        if work:
            yield (
                f"{is_at} runs a {work[1]} ({work[2]}): wait until it ends (mdadm --wait /dev/{name}), or "
                "set check_raid=0"
            )
        elif re.match(r"\S+ : inactive", text):
            yield f"{is_at} is inactive: start it (mdadm --run /dev/{name})"
        elif disks and int(disks[2]) < int(disks[1]):
            yield (
                f"{is_at} is degraded, with {disks[2]} of {disks[1]} disks: replace the failed one and wait for the "
                "recovery, or set check_raid=0"
            )


def _arrays(mdstat: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The arrays of /proc/mdstat, each with its lines."""
    lines: list[str] = []
    for line in [*mdstat, "end :"]:
        if re.match(r"\S+ :", line):
            if lines and lines[0].startswith("md"):
                yield lines[0].split(" ")[0], lines
            lines = []
        lines.append(line)


def space(host: str, found: Facts, needed: Mapping[int, float], spare: float) -> Iterator[str]:
    """A sentence for each file system of a host that is too small for `needed`, bytes by file system."""
    for number, bytes_ in needed.items():
        path, free = found.free[number]
        if bytes_ + spare > free:
            yield (
                f"{plain(host)}: {units.binary_bytes(free)} are free in the file system of {plain(path)}, but "
                f"{units.binary_bytes(bytes_ + spare)} are needed ({units.binary_bytes(spare)} for check_free): make "
                "room, set TMPDIR to another file system, or lower check_free"
            )


@dataclass(frozen=True)
class Target:
    """A device of a leaf, on the host that has its disks, and about how large its result and its load are."""

    host: str
    device: str
    result_bytes: int
    replay_host: str
    does_io: bool = True
    writes: bool = True


def limits(temperature: str, wait: str, raid: str, free: str) -> Limits:
    """The limits that the module gives. Raises UserError for one that is not a number."""
    texts = {"check_temperature": temperature, "check_wait": wait, "check_raid": raid, "check_free": free}
    values = []
    for name, text in texts.items():
        try:
            values.append(float(text))
        except ValueError:
            raise UserError(f"{name}={plain(text)}: a number is expected") from None
    return Limits(values[0], bool(values[2]), values[3] * 2**30 if values[3] >= 0 else None, values[1])


def targets(planned: LeafPlan) -> list[Target]:
    """The devices of a leaf; with iscsi_target_iet, their disks are those of the host that exports them."""
    exported = estimate.is_on(planned.variables, "enable_iscsi_target_iet")
    at = planned.variables.get("iscsi_target", "") if exported else ""
    does_io, writes = not without_device(planned.options), "--reads-only" not in planned.options
    return [
        Target(
            at or each.host,
            each.original if at else each.device,
            estimate.requests(planned, each, loads.info(each.source)) * BYTES_OF_REQUEST,
            each.host,
            does_io,
            writes,
        )
        for each in planned.instances
    ]


def run(
    limits: Limits,
    targets: Sequence[Target],
    leaf: Path,
    get: Callable[[str], Host],
    pause: Callable[[], None],
    say: Callable[[str], None],
) -> None:
    """Checks all hosts; raises UserError with what to do. `pause` is called while drives cool down."""
    until = None
    while True:
        hosts = dict.fromkeys(name for each in targets for name in (each.host, each.replay_host))
        known = {
            name: facts(get(name), [each.device for each in targets if each.host == name and each.does_io])
            for name in hosts
        }
        if limits.raid:
            _refuse([text for name, found in known.items() for text in raid(name, found)])
        if limits.free_bytes is not None:
            _refuse(list(_lacking(known, targets, leaf, limits.free_bytes)))
        too_hot = [text for name, found in known.items() for text in hot(name, found, limits.temperature)]
        if not too_hot:
            return
        if until is None:
            until = time.monotonic() + limits.wait_s
        if time.monotonic() >= until:
            raise UserError(f"{_first(too_hot)}: cool the drives, or raise check_temperature or check_wait")
        say(f"{_first(too_hot)}: waiting up to {units.span(limits.wait_s)} (check_wait) until the drives are cooler")
        end = time.monotonic() + AGAIN_S
        while time.monotonic() < min(end, until):
            pause()
            time.sleep(0.2)


def _lacking(known: Mapping[str, Facts], targets: Sequence[Target], leaf: Path, spare: float) -> Iterator[str]:
    for name, found in known.items():
        needed: dict[int, float] = defaultdict(float)
        needed[found.temporary] += sum(each.result_bytes for each in targets if each.replay_host == name)
        writes = {each.device for each in targets if each.host == name and each.writes}
        for number, path, bytes_ in found.files:
            if path in writes:
                needed[number] += bytes_
        yield from space(name, found, {number: each for number, each in needed.items() if number in found.free}, spare)
    here = Facts()
    status = leaf.stat()

    here.free[status.st_dev] = (str(leaf), shutil.disk_usage(leaf).free)
    yield from space("the controller", here, {status.st_dev: sum(each.result_bytes for each in targets)}, spare)


def _refuse(failures: Sequence[str]) -> None:
    if failures:
        raise UserError(_first(failures))


def _first(failures: Sequence[str]) -> str:
    return failures[0] + (f" (and {len(failures) - 1} more)" if len(failures) > 1 else "")
