#!/usr/bin/env python3
"""Does the verdict see what stalls the replayer? The kernel's clock is the judge.

    bench/stalls.py --iosonar target/release/iosonar [--seconds S]

Replays 1000 requests/s on a fast loop device, and as many calls to a file on it, with direct I/O, at several depths. In the
middle of each run, something stalls the replayer for a second: a stop signal, a frozen cgroup, other programs on its
processor, or a file system of the result that takes no writes. The device takes microseconds, so the delays are the
replayer's. Each row has the share within 50 µs by the verdict, by the kernel's `block_bio_queue`, and whether the run was
called faithful. Needs root.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from common import bench, keep, options, sh
from judge import EVENT, direction, judged
from tracefs import Recording

PERIOD_US, BLOCK = 1000, 4096
FREEZER = Path("/sys/fs/cgroup")


def tree(process: int) -> list[int]:
    """A process and all that it started: the supervisor of a replay, and the replay."""
    children = [
        word for task in Path(f"/proc/{process}/task").iterdir() for word in (task / "children").read_text().split()
    ]
    return [process, *(each for child in children for each in tree(int(child)))]


@contextmanager
def stopped(process: subprocess.Popen, _: Path) -> Iterator[None]:
    """SIGSTOP of all processes of the replay."""
    processes = tree(process.pid)
    for each in processes:
        os.kill(each, signal.SIGSTOP)
    yield
    for each in processes:
        os.kill(each, signal.SIGCONT)


@contextmanager
def frozen(process: subprocess.Popen, _: Path) -> Iterator[None]:
    """A frozen cgroup, of version 2 or 1."""
    top = next(path for path in (FREEZER, FREEZER / "unified", FREEZER / "freezer") if (path / "cgroup.procs").exists())
    group = top / f"iosonar-bench-{os.getpid()}"
    group.mkdir()
    state = (group / "cgroup.freeze", "1", "0") if (group / "cgroup.freeze").exists() else None
    file, on, off = state or (group / "freezer.state", "FROZEN", "THAWED")
    for each in tree(process.pid):
        (group / "cgroup.procs").write_text(str(each))
    file.write_text(on)
    yield
    file.write_text(off)
    process.wait()
    group.rmdir()


@contextmanager
def preempted(process: subprocess.Popen, _: Path) -> Iterator[None]:
    """Programs of higher priority on each processor."""
    hogs = [subprocess.Popen(["nice", "-n", "-19", "sh", "-c", "while :; do :; done"]) for _ in range(8)]
    yield
    for hog in hogs:
        hog.kill()
        hog.wait()


@contextmanager
def slow_log(_: subprocess.Popen, results: Path) -> Iterator[None]:
    """The file system of the result takes no writes."""
    sh("fsfreeze", "--freeze", results)
    yield
    sh("fsfreeze", "--unfreeze", results)


@contextmanager
def nothing(_: subprocess.Popen, __: Path) -> Iterator[None]:
    yield


STALLS = {"none": nothing, "SIGSTOP": stopped, "frozen cgroup": frozen, "preempted": preempted, "slow log": slow_log}


@contextmanager
def file_system(place: Path, name: str, mib: int) -> Iterator[tuple[Path, str]]:
    """ext4 on a loop device of its own: its mount point and the device."""
    image, mount = place / f"{name}.img", place / name
    image.touch(), os.truncate(image, mib << 20), mount.mkdir()
    device = sh("losetup", "--find", "--show", "--direct-io=on", image).strip()
    try:
        sh("mkfs.ext4", "-q", device), sh("mount", device, mount)
        yield mount, device
    finally:
        sh("umount", mount), sh("losetup", "--detach", device)


def judge(device: str, command: list[str], stall: Callable, results: Path, seconds: int) -> dict:
    """Runs a replay that is stalled in its middle, under the kernel's eyes."""
    with Recording(device, "block_bio_queue") as recording:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(seconds / 2)
            with stall(process, results):
                time.sleep(1)
            message = process.stderr.read()
        recording.stop()
        found = [m for m in map(EVENT.search, recording.lines()) if m]
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: {message}")
    reads = [float(m[1]) * 1e6 + int(m[2]) for m in found if direction(m[3]) == "R"][
        -seconds * 1_000_000 // PERIOD_US :
    ]
    # In the order of the load: all have one place.
    scheduled = [(float(i * PERIOD_US), (0, "R")) for i in range(seconds * 1_000_000 // PERIOD_US)]
    return judged(scheduled, [(at, (0, "R")) for at in reads])


def verdict_of(iosonar: str, result: Path) -> dict:
    """Of the result of a run."""
    return json.loads(sh(iosonar, "info", "--json", result))["run"]["statistics"]["verdict"]


def row(what: str, stall: str, kernel: dict, verdict: dict) -> dict:
    found = {
        "what": what,
        "stall": stall,
        "kernel_pct": kernel["within_pct"]["50"],
        "verdict_pct": verdict["own"]["within_pct"]["50"],
        "faithful": verdict["faithful"],
    }
    print(
        f"| {what} | {stall} | {found['kernel_pct']:.1f} | {found['verdict_pct']:.1f} |"
        f" {'yes' if found['faithful'] else 'no'} |",
        flush=True,
    )
    return found


def calls(place: Path, seconds: int) -> Path:
    """Strace text: one thread that reads 4 KiB each millisecond, with O_DIRECT."""
    lines = ['100 1700000000.000000 openat(AT_FDCWD, "/m/data", O_RDONLY|O_DIRECT) = 3 <0.000010>']
    for i in range(seconds * 1_000_000 // PERIOD_US):
        at = 1_700_000_000_100_000 + i * PERIOD_US
        lines.append(f'100 {at // 10**6}.{at % 10**6:06} pread64(3, ""..., {BLOCK}, {i * BLOCK}) = {BLOCK} <0.000020>')
    trace = place / "calls.strace"
    trace.write_text("\n".join(lines) + "\n")
    return trace


def main() -> None:
    p = options(__doc__, mib=256)
    p.add_argument("--seconds", type=int, default=8), p.add_argument("--depths", default="1,4,64")
    args = p.parse_args()
    count = args.seconds * 1_000_000 // PERIOD_US
    found = []
    print(
        "| replay | stall of 1 s | kernel: within 50 µs, % | verdict: within 50 µs, % | faithful |\n|---|---|---|---|---|"
    )
    with bench(args.mib) as (place, disk), file_system(place, "results", 512) as (results, _):
        load = place / "steady.load"
        load.write_text("".join(f"{i * PERIOD_US / 1e6:.9f} ; {i * 8} ; 8 ; R ; 0 ; 0\n" for i in range(count)))
        for stall, make in STALLS.items():
            for depth in args.depths.split(","):
                result = results / "run.replay.parquet"
                command = [args.iosonar, "replay", str(load), "--target", disk.path, "--output", str(result)]
                command += ["--overwrite", "--depth", depth]
                kernel = judge(disk.path, command, make, results, args.seconds)
                found.append(row(f"requests, depth {depth}", stall, kernel, verdict_of(args.iosonar, result)))
        with file_system(place, "files", args.mib) as (files, device):
            trace = calls(place, args.seconds)
            root = files / "root"
            root.mkdir()
            sh(args.iosonar, "files", "prepare", trace, "--root", root)
            for stall, make in STALLS.items():
                for order in ("conservative", "fs"):
                    result = results / "run.calls-run.parquet"
                    command = [args.iosonar, "files", "replay", str(trace), "--root", str(root)]
                    command += ["--output", str(result), "--overwrite", "--order", order]
                    kernel = judge(device, command, make, results, args.seconds)
                    found.append(row(f"calls, order {order}", stall, kernel, verdict_of(args.iosonar, result)))
    keep(args, found)


if __name__ == "__main__":
    main()
