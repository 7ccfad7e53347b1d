#!/usr/bin/env python3
"""Measures the view: its index, the time from a pan or zoom until all visible diagrams are drawn in Chromium, its memory;
and, with --follow, what it changes in the delays of the replay that it watches.

    bench/view.py [--rows 10000000] [--directory /tmp/made] [--view PROGRAM]
    bench/view.py --follow --iosonar BINARY [--rounds 5] [--rate 5000] [--seconds 12]

bench/make_result.py makes the runs; runs and indexes are kept in the directory. Memory is the peak of the program's PSS.
Rounds of --follow are pairs on a loop device in memory: a replay alone, and one whose view is open, by a client that asks
each second for the windows that a page of 1400 × 900 shows.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from common import bench, poisson
from report import process_tree, pss_kib

HERE = Path(__file__).parent
SHARES = (1.0, 0.5, 0.2, 0.1, 0.03, 0.01, 1e-3, 1e-5)
AT_A_SHARE = 8
SEEN = ("latency.realtime", "latency.flying", "overview.thrp")


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", default="10000000"), p.add_argument("--directory", type=Path, default=Path("/tmp/made"))
    p.add_argument("--view", default="iosonar-view"), p.add_argument("--follow", action="store_true")
    p.add_argument("--iosonar", default="iosonar"), p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--rate", type=float, default=5000), p.add_argument("--seconds", type=int, default=12)
    p.add_argument("--mib", type=int, default=512), p.add_argument("--only-index", action="store_true")
    args = p.parse_args()
    if args.follow:
        follow(args)
        return
    args.directory.mkdir(exist_ok=True)
    for rows in map(int, args.rows.split(",")):
        run = args.directory / f"{rows}.replay.parquet"
        if not run.exists():
            subprocess.run([sys.executable, HERE / "make_result.py", run, str(rows)], check=True)
        windows(args, rows, run)


@contextmanager
def viewing(words: list, *, quietly: bool = False):
    """A view: its address, its process, the seconds until it answers, and its most memory so far in MiB."""
    program = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    most, start, ended = [0.0], time.monotonic(), threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            most[0] = max(most[0], sum(map(pss_kib, process_tree(program.pid))) / 1024)

    watcher = threading.Thread(target=watch)
    if not quietly:
        watcher.start()
    try:
        address = program.stdout.readline().strip()
        if not address:
            raise SystemExit(f"{words} ended with {program.wait()}")
        yield address, program, time.monotonic() - start, most
    finally:
        ended.set()
        if not quietly:
            watcher.join()
        program.terminate()
        program.wait()
        program.stdout.close()


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def windows(args: argparse.Namespace, rows: int, run: Path) -> None:
    """Measures a run's view."""
    index = args.directory / "index"
    words = [*args.view.split(), run, "--index", index]
    with viewing(words) as (_, program, wall, most):
        size = sum(each.stat().st_size for each in index.rglob("*") if each.is_file())
        print(f"{rows:,} requests: index in {wall:.1f} s, {processor_s(program.pid):.1f} s of a processor", end=", ")
        print(
            f"{most[0]:.0f} MiB of memory; {size / 1e6:.0f} MB, the table {run.stat().st_size / 1e6:.0f} MB", flush=True
        )
    if args.only_index:
        return
    with viewing(words) as (address, program, wall, most):
        print(f"opened again in {wall:.1f} s", flush=True)
        drawn(address)
        print(
            f"most memory of the server: {most[0]:.0f} MiB, {processor_s(program.pid):.1f} s of a processor", flush=True
        )


def drawn(address: str) -> None:
    """Zooms and pans in Chromium."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    chance = random.Random(1)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached")
        page.evaluate("iosonar.drawn()")
        low, high = page.evaluate("(x => [x.low, x.high])(iosonar.plots.get('latency.realtime').x)")
        print("| share of the run | median, ms | most, ms |\n|---|---|---|")
        for share in SHARES:
            times, length = [], (high - low) * share
            for _ in range(AT_A_SHARE):
                start = chance.uniform(low, high - length)
                times.append(page.evaluate(WHEN_DRAWN, [start, start + length]))
                if share == 1:
                    page.evaluate(WHEN_DRAWN, [low + (high - low) / 3, low + (high - low) / 2])
                # A pan by a quarter.
                start = min(start + length / 4, high - length)
                times.append(page.evaluate(WHEN_DRAWN, [start, start + length]))
            times = [each for each in times if each]
            print(f"| {share:g} | {statistics.median(times):.0f} | {max(times):.0f} |", flush=True)
        browser.close()


WHEN_DRAWN = """async ([low, high]) => {
    const start = performance.now();
    iosonar.plots.get("latency.realtime").choose({ x: { low, high } });
    await iosonar.drawn();
    for (const [name, { host }] of iosonar.plots) {
        const { top, bottom } = host.getBoundingClientRect();
        if (top < innerHeight && bottom > 0) iosonar.settled(name);
    }
    return performance.now() - start;
}"""


def follow(args: argparse.Namespace) -> None:
    """Compares the delays of replays with and without a view."""
    found = {"alone": [], "followed": []}
    with bench(args.mib) as (place, device):
        load = poisson(args, args.rate, place)
        for number in range(args.rounds):
            for how in ("alone", "followed") if number % 2 == 0 else ("followed", "alone"):
                found[how].append(replayed(args, load, device.path, place, how == "followed"))
                print(how, found[how][-1], flush=True)
    for key in ("p50", "p99", "p999"):
        ratios = [b[key] / a[key] for a, b in zip(found["alone"], found["followed"], strict=True)]
        middle = {how: statistics.median(each[key] for each in rounds) for how, rounds in found.items()}
        print(f"delay {key}: alone {middle['alone']:.2f} µs, followed {middle['followed']:.2f} µs; ", end="")
        print(f"ratios of the pairs: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")


def replayed(args: argparse.Namespace, load: Path, device: str, place: Path, followed: bool) -> dict:
    """The delays of a replay in µs, and the seconds of a processor that its view took."""
    run = place / "run.replay.parquet"
    run.unlink(missing_ok=True)
    words = [args.iosonar, "replay", load, "--target", device, "--overwrite", "--output", run, "--json"]
    replay = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    spent = 0.0
    if followed:
        while not Path(f"{run}.journal").exists() and replay.poll() is None:
            time.sleep(0.05)
        with viewing([*args.view.split(), "--follow", run], quietly=True) as (address, program, _, _):
            # As if the browser ran elsewhere.
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            while replay.poll() is None:
                low, high = 0, json.load(urllib.request.urlopen(f"{address}state"))["rows"] / args.rate
                for name in SEEN:
                    window = f"figure={name}&x0={low}&x1={high + 1}&y0=1e-7&y1=10&w=1290&h=284"
                    urllib.request.urlopen(f"{address}window?{window}").read()
                spent = processor_s(program.pid)
                time.sleep(1)
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    output = json.loads(replay.communicate()[0])
    delay = output.get("delay_us") or output["statistics"]["delay_us"]
    return {name: delay[name] for name in ("p50", "p99", "p999", "max")} | {"view_s": round(spent, 2)}


if __name__ == "__main__":
    main()
