"""Which confs and modules a leaf reads, and in which order."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from iosonar.campaign import unread_variables
from iosonar.campaign.shell import Shell, ShellEndedError
from iosonar.campaign.tree import Leaf
from iosonar.errors import UsageError, UserError
from iosonar.text import plain

BASE = Path(__file__).parent
"""The installation's own directory, `base_dir` in confs."""

MODULES = BASE / "modules"
PARENTS = 20
"""How many parent directories are searched for a conf."""

_MODULE = re.compile(r"\d+_(?P<name>.+)\.sh")
_OVERRIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)", re.DOTALL)


def parse_override(text: str) -> tuple[str, str]:
    """Parses `NAME=VALUE`."""
    found = _OVERRIDE.fullmatch(text)
    if found is None:
        raise UsageError(f"invalid override {text!r}: write it like threads=64")
    if found["value"].startswith("("):
        raise UsageError(f"invalid override {text!r}: an override sets a text; write the array into a conf")
    return found["name"], found["value"]


def check_top(top: Path) -> None:
    """Raises UserError if a directory is no campaign, before anything is written there."""
    if find("default-main.conf", top) is None:
        raise UserError(
            f"no default-main.conf in {plain(str(top))} or its parents: "
            "`iosonar campaign new DIR` creates a campaign to start from"
        )


def load(
    shell: Shell,
    leaf: Leaf,
    overrides: Iterable[tuple[str, str]],
    note: Callable[[str], None],
    before_path: Callable[[], None] = lambda: None,
) -> None:
    """Sources everything in the order of precedence: modules with their defaults, overrides, the leaf's own confs.

    Defaults are sourced in the top, what belongs to the leaf in the leaf's directory, in which the shell stays.
    `before_path` is called before the confs of the leaf's path.
    """
    shell.set_scalar("base_dir", str(BASE))
    shell.set_scalar("sub_prefix", "".join(f".{name}" for name in leaf.path))
    check_top(leaf.top)
    absent = []
    for module, path in modules_of(MODULES):
        default = find(f"default-{module}.conf", leaf.top)
        if default is not None:
            _source(shell, default)
            _source(shell, path)
        else:
            absent.append(module)
    for name, value in overrides:
        shell.set_scalar(name, value)
    shell.cd(leaf.directory)
    own = _load_user_modules(shell, leaf)
    if not leaf.path:
        note("started inside a leaf: only the defaults apply")
    before_path()
    for name in leaf.path:
        conf = find(f"{name}.conf", leaf.directory)
        if conf is None:
            raise UserError(
                f"no {name}.conf in {leaf.directory} or its parents: each directory needs a conf, which may be empty"
            )
        _source(shell, conf)
    for text in unread_variables.warnings(shell.names(), _texts(leaf, own.values())):
        note(text)
    for module in absent:
        if shell.scalar(f"enable_{module}").strip() not in ("", "0") and module not in own:
            note(
                f"warning: enable_{module}=1 has no effect without default-{module}.conf in the top or its parents: "
                f"copy {BASE / 'defaults' / f'default-{module}.conf'}"
            )
            shell.set_scalar(f"enable_{module}", "0")


def _texts(leaf: Leaf, modules: Iterable[Path]) -> Iterator[str]:
    """The texts of the confs and of the user's modules, which may read variables of their own."""
    start = leaf.directory.absolute()
    found = [path for each in (start, *list(start.parents)[:PARENTS]) for path in each.glob("*.conf")]
    found += [path for directory in {each.parent for each in modules} for path in directory.glob("*.sh")]
    for path in found:
        if path.is_file() and os.access(path, os.R_OK):
            yield path.read_text(encoding="utf-8", errors="replace")


def modules_of(directory: Path) -> list[tuple[str, Path]]:
    """The modules in a directory, by their numbers: names and files."""
    found = ((_MODULE.fullmatch(path.name), path) for path in sorted(directory.glob("*.sh")))
    return [(match["name"], path) for match, path in found if match]


def find(name: str, start: Path) -> Path | None:
    """The file of this name in a directory or one of its parents."""
    start = start.absolute()
    for directory in (start, *list(start.parents)[:PARENTS]):
        if (directory / name).is_file():
            return directory / name
    return None


def _load_user_modules(shell: Shell, leaf: Leaf) -> dict[str, Path]:
    """Sources the user's modules, and returns them by their names."""
    conf = find("user_modules.conf", leaf.directory)
    if conf is None:
        return {}
    _source(shell, conf)
    directory = shell.scalar("user_module_dir")
    if not directory:
        return {}
    # An absolute path replaces what is before it.
    path = next((start / directory for start in (conf.parent, leaf.directory) if (start / directory).is_dir()), None)
    if path is None:
        raise UserError(f"{conf}: user_module_dir: no directory {conf.parent / directory}")
    found = modules_of(path)
    for module, file in found:
        default = find(f"default-{module}.conf", leaf.directory)
        if default is not None:
            _source(shell, default)
        _source(shell, file)
    return dict(found)


def _source(shell: Shell, path: Path) -> None:
    try:
        status = shell.source(path)
    except ShellEndedError as error:
        raise UserError(f"{error}: a conf must not call `exit`, and must return 0") from error
    if status:
        raise UserError(f"{path} returned {status}, the status of its last command (a conf that ends well returns 0)")
