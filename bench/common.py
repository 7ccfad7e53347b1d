"""Shared by the benchmarks: options, a directory, a fast device, loads and the judge."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def sh(*words: object, **kw: object) -> str:
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True, **kw).stdout


def options(about: str | None, *, mib: int = 2048) -> argparse.ArgumentParser:
    """A parser with the common options of benchmarks of the replayer; each adds its own."""
    p = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--iosonar", default="iosonar"), p.add_argument("--json", type=Path)
    p.add_argument("--mib", type=int, default=mib)
    return p


class LoopDevice:
    """A loop device with direct I/O over a file in memory: filled with data, or sparse with `gib` GiB."""

    def __init__(self, directory: Path, mib: int, gib: int = 0) -> None:
        self.file = directory / "disk"
        with self.file.open("wb") as f:
            for _ in range(0 if gib else mib // 16):
                f.write(os.urandom(16 << 20))
            if gib:
                f.truncate(gib << 30)
        self.path = sh("losetup", "--find", "--show", "--direct-io=on", self.file).strip()

    def close(self) -> None:
        sh("losetup", "--detach", self.path)


@contextmanager
def directory() -> Iterator[Path]:
    """A temporary directory in memory."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="iosonar-bench-") as name:
        yield Path(name)


@contextmanager
def bench(mib: int, gib: int = 0) -> Iterator[tuple[Path, LoopDevice]]:
    """A temporary directory in memory and a device in it."""
    with directory() as place:
        device = LoopDevice(place, mib, gib)
        try:
            yield place, device
        finally:
            device.close()


HERE = Path(__file__).resolve().parent

LOAD = HERE.parent / "loads" / "pgbench.load.parquet"
LOAD_REQUESTS = 45494


def repeated(iosonar: Path, requests: int, load: Path) -> None:
    """Writes the natural load of PostgreSQL, repeated until it has this many requests."""
    sh(iosonar, "edit", LOAD, load, f"repeat times={max(1, round(requests / LOAD_REQUESTS))}")


def compare_rounds(
    about: str | None, requests: int, rounds: int, compare: Callable[[Path, Path, int, int], None]
) -> None:
    """Reads the command line of a benchmark that compares ways of reading, in rounds, and runs it."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iosonar", type=Path, required=True)
    parser.add_argument("--requests", type=int, default=requests)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--directory", type=Path)
    arguments = parser.parse_args()
    with directory() as temporary:
        place = arguments.directory or temporary
        compare(arguments.iosonar.resolve(), place, arguments.requests, arguments.rounds)


def poisson(args: argparse.Namespace, rate: float, place: Path) -> Path:
    """A classic load of Poisson arrivals for `args.seconds`: 4 KiB, 70 % reads."""
    load = place / "poisson.load"
    shape = ("--size", "4k", "--reads", 0.7, "--span", f"{args.mib}M", "--seed", 1, "--overwrite")
    sh(args.iosonar, "generate", "poisson", load, "--rate", rate, "--duration", f"{args.seconds}s", *shape)
    return load


def compiled(name: str, place: Path, *libraries: str) -> Path:
    """A C program of this directory."""
    sh("cc", "-O2", "-o", place / name, HERE / f"{name}.c", *libraries)
    return place / name


def judge(args: argparse.Namespace, load: Path, device: str, command: list[str]) -> dict:
    """Measures a replayer by the kernel's clock; with `args.end`, in a window of the load."""
    # Of the benchmarks, some have no window.
    window = ["--start", args.start, "--end", args.end] if getattr(args, "end", 0) else []
    words = [HERE / "judge.py", load, device, *window, "--json", "--timeout", "600", "--", *command]
    return json.loads(sh(sys.executable, *words))


def keep(args: argparse.Namespace, results: object) -> None:
    """Writes all numbers, if `--json` is given."""
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
