"""The loads and replayers of the paper's experiments: simple programs, fio and iosonar.

The paper: E. Anderson et al., "Buttress: A toolkit for flexible and high fidelity I/O benchmarking", FAST 2004.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from common import sh
from iolog import fio_command

HERE = Path(__file__).parent

SIMPLE = {"select()": "select", "usleep()": "sleep", "dedicated clock": "clock"}
"""Replayers like the paper's SELECT, SLEEP and DED-CLOCK, and their modes of naive_replay.c."""

LOADS = {
    "omail-like": ("poisson", "--rate", 1000, "--size", "4k:50,8k:35,16k:15"),
    "harp-like": ("on-off", "--rate", 5000, "--on", "20ms", "--off", "180ms", "--size", "4k:50,8k:30,64k:20"),
}
"""Generated loads with what the paper says of its two: omail has requests of 7 KB on average at a steady, moderate rate;
harp is bursty. It does not say their rates."""


@dataclass(frozen=True)
class Load:
    """A load as each replayer reads it."""

    text: Path
    iolog: Path


def options_of_replayers(p: argparse.ArgumentParser) -> None:
    """The options that all experiments with these replayers have."""
    p.add_argument("--rounds", type=int, default=3), p.add_argument("--seconds", type=float, default=8)
    p.add_argument("--threads", type=int, default=64, help="threads of the simple replayers")
    p.set_defaults(engine="io_uring", depth=64, start=0, end=0)


def generate(args: argparse.Namespace, directory: Path, name: str) -> Path:
    """A load of this name, as text."""
    kind, *shape = LOADS[name]
    load = directory / f"{name}.load"
    how = ("--duration", f"{args.seconds}s", "--span", f"{args.mib}M", "--overwrite")
    sh(args.iosonar, "generate", kind, load, *shape, *how)
    return load


def readable(args: argparse.Namespace, load: Path) -> Load:
    """A load, in text and as an I/O log."""
    text, iolog = load.with_suffix(".load"), load.with_suffix(".iolog")
    if text != load:
        sh(args.iosonar, "convert", load, text, "--overwrite")
    sh(args.iosonar, "convert", load, iolog, "--overwrite")
    return Load(text, iolog)


def compile_c(directory: Path, name: str, *libraries: str) -> Path:
    """A program of this directory."""
    program = directory / name
    sh("cc", "-O2", "-pthread", "-o", program, HERE / f"{name}.c", *libraries)
    return program


def commands(args: argparse.Namespace, directory: Path, load: Load, device: str) -> dict[str, list[str]]:
    """The command of each replayer for a load."""
    naive, run = directory / "naive_replay", directory / "run.replay.parquet"
    if not naive.exists():
        compile_c(directory, "naive_replay")
    own = (args.iosonar, "replay", load.text, "--target", device, "--output", run, "--overwrite", "--json")
    simple = {name: (naive, mode, load.text, device, args.threads) for name, mode in SIMPLE.items()}
    fio = {"fio": fio_command(args, load.iolog, device, directory / "fio.json")}
    return {name: [str(word) for word in words] for name, words in (simple | fio | {"iosonar": own}).items()}


def turns(names: list[str], number: int) -> list[str]:
    """The order of a round: each begins with another one."""
    at = number % len(names)
    return names[at:] + names[:at]
