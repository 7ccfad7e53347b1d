"""How a run of calls was made: its trace, and its options as on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from iosonar.pacing import Changes, options_that_change
from iosonar.table import SourceFile

_POOL = 64
_VALUES = ("instances", "map", "ignore", "tree_from", "cwd")
_FLAGS = ("fake_io", "special_files", "unprepared")
_TIMES = ("extra_delay", "start", "end")
_CACHE = {"drop": "--drop-caches", "none": "--no-cache"}
_DEFAULTS = {"instances": 1, "extra_delay": 0}
_SAID = ("asap", "depth")
"""Options of pacing that `timing` and `threads` say."""


def replay_options(options: Mapping[str, Any]) -> str:
    """Order and timing, and all options that differ from their defaults: --order fs --timing asap --depth 8."""
    return " ".join(_words(options))


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    for name in ("order", "timing"):
        if value := options.get(name):
            yield f"--{name} {str(value).replace('_', '-')}"
    # Results of version 0.1 have only the factor.
    if "speedup" not in options:
        options = {**options, "speedup": 1 / options.get("factor", 1)}
    for option in options_that_change(Changes.LOAD, Changes.ISSUE_TIMES, Changes.MEASUREMENT):
        if option.key not in _SAID and (words := option.words(options.get(option.key))):
            yield words
    for name in _TIMES:
        if (value := options.get(name)) is not None and value != _DEFAULTS.get(name):
            yield f"--{name.replace('_', '-')} {value / 1e9:.9g}"
    for name in _VALUES:
        if (value := options.get(name)) is not None and value != _DEFAULTS.get(name):
            yield f"--{name.replace('_', '-')} {value}"
    threads = options.get("threads")
    if threads == "trace":
        yield "--threads trace"
    elif isinstance(threads, dict) and threads.get("pool") != _POOL:
        yield f"--depth {threads.get('pool')}"
    if cache := _CACHE.get(str(options.get("cache"))):
        yield cache
    yield from (f"--{name.replace('_', '-')}" for name in _FLAGS if options.get(name))
    if options.get("verify_order") is False:
        yield "--no-verify-order"
    data = options.get("data") or {}
    if (kind := data.get("kind", "random")) != "random":
        yield f"--data {kind}" + (f"={data['hex']}" if "hex" in data else "")
    elif (random := data.get("random_pct", 100)) != 100:
        share = f"--compressible {100 - random:g}" if data.get("filler") == "deadbeef" else f"--fill-random {random:g}"
        yield share
    if dedupe := data.get("dedupe_pct"):
        yield f"--dedupe {dedupe:g}"
    if block := data.get("block_bytes"):
        yield f"--data-block {block}"


def other_traces(files: Sequence[SourceFile]) -> list[str]:
    """A sentence if the files are of different traces, by the names of the traces."""
    names: dict[str, list[str]] = {}
    for file in files:
        if trace := file.run.trace if file.kind.is_run else file.path:
            names.setdefault(Path(trace).name, []).append(file.name)
    if len(names) < 2:
        return []
    of = "; ".join(f"{', '.join(dict.fromkeys(each))} of {trace}" for trace, each in names.items())
    return [f"these files are of different traces, whose calls are not the same: {of}."]
