"""Runs the scenarios, lets `iosonar diagnose` look at each run, and prints a confusion matrix.

    .venv/bin/python tests/scenarios/matrix.py [--only S07] [--half tune|judge --seed N] [--write]

Runs are kept in --out, by a hash of all that they depend on, and made again only if that changes.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from confusion import as_markdown, confusion, summary
from diagnosis import diagnose, titles
from making import ScenarioError, make, runs_of
from scenario import HALVES, TOP, Scenario, half_of, read_all

WRITTEN = TOP / "docs/generated/scenarios.md"


def chosen(options: argparse.Namespace) -> list[Scenario]:
    """The scenarios that the options ask for."""
    found = read_all()
    if options.half:
        found = half_of(found, options.half, options.seed)
    words = options.only or []
    found = [s for s in found if not words or any(s.kind == word or s.name == word for word in words)]
    if options.simulated:
        found = [s for s in found if not s.on]
    if not found:
        raise SystemExit("no scenario has this kind or name; --list shows all")
    return found


def work(scenario: Scenario, out: Path, diagnosed: bool) -> dict[str, str]:
    """Makes the run unless it is there, and returns what was found in it."""
    made = make(scenario, out)
    return diagnose(runs_of(scenario, made)) if diagnosed else {}


def run_all(scenarios: list[Scenario], options: argparse.Namespace) -> tuple[dict[Scenario, dict[str, str]], list[str]]:
    """Two at a time; those on real devices alone, as they measure times."""
    found: dict[Scenario, dict[str, str]] = {}
    failed: list[str] = []
    for workers, part in ((2, [s for s in scenarios if not s.on]), (1, [s for s in scenarios if s.on])):
        with ThreadPoolExecutor(workers) as pool:
            waiting = {pool.submit(work, s, options.out, not options.make_only): s for s in part}
            for future in as_completed(waiting):
                scenario = waiting[future]
                try:
                    found[scenario] = future.result()
                    text = " ".join(sorted(found[scenario])) or "nothing"
                except ScenarioError as error:
                    failed.append(f"{scenario.name}: {error}")
                    text = f"FAILED: {error}"
                done = len(found) + len(failed)
                print(f"[{done}/{len(scenarios)}] {scenario.kind} {scenario.name}: {text}", file=sys.stderr, flush=True)
    # In the order of the files, not in that of their ends.
    return {s: found[s] for s in scenarios if s in found}, failed


def report(found: dict[Scenario, dict[str, str]], options: argparse.Namespace) -> str:
    """The matrix with the scenarios that were missed or false."""
    matrix = confusion(found, titles())
    lines = [as_markdown(matrix), "", summary(matrix)]
    if matrix.missed:
        lines += ["", "Missed:", ""]
        for scenario, kind in matrix.missed:
            others = " ".join(sorted(found[scenario])) or "nothing"
            lines.append(f"- {kind} in `{scenario.name}` ({scenario.strength or 'no strength'}), found {others}")
    if matrix.false:
        lines += ["", "False:", ""]
        lines += [f"- {kind} in `{s.name}` ({s.kind}): {found[s][kind]}" for s, kind in matrix.false]
    return "\n".join(lines) + "\n"


def written(text: str, count: int, options: argparse.Namespace) -> str:
    """The page of the documentation."""
    half = f"the half `{options.half}` of seed {options.seed}" if options.half else "all scenarios"
    return (
        "# Findings against known causes\n\n"
        f"Written by `tests/scenarios/matrix.py` on {datetime.date.today()}, over {half}: {count} runs. "
        "[The scenarios](../../tests/scenarios/README.md).\n\n" + text
    )


def main() -> int:
    """Returns the exit code: 1 if a scenario could not be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="KIND", help="only this kind or scenario; may be repeated")
    parser.add_argument("--half", choices=HALVES, help="only this half of each kind")
    parser.add_argument("--seed", type=int, default=1, help="draws the halves (1)")
    parser.add_argument("--simulated", action="store_true", help="no real devices, which need root")
    parser.add_argument("--out", type=Path, default=TOP / "target/scenarios", help="directory of the runs")
    parser.add_argument("--make-only", action="store_true", help="make the runs, without a diagnosis")
    parser.add_argument("--write", action="store_true", help=f"write {WRITTEN.relative_to(TOP)}")
    parser.add_argument("--list", action="store_true", help="list the scenarios with their runs")
    options = parser.parse_args()
    scenarios = chosen(options)
    if options.list:
        for scenario in scenarios:
            print(f"{scenario.kind:5}  {scenario.strength:12}  {scenario.name}: {scenario.why}")
        return 0
    if os.geteuid() and any(s.on for s in scenarios):
        raise SystemExit("real devices need root; --simulated leaves them out")
    options.out.mkdir(parents=True, exist_ok=True)
    found, failed = run_all(scenarios, options)
    if not options.make_only:
        text = report(found, options)
        print(text)
        if options.write:
            WRITTEN.write_text(written(text, len(found), options))
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
