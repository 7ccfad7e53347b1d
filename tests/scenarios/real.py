"""Runs on real devices of this machine: loop devices, zram, throttled, with neighbours. Needs root.

All that is set up is undone at the end, whatever happens: devices are detached, files and control groups removed.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from commands import ScenarioError, call, environment, reason

TMPFS = Path("/dev/shm")
ZRAM = Path("/sys/class/zram-control")
BLKIO = Path("/sys/fs/cgroup/blkio")
UNIFIED = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
# The names of a limit in both versions of control groups.
LIMITS = {
    "read_iops": ("blkio.throttle.read_iops_device", "riops"),
    "write_iops": ("blkio.throttle.write_iops_device", "wiops"),
    "read_bps": ("blkio.throttle.read_bps_device", "rbps"),
    "write_bps": ("blkio.throttle.write_bps_device", "wbps"),
}
SETTLE_S = 1.5


def run(command: list[str], on: Mapping[str, Any], place: Path) -> None:
    """Runs this `iosonar` command on the described device.

    `on` has:

    - `device`: loop, zram, or file (with `file_size`, on a `file_system`); `where`: tmpfs or disk; `size`
    - `fill`: false if it was never written; `direct`: false for a loop device through the page cache
    - `queue`: settings in sysfs; `limits`: those of a control group, named as in `LIMITS`
    - `neighbour`: words of `iosonar generate`: a load that is read on the same device meanwhile
    - `busy`: number of processes that only compute, at this `nice` value
    - `count`: number of devices, named a, b, c; `limited`: which of them has the limits
    """
    with contextlib.ExitStack() as stack:
        names = [chr(ord("a") + number) for number in range(on.get("count", 1))]
        devices = {name: stack.enter_context(_device(on, place, name)) for name in names}
        group = None
        if limits := on.get("limits"):
            group = stack.enter_context(_limited(devices[on.get("limited", "a")], limits))
        if words := on.get("neighbour"):
            stack.enter_context(_neighbour(shlex.split(words), devices["a"], place, group))
        if count := on.get("busy"):
            stack.enter_context(_busy(count, on.get("nice", 0)))
            time.sleep(SETTLE_S)
        targets = [f"{name}={path}" if len(devices) > 1 else str(path) for name, path in devices.items()]
        words = [*command, *(word for target in targets for word in ("--target", target)), "--force"]
        _in_group(words, group, is_first=not on.get("busy"))


def _device(on: Mapping[str, Any], place: Path, name: str) -> contextlib.AbstractContextManager[Path]:
    kind = on.get("device", "loop")
    if kind == "zram":
        return _zram(on["size"], on.get("fill", True))
    if kind == "loop":
        return _loop(on, place, name)
    return _file(on, place, name)


@contextlib.contextmanager
def _loop(on: Mapping[str, Any], place: Path, name: str) -> Iterator[Path]:
    directory = TMPFS if on.get("where", "tmpfs") == "tmpfs" else place
    backing = directory / f"iosonar-scenario-{os.getpid()}-{name}.img"
    try:
        with backing.open("wb") as file:
            file.truncate(_bytes(on["size"]))
        words = ["--direct-io=on"] if on.get("direct", True) else []
        found = _output("losetup", "--find", "--show", *words, str(backing))
        device = Path(found)
        try:
            for key, value in on.get("queue", {}).items():
                Path(f"/sys/block/{device.name}/queue/{key}").write_text(str(value))
            if on.get("fill", True):
                call("device", "wipe", "--force", device)
            yield device
        finally:
            _quietly("losetup", "--detach", found)
            _reset(device)
    finally:
        backing.unlink(missing_ok=True)


def _reset(device: Path) -> None:
    """Settings of the queue outlive the backing file of a loop device."""
    queue = Path(f"/sys/block/{device.name}/queue")
    with contextlib.suppress(OSError):
        (queue / "scheduler").write_text("none")
        (queue / "rotational").write_text("0")
        (queue / "nr_requests").write_text("128")


@contextlib.contextmanager
def _file(on: Mapping[str, Any], place: Path, name: str) -> Iterator[Path]:
    """A file on a file system of its own, on a loop device."""
    with _loop(dict(on) | {"fill": False}, place, name) as device:
        mount = place / f"mount-{name}"
        mount.mkdir()
        try:
            _output(f"mkfs.{on.get('file_system', 'ext4')}", "-q", str(device))
            _output("mount", str(device), str(mount))
            try:
                path = mount / "target.img"
                with path.open("wb") as file:
                    file.truncate(_bytes(on["file_size"]))
                if on.get("fill", True):
                    call("device", "wipe", "--force", path)
                yield path
            finally:
                _quietly("umount", str(mount))
        finally:
            mount.rmdir()


@contextlib.contextmanager
def _zram(size: str, fill: bool) -> Iterator[Path]:
    number = (ZRAM / "hot_add").read_text().strip()
    device = Path(f"/dev/zram{number}")
    try:
        Path(f"/sys/block/zram{number}/disksize").write_text(str(_bytes(size)))
        if fill:
            call("device", "wipe", "--force", device)
        yield device
    finally:
        with contextlib.suppress(OSError):
            Path(f"/sys/block/zram{number}/reset").write_text("1")
        (ZRAM / "hot_remove").write_text(number)


@contextlib.contextmanager
def _limited(device: Path, limits: Mapping[str, int]) -> Iterator[Path]:
    """A control group whose processes have these limits on the device."""
    number = device.stat().st_rdev
    of = f"{os.major(number)}:{os.minor(number)}"
    name = f"iosonar-scenario-{os.getpid()}"
    if (BLKIO / "blkio.throttle.read_iops_device").exists():
        group = BLKIO / name
        texts = [(LIMITS[key][0], f"{of} {value}") for key, value in limits.items()]
    else:
        top = next((at for at in UNIFIED if "io" in _text(at / "cgroup.controllers").split()), None)
        if top is None:
            raise ScenarioError("this machine has no control group that limits I/O")
        (top / "cgroup.subtree_control").write_text("+io")
        group = top / name
        texts = [("io.max", of + "".join(f" {LIMITS[key][1]}={value}" for key, value in limits.items()))]
    group.mkdir()
    try:
        for file, text in texts:
            (group / file).write_text(text)
        yield group
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


@contextlib.contextmanager
def _neighbour(words: list[str], device: Path, place: Path, group: Path | None) -> Iterator[None]:
    """A second replay on the same device, of reads only, until the first has ended."""
    load = place / "neighbour.load.parquet"
    call("generate", words[0], load, *words[1:], "--reads", 1, "--seed", 4711)
    command = ["replay", str(load), "--reads-only", "--no-sample", "--target", str(device), "--wait", "sleep"]
    process = _started([*command, "--output", str(place / "neighbour.replay.parquet")], group)
    try:
        time.sleep(SETTLE_S)
        if process.poll() is not None:
            raise ScenarioError("the neighbour ended before the run")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _busy(count: int, nice: int) -> Iterator[None]:
    """Processes that only compute."""

    def nicer() -> None:
        os.setpriority(os.PRIO_PROCESS, 0, nice)

    text = "while True: pass"
    started: list[subprocess.Popen[bytes]] = []
    try:
        while len(started) < count:
            started.append(subprocess.Popen([sys.executable, "-c", text], preexec_fn=nicer))
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def _started(words: list[str], group: Path | None, is_first: bool = False) -> subprocess.Popen[bytes]:
    """An `iosonar` command, in the control group from its start on; as `is_first`, before all others.

    What other programs of this machine do must not decide whether a replay is faithful.
    """

    def join() -> None:
        if group:
            (group / "cgroup.procs").write_text("0")
        if is_first:
            # Where sessions share the processors, the nice value counts only within a session, and it has its own.
            os.setsid()
            with contextlib.suppress(OSError):
                Path("/proc/self/autogroup").write_text("-20")
            os.setpriority(os.PRIO_PROCESS, 0, -20)

    out, errors = subprocess.DEVNULL, subprocess.PIPE
    return subprocess.Popen(["iosonar", *words], env=environment(), preexec_fn=join, stdout=out, stderr=errors)


def _in_group(words: list[str], group: Path | None, is_first: bool) -> None:
    process = _started(words, group, is_first)
    try:
        _, errors = process.communicate(timeout=300)
    except BaseException:
        process.kill()
        process.wait()
        raise
    if process.returncode not in (0, 4):
        raise ScenarioError(f"iosonar {words[0]}: {reason(errors.decode(errors='replace'), process.returncode)}")


def _output(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise ScenarioError(f"{words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def _quietly(*words: str) -> None:
    subprocess.run(words, capture_output=True, env=environment())


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _bytes(size: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(size[:-1]) * units[size[-1]] if size[-1] in units else int(size)
