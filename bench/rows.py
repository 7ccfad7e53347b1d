#!/usr/bin/env python3
"""Measures reports of partitioned runs on DuckDB and on a Spark cluster of this machine, and compares the answers.

    bench/rows.py ROWS [--dir DIR] [--memory 4GiB] [--workers 3] [--engines duckdb,spark] [--copies 1]

It makes a directory of Parquet files by host and device, opens it on each engine in a process of its own, computes the
summary and the verdict with all checks, and prints the time, the most memory that the process had resident, and
whether the answers are equal. The directory is removed at the end. Spark needs the extra `spark` and Java.

With `--copies N`, the same files then stand under N times as many hosts, as hard links, for the first engine: so many
rows are counted and computed, but the disk holds, and the page cache keeps, an N-th of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import make_result

HOSTS, DEVICES = 4, 2


PARTS = [(host, device) for host in range(HOSTS) for device in range(DEVICES)]


def part_of(directory: Path, host: int, device: int) -> Path:
    """The file of a host and a device, in a directory of its own, which is made."""
    part = directory / f"host=h{host}/device=sd{'ab'[device]}/part-0.replay.parquet"
    part.parent.mkdir(parents=True)
    return part


def make(directory: Path, rows: int) -> None:
    """A part for each host and device."""
    for number, (host, device) in enumerate(PARTS):
        part = part_of(directory, host, device)
        words = [sys.executable, make_result.__file__, part, str(rows // len(PARTS)), "--seed", str(number)]
        subprocess.run(words, check=True)


def link(directory: Path, copies: int) -> None:
    """The parts again under more hosts, until each has `copies` of them."""
    files = sorted(directory.rglob("*.parquet"))
    for copy in range(1, copies):
        for file, (host, device) in zip(files, PARTS, strict=True):
            part_of(directory, host + copy * HOSTS, device).hardlink_to(file)


@contextmanager
def cluster(directory: Path, workers: int) -> Iterator[str]:
    """A master and its workers; yields its URL."""
    import pyspark

    port = 20_000 + os.getpid() % 10_000
    url, program = f"spark://127.0.0.1:{port}", Path(pyspark.__file__).parent / "bin/spark-class"
    (directory / "spark-defaults.conf").write_text("spark.executor.memory 1g\nspark.sql.shuffle.partitions 8\n")
    os.environ |= {"SPARK_CONF_DIR": str(directory), "SPARK_LOCAL_IP": "127.0.0.1"}
    common = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as stack:
        for number in range(workers + 1):
            words = ["worker.Worker", *common, "--cores", "1", "--memory", "1g", "-d", f"{directory}/{number}", url]
            if number == 0:
                words = ["master.Master", *common, "--port", str(port)]
            log = stack.enter_context((directory / f"log-{number}").open("wb"))
            process = subprocess.Popen(
                [program, f"org.apache.spark.deploy.{words[0]}", *words[1:]], stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
        master = directory / "log-0"
        while master.read_text().count("Registering worker") < workers:
            time.sleep(0.5)
        yield url


def answer(directory: Path, engine: str, memory: str) -> None:
    """Runs in a process of its own: prints what was computed."""
    import iosonar

    begin = time.monotonic()
    with iosonar.open(directory, engine=engine, memory=memory) as run:
        found = {"summary": dataclasses.asdict(run.summary), "verdict": run.verdict.as_json()}
    took = time.monotonic() - begin
    # That of Java, which is a child, beside this process's.
    peak = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"answer": found, "took_s": took, "peak_mib": peak}, default=str))


def say_size(directory: Path, rows: int, how: str) -> None:
    """Prints how many rows there are in how many files, and their size."""
    files = list(directory.rglob("*.parquet"))
    size = sum(each.stat().st_size for each in files)
    print(f"{rows} rows in {len(files)} files, {size / 1e9:.2f} GB{how}", flush=True)


def measured(top: Path, engine: str, memory: str, workers: int) -> Any:
    """The answers of an engine; prints its time and memory."""
    with ExitStack() as stack:
        (top / engine).mkdir(exist_ok=True)
        url = f"spark={stack.enter_context(cluster(top / engine, workers))}" if engine == "spark" else engine
        words = [sys.executable, __file__, "0", "--memory", memory, "--answer", str(top / "run"), url]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    own, children = found["peak_mib"]
    print(f"{engine}: {found['took_s']:.1f} s, {own:.0f} MiB, its children {children:.0f} MiB", flush=True)
    return found["answer"]


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two answers differ by more than the rounding of sums."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from differences(one.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (each, its) in enumerate(zip(one, other, strict=True)):
            yield from differences(each, its, f"{path}[{number}]")
    elif isinstance(one, float) and isinstance(other, float):
        if abs(one - other) > 1e-9 * max(abs(one), abs(other)):
            yield f"{path}: {one!r} {other!r}"
    elif one != other:
        yield f"{path}: {one!r} {other!r}"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rows", type=int), p.add_argument("--dir", type=Path), p.add_argument("--memory", default="4GiB")
    p.add_argument("--workers", type=int, default=3), p.add_argument("--engines", default="duckdb,spark")
    p.add_argument("--copies", type=int, default=1)
    p.add_argument("--answer", nargs=2, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.answer:
        answer(Path(args.answer[0]), args.answer[1], args.memory)
        return
    top = Path(tempfile.mkdtemp(prefix="iosonar-rows-", dir=args.dir))
    try:
        begin = time.monotonic()
        make(top / "run", args.rows)
        say_size(top / "run", args.rows, f", made in {time.monotonic() - begin:.0f} s")
        engines = args.engines.split(",")
        answers = [measured(top, engine, args.memory, args.workers) for engine in engines]
        for engine, other in zip(engines[1:], answers[1:], strict=True):
            found = list(differences(answers[0], other))
            print(f"{engine}: " + ("equal answers" if not found else "DIFFERENT: " + "; ".join(found[:10])), flush=True)
        if args.copies > 1:
            link(top / "run", args.copies)
            say_size(top / "run", args.rows * args.copies, f", {args.copies} links to each")
            measured(top, engines[0], args.memory, args.workers)
    finally:
        shutil.rmtree(top)


if __name__ == "__main__":
    main()
