#!/usr/bin/env python3
"""Fuzzes every reader, and the recognition of formats, on all processors.

  fuzz/run.py                      each for a minute
  fuzz/run.py --each 1h blktrace   one of them for an hour
  fuzz/run.py --until 1h           the one with the least time so far, until each has an hour of processor time in total

Needs `cargo install cargo-fuzz`. Sanitizers need a nightly toolchain; `-s none` does not. Findings are stored in
fuzz/artifacts, the corpus in fuzz/corpus. Ctrl-C ends it at any time.

With --until, the time is added to fuzz/spent.csv; a later run continues from there, also on another machine. A run
without --until is a trial and is not counted.
"""

import argparse
import contextlib
import csv
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

HERE = Path(__file__).resolve().parent
FORMATS = HERE.parent / "crates/trace/src/formats"
SPENT = HERE / "spent.csv"
RECOGNITION = "recognition"
CALLS_TEXTS = ("strace", "gvisor", "nfsdump")
TABLES = "calls"
DESCRIBED = "described"
LIMITS = ["-timeout=10", "-rss_limit_mb=1024", "-max_len=8192", "-print_final_stats=1", "-verbosity=0"]
INTERRUPTED = 72
"""The exit code of libFuzzer when a signal ends it: not a finding."""

stopping = Event()


@dataclass
class Spent:
    """Processor time and inputs spent on one target."""

    processor_s: float = 0.0
    inputs: int = 0


def targets() -> list[str]:
    """The names of all formats with a reader, from the sources, the readers of calls, and the recognition."""
    name = re.compile(r'Format::named\("(.*)"\)|^(?:    name:|pub const NAME: &str =) "(.*)"[,;]', re.MULTILINE)
    sources = [text for path in FORMATS.rglob("*.rs") if "is_for_viewers: true" not in (text := path.read_text())]
    found = {a or b for text in sources for a, b in name.findall(text)}
    return [*sorted(found), *CALLS_TEXTS, TABLES, RECOGNITION]


def build(profile: str) -> Path:
    """Builds the programs and returns their directory."""
    subprocess.run(["cargo", "fuzz", "build", "-s", "none", f"--{profile}"], cwd=HERE, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target"))
    built = {"dev": "debug"}.get(profile, profile)
    [directory] = {program.parent for program in target.glob(f"*-*-*/{built}/recognise")}
    return directory


def lower_priority() -> None:
    """Gives the new process the lowest priority."""
    os.nice(19)
    # With autogroups, niceness counts within a session only (sched(7)).
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("19")


def fuzz(programs: Path, target: str, seconds: float, seed: int) -> tuple[Spent, bool]:
    """Runs one target for some seconds. Returns the time and inputs spent, and whether there was no finding."""
    corpus = HERE / "corpus" / target
    artifacts = HERE / "artifacts" / target
    corpus.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(parents=True, exist_ok=True)
    if target == RECOGNITION:
        program, seeds = "recognise", sorted((HERE / "seeds").iterdir())
    else:
        program = {**dict.fromkeys(CALLS_TEXTS, "calls"), TABLES: "tables", DESCRIBED: DESCRIBED}.get(target, "reader")
        seeds = [HERE / "seeds" / target]
    log = HERE / "artifacts" / f"{target}.log"
    with log.open("ab") as output:
        start = output.tell()
        limits = [
            *LIMITS,
            f"-seed={seed}",
            f"-max_total_time={max(1, round(seconds))}",
            f"-artifact_prefix={artifacts}/",
        ]
        process = subprocess.Popen(
            [str(programs / program), *limits, *map(str, (corpus, *seeds))],
            env={**os.environ, "IOSONAR_FORMAT": target},
            stdout=output,
            stderr=output,
            # Only this script gets Ctrl-C. It ends each process separately, so that each prints its number of inputs.
            start_new_session=True,
            preexec_fn=lower_priority,
        )
        ended = Event()

        def stop() -> None:
            while not ended.wait(0.2):
                if stopping.is_set():
                    process.send_signal(signal.SIGINT)
                    return

        with ThreadPoolExecutor(1) as watch:
            watch.submit(stop)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            ended.set()
    with log.open("rb") as text:
        text.seek(start)
        printed = text.read().decode(errors="replace")
    inputs = re.search(r"number_of_executed_units: *(\d+)", printed)
    spent = Spent(usage.ru_utime + usage.ru_stime, int(inputs[1]) if inputs else 0)
    clean = process.returncode in (0, INTERRUPTED)
    if not clean:
        print(f"FINDING in {target} (exit {process.returncode}): see {log} and {artifacts}", file=sys.stderr)
    return spent, clean


def read_spent() -> dict[str, Spent]:
    """Reads the totals of earlier runs; empty if there are none."""
    if not SPENT.exists():
        return {}
    with SPENT.open() as file:
        return {row["target"]: Spent(float(row["processor_s"]), int(row["inputs"])) for row in csv.DictReader(file)}


def write_spent(spent: dict[str, Spent]) -> None:
    """Writes the totals, atomically."""
    new = SPENT.with_suffix(".new")
    with new.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["target", "processor_s", "inputs"])
        table.writerows([t, f"{s.processor_s:.0f}", s.inputs] for t, s in sorted(spent.items()))
    new.replace(SPENT)


def seconds(text: str) -> float:
    """Parses a duration on the command line."""
    units = {"": 1, "s": 1, "m": 60, "h": 3600}
    duration = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not duration:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 90s, 5m or 1h")
    return float(duration[1]) * units[duration[2]]


def campaign(
    programs: Path, chosen: list[str], until: float, slice_s: float, jobs: int, account: bool, seed: int
) -> bool:
    """Fuzzes the target with the least time so far, slice by slice, until each has `until` seconds of processor time.

    Returns whether there was no finding.
    """
    spent = read_spent() if account else {}
    for target in chosen:
        spent.setdefault(target, Spent())
    waiting, lock, clean = set(chosen), Lock(), True
    start = time.monotonic()

    def work() -> None:
        nonlocal clean
        while not stopping.is_set():
            with lock:
                due = [t for t in waiting if spent[t].processor_s < until]
                if not due:
                    return
                target = min(due, key=lambda t: spent[t].processor_s)
                waiting.discard(target)
            # One second more than is missing, because a shared processor gives less time than the clock shows.
            added, fine = fuzz(programs, target, min(slice_s, until - spent[target].processor_s + 1), seed)
            with lock:
                spent[target].processor_s += added.processor_s
                spent[target].inputs += added.inputs
                clean = clean and fine
                if fine:  # a target with a finding is not continued
                    waiting.add(target)
                if account:
                    write_spent(spent)
                total, of = sum(min(until, spent[t].processor_s) for t in chosen), until * len(chosen)
                clock = (time.monotonic() - start) / 60
                s = spent[target]
                had = f"{s.processor_s / 60:.1f} processor min, {s.inputs / 1e6:.1f} million inputs"
                print(f"{clock:6.1f} min: {target} {had}; {total / of:.0%} of all", flush=True)

    with ThreadPoolExecutor(jobs) as workers:
        for done in [workers.submit(work) for _ in range(jobs)]:
            done.result()
    return clean


def main() -> None:
    """Parses the command line and runs the campaign."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    length = p.add_mutually_exclusive_group()
    length.add_argument("--each", type=seconds, default=60.0, metavar="TIME", help="processor time of each target [1m]")
    length.add_argument("--until", type=seconds, metavar="TIME", help="the same, including earlier runs")
    p.add_argument("--slice", type=seconds, default=300.0, metavar="TIME", help="time before the next target [5m]")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="parallel targets [one per processor]")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="the same inputs again [0: others each time]")
    p.add_argument("--dev", action="store_true", help="build without optimisation: sooner, for short runs")
    p.add_argument("target", nargs="*", help=f"names of formats, or {RECOGNITION} [all]")
    a = p.parse_args()
    every = targets()
    if unknown := [t for t in a.target if t not in every]:
        p.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(every)}")
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda *_: stopping.set())
    clean = campaign(
        build("dev" if a.dev else "release"),
        a.target or every,
        a.until or a.each,
        a.slice,
        a.jobs,
        a.until is not None,
        a.seed,
    )
    sys.exit(0 if clean else 1)


if __name__ == "__main__":
    main()
