"""Options that sweep and sensitivity share."""

from __future__ import annotations

from typing import Annotated

import typer

from iosonar.errors import UsageError
from iosonar.figures.palette import Theme

Target = Annotated[
    list[str] | None, typer.Option("--target", "-t", metavar="DEV", help="Device or file. May be repeated.")
]
Simulate = Annotated[str | None, typer.Option(metavar="MODEL", help="Simulate the device.")]
VirtualTime = Annotated[bool, typer.Option("--virtual-time", help="Run the simulation in virtual time.")]
Json = Annotated[bool, typer.Option("--json", help="Print the points as JSON.")]
PageTheme = Annotated[Theme | None, typer.Option(help="Light or dark background.")]


def device_of(command: str, target: list[str] | None, simulate: str | None) -> str:
    """The device of a series, for people. Raises UsageError without one, or with two."""
    if bool(target) == bool(simulate):
        raise UsageError(f"{command} needs a device: either --target DEV or --simulate MODEL")
    return " ".join(target or [simulate or ""])
