#!/usr/bin/env python3
"""Measures the cost of reports: all pictures of synthetic runs of 10 thousand to 100 million requests, the page of the
smallest, and an SQL query.

    bench/report.py [--rows 10000,10000000] [--processors 0,1] [--memory 2GiB] [--directory /tmp/made] [--report PROGRAM]
        [--sql PROGRAM]

bench/make_result.py makes the runs; they are kept in the directory. Times are those from start to end of the program.
Memory is the peak of the program and its drawing processes together, each page counted once (PSS). Of an HTML page also
its size, and when Chromium has drawn the diagrams in its window of 1400 × 900, and all of them, since it began to load.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", default="10000,10000000"), p.add_argument("--memory", default="2GiB")
    p.add_argument("--processors", default="0,1"), p.add_argument("--directory", type=Path, default=Path("/tmp/made"))
    p.add_argument("--report", default="iosonar-report"), p.add_argument("--page-up-to", type=int, default=1_000_000)
    p.add_argument("--sql", default="iosonar-sql")
    args = p.parse_args()
    os.sched_setaffinity(0, {int(number) for number in args.processors.split(",")})
    args.directory.mkdir(exist_ok=True)
    heads = [
        "requests",
        "what",
        "files",
        "wall, s",
        "processor, s",
        "most memory, MiB",
        "page, MB",
        "drawn, s",
        "all drawn, s",
    ]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for rows in map(int, args.rows.split(",")):
        run = args.directory / f"{rows}.replay.parquet"
        if not run.exists():
            subprocess.run([sys.executable, HERE / "make_result.py", run, str(rows)], check=True)
        for what in ("png", "html") if rows <= args.page_up_to else ("png",):
            with tempfile.TemporaryDirectory() as out:
                words = [*args.report.split(), run, "--static", "--dynamic", "--format", what, "--memory", args.memory]
                wall, processor, most = measured([*words, "--out", out])
                files = list(Path(out).glob(f"*.{what}"))
                page = " | | |"
                if what == "html":
                    first, everything = drawn_after(files[0])
                    page = f" {files[0].stat().st_size / 1e6:.2f} | {first:.2f} | {everything:.2f} |"
                print(
                    f"| {rows:,} | {what} | {len(files)} | {wall:.1f} | {processor:.1f} | {most:.0f} |{page}",
                    flush=True,
                )
        wall, processor, most = measured([*args.sql.split(), run, "SELECT 1"])
        print(f"| {rows:,} | sql | | {wall:.1f} | {processor:.1f} | {most:.0f} | | | |", flush=True)


def drawn_after(page: Path) -> tuple[float, float]:
    """Seconds until Chromium has drawn the first window of a page, and all diagrams: the median of five."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    found = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(5):
            context = browser.new_context(viewport={"width": 1400, "height": 900})
            window = context.new_page()
            window.add_init_script(WHEN_DRAWN)
            window.goto(page.as_uri())
            window.wait_for_function("window.drawnAfter")
            found.append(window.evaluate("drawnAfter"))
            context.close()
        browser.close()
    return tuple(statistics.median(times) / 1000 for times in zip(*found, strict=True))


WHEN_DRAWN = """new MutationObserver(() => {
    if (window.drawnAfter || !document.documentElement?.dataset.ready) return;
    const first = performance.now();
    for (const name of window.iosonar?.settled ? iosonar.plots.keys() : []) iosonar.settled(name);
    window.drawnAfter = [first, performance.now()];
}).observe(document, { attributes: true, subtree: true, childList: true })"""


def measured(words: list) -> tuple[float, float, float]:
    """Wall-clock and processor seconds, and peak memory in MiB."""
    before, start, most = os.times(), time.monotonic(), 0
    program = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while program.poll() is None:
        most = max(most, sum(map(pss_kib, process_tree(program.pid))))
        time.sleep(0.1)
    wall, after = time.monotonic() - start, os.times()
    if program.returncode:
        raise SystemExit(f"{words} ended with {program.returncode}")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, spent, most / 1024


def process_tree(pid: int) -> list[int]:
    """A process and its descendants."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *(each for child in children for each in process_tree(int(child)))]


def pss_kib(pid: int) -> int:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


if __name__ == "__main__":
    main()
