#!/usr/bin/env python3
"""Measures the most memory and the time of each command on a load of 100 million requests, and on few requests with the
greatest numbers, where nothing may grow. Ends with 1 if a command fails or exceeds its limit.

    bench/memory.py --iosonar .venv/bin/iosonar [--requests 100000000] [--only NAME,...] [--directory DIR] [--json FILE]

The limit is 1 GiB; 4 GiB for reports, comparisons and queries. Memory is the peak of a command and its processes together,
each page counted once (PSS, every 0.1 s), or the largest resident set of one of them if that is more. `--only` takes the
steps whose names begin so; files of other steps are made if they are missing in the directory, which is kept if it is
given. 100 million requests need some 25 GB.
"""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from common import keep
from report import process_tree, pss_kib

MIB = 1 << 10
"""In KiB, as the kernel counts."""
OF_REPORTS = 4096


@dataclass
class Step:
    """A command; `{NAME}` in its words is the file of that step, `{out}` its own."""

    name: str
    words: str
    ending: str = ""
    limit: int = 1024
    """In MiB."""
    codes: tuple[int, ...] = (0,)
    kept: bool = False
    """Whether other steps read its file."""


def steps(requests: int) -> Iterator[Step]:
    """Every command that reads or writes requests."""
    shape = "--rate 100k --duration 10000h --span 1T --mix read=70,write=28,flush=1,discard=1 --positions zipf"
    yield Step("load", f"generate poisson {{out}} --requests {requests} {shape}", "load.parquet", kept=True)
    program = f"--for {requests / 100_000}s --set rate=100k"
    yield Step("workload load", f"workload load random-mix {{out}} {program}", "load.parquet")
    yield Step("text", "convert {load} {out}", "load.gz", kept=True)
    yield Step("blktrace", "convert {load} {out}", "blktrace.0", kept=True)
    yield Step("from text", "convert {text} {out}", "load.parquet")
    yield Step("from blktrace", "convert {blktrace} {out}", "load.parquet")
    # Two loads one after the other: each row of the second belongs between those of the first.
    yield Step("unsorted text", "convert {twice} {out}", "load.parquet")
    yield from of_load()
    yield from of_run()


def of_load() -> Iterator[Step]:
    """Every command that reads a load, and the replays that make runs of it."""
    yield Step("info", "info {load}")
    for name, pipeline in EDITS.items():
        yield Step(f"edit: {name}", f"edit {{load}} {{out}} {shlex.quote(pipeline)}", "load.parquet")
    yield Step("cache fill", "cache fill {load}")
    yield Step("cache size", "cache size {load}")
    yield Step("workload fit", "workload fit {load} {out}", "toml")
    yield Step("replay", "replay {load} --engine null --asap --output {out}", "replay.parquet", kept=True)
    model = "--simulate 'constant=50us servers=16' --virtual-time"
    yield Step("simulated", f"replay {{load}} {model} --output {{out}}", "replay.parquet", kept=True)


def of_run() -> Iterator[Step]:
    """Every command that reads a run."""
    yield Step("recover", "recover {killed} --output {out}", "replay.parquet")
    yield Step("info of a run", "info {simulated}")
    yield Step("run-text", "convert {simulated} {out}", "replay.gz", kept=True)
    yield Step("run-load", "convert {run-text} {out}", "load.parquet", kept=True)
    yield Step("limit", "limit {simulated}")
    # Of a replay without I/O it says at the end that it is inconclusive.
    yield Step("check", "check {simulated} {run-load}", codes=(3,))
    query = "SELECT op, quantile_disc(latency_ns, 0.99) FROM requests GROUP BY op"
    yield Step("sql", f"sql {{simulated}} '{query}'", limit=OF_REPORTS)
    drawn = "report {simulated} --static --dynamic --overwrite --out {out}"
    yield Step("page", drawn, "page", OF_REPORTS)
    yield Step("pictures", f"{drawn} --format png", "pictures", OF_REPORTS)
    yield Step("compare", "compare {replay} {simulated} --overwrite --out {out}", "compared", OF_REPORTS)


EDITS = {
    "select": "select from=1 to=1000000",
    "clip": "clip from=1G to=500G",
    "sample": "sample share=90% by=region",
    "scale": "scale time=0.5",
    "ramped": "ramped slope=1000",
    "derived": "derived snippet=10ms",
    "repeat": "repeat times=2",
    "slip": "slip",
    "spread": "spread",
    "dense": "dense",
    "reverse": "reverse",
    "subst": "subst from=R to=W",
    "resize": "resize",
    "anonymise": "anonymise",
    "cmd": "cmd command=cat",
    "merge": "merge with={load}",
    "append": "append with={load}",
    "adjacent": "adjacent with={load}",
}

# Of the largest device, 8 EiB.
SECTORS = 2**54 - 1
# Reports refuse times from 2^62 ns on.
REPORTED_NS, LAST_NS = 2**62 - 1, 2**63 - 1
LENGTH = 2**32 - 1
GREATEST: dict[str, Callable[[int], tuple[int, int, int, int]]] = {
    "times": lambda n: (REPORTED_NS // FEW * n, 64 * n, 8, 1),
    "sectors": lambda n: (10**6 * n, SECTORS // FEW * n, 8, 1),
    "lengths": lambda n: (10**6 * n, 64 * n, LENGTH if n % 2 else 8, 1),
    "processes": lambda n: (10**6 * n, 64 * n, 8, 2**31 - FEW // 2 + n),
    "all": lambda n: (LAST_NS // FEW * n, SECTORS // FEW * n, LENGTH if n % 2 else 8, 2**31 - FEW // 2 + n),
}
"""Time, sector, sectors and process of a request."""
FEW = 200


@dataclass
class Cost:
    """What a command used."""

    code: int
    wall_s: float
    processor_s: float
    mib: float
    said: str


def measured(words: list[str], place: Path, seconds: float, watch: Callable[[int], None] = lambda pid: None) -> Cost:
    """Runs a command; what exceeds the time is killed."""
    start, most = time.monotonic(), 0
    with (place / "said").open("w+b") as said:
        program = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True)
        while not (ended := os.wait4(program.pid, os.WNOHANG))[0]:
            most = max(most, sum(map(pss_kib, process_tree(program.pid))))
            watch(program.pid)
            if time.monotonic() - start > seconds:
                os.killpg(program.pid, signal.SIGKILL)
            time.sleep(0.1)
        wall = time.monotonic() - start
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    used = ended[2]
    code = program.returncode = os.waitstatus_to_exitcode(ended[1])
    peak = max(most, used.ru_maxrss) / MIB
    return Cost(code, wall, used.ru_utime + used.ru_stime, peak, lines[-1] if lines else "")


class Bench:
    """Runs steps in a directory, each with the files that it needs."""

    def __init__(self, iosonar: str, place: Path, steps: list[Step], seconds: float) -> None:
        self.iosonar, self.place, self.seconds = iosonar, place, seconds
        self.steps = {step.name: step for step in steps}

    def file(self, name: str) -> Path:
        """The file of a step, made if it is missing."""
        if name in ("twice", "killed"):
            return getattr(self, name)()
        step = self.steps[name]
        path = self.place / f"{name.replace(' ', '-').replace(':', '')}.{step.ending}"
        if step.kept and not path.exists():
            self.run(step)
        return path

    def twice(self) -> Path:
        """The text, twice: gzip's members follow each other."""
        path, text = self.place / "twice.load.gz", self.file("text")
        if not path.exists():
            with path.open("wb") as whole:
                for _ in range(2):
                    with text.open("rb") as part:
                        shutil.copyfileobj(part, whole, 1 << 24)
        return path

    def killed(self) -> Path:
        """The journal of a replay that was killed after half of its requests."""
        step = self.steps["replay"]
        output = self.place / "killed.replay.parquet"
        journal = Path(f"{output}.journal")
        whole = self.file("load").stat().st_size

        def kill(pid: int) -> None:
            if journal.exists() and journal.stat().st_size > whole:
                os.kill(pid, signal.SIGKILL)

        if not journal.exists():
            measured(self.words(step, output), self.place, self.seconds, kill)
        return journal

    def words(self, step: Step, out: Path) -> list[str]:
        """The words of a command, without `--overwrite`: an existing output is removed."""
        files = {}
        for word in shlex.split(step.words):
            for name in (*self.steps, "twice", "killed"):
                if f"{{{name}}}" in word:
                    files[f"{{{name}}}"] = str(self.file(name))
        files["{out}"] = str(out)
        words = shlex.split(step.words)
        for name, path in files.items():
            words = [word.replace(name, path) for word in words]
        return [self.iosonar, *words]

    def run(self, step: Step) -> Cost:
        """Runs a step; its output is removed unless other steps need it."""
        out = self.place / f"{step.name.replace(' ', '-').replace(':', '')}.{step.ending}"
        words = self.words(step, out)
        remove(out)
        cost = measured(words, self.place, self.seconds)
        if not step.kept:
            remove(out)
        return cost


def remove(path: Path) -> None:
    """Removes a file, or a directory with pictures."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


HEADS = ["load", "what", "wall, s", "processor, s", "most memory, MiB", ""]


def run_all(bench: Bench, load: str, only: tuple[str, ...], *, refusals: bool) -> Iterator[tuple[str, str, Cost, bool]]:
    """Runs the steps and prints each; last, whether it was right."""
    for step in bench.steps.values():
        if not step.name.startswith(only):
            continue
        cost = bench.run(step)
        # What a format or a device cannot hold is refused.
        right = cost.mib <= step.limit and (cost.code in step.codes or (refusals and cost.code == 1))
        ended = "" if cost.code in step.codes else f"ended with {cost.code}: {cost.said}"
        beyond = f"more than {step.limit} MiB" if cost.mib > step.limit else ""
        said = "; ".join(filter(None, (beyond, ended)))
        numbers = f"{cost.wall_s:.1f} | {cost.processor_s:.1f} | {cost.mib:.0f}"
        print(f"| {load} | {step.name} | {numbers} | {said} |", flush=True)
        yield load, step.name, cost, right


def greatest(place: Path, row: Callable[[int], tuple[int, int, int, int]]) -> list[Step]:
    """The steps on a few requests."""
    csv = place / "rows.csv"
    csv.write_text("".join("{},R,{},{},{}\n".format(*row(n)) for n in range(FEW)))
    columns = "at=1:ns op=2 offset=3:sectors size=4:sectors pid=5"
    load = Step("load", f"convert {csv} {{out}} --columns '{columns}'", "load.parquet", kept=True)
    text = Step("text", "convert {load} {out}", "load.gz", kept=True)
    binary = Step("blktrace", "convert {load} {out}", "blktrace.0")
    runs = [step for step in of_run() if step.name != "recover"]
    return [load, text, binary, *of_load(), *runs]


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--iosonar", type=Path, required=True), p.add_argument("--json", type=Path)
    p.add_argument("--requests", type=int, default=100_000_000), p.add_argument("--only", default="")
    p.add_argument("--directory", type=Path)
    args = p.parse_args()
    iosonar, only = str(args.iosonar.resolve()), tuple(args.only.split(","))
    print(f"| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|", flush=True)
    done = []
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="iosonar-memory-") as temporary:
        place = args.directory or Path(temporary)
        os.environ["TMPDIR"] = str(place)
        for name, row in GREATEST.items():
            few = place / name
            few.mkdir(parents=True, exist_ok=True)
            bench = Bench(iosonar, few, greatest(few, row), seconds=600)
            done += run_all(bench, f"greatest {name}", only, refusals=True)
        bench = Bench(iosonar, place, list(steps(args.requests)), seconds=36_000)
        done += run_all(bench, f"{args.requests:,}", only, refusals=False)
    keep(args, [{"load": load, "what": what} | cost.__dict__ for load, what, cost, _ in done])
    if wrong := [f"{load}: {what}" for load, what, _, right in done if not right]:
        sys.exit(f"failed, or more memory than the limit: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
