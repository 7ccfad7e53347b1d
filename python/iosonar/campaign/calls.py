"""Leaves that replay calls to files: the options of `iosonar files replay`, and what their hosts need before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from iosonar.campaign import plan
from iosonar.campaign.hosts import Host
from iosonar.campaign.shell import Shell
from iosonar.errors import UserError
from iosonar.text import plain

ONLY_OF_REQUESTS = {
    "cmode": "with-partial",
    "vmode": "no-overhead",
    "strong": "1",
    "replay_out_start": "",
    "bottleneck": "",
    "ahead_limit": "",
    "verbose": "",
    "o_sync": "",
    "no_o_direct": "",
}
"""Variables without a meaning for calls, and their defaults."""

REFUSED = {
    "dry_run": "use fake_io=1",
    "simulate_io": "use fake_io=1",
    "state_sample": "remove it; files_prepare=reset gives all replays the same files",
}
"""Variables that promise what a replay of calls cannot do, and what to do instead."""

PREPARE = ("reset", "add", "0")
"""Values of `files_prepare`."""

FILES = ("--map", "--ignore", "--tree-from")
"""Options of the replay whose value is a file of the controller."""

OF_PREPARE = (*FILES, "--cwd", "--instances")
"""Options of the replay that `files prepare` has as well."""

SNAPSHOT, TRACE = ".tree.parquet", ".calls.parquet"
"""Suffixes of a trace, and of the snapshot of files beside it."""

# The directory above the root must be there: else a file system that is not mounted would be taken for an empty one.
_PREPARE = """
program=$1 root=$2
shift 2
[ -d "$root" ] || mkdir -- "$root" || exit
exec "$program" files prepare "$@" --root "$root"
"""


def options(shell: Shell, note: Callable[[str], None]) -> list[str]:
    """The options of `iosonar files replay` that all instances of a leaf share."""
    for name, why in REFUSED.items():
        if plan.number(shell, name, 0):
            raise UserError(f"{name} is for loads of requests: {why}")
    if shell.scalar(plan.FILTERS).strip():
        raise UserError("the filters of loads (modules pipe_…) are for requests: disable them, or use replay_options")
    for name, default in {**plan.WITHOUT_MEANING, **ONLY_OF_REQUESTS}.items():
        if shell.scalar(name).strip() not in ("", "0", default):
            note(f"{name} has no effect: the load is of calls")
    more = shell.get("replay_options")
    given: list[tuple[str, tuple[str, ...]]] = []
    if not any(word.split("=")[0] == "--threads" for word in more):
        given.append(("threads", ("--depth", str(plan.integer(shell, "threads", 64)))))
    if (fill := plan.fill(shell)) is not None:
        given.append(("fill_random", ("--fill-random", plan.decimal(fill))))
    if shell.scalar("speedup") and (speedup := plan.number(shell, "speedup", 1)) != 1:
        given.append(("speedup", ("--speedup", plan.decimal(speedup))))
    if plan.integer(shell, "fake_io", 0):
        given.append(("fake_io", ("--fake-io",)))
    variables = {option: variable for variable, (option, *_) in given}
    if any(plan.seconds(shell, name, 0) for name in ("replay_start", "replay_delta")):
        variables["--start"] = "replay_start"
    if plan.seconds(shell, "replay_duration", 0):
        variables["--end"] = "replay_duration"
    plan.refuse_given(more, variables | {"--root": "replay_device_list"}, plan.SHORT)
    prepare_mode(shell)
    return [word for _, words in given for word in words] + more


def prepare_mode(shell: Shell) -> str:
    """What `files_prepare` says."""
    mode = shell.scalar("files_prepare").strip() or PREPARE[0]
    if mode not in PREPARE:
        raise UserError(f"files_prepare={plain(mode)}: use one of {', '.join(PREPARE)}")
    return mode


def refuse_shared_roots(instances: Sequence[plan.Instance]) -> None:
    """Refuses two replays of a host in one directory."""
    seen = set()
    for each in instances:
        if (each.host, each.device) in seen:
            raise UserError(
                f"{each.host}:{plain(each.device)} is the root of two replays, which would change each other's files; "
                "list another directory for each"
            )
        seen.add((each.host, each.device))


@dataclass(frozen=True)
class Brought:
    """What a host has: the trace, and the options with the names that files have there."""

    trace: str
    options: tuple[str, ...]


def bring(host: Host, trace: Path, name: str, options: Sequence[str], directory: Path) -> Brought:
    """Brings a trace with its snapshot, and the files that the options name relative to a directory."""
    snapshot = trace.with_name(trace.name.removesuffix(TRACE) + SNAPSHOT)
    if trace.name.endswith(TRACE) and snapshot.is_file():
        host.put(snapshot, name.removesuffix(TRACE) + SNAPSHOT)
    found = []
    for number, (option, value) in enumerate(_pairs(options)):
        found.append(option)
        if value is None:
            continue
        if option in FILES:
            # Names on the host: beside those of traces.
            value = host.put(_file(directory / value, option), f"{name}.{number}")
        found.append(value)
    return Brought(host.put(trace, name), tuple(found))


def _file(path: Path, option: str) -> Path:
    if not path.is_file():
        raise UserError(f"{option}: no file {plain(str(path))}")
    return path


def prepare_command(program: str, root: str, brought: Brought, mode: str) -> list[str]:
    """The command that prepares the root of an instance on its host."""
    words = [
        word for option, value in _pairs(brought.options) if option in OF_PREPARE for word in (option, value or "")
    ]
    words += ["--special-files"] if "--special-files" in brought.options else []
    words += ["--reset"] if mode == "reset" else []
    return ["sh", "-c", _PREPARE, "sh", program, root, brought.trace, *words]


def _pairs(options: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Options with their values; words of other options stand alone."""
    words = iter(options)
    for word in words:
        name, is_joined, value = word.partition("=")
        if name in OF_PREPARE:
            yield name, value if is_joined else next(words, None)
        else:
            yield word, None
