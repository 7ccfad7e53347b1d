"""`iosonar-cache-picture`: draws the curve of `iosonar cache fill` and `cache size --picture`, which start it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from iosonar.cli.parser import Command
from iosonar.cli.run import guarded, start
from iosonar.errors import UsageError, UserError

NAME = "cache-picture"
SUFFIXES = (".png", ".svg", ".pdf")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command)
def cache_picture(
    picture: Annotated[Path, typer.Argument(metavar="FILE", help="FILE.png, FILE.svg or FILE.pdf.")],
) -> None:
    """Draw the JSON of `iosonar cache`, from standard input."""

    def work() -> None:
        from iosonar.diagrams.cache_size import cache_size
        from iosonar.diagrams.filling import filling
        from iosonar.figures.drawing import draw
        from iosonar.figures.palette import Theme
        from iosonar.figures.size import Size
        from iosonar.report.outputs import write_whole

        if picture.suffix not in SUFFIXES:
            raise UsageError(f"{picture} is no picture; name it FILE.png, FILE.svg or FILE.pdf")
        try:
            found = json.load(sys.stdin)
            figure = cache_size(found) if found["kind"] == "size" else filling(found)
        except (ValueError, KeyError, TypeError) as error:
            raise UserError("standard input is not the JSON of `iosonar cache`") from error
        write_whole(picture, lambda path: draw(figure, path, Size(), Theme.LIGHT))

    guarded(NAME, work)


def main() -> int:
    """Runs the program."""
    return start(app, NAME)
