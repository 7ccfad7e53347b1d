"""The parser of the programs, with the look of the Rust half's: `-h`, help, usage errors, one width, the same colours.

`definitions` describes all options as data. The Rust half has a copy, `crates/iosonar/src/python_half.json`, for shell
completions and man pages; a test keeps it up to date.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer.core
import typer.main

from iosonar.cli.style import Style
from iosonar.text import lines

MAX_WIDTH = 100
"""That of the Rust half's help."""

SCREEN = 65
"""Lines of `-h`, at most."""

EXAMPLES = 5
"""Lines of examples in a short help, with their heading."""

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


if TYPE_CHECKING:
    from typer.core import TyperCommand as Parser
else:
    Parser = object


class StyledParser(Parser):
    """The look of the Rust half's help and errors."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings["context_settings"] = {**HELP_OPTIONS, **(settings.get("context_settings") or {})}
        super().__init__(*args, **settings)

    def get_help(self, ctx: Any) -> str:
        """The help as text."""
        return help_text(self, ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses arguments; ends the program if they are wrong."""
        rest: list[str] = _or_refused(ctx, lambda: super(StyledParser, self).parse_args(ctx, args))
        return rest


class Command(StyledParser, typer.core.TyperCommand):
    """A command."""


class Group(StyledParser, typer.core.TyperGroup):
    """A command with subcommands; its own options come before them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the subcommand; ends the program if there is none of that name."""
        return _or_refused(ctx, lambda: super(Group, self).resolve_command(ctx, args))


def _or_refused(ctx: Any, parse: Any) -> Any:
    try:
        return parse()
    except Exception as error:
        # The class is in different modules in different versions of the library.
        if getattr(error, "exit_code", None) != 2 or not hasattr(error, "format_message"):
            raise
        style = Style.of(sys.stderr)
        message = error.format_message().rstrip(".").replace("Value error, ", "")
        tip = ""
        if type(error).__name__ == "NoSuchOption":
            tip = "  tip: a file whose name starts with - needs ./ in front of it, or -- before it\n\n"
        print(
            f"{style.error('error:')} {lines(message[:1].lower() + message[1:])}\n\n{tip}{_usage(ctx, style)}\n\n"
            f"For more information, try '{style.literal('--help')}'.",
            file=sys.stderr,
            flush=True,
        )
        ctx.exit(2)


def help_text(command: Any, ctx: Any) -> str:
    """The help of a command: with `-h`, one that is longer than a screen is cut, as in the Rust half."""
    described = definition(command, ctx)
    text = _help_of(described, ctx)
    if "--help" in sys.argv or len(text.splitlines()) <= SCREEN:
        return text
    for option in described["options"]:
        option["help"] = re.split(r"\. |; ", option["help"])[0]
    examples = next((part for part in described["after"].split("\n\n") if part.startswith("Example")), "")
    shown = "\n".join(examples.split("\n")[:EXAMPLES])
    described["after"] = f"{shown}\n\nAll options and examples: {ctx.command_path} --help"
    return _help_of(described, ctx)


def terminal_width() -> int:
    """How wide texts are on this terminal."""
    return min(shutil.get_terminal_size((MAX_WIDTH, 24)).columns, MAX_WIDTH)


def _help_of(described: dict[str, Any], ctx: Any) -> str:
    """What a command does, its usage, arguments, options, subcommands, and what follows."""
    style = Style.of(sys.stdout)
    width = terminal_width()
    parts = [*textwrap.wrap(described["about"], width), "", _usage(ctx, style), ""]
    for heading, rows in (
        ("Commands:", [("  ", each["name"], "", each["about"]) for each in described["commands"]]),
        ("Arguments:", [("  ", "", each["value"], each["help"]) for each in described["arguments"]]),
        ("Options:", [*map(_option_row, described["options"]), ("  ", "-h, --help", "", "Print help")]),
    ):
        if rows:
            parts += [style.heading(heading), *_columns(rows, width, style), ""]
    parts += [*_wrapped(described["after"], width)]
    return "\n".join(parts).rstrip()


def _option_row(option: dict[str, Any]) -> tuple[str, str, str, str]:
    short = f"-{option['short']}, " if option["short"] else "    "
    value = f" {option['value']}" if option["value"] else ""
    text = option["help"]
    if option["default"] is not None:
        text += f" [default: {option['default']}]"
    if option["values"]:
        text += f" [possible values: {', '.join(option['values'])}]"
    return "  ", f"{short}--{option['long']}", value, text


def _columns(rows: Sequence[tuple[str, str, str, str]], width: int, style: Style) -> Iterator[str]:
    indent = max(len(begin) + len(literal) + len(value) for begin, literal, value, _ in rows) + 2
    for begin, literal, value, text in rows:
        first, *others = textwrap.wrap(text, max(width - indent, 20), break_on_hyphens=False) or [""]
        padding = " " * (indent - len(begin) - len(literal) - len(value))
        yield f"{begin}{style.literal(literal)}{value}{padding}{first}".rstrip()
        yield from (" " * indent + line for line in others)


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Paragraphs in lines of the width; those with indented lines keep theirs."""
    for paragraph in text.split("\n\n"):
        given = paragraph.strip("\n").split("\n")
        is_kept = any(line.startswith(" ") for line in given)
        yield from given if is_kept else textwrap.wrap(paragraph, width, break_on_hyphens=False)
        yield ""


def _usage(ctx: Any, style: Style) -> str:
    described = definition(ctx.command, ctx)
    words = ["[OPTIONS]", *(f"--{each['long']} {each['value']}" for each in described["options"] if each["required"])]
    for each in described["arguments"]:
        is_bracketed = each["required"] or each["value"].startswith("[")
        words.append(each["value"] if is_bracketed else f"[{each['value']}]")
    if described["commands"]:
        words.append("[COMMAND]")
    return f"{style.heading('Usage:')} {style.literal(ctx.command_path)} {' '.join(words)}"


def definition(command: Any, ctx: Any) -> dict[str, Any]:
    """A command as data."""
    parameters = [each for each in command.params if not getattr(each, "hidden", False)]
    return {
        "name": ctx.info_name.split()[-1],
        "about": _sentence(command.help or ""),
        "arguments": [_argument(each) for each in parameters if each.param_type_name == "argument"],
        "options": [_option(each, ctx) for each in parameters if each.param_type_name == "option"],
        "commands": [
            definition(each, type(ctx)(each, info_name=name, parent=ctx))
            for name, each in getattr(command, "commands", {}).items()
            if not each.hidden
        ],
        "after": re.sub(r"^\x08\n", "", command.epilog or "", flags=re.MULTILINE).strip(),
    }


def _sentence(text: str) -> str:
    """Without a full stop, as in the Rust half's help."""
    return " ".join(text.split()).removesuffix(".")


def _argument(argument: Any) -> dict[str, Any]:
    value = argument.metavar or argument.name.rstrip("_").upper()
    if not value.startswith("<") and re.fullmatch(r"\w+", value):
        value = f"<{value}>"
    if argument.nargs == -1 and "..." not in value:
        value += "..."
    return {"value": value, "help": _sentence(argument.help or ""), "required": bool(argument.required)}


def _option(option: Any, ctx: Any) -> dict[str, Any]:
    long, *aliases = [each.removeprefix("--") for each in option.opts if each.startswith("--")]
    short = next((each[1:] for each in option.opts if not each.startswith("--")), None)
    is_flag = bool(option.is_flag)
    # Such as `--format <csv|json>`; other ways to ask for it differ between versions of the library.
    record = option.get_help_record(ctx)[0]
    typed = option.metavar or ("" if is_flag else record.rsplit(" ", 1)[-1])
    values = re.findall(r"[\w.-]+", typed) if not option.metavar and "|" in typed else []
    default = option.default
    is_shown = not is_flag and option.show_default and default not in (None, "", [], ()) and not callable(default)
    value = None if is_flag else f"<{_value_name(typed) if not values else long.upper().replace('-', '_')}>"
    return {
        "long": long,
        "aliases": aliases,
        "short": short,
        "value": value,
        "values": values,
        "help": _sentence(option.help or ""),
        "default": _shown(default, option.show_default) if is_shown else None,
        "repeated": bool(option.multiple),
        "required": bool(option.required),
    }


def _shown(default: Any, show: bool | str) -> str:
    return show if isinstance(show, str) else str(getattr(default, "value", default))


def _value_name(typed: str) -> str:
    return typed.strip("<>[]").upper() if "=" not in typed else typed.strip("<>[]")


def definitions() -> list[dict[str, Any]]:
    """All programs of the Python half that users call, in the order of the list of commands."""
    from importlib import import_module

    from iosonar.cli import PROGRAMS

    described = []
    for name in PROGRAMS:
        command: Any = typer.main.get_command(import_module(f"iosonar.cli.{name}").app)
        context = command.make_context(f"iosonar {name}", [], resilient_parsing=True)
        described.append(definition(command, context))
    return described
