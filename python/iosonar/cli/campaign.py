"""`iosonar campaign`: trees of runs over hosts and devices."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from iosonar import units
from iosonar.cli.counts import whole_number
from iosonar.cli.gate_options import FailIf, Junit, Markdown
from iosonar.cli.parser import Command, Group
from iosonar.cli.run import FAILED, guarded, print_error, print_lines, start
from iosonar.errors import UsageError, UserError
from iosonar.text import plain

if TYPE_CHECKING:
    from iosonar.campaign.estimate import Estimate
    from iosonar.campaign.leaf import LeafRun
    from iosonar.campaign.loop import Ended
    from iosonar.campaign.tree import Leaf

EXAMPLES = """
\b
Examples:
  iosonar campaign new mine --host localhost --device /dev/sdb
      creates a tree: two loads, three queue depths
  cd mine; iosonar campaign --dry-run
      shows what would run, and how long it takes
  iosonar campaign
      runs each leaf that has no result; run it again after a failure
  iosonar campaign --sample 20 --dry-run
      a random part of a large tree
  iosonar campaign status
      shows which leaves are done, failed, running or to do
  iosonar campaign report
      shows which factor made a difference

DESTROYS DATA on the devices that the confs name.

Exit codes: 0 all leaves are done, 1 a leaf failed or a change could not be undone, 2 the command line was wrong,
3 a condition of --fail-if holds, 4 none holds but one is undecided, 130 interrupted.
"""


NOTHING_TO_DO = "nothing to do: all leaves are done or skipped"


app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=Group,
    subcommand_metavar="[COMMAND]",
)

WorkDir = Annotated[
    Path, typer.Option("--work-dir", "--work_dir", metavar="DIR", help="The top directory of the campaign.")
]
Top = Annotated[Path, typer.Argument(metavar="DIR", help="The top directory of the campaign.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True, epilog=EXAMPLES)
def campaign(
    context: typer.Context,
    work_dir: WorkDir = Path(),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "--test", help="List what would run, and how long it takes.")
    ] = False,
    override: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VAR=VALUE",
            help="Set a variable after the defaults; confs of the leaf override it. May be repeated.",
        ),
    ] = None,
    stop_on_failure: Annotated[
        bool, typer.Option("--stop-on-failure", help="Stop at the first leaf that fails.")
    ] = False,
    shuffle: Annotated[
        int | None,
        typer.Option(metavar="SEED", help="Run the leaves in random order, so that drift does not look like a factor."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1), metavar="N", help="Run N random combinations of the tree, with their repetitions."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="SEED", help="The seed of --sample; default: 1.")] = None,
    one_at_a_time: Annotated[
        bool,
        typer.Option(
            "--one-at-a-time", help="Run the first leaf, and those that differ from it in one directory of their paths."
        ),
    ] = False,
    fail_if: FailIf = None,
    junit: Junit = None,
    markdown: Markdown = None,
    json_: Annotated[bool, typer.Option("--json", help="Print events as JSON lines.")] = False,
) -> None:
    """Run a tree of replays on hosts and devices."""
    if context.invoked_subcommand is not None:
        return

    def work() -> None:
        from iosonar.campaign import confs, loop, subset
        from iosonar.report.gate_files import refuse_unwritable

        refuse_unwritable(junit, markdown)
        conditions = _conditions(fail_if)
        top = _top(work_dir)
        if sample is not None and one_at_a_time:
            raise UsageError("--sample and --one-at-a-time are both given: use one of them")
        if seed is not None and sample is None:
            raise UsageError("--seed needs --sample: add --sample N, or use --shuffle SEED for a random order")
        overrides = [confs.parse_override(text) for text in override or []]
        part = subset.Subset(sample, 1 if seed is None else seed, one_at_a_time)
        options = loop.Options(overrides, stop_on_failure, shuffle, json_, part)
        if dry_run:
            found: list[Estimate | None] = []
            loop.dry_run(top, options, lambda leaf, run: found.append(_show_plan(leaf, run, json_)))
            _print_estimates(found, json_)
            if None in found:
                sys.exit(FAILED)
            return
        ended = loop.run(top, options)
        _print_end(ended, json_)
        code = _judge(top, conditions, (junit, markdown), json_, ended.left_out)
        if ended.failed or ended.not_undone:
            sys.exit(FAILED)
        if code:
            sys.exit(code)

    guarded("campaign", work, undoes=True)


@app.command(cls=Command)
def new(
    target: Annotated[Path, typer.Argument(metavar="DIR", help="The directory to create.")],
    host: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A host to replay on; default: localhost. May be repeated.")
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(metavar="DEVICE", help="A device to replay on; its data will be destroyed. May be repeated."),
    ] = None,
    repeats: Annotated[
        int, typer.Option(parser=whole_number(1), metavar="N", help="Repeat each run this many times.")
    ] = 1,
) -> None:
    """Create a directory tree with commented confs to start from."""

    def work() -> None:
        from iosonar.campaign.new import create

        print_lines(*create(target, host or ["localhost"], device or [], repeats))
        if not device:
            print_error("name the devices in a conf before you run it: replay_device_list=/dev/sdb")

    guarded("campaign", work)


@app.command(cls=Command)
def status(top: Top = Path(), json_: Json = False) -> None:
    """Show the state of each leaf."""

    def work() -> None:
        from iosonar.campaign import status as leaves

        rows = leaves.rows(_top(top))
        if json_:
            print_lines(json.dumps([row.as_json() for row in rows], indent=1))
        else:
            print_lines(*leaves.table(rows))

    guarded("campaign", work)


@app.command(cls=Command)
def report(
    top: Top = Path(),
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Compare by this factor: a variable, or the number of a level. May be repeated."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="PAGE", help="The page to write.")] = None,
    junit: Junit = None,
    markdown: Markdown = None,
    json_: Json = False,
    fail_if: FailIf = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of --output if it exists.")] = False,
) -> None:
    """Show which factor made a difference."""

    def work() -> None:
        from iosonar.campaign.report import run_report

        code = run_report(_top(top), by or [], output, json_, fail_if or [], junit, markdown, overwrite=overwrite)
        if code:
            sys.exit(code)

    guarded("campaign", work)


@app.command(cls=Command)
def undo(top: Top = Path()) -> None:
    """Undo the changes that a killed campaign left on its hosts."""

    def work() -> None:
        from iosonar.campaign import loop

        failures = loop.undo(_top(top), print_error)
        for failure in failures:
            print_error(f"not undone: {failure}")
        if failures:
            sys.exit(FAILED)

    guarded("campaign", work, undoes=True)


def _top(given: Path) -> Path:
    if not given.is_dir():
        raise UsageError(f"no directory {given}")
    return given.resolve()


def _conditions(texts: list[str] | None) -> list[Any]:
    """The conditions of --fail-if, parsed before anything runs."""
    if not texts:
        return []
    from iosonar.campaign.report.gate import parse_conditions

    return list(parse_conditions(texts))


def _judge(
    top: Path, conditions: list[Any], files: tuple[Path | None, Path | None], as_json: bool, left_out: list[str]
) -> int:
    """Judges all leaves but those that were left out, and writes JUnit XML and Markdown; returns an exit code."""
    junit, markdown = files
    if not conditions and junit is None and markdown is None:
        return 0
    from iosonar.campaign.report import gate
    from iosonar.campaign.report.page import write_gate_files

    judged = gate.judge(top, conditions, left_out=left_out)
    write_gate_files(top, judged, junit, markdown)
    if as_json:
        print_lines(json.dumps({"event": "gate", **judged.as_json()}))
    else:
        print_error("\n".join(judged.lines()) or "no condition of --fail-if holds")
    return judged.exit_code


def _show_plan(leaf: Leaf, run: LeafRun, as_json: bool) -> Estimate | None:
    """Prints what a leaf would replay; returns how long that takes, None if its confs are wrong."""
    from iosonar.campaign import estimate as estimates
    from iosonar.campaign import inputs, state

    if run.is_replayed:
        if as_json:
            print_lines(json.dumps({"leaf": leaf.name, "state": state.REPLAYED}))
        else:
            print_lines(f"{plain(leaf.name)}: was replayed; only its finish phase runs")
        return estimates.Estimate(leaf.name, estimates.Replay(0.0), 0.0, ("its finish phase",))
    try:
        planned = run.planned()
    except UserError as error:
        print_error(f"{plain(leaf.name)}: {error}")
        return None
    estimate, instances, options = run.estimated(planned), planned.instances, planned.options
    if as_json:
        rows: list[dict[str, Any]] = [
            {
                "host": each.host,
                "device": each.device,
                "input": inputs.shown(each.source),
                "output": each.output,
                "start_s": each.start_s,
            }
            for each in instances
        ]
        line = {
            "leaf": leaf.name,
            "options": options,
            "instances": rows,
            "filters": planned.filters,
            "notes": run.state.notes,
        }
        print_lines(json.dumps({**line, "estimate": estimate.as_json()}))
        return estimate
    starts = {f" --start {each.start_s:g}" if each.start_s else "" for each in instances}
    common = starts.pop() if len(starts) == 1 else ""
    command = "files replay" if any(each.of_calls for each in instances) else "replay"
    print_lines(f"{plain(leaf.name)}: iosonar {command} {' '.join(options)}{common}")
    for each in instances:
        start = f" --start {each.start_s:g}" if starts and each.start_s else ""
        print_lines(f"  {each.host}:{each.device} {inputs.shown(each.source)}{start} -> {each.output}")
    if planned.filters:
        print_lines(f"  filtered by {plain(planned.filters)}")
    return estimate


def _print_estimates(found: list[Estimate | None], as_json: bool) -> None:
    from iosonar.campaign import estimate

    known = [each for each in found if each]
    if as_json:
        total, ends = estimate.sum_of(known, time.time())
        print_lines(json.dumps({"event": "estimate", "leaves": len(known), "seconds": total, "ends": round(ends, 3)}))
    elif not found:
        print_error(NOTHING_TO_DO)
    elif known:
        print_lines("", *estimate.table(known))


def _print_end(ended: Ended, as_json: bool) -> None:
    if as_json:
        failed = [{"leaf": name, "reason": reason} for name, reason in ended.failed]
        leaves = {"done": ended.done, "not_faithful": ended.unfaithful, "failed": failed}
        print_lines(json.dumps({"event": "end", **leaves, "not_undone": ended.not_undone}))
        return
    if not ended.done and not ended.failed:
        print_error(NOTHING_TO_DO)
        return
    # Each reason was printed when the leaf ended.
    names = ", ".join(plain(name) for name, _ in ended.failed)
    done = units.counted(len(ended.done), "leaf", "leaves") + " done"
    if ended.unfaithful:
        done += f" ({len(ended.unfaithful)} not faithful)"
    print_error(f"{done}, {len(ended.failed)} failed{names and f': {names}'}")
    for text in ended.not_undone:
        print_error(f"not undone: {text}")


def main() -> int:
    """Entry point of `iosonar-campaign` and `tree-replay`."""
    sys.argv[1:] = _without_values(sys.argv[1:])
    return start(app, "campaign")


def _without_values(words: list[str]) -> list[str]:
    """The command line with `--dry-run=1` and `--test=1`, as blkreplay has them, as flags; 0 is no flag."""
    found = []
    for word in words:
        name, is_given, value = word.partition("=")
        if name not in ("--dry-run", "--test") or not is_given:
            found.append(word)
        elif value.strip("0"):
            found.append(name)
    return found
