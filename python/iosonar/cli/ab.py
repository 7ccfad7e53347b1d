"""`iosonar ab`: alternating rounds of two sides, compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iosonar.cli.compare import compare_groups
from iosonar.cli.counts import whole_number
from iosonar.cli.gate_options import FailIf, Junit, Markdown, SkipUndecided
from iosonar.cli.parser import Command
from iosonar.cli.run import guarded, print_error, start
from iosonar.cli.series import PageTheme

EXAMPLES = """
\b
Examples:
  iosonar ab --a 'replay mysql.load.parquet --target /dev/sdb'
      --b 'replay mysql.load.parquet --target /dev/sdc' --output disks.ab
  iosonar ab --a 'replay x.load.parquet --target /dev/sdb --depth 8'
      --b 'replay x.load.parquet --target /dev/sdb --depth 64'
      --rounds 10 --output depth.ab --fail-if 'p99 > +10%'
  iosonar ab --a 'files replay t.calls.parquet --root /mnt/ext4/r'
      --b 'files replay t.calls.parquet --root /mnt/xfs/r' --output fs.ab
      --before 'for r in ext4 xfs; do iosonar files prepare t.calls.parquet
      --root /mnt/$r/r --reset; done'

The rounds are A B, B A, A B …, so that drift affects both sides equally. Then `compare` compares the sides.

After an interrupt, start the same command again: finished runs are kept, more --rounds add runs, and with fewer only
the first are compared. Another command, load, program or kernel is refused: its runs would not be comparable. With
--overwrite all runs are new.

DESTROYS DATA on the targets if the load writes.

Exit codes: 0 done, 1 failed, 2 the command line was wrong, 3 a condition of --fail-if holds, 4 none holds, but one is
undecided, 130 interrupted.
"""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=EXAMPLES)
def ab(
    a: Annotated[str, typer.Option("--a", metavar="COMMAND", help="`replay …`, `files replay …` or `workload run …`.")],
    b: Annotated[str, typer.Option("--b", metavar="COMMAND", help="The other side, with the same load.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="NAME.ab", help="Directory of the series.")],
    rounds: Annotated[int, typer.Option(parser=whole_number(1, 1000), metavar="N", help="Runs of each side.")] = 5,
    before: Annotated[
        str, typer.Option("--before", metavar="COMMAND", help="Shell command before each run; its time does not count.")
    ] = "",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove the runs of an earlier series in the directory first.")
    ] = False,
    fail_if: FailIf = None,
    junit: Junit = None,
    skip_undecided: SkipUndecided = False,
    markdown: Markdown = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    theme: PageTheme = None,
) -> None:
    """Run two sides in alternating rounds, and compare them."""

    def work() -> None:
        from iosonar.report.gate import Condition, GateScope
        from iosonar.report.gate_files import refuse_unwritable
        from iosonar.report.output_options import OutputOptions
        from iosonar.series.ab import Rounds, check, plan, run
        from iosonar.series.plan import opened

        refuse_unwritable(junit, markdown)
        conditions = [Condition.parse(text, GateScope.SIDES) for text in fail_if or []]
        wanted = plan(Rounds(a, b, rounds, before))
        check(wanted)
        with opened(output, wanted, overwrite=overwrite) as directory:
            for page in directory.path.glob("a.*.compare.html"):
                # Its name has the number of rounds, and these may fail.
                page.unlink()
            groups = run(directory, wanted, before, print_error)
            options = OutputOptions(directory.path, theme=theme, overwrite=True)
            compare_groups(
                groups,
                conditions,
                options,
                json_=json_,
                gate_files=(junit, markdown),
                skip_undecided=skip_undecided,
            )

    guarded("ab", work)


def main() -> int:
    """Entry point of `iosonar-ab`."""
    return start(app, "ab")
